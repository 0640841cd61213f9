//! Large contents as files named by their hash: `blobs/aa/bb/<sha256>` in the group's folder.
//!
//! A file is written under a temporary name, synced and renamed, so that a name stands for all of its bytes. None is
//! ever changed. A file that is put again is young again: `sweep` removes old ones that no index names.

use super::blocking;
use super::folder::private_folder;
use crate::error::{ErrorCode, ToolError};
use crate::state::Outcome;
use crate::state::blobs::Blobs;
use async_trait::async_trait;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

/// The blobs of a group.
#[derive(Clone, Debug)]
pub(super) struct FolderBlobs {
    folder: PathBuf,
    gate: Gate,
}

/// Shared by whoever puts contents, and alone for whoever removes one.
pub(super) type Gate = Arc<RwLock<()>>;

impl FolderBlobs {
    pub(super) fn new(folder: PathBuf, gate: Gate) -> Self {
        Self { folder, gate }
    }

    fn path(&self, hash: &str) -> PathBuf {
        let part = |range| hash.get(range).unwrap_or("00");
        self.folder.join(part(0..2)).join(part(2..4)).join(hash)
    }

    /// Keeps bytes, on this thread.
    pub(super) fn put_now(&self, hash: &str, bytes: &[u8]) -> Outcome<()> {
        let path = self.path(hash);
        let _in = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        if path.exists() {
            // What is about to be named again must not be taken for what nothing has named for long.
            let touch = || File::options().write(true).open(&path)?.set_modified(SystemTime::now());
            return touch().map_err(|error| failed("write", &error));
        }
        written(&path, bytes).map_err(|error| failed("write", &error))
    }

    /// Bytes, on this thread.
    pub(super) fn read_now(&self, hash: &str, offset: u64, most: usize) -> Outcome<Vec<u8>> {
        let read = || {
            let mut file = File::open(self.path(hash))?;
            file.seek(SeekFrom::Start(offset))?;
            let mut bytes = Vec::new();
            file.take(u64::try_from(most).unwrap_or(u64::MAX)).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map_err(|error: std::io::Error| failed("read", &error))
    }
}

#[async_trait]
impl Blobs for FolderBlobs {
    async fn put(&self, hash: String, bytes: Vec<u8>) -> Outcome<()> {
        let blobs = self.clone();
        blocking(move || blobs.put_now(&hash, &bytes)).await
    }

    async fn read(&self, hash: String, offset: u64, most: usize) -> Outcome<Vec<u8>> {
        let blobs = self.clone();
        blocking(move || blobs.read_now(&hash, offset, most)).await
    }
}

fn written(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    private_folder(folder)?;
    let temporary = folder.join(format!(".{}", uuid::Uuid::new_v4().simple()));
    let write = || {
        let mut file = File::options().create_new(true).write(true).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        // The name is on the disk when its folder is.
        File::open(folder)?.sync_all()
    };
    let result = write();
    if result.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    result
}

fn failed(what: &str, error: &std::io::Error) -> ToolError {
    ToolError::new(
        ErrorCode::SqlError,
        format!("cannot {what} a content: {error}; a person must look at the data folder"),
    )
}
