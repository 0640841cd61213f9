//! Copies of files: snapshots of primitives, and what branches and forks begin with.
//!
//! Each is made by a process of its own, checked and synced, before the catalog names it. Whoever writes the file is
//! paused by the caller.

use super::catalog::SqlCatalog;
use super::crew::Crew;
use super::folder::private_folder;
use crate::error::{ErrorCode, ToolError};
use crate::sqlite::copy::{Copied, CopyRequest};
use crate::state::Outcome;
use crate::state::catalog::{Primitive, new_id};
use crate::state::clock::Clock;
use crate::state::snapshots::Snapshot;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard};

/// What makes copies.
pub(super) struct Keeper {
    pub(super) catalog: Arc<SqlCatalog>,
    pub(super) crew: Arc<Crew>,
    pub(super) clock: Arc<dyn Clock>,
    /// Snapshots of each kind that are kept for a primitive.
    keep: usize,
    /// Held between the making of a file and the row that names it, so that nobody takes the file for a leftover.
    moving: Mutex<()>,
}

impl Keeper {
    pub(super) fn new(
        catalog: Arc<SqlCatalog>,
        crew: Arc<Crew>,
        clock: Arc<dyn Clock>,
        keep: usize,
    ) -> Arc<Self> {
        Arc::new(Self { catalog, crew, clock, keep: keep.max(1), moving: Mutex::default() })
    }

    /// Taken after the writer of a file was paused, never before.
    pub(super) async fn moving(&self) -> MutexGuard<'_, ()> {
        self.moving.lock().await
    }

    /// Copies a file.
    pub(super) async fn copy(&self, from: &Path, to: &Path, digest: bool) -> Outcome<Copied> {
        self.copy_of(from, to, digest, None).await
    }

    /// Copies a file that must have this digest.
    pub(super) async fn copy_of(
        &self,
        from: &Path,
        to: &Path,
        digest: bool,
        expected: Option<String>,
    ) -> Outcome<Copied> {
        let busy_timeout = self.crew.busy_timeout();
        let request = CopyRequest { from: from.into(), to: to.into(), busy_timeout, digest, expected };
        self.crew.copy(request).await
    }

    /// Keeps a file of a primitive. The oldest beyond what is kept go.
    pub(super) async fn snapshot(
        &self,
        primitive: &Primitive,
        folder: &Path,
        file: &Path,
        label: Option<String>,
        automatic: bool,
    ) -> Outcome<Snapshot> {
        let snapshots = folder.join("snapshots");
        private_folder(&snapshots).map_err(|error| {
            let words = format!("the folder of the snapshots cannot be made: {error}; tell a person");
            ToolError::new(ErrorCode::SnapshotFailed, words)
        })?;
        let _moving = self.moving().await;
        let (id, created_at) = (new_id(), self.clock.now());
        let copied = self.copy(file, &path_of(folder, &id), true).await?;
        let made = Snapshot { id, label, automatic, bytes: copied.bytes, created_at };
        let removed =
            self.catalog.add_snapshot(&primitive.id, made.clone(), copied.sha256, self.keep).await?;
        removed.iter().for_each(|id| remove(&path_of(folder, id)));
        Ok(made)
    }
}

/// The file of a snapshot, in the folder of its primitive.
pub(super) fn path_of(folder: &Path, snapshot: &str) -> PathBuf {
    folder.join("snapshots").join(format!("{snapshot}.db"))
}

/// A name for a new file in a primitive's folder.
pub(super) fn new_file() -> String {
    format!("{}.db", new_id())
}

/// Removes a file that the catalog does not name any more, and what SQLite puts beside one. What cannot be removed now
/// is a leftover.
pub(super) fn remove(file: &Path) {
    for ending in ["", "-wal", "-shm", "-journal"] {
        let mut name = file.as_os_str().to_owned();
        name.push(ending);
        let _ = std::fs::remove_file(name);
    }
}
