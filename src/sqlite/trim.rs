//! `--audit-keep`: the oldest rows of `query_log` moved into a file, which an event of the chain vouches for.
//!
//! It decides neither when nor how often. In one transaction of the server's own connection the rows are written to
//! a file under a temporary name, the file is synced and named, the trigger against deleting goes, the rows go, the
//! trigger comes back, and an event records the rows' range and the file's SHA-256. Cut off anywhere, it leaves
//! everything as it was, or that and a file too many; never rows that are in neither place.

use super::copy::folder::{self, Temporary};
use super::copy::names::with_ending;
use super::ledger::{Batch, Ledger, LedgerError, Reach};
use super::ledger_guard::{Gate, Phase};
use super::tables::TRIGGERS;
use super::{diagnose, objects::text};
use crate::audit::{AuditRow, Keep, timestamp};
use crate::error::{ErrorCode, ToolError};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The kind of the event that a trim appends. Agents cannot append kinds that begin with [`RESERVED`].
pub const KIND: &str = "indelible.trim";
/// What the kinds of the server's own events begin with.
pub const RESERVED: &str = "indelible.";
/// What the log calls a trim.
const TOOL: &str = "audit_keep";
const UNDONE: &str = "the log was not trimmed";
/// Rows and bytes of one file: the database is locked meanwhile.
const MAX_ROWS: usize = 50_000;
const MAX_BYTES: u64 = 32 << 20;
/// Where rows alone are counted, what may be too many before anything is done about it, in parts of what is kept.
const SLACK: u64 = 10;
const DAY: Duration = Duration::from_secs(86_400);
const COLUMNS: [&str; 10] =
    ["id", "ts", "session", "tool", "query", "ok", "rows", "error", "duration_ms", "detail"];

/// What is to be trimmed, and how.
pub struct Trim<'a> {
    /// What stays.
    pub keep: Keep,
    /// The database; the files go into [`archive_folder`].
    pub database: &'a Path,
    /// The session of the event and the log row.
    pub session: &'a str,
    /// The present.
    pub now: jiff::Timestamp,
    /// How long to wait for other processes.
    pub wait: Duration,
    /// Whether to give up.
    pub stop: &'a dyn Fn() -> bool,
}

/// What was trimmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// How many rows.
    pub rows: u64,
    /// Where they are now.
    pub archive: PathBuf,
}

/// What an event says of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrimEvent {
    /// The event.
    pub event: i64,
    /// The first and the last row.
    pub ids: (i64, i64),
    /// The file, as it was named.
    pub archive: PathBuf,
    /// Its SHA-256, lower-case hex.
    pub sha256: String,
}

/// `<db file>.log-archive`, beside the database.
#[must_use]
pub fn archive_folder(database: &Path) -> PathBuf {
    with_ending(database.as_os_str(), ".log-archive").into()
}

/// What the chain knows of archives.
///
/// # Errors
/// SQLite's.
pub(super) fn events(connection: &Connection) -> rusqlite::Result<Vec<TrimEvent>> {
    let mut statement =
        connection.prepare("SELECT id, content FROM main.memory_events WHERE kind = ?1 ORDER BY id")?;
    let mut rows = statement.query([KIND])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let said: Value = serde_json::from_str(&text(row, 1)?).unwrap_or_default();
        let number = |name: &str| said.get(name).and_then(Value::as_i64).unwrap_or_default();
        let words = |name: &str| said.get(name).and_then(Value::as_str).unwrap_or_default();
        found.push(TrimEvent {
            event: row.get(0)?,
            ids: (number("first_id"), number("last_id")),
            archive: words("archive").into(),
            sha256: words("sha256").to_owned(),
        });
    }
    Ok(found)
}

impl Ledger {
    /// Moves the oldest rows into a file if there are clearly too many: more than a tenth, or a day, above what is
    /// kept. At most [`MAX_ROWS`] at once; ask again until there is nothing to do. The newest row always stays, so
    /// that ids go on rising.
    ///
    /// # Errors
    /// The lock, the file, or SQLite's; the log is as it was then.
    pub fn trim(&mut self, order: &Trim<'_>) -> Result<Option<Trimmed>, ToolError> {
        let began = Instant::now();
        // Without the lock first: mostly there is nothing to do.
        if surplus(self.connection(), order).map_err(|error| failed(&error))?.is_none() {
            return Ok(None);
        }
        let gate = self.gate().clone();
        let mut batch = self.batch(order.wait, true).map_err(|error| undone(&error.error))?;
        let Some(surplus) = surplus(batch.connection(), order).map_err(|error| failed(&error))? else {
            return Ok(None);
        };
        let folder = archive_folder(order.database);
        let label = order.database.file_name().unwrap_or_default();
        folder::make(&folder).map_err(|error| undone(&error))?;
        folder::sweep_where(&folder, |file| is_temporary(label, file));
        let Some(archive) = export(batch.connection(), order, &surplus, &folder, label)? else {
            return Ok(None);
        };
        if let Err(error) = cut(&mut batch, &gate, order, &archive, began) {
            // Nothing names it yet.
            let _ = std::fs::remove_file(&archive.path);
            return Err(error);
        }
        // Should this fail, nobody can tell whether it was done: the file stays.
        match batch.commit() {
            Err(LedgerError { reach: Reach::Nowhere, error }) => tracing::error!("{}", error.message),
            committed => committed.map_err(|error| undone(&error.error))?,
        }
        Ok(Some(Trimmed { rows: archive.rows, archive: archive.path }))
    }
}

