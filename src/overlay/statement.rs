//! One new tool made of SQL: its words and typed parameters.
//!
//! Whether the statement compiles and what it does is not known here: a database says so. Until then a tool
//! that writes counts as one that can lose data.

use super::change;
use super::raw::{RawParamEntry, RawToolEntry};
use crate::spec::diagnostic::listed;
use crate::spec::model::{
    Annotations, Defaults, Format, Manifest, ParamSpec, ParamType, StatementSpec, ToolSpec, Words,
};
use crate::spec::position::Path;
use crate::spec::raw::RawWords;
use crate::spec::report::{Report, is_identifier};
use crate::spec::settings::SurfaceSettings;
use crate::surface::{arguments, pattern};
use serde_json::Value;

const TYPES: &[(&str, Kind)] = &[
    ("string", Kind::One(ParamType::String)),
    ("integer", Kind::One(ParamType::Signed)),
    ("number", Kind::One(ParamType::Number)),
    ("boolean", Kind::One(ParamType::Boolean)),
    ("array", Kind::Many),
];

const ITEMS: &[(&str, ParamType)] = &[
    ("string", ParamType::StringList),
    ("integer", ParamType::SignedList),
    ("number", ParamType::NumberList),
    ("boolean", ParamType::BooleanList),
];

#[derive(Clone, Copy)]
enum Kind {
    One(ParamType),
    Many,
}

/// The tool of the entry at `path`; none where it lacks what a tool is known by.
pub(super) fn make(
    report: &mut Report<'_>,
    raw: &RawToolEntry,
    path: &Path,
    manifest: &Manifest,
    served: Option<&str>,
) -> Option<ToolSpec> {
    let Some(statement) = &raw.statement else {
        let message = "a tool needs `tool`, the tool that it changes, or `statement`, the SQL of a new one";
        report.value(path, message);
        return None;
    };
    let given = report.text(raw.name.as_ref(), path, "name", "a new tool");
    if given.is_empty() {
        return None;
    }
    let what = format!("tool `{given}`");
    let name = change::name(report, &given, path, &what);
    let id = format!("own.{name}");
    let sql = report.text(Some(&statement.0), path, "statement", &what);
    let policies = [("read", false), ("write", true)];
    let writes = report.must_choose(raw.policy.as_ref(), path, "policy", &what, &policies).unwrap_or(false);
    let outputs = [("csv", Format::Csv), ("rows", Format::Structured)];
    let output = report.choice(raw.output.as_ref(), path, "output", &what, &outputs);
    let most = served.and_then(|id| manifest.profile(id)).map(|profile| profile.defaults.max_rows);
    if let Some(limit) = raw.limit
        && (limit == 0 || most.is_some_and(|most| limit > most))
    {
        let most = most.map_or_else(|| "the profile's max_rows".to_owned(), |most| most.to_string());
        report.value(&path.key("limit"), format!("`limit` of {what} must be from 1 to {most}, got {limit}"));
    }
    for (key, given) in [("limit", raw.limit.is_some()), ("output", raw.output.is_some())] {
        if given && writes {
            let message = format!("{what} writes, so it answers with a line and has no `{key}`");
            report.key(&path.key(key), message);
        }
    }
    let format = output.or_else(|| Some(manifest.profile(served?)?.format)).unwrap_or(Format::Csv);
    let title = match &raw.title {
        Some(_) => report.text(raw.title.as_ref(), path, "title", &what),
        None => from_name(&name),
    };
    Some(ToolSpec {
        title,
        policy: if writes { "write" } else { "read" }.to_owned(),
        handler: if writes { "query.write" } else { "query.read" }.to_owned(),
        output: None,
        annotations: annotations(writes, true),
        words: words(report, raw.words.as_ref(), path, &what, writes, raw.limit, format),
        params: params(report, raw.params.as_deref().unwrap_or_default(), &path.key("params"), &what),
        fixed: Vec::new(),
        statement: Some(StatementSpec { sql, limit: raw.limit, output }),
        id,
        name,
    })
}

