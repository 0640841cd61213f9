//! Whether a call's arguments fit its tool, and the arguments as handlers get them: known, of the right
//! type, within bounds, defaults filled in.
//!
//! It forgives what clients and models commonly do (digits in a string, 2.0, JSON text for a list) and says
//! the rest in one line. What a value means is the handler's to check.

use super::SurfaceSettings;
use crate::error::ToolError;
use crate::spec::descriptor::Context;
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
        return Ok(Context::new(settings, &[], false).default_of(param));
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
        return Err(format!(
            "`{name}` must be a list of strings, such as [\"a\",\"b\"], got {}",
            kind(&value)
        ));
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
    Err(format!(
        "`{name}` must be an array (values by position) or an object (values by name), got {}",
        kind(&value)
    ))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::built_in_manifest;
    use proptest::prelude::*;
    use serde_json::json;

    fn settings() -> SurfaceSettings {
        let manifest = built_in_manifest().unwrap();
        let defaults = manifest.profile("memory").unwrap().defaults.clone();
        SurfaceSettings { max_rows: 50, default_limit: 20, ..SurfaceSettings::for_profile(&defaults) }
    }

    fn run(tool: &str, arguments: Value) -> Result<Value, String> {
        let manifest = built_in_manifest().unwrap();
        let spec = manifest.tool(&format!("memory.{tool}")).unwrap();
        let given = match arguments {
            Value::Null => None,
            Value::Object(map) => Some(map),
            other => panic!("not arguments: {other}"),
        };
        check(spec, &settings(), given).map(Value::Object).map_err(|error| error.message)
    }

    #[test]
    fn what_clients_commonly_send_is_taken() {
        #[track_caller]
        fn taken(tool: &str, given: Value, expected: Value) {
            assert_eq!(run(tool, given.clone()), Ok(expected), "{tool} {given}");
        }
        taken("read_query", json!({"query": "q"}), json!({"query": "q", "limit": 20}));
        taken("read_query", json!({"query": "q", "limit": "12"}), json!({"query": "q", "limit": 12}));
        taken("read_query", json!({"query": "q", "limit": 2.0}), json!({"query": "q", "limit": 2}));
        taken("read_query", json!({"query": "q", "limit": null}), json!({"query": "q", "limit": 20}));
        taken("read_query", json!({"query": "", "limit": 50}), json!({"query": "", "limit": 50}));
        let bound = json!({"query": "q", "params": [1, "x"], "limit": 20});
        taken("read_query", json!({"query": "q", "params": [1, "x"]}), bound.clone());
        taken("read_query", json!({"query": "q", "params": "[1,\"x\"]"}), bound);
        taken(
            "read_query",
            json!({"query": "q", "params": "{\"id\": 3}"}),
            json!({"query": "q", "params": {"id": 3}, "limit": 20}),
        );
        taken("list_tables", Value::Null, json!({"include_row_counts": true}));
        taken("list_tables", json!({"include_row_counts": "FALSE"}), json!({"include_row_counts": false}));
        taken("verify_chain", Value::Null, json!({}));
        taken("append_event", json!({"content": "[1]"}), json!({"content": "[1]", "kind": "note"}));
        taken(
            "get_resume_context",
            json!({"exclude_kinds": "[\"prompt\"]"}),
            json!({"max_events": 50, "exclude_kinds": ["prompt"]}),
        );
    }

    #[test]
    fn a_mistake_is_named_with_its_field_and_rule_in_one_line() {
        #[track_caller]
        fn refused(tool: &str, given: Value, expected: &str) {
            assert_eq!(run(tool, given.clone()), Err(expected.to_owned()), "{tool} {given}");
        }
        refused("read_query", Value::Null, "`query` is missing; read_query needs it");
        refused("read_query", json!({"query": null}), "`query` is missing; read_query needs it");
        refused("read_query", json!({"query": 5}), "`query` must be a string, got the number 5");
        refused("read_query", json!({"query": "q", "limit": 0}), "`limit` must be between 1 and 50, got 0");
        refused("read_query", json!({"query": "q", "limit": 51}), "`limit` must be between 1 and 50, got 51");
        refused(
            "read_query",
            json!({"query": "q", "limit": "-3"}),
            "`limit` must be between 1 and 50, got -3",
        );
        refused(
            "read_query",
            json!({"query": "q", "limit": 2.5}),
            "`limit` must be a whole number, got the number 2.5",
        );
        refused(
            "read_query",
            json!({"query": "q", "limit": "ten"}),
            "`limit` must be a whole number, got the string \"ten\"",
        );
        refused(
            "read_query",
            json!({"query": "q", "limit": true}),
            "`limit` must be a whole number, got true",
        );
        refused(
            "read_query",
            json!({"query": "q", "limt": 5}),
            "`limt` is not an argument of read_query; did you mean `limit`? it takes `query`, `params` and `limit`",
        );
        refused(
            "read_query",
            json!({"sql": "q"}),
            "`sql` is not an argument of read_query, which takes `query`, `params` and `limit`; `query` is missing; read_query needs it",
        );
        refused("verify_chain", json!({"a": 1}), "`a` is not an argument of verify_chain, which takes none");
        refused(
            "read_query",
            json!({"query": "q", "params": "1"}),
            "`params` must be an array (values by position) or an object (values by name), got the string \"1\"",
        );
        refused(
            "list_tables",
            json!({"include_row_counts": 1}),
            "`include_row_counts` must be true or false, got the number 1",
        );
        refused(
            "get_resume_context",
            json!({"exclude_kinds": "prompt"}),
            "`exclude_kinds` must be a list of strings, such as [\"a\",\"b\"], got the string \"prompt\"",
        );
        refused(
            "get_resume_context",
            json!({"exclude_kinds": ["a", 1]}),
            "`exclude_kinds` must be a list of strings, got the number 1 at position 2",
        );
    }

    #[test]
    fn a_hostile_name_stays_one_short_line() {
        let mut given = Map::new();
        given.insert(format!("a\n{}\u{1b}[31m", "b".repeat(10_000)), json!(1));
        let message = run("verify_chain", Value::Object(given)).unwrap_err();
        assert!(message.len() < 200 && !message.contains(['\n', '\u{1b}']), "{message:?}");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
            "[0-9.\\-\\[\\]{}\"]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 8, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,3}", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_passes_is_complete_typed_and_within_bounds(query in any_json(), params in any_json(), limit in any_json()) {
            match run("read_query", json!({"query": query, "params": params, "limit": limit})) {
                Ok(checked) => {
                    prop_assert!(checked["query"].is_string());
                    prop_assert!(checked["limit"].as_u64().is_some_and(|limit| (1..=50).contains(&limit)));
                    let bound = checked.get("params");
                    prop_assert!(bound.is_none_or(|value| value.is_array() || value.is_object()));
                    // Checking again changes nothing, so handlers and logs see the same call.
                    prop_assert_eq!(run("read_query", checked.clone()), Ok(checked));
                }
                Err(message) => prop_assert!(!message.is_empty() && !message.contains('\n'), "{}", message),
            }
        }
    }
}
