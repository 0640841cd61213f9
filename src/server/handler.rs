//! What each method answers: initialize, server/discover, tools/list, tools/call.
//!
//! It decides how an outcome looks on the wire and nothing about what a tool does. Only what this
//! server really has is announced.

use super::Service;
use super::asking::{Dialog, NoForms, Place, Questions, Round, shows_forms};
use super::progress::Progress;
use crate::confirm::Confirmer;
use crate::error::StartError;
use crate::outcome::{CallContext, Outcome};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, DiscoverResult, ErrorCode, ErrorData, Implementation, InitializeRequestParams,
    InitializeResult, ListToolsResult, MetaObject, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Calls that run at once; more wait for their turn.
const CALLS_AT_ONCE: usize = 64;

/// How long a client may keep tools/list, in milliseconds. It never changes while the server runs, but a
/// server that is started again may have other flags.
const LIST_TTL_MS: u64 = 300_000;

/// The `_meta` key of an error's stable code.
const ERROR_CODE_KEY: &str = "indelible/code";

/// The `_meta` key under which every result of revision 2026-07-28 should name the server.
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// Methods that this server has. With parameters of the wrong shape the library reports them as custom.
const METHODS: [&str; 5] = ["initialize", "ping", "server/discover", "tools/list", "tools/call"];

/// Answers requests from a [`Service`].
pub(super) struct Handler<S> {
    service: Arc<S>,
    config: ServerConfig,
    server_info: Value,
    tools: Vec<Tool>,
    turns: Arc<Semaphore>,
    questions: Arc<Questions>,
}

impl<S: Service> Handler<S> {
    /// Reads the service's descriptors once.
    ///
    /// # Errors
    /// A descriptor that the protocol library cannot carry as it is.
    pub(super) fn new(service: Arc<S>) -> Result<Self, StartError> {
        let tools = service.descriptors().into_iter().map(tool).collect::<Result<Vec<_>, _>>()?;
        let info = implementation();
        let server_info = serde_json::to_value(&info).map_err(|e| StartError::failure(e.to_string()))?;
        let config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(info)
            .with_instructions(service.instructions());
        let turns = Arc::new(Semaphore::new(CALLS_AT_ONCE));
        let questions = Arc::new(Questions::new(service.patience()));
        Ok(Self { service, config, server_info, tools, turns, questions })
    }

    fn unknown_tool(&self, name: &str) -> ErrorData {
        let names: Vec<String> = self.tools.iter().map(|tool| format!("`{}`", tool.name)).collect();
        let words = format!("unknown tool `{name}`; the tools are {}", names.join(", "));
        ErrorData::invalid_params(words, None)
    }

    /// The result's `_meta`, if it has any.
    fn meta(&self, context: &RequestContext<RoleServer>, outcome: Option<&Outcome>) -> Option<MetaObject> {
        let mut meta = MetaObject::new();
        if let Some(code) = outcome.and_then(|outcome| outcome.error) {
            meta.0.insert(ERROR_CODE_KEY.to_owned(), Value::from(code.as_str()));
        }
        if is_modern(context) {
            meta.0.insert(SERVER_INFO_KEY.to_owned(), self.server_info.clone());
        }
        (!meta.0.is_empty()).then_some(meta)
    }

    /// This call's way to the person.
    fn confirmer(
        &self,
        round: Round,
        context: &RequestContext<RoleServer>,
        cancel: &CancellationToken,
        place: &Arc<Place>,
    ) -> Arc<dyn Confirmer> {
        if !shows_forms(context.client_capabilities()) {
            return Arc::new(NoForms);
        }
        if is_modern(context) {
            return Arc::new(round);
        }
        let questions = Arc::clone(&self.questions);
        Arc::new(Dialog::new(questions, context.peer.clone(), cancel.clone(), Arc::clone(place)))
    }

