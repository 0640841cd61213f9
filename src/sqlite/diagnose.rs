//! Why a file cannot be served, as one line a person can act on.
//!
//! It looks at files and error codes only; it opens no connection and changes nothing.

use crate::error::{ErrorCode, StartError, ToolError};
use crate::platform;
use crate::sqlite::fault;
use rusqlite::ErrorCode as SqliteCode;
use std::io::Read;
use std::path::{Path, PathBuf};

/// `SQLITE_READONLY_ROLLBACK`: a hot journal must be rolled back and may not be
/// (<https://sqlite.org/rescode.html#readonly_rollback>).
pub(super) const READONLY_ROLLBACK: i32 = 776;
/// `SQLITE_READONLY_RECOVERY`: the same for a WAL (<https://sqlite.org/rescode.html#readonly_recovery>).
pub(super) const READONLY_RECOVERY: i32 = 264;
/// `SQLITE_READONLY_CANTINIT`: no -shm can be made (<https://sqlite.org/rescode.html#readonly_cantinit>).
pub(super) const READONLY_CANTINIT: i32 = 1288;
/// `SQLITE_READONLY_DIRECTORY`: no -wal can be made (<https://sqlite.org/rescode.html#readonly_directory>).
pub(super) const READONLY_DIRECTORY: i32 = 1544;

/// True if there is nothing at `path` yet, or an empty file (SQLite takes both for a new database).
///
/// # Errors
/// Something is there and it is no regular file, or it cannot be looked at.
pub fn regular_file_or_absent(path: &Path) -> Result<bool, StartError> {
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(StartError::failure(format!(
            "`{shown}` is a directory, not a database; give the path of a file in it"
        ))),
        Ok(found) if !found.is_file() => {
            Err(StartError::failure(format!("`{shown}` is not a regular file; give the path of a database")))
        }
        Ok(found) => Ok(found.len() == 0),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Err(StartError::failure(format!(
            "`{shown}` lies under something that is a file, not a folder; give another path"
        ))),
        Err(error) => Err(StartError::failure(format!("cannot look at the database `{shown}`: {error}"))),
    }
}

/// The file may be read and not written.
#[must_use]
pub fn read_only_file(path: &Path) -> StartError {
    StartError::failure(format!(
        "the database `{}` is read-only and the server keeps its log in it; make the file writable, or start with --read-only",
        path.display()
    ))
}

/// The folder must be writable too: SQLite puts its journal beside the file.
///
/// # Errors
/// It is not.
pub fn writable_folder(path: &Path) -> Result<(), StartError> {
    match unwritable_folder(path) {
        None => Ok(()),
        Some(folder) => Err(StartError::failure(format!(
            "the folder `{}` is read-only and SQLite must write its journal there; make it writable, or start with --read-only",
            folder.display()
        ))),
    }
}

/// Whatever belongs to the database is in its file: with `immutable=1` SQLite looks at no `-wal` and no
/// journal (<https://sqlite.org/uri.html#uriimmutable>), and would read old or torn pages.
///
/// # Errors
/// There is a WAL that is not empty, or a journal that is not finished.
pub fn nothing_pending(path: &Path) -> Result<(), StartError> {
    let beside = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let wal = std::fs::metadata(beside("-wal")).is_ok_and(|found| found.len() > 0);
    // A journal that is done with is empty, or its header is zeroed (https://sqlite.org/fileformat.html#the_rollback_journal).
    let mut first = [0_u8; 1];
    let journal = std::fs::File::open(beside("-journal"))
        .and_then(|mut journal| journal.read(&mut first))
        .is_ok_and(|read| read == 1 && first != [0]);
    let ending = match (wal, journal) {
        (false, false) => return Ok(()),
        (true, _) => "-wal",
        (false, true) => "-journal",
    };
    Err(StartError::failure(format!(
        "the database `{}` has changes in its `{ending}` that --immutable would not see; open and close it once with a program that may write to it, such as `sqlite3`, or leave --immutable out",
        path.display()
    )))
}

/// Whether SQLite gave up waiting for a lock.
#[must_use]
pub fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(SqliteCode::DatabaseBusy | SqliteCode::DatabaseLocked))
}

