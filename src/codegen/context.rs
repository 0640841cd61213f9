//! What the templates print, prepared: Rust names, types, rendered descriptions.
//!
//! Names are made here and nowhere else, so that generated code and its dispatch agree.

use super::Texts;
use crate::policy::action::ActionKind;
use crate::spec::Checked;
use crate::spec::descriptor::{Context, Renderer};
use crate::spec::model::{
    Address, Manifest, ParamSpec, ParamType, ProfileSpec, ResourceSpec, Serves, ToolSpec,
};
use crate::spec::policy_model::{Connection, PolicySpec, ServerWork};
use crate::spec::settings::SurfaceSettings;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// For `generated.rs.j2` and `dispatch.rs.j2`.
pub(crate) fn rust(checked: &Checked, texts: Texts<'_>) -> Value {
    json!({
        "tools": checked.manifest.tools.iter().map(|spec| tool(spec, &checked.manifest)).collect::<Vec<_>>(),
        "resources": checked.manifest.resources.iter().map(resource).collect::<Vec<_>>(),
        "policies": checked.policy.policies.iter().map(policy).collect::<Vec<_>>(),
        "actions": checked.policy.actions.iter().map(|action| json!({
            "kind": action.action.variant(),
            "label": action.label,
            "instead": action.instead,
            "reason": action.reason,
        })).collect::<Vec<_>>(),
        "protected": checked.policy.protected,
        "manifest_sha256": sha256(texts.tools),
        "policy_sha256": sha256(texts.policy),
    })
}

/// For `TOOLS.md.j2`: every profile with its tools as clients see them under the profile's defaults.
pub(crate) fn tools_page(checked: &Checked) -> Result<Value, String> {
    let mut profiles = Vec::new();
    for profile in &checked.manifest.profiles {
        let specs: Vec<&ToolSpec> = profile.tools.iter().filter_map(|id| checked.manifest.tool(id)).collect();
        let names: Vec<&str> = specs.iter().map(|tool| tool.name.as_str()).collect();
        let context = Context::new(&SurfaceSettings::for_profile(&profile.defaults), &names, false);
        let renderer = Renderer::new(&context);
        let mut tools = Vec::new();
        for spec in specs {
            let descriptor = renderer.descriptor(spec, None)?;
            let params: Vec<Value> = spec.params.iter().map(|param| param_row(param, &descriptor)).collect();
            tools.push(json!({
                "name": spec.name,
                "title": spec.title,
                "policy": spec.policy,
                "handler": spec.handler,
                "hints": spec.annotations,
                "description": descriptor.get("description"),
                "params": params,
            }));
        }
        profiles.push(json!({
            "id": profile.id,
            "title": profile.title,
            "instructions": renderer.text(&profile.instructions)?,
            "tools": tools,
            "resources": resource_rows(&checked.manifest, profile, &renderer)?,
            "prompts": prompt_rows(&checked.manifest, profile, &renderer)?,
        }));
    }
    Ok(json!({ "profiles": profiles }))
}

fn resource_rows(
    manifest: &Manifest,
    profile: &ProfileSpec,
    renderer: &Renderer<'_>,
) -> Result<Vec<Value>, String> {
    let specs = profile.resources.iter().filter_map(|id| manifest.resource(id));
    specs
        .map(|spec| {
            Ok(json!({
                "uri": spec.address.shown(),
                "title": spec.title,
                "mime_type": spec.mime_type,
                "policy": spec.policy,
                "description": renderer.text(&spec.description)?,
            }))
        })
        .collect()
}

fn prompt_rows(
    manifest: &Manifest,
    profile: &ProfileSpec,
    renderer: &Renderer<'_>,
) -> Result<Vec<Value>, String> {
    let specs = profile.prompts.iter().filter_map(|id| manifest.prompt(id));
    specs
        .map(|spec| {
            Ok(json!({
                "name": spec.name,
                "title": spec.title,
                "policy": spec.policy,
                "description": renderer.text(&spec.description)?,
                "arguments": spec.arguments,
                "text": spec.text,
            }))
        })
        .collect()
}

/// For `ERRORS.md.j2`.
pub(crate) fn errors_page(checked: &Checked) -> Value {
    json!({ "errors": checked.manifest.errors })
}

/// For `POLICY.md.j2`.
pub(crate) fn policy_page(checked: &Checked) -> Value {
    let file = &checked.policy;
    let policies: Vec<Value> = file
        .policies
        .iter()
        .map(|policy| {
            let tools: Vec<&str> = checked
                .manifest
                .tools
                .iter()
                .filter(|t| t.policy == policy.id)
                .map(|t| t.id.as_str())
                .collect();
            json!({
                "id": policy.id,
                "title": policy.title,
                "tools": tools,
                "connection": match policy.connection {
                    Connection::ReadOnly => "read-only",
                    Connection::ReadWrite => "read and write",
                    Connection::None => "no agent-written SQL",
                },
                "server_does": match policy.server_does {
                    ServerWork::Nothing => "",
                    ServerWork::Look => "reads",
                    ServerWork::Append => "appends to its own tables",
                    ServerWork::Copy => "writes a copy beside the database",
                    ServerWork::Replace => "replaces everything but its own tables",
                    ServerWork::Reach => "sends a request to another machine",
                },
                "selects_only": policy.selects_only,
                "resources": checked.manifest.resources.iter().filter(|r| r.policy == policy.id)
                    .map(|r| r.address.shown()).collect::<Vec<_>>(),
                "prompts": checked.manifest.prompts.iter().filter(|p| p.policy == policy.id)
                    .map(|p| p.name.as_str()).collect::<Vec<_>>(),
                "writes": policy.writes(),
                "can_lose": policy.can_lose(),
                "actions": policy.actions.iter().map(|action| action.name()).collect::<Vec<_>>(),
                "pragmas_read": policy.pragmas_read,
                "pragmas_introspect": policy.pragmas_introspect,
                "functions_denied": policy.functions_denied,
                "modules": policy.modules,
                "counts_overwrites": policy.counts_overwrites,
                "snapshots_first": policy.snapshots_first,
            })
        })
        .collect();
    let actions: Vec<Value> = file
        .actions
        .iter()
        .map(|words| {
            let allowed: Vec<&str> = file
                .policies
                .iter()
                .filter(|policy| policy.actions.contains(&words.action))
                .map(|policy| policy.id.as_str())
                .collect();
            json!({
                "name": words.action.name(),
                "label": words.label,
                "allowed": allowed,
                "instead": words.instead,
                "reason": words.reason,
            })
        })
        .collect();
    json!({
        "policies": policies,
        "actions": actions,
        "protected": file.protected,
        "exceptions": file.exceptions,
    })
}

