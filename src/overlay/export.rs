//! The tools in force as an overlay: what a person starts from who wants to change them.
//!
//! Laid over the built-in manifest it gives the same tools.

use crate::error::StartError;
use crate::spec::model::{Format, Manifest, ParamSpec, ParamType, ToolSpec};
use serde_json::{Map, Value, json};

/// The text of an overlay with everything of the profile in it.
///
/// # Errors
///
/// A profile that is not there, or YAML that cannot be written.
pub fn yaml(manifest: &Manifest, profile: &str) -> Result<String, StartError> {
    let profile =
        manifest.profile(profile).ok_or_else(|| StartError::usage(format!("unknown profile `{profile}`")))?;
    let tools: Vec<&ToolSpec> = profile.tools.iter().filter_map(|id| manifest.tool(id)).collect();
    let entries: Vec<Value> = tools.iter().map(|tool| entry(tool)).collect();
    let ids: Vec<&str> =
        tools.iter().filter(|t| t.statement.is_none()).map(|tool| tool.id.as_str()).collect();
    let names: Vec<&str> = tools.iter().filter(|t| t.statement.is_some()).map(|t| t.name.as_str()).collect();
    let only: Vec<&str> = ids.into_iter().chain(names).collect();
    let overlay = json!({
        "instructions": { "replace": literal(&profile.instructions) },
        "only": only,
        "tools": entries,
    });
    let text = serde_yaml::to_string(&overlay)
        .map_err(|error| StartError::failure(format!("the tools cannot be written as YAML: {error}")))?;
    let profile = &profile.id;
    Ok(format!(
        "# The tools of profile {profile}, to be changed and served with --profile {profile} --tools FILE.\n{text}"
    ))
}

fn entry(tool: &ToolSpec) -> Value {
    let mut entry = Map::new();
    let statement = tool.statement.as_ref();
    if statement.is_none() {
        entry.insert("tool".to_owned(), json!(tool.id));
    }
    entry.insert("name".to_owned(), json!(tool.name));
    entry.insert("title".to_owned(), json!(literal(&tool.title)));
    if let Some(statement) = statement {
        entry.insert("policy".to_owned(), json!(tool.policy));
        if let Some(limit) = statement.limit {
            entry.insert("limit".to_owned(), json!(limit));
        }
        if let Some(output) = statement.output {
            let output = if output == Format::Csv { "csv" } else { "rows" };
            entry.insert("output".to_owned(), json!(output));
        }
        entry.insert("statement".to_owned(), json!(statement.sql));
    }
    let words = &tool.words;
    let parts = [
        ("purpose", &words.purpose),
        ("use", &words.usage),
        ("returns", &words.returns),
        ("refuses", &words.refuses),
        ("effects", &words.effects),
    ];
    let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
    let parts: Map<String, Value> = parts.map(|(key, text)| (key.to_owned(), json!(literal(text)))).collect();
    entry.insert("words".to_owned(), Value::Object(parts));
    if !tool.params.is_empty() {
        let params: Vec<Value> =
            tool.params.iter().map(|param| parameter(param, statement.is_some())).collect();
        entry.insert("params".to_owned(), json!(params));
    }
    Value::Object(entry)
}

fn parameter(param: &ParamSpec, own: bool) -> Value {
    let mut entry = Map::new();
    entry.insert("name".to_owned(), json!(param.name));
    if own {
        entry.insert("type".to_owned(), json!(param.kind.schema_name()));
        if let Some(items) = param.kind.item().and_then(ParamType::schema_name) {
            entry.insert("items".to_owned(), json!(items));
        }
        if param.required {
            entry.insert("required".to_owned(), json!(true));
        }
    }
    entry.insert("description".to_owned(), json!(literal(&param.description)));
    if !param.choices.is_empty() {
        entry.insert("enum".to_owned(), literals(&json!(param.choices)));
    }
    if let Some(pattern) = &param.pattern {
        entry.insert("pattern".to_owned(), json!(literal(pattern)));
    }
    let values = [("minimum", &param.minimum), ("maximum", &param.maximum), ("default", &param.default)];
    for (key, value) in values {
        if let Some(value) = value {
            entry.insert(key.to_owned(), literals(value));
        }
    }
    Value::Object(entry)
}

/// The text with nothing in it that would be taken for a variable of the environment.
fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

fn literals(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(literal(text)),
        Value::Array(items) => items.iter().map(literals).collect(),
        other => other.clone(),
    }
}