/// Whether the whole file is concerned and not the row at hand: a lock, the disk, damage.
#[must_use]
pub fn is_of_the_file(error: &rusqlite::Error) -> bool {
    is_busy(error)
        || matches!(
            error.sqlite_error_code(),
            Some(
                SqliteCode::DiskFull
                    | SqliteCode::SystemIoFailure
                    | SqliteCode::DatabaseCorrupt
                    | SqliteCode::NotADatabase
                    | SqliteCode::ReadOnly
                    | SqliteCode::CannotOpen
                    | SqliteCode::OutOfMemory
            )
        )
}

/// The start error for what SQLite said about the file at `path`. No connection to it may be open in
/// this process: the file is looked into, and closing it would drop that connection's locks.
#[must_use]
pub fn sqlite_error(path: &Path, error: &rusqlite::Error) -> StartError {
    let shown = path.display();
    let message = match error.sqlite_error_code() {
        Some(SqliteCode::NotADatabase) => not_a_database(path),
        Some(SqliteCode::DatabaseBusy | SqliteCode::DatabaseLocked) => {
            format!(
                "the database `{shown}` is locked by another process; close that program, or raise --busy-timeout"
            )
        }
        Some(SqliteCode::DatabaseCorrupt) => {
            format!(
                "the database `{shown}` is damaged ({error}); restore a snapshot, or recover it with `sqlite3 .recover`"
            )
        }
        Some(SqliteCode::ReadOnly)
            if matches!(extended_code(error), READONLY_ROLLBACK | READONLY_RECOVERY) =>
        {
            format!(
                "the database `{shown}` holds a transaction that was cut off and must be rolled back before it can be read; open it once with a program that may write to it, such as `sqlite3` or this one with --profile memory, then start again"
            )
        }
        Some(SqliteCode::ReadOnly)
            if matches!(extended_code(error), READONLY_CANTINIT | READONLY_DIRECTORY) =>
        {
            let folder = unwritable_folder(path).or_else(|| path.parent().map(Path::to_path_buf));
            wal_in_unwritable_folder(path, &folder.unwrap_or_default())
        }
        Some(SqliteCode::ReadOnly) => return read_only_file(path),
        Some(SqliteCode::PermissionDenied) => {
            format!("no permission to open the database `{shown}`; ask for read access to it")
        }
        Some(SqliteCode::CannotOpen) => match unwritable_folder(path) {
            _ if path.exists() && !readable(path) => {
                format!("cannot open the database `{shown}`: {}", os_reason(path))
            }
            Some(folder) if path.exists() => wal_in_unwritable_folder(path, &folder),
            Some(folder) => format!(
                "cannot create the database `{shown}`: the folder `{}` cannot be written",
                folder.display()
            ),
            None => format!("cannot open the database `{shown}`: {}", os_reason(path)),
        },
        Some(SqliteCode::DiskFull) => {
            format!("the disk of the database `{shown}` is full; free some space and start again")
        }
        Some(SqliteCode::SystemIoFailure) => format!(
            "cannot open the database `{shown}`: {error}; see whether a limit on the size of files (`ulimit -f`) or a quota is reached, and raise it, or whether the disk reports an error"
        ),
        _ => format!("cannot open the database `{shown}`: {error}"),
    };
    StartError { code: Some(fault::tool_error(error).code), ..StartError::failure(message) }
}

/// What to do about an error of the system's, behind its own words; empty where they say it all.
#[must_use]
pub fn io_hint(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind;
    match error.kind() {
        _ if platform::is_lack_of_descriptors(error) => {
            "; the system lets the server open no more files: raise `ulimit -n`, or end other programs"
        }
        _ if platform::is_lack_of_processes(error) => {
            "; the system gives the server no more processes or memory: raise `ulimit -u`, or end other programs"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "; make room on the disk, or set --snapshot-dir to a folder on another"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "; make it writable, or set --snapshot-dir to a folder that is"
        }
        _ => "",
    }
}

