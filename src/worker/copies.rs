//! The server's side of snapshots: made, restored and listed, each in a process of its own.
//!
//! It keeps the time and passes cancellation on, and does not know how a file is copied. One process, one
//! order: there is nothing to keep for the next.

use super::child::receive;
use super::clock::COMMIT_GRACE;
use super::pool::{JobError, Pool, Yard};
use super::protocol::{FromWorker, Order};
use crate::error::{ErrorCode, ToolError};
use crate::platform;
use crate::sqlite::copy::{Copied, CopyRequest, SnapshotDone, SnapshotRequest};
use crate::sqlite::diagnose::io_hint;
use crate::sqlite::restore::{Listing, RestoreRequest, Restored, SnapshotEntry};
use crate::sqlite::watch::Stop;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a process may take that copies the file, apart from the bytes that it copies and checks, and how
/// many of them it must manage in a second.
const COPY_GRACE: Duration = Duration::from_secs(60);
const COPIED_A_SECOND: u64 = 2 << 20;

/// How long the list of snapshots may take; each is looked at, none is read whole.
const LIST_GRACE: Duration = Duration::from_secs(120);

impl Pool {
    /// Makes a snapshot, in a process of its own. The caller holds the turn-lock.
    ///
    /// # Errors
    /// Why there is none; `CANCELLED` when nobody wants it any more.
    pub async fn snapshot(
        &self,
        request: SnapshotRequest,
        cancel: &CancellationToken,
    ) -> Result<SnapshotDone, ToolError> {
        let failed = |words: String| ToolError::new(ErrorCode::SnapshotFailed, words);
        let mut worker = self
            .nursery
            .spawn()
            .map_err(|error| failed(format!("a worker cannot be started: {error}{}", io_hint(&error))))?;
        let order = Order::Snapshot(request);
        let made = worker.order(&order);
        // Dropping the worker kills it; what it leaves has a temporary name and is swept later.
        let message = tokio::select! {
            message = made => message,
            () = tokio::time::sleep(self.copy_time()) => {
                return Err(failed(format!(
                    "the process that copies the file was not done within {} s and was killed",
                    self.copy_time().as_secs()
                )));
            }
            () = cancel.cancelled() => return Err(ToolError::new(ErrorCode::Cancelled, "the call was cancelled")),
            () = self.closing.cancelled() => return Err(ToolError::new(ErrorCode::Cancelled, "the server ended")),
        };
        match message {
            Ok(Some(FromWorker::Snapshot(done))) => done,
            Ok(_) => Err(failed("the process that copies the file died".to_owned())),
            Err(error) => Err(failed(format!("the process that copies the file died: {error}"))),
        }
    }

    /// Restores a snapshot, in a process of its own. The caller holds the turn-lock.
    ///
    /// # Errors
    /// Why nothing was restored; a kill or a lost process, after which the caller must find out.
    pub async fn restore(
        &self,
        request: RestoreRequest,
        cancel: &CancellationToken,
    ) -> Result<Restored, JobError> {
        let lost = |words: String| JobError::Lost(format!("the process that restores {words}"));
        let mut worker = self
            .nursery
            .spawn()
            .map_err(|error| lost(format!("cannot be started: {error}{}", io_hint(&error))))?;
        let order = Order::Restore(Box::new(request));
        let first = tokio::select! {
            biased;
            message = worker.order(&order) => Ok(message),
            () = cancel.cancelled() => Err(Stop::Cancelled),
            () = self.closing.cancelled() => Err(Stop::Cancelled),
            // It checks and copies the snapshot besides.
            () = tokio::time::sleep(2 * self.copy_time()) => Err(Stop::Deadline),
        };
        let mut message = match first {
            Ok(message) => message,
            Err(stop) => {
                // Whoever asks next whether something was committed must not be too early.
                let _ = worker.child.kill().await;
                return Err(JobError::Killed(stop));
            }
        };
        if matches!(message, Ok(Some(FromWorker::Committing { .. }))) {
            let done = receive(&mut worker.output, &mut worker.inbox);
            message = match tokio::time::timeout(COMMIT_GRACE + self.copy_time(), done).await {
                Ok(message) => message,
                Err(_) => {
                    let _ = worker.child.kill().await;
                    return Err(JobError::Killed(Stop::Deadline));
                }
            };
        }
        match message {
            Ok(Some(FromWorker::Restored(done))) => done.map(|restored| *restored).map_err(JobError::Fault),
            Ok(_) => Err(lost("died".to_owned())),
            Err(error) => Err(lost(format!("died: {error}"))),
        }
    }

