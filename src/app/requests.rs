//! What clients ask for besides tools: resources, prompts, completion.
//!
//! Each request is a call like a tool's: under a policy, within the deadline, cancelled with its client's
//! request, and with a row in the log. URIs are taken apart and put together here and nowhere else.

use super::{App, Running};
use crate::error::{ErrorCode, ToolError};
use crate::generated::{PolicyId, Resource};
use crate::handlers::{Call, Reply, prompts, read_resource, resources, unexpected_answer};
use crate::outcome::{
    CallContext, CompletionOf, Completions, RequestError, ResourceEntry, ResourcePage, ResourceText,
};
use crate::spec::diagnostic::{listed, nearest};
use crate::spec::model::{Address, PromptSpec};
use crate::sqlite::introspect::TableEntry;
use crate::surface::ActiveResource;
use crate::worker::protocol::{Answer, Work};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value};
use tokio::sync::watch;

/// Tables and views in one page of resources/list.
const TABLES_A_PAGE: usize = 2000;

/// About how many bytes of names one page or one completion may hold: a name may have a megabyte.
const NAMES_BYTES: usize = 1 << 20;

/// Values in one completion (MCP, server/utilities/completion).
const MAX_COMPLETIONS: usize = 100;

/// What an expanded variable keeps as it is: RFC 6570, 3.2.2, the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

impl App {
    /// One page of the resources: those with a URI of their own, then one per table and view.
    ///
    /// # Errors
    /// A cursor that is none; as the worker says.
    pub async fn resources(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<ResourcePage, RequestError> {
        let _running = Running::new(self);
        let call = self.request("resources/list", PolicyId::Look, context);
        let result = self.page(&call, cursor.as_deref()).await;
        call.finish(&for_log(&result, |page| page.resources.len()));
        result.map_err(RequestError::of)
    }

    /// The resource of this URI.
    ///
    /// # Errors
    /// `NotFound` for a URI that stands for nothing here; as the worker says.
    pub async fn read_resource(&self, uri: &str, context: CallContext) -> Result<ResourceText, RequestError> {
        let _running = Running::new(self);
        let surface = self.core.surface();
        let found = surface.resources().iter().find_map(|active| Some((active, value_in(active, uri)?)));
        let policy = found.as_ref().map_or(PolicyId::Look, |(active, _)| active.policy);
        let call = self.request("resources/read", policy, context);
        call.note_query(uri);
        let result = match found {
            None => Err(RequestError::NotFound(self.unknown_resource(uri))),
            Some((_, Err(error))) => Err(RequestError::of(error)),
            Some((active, Ok(value))) => resource(&call, active, &value).await,
        };
        call.finish(&for_log(&result.as_ref().map_err(RequestError::error), |_| 1));
        result
    }

    /// The message of a prompt.
    ///
    /// # Errors
    /// An unknown prompt or table, an argument that does not fit; as the worker says.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        context: CallContext,
    ) -> Result<String, RequestError> {
        let _running = Running::new(self);
        let surface = self.core.surface();
        let found = surface.prompts().iter().find(|prompt| prompt.spec.name == name);
        let policy = found.map_or(PolicyId::Look, |prompt| prompt.policy);
        let call = self.request("prompts/get", policy, context);
        call.note_query(name);
        let result = match found {
            None => Err(self.unknown_prompt(name)),
            Some(prompt) => prompts::get(&call, &prompt.spec, arguments).await,
        };
        call.finish(&for_log(&result, |_| 1));
        result.map_err(RequestError::of)
    }

    /// Values for an argument that begin with what is there already, without regard to case.
    ///
    /// # Errors
    /// An unknown prompt, template or argument; as the worker says.
    pub async fn complete(
        &self,
        of: CompletionOf,
        argument: &str,
        begun: &str,
        context: CallContext,
    ) -> Result<Completions, RequestError> {
        let _running = Running::new(self);
        let call = self.request("completion/complete", PolicyId::Look, context);
        let (CompletionOf::Resource(name) | CompletionOf::Prompt(name)) = &of;
        call.note_query(name);
        call.note("argument", crate::render::one_line(argument, 100));
        call.note("value", crate::render::one_line(begun, 100));
        let result = self.completions(&call, &of, argument, begun).await;
        call.finish(&for_log(&result, |found| found.values.len()));
        result.map_err(RequestError::of)
    }

