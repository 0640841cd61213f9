//! Whether a call's arguments fit its tool, and the arguments as handlers get them: known, of the right
//! type, within bounds, defaults filled in.
//!
//! It forgives what clients and models commonly do (digits in a string, 2.0, JSON text for a list) and says
//! the rest in one line. What a value means is the handler's to check.

use super::{SurfaceSettings, pattern, values};
use crate::error::ToolError;
use crate::spec::descriptor::Context;
use crate::spec::diagnostic::{listed, nearest};
use crate::spec::model::{ParamSpec, ParamType, ToolSpec};
use serde_json::{Map, Value};

/// Unknown arguments that are named one by one.
const MOST_UNKNOWN: usize = 5;

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
    let mut strangers = given.keys().filter(|name| !spec.params.iter().any(|param| param.name == **name));
    let mut mistakes: Vec<String> =
        strangers.by_ref().take(MOST_UNKNOWN).map(|name| unknown(name, spec)).collect();
    match strangers.count() {
        0 => {}
        more => mistakes.push(format!("{more} more arguments are unknown")),
    }
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

/// A value that was given for a parameter, as handlers get it.
///
/// # Errors
///
/// What is wrong with it, in one line.
pub fn value(param: &ParamSpec, settings: &SurfaceSettings, value: Value) -> Result<Value, String> {
    let rules = Rules::of(param, settings);
    match param.kind {
        ParamType::Binding => binding(&param.name, value),
        ParamType::Any => Ok(value),
        ParamType::Object => object(&format!("`{}`", param.name), value),
        ParamType::Duration => {
            rules.scalar(ParamType::Duration, &format!("`{}`", param.name), as_text(value))
        }
        kind => match kind.item() {
            None => rules.scalar(kind, &format!("`{}`", param.name), value),
            Some(item) => list(&param.name, item, &rules, value),
        },
    }
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
        return Ok(Context::new(settings, &[], false).default_of(param));
    }
    self::value(param, settings, value).map(Some)
}

/// What a value, or each item of a list, must keep to.
struct Rules<'p> {
    least: Option<Value>,
    most: Option<Value>,
    choices: &'p [Value],
    pattern: Option<&'p str>,
}

impl<'p> Rules<'p> {
    fn of(param: &'p ParamSpec, settings: &SurfaceSettings) -> Self {
        let context = Context::new(settings, &[], false);
        Self {
            least: param.minimum.as_ref().map(|value| context.resolve(value)),
            most: context.maximum_of(param),
            choices: &param.choices,
            pattern: param.pattern.as_deref(),
        }
    }

    /// `what` names the value in the mistake.
    fn scalar(&self, kind: ParamType, what: &str, value: Value) -> Result<Value, String> {
        let value = match kind {
            ParamType::Boolean => boolean(&value)
                .map(Value::Bool)
                .ok_or_else(|| format!("{what} must be true or false, got {}", shown_value(&value)))?,
            ParamType::Integer => integer(self, 0, u64::MAX.into(), what, &value)?,
            ParamType::Signed => integer(self, i64::MIN.into(), i64::MAX.into(), what, &value)?,
            ParamType::Number => self.number(what, &value)?,
            _ if value.is_string() => value,
            _ => return Err(format!("{what} must be a string, got {}", shown_value(&value))),
        };
        // JSON Schema holds 2 and 2.0 for equal.
        let equal = |choice: &Value| {
            *choice == value
                || (choice.is_number() && choice.as_f64().is_some() && choice.as_f64() == value.as_f64())
        };
        if !self.choices.is_empty() && !self.choices.iter().any(equal) {
            let choices: Vec<String> = self.choices.iter().map(ToString::to_string).collect();
            return Err(format!("{what} must be one of {}, got {}", choices.join(", "), shown_value(&value)));
        }
        if let (Some(pattern), Some(text)) = (self.pattern, value.as_str())
            && !pattern::compiled(pattern).is_ok_and(|pattern| pattern.is_match(text))
        {
            return Err(format!("{what} must match the pattern `{pattern}`, got {}", shown_value(&value)));
        }
        Ok(value)
    }

