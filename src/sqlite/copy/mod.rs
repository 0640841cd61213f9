//! Snapshots: a checked, private, synced copy of the database under a name of its own, or an error.
//!
//! It runs no statement of an agent's and decides neither when nor whether a snapshot is made.
//!
//! Run it in a process that has no other connection to the file: POSIX locks belong to the process, and
//! closing any descriptor of a file drops all of them (<https://sqlite.org/howtocorrupt.html>, "POSIX
//! advisory locks canceled by a separate thread doing close()"). The descriptor opened here for the file
//! copy therefore stays open until the process ends.

pub(super) mod check;
pub(super) mod folder;
mod found;
pub(super) mod names;
mod plain;

pub use check::Integrity;
pub(super) use check::integrity;
pub use found::{FoundSnapshot, found};
pub use plain::{Copied, CopyRequest, plain};

use crate::error::{ErrorCode, ToolError};
use crate::platform;
use crate::sqlite::{diagnose, open};
use check::Depth;
use folder::Temporary;
use names::{Name, with_ending};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, ErrorCode as SqliteCode};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the checkpoint before a file copy waits for readers. Short: the backup API does without.
const CHECKPOINT_WAIT: Duration = Duration::from_millis(100);
/// How often another writer may slip in between the checkpoint and the lock.
const TRIES: usize = 3;
/// From this length on, in bytes, a database that has less than one in so many of them in its file is not copied page by
/// page: SQLite makes a damaged file as long as a page number in it says, and writes nothing before that page.
const MOSTLY_HOLES_FROM: u64 = 256 << 20;
const MOSTLY_HOLES: u64 = 64;
/// Pages per step of the backup API.
const STEP_PAGES: i32 = 4096;

/// Who asked for a snapshot; the two kinds rotate apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SnapshotKind {
    /// Made before a destructive statement.
    Auto,
    /// Asked for by name.
    Manual,
}

impl SnapshotKind {
    /// As in file names: `auto`, `manual`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Manual => "manual",
        }
    }
}

/// What is to be copied where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRequest {
    /// The database file.
    #[serde(with = "crate::os_path")]
    pub database: PathBuf,
    /// The folder; made, private, if absent. See [`default_folder`].
    #[serde(with = "crate::os_path")]
    pub folder: PathBuf,
    /// Who asks.
    pub kind: SnapshotKind,
    /// How many of this kind to keep, the new one among them (which stays in any case).
    pub keep: usize,
    /// How long to wait for another process's lock.
    pub busy_timeout: Duration,
}

/// How the bytes were copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyMethod {
    /// The file itself, under the write lock, with nothing left in the WAL.
    File,
    /// SQLite's backup API, within one read transaction.
    Backup,
}

/// A snapshot that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotDone {
    /// Its absolute path.
    #[serde(with = "crate::os_path")]
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// How.
    pub method: CopyMethod,
    /// Older ones that rotation removed.
    #[serde(skip)]
    pub removed: Vec<PathBuf>,
    /// What did not go well and does not matter to the snapshot: an old one that could not be removed.
    pub warnings: Vec<String>,
}

/// `<db file>.snapshots`, beside the database.
#[must_use]
pub fn default_folder(database: &Path) -> PathBuf {
    with_ending(database.as_os_str(), ".snapshots").into()
}

/// Makes the folder for snapshots, private, if there is none.
///
/// # Errors
/// [`ErrorCode::SnapshotFailed`], naming the folder and the cause.
pub fn make_folder(folder: &Path) -> Result<(), ToolError> {
    folder::make(folder)
}

/// Removes what copies that were killed have left in the folder of the snapshots, if nobody makes one just now. It
/// opens no database.
pub fn sweep(database: &Path, folder: &Path) {
    // No database, no leftovers of it.
    if let Ok(place) = Place::of(database, folder) {
        folder::sweep(&place.folder, &place.label);
    }
}

/// Makes a snapshot. Nothing stands under a snapshot's name before it is copied, checked and synced.
///
/// # Errors
/// [`ErrorCode::SnapshotFailed`], naming the file or folder and the cause. Nothing is left behind.
pub fn snapshot(request: &SnapshotRequest, now: jiff::Timestamp) -> Result<SnapshotDone, ToolError> {
    let place = Place::of(&request.database, &request.folder).map_err(failed)?;
    make(&place, request, None, now, |temporary| copy(&place.real, temporary, request.busy_timeout))
}