    /// Lists the snapshots, in a process of its own: their files may have been edited by anyone.
    ///
    /// # Errors
    /// Why there is no list.
    pub async fn snapshots(
        &self,
        listing: Listing,
        cancel: &CancellationToken,
    ) -> Result<Vec<SnapshotEntry>, JobError> {
        let lost = |words: String| JobError::Lost(format!("the process that looks at snapshots {words}"));
        let mut worker = self
            .nursery
            .spawn()
            .map_err(|error| lost(format!("cannot be started: {error}{}", io_hint(&error))))?;
        let order = Order::Snapshots(listing);
        let message = tokio::select! {
            message = worker.order(&order) => message,
            () = tokio::time::sleep(LIST_GRACE) => return Err(JobError::Killed(Stop::Deadline)),
            () = cancel.cancelled() => return Err(JobError::Killed(Stop::Cancelled)),
            () = self.closing.cancelled() => return Err(JobError::Killed(Stop::Cancelled)),
        };
        match message {
            Ok(Some(FromWorker::Snapshots(found))) => found.map_err(|error| JobError::Fault(error.into())),
            Ok(_) => Err(lost("died".to_owned())),
            Err(error) => Err(lost(format!("died: {error}"))),
        }
    }

    fn copy_time(&self) -> Duration {
        copy_time(&self.path, self.busy_timeout)
    }
}

impl Yard {
    /// Makes a copy, in a process of its own. Whoever writes the file must be paused, or wait.
    ///
    /// # Errors
    /// Why there is none; nothing stands under its name then.
    pub async fn copy(&self, request: CopyRequest) -> Result<Copied, ToolError> {
        let failed = |words: String| ToolError::new(ErrorCode::SnapshotFailed, words);
        let mut worker =
            self.nursery.spawn().map_err(|error| failed(format!("a worker cannot be started: {error}")))?;
        let time = copy_time(&request.from, request.busy_timeout);
        let order = Order::Copy(request);
        match tokio::time::timeout(time, worker.order(&order)).await {
            Ok(Ok(Some(FromWorker::Copied(done)))) => done,
            Ok(Ok(_)) => Err(failed("the process that copies the file died; try again".to_owned())),
            Ok(Err(error)) => {
                Err(failed(format!("the process that copies the file died: {error}; try again")))
            }
            Err(_) => Err(failed(format!(
                "the process that copies the file was not done within {} s and was killed",
                time.as_secs()
            ))),
        }
    }
}

/// How long a process may take that copies the database and checks the copy.
fn copy_time(path: &Path, busy_timeout: Duration) -> Duration {
    // Not the length: a damaged file may be a billion times as long as what is in it.
    let size =
        |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len().min(platform::stored(&file)));
    let mut wal = path.to_path_buf().into_os_string();
    wal.push("-wal");
    let bytes = size(path).saturating_add(size(Path::new(&wal)));
    COPY_GRACE + busy_timeout + Duration::from_secs(bytes / COPIED_A_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn the_larger_the_file_the_longer_a_copy_may_take() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        let time = |path: &PathBuf| Pool::new(path.clone(), Duration::from_secs(5), false).copy_time();
        assert_eq!(time(&path), Duration::from_secs(65));
        std::fs::write(&path, vec![1; 6 << 20]).unwrap();
        std::fs::write(folder.path().join("m.db-wal"), vec![1; 4 << 20]).unwrap();
        assert_eq!(time(&path), Duration::from_secs(70));
        // A hole is not copied, and so gives no time.
        std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(time(&path), Duration::from_secs(70));
    }
}