    fn number(&self, what: &str, value: &Value) -> Result<Value, String> {
        let number = match value {
            Value::Number(_) => value.as_f64(),
            Value::String(text) => text.trim().parse::<f64>().ok(),
            _ => None,
        };
        let Some(number) = number.filter(|number| number.is_finite()) else {
            return Err(format!("{what} must be a number, got {}", shown_value(value)));
        };
        let bound = |limit: &Option<Value>| limit.as_ref().and_then(Value::as_f64);
        let (least, most) = (bound(&self.least), bound(&self.most));
        if least.is_some_and(|least| number < least) || most.is_some_and(|most| number > most) {
            return Err(match (least, most) {
                (Some(least), Some(most)) => {
                    format!("{what} must be between {least} and {most}, got {number}")
                }
                (Some(least), None) => format!("{what} must be at least {least}, got {number}"),
                _ => format!("{what} must be at most {}, got {number}", most.unwrap_or_default()),
            });
        }
        Ok(Value::from(number))
    }
}

fn integer(rules: &Rules<'_>, floor: i128, top: i128, what: &str, value: &Value) -> Result<Value, String> {
    let number = match value {
        Value::Number(number) => number.as_i128().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().parse::<i128>().ok(),
        _ => None,
    };
    let Some(number) = number else {
        return Err(format!("{what} must be a whole number, got {}", shown_value(value)));
    };
    let bound = |limit: &Option<Value>| match limit {
        Some(Value::Number(number)) => number.as_i128().or_else(|| whole(number.as_f64()?)),
        _ => None,
    };
    let (least, most) = (bound(&rules.least).unwrap_or(floor), bound(&rules.most));
    if number >= least && number <= most.unwrap_or(top) {
        let small = i64::try_from(number).map(Value::from).ok();
        let large = || u64::try_from(number).map(Value::from).ok();
        if let Some(number) = small.or_else(large) {
            return Ok(number);
        }
    }
    Err(match most {
        Some(most) => format!("{what} must be between {least} and {most}, got {number}"),
        None if number > top => format!("{what} must be at most {top}, got {number}"),
        None => format!("{what} must be at least {least}, got {number}"),
    })
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

fn list(name: &str, item: ParamType, rules: &Rules<'_>, value: Value) -> Result<Value, String> {
    let (items, example) = match item {
        ParamType::Signed => ("whole numbers", "[1,2]"),
        ParamType::Number => ("numbers", "[1,2.5]"),
        ParamType::Boolean => ("booleans", "[true,false]"),
        ParamType::Object => ("objects", "[{...},{...}]"),
        _ => ("strings", "[\"a\",\"b\"]"),
    };
    let given = match from_json_text(value) {
        Value::Array(given) => given,
        other => {
            return Err(format!(
                "`{name}` must be a list of {items}, such as {example}, got {}",
                shown_value(&other)
            ));
        }
    };
    let one = |(index, value): (usize, Value)| {
        if item == ParamType::String && !value.is_string() {
            let value = shown_value(&value);
            return Err(format!("`{name}` must be a list of {items}, got {value} at position {}", index + 1));
        }
        let what = format!("position {} of `{name}`", index + 1);
        if item == ParamType::Object { object(&what, value) } else { rules.scalar(item, &what, value) }
    };
    given.into_iter().enumerate().map(one).collect::<Result<_, _>>().map(Value::Array)
}

fn binding(name: &str, value: Value) -> Result<Value, String> {
    let value = from_json_text(value);
    if value.is_array() || value.is_object() {
        return Ok(value);
    }
    Err(format!(
        "`{name}` must be an array (values by position) or an object (values by name), got {}",
        shown_value(&value)
    ))
}

fn object(what: &str, value: Value) -> Result<Value, String> {
    let value = from_json_text(value);
    if value.is_object() {
        return Ok(value);
    }
    Err(format!("{what} must be an object, got {}", shown_value(&value)))
}

/// A number as its digits: seconds may come as 30 and as "30".
fn as_text(value: Value) -> Value {
    if value.is_number() { Value::String(value.to_string()) } else { value }
}

/// An array or object that came as JSON text; everything else as it is.
fn from_json_text(value: Value) -> Value {
    let text = value.as_str().filter(|text| !values::too_many(text.as_bytes()));
    let parsed = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
    parsed.filter(|parsed| parsed.is_array() || parsed.is_object()).unwrap_or(value)
}

/// What was given, in words; numbers and short strings themselves.
fn shown_value(value: &Value) -> String {
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

#[cfg(test)]
mod tests;
