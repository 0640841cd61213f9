//! The Model Context Protocol over a pair of byte streams.
//!
//! The only place that names rmcp. It knows nothing about databases: it speaks to a [`Service`], which
//! the application implements and tests replace by a small one.
//!
//! # Layout
//!
//! - `lines`: bytes to lines, bounded; `message`: a line to messages, or to the error it deserves; `whole`: its JSON
//! - `flight`: which requests are under way, and which answers belong into one batch
//! - `writer`: the one task that writes
//! - `transport`: the above as an rmcp transport
//! - `asking`: questions to the person at the client; `dialog`: those that their call waits for
//! - `handler`: what each method answers; `offers`: resources, prompts and completions in the library's types;
//!   `changes`: who is told that the list of resources changed; `turns`: how many calls run at once, and what each
//!   gets; `guard`: panics become answers; `progress`
//! - `undelivered`: one error of the library that is none
//! - `metrics`: what is counted of calls and requests
//! - `serve`: start to end of a connection; `stdio`: which kind of stream fds 0 and 1 are
//! - `http`: the same handler for many clients over Streamable HTTP

mod asking;
mod changes;
mod dialog;
mod flight;
mod guard;
mod handler;
pub mod http;
mod lines;
mod message;
mod metrics;
mod offers;
mod progress;
mod serve;
pub mod stdio;
mod transport;
mod turns;
mod undelivered;
mod whole;
mod writer;

pub use lines::MAX_LINE_BYTES;
pub use serve::{ANSWERS_AFTER_END, Ending, serve, serve_stdio, shut_down};
pub use undelivered::NothingOfGoneClients;

use crate::confirm::PATIENCE;
use crate::outcome::{
    CallContext, CompletionOf, Completions, Offers, Outcome, RequestError, ResourcePage, ResourceText,
};
use serde_json::{Map, Value};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// What the protocol serves.
pub trait Service: Send + Sync + 'static {
    /// What the server is, in one sentence.
    fn description(&self) -> String {
        env!("CARGO_PKG_DESCRIPTION").to_owned()
    }

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

    /// What there is besides tools; nothing else of it is asked for.
    fn offers(&self) -> Offers;

    /// The MCP `ResourceTemplate` objects of resources/templates/list, in the order to send them.
    fn resource_templates(&self) -> Vec<Value>;

    /// The MCP `Prompt` objects of prompts/list, in the order to send them.
    fn prompts(&self) -> Vec<Value>;

    /// A counter that changes with every change to the list of resources; none where it never changes.
    fn resource_changes(&self) -> Option<watch::Receiver<u64>>;

    /// One page of the list of resources; the first without a cursor.
    fn resources(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> impl Future<Output = Result<ResourcePage, RequestError>> + Send;

    /// The resource of this URI.
    fn read_resource(
        &self,
        uri: String,
        context: CallContext,
    ) -> impl Future<Output = Result<ResourceText, RequestError>> + Send;

    /// The message of the prompt of this name.
    fn prompt(
        &self,
        name: String,
        arguments: Map<String, Value>,
        context: CallContext,
    ) -> impl Future<Output = Result<String, RequestError>> + Send;

    /// Values for an argument of which `begun` is there already.
    fn complete(
        &self,
        of: CompletionOf,
        argument: String,
        begun: String,
        context: CallContext,
    ) -> impl Future<Output = Result<Completions, RequestError>> + Send;

    /// A counter that changes with every other list of tools; none where it never changes.
    fn tool_changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// Looks whether what tools are made of has changed, and takes it up; `forced`, without looking.
    fn reload(&self, forced: bool) -> impl Future<Output = ()> + Send {
        let _ = forced;
        std::future::ready(())
    }

    /// Ends what still runs and writes what is still queued. Called once, after the last call's token
    /// was cancelled; whatever is left at the deadline is abandoned.
    fn shutdown(&self, deadline: Instant) -> impl Future<Output = ()> + Send;
}
