//! A service with a few toy tools, to test the protocol floor without a database under it.
//!
//! Shared by the protocol tests and by `examples/toy_server.rs`. It checks no arguments.

use indelible::confirm::{PATIENCE, Question};
use indelible::error::ErrorCode;
use indelible::outcome::{CallContext, Outcome};
use indelible::server::Service;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

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

    async fn shutdown(&self) {
        self.shutdowns.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(self.shutdown_ms)).await;
    }
}
