//! Files of the snapshot folder: the temporary one, its final name, rotation.
//!
//! It opens no database.

use super::names::{is_temporary, surplus, temporary, with_ending};
use super::{SnapshotKind, failed, io_failed};
use crate::error::ToolError;
use crate::platform::{self, rename_to_new, sync_names};
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the folder cannot be locked, leftovers of a killed copy are swept at this age: nobody can be writing them
/// any more.
const LEFTOVER_AGE: Duration = Duration::from_secs(3600);
/// What SQLite may put beside a database.
const COMPANIONS: [&str; 3] = ["-journal", "-wal", "-shm"];

/// Makes the folder, for its owner alone, if there is none.
pub(in crate::sqlite) fn make(folder: &Path) -> Result<(), ToolError> {
    if folder.is_dir() {
        return Ok(());
    }
    if folder.symlink_metadata().is_ok() {
        return Err(failed(format!(
            "`{}` is in the way of the snapshot folder; move it away, or set --snapshot-dir",
            folder.display()
        )));
    }
    create(folder, 0o700).map_err(|error| io_failed(folder, &error))
}

/// Makes a folder and those on the way to it, and makes their names last: what is synced in a folder is lost with
/// the folder's name.
pub(in crate::sqlite) fn create(folder: &Path, mode: u32) -> std::io::Result<()> {
    let absent = folder.ancestors().take_while(|ancestor| !ancestor.is_dir()).count();
    platform::folders(mode).recursive(true).create(folder)?;
    folder.ancestors().skip(1).take(absent).try_for_each(sync_names)
}

/// Makes the names in the folder last.
pub(in crate::sqlite) fn sync(folder: &Path) -> Result<(), ToolError> {
    sync_names(folder).map_err(|error| io_failed(folder, &error))
}

/// A file that is removed, with SQLite's companions, unless it is published.
///
/// While it lives, its folder is locked by flock(2), shared: whoever gets the lock for itself alone knows that
/// nobody is writing a temporary file there, however young the ones it finds are. The folder's lock has nothing
/// to do with SQLite's locks on files.
#[derive(Debug)]
pub(in crate::sqlite) struct Temporary {
    path: PathBuf,
    file: File,
    _in_use: Option<File>,
}

impl Temporary {
    /// Creates it, private from the start. `name` is the name it may get.
    pub(in crate::sqlite) fn create(folder: &Path, name: &OsStr) -> Result<Self, ToolError> {
        let in_use = platform::lockable(folder);
        if let Some(folder) = &in_use {
            // Not every file system has it; then age tells.
            let _ = folder.lock_shared();
        }
        let path = folder.join(temporary(name));
        let opened = platform::private(OpenOptions::new().write(true).create_new(true)).open(&path);
        let file = opened.map_err(|error| io_failed(&path, &error))?;
        Ok(Self { path, file, _in_use: in_use })
    }