    /// Runs the call when it is its turn, and cancels its own token when the client cancels or the server
    /// ends. The library's token is not handed on: it is cancelled after every answer as well.
    async fn run(
        &self,
        name: String,
        arguments: Option<serde_json::Map<String, Value>>,
        round: Round,
        context: &RequestContext<RoleServer>,
    ) -> Option<Outcome> {
        let cancel = CancellationToken::new();
        let place = Arc::new(Place::among(&self.turns));
        // A call that is cancelled while it waits still goes to the service, which keeps record of it.
        tokio::select! {
            biased;
            () = place.take() => {}
            () = context.ct.cancelled() => cancel.cancel(),
        }
        let confirm = self.service.asks(&name).then(|| self.confirmer(round, context, &cancel, &place));
        let token = context.meta.get_progress_token();
        let progress = token.map(|token| Progress::start(context.peer.clone(), token));
        let (progress, reporter) = progress.unzip();
        let call_context = CallContext { cancel: cancel.clone(), progress: reporter, confirm };
        let call = self.service.call(name, arguments, call_context);
        let outcome = {
            let mut call = std::pin::pin!(call);
            loop {
                tokio::select! {
                    biased;
                    outcome = &mut call => break outcome,
                    () = context.ct.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
                }
            }
        };
        if let Some(progress) = progress {
            progress.finish().await;
        }
        outcome
    }
}

impl<S: Service> ServerHandler for Handler<S> {
    fn get_info(&self) -> ServerConfig {
        self.config.clone()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let result = self.negotiate_initialize(&request)?;
        // What was agreed on, not what was asked for: a second handshake would else leave the latter.
        let mut agreed = request;
        agreed.protocol_version = result.protocol_version.clone();
        context.peer.set_peer_info(agreed);
        Ok(result)
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        let result = DiscoverResult::from_server_info(versions, self.get_info());
        Ok(result.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Public))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params("unknown cursor; tools/list has one page", None));
        }
        let mut result = ListToolsResult::with_all_items(self.tools.clone())
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Public);
        result.meta = self.meta(&context, None);
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.into_owned();
        let arguments = request.arguments;
        let round = match &request.request_state {
            None => Round::first(),
            Some(state) => {
                let responses = request.input_responses.as_ref();
                self.questions.open(&name, arguments.as_ref(), state, responses).map_err(|why| {
                    self.service.note_refused(&name, why.0);
                    ErrorData::invalid_params(why.0, None)
                })?
            }
        };
        let put = round.round;
        // For the seal of a question, where there may be one.
        let kept = if self.service.asks(&name) { arguments.clone() } else { None };
        let Some(outcome) = self.run(name.clone(), arguments, round, &context).await else {
            return Err(self.unknown_tool(&name));
        };
        let meta = self.meta(&context, Some(&outcome));
        if let Some(question) = &outcome.question {
            let asked = self.questions.input_required(&name, kept.as_ref(), question, put);
            let mut result = asked.map_err(|why| ErrorData::internal_error(why, None))?;
            result.meta = meta;
            return Ok(result.into());
        }
        let content = vec![ContentBlock::text(outcome.text)];
        let mut result = match outcome.error {
            Some(_) => CallToolResult::error(content),
            None => CallToolResult::success(content),
        };
        result.structured_content = outcome.structured;
        result.meta = meta;
        Ok(result.into())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        if METHODS.contains(&method.as_str()) {
            return Err(ErrorData::invalid_params(format!("`params` do not fit `{method}`"), None));
        }
        let words = format!("no method `{method}`; this server has {}", METHODS.join(", "));
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, words, None))
    }
}

/// Whether the request is of a revision without handshake, 2026-07-28 or later.
fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

fn implementation() -> Implementation {
    let mut info = Implementation::new("indelible", env!("CARGO_PKG_VERSION"));
    info.title = Some("Indelible".to_owned());
    info.description = Some(env!("CARGO_PKG_DESCRIPTION").to_owned());
    info
}

/// A descriptor as the library's type, which passes over members it does not know: those are an error here.
fn tool(descriptor: Value) -> Result<Tool, StartError> {
    let name = descriptor.get("name").and_then(Value::as_str).unwrap_or("?").to_owned();
    let failed = |why: String| StartError::failure(format!("the descriptor of tool `{name}` {why}"));
    let tool: Tool =
        serde_json::from_value(descriptor.clone()).map_err(|e| failed(format!("is malformed: {e}")))?;
    match serde_json::to_value(&tool) {
        Ok(carried) if carried == descriptor => Ok(tool),
        _ => Err(failed("has members that are not sent".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_descriptor_is_carried_whole_or_refused() {
        let whole = json!({"name": "t", "title": "T", "description": "d", "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true, "openWorldHint": false}});
        assert_eq!(serde_json::to_value(tool(whole.clone()).unwrap()).unwrap(), whole);
        for (member, value) in [("descripton", json!("typo")), ("annotations", json!({"readOnly": true}))] {
            let mut broken = whole.clone();
            broken[member] = value;
            assert!(tool(broken).unwrap_err().message.contains("`t`"), "{member}");
        }
    }
}