/// Up to which row and which moment rows may go.
struct Surplus {
    last_id: i64,
    before: Option<String>,
}

/// Whether there are clearly too many rows.
fn surplus(connection: &Connection, order: &Trim<'_>) -> rusqlite::Result<Option<Surplus>> {
    let end = |sql: &str| {
        connection
            .prepare_cached(sql)?
            .query_row([], |row| Ok((row.get::<_, i64>(0)?, text(row, 1)?)))
            .optional()
    };
    let Some((first, oldest)) = end("SELECT id, ts FROM query_log ORDER BY id LIMIT 1")? else {
        return Ok(None);
    };
    let Some((newest, _)) = end("SELECT id, ts FROM query_log ORDER BY id DESC LIMIT 1")? else {
        return Ok(None);
    };
    let before = |age: Duration| order.now.checked_sub(age).map(timestamp).unwrap_or_default();
    Ok(match order.keep {
        Keep::Rows(rows) => {
            let kept = i64::try_from(rows).unwrap_or(i64::MAX);
            // A trim's own row is not too many, or each would ask for the next.
            let slack = i64::try_from(rows / SLACK).unwrap_or(i64::MAX).max(1);
            let surplus = newest.saturating_sub(first).saturating_add(1).saturating_sub(kept);
            let last_id = newest.saturating_sub(kept).min(newest.saturating_sub(1));
            (surplus > slack).then_some(Surplus { last_id, before: None })
        }
        Keep::Days(days) => {
            let age = DAY.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX));
            let last_id = newest.saturating_sub(1);
            (first < newest && oldest < before(age.saturating_add(DAY)))
                .then(|| Surplus { last_id, before: Some(before(age)) })
        }
    })
}

/// A file with rows, under its last name.
struct Archive {
    path: PathBuf,
    rows: u64,
    ids: (i64, i64),
    moments: (String, String),
    bytes: u64,
    sha256: String,
}

/// Writes rows into a file: one JSON object a line, with the columns of the table.
fn export(
    connection: &Connection,
    order: &Trim<'_>,
    surplus: &Surplus,
    folder: &Path,
    label: &OsStr,
) -> Result<Option<Archive>, ToolError> {
    let file = Temporary::create(folder, &name(label, order.now, 0)).map_err(|error| undone(&error))?;
    let Some(mut archive) = fill(connection, order, surplus, file.file(), folder)? else { return Ok(None) };
    archive.bytes = file.sync().map_err(|error| undone(&error))?;
    archive.path = file.publish(|counter| name(label, order.now, counter)).map_err(|error| undone(&error))?;
    folder::sync(folder).map_err(|error| undone(&error))?;
    Ok(Some(archive))
}

fn fill(
    connection: &Connection,
    order: &Trim<'_>,
    surplus: &Surplus,
    file: &File,
    folder: &Path,
) -> Result<Option<Archive>, ToolError> {
    let io_failed = |error: std::io::Error| {
        let words = format!("{UNDONE}: `{}`: {error}", folder.display());
        ToolError::new(ErrorCode::SqlError, words)
    };
    let mut sink = Hashed { to: BufWriter::new(file), hash: Sha256::new(), bytes: 0 };
    let mut found: Option<Archive> = None;
    let sql = format!("SELECT {} FROM query_log WHERE id <= ?1 ORDER BY id", COLUMNS.join(", "));
    let mut statement = connection.prepare(&sql).map_err(|error| failed(&error))?;
    let mut rows = statement.query([surplus.last_id]).map_err(|error| failed(&error))?;
    for count in 1..=MAX_ROWS {
        let Some(row) = rows.next().map_err(|error| failed(&error))? else { break };
        if count.is_multiple_of(256) && (order.stop)() {
            return Err(ToolError::new(ErrorCode::Cancelled, format!("{UNDONE}: the server ends")));
        }
        let id: i64 = row.get(0).map_err(|error| failed(&error))?;
        let ts = text(row, 1).map_err(|error| failed(&error))?;
        if sink.bytes >= MAX_BYTES || surplus.before.as_ref().is_some_and(|before| ts >= *before) {
            break;
        }
        let line = line(row).map_err(|error| failed(&error))?;
        sink.write_all(line.as_bytes()).map_err(io_failed)?;
        match &mut found {
            Some(archive) => {
                archive.rows += 1;
                archive.ids.1 = id;
                archive.moments.1 = ts;
            }
            None => {
                let (ids, moments) = ((id, id), (ts.clone(), ts));
                found = Some(Archive {
                    path: PathBuf::new(),
                    rows: 1,
                    ids,
                    moments,
                    bytes: 0,
                    sha256: String::new(),
                });
            }
        }
    }
    sink.flush().map_err(io_failed)?;
    let digest = crate::render::hex(&sink.hash.finalize());
    Ok(found.map(|archive| Archive { sha256: digest, ..archive }))
}

