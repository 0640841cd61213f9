//! Resources, prompts and completions in the library's types, and what is announced of them.
//!
//! It says how they look on the wire and asks nobody.

use crate::error::StartError;
use crate::outcome::{CompletionOf, Completions, Offers, RequestError, ResourceEntry, ResourceText};
use rmcp::model::{
    CompletionInfo, ErrorData, GetPromptResult, Implementation, PaginatedRequestParams, PromptMessage,
    ReadResourceResult, Reference, Resource, ResourceContents, Role, ServerCapabilities,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The key of an error's stable code, in the `_meta` of a result and in the `data` of a JSON-RPC error.
pub(super) const ERROR_CODE_KEY: &str = "indelible/code";

/// Lists that change while the server runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changing {
    pub(super) resources: bool,
    pub(super) tools: bool,
}

/// What the server announces: tools always, the rest where it is there.
pub(super) fn capabilities(offers: Offers, changing: Changing) -> ServerCapabilities {
    let mut capabilities = ServerCapabilities::builder().enable_tools().build();
    if let Some(tools) = capabilities.tools.as_mut().filter(|_| changing.tools) {
        tools.list_changed = Some(true);
    }
    if offers.resources {
        let mut resources = rmcp::model::ResourcesCapability::default();
        resources.list_changed = changing.resources.then_some(true);
        capabilities.resources = Some(resources);
    }
    capabilities.prompts = offers.prompts.then(Default::default);
    capabilities.completions = offers.completions.then(Default::default);
    capabilities
}

/// Takes back that lists tell of their changes.
pub(super) fn tell_nobody(capabilities: &mut ServerCapabilities) {
    if let Some(tools) = &mut capabilities.tools {
        tools.list_changed = None;
    }
    if let Some(resources) = &mut capabilities.resources {
        resources.list_changed = None;
    }
}

/// Methods that come with what is offered.
pub(super) fn methods(offers: Offers, changing: Changing) -> Vec<&'static str> {
    let mut methods = Vec::new();
    if offers.resources {
        methods.extend(["resources/list", "resources/templates/list", "resources/read"]);
    }
    if offers.prompts {
        methods.extend(["prompts/list", "prompts/get"]);
    }
    if offers.completions {
        methods.push("completion/complete");
    }
    if changing.resources || changing.tools {
        methods.push("subscriptions/listen");
    }
    methods
}

/// What a method takes, for a client whose parameters do not fit it.
pub(super) fn takes(method: &str) -> &'static str {
    match method {
        "resources/read" => ", which takes `uri`, a string",
        "prompts/get" => ", which takes `name`, a string, and `arguments`, an object",
        "completion/complete" => ", which takes `ref`, and `argument` with `name` and `value`, both strings",
        "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
            ", which takes nothing but `cursor`, a string"
        }
        _ => "",
    }
}

/// A descriptor as the library's type, which passes over members it does not know: those are an error here.
///
/// # Errors
/// A descriptor that would not be sent whole.
pub(super) fn whole<T: DeserializeOwned + Serialize>(kind: &str, descriptor: Value) -> Result<T, StartError> {
    let name = descriptor.get("name").and_then(Value::as_str).unwrap_or("?").to_owned();
    let failed = |why: String| StartError::failure(format!("the descriptor of {kind} `{name}` {why}"));
    let typed: T =
        serde_json::from_value(descriptor.clone()).map_err(|e| failed(format!("is malformed: {e}")))?;
    match serde_json::to_value(&typed) {
        Ok(carried) if carried == descriptor => Ok(typed),
        _ => Err(failed("has members that are not sent".to_owned())),
    }
}

/// A list that has one page knows no cursor.
pub(super) fn one_page(method: &str, request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    if request.is_some_and(|request| request.cursor.is_some()) {
        return Err(ErrorData::invalid_params(format!("unknown cursor; {method} has one page"), None));
    }
    Ok(())
}

/// Who this server is, and what it is there for.
pub(super) fn implementation(description: String) -> Implementation {
    let mut info = Implementation::new("indelible", env!("CARGO_PKG_VERSION"));
    info.title = Some("Indelible".to_owned());
    info.description = Some(description);
    info
}

