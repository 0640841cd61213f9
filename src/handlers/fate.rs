//! What became of a change that ended before anybody could say so: its process died, or the disk failed at its commit.
//!
//! The log knows: a change and its row are one transaction. The server's own connection asks, since only one that may
//! write can open a file that a dead process has left half written.

use super::Call;
use crate::error::{ErrorCode, ToolError};
use crate::sqlite::fault::{COMMITTED_ALL_THE_SAME, Fault};
use crate::worker::pool::JobError;

/// What became of a change that ended so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Committed,
    Undone,
    Unknown,
}

/// What a change is called in the words about its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// The process that made it.
    pub(super) process: &'static str,
    /// That it stands.
    pub(super) done: &'static str,
}

/// Whether a change that ended with this error may stand.
pub(super) fn is_in_doubt(error: &JobError) -> bool {
    matches!(error, JobError::Killed(_) | JobError::Lost(_) | JobError::Fault(Fault::InDoubt(_)))
}

impl Call<'_> {
    /// What became of the change of a process that died: its audit row is in the database if it is.
    pub(super) async fn fate(&self) -> Fate {
        let Ok(store) = self.store() else { return Fate::Undone };
        match store.has_row_of(self.number()).await {
            Ok(true) => Fate::Committed,
            Ok(false) => Fate::Undone,
            Err(error) => {
                tracing::warn!(
                    "whether call {} was committed is not known: {}",
                    self.number(),
                    error.message
                );
                Fate::Unknown
            }
        }
    }

    /// The words for that, behind what ended the change.
    pub(super) fn fated(&self, fate: Fate, change: Change, ended: JobError) -> ToolError {
        let Change { process, done } = change;
        let by_disk = matches!(ended, JobError::Fault(_));
        let words = match (fate, by_disk) {
            (Fate::Undone, _) => return self.explain(ended),
            (Fate::Committed, false) => format!("{process} died after the commit: {done}, do not repeat it"),
            (Fate::Committed, true) => format!("{COMMITTED_ALL_THE_SAME}: {done}, do not repeat it"),
            (Fate::Unknown, false) => format!(
                "{process} died, and the log cannot be read now to see whether it had committed: look whether {done} before you repeat it"
            ),
            (Fate::Unknown, true) => format!(
                "the disk reports an error at the commit, and the log cannot be read now to see what became of it: look whether {done} before you repeat it"
            ),
        };
        let code = if by_disk { ErrorCode::SqlError } else { ErrorCode::WorkerLost };
        ToolError::new(code, words)
    }
}