/// Makes a snapshot of what an open connection sees, through SQLite alone; `spare` is not rotated out.
///
/// # Errors
/// As [`snapshot`].
pub(super) fn snapshot_through(
    source: &Connection,
    place: &Place,
    request: &SnapshotRequest,
    spare: &OsStr,
    now: jiff::Timestamp,
) -> Result<SnapshotDone, ToolError> {
    make(place, request, Some(spare), now, |temporary| {
        check_room(source, &place.real, temporary)?;
        back_up(source, temporary.path(), request.busy_timeout)
            .map_err(|error| sqlite_failed(&place.real, &error))?;
        Ok(CopyMethod::Backup)
    })
}

/// Where a database and its snapshots are.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The database as it was named, absolute.
    pub(super) database: PathBuf,
    /// The file itself: SQLite keeps the WAL beside it, not beside a link to it.
    pub(super) real: PathBuf,
    /// The folder of the snapshots, absolute.
    pub(super) folder: PathBuf,
    /// What their names begin with.
    pub(super) label: OsString,
}

impl Place {
    /// # Errors
    /// The database is not there, in words.
    pub(super) fn of(database: &Path, folder: &Path) -> Result<Self, String> {
        let words = |path: &Path, error: std::io::Error| format!("`{}`: {error}", path.display());
        let absolute = |path: &Path| std::path::absolute(path).map_err(|error| words(path, error));
        let database = absolute(database)?;
        let real = std::fs::canonicalize(&database).map_err(|error| words(&database, error))?;
        let folder = absolute(folder)?;
        let label = names::label(&database, &real, folder != default_folder(&database))
            .ok_or_else(|| format!("`{}` names no file", database.display()))?;
        Ok(Self { database, real, folder, label })
    }
}

fn make(
    place: &Place,
    request: &SnapshotRequest,
    spare: Option<&OsStr>,
    now: jiff::Timestamp,
    copy: impl FnOnce(&Temporary) -> Result<CopyMethod, ToolError>,
) -> Result<SnapshotDone, ToolError> {
    let Place { database, real, folder, label } = place;
    folder::make(folder)?;
    let temporary = Temporary::create(folder, &Name::new(now, 0, request.kind).file_name(label))?;
    let method = copy(&temporary)?;
    // The disk is busy with the one while a processor is with the other.
    let (damage, synced) = std::thread::scope(|scope| {
        let syncing =
            std::thread::Builder::new().name("sync".to_owned()).spawn_scoped(scope, || temporary.sync());
        let damage = check::damage(temporary.path(), Depth::Pages);
        (damage, syncing.ok().and_then(|syncing| syncing.join().ok()))
    });
    match damage {
        Ok(None) => {}
        Ok(Some(damage)) => {
            return Err(failed(format!(
                "the copy of `{}` failed its check, so the database itself is most likely damaged ({})",
                database.display(),
                crate::render::one_line(&damage, 300)
            )));
        }
        Err(error) => return Err(sqlite_failed(real, &error)),
    }
    // Without a thread of its own it is done now.
    let bytes = synced.unwrap_or_else(|| temporary.sync())?;
    let path = temporary.publish(|counter| Name::new(now, counter, request.kind).file_name(label))?;
    folder::sync(folder)?;
    let mut warnings = Vec::new();
    let removed = folder::rotate(&path, label, request.kind, request.keep, spare, &mut warnings);
    folder::sweep(folder, label);
    Ok(SnapshotDone { path, bytes, method, removed, warnings })
}

/// The fastest safe way.
fn copy(database: &Path, temporary: &Temporary, busy_timeout: Duration) -> Result<CopyMethod, ToolError> {
    let source =
        open::for_copying(database, busy_timeout).map_err(|error| sqlite_failed(database, &error))?;
    let locked = lock_with_empty_wal(&source, database, busy_timeout)
        .map_err(|error| sqlite_failed(database, &error))?;
    if locked {
        copy_file(&source, database, temporary)?;
        source.execute_batch("ROLLBACK").map_err(|error| sqlite_failed(database, &error))?;
        return Ok(CopyMethod::File);
    }
    check_room(&source, database, temporary)?;
    back_up(&source, temporary.path(), busy_timeout).map_err(|error| sqlite_failed(database, &error))?;
    Ok(CopyMethod::Backup)
}

/// Whether all pages of the source can be written: SQLite's backup API writes holes, too.
fn check_room(source: &Connection, database: &Path, temporary: &Temporary) -> Result<(), ToolError> {
    let length = length(source).map_err(|error| sqlite_failed(database, &error))?;
    if length > MOSTLY_HOLES_FROM {
        let wal = std::fs::metadata(with_ending(database.as_os_str(), "-wal")).map_or(0, |found| found.len());
        let held = with_file(database, |file| platform::data_within(file, length))?;
        let held = held.iter().map(|part| part.end - part.start).sum::<u64>().saturating_add(wal);
        if held < length / MOSTLY_HOLES {
            return Err(failed(format!(
                "`{}` is {length} bytes long, and {held} of them are all that is in it, so it is most likely damaged; have its integrity checked, and recover it with `sqlite3 .recover`",
                database.display()
            )));
        }
    }
    temporary.check_room(length)
}

