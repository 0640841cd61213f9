//! Snapshots brought back: the user's part of the database as it was, the server's tables as they are.
//!
//! It runs no statement of an agent's. Run it in a process that has no other connection to the file, as
//! snapshots are (see [`mod@crate::sqlite::copy`]).
//!
//! # How
//!
//! Rows are not copied one by one, since much cannot be: hidden rowids, shadow tables, collations and modules
//! that this program does not have, values that a later constraint would refuse. Pages are:
//!
//! 1. The snapshot is copied to a private file and checked there; what happens to the snapshot meanwhile does
//!    not matter.
//! 2. The database's write lock is taken and kept to the end. Under it the snapshot of what is there now is made,
//!    so that nothing is committed between the two.
//! 3. In the private file the server's tables are replaced by those of the database, row by row, and the event
//!    and the log row of the restore are added. Everything else in the file stays as it is, byte by byte.
//! 4. SQLite's backup API writes the private file over the database, as one transaction on it
//!    (<https://sqlite.org/backup.html>): through the WAL or the rollback journal, so that other connections see
//!    the old or the new state, and so does everybody after a crash.

mod choose;
mod kinship;
mod list;
mod merge;
mod narrowed;

pub use list::{Listing, Shown, SnapshotEntry, Standing, TableCount, list, show, verify};

use crate::audit::AuditRow;
use crate::error::{ErrorCode, ToolError};
use crate::policy::Narrowing;
use crate::sqlite::copy::{Place, SnapshotDone, SnapshotKind, SnapshotRequest, snapshot_through};
use crate::sqlite::fault::{self, Fault};
use crate::sqlite::ledger::{Appended, Batch};
use crate::sqlite::{diagnose, open};
use choose::Chosen;
use merge::{Parts, Phase, Private};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The kind of the event that a restore appends.
pub const EVENT_KIND: &str = "restore";
const UNDONE: &str = "nothing was restored";
/// How long the checkpoint afterwards waits for readers. It only gives space back.
const CHECKPOINT_WAIT: Duration = Duration::from_millis(100);

/// What is to be restored where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreRequest {
    /// The database file.
    #[serde(with = "crate::os_path")]
    pub database: PathBuf,
    /// The folder of its snapshots.
    #[serde(with = "crate::os_path")]
    pub folder: PathBuf,
    /// The snapshot: its name in the folder, or its whole path.
    pub name: String,
    /// Why, for the event.
    pub reason: String,
    /// How many automatic snapshots to keep, the new one among them.
    pub keep: usize,
    /// How long to wait for another process's lock.
    pub busy_timeout: Duration,
    /// The policy file that the restore is bound by; the empty one where a person asks.
    pub narrowing: Narrowing,
    /// The call's log row, but for the time it takes and what [`Restored`] adds to its detail.
    pub audit: AuditRow,
}

/// A snapshot that was restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// The name of the snapshot.
    pub name: String,
    /// The event that says so.
    pub event: i64,
    /// That event's hash.
    pub hash: String,
    /// The snapshot of what was there before: restoring it undoes this.
    #[serde(with = "crate::os_path")]
    pub undo: PathBuf,
    /// The log row as it was written.
    pub audit: AuditRow,
    /// What did not go well and does not matter.
    pub warnings: Vec<String>,
}

