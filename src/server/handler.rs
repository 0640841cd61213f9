//! What each method answers: initialize, server/discover, tools, resources, prompts, completion.
//!
//! It decides how an outcome looks on the wire and nothing about what a tool does. Only what this
//! server really has is announced; the rest has no method.

use super::Service;
use super::asking::{Questions, Round};
use super::changes::Changes;
use super::metrics::Metrics;
use super::offers::{self, ERROR_CODE_KEY};
use super::turns::{Places, Turns, caller};
use crate::error::StartError;
use crate::outcome::{Caller, Offers, Outcome};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams,
    CompleteResult, ContentBlock, CustomRequest, CustomResult, DiscoverResult, ErrorCode, ErrorData,
    GetPromptRequestParams, GetPromptResponse, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams,
    Prompt, ReadResourceRequestParams, ReadResourceResponse, ResourceTemplate, ServerConfig,
    SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// How long a client may keep lists that never change while the server runs, in milliseconds: a server that
/// is started again may have other flags.
const LIST_TTL_MS: u64 = 300_000;

/// The same for a list of tools that files can change: as long as a change may take to be noticed here.
const CHANGING_LIST_TTL_MS: u64 = 1_000;

/// The `_meta` key under which every result of revision 2026-07-28 should name the server.
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// Methods that every server has. With parameters of the wrong shape the library reports them as custom.
const METHODS: [&str; 3] = ["server/discover", "tools/list", "tools/call"];

/// Methods that there are in revisions with a handshake alone.
const METHODS_WITH_HANDSHAKE: [&str; 2] = ["initialize", "ping"];

/// How clients are connected, where that changes what can be promised to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// One client, for as long as the server lives; either end may send at any time.
    Lines,
    /// Many clients, each request by itself: the server can only answer. Clients of revisions with a handshake
    /// can be told of nothing and asked nothing between their requests.
    Http,
}

/// When what ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    /// No more requests will come: subscriptions are over.
    pub(super) input: CancellationToken,
    /// What still runs is to stop.
    pub(super) calls: CancellationToken,
}

/// What the handlers of one server share.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    pub(super) ends: Ends,
    pub(super) places: Places,
    pub(super) metrics: Arc<Metrics>,
}

/// Answers requests from a [`Service`].
pub(super) struct Handler<S> {
    service: Arc<S>,
    config: ServerConfig,
    server_info: Value,
    tools: Vec<Tool>,
    offers: Offers,
    listed: offers::Changing,
    templates: Vec<ResourceTemplate>,
    prompts: Vec<Prompt>,
    changes: Option<Changes>,
    turns: Turns,
    questions: Arc<Questions>,
    metrics: Arc<Metrics>,
    wire: Wire,
}

impl<S: Service> Handler<S> {
    /// Reads the service's descriptors once.
    ///
    /// # Errors
    /// A descriptor that the protocol library cannot carry as it is.
    pub(super) fn new(service: Arc<S>, wire: Wire, shared: &Shared) -> Result<Self, StartError> {
        let tools = all("tool", service.descriptors())?;
        let templates = all("resource template", service.resource_templates())?;
        let prompts = all("prompt", service.prompts())?;
        let offers = service.offers();
        let resources = service.resource_changes().filter(|_| offers.resources);
        let listed =
            offers::Changing { resources: resources.is_some(), tools: service.tool_changes().is_some() };
        let changes = (listed.resources || listed.tools)
            .then(|| Changes::new(resources, service.tool_changes(), wire, shared.ends.input.clone()));
        let info = offers::implementation(service.description());
        let server_info = serde_json::to_value(&info).map_err(|e| StartError::failure(e.to_string()))?;
        let config = ServerConfig::new(offers::capabilities(offers, listed))
            .with_server_info(info)
            .with_instructions(service.instructions());
        let questions = Arc::new(Questions::new(service.patience()));
        let turns = Turns::new(Arc::clone(&questions), wire, shared);
        Ok(Self {
            service,
            config,
            server_info,
            tools,
            offers,
            listed,
            templates,
            prompts,
            changes,
            turns,
            questions,
            metrics: Arc::clone(&shared.metrics),
            wire,
        })
    }

