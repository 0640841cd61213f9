//! Opens the server's own connections, and says in one line why a file cannot be served.
//!
//! It runs no agent SQL, makes no table (that is `bootstrap.rs`) and sets no guard. The connections
//! handed out are trusted with fixed SQL only; the floors above see them as `ledger::Ledger` and
//! `readout::Readout`.

use crate::error::StartError;
use crate::sqlite::copy::folder;
use crate::sqlite::diagnose;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, MAIN_DB, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest value the server's own connections read or write, in bytes: above any text the server
/// takes in (a request line is at most 64 MiB), below what would fill the memory.
pub const MAX_VALUE_BYTES: i32 = 96 << 20;

/// A commit is on the disk when it returns. In WAL this is FULL. In rollback mode FULL leaves the removal of the
/// journal to chance, and a journal that comes back after a power cut takes the commit back
/// (<https://sqlite.org/pragma.html#pragma_synchronous>).
pub(super) const POWER_SAFE: &str = "PRAGMA synchronous=EXTRA";

/// What remains of a WAL, or of a kept journal, that had to grow (a long reader, a large change) once it begins
/// anew; in bytes. Four times what SQLite lets it grow to without need.
pub(super) const BOUNDED_JOURNAL: &str = "PRAGMA journal_size_limit=16777216";

/// The absolute form of the path a person gave.
///
/// SQLite is never handed the text itself: the bundled build reads a name that begins with `file:` as
/// a URI whatever the flags, and `:memory:` as no file at all. An absolute path is neither.
///
/// # Errors
/// An empty path, or a working directory that cannot be read: exit status 1.
pub fn absolute_path(given: &Path) -> Result<PathBuf, StartError> {
    std::path::absolute(given).map_err(|error| {
        StartError::failure(format!("cannot resolve the database path `{}`: {error}", given.display()))
    })
}

/// Opens `path` to read and write for the server itself, creating the file and its folders if absent.
///
/// A new file gets WAL, an existing one keeps its journal mode. Commits are synced ([`POWER_SAFE`]),
/// so that what was acknowledged outlives a power cut.
///
/// # Errors
/// Exit status 1 and one line for each thing that keeps the file from being served; an existing file
/// is left as it was.
pub fn for_server(path: &Path, busy_timeout: Duration) -> Result<Connection, StartError> {
    let path = absolute_path(path)?;
    let is_new = diagnose::regular_file_or_absent(&path)?;
    if is_new && let Some(folder) = path.parent() {
        folder::create(folder, 0o777).map_err(|error| {
            StartError::failure(format!("cannot create the folder `{}`: {error}", folder.display()))
        })?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = open(&path, flags, busy_timeout)?;
    if connection.is_readonly(MAIN_DB).unwrap_or(true) {
        return Err(diagnose::read_only_file(&path));
    }
    diagnose::writable_folder(&path)?;
    if is_new {
        switch_to_wal(&connection, &path, busy_timeout)?;
    }
    connection
        .execute_batch("PRAGMA foreign_keys=ON")
        .and_then(|()| connection.execute_batch(POWER_SAFE))
        .and_then(|()| connection.execute_batch(BOUNDED_JOURNAL))
        .map_err(|error| diagnose::sqlite_error(&path, &error))?;
    Ok(connection)
}

/// Opens `path` for the server's own reading (`SQLITE_OPEN_READONLY`, `query_only`): nothing is
/// created in it and nothing written to it.
///
/// # Errors
/// As [`for_server`]; also exit status 1 for a file that does not exist.
pub fn for_reading(path: &Path, busy_timeout: Duration) -> Result<Connection, StartError> {
    let path = absolute_path(path)?;
    if diagnose::regular_file_or_absent(&path)? && !path.exists() {
        return Err(absent(&path));
    }
    let connection = open(&path, OpenFlags::SQLITE_OPEN_READ_ONLY, busy_timeout)?;
    connection
        .execute_batch("PRAGMA query_only=ON")
        .map_err(|error| diagnose::sqlite_error(&path, &error))?;
    Ok(connection)
}

/// Opens `path`, which must exist, as the source of a snapshot: to write where that is possible, since a
/// checkpoint and the write lock need it.
///
/// # Errors
/// SQLite's.
pub(super) fn for_copying(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy_timeout)?;
    harden(&connection)?;
    Ok(connection)
}

/// Opens an empty file of our own to take a backup. No journal: half a copy is thrown away, a whole one
/// is synced by its maker.
///
/// # Errors
/// SQLite's.
pub(super) fn for_backup_target(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.execute_batch("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF")?;
    Ok(connection)
}

/// Opens the database that a snapshot is restored into. What is committed is on the disk.
///
/// # Errors
/// SQLite's; also that the file cannot be written.
pub(super) fn for_restoring(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let connection = for_copying(path, busy_timeout)?;
    if connection.is_readonly(MAIN_DB)? {
        let read_only = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY);
        return Err(rusqlite::Error::SqliteFailure(read_only, None));
    }
    connection.execute_batch(POWER_SAFE)?;
    Ok(connection)
}

/// Has SQLite make the -wal and the -shm that reading a file in WAL mode needs, as any reader does that finds none.
///
/// # Errors
/// SQLite's.
pub fn make_companions(path: &Path, busy_timeout: Duration) -> rusqlite::Result<()> {
    beside(path, busy_timeout)?.query_row("PRAGMA main.schema_version", [], |_| Ok(()))
}