/// Restores a snapshot. `before_commit` is told when from here on nothing should be cut short.
///
/// # Errors
/// There is no such snapshot (`INVALID_ARGUMENTS`); it is damaged (`CORRUPT`) or of another database
/// (`REFUSED`), or what the policy file keeps differs in it (`REFUSED`); the snapshot of what is there could not be made (`SNAPSHOT_FAILED`); the lock was not to be had
/// (`BUSY`); SQLite's. The database is as it was then, but for a fault at the commit itself, of which nobody knows yet.
pub fn restore(
    request: &RestoreRequest,
    now: jiff::Timestamp,
    before_commit: &mut dyn FnMut(),
) -> Result<Restored, Fault> {
    let began = Instant::now();
    let place = Place::of(&request.database, &request.folder)
        .map_err(|words| ToolError::new(ErrorCode::SqlError, format!("{UNDONE}: {words}")))?;
    let chosen = choose::choose(&place, &request.name)?;
    let copy = choose::private_copy(&place, &chosen, now)?;
    let source = Private::open(copy.path()).map_err(|error| chosen.unusable(&error))?;
    let mut target =
        open::for_restoring(&place.real, request.busy_timeout).map_err(|error| failed(&error))?;
    let work = Work { request, place: &place, chosen: &chosen, now, began };
    let restored = if journal_mode(&target)? == "wal" {
        work.beside_readers(&source, &mut target, before_commit)?
    } else {
        work.alone(&source, &mut target, before_commit)?
    };
    // The WAL now holds the whole database. Whoever is in the way of emptying it is welcome to.
    let _ = target
        .busy_timeout(CHECKPOINT_WAIT)
        .and_then(|()| target.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
    Ok(restored)
}

struct Work<'a> {
    request: &'a RestoreRequest,
    place: &'a Place,
    chosen: &'a Chosen,
    now: jiff::Timestamp,
    began: Instant,
}

