//! Prompts: a template of tools.yaml with its arguments and, where one names a table, the table's structure.
//!
//! The words are tools.yaml's. Whatever comes from the database stands in a block that it cannot close.

use super::{Call, resources};
use crate::error::ToolError;
use crate::render::markdown;
use crate::spec::diagnostic::{listed, nearest};
use crate::spec::model::{PromptArgument, PromptSpec, STRUCTURE};
use serde_json::{Map, Value};

/// Characters of an argument that is free text.
const MAX_ARGUMENT_CHARS: usize = 2000;

/// The prompt's message.
///
/// # Errors
/// `INVALID_ARGUMENTS` naming the argument; `UNKNOWN_TABLE`; as the worker says.
pub async fn get(
    call: &Call<'_>,
    prompt: &PromptSpec,
    arguments: &Map<String, Value>,
) -> Result<String, ToolError> {
    if let Some(unknown) = arguments.keys().find(|name| prompt.arguments.iter().all(|a| a.name != **name)) {
        return Err(unknown_argument(prompt, unknown));
    }
    let mut values = Vec::new();
    for argument in &prompt.arguments {
        let value = given(prompt, argument, arguments.get(&argument.name))?;
        let Some(table) = value.as_deref().filter(|_| argument.values.is_some()) else {
            if let Some(text) = &value {
                call.note(&argument.name, text.as_str());
            }
            values.push((argument.name.as_str(), value));
            continue;
        };
        call.note("table", table);
        let detail = resources::described(call, table).await?.within(call.caps().max_result_bytes);
        let json = resources::json(&detail)?;
        values.push((STRUCTURE, Some(markdown::code_block("json", &json))));
        values.push((argument.name.as_str(), Some(detail.name)));
    }
    call.surface.prompt_text(prompt, values).map_err(ToolError::arguments)
}

/// The argument as text; none where it is left out or blank and may be.
fn given(
    prompt: &PromptSpec,
    argument: &PromptArgument,
    value: Option<&Value>,
) -> Result<Option<String>, ToolError> {
    let name = &argument.name;
    let text = match value {
        None | Some(Value::Null) if argument.required => {
            return Err(ToolError::arguments(format!("`{name}` is missing; {} needs it", prompt.name)));
        }
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text,
        Some(_) => return Err(ToolError::arguments(format!("`{name}` must be a string"))),
    };
    if text.trim().is_empty() {
        if argument.required {
            return Err(ToolError::arguments(format!(
                "`{name}` must not be empty; {} needs it",
                prompt.name
            )));
        }
        return Ok(None);
    }
    if text.chars().nth(MAX_ARGUMENT_CHARS).is_some() {
        let message = format!("`{name}` must have at most {MAX_ARGUMENT_CHARS} characters");
        return Err(ToolError::arguments(message));
    }
    // A table's name counts with every blank; a wish does not.
    Ok(Some(if argument.values.is_some() { text.clone() } else { text.trim().to_owned() }))
}

fn unknown_argument(prompt: &PromptSpec, name: &str) -> ToolError {
    let known: Vec<&str> = prompt.arguments.iter().map(|argument| argument.name.as_str()).collect();
    let near = nearest(name, &known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let takes = if known.is_empty() { "none".to_owned() } else { listed(&known) };
    let name = crate::render::one_line(name, 60);
    ToolError::arguments(format!("`{name}` is not an argument of {}, which takes {takes}{near}", prompt.name))
}
