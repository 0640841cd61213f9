//! Whether a snapshot was made of this database: what it holds of the server's append-only tables must be the
//! beginning of what the database holds, but for old log rows that `--audit-keep` has moved into files.
//!
//! It reads ids, times, sessions and hashes only, and judges no hash: a snapshot's events are never used.
//! A snapshot without any event, checkpoint or log row can be told by its name alone.

use crate::sqlite::tables;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row};

/// Table, what a row of it is called, and the columns that tell one from another; the first is the id.
const HISTORIES: &[(&str, &str, &[&str])] = &[
    ("memory_events", "event", &["id", "ts", "session", "hash"]),
    ("memory_checkpoints", "checkpoint", &["id", "ts", "session", "last_event_id", "head_hash"]),
    ("query_log", "log row", &["id", "ts", "session", "tool"]),
];

/// The first row of the snapshot that the database does not have, in words; `None` if there is none. Both have
/// been judged by [`tables::missing`].
///
/// # Errors
/// SQLite's.
pub(super) fn stranger(snapshot: &Connection, live: &Connection) -> rusqlite::Result<Option<String>> {
    for (table, what, columns) in HISTORIES {
        if !tables::has_table(snapshot, table)? {
            continue;
        }
        let sql = format!("SELECT {} FROM main.{table} WHERE id >= ?1 ORDER BY id", columns.join(", "));
        let mut theirs = snapshot.prepare(&sql)?;
        let mut ours = live.prepare(&sql)?;
        // The oldest rows of the log may have been moved into files since.
        let from = if *table == "query_log" { oldest(live)? } else { i64::MIN };
        let mut theirs = theirs.query([from])?;
        let mut ours = ours.query([from])?;
        while let Some(their) = theirs.next()? {
            let same = match ours.next()? {
                Some(our) => values(their, columns.len())? == values(our, columns.len())?,
                None => false,
            };
            if !same {
                let id: i64 = their.get(0)?;
                return Ok(Some(format!("{what} {id} of the snapshot is not the database's")));
            }
        }
    }
    Ok(None)
}

fn oldest(live: &Connection) -> rusqlite::Result<i64> {
    live.query_row("SELECT coalesce(min(id), 0) FROM main.query_log", [], |row| row.get(0))
}

fn values(row: &Row<'_>, columns: usize) -> rusqlite::Result<Vec<Value>> {
    (0..columns).map(|column| row.get_ref(column).map(comparable)).collect()
}

/// A copy that can be compared; a text that is not UTF-8 as its bytes.
fn comparable(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Blob(bytes.to_vec()),
        },
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}