/// The hints of a tool whose statement writes or not, and can lose data or not.
pub(super) fn annotations(writes: bool, destructive: bool) -> Annotations {
    Annotations {
        read_only: !writes,
        destructive: writes && destructive,
        idempotent: !writes,
        open_world: false,
    }
}

/// `top_customers` as `Top customers`.
fn from_name(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).map(|c| if c == '_' { ' ' } else { c }).collect()
}

fn words(
    report: &mut Report<'_>,
    raw: Option<&RawWords>,
    path: &Path,
    what: &str,
    writes: bool,
    limit: Option<u64>,
    format: Format,
) -> Words {
    let at = path.key("words");
    let what = format!("the description of {what}");
    let raw = raw.cloned().unwrap_or_default();
    let purpose = match &raw.purpose {
        Some(purpose) => report.text(Some(purpose), &at, "purpose", &what),
        None => {
            report.value(path, format!("{what} has no `purpose`; give it under `words`"));
            String::new()
        }
    };
    let rows = limit.map_or_else(|| "{{ default_limit }}".to_owned(), |limit| limit.to_string());
    let returns = match (writes, format) {
        (true, _) => "`ok: N rows affected`, then RETURNING rows as CSV.".to_owned(),
        (false, Format::Csv) => format!("CSV with header and trailer `# N rows`; at most {rows} rows."),
        (false, Format::Structured) => format!("Rows as data and as a Markdown table; at most {rows} rows."),
    };
    let effects = if writes {
        "Commits with its query_log row or not at all; overwriting more than {{ max_update_rows }} existing rows is rolled back."
    } else {
        "Changes nothing."
    };
    let mut part = |given: &Option<String>, key: &str, usual: &str| match given {
        Some(_) => report.text(given.as_ref(), &at, key, &what),
        None => usual.to_owned(),
    };
    Words {
        purpose,
        usage: part(&raw.usage, "use", ""),
        returns: part(&raw.returns, "returns", &returns),
        refuses: part(&raw.refuses, "refuses", ""),
        effects: part(&raw.effects, "effects", effects),
    }
}

fn params(report: &mut Report<'_>, given: &[RawParamEntry], path: &Path, tool: &str) -> Vec<ParamSpec> {
    let params: Vec<ParamSpec> =
        given.iter().enumerate().map(|(index, raw)| param(report, raw, &path.index(index), tool)).collect();
    let names = params.iter().enumerate().map(|(index, p)| (p.name.as_str(), path.index(index).key("name")));
    report.unique("parameter", names);
    params
}

fn param(report: &mut Report<'_>, raw: &RawParamEntry, path: &Path, tool: &str) -> ParamSpec {
    let name = report.text(raw.name.as_ref(), path, "name", &format!("a parameter of {tool}"));
    let what = format!("parameter `{name}` of {tool}");
    if !name.is_empty() && !is_identifier(&name) {
        report.value(&path.key("name"), format!("{what} needs a name of lower-case letters, digits and `_`"));
    }
    let kind = match report.must_choose(raw.kind.as_ref(), path, "type", &what, TYPES) {
        Some(Kind::One(kind)) => {
            if raw.items.is_some() {
                report.key(&path.key("items"), format!("{what} is no array, so it has no `items`"));
            }
            Some(kind)
        }
        Some(Kind::Many) => report.must_choose(raw.items.as_ref(), path, "items", &what, ITEMS),
        None => None,
    };
    let given = |value: &Option<Value>| value.clone().filter(|value| !value.is_null());
    let mut param = ParamSpec {
        field: None,
        kind: kind.unwrap_or(ParamType::String),
        required: raw.required.unwrap_or_default(),
        description: report.text(raw.description.as_ref(), path, "description", &what),
        minimum: given(&raw.minimum),
        maximum: given(&raw.maximum),
        default: None,
        ceiling: None,
        choices: raw.choices.clone().unwrap_or_default(),
        pattern: raw.pattern.clone(),
        name,
    };
    if kind.is_some() {
        rules(report, raw, path, &mut param, &what);
        if let Some(default) = given(&raw.default) {
            check_default(report, default, path, &mut param, &what);
        }
    }
    param
}

