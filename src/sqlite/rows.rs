//! A row of the server's tables as the chain and the resume text take it, whatever it holds: a file may
//! have been written by anyone.
//!
//! It runs no statement.

use crate::chain::{CheckpointRow, EventRow, StoredHash};
use crate::render::Cell;
use rusqlite::Row;
use rusqlite::types::ValueRef;

/// `SELECT id, ts, session, kind, content, prev_hash, hash`; the error says which field is no text.
pub(super) fn event_of<'a>(row: &'a Row<'_>, id: i64) -> Result<EventRow<'a>, String> {
    Ok(EventRow {
        id,
        ts: text(row, 1, "ts")?,
        session: text(row, 2, "session")?,
        kind: text(row, 3, "kind")?,
        content: text(row, 4, "content")?,
        prev_hash: text(row, 5, "prev_hash")?,
        hash: text(row, 6, "hash")?,
    })
}

/// `SELECT id, ts, session, summary, last_event_id, head_hash[, hash]`.
pub(super) fn checkpoint_of<'a>(
    row: &'a Row<'_>,
    id: i64,
    has_hash: bool,
) -> Result<CheckpointRow<'a>, String> {
    let hash = match (has_hash, has_hash.then(|| row.get_ref(6))) {
        (false, _) => StoredHash::NoColumn,
        (true, Some(Ok(ValueRef::Null))) => StoredHash::Null,
        (true, _) => StoredHash::Text(text(row, 6, "hash")?),
    };
    let last_event_id = row
        .get_ref(4)
        .ok()
        .and_then(|value| value.as_i64().ok())
        .ok_or("`last_event_id` is not an integer")?;
    Ok(CheckpointRow {
        id,
        ts: text(row, 1, "ts")?,
        session: text(row, 2, "session")?,
        summary: text(row, 3, "summary")?,
        last_event_id,
        head_hash: text(row, 5, "head_hash")?,
        hash,
    })
}

fn text<'a>(row: &'a Row<'_>, column: usize, name: &str) -> Result<&'a str, String> {
    match row.get_ref(column) {
        Ok(ValueRef::Text(bytes)) => {
            std::str::from_utf8(bytes).map_err(|_| format!("`{name}` is not valid UTF-8"))
        }
        Ok(ValueRef::Null) => Err(format!("`{name}` is NULL")),
        Ok(other) => Err(format!("`{name}` is {}, not a text", other.data_type())),
        Err(error) => Err(format!("`{name}`: {error}")),
    }
}

/// A value by its storage class.
pub(super) fn cell<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<Cell<'a>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(value) => Cell::Integer(value),
        ValueRef::Real(value) => Cell::Real(value),
        ValueRef::Text(bytes) => Cell::Text(bytes),
        ValueRef::Blob(bytes) => Cell::Blob(bytes.len()),
    })
}
