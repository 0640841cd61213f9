//! What travels between the protocol and the tools: a call's surroundings and its outcome; and what comes of
//! the requests for resources, prompts and completion.
//!
//! Plain types without a protocol library in them. They do not run anything and do not say how an
//! outcome looks on the wire; `server/` does.

use crate::confirm::{Confirmer, Question};
use crate::error::{ErrorCode, ToolError};
use crate::shares::Owner;
use crate::spec::model::ErrorStyle;
use futures::future::BoxFuture;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Reports progress: how much is done, of how much (if known), and what is going on.
///
/// May be called from any thread, as often as one likes; reports that find no room are dropped. The
/// first number must grow from report to report (MCP asks for that).
pub type ProgressReporter = Arc<dyn Fn(f64, Option<f64>, String) + Send + Sync>;

/// On whose behalf a request is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Which credential it came in with, for records; none where nobody is asked for one. Never a secret.
    pub credential: Option<Arc<str>>,
    /// The tools that it may use; none for all.
    pub tools: Option<Arc<BTreeSet<String>>>,
    /// How it came in over HTTP; none on stdin and stdout.
    pub reached: Option<Arc<Reached>>,
    /// In whose share of what goes on at once.
    pub owner: Owner,
}

/// A call's place among those that run at once.
pub trait Standing: Send + Sync {
    /// Gives it up, for as long as the call only waits.
    fn leave(&self);

    /// Waits for one again.
    fn back(&self) -> BoxFuture<'_, ()>;
}

/// What somebody who came in over HTTP can be given a URL by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Scheme, name and port under which the server is reached: `https://state.example.com`.
    pub base: String,
    /// Under which name it signs URLs.
    pub signer: String,
    /// What the credential is bound to beside its name; a URL that it signs holds as long as this does.
    pub binding: String,
    /// When the credential ends, if it does; milliseconds since 1970.
    pub until: Option<i64>,
}

impl Caller {
    /// Whether it may use this tool.
    #[must_use]
    pub fn may(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.contains(tool))
    }
}

/// What surrounds one call.
#[derive(Clone, Default)]
pub struct CallContext {
    /// Who calls.
    pub caller: Caller,
    /// Cancelled when the client cancels this call or the server ends; never after the call is done.
    pub cancel: CancellationToken,
    /// Where to report progress; `None` where the client did not ask.
    pub progress: Option<ProgressReporter>,
    /// The place that it runs at; `None` where places are not counted.
    pub place: Option<Arc<dyn Standing>>,
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

    /// An error as a profile words errors.
    #[must_use]
    pub fn of_error(error: ToolError, style: ErrorStyle) -> Self {
        let code = error.code.as_str();
        let text = match style {
            ErrorStyle::Plain => error.message,
            ErrorStyle::Coded => format!("[{code}] {}", error.message),
            ErrorStyle::LowerCoded => format!("[{}] {}", code.to_ascii_lowercase(), error.message),
        };
        Self::failure(error.code, text)
    }
}

/// Which kinds of things there are besides tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// Resources and templates of resources.
    pub resources: bool,
    /// Prompts.
    pub prompts: bool,
    /// Arguments that can be completed.
    pub completions: bool,
}

/// One page of the list of resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePage {
    /// The resources.
    pub resources: Vec<ResourceEntry>,
    /// Where the next page begins, if there is one.
    pub next_cursor: Option<String>,
}

/// A resource in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceEntry {
    /// What it is read by.
    pub uri: String,
    /// A short name for programs.
    pub name: String,
    /// A short title for people.
    pub title: String,
    /// What it holds.
    pub description: String,
    /// `application/json`.
    pub mime_type: String,
    /// Bytes, where known.
    pub size: Option<u64>,
}

/// A resource's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceText {
    /// `application/json`.
    pub mime_type: String,
    /// The whole text.
    pub text: String,
}

/// Whose argument is to be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompletionOf {
    /// The variable of the template of resources with this text.
    Resource(String),
    /// An argument of the prompt of this name.
    Prompt(String),
}

/// Values for an argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// At most 100.
    pub values: Vec<String>,
    /// How many there are in all.
    pub total: usize,
}

/// Why a request that is no tool call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The resource is not there.
    NotFound(ToolError),
    /// What was asked for does not exist or does not fit.
    Invalid(ToolError),
    /// It could not be done.
    Failed(ToolError),
}

impl RequestError {
    /// The error by its code: what the client got wrong is `Invalid`.
    #[must_use]
    pub fn of(error: ToolError) -> Self {
        match error.code {
            ErrorCode::InvalidArguments | ErrorCode::UnknownTable => Self::Invalid(error),
            _ => Self::Failed(error),
        }
    }

    /// The error itself.
    #[must_use]
    pub fn error(&self) -> &ToolError {
        match self {
            Self::NotFound(error) | Self::Invalid(error) | Self::Failed(error) => error,
        }
    }
}
