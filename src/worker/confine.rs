//! What each kind of worker needs to reach, and the moment it gives up the rest.
//!
//! It is called before the worker opens the database, while there is one thread and no connection.

use super::protocol::Setup;
use crate::error::ToolError;
use crate::sandbox::{self, COPIER_MEMORY, Confined, Reach, WORKER_MEMORY};
use crate::sqlite::copy::{CopyRequest, SnapshotRequest};
use crate::sqlite::restore::{Listing, RestoreRequest};
use crate::sqlite::{header, open};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where SQLite puts temporary files on this system; the server names its private folder there and nothing else.
#[cfg(windows)]
pub(super) const TEMP_VARIABLES: &[&str] = &["TMP", "TEMP"];
/// Where SQLite puts temporary files on this system; the server names its private folder there and nothing else.
#[cfg(not(windows))]
pub(super) const TEMP_VARIABLES: &[&str] = &["SQLITE_TMPDIR"];

/// How long making `-wal` and `-shm` waits for a lock.
const COMPANIONS_WAIT: Duration = Duration::from_millis(100);

/// A worker for jobs, and what it was confined to.
pub(super) fn for_jobs(setup: &Setup) -> (Confined, Ward) {
    let real = real(&setup.path);
    let only_reads = !setup.writes && !setup.immutable;
    let rollback = only_reads && !header::read(&real).ok().flatten().is_some_and(|header| header.wal);
    let reach = if setup.writes { writes(&real) } else { reads(&real, setup.immutable) };
    (sandbox::confine(&reach), Ward { rollback: rollback.then_some(real) })
}

/// What a worker was confined to, as far as it may not be enough later.
pub(super) struct Ward {
    /// The database of a reader, when it was not in WAL mode.
    rollback: Option<PathBuf>,
}

impl Ward {
    /// Whether another program has switched the database to WAL mode since. A reader would have to write the -shm now
    /// and may not; a new one may. Ask only while no transaction is open and the process can do without its locks.
    pub(super) fn is_outgrown(&self) -> bool {
        let is_wal = |real: &PathBuf| header::read(real).ok().flatten().is_some_and(|header| header.wal);
        self.rollback.as_ref().is_some_and(is_wal)
    }
}

/// The process that makes a snapshot. It makes the folder first: under the sandbox that is no longer possible.
///
/// # Errors
/// The folder cannot be made; nothing is given up then.
pub(super) fn for_snapshot(request: &SnapshotRequest) -> Result<Confined, ToolError> {
    crate::sqlite::copy::make_folder(&request.folder)?;
    Ok(sandbox::confine(&copies(&request.database, &request.folder)))
}

/// The process that restores a snapshot, and makes one of the present state first.
///
/// # Errors
/// As [`for_snapshot`].
pub(super) fn for_restore(request: &RestoreRequest) -> Result<Confined, ToolError> {
    crate::sqlite::copy::make_folder(&request.folder)?;
    Ok(sandbox::confine(&copies(&request.database, &request.folder)))
}

/// The process that makes one copy.
pub(super) fn for_copy(request: &CopyRequest) -> Confined {
    let folder = |path: &Path| path.parent().unwrap_or(Path::new("/")).to_path_buf();
    sandbox::confine(&copies(&request.from, &folder(&request.to)))
}

/// The process that looks at snapshots.
pub(super) fn for_listing(listing: &Listing) -> Confined {
    let mut reach = reads(&real(&listing.database), false);
    reach.read.push(listing.folder.clone());
    sandbox::confine(&reach)
}

/// A file in WAL mode and what lies beside it are all there is: nothing is made or removed while the server, or the
/// worker itself, has it open.
fn writes(real: &Path) -> Reach {
    let mut reach = temporary(WORKER_MEMORY);
    make_companions(real);
    match in_wal_mode(real) {
        Some(companions) => {
            reach.read.push(beside(real, "-journal"));
            reach.write.push(real.to_path_buf());
            reach.write.extend(companions);
        }
        // A rollback journal comes and goes with each change.
        None => reach.folders.extend(real.parent().map(Path::to_path_buf)),
    }
    reach
}

/// What only reads writes the -shm, through which readers and writers of a WAL agree, and nothing else.
fn reads(real: &Path, immutable: bool) -> Reach {
    let mut reach = temporary(WORKER_MEMORY);
    if immutable {
        reach.read.push(real.to_path_buf());
        return reach;
    }
    make_companions(real);
    match in_wal_mode(real) {
        Some([wal, shm]) => {
            reach.read.extend([beside(real, "-journal"), wal, real.to_path_buf()]);
            reach.write.push(shm);
        }
        // Somebody's journal may come up at any time and has to be looked at.
        None => reach.read.extend(real.parent().map(Path::to_path_buf)),
    }
    reach
}

/// Makes the `-wal` and `-shm` of a file in WAL mode that lacks them, as SQLite would even for a reader.
fn make_companions(real: &Path) {
    if header::read(real).ok().flatten().is_some_and(|header| header.wal) && in_wal_mode(real).is_none() {
        let _ = open::make_companions(real, COMPANIONS_WAIT);
    }
}

fn copies(database: &Path, snapshots: &Path) -> Reach {
    let real = real(database);
    let mut reach = temporary(COPIER_MEMORY);
    reach.folders.extend(real.parent().map(Path::to_path_buf));
    reach.folders.push(snapshots.to_path_buf());
    reach
}

fn temporary(memory: u64) -> Reach {
    let folders = TEMP_VARIABLES.iter().filter_map(std::env::var_os).map(PathBuf::from).take(1).collect();
    Reach { folders, memory, ..Reach::default() }
}

/// `-wal` and `-shm`, if the file is in WAL mode and both are there.
fn in_wal_mode(real: &Path) -> Option<[PathBuf; 2]> {
    if !header::read(real).ok().flatten()?.wal {
        return None;
    }
    let companions = ["-wal", "-shm"].map(|ending| beside(real, ending));
    companions.iter().all(|path| path.is_file()).then_some(companions)
}

/// The file itself: SQLite follows links, and keeps the others beside it.
fn real(database: &Path) -> PathBuf {
    std::fs::canonicalize(database).unwrap_or_else(|_| database.to_path_buf())
}

fn beside(real: &Path, ending: &str) -> PathBuf {
    let mut name = real.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