impl Work<'_> {
    /// In WAL: the backup takes the write lock before its first page, and what it locks can be read beside it.
    fn beside_readers(
        &self,
        source: &Private,
        target: &mut Connection,
        before_commit: &mut dyn FnMut(),
    ) -> Result<Restored, Fault> {
        let backup = Backup::new(source.connection(), target).map_err(|error| failed(&error))?;
        begin(&backup)?;
        let live =
            open::beside(&self.place.real, self.request.busy_timeout).map_err(|error| failed(&error))?;
        let restored = self.prepare(&live, source)?;
        drop(live);
        before_commit();
        finish(&backup)?;
        Ok(restored)
    }

    /// Elsewhere nobody can read beside the lock, not even we: the connection itself reads, and keeps the lock
    /// from one transaction to the next (<https://sqlite.org/pragma.html#pragma_locking_mode>). That mode begins
    /// with the lock in hand: in it, a connection that waits for a lock keeps what it has, and so would a writer
    /// that waits for it.
    fn alone(
        &self,
        source: &Private,
        target: &mut Connection,
        before_commit: &mut dyn FnMut(),
    ) -> Result<Restored, Fault> {
        target
            .execute_batch("BEGIN EXCLUSIVE; PRAGMA locking_mode=EXCLUSIVE; COMMIT")
            .map_err(|error| failed(&error))?;
        if journal_mode(target)? == "wal" {
            return Err(Fault::error(
                ErrorCode::Busy,
                format!("{UNDONE}: another process has just switched the database to WAL; try again"),
            ));
        }
        let restored = self.prepare(target, source)?;
        before_commit();
        let backup = Backup::new(source.connection(), target).map_err(|error| failed(&error))?;
        finish(&backup)?;
        drop(backup);
        // With the lock kept, the journal was emptied and not removed, as another write would.
        let _ = target.execute_batch("PRAGMA locking_mode=NORMAL").and_then(|()| {
            let version: i64 = target.query_row("PRAGMA main.user_version", [], |row| row.get(0))?;
            target.pragma_update(None, "user_version", version)
        });
        Ok(restored)
    }

    /// Everything but the writing, with the lock held: refusals, the snapshot of what is there, the private file
    /// made ready.
    fn prepare(&self, live: &Connection, source: &Private) -> Result<Restored, ToolError> {
        self.same_format(live, source.connection())?;
        let parts = Parts::of(live, source.connection(), self.chosen)?;
        if let Some(stranger) =
            kinship::stranger(source.connection(), live).map_err(|error| failed(&error))?
        {
            return Err(self.chosen.of_another_database(&stranger));
        }
        narrowed::check(&self.request.narrowing, live, source.connection(), self.chosen)?;
        let undo = self.snapshot(live)?;
        let (appended, audit) = self.merge(live, source, &parts, &undo.path.display().to_string())?;
        Ok(Restored {
            name: self.chosen.name.clone(),
            event: appended.id,
            hash: appended.hash,
            undo: undo.path,
            audit,
            warnings: undo.warnings,
        })
    }

    /// What a copy of pages cannot bridge; a snapshot of this database differs in neither, unless somebody made the
    /// file anew.
    fn same_format(&self, live: &Connection, source: &Connection) -> Result<(), ToolError> {
        let pragmas: &[&str] =
            if journal_mode(live)? == "wal" { &["encoding", "page_size"] } else { &["encoding"] };
        for pragma in pragmas {
            let value = |connection: &Connection| {
                connection.query_row(&format!("PRAGMA main.{pragma}"), [], |row| {
                    Ok(format!("{:?}", row.get_ref(0)?))
                })
            };
            let (there, here) = (
                value(source).map_err(|error| self.chosen.unusable(&error))?,
                value(live).map_err(|error| failed(&error))?,
            );
            if there != here {
                return Err(ToolError::new(
                    ErrorCode::Refused,
                    format!(
                        "{UNDONE}: the snapshot `{}` has another {pragma} than the database; a person can restore it by hand",
                        self.chosen.name
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Of what is there now.
    fn snapshot(&self, live: &Connection) -> Result<SnapshotDone, ToolError> {
        let request = SnapshotRequest {
            database: self.request.database.clone(),
            folder: self.request.folder.clone(),
            kind: SnapshotKind::Auto,
            keep: self.request.keep,
            busy_timeout: self.request.busy_timeout,
        };
        snapshot_through(live, self.place, &request, &self.chosen.file, self.now)
            .map_err(|error| undone(&error))
    }

    fn merge(
        &self,
        live: &Connection,
        source: &Private,
        parts: &Parts,
        undo: &str,
    ) -> Result<(Appended, AuditRow), ToolError> {
        let unusable = |error: rusqlite::Error| self.chosen.unusable(&error);
        source.connection().execute_batch("BEGIN IMMEDIATE").map_err(unusable)?;
        parts.bring(live, source).map_err(|error| failed(&error))?;
        let content = format!(
            "snapshot {} restored; reason: {}; what was there before: {undo}",
            self.chosen.name,
            self.request.reason.trim()
        );
        let mut audit = self.request.audit.clone();
        audit.duration_ms += i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX);
        let mut written = AuditRow::default();
        let made = |appended: &Appended| {
            audit.detail = Some(detail(audit.detail.as_deref(), &self.chosen.name, undo, appended.id));
            written.clone_from(&audit);
            audit
        };
        let filling = source.enter(Phase::Filling);
        let appended = Batch::within(source.connection())
            .event(&self.request.audit.session, EVENT_KIND, &content, made)
            .map_err(|error| undone(&error.error))?;
        drop(filling);
        source.connection().execute_batch("COMMIT").map_err(unusable)?;
        Ok((appended, written))
    }
}

/// The first step of the backup: it takes the lock, with all it also commits.
fn begin(backup: &Backup<'_, '_>) -> Result<(), ToolError> {
    match backup.step(0).map_err(|error| failed(&error))? {
        StepResult::Done | StepResult::More => Ok(()),
        _ => Err(failed(&busy())),
    }
}

/// All the others, and the commit.
fn finish(backup: &Backup<'_, '_>) -> Result<(), Fault> {
    match backup.step(-1) {
        Ok(StepResult::Done) => Ok(()),
        Ok(_) => Err(failed(&busy()).into()),
        Err(error) if fault::is_of_the_disk(&error) => Err(Fault::InDoubt(failed(&error).message)),
        Err(error) => Err(failed(&error).into()),
    }
}

fn busy() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None)
}

/// The call's detail with what the restore came to.
fn detail(given: Option<&str>, restored: &str, undo: &str, event: i64) -> String {
    let given = given.and_then(|text| serde_json::from_str(text).ok());
    let mut detail: Map<String, Value> = given.unwrap_or_default();
    detail.insert("restored".to_owned(), restored.into());
    detail.insert("snapshot".to_owned(), undo.into());
    detail.insert("event".to_owned(), event.into());
    Value::Object(detail).to_string()
}

fn journal_mode(connection: &Connection) -> Result<String, ToolError> {
    connection.query_row("PRAGMA main.journal_mode", [], |row| row.get(0)).map_err(|error| failed(&error))
}

fn undone(error: &ToolError) -> ToolError {
    ToolError::new(error.code, format!("{UNDONE}: {}", error.message))
}

fn failed(error: &rusqlite::Error) -> ToolError {
    diagnose::tool_error(UNDONE, error)
}
