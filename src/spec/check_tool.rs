//! From one raw tool to a checked one: its names, words and parameters.
//!
//! What concerns several tools, or a tool and its policy, is checked in `check.rs`.

use super::diagnostic::suggestion;
use super::model::{Annotations, FixedField, ParamSpec, ParamType, ToolSpec, Words};
use super::position::Path;
use super::raw::{RawAnnotations, RawParam, RawTool, RawWords};
use super::report::{Report, is_identifier, is_keyword};
use super::settings::setting_in_braces;
use serde_json::Value;

const TYPES: &[(&str, ParamType)] = &[
    ("string", ParamType::String),
    ("integer", ParamType::Integer),
    ("boolean", ParamType::Boolean),
    ("string_list", ParamType::StringList),
    ("binding", ParamType::Binding),
    ("signed", ParamType::Signed),
    ("any", ParamType::Any),
    ("object", ParamType::Object),
    ("object_list", ParamType::ObjectList),
    ("duration", ParamType::Duration),
];

/// Checks the tool at `path`; `settings` are the names that bounds and defaults may use.
pub fn check_tool(report: &mut Report<'_>, raw: &RawTool, path: &Path, settings: &[&str]) -> ToolSpec {
    let id = report.text(raw.id.as_ref(), path, "id", "a tool");
    let what = format!("tool `{id}`");
    let parts: Vec<&str> = id.split('.').collect();
    if !id.is_empty() && (parts.len() != 2 || !parts.iter().all(|part| is_identifier(part))) {
        report.value(&path.key("id"), format!("{what} needs an id like `profile.name`, in lower case"));
    }
    let name = report.text(raw.name.as_ref(), path, "name", &what);
    if !name.is_empty() && !is_identifier(&name) {
        let message = format!("{what} needs a name of lower-case letters, digits and `_`, got `{name}`");
        report.value(&path.key("name"), message);
    }
    let handler = report.text(raw.handler.as_ref(), path, "handler", &what);
    check_handler(report, &handler, &path.key("handler"), &what);
    let output = raw.output.as_deref().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    if let Some(output) = output.as_deref().filter(|name| !is_type_name(name)) {
        let message = format!("{what} needs an output like `RowSet`, a struct of `results`, got `{output}`");
        report.value(&path.key("output"), message);
    }
    let params = check_params(report, raw, path, &what, settings);
    let fixed = check_fixed(report, raw, path, &what, &params);
    ToolSpec {
        title: report.text(raw.title.as_ref(), path, "title", &what),
        policy: report.text(raw.policy.as_ref(), path, "policy", &what),
        annotations: check_annotations(report, raw.annotations.as_ref(), path, &what),
        words: check_words(report, raw.words.as_ref(), path, &what),
        id,
        name,
        handler,
        output,
        params,
        fixed,
        statement: None,
    }
}

fn is_type_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric())
}

pub(super) fn check_handler(report: &mut Report<'_>, handler: &str, path: &Path, what: &str) {
    let parts: Vec<&str> = handler.split('.').collect();
    let good = parts.len() == 2 && parts.iter().all(|part| is_identifier(part) && !is_keyword(part));
    if !handler.is_empty() && !good {
        report.value(path, format!("{what} needs a handler like `family.function`, got `{handler}`"));
    }
}

fn check_annotations(
    report: &mut Report<'_>,
    raw: Option<&RawAnnotations>,
    path: &Path,
    what: &str,
) -> Annotations {
    let Some(raw) = raw else {
        report.value(path, format!("{what} has no `annotations`"));
        return Annotations { read_only: false, destructive: true, idempotent: false, open_world: true };
    };
    let path = path.key("annotations");
    Annotations {
        read_only: report.given(raw.read_only, &path, "read_only", what),
        destructive: report.given(raw.destructive, &path, "destructive", what),
        idempotent: report.given(raw.idempotent, &path, "idempotent", what),
        open_world: report.given(raw.open_world, &path, "open_world", what),
    }
}

fn check_words(report: &mut Report<'_>, raw: Option<&RawWords>, path: &Path, what: &str) -> Words {
    let Some(raw) = raw else {
        report.value(path, format!("{what} has no `words`"));
        return Words {
            purpose: String::new(),
            usage: String::new(),
            returns: String::new(),
            refuses: String::new(),
            effects: String::new(),
        };
    };
    let path = path.key("words");
    let mut part = |given: &Option<String>, key: &str| {
        report.text(given.as_ref(), &path, key, &format!("the description of {what}"))
    };
    Words {
        purpose: part(&raw.purpose, "purpose"),
        usage: part(&raw.usage, "use"),
        returns: part(&raw.returns, "returns"),
        refuses: part(&raw.refuses, "refuses"),
        effects: part(&raw.effects, "effects"),
    }
}

fn check_params(
    report: &mut Report<'_>,
    raw: &RawTool,
    path: &Path,
    what: &str,
    settings: &[&str],
) -> Vec<ParamSpec> {
    let path = path.key("params");
    let given = raw.params.as_deref().unwrap_or_default();
    let params: Vec<ParamSpec> = given
        .iter()
        .enumerate()
        .map(|(index, param)| check_param(report, param, &path.index(index), what, settings))
        .collect();
    let names = params.iter().enumerate().map(|(index, p)| (p.name.as_str(), path.index(index).key("name")));
    report.unique("parameter", names);
    let fields = params
        .iter()
        .enumerate()
        .filter_map(|(index, p)| Some((p.field.as_deref()?, path.index(index).key("field"))));
    report.unique("field", fields);
    params
}