/// The same for the dispatch to the handlers of one module.
pub(crate) fn under(context: &Value, root: &str) -> Value {
    let mut context = context.clone();
    if let Some(map) = context.as_object_mut() {
        map.insert("root".to_owned(), root.into());
    }
    context
}

fn tool(spec: &ToolSpec, manifest: &Manifest) -> Value {
    let (family, function) = spec.handler.split_once('.').unwrap_or_default();
    json!({
        "id": spec.id,
        "title": spec.title,
        "variant": upper_camel(&spec.id),
        "root": match manifest.serves(&spec.id) {
            Serves::Database => "handlers",
            Serves::Group => "primitives",
        },
        "family": family,
        "function": function,
        "input": format!("{}Input", upper_camel(function)),
        "params": spec.params.iter().map(param).collect::<Vec<_>>(),
        "fixed": spec.fixed,
        "output": spec.output,
    })
}

fn resource(spec: &ResourceSpec) -> Value {
    let (family, function) = spec.handler.split_once('.').unwrap_or_default();
    json!({
        "id": spec.id,
        "title": spec.title,
        "variant": upper_camel(&spec.id),
        "family": family,
        "function": function,
        "template": matches!(spec.address, Address::Template { .. }),
    })
}

fn param(spec: &ParamSpec) -> Value {
    let plain = match spec.kind {
        ParamType::String => "String",
        ParamType::Integer => "u64",
        ParamType::Boolean => "bool",
        ParamType::StringList => "Vec<String>",
        ParamType::Signed => "i64",
        ParamType::Number => "f64",
        ParamType::SignedList => "Vec<i64>",
        ParamType::NumberList => "Vec<f64>",
        ParamType::BooleanList => "Vec<bool>",
        ParamType::Binding | ParamType::Any => "serde_json::Value",
        ParamType::Object => "serde_json::Map<String, serde_json::Value>",
        ParamType::ObjectList => "Vec<serde_json::Map<String, serde_json::Value>>",
        ParamType::Duration => "String",
    };
    json!({
        "name": spec.name,
        "field": spec.field_name(),
        "renamed": spec.field_name() != spec.name,
        "kind": kind_words(spec.kind),
        "required": spec.required,
        "completed": !spec.required && spec.default.is_some(),
        "argument_type": if spec.required { plain.to_owned() } else { format!("Option<{plain}>") },
    })
}

fn param_row(spec: &ParamSpec, descriptor: &Value) -> Value {
    let shown = |key: &str| {
        let pointer = format!("/inputSchema/properties/{}/{key}", spec.name);
        descriptor
            .pointer(&pointer)
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    json!({
        "name": spec.name,
        "kind": kind_words(spec.kind),
        "required": spec.required,
        "minimum": shown("minimum"),
        "maximum": shown("maximum"),
        "default": shown("default"),
        "description": shown("description"),
    })
}

fn kind_words(kind: ParamType) -> &'static str {
    match kind {
        ParamType::String => "string",
        ParamType::Integer | ParamType::Signed => "integer",
        ParamType::Number => "number",
        ParamType::Boolean => "boolean",
        ParamType::StringList => "list of strings",
        ParamType::SignedList => "list of integers",
        ParamType::NumberList => "list of numbers",
        ParamType::BooleanList => "list of booleans",
        ParamType::Binding => "array or object",
        ParamType::Any => "any",
        ParamType::Object => "object",
        ParamType::ObjectList => "list of objects",
        ParamType::Duration => "duration",
    }
}

fn policy(spec: &PolicySpec) -> Value {
    json!({
        "id": spec.id,
        "title": spec.title,
        "variant": upper_camel(&spec.id),
        "constant": spec.id.to_uppercase(),
        "tool": spec.tool.as_deref().unwrap_or_default(),
        "connection": match spec.connection {
            Connection::ReadOnly => "ReadOnly",
            Connection::ReadWrite => "ReadWrite",
            Connection::None => "None",
        },
        "selects_only": spec.selects_only,
        "writes": spec.writes(),
        "can_lose": spec.can_lose(),
        "actions": spec.actions.iter().copied().map(ActionKind::variant).collect::<Vec<_>>(),
        "pragmas_read": spec.pragmas_read,
        "pragmas_introspect": spec.pragmas_introspect,
        "functions_denied": spec.functions_denied,
        "modules": spec.modules,
        "counts_overwrites": spec.counts_overwrites,
        "snapshots_first": spec.snapshots_first,
    })
}

/// `MemoryReadQuery` of `memory.read_query`.
fn upper_camel(name: &str) -> String {
    let mut camel = String::new();
    for part in name.split(['.', '_']) {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
