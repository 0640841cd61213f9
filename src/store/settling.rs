//! Commits of audit rows alone are not synced one by one; here the WAL is, soon after them, so that a power cut takes
//! no more than the last moments.
//!
//! It opens no database. Opening and closing a -wal drops no lock of SQLite's: those are on the database and its -shm
//! (<https://sqlite.org/walformat.html>, "WAL locks").

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// How long a commit may stay unsynced.
const SETTLE: Duration = Duration::from_millis(100);

/// What is to be synced.
#[derive(Debug)]
pub(super) struct Settling {
    wal: Option<PathBuf>,
    due: AtomicBool,
    wake: Notify,
}

impl Settling {
    /// `wal` is the file of `Ledger::unsynced`; without one there is nothing to do.
    pub(super) fn new(wal: Option<&Path>) -> Self {
        Self { wal: wal.map(Path::to_path_buf), due: AtomicBool::new(false), wake: Notify::new() }
    }

    /// Something was committed and not synced.
    pub(super) fn is_due(&self) {
        if self.wal.is_some() {
            self.due.store(true, Ordering::Release);
            self.wake.notify_one();
        }
    }

    /// Syncs what is due.
    pub(super) fn sync(&self) {
        let Some(wal) = self.wal.as_ref().filter(|_| self.due.swap(false, Ordering::AcqRel)) else { return };
        // What is not there any more was taken into the database, which is synced.
        match File::open(wal).and_then(|file| file.sync_data()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                self.due.store(true, Ordering::Release);
                tracing::warn!(
                    "log rows are written but not synced, `{}`: {error}; a power cut could take them",
                    wal.display()
                );
            }
            _ => {}
        }
    }
}

/// The background task.
pub(super) async fn settle(settling: Arc<Settling>) {
    loop {
        settling.wake.notified().await;
        tokio::time::sleep(SETTLE).await;
        let syncing = Arc::clone(&settling);
        // A disk takes its time; nothing waits for it.
        let _ = tokio::task::spawn_blocking(move || syncing.sync()).await;
    }
}
