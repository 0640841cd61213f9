//! A group of primitives as a server: its tools, each a handler over the traits of `state`; and the groups of a data
//! folder.
//!
//! A handler turns checked arguments into operations of a trait, and what comes back into a result. It runs no
//! SQL and names no protocol. One file per type of primitive, bound to tools.yaml by the generated dispatch.

pub mod access;
pub mod catalog;
mod content;
pub mod db;
pub mod files;
pub mod groups;
pub mod kv;
pub mod memory;
pub mod queue;
pub mod signing;
pub mod storage;
pub mod vault;
mod vault_request;
mod whereabouts;

use crate::audit::{AuditRow, timestamp};
use crate::config::Settings;
use crate::error::{ErrorCode, ToolError};
use crate::outbound::Outbound;
use crate::outcome::{CallContext, Caller, Outcome, Standing};
use crate::spec::model::ErrorStyle;
use crate::state::catalog::{Group, Kind, Primitive, choose};
use crate::state::clock::Clock;
use crate::state::store::Store;
use crate::store::audit_log::AuditLog;
use crate::surface::{Surface, SurfaceSettings, arguments};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use whereabouts::Whereabouts;

// The generated dispatch: from a tool to its handler.
include!(concat!(env!("OUT_DIR"), "/dispatch_group.rs"));

/// A group that is served.
pub struct GroupServer {
    /// The group.
    pub group: Group,
    /// Where primitives are kept; shared with other groups.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Requests to the outside; shared with other groups.
    pub outbound: Arc<Outbound>,
    /// The settings.
    pub settings: Settings,
    surface: Arc<Surface>,
    words: SurfaceSettings,
    session: String,
    audit_log: Option<Arc<AuditLog>>,
    whereabouts: Arc<Whereabouts>,
}

/// What a handler gives back.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The result as data.
    pub structured: Value,
}

impl Reply {
    /// A result as data.
    ///
    /// # Errors
    /// A result that is no JSON; it means that this program is wrong.
    pub fn of(result: &impl Serialize) -> Result<Self, ToolError> {
        let structured = serde_json::to_value(result).map_err(|error| {
            ToolError::new(ErrorCode::SqlError, format!("the result is no JSON: {error}"))
        })?;
        Ok(Self { structured })
    }
}

/// One call on its way through a handler.
pub struct Call<'a> {
    /// The group's server.
    pub server: &'a GroupServer,
    /// Who calls.
    pub caller: Caller,
    /// Cancelled when the client no longer wants the answer.
    pub cancel: CancellationToken,
    /// The place that it runs at.
    place: Option<Arc<dyn Standing>>,
    notes: Mutex<Map<String, Value>>,
}

impl Call<'_> {
    /// The primitive that the call means; noted for the log.
    ///
    /// # Errors
    /// As [`choose`].
    pub async fn primitive(&self, wanted: Option<&str>, kind: Option<Kind>) -> Result<Primitive, ToolError> {
        let all = self.server.store.catalog().primitives(&self.server.group).await?;
        let chosen = choose(all, wanted, kind)?;
        self.note("primitive", chosen.name.as_str());
        Ok(chosen)
    }

    /// Whether a call that has waited may still do what it came for: the primitive is there and not paused, and what the
    /// caller came in with still opens the group.
    ///
    /// # Errors
    /// `NOT_FOUND`, `PAUSED`, `FORBIDDEN_TOOL`; as the catalog says.
    pub(crate) async fn still_stands(&self, primitive: &Primitive) -> Result<(), ToolError> {
        let catalog = self.server.store.catalog();
        let found = catalog.primitive(&primitive.id).await?;
        choose(found.into_iter().collect(), Some(&primitive.id), Some(primitive.kind))?;
        let Some(reached) = &self.caller.reached else { return Ok(()) };
        let holds = match catalog.keys().find(&reached.signer).await? {
            Some(key) => key.key.holds(self.now()),
            // No key, but the operator or a token, and nothing is known of those but when they end.
            None => reached.until.is_none_or(|end| self.now() < end),
        };
        if holds { Ok(()) } else { Err(access::over()) }
    }

    /// Notes an argument that matters for the log. Never a value that is kept, and never a secret.
    pub fn note(&self, name: &str, value: impl Into<Value>) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), value.into());
    }

    /// Waits, without a place among the calls that run at once, until the call is cancelled at the latest.
    pub async fn wait(&self, waiting: impl Future<Output = ()> + Send) {
        let wait = async {
            if let Some(place) = &self.place {
                place.leave();
            }
            waiting.await;
            if let Some(place) = &self.place {
                place.back().await;
            }
        };
        tokio::select! {
            () = wait => {}
            () = self.cancel.cancelled() => {}
        }
    }

    /// The time, in milliseconds since 1970.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.server.clock.now()
    }
}