    /// The methods of this server, of every revision.
    fn methods(&self) -> Vec<&'static str> {
        let mut methods = [METHODS_WITH_HANDSHAKE.as_slice(), &METHODS].concat();
        methods.extend(offers::methods(self.offers, self.listed));
        methods
    }

    /// Nothing where the server has the method, else its refusal.
    fn has(&self, method: &str, offered: bool) -> Result<(), ErrorData> {
        if offered { Ok(()) } else { Err(self.no_method(method)) }
    }

    fn no_method(&self, method: &str) -> ErrorData {
        let has = self.methods().join(", ");
        let words = format!("no method `{}`; this server has {has}", offers::shown(method));
        ErrorData::new(ErrorCode::METHOD_NOT_FOUND, words, None)
    }

    /// The tools as they are now, and for how many milliseconds a client may keep the list.
    fn tools(&self) -> (Vec<Tool>, u64) {
        if !self.listed.tools {
            return (self.tools.clone(), LIST_TTL_MS);
        }
        // What cannot be sent whole was refused at the start, and other tools are made in the same way.
        let tools = all("tool", self.service.descriptors()).unwrap_or_else(|_| self.tools.clone());
        (tools, CHANGING_LIST_TTL_MS)
    }

    fn unknown_tool(&self, name: &str, caller: &Caller) -> ErrorData {
        let (tools, _) = self.tools();
        let tools = tools.iter().filter(|tool| caller.may(&tool.name));
        let names: Vec<String> = tools.map(|tool| format!("`{}`", tool.name)).collect();
        let words = format!("unknown tool `{}`; the tools are {}", offers::shown(name), names.join(", "));
        ErrorData::invalid_params(words, None)
    }

    /// The result's `_meta`, if it has any.
    fn meta(&self, context: &RequestContext<RoleServer>, outcome: Option<&Outcome>) -> Option<MetaObject> {
        let mut meta = MetaObject::new();
        if let Some(code) = outcome.and_then(|outcome| outcome.error) {
            meta.0.insert(ERROR_CODE_KEY.to_owned(), Value::from(code.as_str()));
        }
        if context.protocol_version().is_some_and(|version| !version.has_initialize()) {
            meta.0.insert(SERVER_INFO_KEY.to_owned(), self.server_info.clone());
        }
        (!meta.0.is_empty()).then_some(meta)
    }
}