/// Takes the rows out of the table and puts the event into the chain, within the transaction.
fn cut(
    batch: &mut Batch<'_>,
    gate: &Gate,
    order: &Trim<'_>,
    archive: &Archive,
    began: Instant,
) -> Result<(), ToolError> {
    let connection = batch.connection();
    let Some(trigger) = TRIGGERS.iter().flatten().find(|trigger| trigger.name == "query_log_no_delete")
    else {
        return Err(ToolError::new(ErrorCode::SqlError, format!("{UNDONE}: it has no trigger")));
    };
    let run = |phase: Phase, sql: &str| gate.during(phase, || connection.execute(sql, []));
    run(Phase::Trigger, "DROP TRIGGER query_log_no_delete").map_err(|error| failed(&error))?;
    let deleted = gate
        .during(Phase::Rows, || {
            connection.execute("DELETE FROM query_log WHERE id BETWEEN ?1 AND ?2", archive.ids)
        })
        .map_err(|error| failed(&error))?;
    run(Phase::Trigger, trigger.sql).map_err(|error| failed(&error))?;
    if u64::try_from(deleted) != Ok(archive.rows) {
        let words = format!("{UNDONE}: {deleted} rows would go, but {} are in the file", archive.rows);
        return Err(ToolError::new(ErrorCode::SqlError, words));
    }
    let content = json!({
        "table": "query_log",
        "first_id": archive.ids.0,
        "last_id": archive.ids.1,
        "rows": archive.rows,
        "from": archive.moments.0,
        "to": archive.moments.1,
        "archive": archive.path.to_string_lossy(),
        "bytes": archive.bytes,
        "sha256": archive.sha256,
    });
    let row = AuditRow {
        ts: timestamp(order.now),
        session: order.session.to_owned(),
        tool: TOOL.to_owned(),
        ok: true,
        rows: i64::try_from(archive.rows).ok(),
        duration_ms: i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX),
        ..AuditRow::default()
    };
    let path = archive.path.to_string_lossy().into_owned();
    let made = move |event: &super::ledger::Appended| AuditRow {
        detail: Some(json!({"event": event.id, "archive": path}).to_string()),
        ..row
    };
    let appended = batch.event(order.session, KIND, &content.to_string(), made);
    appended.map(|_| ()).map_err(|error| undone(&error.error))
}

/// A row as one line of JSON. What is no text and no number, in a table that somebody edited, is `{"hex": ...}`.
fn line(row: &rusqlite::Row<'_>) -> rusqlite::Result<String> {
    let mut object = Map::new();
    for (at, column) in COLUMNS.into_iter().enumerate() {
        let hex = |bytes: &[u8]| json!({"hex": crate::render::hex(bytes)});
        let value = match row.get_ref(at)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(value) => value.into(),
            ValueRef::Real(value) => value.into(),
            ValueRef::Text(bytes) => std::str::from_utf8(bytes).map_or_else(|_| hex(bytes), Value::from),
            ValueRef::Blob(bytes) => hex(bytes),
        };
        object.insert(column.to_owned(), value);
    }
    Ok(format!("{}\n", Value::Object(object)))
}

/// `memory.db.20261130T090102.123Z.jsonl`, with a counter `memory.db.20261130T090102.123Z-2.jsonl`.
fn name(label: &OsStr, now: jiff::Timestamp, counter: u32) -> OsString {
    let mut name = label.to_os_string();
    name.push(now.strftime(".%Y%m%dT%H%M%S%.3fZ").to_string());
    if counter > 0 {
        name.push(format!("-{counter}"));
    }
    name.push(".jsonl");
    name
}

/// Whether a file is what a trim that was cut off left of an archive.
fn is_temporary(label: &OsStr, file: &OsStr) -> bool {
    let (label, file) = (label.to_string_lossy(), file.to_string_lossy());
    let rest = file.strip_prefix('.').and_then(|rest| rest.strip_prefix(label.as_ref()));
    rest.is_some_and(|rest| rest.starts_with(".2") && rest.contains(".jsonl.tmp-"))
}

/// Counts and hashes what goes through.
struct Hashed<W> {
    to: W,
    hash: Sha256,
    bytes: u64,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.to.write(bytes)?;
        self.hash.update(bytes.get(..count).unwrap_or_default());
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

fn undone(error: &ToolError) -> ToolError {
    ToolError::new(error.code, format!("{UNDONE}: {}", error.message))
}

fn failed(error: &rusqlite::Error) -> ToolError {
    diagnose::tool_error(UNDONE, error)
}