/// The length of the database that a connection sees: what a file has behind that belongs to no page.
fn length(source: &Connection) -> rusqlite::Result<u64> {
    let number = |pragma: &str| source.query_row(pragma, [], |row| row.get::<_, i64>(0));
    let bytes = number("PRAGMA main.page_count")?.saturating_mul(number("PRAGMA main.page_size")?);
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Takes the write lock at a moment when the file alone is the whole database. False: not to be had in
/// time; nothing is locked then.
fn lock_with_empty_wal(
    source: &Connection,
    database: &Path,
    busy_timeout: Duration,
) -> rusqlite::Result<bool> {
    let mode: String = source.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    let wal = with_ending(database.as_os_str(), "-wal");
    for _ in 0..TRIES {
        if mode == "wal" {
            source.busy_timeout(CHECKPOINT_WAIT.min(busy_timeout))?;
            let checkpoint =
                source.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
            source.busy_timeout(busy_timeout)?;
            match checkpoint {
                Ok(0) => {}
                Ok(_) => return Ok(false),
                Err(error) if diagnose::is_busy(&error) || is_read_only(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        match source.execute_batch("BEGIN IMMEDIATE") {
            Ok(()) => {}
            Err(error) if diagnose::is_busy(&error) || is_read_only(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        // Looking at the size opens no descriptor.
        if mode != "wal" || std::fs::metadata(&wal).map_or(0, |found| found.len()) == 0 {
            return Ok(true);
        }
        source.execute_batch("ROLLBACK")?;
    }
    Ok(false)
}

fn copy_file(source: &Connection, database: &Path, temporary: &Temporary) -> Result<(), ToolError> {
    let length = length(source).map_err(|error| sqlite_failed(database, &error))?;
    with_file(database, |file| {
        let there = file.metadata()?.len();
        Ok(temporary.fill_from(file, length.min(there)))
    })?
}

/// Does something with the database's file. It stays open until the process ends: closing it would drop the locks of
/// the connection; see the head of this file.
fn with_file<T>(database: &Path, run: impl FnOnce(&File) -> std::io::Result<T>) -> Result<T, ToolError> {
    let file = File::open(database).map_err(|error| io_failed(database, &error))?;
    let done = run(&file);
    std::mem::forget(file);
    done.map_err(|error| io_failed(database, &error))
}

/// The backup API, within one read transaction: a writer does not make it start again, and in WAL it is
/// not held up by it.
fn back_up(source: &Connection, target: &Path, busy_timeout: Duration) -> rusqlite::Result<()> {
    source.execute_batch("BEGIN")?;
    source.query_row("SELECT count(*) FROM main.sqlite_schema", [], |_| Ok(()))?;
    let mut target = open::for_backup_target(target)?;
    let backup = Backup::new(source, &mut target)?;
    let mut deadline = Instant::now() + busy_timeout;
    loop {
        match backup.step(STEP_PAGES)? {
            StepResult::Done => break,
            StepResult::More => deadline = Instant::now() + busy_timeout,
            _ if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
            _ => {
                let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
                return Err(rusqlite::Error::SqliteFailure(busy, None));
            }
        }
    }
    drop(backup);
    source.execute_batch("ROLLBACK")
}

fn is_read_only(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::ReadOnly)
}

fn failed(why: impl std::fmt::Display) -> ToolError {
    ToolError::new(ErrorCode::SnapshotFailed, why.to_string())
}

fn io_failed(path: &Path, error: &std::io::Error) -> ToolError {
    failed(format!("`{}`: {error}{}", path.display(), diagnose::io_hint(error)))
}

fn sqlite_failed(path: &Path, error: &rusqlite::Error) -> ToolError {
    if diagnose::is_busy(error) {
        return failed(format!(
            "another process holds the lock of `{}`; try again in a moment",
            path.display()
        ));
    }
    let hint = match error.sqlite_error_code() {
        Some(
            SqliteCode::DiskFull
            | SqliteCode::SystemIoFailure
            | SqliteCode::CannotOpen
            | SqliteCode::ReadOnly,
        ) => {
            "; see whether the disk or folder is full, read-only or over a quota, or set --snapshot-dir to another place"
        }
        _ => "",
    };
    failed(format!("`{}`: {error}{hint}", path.display()))
}
