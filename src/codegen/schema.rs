//! JSON Schemas of policy.yaml and of a user's policy file, for editors: from the keys and types of `spec/raw.rs`.
//!
//! They help while typing. What a file must be is decided by the checks alone, which know more.

use crate::policy::action::ActionKind;
use crate::spec::Checked;
use crate::spec::raw::{
    RawAction, RawException, RawHidden, RawLimits, RawNarrowedPolicy, RawNarrowing, RawPolicy, RawPolicyFile,
    RawPragmas, RawProtected, RawRefused,
};
use serde_json::{Map, Value, json};

/// A raw map: its name and its keys with their types.
type Shape = (&'static str, &'static [(&'static str, &'static str)]);

const SHAPES: &[Shape] = &[
    ("RawPolicyFile", RawPolicyFile::TYPES),
    ("RawPolicy", RawPolicy::TYPES),
    ("RawPragmas", RawPragmas::TYPES),
    ("RawAction", RawAction::TYPES),
    ("RawProtected", RawProtected::TYPES),
    ("RawException", RawException::TYPES),
    ("RawNarrowing", RawNarrowing::TYPES),
    ("RawHidden", RawHidden::TYPES),
    ("RawRefused", RawRefused::TYPES),
    ("RawNarrowedPolicy", RawNarrowedPolicy::TYPES),
    ("RawLimits", RawLimits::TYPES),
];

/// What editors show beside a key.
const WORDS: &[(&str, &str)] = &[
    (
        "RawNarrowing.protect",
        "Tables and views that no statement changes; `*` and `?` stand for other characters.",
    ),
    ("RawNarrowing.hide", "Tables and columns that no statement reads."),
    ("RawNarrowing.refuse", "What no policy allows any more."),
    ("RawNarrowing.policies", "What single policies do not allow any more."),
    ("RawNarrowing.limits", "Limits below those of flags, environment and profile."),
    ("RawHidden.table", "A table or view; `*` and `?` stand for other characters."),
    ("RawHidden.columns", "Columns; without this key the whole table is hidden."),
    ("RawRefused.actions", "Kinds of actions, as `indelible policy` lists them."),
    ("RawRefused.functions", "SQL functions."),
    ("RawRefused.pragmas", "Pragmas."),
];

/// The schema of policy.yaml.
pub(crate) fn policy(checked: &Checked) -> Value {
    root("policy.yaml of Indelible", "RawPolicyFile", checked)
}

/// The schema of a user's policy file.
pub(crate) fn narrowing(checked: &Checked) -> Value {
    root("A policy file of Indelible (--policy): it can only narrow", "RawNarrowing", checked)
}

fn root(title: &str, shape: &str, checked: &Checked) -> Value {
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), "http://json-schema.org/draft-07/schema#".into());
    schema.insert("title".to_owned(), title.into());
    if let Value::Object(map) = object(shape, checked) {
        schema.extend(map);
    }
    Value::Object(schema)
}

fn object(shape: &str, checked: &Checked) -> Value {
    let keys = SHAPES.iter().find(|(name, _)| *name == shape).map_or(&[][..], |(_, keys)| *keys);
    let properties: Map<String, Value> = keys
        .iter()
        .map(|(key, kind)| {
            let mut schema = value(shape, key, kind, checked);
            let path = format!("{shape}.{key}");
            if let (Some((_, words)), Value::Object(map)) =
                (WORDS.iter().find(|(known, _)| *known == path), &mut schema)
            {
                map.insert("description".to_owned(), (*words).into());
            }
            ((*key).to_owned(), schema)
        })
        .collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn value(shape: &str, key: &str, kind: &str, checked: &Checked) -> Value {
    // As the compiler writes types: `Vec < String >` or `Vec<String>`.
    let kind = kind.replace(' ', "");
    if let Some(item) = kind.strip_prefix("Vec<").and_then(|rest| rest.strip_suffix('>')) {
        return json!({"type": "array", "items": value(shape, key, item, checked)});
    }
    match kind.as_str() {
        "String" => text(shape, key, checked),
        "bool" => json!({"type": "boolean"}),
        "u64" => json!({"type": "integer", "minimum": 0}),
        "f64" => json!({"type": "number"}),
        "Value" => json!({"type": ["number", "string"], "minimum": 0, "pattern": "\\$\\{"}),
        shape => object(shape, checked),
    }
}

/// A string, and which it may be.
fn text(shape: &str, key: &str, checked: &Checked) -> Value {
    let policies = || checked.policy.policies.iter();
    let ids = || policies().map(|policy| policy.id.clone()).collect::<Vec<_>>();
    let with_sql = || policies().filter(|p| p.tool.is_some()).map(|p| p.id.clone()).collect::<Vec<_>>();
    let actions = || ActionKind::ALL.iter().map(|kind| kind.name().to_owned()).collect::<Vec<_>>();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let known = match (shape, key) {
        ("RawPolicy" | "RawRefused", "actions") | ("RawAction", "action") => actions(),
        ("RawPolicy", "connection") => words(&["read_only", "read_write", "none"]),
        ("RawPolicy", "server_does") => words(&["look", "append", "copy"]),
        ("RawAction", "instead") => ids(),
        ("RawNarrowedPolicy", "id") => with_sql(),
        _ => return json!({"type": "string"}),
    };
    // A user's file may have a variable there.
    if matches!(shape, "RawRefused" | "RawNarrowedPolicy") {
        return json!({"anyOf": [{"enum": known}, {"type": "string", "pattern": "\\$\\{"}]});
    }
    json!({"enum": known})
}