fn check_param(
    report: &mut Report<'_>,
    raw: &RawParam,
    path: &Path,
    tool: &str,
    settings: &[&str],
) -> ParamSpec {
    let name = report.text(raw.name.as_ref(), path, "name", &format!("a parameter of {tool}"));
    let what = format!("parameter `{name}` of {tool}");
    let kind = report.must_choose(raw.kind.as_ref(), path, "type", &what, TYPES);
    let param = ParamSpec {
        field: raw.field.clone(),
        kind: kind.unwrap_or(ParamType::String),
        required: raw.required.unwrap_or_default(),
        description: report.text(raw.description.as_ref(), path, "description", &what),
        minimum: raw.minimum.clone().filter(|value| !value.is_null()),
        maximum: raw.maximum.clone().filter(|value| !value.is_null()),
        default: raw.default.clone().filter(|value| !value.is_null()),
        ceiling: None,
        choices: raw.choices.clone().unwrap_or_default(),
        pattern: None,
        name,
    };
    let at_name = if param.field.is_some() { path.key("field") } else { path.key("name") };
    let field = param.field_name();
    let well_formed = is_identifier(&param.name) && is_identifier(field);
    if !param.name.is_empty() && !well_formed {
        report.value(&at_name, format!("{what} needs a name of lower-case letters, digits and `_`"));
    } else if is_keyword(field) {
        let message =
            format!("{what}: `{field}` is a Rust keyword; give the handler's field as `field: ...`");
        report.value(&at_name, message);
    }
    if kind.is_some() {
        check_limits(report, &param, path, &what, settings);
    }
    param
}

fn check_limits(report: &mut Report<'_>, param: &ParamSpec, path: &Path, what: &str, settings: &[&str]) {
    let bounds = [("minimum", &param.minimum), ("maximum", &param.maximum)];
    for (key, value) in bounds {
        let Some(value) = value else { continue };
        if matches!(param.kind, ParamType::Integer) {
            check_number(report, value, &path.key(key), &format!("`{key}` of {what}"), settings);
        } else {
            report.key(&path.key(key), format!("{what} is no integer, so it has no `{key}`"));
        }
    }
    let [least, most, usual] =
        [&param.minimum, &param.maximum, &param.default].map(|value| value.as_ref().and_then(Value::as_u64));
    if let (Some(least), Some(most)) = (least, most)
        && least > most
    {
        report.value(&path.key("maximum"), format!("{what} has a maximum below its minimum"));
    }
    if let Some(usual) = usual
        && (least.is_some_and(|least| usual < least) || most.is_some_and(|most| usual > most))
    {
        report.value(&path.key("default"), format!("{what} has a default outside its bounds"));
    }
    let Some(default) = &param.default else { return };
    let at = path.key("default");
    if param.required {
        report.key(&at, format!("{what} is required, so its default would never hold"));
    }
    let fits = match param.kind {
        ParamType::Integer => {
            check_number(report, default, &at, &format!("`default` of {what}"), settings);
            true
        }
        ParamType::String | ParamType::Duration => default.is_string(),
        ParamType::Boolean => default.is_boolean(),
        ParamType::StringList => default.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
        // tools.yaml has none of the others.
        _ => false,
    };
    if !fits {
        report.value(&at, format!("{what} has a default that is not of its type"));
    }
}

/// A whole number, or a known setting in braces.
fn check_number(report: &mut Report<'_>, value: &Value, path: &Path, what: &str, settings: &[&str]) {
    if value.as_u64().is_some() {
        return;
    }
    match value.as_str().and_then(setting_in_braces) {
        Some(name) if settings.contains(&name) => {}
        Some(name) => {
            report.value(path, format!("{what}: unknown setting `{name}`{}", suggestion(name, settings)))
        }
        None => {
            let example = settings.first().copied().unwrap_or("max_rows");
            let message =
                format!("{what} must be a whole number or a setting in braces, like \"{{{{ {example} }}}}\"");
            report.value(path, message);
        }
    }
}

fn check_fixed(
    report: &mut Report<'_>,
    raw: &RawTool,
    path: &Path,
    what: &str,
    params: &[ParamSpec],
) -> Vec<FixedField> {
    let path = path.key("fixed");
    let given = raw.fixed.as_deref().unwrap_or_default();
    let mut fixed = Vec::new();
    for (index, entry) in given.iter().enumerate() {
        let at = path.index(index);
        let field = report.text(entry.field.as_ref(), &at, "field", &format!("a fixed field of {what}"));
        let value = report.given(entry.value, &at, "value", &format!("fixed field `{field}` of {what}"));
        if !field.is_empty() && (!is_identifier(&field) || is_keyword(&field)) {
            report.value(
                &at.key("field"),
                format!("fixed field `{field}` of {what} must be a Rust field name"),
            );
        }
        if params.iter().any(|param| param.field_name() == field) {
            report.value(
                &at.key("field"),
                format!("fixed field `{field}` of {what} is a parameter too; keep one"),
            );
        }
        fixed.push(FixedField { field, value });
    }
    let named = fixed.iter().enumerate().map(|(index, f)| (f.field.as_str(), path.index(index).key("field")));
    report.unique("fixed field", named);
    fixed
}
