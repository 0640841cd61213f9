//! The Model Context Protocol over a pair of byte streams.
//!
//! The only place that names rmcp. It knows nothing about databases: it speaks to a [`Service`], which
//! the application implements and tests replace by a small one.
//!
//! # Layout
//!
//! - `lines`: bytes to lines, bounded; `message`: a line to messages, or to the error it deserves
//! - `flight`: which requests are under way, and which answers belong into one batch
//! - `writer`: the one task that writes
//! - `transport`: the above as an rmcp transport
//! - `asking`: questions to the person at the client
//! - `handler`: initialize, tools/list, tools/call; `guard`: panics become answers; `progress`
//! - `serve`: start to end of a connection; `stdio`: which kind of stream fds 0 and 1 are

mod asking;
mod flight;
mod guard;
mod handler;
mod lines;
mod message;
mod progress;
mod serve;
pub mod stdio;
mod transport;
mod writer;

pub use lines::MAX_LINE_BYTES;
pub use serve::{ANSWERS_AFTER_END, Ending, SHUTDOWN_TIME, serve};

use crate::confirm::PATIENCE;
use crate::outcome::{CallContext, Outcome};
use serde_json::{Map, Value};
use std::time::Duration;

/// What the protocol serves.
pub trait Service: Send + Sync + 'static {
    /// The server's `instructions`, for the agent.
    fn instructions(&self) -> String;

    /// The MCP `Tool` objects of tools/list, in the order to send them.
    fn descriptors(&self) -> Vec<Value>;

    /// Runs one tool. `None` means that there is no such tool, which is the caller's protocol error;
    /// everything else, bad arguments included, is an [`Outcome`].
    fn call(
        &self,
        tool: String,
        arguments: Option<Map<String, Value>>,
        context: CallContext,
    ) -> impl Future<Output = Option<Outcome>> + Send;

    /// Whether this tool may ask a person before it does anything. Only then is somebody given who can.
    fn asks(&self, _tool: &str) -> bool {
        false
    }

    /// A call was refused before it got here, because its `requestState` is not right: for the record.
    fn note_refused(&self, _tool: &str, _why: &str) {}

    /// How long a person may take to answer a question.
    fn patience(&self) -> Duration {
        PATIENCE
    }

    /// Ends what still runs and writes what is still queued. Called once, after the last call's token
    /// was cancelled; whatever is left after [`SHUTDOWN_TIME`] is abandoned.
    fn shutdown(&self) -> impl Future<Output = ()> + Send;
}