    /// Tells of every change to the list of resources made through this server; none where it changes nothing.
    #[must_use]
    pub fn schema_changes(&self) -> Option<watch::Receiver<u64>> {
        let surface = self.core.surface();
        let lists_tables = surface.resources().iter().any(|active| active.template().is_some());
        let changes = surface.tools().iter().any(|tool| tool.policy.policy().writes);
        (lists_tables && changes).then(|| self.core.schema_changes())
    }

    fn request<'a>(&'a self, name: &'a str, policy: PolicyId, context: CallContext) -> Call<'a> {
        Call::new(&self.core, self.core.surface(), name, policy, context.cancel, context.progress)
    }

    async fn page(&self, call: &Call<'_>, cursor: Option<&str>) -> Result<ResourcePage, ToolError> {
        let from = match cursor {
            None => 0,
            Some(cursor) => cursor
                .parse::<usize>()
                .map_err(|_| ToolError::arguments("unknown `cursor`; start again without one"))?,
        };
        let mut page = ResourcePage::default();
        let active = call.surface.resources();
        if from == 0 {
            for resource in active.iter().filter(|resource| resource.template().is_none()) {
                page.resources.push(fixed_entry(call, resource).await?);
            }
        }
        let Some((template, prefix)) =
            active.iter().find_map(|resource| Some((resource, resource.template()?)))
        else {
            return Ok(page);
        };
        let tables = tables(call).await?;
        let mut bytes = 0;
        let entries = tables.iter().skip(from).take(TABLES_A_PAGE).take_while(|table| {
            let first = bytes == 0;
            bytes += table.name.len() + 1;
            first || bytes <= NAMES_BYTES
        });
        let listed = page.resources.len();
        page.resources.extend(entries.map(|table| table_entry(table, template, prefix)));
        let next = from.saturating_add(page.resources.len() - listed);
        page.next_cursor = (next < tables.len()).then(|| next.to_string());
        Ok(page)
    }

    async fn completions(
        &self,
        call: &Call<'_>,
        of: &CompletionOf,
        argument: &str,
        begun: &str,
    ) -> Result<Completions, ToolError> {
        let (name, known) = match of {
            CompletionOf::Prompt(name) => {
                let prompt = call.surface.prompts().iter().find(|prompt| prompt.spec.name == *name);
                (
                    name,
                    prompt
                        .map(|prompt| arguments_of(&prompt.spec))
                        .ok_or_else(|| self.unknown_prompt(name))?,
                )
            }
            CompletionOf::Resource(uri) => {
                let resources = call.surface.resources();
                let active = resources.iter().find(|active| active.spec.address.shown() == *uri);
                let active = active.ok_or_else(|| self.unknown_resource(uri))?;
                let variable = match &active.spec.address {
                    Address::Uri(_) => Vec::new(),
                    Address::Template { variable, .. } => vec![(variable.as_str(), true)],
                };
                (uri, variable)
            }
        };
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let Some((_, completed)) = known.iter().find(|(known, _)| *known == argument) else {
            let argument = crate::render::one_line(argument, 60);
            let takes = if names.is_empty() { "none".to_owned() } else { listed(&names) };
            return Err(ToolError::arguments(format!(
                "`{argument}` is not an argument of `{name}`, which takes {takes}"
            )));
        };
        if !completed {
            return Ok(Completions::default());
        }
        let begun = begun.to_lowercase();
        let tables = tables(call).await?;
        let mut values: Vec<String> = tables
            .into_iter()
            .map(|t| t.name)
            .filter(|name| name.to_lowercase().starts_with(&begun))
            .collect();
        let total = values.len();
        values.truncate(MAX_COMPLETIONS);
        let mut bytes = 0;
        values.retain(|name| {
            bytes += name.len();
            bytes <= NAMES_BYTES
        });
        Ok(Completions { values, total })
    }

