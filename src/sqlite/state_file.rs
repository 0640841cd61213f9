//! Opens the files that primitives are kept in: the server's own, with fixed statements only.
//!
//! No agent's SQL comes near these connections; agent SQL over `db` primitives goes through workers, as in the
//! other profiles.

use crate::error::{ErrorCode, StartError, ToolError};
use crate::platform::{self, sync_names};
use crate::sqlite::{fault, open};
use rusqlite::{Connection, TransactionBehavior};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// How long to wait for another process that writes the same file, such as a command of a person.
const BUSY: Duration = Duration::from_secs(5);

/// What a kind of file holds: the statements that bring it from each version to the next.
///
/// The number of steps done is kept in `user_version` (<https://sqlite.org/pragma.html#pragma_user_version>).
pub type Steps = &'static [&'static str];

/// Opens a file to write, made for its owner alone if it is missing and brought to the last version. WAL, and commits are synced.
///
/// # Errors
/// `CORRUPT`, `BUSY` or `SQL_ERROR`; a file of a newer version of this program is refused.
pub fn writer(path: &Path, steps: Steps) -> Result<Connection, ToolError> {
    // SQLite gives `-wal` and `-shm` the rights of the file (https://sqlite.org/src/file/src/os_unix.c, findCreateFileMode).
    // What is there keeps its rights, and why no file can be made is said by who opens it.
    let _ = platform::private(File::options().write(true).create_new(true)).open(path);
    let mut connection = open::for_server(path, BUSY).map_err(|error| started(path, error))?;
    advance(&mut connection, steps, path)?;
    // Statements are few and fixed; all of them stay prepared.
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Makes an empty file for an agent's own tables, in WAL mode; whole or not at all.
///
/// # Errors
/// As [`writer`].
pub fn empty(path: &Path) -> Result<(), ToolError> {
    let temporary = path.with_extension("new");
    // Left by a server that was killed over it.
    let _ = std::fs::remove_file(&temporary);
    open::for_server(&temporary, BUSY).map(drop).map_err(|error| started(path, error))?;
    let named = std::fs::rename(&temporary, path).and_then(|()| sync_names(path.parent().unwrap_or(path)));
    named.map_err(|error| {
        let words =
            format!("cannot make `{}`: {error}; a person must look at the data folder", path.display());
        ToolError::new(ErrorCode::SqlError, words)
    })
}

/// Opens a file that [`writer`] has made, to read.
///
/// # Errors
/// As [`writer`].
pub fn reader(path: &Path) -> Result<Connection, ToolError> {
    let connection = open::for_reading(path, BUSY).map_err(|error| started(path, error))?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Opens a copy that nobody writes any more, to read; nothing is made beside it.
///
/// # Errors
/// As [`writer`].
pub fn frozen(path: &Path) -> Result<Connection, ToolError> {
    open::immutable(path).map_err(|e| error(&e))
}

/// SQLite's error over a file of the server's own, in words for an agent.
#[must_use]
pub fn error(error: &rusqlite::Error) -> ToolError {
    fault::tool_error(error)
}

fn advance(connection: &mut Connection, steps: Steps, path: &Path) -> Result<(), ToolError> {
    let version = |connection: &Connection| -> Result<usize, ToolError> {
        let version: i64 =
            connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(|e| error(&e))?;
        usize::try_from(version).map_err(|_| newer(path))
    };
    if version(connection)? == steps.len() {
        return Ok(());
    }
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|e| error(&e))?;
    // Another process may have been first.
    let done = version(&transaction)?;
    let left = steps.get(done..).ok_or_else(|| newer(path))?;
    for step in left {
        transaction.execute_batch(step).map_err(|e| error(&e))?;
    }
    transaction
        .pragma_update(None, "user_version", i64::try_from(steps.len()).unwrap_or(i64::MAX))
        .map_err(|e| error(&e))?;
    transaction.commit().map_err(|e| error(&e))
}

fn newer(path: &Path) -> ToolError {
    ToolError::new(
        ErrorCode::Corrupt,
        format!(
            "`{}` was made by a newer version of this program; a person should update it",
            path.display()
        ),
    )
}

/// What keeps the file from being opened. Most of that is no damage: descriptors, rights, a full disk, a lock.
fn started(path: &Path, error: StartError) -> ToolError {
    // Of the folder, not of the file: closing a descriptor of that drops the locks that others here have on it.
    let folder = path.parent().and_then(|folder| File::open(folder).err());
    if folder.is_some_and(|error| platform::is_lack_of_descriptors(&error)) {
        return ToolError::new(
            ErrorCode::Busy,
            "the system lets the server open no more files: try again, and tell a person, who can raise `ulimit -n`",
        );
    }
    ToolError::new(error.code.unwrap_or(ErrorCode::SqlError), error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_a_file_from_being_opened_has_its_own_code() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("damaged"), "no database at all").unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        let rows = [
            ("damaged", ErrorCode::Corrupt),
            ("folder", ErrorCode::SqlError),
            ("damaged/below", ErrorCode::SqlError),
        ];
        for (name, expected) in rows {
            assert_eq!(writer(&at(name), &[]).unwrap_err().code, expected, "{name}");
        }
        assert_eq!(reader(&at("absent")).unwrap_err().code, ErrorCode::SqlError);
    }
}