fn rules(report: &mut Report<'_>, raw: &RawParamEntry, path: &Path, param: &mut ParamSpec, what: &str) {
    let scalar = param.kind.item().unwrap_or(param.kind);
    let counts = matches!(scalar, ParamType::Signed | ParamType::Number);
    for (key, value) in [("minimum", &mut param.minimum), ("maximum", &mut param.maximum)] {
        let Some(bound) = value else { continue };
        let fits = match scalar {
            ParamType::Signed => bound.is_i64(),
            _ => bound.is_number(),
        };
        if !counts {
            report.key(&path.key(key), format!("{what} holds no numbers, so it has no `{key}`"));
            *value = None;
        } else if !fits {
            let kind = if scalar == ParamType::Signed { "whole number" } else { "number" };
            report.value(&path.key(key), format!("`{key}` of {what} must be a {kind}"));
            *value = None;
        }
    }
    let number = |value: &Option<Value>| value.as_ref().and_then(Value::as_f64);
    if let (Some(least), Some(most)) = (number(&param.minimum), number(&param.maximum))
        && least > most
    {
        report.value(&path.key("maximum"), format!("{what} has a maximum below its minimum"));
    }
    if let Some(given) = &param.pattern {
        let at = path.key("pattern");
        if scalar != ParamType::String {
            report.key(&at, format!("{what} holds no strings, so it has no `pattern`"));
            param.pattern = None;
        } else if let Err(words) = pattern::compiled(given) {
            report.value(&at, format!("`pattern` of {what} is no regular expression: {words}"));
            param.pattern = None;
        }
    }
    let Some(choices) = &raw.choices else { return };
    let at = path.key("enum");
    if choices.is_empty() {
        report.value(&at, format!("`enum` of {what} lists nothing, so no value would fit"));
    }
    // Each choice must keep to the other rules itself.
    let plain = ParamSpec { kind: scalar, choices: Vec::new(), required: true, ..param.clone() };
    for (index, choice) in choices.iter().enumerate() {
        match typed(&plain, choice) {
            Err(mistake) => {
                report.value(&at.index(index), format!("`enum` of {what} does not fit: {mistake}"))
            }
            Ok(()) if choices.iter().take(index).any(|earlier| earlier == choice) => {
                report.value(&at.index(index), format!("`enum` of {what} has {choice} twice"));
            }
            Ok(()) => {}
        }
    }
}

fn check_default(report: &mut Report<'_>, default: Value, path: &Path, param: &mut ParamSpec, what: &str) {
    let at = path.key("default");
    if param.required {
        report.key(&at, format!("{what} is required, so its default would never hold"));
    } else if let Err(mistake) = typed(param, &default) {
        report.value(&at, format!("the default of {what} does not fit: {mistake}"));
    } else {
        param.default = Some(default);
    }
}

/// A value of YAML must be of its type; what is forgiven in a call (digits in a string) is a mistake here.
fn typed(param: &ParamSpec, value: &Value) -> Result<(), String> {
    let of_kind = |kind: ParamType, value: &Value| match kind {
        ParamType::Signed => value.is_i64(),
        ParamType::Number => value.is_number(),
        ParamType::Boolean => value.is_boolean(),
        _ => value.is_string(),
    };
    let good = match (param.kind.item(), value) {
        (Some(item), Value::Array(items)) => items.iter().all(|value| of_kind(item, value)),
        (Some(_), _) => false,
        (None, value) => of_kind(param.kind, value),
    };
    if !good {
        let kinds: Vec<&str> = param.kind.schema_name().into_iter().collect();
        return Err(format!("{value} is not of type {}", listed(&kinds)));
    }
    // No bound of such a tool is a setting's.
    let none = Defaults {
        query_timeout: 0.0,
        default_limit: 0,
        max_rows: 0,
        max_result_bytes: 0,
        max_cell_chars: 0,
    };
    arguments::value(param, &SurfaceSettings::for_profile(&none), value.clone()).map(|_| ())
}
