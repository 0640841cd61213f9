//! What travels between the protocol and the tools: a call's surroundings and its outcome.
//!
//! Plain types without a protocol library in them. They do not run anything and do not say how an
//! outcome looks on the wire; `server/` does.

use crate::confirm::{Confirmer, Question};
use crate::error::ErrorCode;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Reports progress: how much is done, of how much (if known), and what is going on.
///
/// May be called from any thread, as often as one likes; reports that find no room are dropped. The
/// first number must grow from report to report (MCP asks for that).
pub type ProgressReporter = Arc<dyn Fn(f64, Option<f64>, String) + Send + Sync>;

/// What surrounds one call.
#[derive(Clone, Default)]
pub struct CallContext {
    /// Cancelled when the client cancels this call or the server ends; never after the call is done.
    pub cancel: CancellationToken,
    /// Where to report progress; `None` where the client did not ask.
    pub progress: Option<ProgressReporter>,
    /// Who can ask a person; `None` where nobody can.
    pub confirm: Option<Arc<dyn Confirmer>>,
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The text the agent reads: the result, or what went wrong and what to do.
    pub text: String,
    /// The result as data, for profiles that send it.
    pub structured: Option<serde_json::Value>,
    /// The kind of error; `None` where the call succeeded.
    pub error: Option<ErrorCode>,
    /// A question that must be answered before the call can go on: nothing was done, and the same call is
    /// to be made again with the answer. The text is for those who cannot answer.
    pub question: Option<Question>,
}

impl Outcome {
    /// A success with this text.
    pub fn success(text: impl Into<String>) -> Self {
        Self { text: text.into(), structured: None, error: None, question: None }
    }

    /// A failure of this kind with this text.
    pub fn failure(code: ErrorCode, text: impl Into<String>) -> Self {
        Self { text: text.into(), structured: None, error: Some(code), question: None }
    }
}