impl GroupServer {
    /// The active tools.
    #[must_use]
    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// Runs one tool; none if there is no such tool.
    pub async fn call(
        &self,
        tool: &str,
        given: Option<Map<String, Value>>,
        context: CallContext,
    ) -> Option<Outcome> {
        let began = Instant::now();
        let CallContext { caller, cancel, place, .. } = context;
        let call = Call { server: self, caller, cancel, place, notes: Mutex::default() };
        let Some(active) = self.surface.tool(tool) else {
            let unknown = ToolError::arguments("unknown tool");
            self.record(&call, tool, began, Some(&unknown));
            return None;
        };
        if let Some(credential) = &call.caller.credential {
            call.note("credential", &**credential);
        }
        if !call.caller.may(tool) {
            let error = access::forbidden(tool, &call.caller);
            self.record(&call, tool, began, Some(&error));
            return Some(Outcome::of_error(error, self.surface.profile().errors));
        }
        let result = match (arguments::check(&active.spec, &self.words, given), active.tool) {
            (Ok(arguments), Some(generated)) => dispatch(generated, &call, arguments).await,
            (Ok(_), None) => Err(ToolError::arguments("the tool has nothing to run")),
            (Err(error), _) => Err(error),
        };
        let result = result.map_err(of_this_profile);
        self.record(&call, tool, began, result.as_ref().err());
        let result = result.map_err(|error| self.whereabouts.left_out_of(error));
        Some(outcome(result, self.surface.profile().errors))
    }

    /// One line of the log in a file, if there is one.
    fn record(&self, call: &Call<'_>, tool: &str, began: Instant, error: Option<&ToolError>) {
        let Some(log) = &self.audit_log else { return };
        let mut detail = call.notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        detail.insert("group".to_owned(), self.group.name.as_str().into());
        let error = error.map(|error| format!("{} ({})", error.message, error.code.as_str()));
        log.write(&audit_row(&self.session, tool, began, error, &Value::Object(detail)));
    }
}

/// One line of the log in a file.
fn audit_row(session: &str, tool: &str, began: Instant, error: Option<String>, detail: &Value) -> AuditRow {
    AuditRow {
        ts: timestamp(jiff::Timestamp::now()),
        session: session.to_owned(),
        tool: crate::render::one_line(tool, 100),
        ok: error.is_none(),
        error,
        duration_ms: i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX),
        detail: Some(detail.to_string()),
        ..AuditRow::default()
    }
}

/// Six characters that tell copies apart.
fn short_id() -> String {
    uuid::Uuid::new_v4().simple().to_string().chars().take(6).collect()
}

/// The next page's cursor: the text that it begins behind, as agents hand it back.
fn cursor(after: &str) -> String {
    URL_SAFE_NO_PAD.encode(after)
}

/// What a cursor stands for.
fn behind_cursor(cursor: &str) -> Result<String, ToolError> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| {
        ToolError::arguments("`cursor` must be the next_cursor of a page before; leave it out to start again")
    })
}

/// What workers call too big is too large here, as it is where no SQL is.
fn of_this_profile(error: ToolError) -> ToolError {
    match error.code {
        ErrorCode::TooBig => ToolError { code: ErrorCode::TooLarge, ..error },
        _ => error,
    }
}

fn outcome(result: Result<Reply, ToolError>, errors: ErrorStyle) -> Outcome {
    match result {
        Ok(reply) => Outcome {
            text: reply.structured.to_string(),
            structured: Some(reply.structured),
            error: None,
            question: None,
        },
        Err(error) => Outcome::of_error(error, errors),
    }
}
