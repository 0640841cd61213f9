//! What somebody does who has the file and a SQLite of their own: no server, no guard.
//!
//! The demo shows with it that the chain notices. Nothing else may use it; it works on a copy and leaves the
//! database alone.

use crate::error::StartError;
use crate::sqlite::open;
use rusqlite::backup::Progress;
use rusqlite::{Connection, MAIN_DB, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// How long the copy waits for a lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Copies the database at `from`, what its WAL holds included, to the new file `to`.
///
/// # Errors
/// Exit status 1: either file cannot be used.
pub fn copy(from: &Path, to: &Path) -> Result<(), StartError> {
    let copied = open::for_copying(from, BUSY_TIMEOUT)
        .and_then(|source| source.backup(MAIN_DB, to, None::<fn(Progress)>));
    copied.map_err(|error| StartError::failure(format!("cannot copy `{}`: {error}", from.display())))
}

/// Runs statements on the database at `path`, unguarded.
///
/// # Errors
/// Exit status 1: SQLite's error.
pub fn run(path: &Path, statements: &[&str]) -> Result<(), StartError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let ran = Connection::open_with_flags(path, flags).and_then(|connection| {
        statements.iter().try_for_each(|statement| connection.execute_batch(statement))
    });
    ran.map_err(|error| StartError::failure(format!("cannot edit `{}`: {error}", path.display())))
}
