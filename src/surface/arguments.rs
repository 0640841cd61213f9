//! Whether a call's arguments fit its tool, and the arguments as handlers get them: known, of the right
//! type, within bounds, defaults filled in.
//!
//! It forgives what clients and models commonly do (digits in a string, 2.0, JSON text for a list) and says
//! the rest in one line. What a value means is the handler's to check.

use super::SurfaceSettings;
use crate::error::ToolError;
use crate::spec::diagnostic::{listed, nearest};
use crate::spec::model::{ParamSpec, ParamType, ToolSpec};
use crate::spec::settings::setting_in_braces;
use serde_json::{Map, Value};

/// Checks `arguments` against the tool's parameters.
///
/// The result holds a parameter in the order of the manifest when it was given or has a default; `null` counts as
/// not given.
///
/// # Errors
///
/// `INVALID_ARGUMENTS` with every mistake in one line.
pub fn check(
    spec: &ToolSpec,
    settings: &SurfaceSettings,
    arguments: Option<Map<String, Value>>,
) -> Result<Map<String, Value>, ToolError> {
    let mut given = arguments.unwrap_or_default();
    let mut mistakes: Vec<String> = given
        .keys()
        .filter(|name| !spec.params.iter().any(|param| param.name == **name))
        .map(|name| unknown(name, spec))
        .collect();
    let mut checked = Map::new();
    for param in &spec.params {
        let value = given.remove(&param.name).unwrap_or(Value::Null);
        match one(param, settings, value, &spec.name) {
            Ok(Some(value)) => {
                checked.insert(param.name.clone(), value);
            }
            Ok(None) => {}
            Err(mistake) => mistakes.push(mistake),
        }
    }
    if mistakes.is_empty() { Ok(checked) } else { Err(ToolError::arguments(mistakes.join("; "))) }
}

fn unknown(name: &str, spec: &ToolSpec) -> String {
    let known: Vec<&str> = spec.params.iter().map(|param| param.name.as_str()).collect();
    let start = format!("`{}` is not an argument of {}", shown(name), spec.name);
    match (nearest(name, &known), known.is_empty()) {
        (_, true) => format!("{start}, which takes none"),
        (Some(near), _) => format!("{start}; did you mean `{near}`? it takes {}", listed(&known)),
        (None, _) => format!("{start}, which takes {}", listed(&known)),
    }
}

fn one(
    param: &ParamSpec,
    settings: &SurfaceSettings,
    value: Value,
    tool: &str,
) -> Result<Option<Value>, String> {
    if value.is_null() {
        if param.required {
            return Err(format!("`{}` is missing; {tool} needs it", param.name));
        }
        return Ok(param.default.as_ref().map(|default| resolved(default, settings)));
    }
    let name = &param.name;
    match param.kind {
        ParamType::String => match value {
            Value::String(_) => Ok(Some(value)),
            other => Err(format!("`{name}` must be a string, got {}", kind(&other))),
        },
        ParamType::Integer => integer(param, settings, &value).map(|number| Some(Value::from(number))),
        ParamType::Boolean => boolean(&value)
            .map(|flag| Some(Value::Bool(flag)))
            .ok_or_else(|| format!("`{name}` must be true or false, got {}", kind(&value))),
        ParamType::StringList => string_list(name, value).map(Some),
        ParamType::Binding => binding(name, value).map(Some),
    }
}

fn integer(param: &ParamSpec, settings: &SurfaceSettings, value: &Value) -> Result<u64, String> {
    let name = &param.name;
    let number = match value {
        Value::Number(number) => number.as_i128().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().parse::<i128>().ok(),
        _ => None,
    };
    let Some(number) = number else {
        return Err(format!("`{name}` must be a whole number, got {}", kind(value)));
    };
    let bound = |limit: &Option<Value>| limit.as_ref().and_then(|limit| resolved(limit, settings).as_u64());
    let (least, most) = (bound(&param.minimum).unwrap_or(0), bound(&param.maximum));
    match u64::try_from(number) {
        Ok(number) if number >= least && most.is_none_or(|most| number <= most) => Ok(number),
        _ => Err(match most {
            Some(most) => format!("`{name}` must be between {least} and {most}, got {number}"),
            None => format!("`{name}` must be at least {least}, got {number}"),
        }),
    }
}

/// 2.0 as 2. Beyond 2^53 a double stands for several whole numbers, so it is not taken for one.
fn whole(number: f64) -> Option<i128> {
    (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0).then_some(number as i128)
}

fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => text.trim().to_ascii_lowercase().parse().ok(),
        _ => None,
    }
}

fn string_list(name: &str, value: Value) -> Result<Value, String> {
    let value = from_json_text(value);
    let Value::Array(items) = &value else {
        return Err(format!("`{name}` must be a list of strings, such as [\"a\",\"b\"], got {}", kind(&value)));
    };
    match items.iter().enumerate().find(|(_, item)| !item.is_string()) {
        Some((index, item)) => {
            Err(format!("`{name}` must be a list of strings, got {} at position {}", kind(item), index + 1))
        }
        None => Ok(value),
    }
}

fn binding(name: &str, value: Value) -> Result<Value, String> {
    let value = from_json_text(value);
    if value.is_array() || value.is_object() {
        return Ok(value);
    }
    Err(format!("`{name}` must be an array (values by position) or an object (values by name), got {}", kind(&value)))
}

/// An array or object that came as JSON text; everything else as it is.
fn from_json_text(value: Value) -> Value {
    let parsed = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    parsed.filter(|parsed| parsed.is_array() || parsed.is_object()).unwrap_or(value)
}

fn resolved(value: &Value, settings: &SurfaceSettings) -> Value {
    let setting = value.as_str().and_then(setting_in_braces).and_then(|name| settings.whole(name));
    setting.map_or_else(|| value.clone(), Value::from)
}

/// What was given, in words; numbers and short strings themselves.
fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the string \"{}\"", shown(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// At most 60 characters on one line, whatever was sent.
fn shown(text: &str) -> String {
    let mut line: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    if text.chars().nth(60).is_some() {
        line.push_str("...");
    }
    line
}
