//! The data folder: what stands where, and the lock that keeps a second server out.

use crate::error::{ErrorCode, StartError, ToolError};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// A data folder, of which a server has the lock while it lives.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Unlocked when it is closed; a command has none.
    _lock: Option<File>,
}

impl Folder {
    /// Takes the folder, made (for its owner alone) if it is missing.
    ///
    /// # Errors
    /// It cannot be used, or another server has it; exit status 1.
    pub fn lock(path: &Path) -> Result<Self, StartError> {
        let shown = path.display();
        let failed = |what: &str, error: std::io::Error| {
            StartError::failure(format!("cannot {what} the data folder `{shown}`: {error}"))
        };
        private_folder(path).map_err(|error| failed("make", error))?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join("lock"))
            .map_err(|error| failed("use", error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_path_buf(), _lock: Some(lock) }),
            Err(TryLockError::WouldBlock) => Err(StartError::failure(format!(
                "another server has the data folder `{shown}`: stop it first"
            ))),
            Err(TryLockError::Error(error)) => Err(failed("lock", error)),
        }
    }

    /// Takes a folder that is there, whoever has its lock: SQLite lets processes write one file in turn.
    ///
    /// # Errors
    /// There is no data folder; exit status 1.
    pub fn beside(path: &Path) -> Result<Self, StartError> {
        let folder = Self { path: path.to_path_buf(), _lock: None };
        if folder.catalog().is_file() {
            return Ok(folder);
        }
        Err(StartError::failure(format!(
            "`{}` is no data folder; `indelible groups create` makes one with its first group",
            path.display()
        )))
    }

    /// The file of the key of the vaults.
    #[must_use]
    pub fn vault_key(&self) -> PathBuf {
        self.path.join("vault.key")
    }

    /// The catalog's file.
    #[must_use]
    pub fn catalog(&self) -> PathBuf {
        catalog(&self.path)
    }

    /// The folder of all groups.
    #[must_use]
    pub fn groups(&self) -> PathBuf {
        self.path.join("groups")
    }

    /// Where the group's large contents stand; made with the first of them.
    #[must_use]
    pub fn blobs(&self, group: &str) -> PathBuf {
        self.path.join("groups").join(group).join("blobs")
    }

    /// The folder of a primitive, made if it is missing. Both ids are the server's own.
    ///
    /// # Errors
    /// `SQL_ERROR`: it cannot be made.
    pub fn primitive(&self, group: &str, id: &str) -> Result<PathBuf, ToolError> {
        let path = self.path.join("groups").join(group).join(id);
        private_folder(&path).map_err(|error| {
            ToolError::new(
                ErrorCode::SqlError,
                format!(
                    "cannot make the folder of the primitive: {error}; a person must look at the data folder"
                ),
            )
        })?;
        Ok(path)
    }

    /// Begins the folder of a primitive that is not in the catalog yet. It appears with the mark in it or not at all, so
    /// that whatever kills this process leaves nothing that could be anything; [`finish`] takes the mark away.
    pub(super) fn begin(&self, group: &str, id: &str) -> std::io::Result<PathBuf> {
        let folder = self.groups().join(group).join(id);
        let hidden = hidden(&folder);
        private_folder(&hidden)?;
        File::create(hidden.join(UNFINISHED))?;
        std::fs::rename(hidden, &folder)?;
        Ok(folder)
    }
}

/// In the folder of a primitive that is not in the catalog yet.
const UNFINISHED: &str = "unfinished";

/// Whether the folder was begun and not finished.
pub(super) fn is_unfinished(folder: &Path) -> bool {
    folder.join(UNFINISHED).exists()
}

/// The primitive is in the catalog. What cannot be removed now is with the next sweep.
pub(super) fn finish(folder: &Path) {
    let _ = std::fs::remove_file(folder.join(UNFINISHED));
}

/// Removes a primitive's folder. Under another name first: cut off anywhere, what is left still says that it is nothing.
pub(super) fn discard(folder: &Path) {
    let hidden = hidden(folder);
    if std::fs::rename(folder, &hidden).is_ok() {
        let _ = std::fs::remove_dir_all(hidden);
    }
}

/// Whether a folder of this name is one in the making or on its way out. Ids begin otherwise.
pub(super) fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

fn hidden(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!(".{name}"))
}

/// The catalog's file in a data folder.
pub(super) fn catalog(data: &Path) -> PathBuf {
    data.join("catalog.db")
}

/// Makes a folder and those above it, for their owner alone.
pub(super) fn private_folder(path: &Path) -> std::io::Result<()> {
    crate::platform::folders(0o700).recursive(true).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_folder_appears_with_its_mark_and_goes_under_another_name() {
        let data = tempfile::tempdir().unwrap();
        let folder = Folder::lock(data.path()).unwrap();
        let group = folder.groups().join("g");
        private_folder(&group).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watched = scope.spawn(|| {
                let mut bare = 0;
                while !done.load(Ordering::Relaxed) {
                    for entry in std::fs::read_dir(&group).unwrap() {
                        let entry = entry.unwrap();
                        let seen = !is_hidden(&entry.file_name().to_string_lossy());
                        bare += usize::from(seen && !is_unfinished(&entry.path()) && entry.path().exists());
                    }
                }
                bare
            });
            let made: Vec<PathBuf> =
                (0..500).map(|number| folder.begin("g", &number.to_string()).unwrap()).collect();
            made.iter().for_each(|folder| discard(folder));
            done.store(true, Ordering::Relaxed);
            assert_eq!(watched.join().unwrap(), 0, "folders without their mark");
        });
        assert_eq!(std::fs::read_dir(&group).unwrap().count(), 0);
        let kept = folder.begin("g", "kept").unwrap();
        finish(&kept);
        assert!(kept.exists() && !is_unfinished(&kept));
    }
}
