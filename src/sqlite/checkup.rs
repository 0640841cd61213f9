//! What a database holds and whether it is sound, found without changing anything.
//!
//! It writes nothing and makes no table. It leaves no -wal and -shm behind where SQLite can do without: in
//! rollback mode, and in WAL mode while no -wal is there. What the facts mean is said by the caller.

use crate::chain::Verdict;
use crate::error::StartError;
use crate::sqlite::copy::{Integrity, integrity};
use crate::sqlite::readout::{Pace, Readout};
use crate::sqlite::tables::{self, OBJECTS, SchemaFault, TRIGGERS};
use crate::sqlite::trim::{self, TrimEvent};
use crate::sqlite::{diagnose, header, open};
use rusqlite::{Connection, OptionalExtension};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How long each part may take: a day, which is to say as long as it takes.
const PATIENCE: Duration = Duration::from_secs(86_400);

/// What was found. A part that could not be looked at holds the reason.
#[derive(Debug)]
pub struct Checkup {
    /// Whether the file is in WAL mode.
    pub wal: bool,
    /// Bytes of a page.
    pub page_size: i64,
    /// Pages of the file.
    pub pages: i64,
    /// Pages of these that hold nothing.
    pub free_pages: i64,
    /// `UTF-8`, `UTF-16le`, `UTF-16be`.
    pub encoding: String,
    /// `PRAGMA application_id`, 0 if nobody has set it.
    pub application_id: i64,
    /// `PRAGMA user_version`.
    pub user_version: i64,
    /// What `quick_check` says.
    pub integrity: Result<Integrity, String>,
    /// The server's own tables.
    pub schema: Result<Schema, String>,
    /// The log, if there is one.
    pub log: Option<Result<Log, String>>,
    /// What the chain says of files with old log rows.
    pub trims: Vec<TrimEvent>,
    /// The verdict over events and checkpoints, if there are such tables.
    pub chain: Option<Result<Verdict, String>>,
    /// Somebody wrote the file while it was read without locks: what was found may be wrong.
    pub disturbed: bool,
}

/// The server's tables, index, view and triggers in the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// How many of them the server makes.
    pub expected: usize,
    /// Those that are not there: `table query_log`.
    pub missing: Vec<String>,
    /// Triggers whose table is there without them: somebody dropped them.
    pub dropped: Vec<&'static str>,
    /// What has one of the server's names, or hangs on its tables, and is not the server's; in words.
    pub foreign: Vec<String>,
    /// The checkpoints are the Python server's, without hashes.
    pub unhashed_checkpoints: bool,
}

/// The log.
#[derive(Debug, PartialEq, Eq)]
pub struct Log {
    /// Its rows.
    pub rows: i64,
    /// The rows of calls that failed.
    pub failed: i64,
    /// When the newest was written.
    pub newest: Option<String>,
}

/// Looks at the database, which must exist. No connection to it may be open in this process.
///
/// # Errors
/// It cannot be opened: one line, as the server would say it.
pub fn checkup(path: &Path, busy_timeout: Duration) -> Result<Checkup, StartError> {
    let path = open::absolute_path(path)?;
    let wal = header::read(&path).ok().flatten().is_some_and(|header| header.wal);
    let alone = wal && is_alone(&path);
    let before = alone.then(|| trace(&path));
    let opened = if alone { open::for_checkup_alone(&path) } else { open::for_checkup(&path, busy_timeout) };
    let looked = opened.and_then(|connection| look(connection, wal));
    // The connection is closed by now.
    let mut checkup = looked.map_err(|error| diagnose::sqlite_error(&path, &error))?;
    checkup.disturbed = before.is_some_and(|before| before != trace(&path));
    Ok(checkup)
}

/// The file that SQLite keeps beside the database, a link to it followed.
#[must_use]
pub fn companion(path: &Path, ending: &str) -> PathBuf {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = real.into_os_string();
    name.push(ending);
    name.into()
}