pub(super) fn resource(entry: ResourceEntry) -> Resource {
    let mut resource = Resource::new(entry.uri, entry.name);
    resource.title = Some(entry.title);
    resource.description = Some(entry.description);
    resource.mime_type = Some(entry.mime_type);
    resource.size = entry.size;
    resource
}

pub(super) fn contents(uri: String, resource: ResourceText) -> ReadResourceResult {
    let contents = ResourceContents::text(resource.text, uri).with_mime_type(resource.mime_type);
    ReadResourceResult::new(vec![contents])
}

pub(super) fn message(text: String, description: Option<String>) -> GetPromptResult {
    let mut result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
    result.description = description;
    result
}

/// # Errors
/// A kind of reference that is newer than this server.
pub(super) fn completion_of(reference: Reference) -> Result<CompletionOf, ErrorData> {
    match reference {
        Reference::Resource(template) => Ok(CompletionOf::Resource(template.uri)),
        Reference::Prompt(prompt) => Ok(CompletionOf::Prompt(prompt.name)),
        _ => Err(ErrorData::invalid_params("`ref` is neither `ref/resource` nor `ref/prompt`", None)),
    }
}

pub(super) fn completion(found: Completions) -> CompletionInfo {
    let has_more = found.values.len() < found.total;
    let mut info = CompletionInfo::default();
    info.values = found.values;
    info.total = u32::try_from(found.total).ok();
    info.has_more = Some(has_more);
    info
}

/// -32602 for what the client got wrong, -32002 (from 2026-07-28 on -32602) for a resource that is not there,
/// -32603 for what could not be done; `data` carries the stable code.
pub(super) fn refusal(error: &RequestError, uri: Option<&str>) -> ErrorData {
    let told = error.error();
    let mut data = json!({ ERROR_CODE_KEY: told.code.as_str() });
    if let (Some(uri), Some(data)) = (uri, data.as_object_mut()) {
        data.insert("uri".to_owned(), json!(uri));
    }
    let (words, data) = (told.message.clone(), Some(data));
    match error {
        RequestError::NotFound(_) => ErrorData::resource_not_found(words, data),
        RequestError::Invalid(_) => ErrorData::invalid_params(words, data),
        RequestError::Failed(_) => ErrorData::internal_error(words, data),
    }
}

/// An unknown name as an error repeats it: it may have megabytes.
pub(super) fn shown(name: &str) -> String {
    crate::render::one_line(name, 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::Tool;

    #[test]
    fn a_descriptor_is_carried_whole_or_refused() {
        let good = json!({"name": "t", "title": "T", "description": "d", "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true, "openWorldHint": false}});
        assert_eq!(serde_json::to_value(whole::<Tool>("tool", good.clone()).unwrap()).unwrap(), good);
        for (member, value) in [("descripton", json!("typo")), ("annotations", json!({"readOnly": true}))] {
            let mut broken = good.clone();
            broken[member] = value;
            assert!(whole::<Tool>("tool", broken).unwrap_err().message.contains("`t`"), "{member}");
        }
    }

    #[test]
    fn nothing_is_announced_that_is_not_there() {
        let announced = |offers, resources, tools| {
            serde_json::to_value(capabilities(offers, Changing { resources, tools })).unwrap()
        };
        assert_eq!(announced(Offers::default(), false, false), json!({"tools": {}}));
        assert_eq!(announced(Offers::default(), false, true), json!({"tools": {"listChanged": true}}));
        let all = Offers { resources: true, prompts: true, completions: true };
        let expected = json!({"completions": {}, "prompts": {}, "resources": {}, "tools": {}});
        assert_eq!(announced(all, false, false), expected);
        assert_eq!(announced(all, true, false)["resources"], json!({"listChanged": true}));
        let mut untold = capabilities(all, Changing { resources: true, tools: true });
        tell_nobody(&mut untold);
        assert_eq!(serde_json::to_value(untold).unwrap(), expected);
    }
}