    pub(in crate::sqlite) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether so much can be written to it at all: a copy that cannot be finished would fill the disk first.
    pub(in crate::sqlite) fn check_room(&self, bytes: u64) -> Result<(), ToolError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        match platform::room_in(folder) {
            Some(free) if bytes > free => Err(failed(format!(
                "the copy needs {bytes} bytes, and only {free} are free in `{}`; make room on the disk, or set --snapshot-dir to a folder on another",
                folder.display()
            ))),
            _ => Ok(()),
        }
    }

    pub(in crate::sqlite) fn file(&self) -> &File {
        &self.file
    }

    /// Copies the first `length` bytes of a file into it, and leaves out holes, which are there again in the copy. A damaged
    /// file may be a billion times as long as what is in it, and the kernel copies a hole as zeros.
    pub(in crate::sqlite) fn fill_from(&self, mut from: &File, length: u64) -> Result<(), ToolError> {
        let io_failed = |error: std::io::Error| io_failed(&self.path, &error);
        let parts = platform::data_within(from, length).map_err(io_failed)?;
        self.check_room(parts.iter().map(|part| part.end - part.start).sum())?;
        let mut to = &self.file;
        to.set_len(length).map_err(io_failed)?;
        for part in parts {
            let start = SeekFrom::Start(part.start);
            from.seek(start).and_then(|_| to.seek(start)).map_err(io_failed)?;
            // On Linux this is copy_file_range: the bytes do not pass through this process, and where the file system can
            // share blocks, none are copied (https://man7.org/linux/man-pages/man2/copy_file_range.2.html).
            std::io::copy(&mut from.take(part.end - part.start), &mut to).map_err(io_failed)?;
        }
        Ok(())
    }

    /// Makes the content last; its size.
    pub(in crate::sqlite) fn sync(&self) -> Result<u64, ToolError> {
        let synced = self.file.sync_all().and_then(|()| self.file.metadata());
        synced.map(|found| found.len()).map_err(|error| io_failed(&self.path, &error))
    }

    /// Gives it the first of its possible names that is free, never in another's place.
    pub(in crate::sqlite) fn publish(self, name: impl Fn(u32) -> OsString) -> Result<PathBuf, ToolError> {
        let folder = self.path.parent().unwrap_or(Path::new("/")).to_path_buf();
        for counter in (0..1).chain(2..10_000) {
            let target = folder.join(name(counter));
            match rename_to_new(&self.path, &target) {
                Ok(()) => return Ok(target),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io_failed(&target, &error)),
            }
        }
        Err(failed(format!("every name for it is taken in `{}`", folder.display())))
    }

    /// Gives it this name in its folder, never in another's place.
    pub(in crate::sqlite) fn publish_as(self, target: &Path) -> Result<(), ToolError> {
        rename_to_new(&self.path, target).map_err(|error| io_failed(target, &error))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After publishing there is nothing under this name, and companions there must not be.
        let _ = std::fs::remove_file(&self.path);
        remove_companions(&self.path);
    }
}

/// Removes the snapshots that are too many, but for `spare`.
pub(in crate::sqlite) fn rotate(
    written: &Path,
    database: &OsStr,
    kind: SnapshotKind,
    keep: usize,
    spare: Option<&OsStr>,
    warnings: &mut Vec<String>,
) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (written.parent(), written.file_name()) else { return Vec::new() };
    let mut removed = Vec::new();
    let surplus = surplus(database, kind, keep, name, regular_files(folder));
    for file in surplus.into_iter().filter(|file| Some(file.as_os_str()) != spare) {
        let path = folder.join(file);
        match std::fs::remove_file(&path) {
            Ok(()) => {
                remove_companions(&path);
                removed.push(path);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                warnings.push(format!("cannot remove the old snapshot `{}`: {error}", path.display()));
            }
        }
    }
    removed
}

/// Removes what copies that were killed have left.
pub(in crate::sqlite) fn sweep(folder: &Path, database: &OsStr) {
    sweep_where(folder, |file| is_temporary(database, file.as_encoded_bytes()));
}

/// Removes temporary files of which nobody is writing one just now, or which are old.
pub(in crate::sqlite) fn sweep_where(folder: &Path, is_temporary: impl Fn(&OsStr) -> bool) {
    let alone = platform::lockable(folder).filter(|folder| folder.try_lock().is_ok());
    for file in regular_files(folder).filter(|file| is_temporary(file)) {
        let path = folder.join(file);
        let age = path.metadata().and_then(|found| found.modified()).map(|then| then.elapsed());
        if alone.is_some() || matches!(age, Ok(Ok(age)) if age > LEFTOVER_AGE) {
            // Another server may have been faster.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Names of the regular files in a folder; none if it cannot be read.
pub(in crate::sqlite) fn regular_files(folder: &Path) -> impl Iterator<Item = OsString> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())).map(|entry| entry.file_name())
}

fn remove_companions(path: &Path) {
    for ending in COMPANIONS {
        let _ = std::fs::remove_file(with_ending(path.as_os_str(), ending));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_copy_that_there_is_no_room_for_is_not_begun() {
        let folder = tempfile::tempdir().unwrap();
        let temporary = Temporary::create(folder.path(), OsStr::new("m.db")).unwrap();
        if platform::room_in(folder.path()).is_none() {
            return;
        }
        let error = temporary.check_room(1 << 62).unwrap_err();
        assert_eq!(error.code, crate::error::ErrorCode::SnapshotFailed);
        let words = "the copy needs 4611686018427387904 bytes, and only ";
        assert!(error.message.starts_with(words) && error.message.contains("--snapshot-dir"), "{error:?}");
        assert!(temporary.check_room(1).is_ok());
    }
}