impl<S: Service> ServerHandler for Handler<S> {
    fn get_info(&self) -> ServerConfig {
        let config = self.config.clone();
        if self.listed.tools { config.with_instructions(self.service.instructions()) } else { config }
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.negotiate_initialize(&request)?;
        if self.wire == Wire::Http {
            offers::tell_nobody(&mut result.capabilities);
        }
        // What was agreed on, not what was asked for: a second handshake would else leave the latter.
        let mut agreed = request;
        agreed.protocol_version = result.protocol_version.clone();
        context.peer.set_peer_info(agreed);
        if let Some(changes) = &self.changes {
            changes.shaken();
        }
        Ok(result)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Some(changes) = &self.changes {
            changes.ready(context.peer);
        }
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
        offers::one_page("tools/list", request)?;
        let (mut tools, ttl) = self.tools();
        let caller = caller(&context);
        tools.retain(|tool| caller.may(&tool.name));
        // Over HTTP, who asks may decide what is listed.
        let scope = if self.wire == Wire::Http { CacheScope::Private } else { CacheScope::Public };
        let mut result = ListToolsResult::with_all_items(tools).with_ttl_ms(ttl).with_cache_scope(scope);
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
        let asks = self.service.asks(&name);
        let asked_before = round.round;
        // For the seal of a question, where there may be one.
        let kept = if asks { arguments.clone() } else { None };
        let call = |cx| self.service.call(name.clone(), arguments, cx);
        let under_way = self.metrics.call();
        let outcome = self.turns.asking(&context, asks.then_some(round), call).await;
        let (tool, code) = match &outcome {
            Ok(Some(outcome)) => (Some(name.as_str()), outcome.error.map(|code| code.as_str())),
            Ok(None) => (None, Some("NO_SUCH_TOOL")),
            Err(_) => (Some(name.as_str()), Some("PANIC")),
        };
        self.metrics.called(&under_way, tool, code);
        let Some(outcome) = outcome? else {
            return Err(self.unknown_tool(&name, &caller(&context)));
        };
        let meta = self.meta(&context, Some(&outcome));
        if let Some(question) = &outcome.question {
            let asked = self.questions.input_required(&name, kept.as_ref(), question, asked_before);
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
        if self.listed.tools {
            return self.tools().0.into_iter().find(|tool| tool.name == name);
        }
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        let is_gone = METHODS_WITH_HANDSHAKE.contains(&method.as_str())
            && context.protocol_version().is_some_and(|version| !version.has_initialize());
        if !is_gone && self.methods().contains(&method.as_str()) {
            let takes = offers::takes(&method);
            return Err(ErrorData::invalid_params(format!("`params` do not fit `{method}`{takes}"), None));
        }
        Err(self.no_method(&method))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.has("resources/list", self.offers.resources)?;
        let cursor = request.and_then(|request| request.cursor);
        let page = self.turns.run(&context, |cx| self.service.resources(cursor, cx)).await?;
        let page = page.map_err(|error| offers::refusal(&error, None))?;
        let mut result =
            ListResourcesResult::with_all_items(page.resources.into_iter().map(offers::resource).collect());
        result.next_cursor = page.next_cursor;
        result.meta = self.meta(&context, None);
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.has("resources/templates/list", self.offers.resources)?;
        offers::one_page("resources/templates/list", request)?;
        let mut result = ListResourceTemplatesResult::with_all_items(self.templates.clone())
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Public);
        result.meta = self.meta(&context, None);
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.has("resources/read", self.offers.resources)?;
        let uri = request.uri;
        let read = self.turns.run(&context, |cx| self.service.read_resource(uri.clone(), cx)).await?;
        let read = read.map_err(|error| offers::refusal(&error, Some(&uri)))?;
        let mut result = offers::contents(uri, read);
        result.meta = self.meta(&context, None);
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.has("prompts/list", self.offers.prompts)?;
        offers::one_page("prompts/list", request)?;
        let mut result = ListPromptsResult::with_all_items(self.prompts.clone())
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Public);
        result.meta = self.meta(&context, None);
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.has("prompts/get", self.offers.prompts)?;
        let (name, arguments) = (request.name, request.arguments.unwrap_or_default());
        let description = self
            .prompts
            .iter()
            .find(|prompt| prompt.name == name)
            .and_then(|prompt| prompt.description.clone());
        let text = self.turns.run(&context, |cx| self.service.prompt(name, arguments, cx)).await?;
        let text = text.map_err(|error| offers::refusal(&error, None))?;
        let mut result = offers::message(text, description);
        result.meta = self.meta(&context, None);
        Ok(result.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.has("completion/complete", self.offers.completions)?;
        let (of, argument) = (offers::completion_of(request.r#ref)?, request.argument);
        let found =
            self.turns.run(&context, |cx| self.service.complete(of, argument.name, argument.value, cx));
        let found = found.await?.map_err(|error| offers::refusal(&error, None))?;
        let mut result = CompleteResult::new(offers::completion(found));
        result.meta = self.meta(&context, None);
        Ok(result)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.changes.as_ref().map(|_| requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        match &self.changes {
            Some(changes) => changes.listen(subscription).await,
            None => Err(self.no_method("subscriptions/listen")),
        }
    }
}

fn all<T: DeserializeOwned + Serialize>(kind: &str, descriptors: Vec<Value>) -> Result<Vec<T>, StartError> {
    descriptors.into_iter().map(|descriptor| offers::whole(kind, descriptor)).collect()
}
