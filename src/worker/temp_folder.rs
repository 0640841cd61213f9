//! The folder for the temporary files of a server's workers: private, and gone when the server is.
//!
//! It makes no file in it but the lock that shows that its server lives.

use crate::platform;
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What its name begins with.
const PREFIX: &str = "indelible-workers-";
/// Locked by the server as long as it lives; the system unlocks it when it is killed.
const LOCK: &str = "server";
/// A folder without a lock that is older than this was left by a server that was killed while it made it.
const LEFTOVER_AGE: Duration = Duration::from_secs(3600);

/// The folder. Dropping it removes it, and what killed servers of the same user have left beside it.
#[derive(Debug)]
pub struct TempFolder {
    path: PathBuf,
    _lock: File,
}

impl TempFolder {
    /// Makes it where SQLite would put temporary files (<https://sqlite.org/tempfiles.html#temporary_file_storage_locations>),
    /// in the first of those folders that can be written.
    ///
    /// # Errors
    /// None of them can be: the last one's error.
    pub fn create() -> io::Result<Self> {
        let mut why = io::Error::from(io::ErrorKind::NotFound);
        for base in bases() {
            match Self::create_in(&base) {
                Ok(made) => return Ok(made),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// Makes it in this folder.
    ///
    /// # Errors
    /// The system's.
    pub fn create_in(base: &Path) -> io::Result<Self> {
        let base = std::path::absolute(base)?;
        let path = base.join(format!("{PREFIX}{}", uuid::Uuid::new_v4().simple()));
        platform::folders(0o700).create(&path)?;
        let lock = File::create_new(path.join(LOCK))?;
        lock.lock()?;
        // Another server that has just ended may have taken it for a leftover before it was locked.
        if !path.join(LOCK).exists() {
            return Self::create_in(&base);
        }
        Ok(Self { path, _lock: lock })
    }

    /// Its absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // SQLite removes its files as soon as it has opened them, so there is nothing but the lock.
        let _ = std::fs::remove_dir_all(&self.path);
        if let Some(base) = self.path.parent() {
            sweep(base);
        }
    }
}

fn bases() -> impl Iterator<Item = PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let named = ["SQLITE_TMPDIR", "TMPDIR"].into_iter().filter_map(set).map(PathBuf::from);
    // On disk rather than in memory, as SQLite has it.
    let usual = cfg!(unix).then(|| PathBuf::from("/var/tmp"));
    named.chain(usual).chain([std::env::temp_dir()])
}

/// Removes the folders of servers that are gone. Another user's cannot be opened, and stay.
fn sweep(base: &Path) {
    let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        // Not what a link leads to.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_left_over(&entry.path()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn is_left_over(folder: &Path) -> bool {
    match File::open(folder.join(LOCK)) {
        Ok(lock) => match lock.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let age = folder.metadata().and_then(|found| found.modified()).map(|then| then.elapsed());
            matches!(age, Ok(Ok(age)) if age > LEFTOVER_AGE)
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_private_and_gone_with_its_server_and_takes_those_of_killed_servers_along() {
        let base = tempfile::tempdir().unwrap();
        let stale = base.path().join(format!("{PREFIX}stale"));
        std::fs::create_dir(&stale).unwrap();
        std::fs::write(stale.join(LOCK), "").unwrap();
        std::fs::write(stale.join("etilqs_1"), "left behind").unwrap();
        let (young, other) = (base.path().join(format!("{PREFIX}young")), base.path().join("indelible"));
        std::fs::create_dir(&young).unwrap();
        std::fs::create_dir(&other).unwrap();
        let living = TempFolder::create_in(base.path()).unwrap();
        let folder = TempFolder::create_in(base.path()).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            assert_eq!(folder.path().metadata().unwrap().mode() & 0o777, 0o700);
        }
        let gone = folder.path().to_path_buf();
        drop(folder);
        assert!(!gone.exists() && !stale.exists());
        assert!(young.exists(), "it may be in the making");
        assert!(other.exists() && living.path().exists());
    }
}
