//! What became of a change whose process died before it could say so.
//!
//! The log knows: a change and its row are one transaction. The server's own connection asks, since only one that may
//! write can open a file that a dead process has left half written.

use super::Call;
use crate::error::{ErrorCode, ToolError};

/// What became of a change whose process died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Committed,
    Undone,
    Unknown,
}

impl Fate {
    /// The error that says so, `lost` if nothing was changed; `done` and `process` are words for what it is about.
    pub(super) fn error(self, process: &str, done: &str, lost: ToolError) -> ToolError {
        let words = match self {
            Self::Undone => return lost,
            Self::Committed => format!("{process} died after the commit: {done}, do not repeat it"),
            Self::Unknown => format!(
                "{process} died, and the log cannot be read now to see whether it had committed: look whether {done} before you repeat it"
            ),
        };
        ToolError::new(ErrorCode::WorkerLost, words)
    }
}

impl Call<'_> {
    /// What became of the change of a process that died: its audit row is in the database if it is.
    pub(super) async fn fate(&self) -> Fate {
        let Ok(store) = self.store() else { return Fate::Undone };
        match store.has_row_of(self.number).await {
            Ok(true) => Fate::Committed,
            Ok(false) => Fate::Undone,
            Err(error) => {
                tracing::warn!("whether call {} was committed is not known: {}", self.number, error.message);
                Fate::Unknown
            }
        }
    }
}