/// The tool error for what SQLite said while `doing` (`the event was not appended`).
#[must_use]
pub fn tool_error(doing: &str, error: &rusqlite::Error) -> ToolError {
    let (code, message) = match error.sqlite_error_code() {
        _ if is_refused(error) => (
            ErrorCode::Refused,
            format!(
                "{doing}: something was attached to the server's tables from outside (most likely a trigger) and would run here; a person must drop it"
            ),
        ),
        Some(SqliteCode::DatabaseBusy | SqliteCode::DatabaseLocked) => (
            ErrorCode::Busy,
            format!("{doing}: another process holds the database lock; try again in a moment"),
        ),
        Some(SqliteCode::DiskFull) => {
            (ErrorCode::SqlError, format!("{doing}: the disk is full; free some space and try again"))
        }
        Some(SqliteCode::SystemIoFailure) => (
            ErrorCode::SqlError,
            format!(
                "{doing}: {error}; the disk reports an error, a quota or a limit on the size of files is reached, or the folder cannot be written: a person must look at it"
            ),
        ),
        Some(SqliteCode::ReadOnly | SqliteCode::CannotOpen) => (
            ErrorCode::SqlError,
            format!(
                "{doing}: {error}; the file, its folder or its journal cannot be written or opened: see whether they are there and writable, whether the disk is full, and whether the server may open more files (`ulimit -n`)"
            ),
        ),
        Some(SqliteCode::DatabaseCorrupt | SqliteCode::NotADatabase) => {
            (ErrorCode::Corrupt, format!("{doing}: the database file is damaged ({error})"))
        }
        Some(SqliteCode::TooBig) => (ErrorCode::TooBig, format!("{doing}: {error}")),
        Some(SqliteCode::OutOfMemory) => (ErrorCode::TooBig, format!("{doing}: out of memory")),
        Some(SqliteCode::OperationInterrupted) => (ErrorCode::Cancelled, format!("{doing}: interrupted")),
        _ => (ErrorCode::SqlError, format!("{doing}: {error}")),
    };
    ToolError::new(code, message)
}

/// SQLite gives the code SQLITE_AUTH for most refusals of an authorizer, but plain SQLITE_ERROR for functions
/// and for what an untrusted schema may not call.
fn is_refused(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(SqliteCode::AuthorizationForStatementDenied)
        || ["not authorized to use", "unsafe use of"].iter().any(|words| error.to_string().contains(words))
}

/// SQLite's extended result code; 0 for an error that is not SQLite's.
pub(super) fn extended_code(error: &rusqlite::Error) -> i32 {
    error.sqlite_error().map_or(0, |inner| inner.extended_code)
}

fn unwritable_folder(path: &Path) -> Option<PathBuf> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = real.parent()?;
    (!platform::may_make_files(folder)).then(|| folder.to_path_buf())
}

fn wal_in_unwritable_folder(path: &Path, folder: &Path) -> String {
    format!(
        "cannot open the database `{}`: it is in WAL mode and its folder `{}` cannot be written, so that SQLite cannot make `-wal` and `-shm` beside it; make the folder writable, serve a copy, or, if nobody writes the file, serve it with --profile explorer --immutable",
        path.display(),
        folder.display()
    )
}

fn readable(path: &Path) -> bool {
    platform::may_read(path).is_ok()
}

fn os_reason(path: &Path) -> String {
    match platform::may_read(path) {
        Ok(()) => "SQLite could not open it or its -wal and -shm files".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// SQLite says "file is not a database" of a picture and of an encrypted database alike. Pages of
/// cipher text fill whole blocks and look like noise; anything else is some other kind of file.
fn not_a_database(path: &Path) -> String {
    let shown = path.display();
    let length = std::fs::metadata(path).map_or(0, |found| found.len());
    let mut head = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        // What cannot be read stays short and counts as "no database".
        let _ = file.take(1024).read_to_end(&mut head);
    }
    let distinct = head.iter().collect::<std::collections::BTreeSet<_>>().len();
    let noise = head.len() >= 512 && length.is_multiple_of(512) && distinct > head.len().min(512) / 3;
    if noise || head.starts_with(b"SQLite format 3\0") {
        format!(
            "`{shown}` is not a SQLite database that can be read: it looks encrypted; decrypt it to a plain database first"
        )
    } else {
        format!(
            "`{shown}` is not a SQLite database; give the path of one, or of a file that does not exist yet"
        )
    }
}
