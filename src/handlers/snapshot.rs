//! snapshot, and the automatic snapshots before destructive calls.
//!
//! The copy is made by a process of its own (`sqlite/copy`): closing any descriptor of a database file
//! drops that process's SQLite locks on it (<https://sqlite.org/howtocorrupt.html>).

use super::{Call, Reply, required_reason};
use crate::error::{ErrorCode, ToolError};
use crate::sqlite::copy::{SnapshotDone, SnapshotKind, SnapshotRequest};

/// Snapshots kept when `--snapshots 0` turns off the automatic ones before destructive calls: those made by hand,
/// and those made before a restore.
pub(super) const KEPT_ANYWAY: u64 = 5;

/// Arguments of [`take`].
pub struct TakeInput {
    /// Why.
    pub reason: String,
}

/// Makes a snapshot.
///
/// # Errors
/// A blank reason; what keeps the snapshot from being made.
pub async fn take(call: &Call<'_>, input: TakeInput) -> Result<Reply, ToolError> {
    call.note("reason", input.reason.as_str());
    required_reason(&input.reason)?;
    let _turn = call.turn().await?;
    let done = call.snapshot(SnapshotKind::Manual).await?;
    let path = done.path.display().to_string();
    call.note("snapshot", path.as_str());
    let mut text = format!("ok: snapshot {path} ({} bytes)", done.bytes);
    if call.core.settings.snapshots == 0 {
        text.push_str("; automatic snapshots are disabled (--snapshots 0)");
    }
    Ok(Reply::text(text, None))
}

impl Call<'_> {
    /// Makes a snapshot while the caller has the turn.
    ///
    /// # Errors
    /// `SNAPSHOT_FAILED`, with the cause.
    pub async fn snapshot(&self, kind: SnapshotKind) -> Result<SnapshotDone, ToolError> {
        let settings = &self.core.settings;
        let kept = match (kind, settings.snapshots) {
            (SnapshotKind::Manual, 0) => KEPT_ANYWAY,
            (_, kept) => kept,
        };
        let request = SnapshotRequest {
            database: settings.db.clone(),
            folder: settings.snapshot_dir.clone(),
            kind,
            keep: usize::try_from(kept).unwrap_or(usize::MAX),
            busy_timeout: settings.busy_timeout,
        };
        let done = self.core.pool.snapshot(request, &self.cancel).await.map_err(|error| {
            if error.code == ErrorCode::Cancelled {
                return error;
            }
            ToolError::new(
                ErrorCode::SnapshotFailed,
                format!("no snapshot could be made, so nothing was run: {}", error.message),
            )
        })?;
        for warning in &done.warnings {
            tracing::warn!("{warning}");
        }
        Ok(done)
    }
}
