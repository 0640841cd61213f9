//! Whether a path still leads to the file that was opened there: a database that is deleted, moved or replaced while
//! it is served would else be written to where nobody sees it.
//!
//! It opens nothing: closing a descriptor of a database drops SQLite's locks on it. Between the look and the write
//! that follows, a moment remains.

use crate::error::{ErrorCode, ToolError};
use crate::platform;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A file by its device and inode; where files have none, only that it is there can be seen.
type Identity = Option<(u64, u64)>;

/// A database as it was opened. Clones share what was said about it.
#[derive(Clone, Debug)]
pub struct Opened {
    path: PathBuf,
    file: Identity,
    wal: Option<(PathBuf, Identity)>,
    said: Arc<AtomicBool>,
}

impl Opened {
    /// The file that a connection to `path` has just opened, with its -wal where one is given.
    ///
    /// # Errors
    /// There is no such file any more.
    pub fn of(path: &Path, wal: Option<&Path>) -> io::Result<Self> {
        let wal = wal.map(|wal| Ok::<_, io::Error>((wal.to_path_buf(), identity(wal)?))).transpose()?;
        Ok(Self { path: path.to_path_buf(), file: identity(path)?, wal, said: Arc::default() })
    }

    /// Looks whether the same files are there, in about a microsecond each, and says once on stderr if not.
    ///
    /// # Errors
    /// `FILE_GONE`, with what to do.
    pub fn check(&self) -> Result<(), ToolError> {
        let looked = self.look();
        match &looked {
            Ok(()) => self.said.store(false, Ordering::Relaxed),
            Err(gone) => {
                if !self.said.swap(true, Ordering::Relaxed) {
                    tracing::error!("{}", gone.message);
                }
            }
        }
        looked
    }

    /// The same without a word on stderr.
    ///
    /// # Errors
    /// `FILE_GONE`, with what to do.
    pub fn look(&self) -> Result<(), ToolError> {
        let shown = self.path.display();
        let gone = match identity(&self.path) {
            Ok(found) if found == self.file => match &self.wal {
                Some((wal, known)) if is_another(wal, *known) => self.lost_wal(),
                _ => return Ok(()),
            },
            Ok(_) => format!(
                "another file is at `{shown}` now: the database was replaced while it was served; start the server again to serve the new file, or move the old one back"
            ),
            Err(error) if is_absence(&error) => format!(
                "the database `{shown}` is gone: it was deleted or moved while it was served; move it back, or start the server again to make a new one"
            ),
            // A folder that cannot be searched any more does not make the open file another one.
            Err(_) => return Ok(()),
        };
        Err(ToolError::new(ErrorCode::FileGone, gone))
    }

    /// Whether it is certain that the same file is there; the -wal aside.
    #[must_use]
    pub(super) fn is_certainly_there(&self) -> bool {
        self.file.is_some() && identity(&self.path).is_ok_and(|found| found == self.file)
    }

    fn lost_wal(&self) -> String {
        format!(
            "the `-wal` of the database `{}` was deleted or replaced while it was served, and the newest changes are in it; end this server before any other program opens the database: it takes them in when it ends",
            self.path.display()
        )
    }
}

fn identity(path: &Path) -> io::Result<Identity> {
    std::fs::metadata(path).map(|found| platform::identity(&found))
}

fn is_another(path: &Path, known: Identity) -> bool {
    match identity(path) {
        Ok(found) => found != known,
        Err(error) => is_absence(&error),
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
