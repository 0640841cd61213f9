//! Keys and values in one table, in the byte order of the keys.

use super::file::StateFile;
use super::rows::{optional, query, run, wrong};
use crate::error::{ErrorCode, ToolError};
use crate::sqlite::state_file::Steps;
use crate::state::Outcome;
use crate::state::clock::Clock;
use crate::state::kv::{
    Entry, Kv, MOST_READ, Range, Value, Write, Written, too_much_at_once, version_mismatch,
};
use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use std::sync::Arc;

/// `form` is 0 for JSON and 1 for bytes. The one row of `counter` holds the last version given.
pub(super) const STEPS: Steps = &["
    CREATE TABLE entries (
        key TEXT PRIMARY KEY NOT NULL,
        form INTEGER NOT NULL,
        value ANY NOT NULL,
        version INTEGER NOT NULL,
        expires_at INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX entries_expiry ON entries (expires_at) WHERE expires_at IS NOT NULL;
    CREATE TABLE counter (id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL) STRICT;
    INSERT INTO counter VALUES (1, 0);
"];

/// Expired entries that a write removes at most.
const SWEPT_AT_ONCE: i64 = 100;

const ENTRY: &str = "SELECT key, version, expires_at, form, value FROM entries";

pub(super) struct SqlKv {
    file: Arc<StateFile>,
    clock: Arc<dyn Clock>,
}

impl SqlKv {
    pub(super) fn new(file: Arc<StateFile>, clock: Arc<dyn Clock>) -> Self {
        Self { file, clock }
    }
}

#[async_trait]
impl Kv for SqlKv {
    async fn get(&self, keys: Vec<String>) -> Outcome<Vec<Option<Entry>>> {
        let now = self.clock.now();
        self.file.read(move |connection| found(connection, &keys, now)).await
    }

    async fn list(&self, range: Range) -> Outcome<(Vec<Entry>, bool)> {
        let now = self.clock.now();
        self.file.read(move |connection| listed(connection, &range, now).map_err(wrong)).await
    }

    async fn apply(&self, writes: Vec<Write>) -> Outcome<Vec<Written>> {
        let now = self.clock.now();
        self.file
            .write(move |connection| {
                sweep(connection, now)?;
                check_versions(
                    connection,
                    "written",
                    writes.iter().map(|write| (write.key.as_str(), write.if_version)),
                    now,
                )?;
                writes.into_iter().map(|write| put(connection, write)).collect()
            })
            .await
    }

    async fn increment(&self, key: String, by: i64, expires_at: Option<i64>) -> Outcome<(Written, i64)> {
        let now = self.clock.now();
        self.file
            .write(move |connection| {
                sweep(connection, now)?;
                let old = live(connection, &key, now)?;
                let before = old.as_ref().map_or(Ok(0), integer)?;
                let sum = before.checked_add(by).ok_or_else(|| {
                    ToolError::new(
                        ErrorCode::TooLarge,
                        format!(
                            "`{key}` holds {before}, and adding {by} leaves 64 bits; nothing was changed"
                        ),
                    )
                })?;
                let expires_at = expires_at.or(old.and_then(|entry| entry.expires_at));
                let value = Value::Json(sum.to_string());
                let written = put(connection, Write { key, value, expires_at, if_version: None })?;
                Ok((written, sum))
            })
            .await
    }

    async fn delete(&self, keys: Vec<String>, if_version: Option<u64>) -> Outcome<u64> {
        let now = self.clock.now();
        self.file
            .write(move |connection| {
                let wanted = keys.iter().map(|key| (key.as_str(), if_version));
                check_versions(connection, "deleted", wanted, now)?;
                sweep(connection, now)?;
                let mut deleted = 0;
                for key in &keys {
                    let live = live(connection, key, now)?.is_some();
                    let gone = run(connection, "DELETE FROM entries WHERE key = ?1", params![key])?;
                    deleted += u64::from(live && gone > 0);
                }
                Ok(deleted)
            })
            .await
    }
}

/// The last version that was given.
pub(super) fn last_version(connection: &Connection) -> Outcome<i64> {
    query(connection, "SELECT version FROM counter", [], |row| row.get(0))
}

/// After a restore: no version is given a second time.
pub(super) fn go_on_from(connection: &Connection, version: i64) -> Outcome<()> {
    run(connection, "UPDATE counter SET version = max(version, ?1)", params![version]).map(drop)
}

/// The entries of these keys. No value is read once there is too much of them.
fn found(connection: &Connection, keys: &[String], now: i64) -> Outcome<Vec<Option<Entry>>> {
    let (mut entries, mut size) = (Vec::with_capacity(keys.len()), 0);
    for key in keys {
        let entry = live(connection, key, now)?;
        size += size_of(entry.as_ref());
        if size > MOST_READ {
            return Err(too_much_at_once(entries.len()));
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn size_of(entry: Option<&Entry>) -> usize {
    entry.and_then(|entry| entry.value.as_ref()).map_or(0, Value::size)
}

fn listed(connection: &Connection, range: &Range, now: i64) -> rusqlite::Result<(Vec<Entry>, bool)> {
    // What is not wanted is not read.
    let columns = if range.values { "form, value" } else { "NULL, NULL" };
    let sql = format!(
        "SELECT key, version, expires_at, {columns} FROM entries
         WHERE key >= ?1 AND key > ?2 AND (expires_at IS NULL OR expires_at > ?3) ORDER BY key"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    // No key is empty, so every key stands behind the empty text.
    let after = range.after.as_deref().unwrap_or_default();
    let mut rows = statement.query(params![range.prefix, after, now])?;
    let (mut entries, mut size) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let entry = entry(row)?;
        if !entry.key.starts_with(&range.prefix) {
            break;
        }
        size += size_of(Some(&entry));
        if entries.len() == range.limit || (size > MOST_READ && !entries.is_empty()) {
            return Ok((entries, true));
        }
        entries.push(entry);
    }
    Ok((entries, false))
}

/// The entry of a key, unless it has expired.
fn live(connection: &Connection, key: &str, now: i64) -> Outcome<Option<Entry>> {
    let sql = format!("{ENTRY} WHERE key = ?1 AND (expires_at IS NULL OR expires_at > ?2)");
    optional(connection, &sql, params![key, now], entry)
}

fn check_versions<'k>(
    connection: &Connection,
    done: &str,
    wanted: impl Iterator<Item = (&'k str, Option<u64>)>,
    now: i64,
) -> Outcome<()> {
    let mut mismatches = Vec::new();
    for (key, if_version) in wanted {
        let Some(if_version) = if_version else { continue };
        let version = live(connection, key, now)?.map_or(0, |entry| entry.version);
        if version != if_version {
            mismatches.push((key.to_owned(), version));
        }
    }
    if mismatches.is_empty() { Ok(()) } else { Err(version_mismatch(done, &mismatches)) }
}

fn put(connection: &Connection, write: Write) -> Outcome<Written> {
    let next = "UPDATE counter SET version = version + 1 RETURNING version";
    let version: i64 = query(connection, next, [], |row| row.get(0))?;
    let (form, value): (i64, rusqlite::types::Value) = match write.value {
        Value::Json(text) => (0, text.into()),
        Value::Bytes(bytes) => (1, bytes.into()),
    };
    run(
        connection,
        "INSERT INTO entries (key, form, value, version, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (key) DO UPDATE SET form = excluded.form, value = excluded.value,
         version = excluded.version, expires_at = excluded.expires_at",
        params![write.key, form, value, version, write.expires_at],
    )?;
    Ok(Written { key: write.key, version: u64::try_from(version).unwrap_or_default() })
}

/// Removes some of what has expired.
fn sweep(connection: &Connection, now: i64) -> Outcome<()> {
    run(
        connection,
        "DELETE FROM entries WHERE key IN
         (SELECT key FROM entries WHERE expires_at IS NOT NULL AND expires_at <= ?1 LIMIT ?2)",
        params![now, SWEPT_AT_ONCE],
    )?;
    Ok(())
}

fn integer(entry: &Entry) -> Outcome<i64> {
    let number = match &entry.value {
        Some(Value::Json(text)) => text.parse::<i64>().ok(),
        _ => None,
    };
    number.ok_or_else(|| {
        ToolError::new(
            ErrorCode::WrongType,
            format!(
                "`{}` holds no integer, so `incr` cannot add to it; kv_set with `value` replaces it",
                crate::render::one_line(&entry.key, 80)
            ),
        )
    })
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let value = match row.get::<_, Option<i64>>(3)? {
        None => None,
        Some(0) => Some(Value::Json(row.get(4)?)),
        Some(_) => Some(Value::Bytes(row.get(4)?)),
    };
    let version: i64 = row.get(1)?;
    Ok(Entry {
        key: row.get(0)?,
        value,
        version: u64::try_from(version).unwrap_or_default(),
        expires_at: row.get(2)?,
    })
}
