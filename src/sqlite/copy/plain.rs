//! One checked, private, synced copy of a database under a name that the caller chose, or an error.
//!
//! Like every copy it runs in a process of its own. It rotates nothing, and knows no reason for the copy.

use super::check::{self, Depth};
use super::folder::{self, Temporary};
use super::{copy, failed, io_failed, sqlite_failed};
use crate::error::ToolError;
use crate::sqlite::open;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is to be copied where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRequest {
    /// The database file.
    #[serde(with = "crate::os_path")]
    pub from: PathBuf,
    /// The copy, in a folder that is there; nothing may stand under this name.
    #[serde(with = "crate::os_path")]
    pub to: PathBuf,
    /// How long to wait for another process's lock.
    pub busy_timeout: Duration,
    /// Whether the copy's digest is wanted.
    pub digest: bool,
    /// The digest that the file must have, which nobody writes: a copy that was made before.
    pub expected: Option<String>,
}

/// A copy that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its bytes, lower-case hex; empty where it was not wanted.
    pub sha256: String,
    /// Its `PRAGMA user_version`.
    pub stamp: i32,
}

/// Makes the copy. Nothing stands under its name before it is copied, checked and synced.
///
/// # Errors
/// `SNAPSHOT_FAILED`, naming the file and the cause. Nothing is left behind.
pub fn plain(request: &CopyRequest) -> Result<Copied, ToolError> {
    let CopyRequest { from, to, .. } = request;
    let (Some(folder), Some(name)) = (to.parent(), to.file_name()) else {
        return Err(failed(format!("`{}` names no file", to.display())));
    };
    if let Some(expected) = &request.expected {
        let found = digest(from).map_err(|error| io_failed(from, &error))?;
        if found != *expected {
            return Err(failed(format!(
                "`{}` is not what was written: its SHA-256 is {found}, not {expected}; take another one",
                from.display()
            )));
        }
    }
    let temporary = Temporary::create(folder, name)?;
    copy(from, &temporary, request.busy_timeout)?;
    match check::damage(temporary.path(), Depth::Pages) {
        Ok(None) => {}
        Ok(Some(damage)) => {
            return Err(failed(format!(
                "the copy of `{}` failed its check, so the database itself is most likely damaged ({})",
                from.display(),
                crate::render::one_line(&damage, 300)
            )));
        }
        Err(error) => return Err(sqlite_failed(from, &error)),
    }
    let stamp = stamp(temporary.path()).map_err(|error| sqlite_failed(from, &error))?;
    let sha256 = match request.digest {
        true => digest(temporary.path()).map_err(|error| io_failed(temporary.path(), &error))?,
        false => String::new(),
    };
    let bytes = temporary.sync()?;
    temporary.publish_as(to)?;
    folder::sync(folder)?;
    Ok(Copied { bytes, sha256, stamp })
}

fn stamp(copy: &Path) -> rusqlite::Result<i32> {
    open::for_checking(copy)?.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// SHA-256 of a file's bytes, lower-case hex.
fn digest(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hasher.update(buffer.get(..count).unwrap_or_default());
    }
    Ok(crate::render::hex(&hasher.finalize()))
}
