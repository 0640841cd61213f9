//! Puts an edited text in a file's place: a backup first, then a new file renamed over the old one.
//!
//! It does not know what is in the files.

use crate::error::StartError;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placed {
    /// Everything was there already.
    Unchanged,
    /// There was no such file.
    Created,
    /// The former text is in this file.
    Changed {
        /// The backup.
        backup: PathBuf,
    },
}

/// Edits the file at `path`, or makes it with its folders. A link is followed; the file's permissions stay.
///
/// # Errors
/// The edit's reason, or that of the file system; exit status 1, and the file is as it was.
pub fn place(path: &Path, edit: impl FnOnce(&str) -> Result<String, String>) -> Result<Placed, StartError> {
    let failed = |why: &dyn std::fmt::Display| {
        StartError::failure(format!("cannot change `{}`: {why}", path.display()))
    };
    // Renaming over a link would cut it off from the file it stands for.
    let real = match std::fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound && path.symlink_metadata().is_err() => {
            path.to_owned()
        }
        Err(error) => return Err(failed(&error)),
    };
    let before = match std::fs::read(&real) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(failed(&error)),
    };
    let text = std::str::from_utf8(before.as_deref().unwrap_or_default()).map_err(|error| failed(&error))?;
    let edited = edit(text).map_err(|why| failed(&format!("{why}; nothing was changed")))?;
    if before.is_some() && edited == text {
        return Ok(Placed::Unchanged);
    }
    write(&real, &edited, before.as_deref()).map_err(|error| failed(&error))
}

fn write(path: &Path, text: &str, before: Option<&[u8]>) -> std::io::Result<Placed> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder)?;
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", uuid::Uuid::new_v4().simple()));
    let temporary = Temporary(folder.join(name));
    let mut file =
        crate::platform::private(OpenOptions::new().write(true).create_new(true)).open(&temporary.0)?;
    file.write_all(text.as_bytes())?;
    let placed = match before {
        None => Placed::Created,
        Some(before) => {
            file.set_permissions(std::fs::metadata(path)?.permissions())?;
            let backup = back_up(path, before)?;
            // The client may have written it while we looked.
            if std::fs::read(path)? != before {
                return Err(std::io::Error::other("somebody else is changing it; try again"));
            }
            Placed::Changed { backup }
        }
    };
    file.sync_all()?;
    std::fs::rename(&temporary.0, path)?;
    if let Ok(folder) = File::open(folder) {
        // Some file systems have no such thing as syncing a folder.
        let _ = folder.sync_all();
    }
    Ok(placed)
}

/// Copies the file to the first free name of `NAME.bak`, `NAME.bak-2`, ...; an older backup with the same text
/// will do.
fn back_up(path: &Path, before: &[u8]) -> std::io::Result<PathBuf> {
    for counter in 1..1000 {
        let mut name = path.as_os_str().to_owned();
        name.push(if counter == 1 { ".bak".to_owned() } else { format!(".bak-{counter}") });
        let backup = PathBuf::from(name);
        match std::fs::read(&backup) {
            Ok(there) if there == before => return Ok(backup),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                std::fs::copy(path, &backup)?;
                return Ok(backup);
            }
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other("there are too many backups beside it"))
}

/// Removed when dropped; after the rename there is nothing under this name.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