/// Opens the same database beside, to read only.
///
/// # Errors
/// SQLite's.
pub(super) fn beside(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy_timeout)?;
    harden(&connection)?;
    connection.execute_batch("PRAGMA query_only=ON")?;
    Ok(connection)
}

/// Opens a private copy of a snapshot to put the server's tables into it. No journal and no foreign keys:
/// a copy that fails is thrown away, and rows of somebody else's that point at our tables are not looked at.
///
/// # Errors
/// SQLite's.
pub(super) fn for_merging(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // Before hardening: the defensive mode refuses to turn the journal off.
    connection
        .execute_batch("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF")?;
    harden(&connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false)?;
    Ok(connection)
}

/// Opens a finished copy of our own to check it. `immutable`: it takes no locks, and a copy whose header
/// says WAL gets no -wal and -shm beside it.
///
/// # Errors
/// SQLite's.
pub(super) fn for_checking(path: &Path) -> rusqlite::Result<Connection> {
    let connection = immutable(path)?;
    harden(&connection)?;
    connection.execute_batch("PRAGMA query_only=ON; PRAGMA ignore_check_constraints=ON")?;
    Ok(connection)
}

/// Opens a file, which must exist, to look it over: as any reader, and without moving what stands in the -wal
/// into the file at the end, which the last connection would else do.
///
/// # Errors
/// SQLite's.
pub(super) fn for_checkup(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy_timeout)?;
    harden(&connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.execute_batch("PRAGMA query_only=ON")?;
    Ok(connection)
}

/// The same for a file that is in WAL mode and has no -wal: it is read without locks, and gets neither -wal nor
/// -shm.
///
/// # Errors
/// SQLite's.
pub(super) fn for_checkup_alone(path: &Path) -> rusqlite::Result<Connection> {
    let connection = immutable(path)?;
    harden(&connection)?;
    connection.execute_batch("PRAGMA query_only=ON")?;
    Ok(connection)
}

/// Opens a file that nobody writes: without locks, and without making -wal and -shm for it
/// (<https://sqlite.org/uri.html#uriimmutable>).
///
/// # Errors
/// SQLite's.
pub(super) fn immutable(path: &Path) -> rusqlite::Result<Connection> {
    let mut uri = String::from("file:");
    for byte in crate::platform::uri_path(path) {
        match byte {
            b'/' | b'-' | b'_' | b'.' => uri.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(uri, flags)
}

/// Looks whether a file can be served to readers, and lets go of it.
///
/// # Errors
/// As [`for_reading`].
pub fn check(path: &Path, busy_timeout: Duration, immutable_file: bool) -> Result<(), StartError> {
    if !immutable_file {
        return for_reading(path, busy_timeout).map(|_| ());
    }
    let path = absolute_path(path)?;
    if diagnose::regular_file_or_absent(&path)? && !path.exists() {
        return Err(absent(&path));
    }
    diagnose::nothing_pending(&path)?;
    immutable(&path)
        .and_then(|connection| connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())))
        .map_err(|error| diagnose::sqlite_error(&path, &error))
}

fn absent(path: &Path) -> StartError {
    StartError::failure(format!(
        "the database `{}` does not exist, and nothing that only reads makes one; give the path of a file that is there",
        path.display()
    ))
}

/// What every connection of the server's own has: no trust in the schema, no writing around SQL's
/// rules, no double-quoted strings, no extensions (rusqlite leaves them off), page cells checked.
///
/// # Errors
/// SQLite's.
pub fn harden(connection: &Connection) -> rusqlite::Result<()> {
    for (option, on) in [
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true),
    ] {
        connection.set_db_config(option, on)?;
    }
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.execute_batch("PRAGMA cell_size_check=ON")
}

/// Waits for other processes' locks for up to `wait`, looking every few milliseconds. SQLite's own handler
/// sleeps for up to 100 ms between two looks, which starves a reader beside a busy writer.
///
/// # Errors
/// rusqlite's, for a connection it does not own.
pub(super) fn wait_for_locks(connection: &mut Connection, wait: Duration) -> rusqlite::Result<()> {
    let mut since = Instant::now();
    connection.busy_handler(Some(move |tries: i32| {
        if tries == 0 {
            since = Instant::now();
        }
        if since.elapsed() >= wait {
            return false;
        }
        std::thread::sleep(Duration::from_millis(if tries < 20 { 1 } else { 5 }));
        true
    }))
}

/// Opens, hardens, and reads the schema once, so that whatever is wrong shows here.
fn open(path: &Path, flags: OpenFlags, busy_timeout: Duration) -> Result<Connection, StartError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags).and_then(|mut connection| {
        wait_for_locks(&mut connection, busy_timeout)?;
        harden(&connection)?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    });
    // The connection is closed by now: looking into the file below cannot drop a lock of ours.
    opened.map_err(|error| diagnose::sqlite_error(path, &error))
}

/// WAL for a new file. SQLite does not wait for a lock here, so that two servers starting on one new
/// file would trip over each other; we wait.
fn switch_to_wal(connection: &Connection, path: &Path, busy_timeout: Duration) -> Result<(), StartError> {
    let deadline = Instant::now() + busy_timeout;
    loop {
        match connection.query_row("PRAGMA journal_mode=WAL", [], |row| row.get::<_, String>(0)) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                tracing::warn!(
                    "`{}` stays in journal mode `{mode}`: its file system does not support WAL",
                    path.display()
                );
                return Ok(());
            }
            Err(error) if diagnose::is_busy(&error) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => return Err(diagnose::sqlite_error(path, &error)),
        }
    }
}
