//! A service with a few toy tools, to test the protocol floor without a database under it.
//!
//! Shared by the protocol tests and by `examples/toy_server.rs`. It checks no arguments.

use indelible::confirm::{PATIENCE, Question};
use indelible::error::{ErrorCode, ToolError};
use indelible::outcome::{
    CallContext, CompletionOf, Completions, Offers, Outcome, RequestError, ResourceEntry, ResourcePage,
    ResourceText,
};
use indelible::server::Service;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The service; it counts what happens to it.
#[derive(Default)]
pub(crate) struct Toy {
    /// Calls that saw their token cancelled.
    pub(crate) cancelled: AtomicUsize,
    /// Calls that ran to their end.
    pub(crate) done: AtomicUsize,
    /// Times `shutdown` ran.
    pub(crate) shutdowns: AtomicUsize,
    /// Milliseconds that `shutdown` takes.
    pub(crate) shutdown_ms: u64,
    /// Milliseconds that a person may take; 0 is as long as usual.
    pub(crate) patience_ms: u64,
    /// Whether there is more than tools; where its list of resources changes, the changes.
    pub(crate) box_of_toys: Option<Option<watch::Sender<u64>>>,
}

const TOOLS: [(&str, &str); 7] = [
    ("echo", "Returns `text`."),
    ("sleep", "Waits `ms` milliseconds, or until it is cancelled."),
    ("stubborn", "Waits `ms` milliseconds whatever happens."),
    ("fail", "Fails."),
    ("panic", "Panics."),
    ("count", "Reports progress three times."),
    ("ask", "Asks a person and says what they said."),
];

impl Service for Toy {
    fn instructions(&self) -> String {
        "toys only".to_owned()
    }

    fn descriptors(&self) -> Vec<Value> {
        let schema = json!({"type": "object", "properties": {"zeta": {"type": "string"}, "alpha": {"type": "string"}}});
        let tool = |(name, description): &(&str, &str)| json!({"name": name, "title": name, "description": description, "inputSchema": schema});
        TOOLS.iter().map(tool).collect()
    }

    async fn call(
        &self,
        tool: String,
        arguments: Option<Map<String, Value>>,
        context: CallContext,
    ) -> Option<Outcome> {
        let arguments = arguments.unwrap_or_default();
        let ms = Duration::from_millis(arguments.get("ms").and_then(Value::as_u64).unwrap_or(0));
        let outcome = match tool.as_str() {
            "echo" => {
                let text = arguments.get("text").and_then(Value::as_str).unwrap_or("");
                Outcome { structured: Some(json!({"length": text.len()})), ..Outcome::success(text) }
            }
            "sleep" => {
                tokio::select! {
                    () = tokio::time::sleep(ms) => Outcome::success("slept"),
                    () = context.cancel.cancelled() => {
                        self.cancelled.fetch_add(1, Ordering::SeqCst);
                        Outcome::failure(ErrorCode::Cancelled, "cancelled")
                    }
                }
            }
            "stubborn" => {
                tokio::time::sleep(ms).await;
                Outcome::success("slept")
            }
            "fail" => Outcome::failure(ErrorCode::UnknownTable, "no such table: nope"),
            "panic" => std::panic::resume_unwind(Box::new("a toy broke")),
            "count" => {
                for step in 1..=3 {
                    if let Some(report) = &context.progress {
                        report(f64::from(step), Some(3.0), format!("step {step}"));
                    }
                }
                Outcome::success("counted")
            }
            "ask" => {
                let question = Question { text: "may I?".to_owned(), subject: "toys".to_owned() };
                match &context.confirm {
                    Some(confirmer) => Outcome::success(format!("{:?}", confirmer.ask(&question).await)),
                    None => Outcome::success("nobody"),
                }
            }
            _ => return None,
        };
        self.done.fetch_add(1, Ordering::SeqCst);
        Some(outcome)
    }

    fn asks(&self, tool: &str) -> bool {
        tool == "ask"
    }

    fn patience(&self) -> Duration {
        if self.patience_ms == 0 { PATIENCE } else { Duration::from_millis(self.patience_ms) }
    }

    fn offers(&self) -> Offers {
        let more = self.box_of_toys.is_some();
        Offers { resources: more, prompts: more, completions: more }
    }

    fn resource_templates(&self) -> Vec<Value> {
        vec![
            json!({"uriTemplate": "toy://{name}", "name": "toy", "title": "A toy", "mimeType": "text/plain"}),
        ]
    }

    fn prompts(&self) -> Vec<Value> {
        let arguments = json!([{"name": "toy", "description": "Which.", "required": true}]);
        vec![json!({"name": "play", "title": "Play", "description": "Plays.", "arguments": arguments})]
    }

    fn resource_changes(&self) -> Option<watch::Receiver<u64>> {
        self.box_of_toys.as_ref()?.as_ref().map(watch::Sender::subscribe)
    }

    async fn resources(&self, cursor: Option<String>, _: CallContext) -> Result<ResourcePage, RequestError> {
        let entry = |name: &str| ResourceEntry {
            uri: format!("toy://{name}"),
            name: name.to_owned(),
            title: name.to_uppercase(),
            description: "A toy.".to_owned(),
            mime_type: "text/plain".to_owned(),
            size: (name == "ball").then_some(4),
        };
        match cursor.as_deref() {
            None => Ok(ResourcePage { resources: vec![entry("ball")], next_cursor: Some("2".to_owned()) }),
            Some("2") => Ok(ResourcePage { resources: vec![entry("top")], next_cursor: None }),
            Some(_) => Err(RequestError::Invalid(ToolError::arguments("unknown `cursor`"))),
        }
    }

    async fn read_resource(&self, uri: String, context: CallContext) -> Result<ResourceText, RequestError> {
        match uri.as_str() {
            "toy://ball" => Ok(ResourceText { mime_type: "text/plain".to_owned(), text: "ball".to_owned() }),
            "toy://slow" => {
                context.cancel.cancelled().await;
                self.cancelled.fetch_add(1, Ordering::SeqCst);
                Err(RequestError::Failed(ToolError::new(ErrorCode::Cancelled, "cancelled")))
            }
            "toy://busy" => Err(RequestError::Failed(ToolError::new(ErrorCode::Busy, "somebody has it"))),
            _ => Err(RequestError::NotFound(ToolError::new(ErrorCode::UnknownTable, "no such toy"))),
        }
    }

    async fn prompt(
        &self,
        name: String,
        arguments: Map<String, Value>,
        _: CallContext,
    ) -> Result<String, RequestError> {
        match (name.as_str(), arguments.get("toy").and_then(Value::as_str)) {
            ("play", Some(toy)) => Ok(format!("play with the {toy}")),
            ("play", None) => Err(RequestError::Invalid(ToolError::arguments("`toy` is missing"))),
            _ => Err(RequestError::Invalid(ToolError::arguments(format!("unknown prompt `{name}`")))),
        }
    }

    async fn complete(
        &self,
        of: CompletionOf,
        argument: String,
        begun: String,
        _: CallContext,
    ) -> Result<Completions, RequestError> {
        let from = match of {
            CompletionOf::Resource(uri) => uri,
            CompletionOf::Prompt(name) => name,
        };
        Ok(Completions { values: vec![format!("{from}/{argument}/{begun}")], total: 2 })
    }

    async fn shutdown(&self, _: Instant) {
        self.shutdowns.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(self.shutdown_ms)).await;
    }
}