    fn unknown_resource(&self, uri: &str) -> ToolError {
        let known: Vec<String> =
            self.core.surface().resources().iter().map(|active| active.spec.address.shown()).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let uri = crate::render::one_line(uri, 200);
        ToolError::arguments(format!("unknown resource `{uri}`; there are {}", listed(&known)))
    }

    fn unknown_prompt(&self, name: &str) -> ToolError {
        let surface = self.core.surface();
        let known: Vec<&str> = surface.prompts().iter().map(|prompt| prompt.spec.name.as_str()).collect();
        let near = nearest(name, &known).map(|near| format!("; did you mean `{near}`?"));
        let near = near.unwrap_or_else(|| format!("; there are {}", listed(&known)));
        ToolError::arguments(format!("unknown prompt `{}`{near}", crate::render::one_line(name, 100)))
    }
}

/// What the URI gives the resource's variable, decoded once; an empty text for a resource without one. None
/// where the URI is another resource's.
fn value_in(active: &ActiveResource, uri: &str) -> Option<Result<String, ToolError>> {
    let Address::Template { prefix, variable, .. } = &active.spec.address else {
        return (active.spec.address.shown() == uri).then(|| Ok(String::new()));
    };
    let value = percent_decode_str(uri.strip_prefix(prefix.as_str())?).decode_utf8();
    let what = match value {
        Ok(value) if !value.is_empty() => return Some(Ok(value.into_owned())),
        Ok(_) => "is empty",
        Err(_) => "is not UTF-8 once decoded",
    };
    Some(Err(ToolError::arguments(format!("`{variable}` of `{}` {what}", active.spec.address.shown()))))
}

async fn resource(
    call: &Call<'_>,
    active: &ActiveResource,
    value: &str,
) -> Result<ResourceText, RequestError> {
    match read_resource(active.resource, call, value).await {
        Ok(text) => Ok(ResourceText { mime_type: active.spec.mime_type.clone(), text }),
        Err(error) if error.code == ErrorCode::UnknownTable => Err(RequestError::NotFound(error)),
        Err(error) => Err(RequestError::of(error)),
    }
}

/// A prompt's arguments, and whether there is anything to complete them from.
fn arguments_of(prompt: &PromptSpec) -> Vec<(&str, bool)> {
    prompt.arguments.iter().map(|argument| (argument.name.as_str(), argument.values.is_some())).collect()
}

async fn fixed_entry(call: &Call<'_>, active: &ActiveResource) -> Result<ResourceEntry, ToolError> {
    let size = match active.resource {
        Resource::Schema => u64::try_from(resources::schema(call).await?.len()).ok(),
        // To know would be to read the chain, or is not asked: tables are listed one by one.
        Resource::Resume | Resource::Table => None,
    };
    Ok(ResourceEntry {
        uri: active.spec.address.shown(),
        name: active.spec.name.clone(),
        title: active.spec.title.clone(),
        description: active.spec.description.clone(),
        mime_type: active.spec.mime_type.clone(),
        size,
    })
}

fn table_entry(table: &TableEntry, template: &ActiveResource, prefix: &str) -> ResourceEntry {
    let kind = if table.view { "View" } else { "Table" };
    let plural = if table.columns == 1 { "" } else { "s" };
    let owner = if table.system { " of the server's own" } else { "" };
    ResourceEntry {
        uri: format!("{prefix}{}", utf8_percent_encode(&table.name, RESERVED)),
        name: table.name.clone(),
        title: format!("{kind} {}", table.name),
        description: format!("{kind}{owner} with {} column{plural}.", table.columns),
        mime_type: template.spec.mime_type.clone(),
        size: None,
    }
}

async fn tables(call: &Call<'_>) -> Result<Vec<TableEntry>, ToolError> {
    match call.read(Work::Tables { counts: false }).await? {
        Answer::Tables(tables) => Ok(tables),
        _ => Err(unexpected_answer()),
    }
}

/// The result as the log takes it: how many, or the error.
fn for_log<T, E: std::borrow::Borrow<ToolError>>(
    result: &Result<T, E>,
    count: impl Fn(&T) -> usize,
) -> Result<Reply, ToolError> {
    match result {
        Ok(done) => Ok(Reply::text("", u64::try_from(count(done)).ok())),
        Err(error) => Err(error.borrow().clone()),
    }
}