fn look(connection: Connection, wal: bool) -> rusqlite::Result<Checkup> {
    let number =
        |pragma: &str| connection.query_row(&format!("PRAGMA main.{pragma}"), [], |row| row.get::<_, i64>(0));
    let (page_size, pages, free_pages) =
        (number("page_size")?, number("page_count")?, number("freelist_count")?);
    let (application_id, user_version) = (number("application_id")?, number("user_version")?);
    let encoding = connection.query_row("PRAGMA main.encoding", [], |row| row.get(0))?;
    let said = |error: rusqlite::Error| error.to_string();
    let integrity = integrity(&connection).map_err(said);
    let schema = schema(&connection).map_err(said);
    let has = |table: &str| {
        let is_there = |schema: &Schema| !schema.missing.iter().any(|name| name == table);
        schema.as_ref().is_ok_and(|schema| schema.foreign.is_empty() && is_there(schema))
    };
    let log = has("table query_log").then(|| log(&connection).map_err(said));
    let trims = if has("table memory_events") { trim::events(&connection) } else { Ok(Vec::new()) };
    let has_chain = has("table memory_events") && has("table memory_checkpoints");
    let chain = has_chain.then(|| chain(connection));
    Ok(Checkup {
        wal,
        page_size,
        pages,
        free_pages,
        encoding,
        application_id,
        user_version,
        integrity,
        schema,
        log,
        // What cannot be read is said by the verdict over the chain.
        trims: trims.unwrap_or_default(),
        chain,
        disturbed: false,
    })
}

fn schema(connection: &Connection) -> rusqlite::Result<Schema> {
    let expected = OBJECTS.len() + TRIGGERS.iter().flatten().count();
    match tables::missing(connection) {
        Ok(missing) => Ok(Schema {
            expected,
            missing: missing
                .objects
                .iter()
                .map(|object| format!("{} {}", object.kind, object.name))
                .collect(),
            dropped: missing.dropped,
            foreign: Vec::new(),
            unhashed_checkpoints: missing.checkpoint_hash,
        }),
        // That one stops at the first.
        Err(SchemaFault::Foreign(_)) => {
            Ok(Schema { expected, foreign: tables::foreign_objects(connection)?, ..Schema::default() })
        }
        Err(SchemaFault::Sqlite(error)) => Err(error),
    }
}

fn log(connection: &Connection) -> rusqlite::Result<Log> {
    let newest = connection
        .query_row("SELECT ts FROM main.query_log ORDER BY id DESC LIMIT 1", [], |row| row.get(0))
        .optional()?;
    connection.query_row("SELECT count(*), count(*) FILTER (WHERE ok = 0) FROM main.query_log", [], |row| {
        Ok(Log { rows: row.get(0)?, failed: row.get(1)?, newest })
    })
}

fn chain(connection: Connection) -> Result<Verdict, String> {
    let readout = Readout::over(connection).map_err(|error| error.to_string())?;
    let pace = Pace {
        deadline: Instant::now() + PATIENCE,
        limit: PATIENCE,
        cancelled: &|| false,
        progress: &|_, _| {},
    };
    readout.verify(&pace, None).map(|(verdict, _)| verdict).map_err(|error| error.message)
}

/// Whether nothing but the file itself is to be read: no -wal, or an empty one that nobody has open.
fn is_alone(path: &Path) -> bool {
    match std::fs::metadata(companion(path, "-wal")) {
        Ok(wal) => wal.len() == 0 && !companion(path, "-shm").exists(),
        Err(_) => true,
    }
}

/// What changes when somebody writes.
fn trace(path: &Path) -> (Option<(SystemTime, u64)>, bool) {
    let found = std::fs::metadata(path).ok();
    let found = found.and_then(|found| Some((found.modified().ok()?, found.len())));
    (found, companion(path, "-wal").exists())
}
