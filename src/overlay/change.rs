//! One entry for a tool that is there: other words, another name, narrower bounds.
//!
//! It cannot widen what a call may ask for, and it cannot change what the tool does.

use super::raw::{RawParamEntry, RawToolEntry};
use crate::spec::descriptor::Context;
use crate::spec::diagnostic::suggestion;
use crate::spec::model::{ParamSpec, ParamType, ToolSpec};
use crate::spec::position::Path;
use crate::spec::report::{Report, is_identifier};
use crate::spec::settings::{SurfaceSettings, setting_in_braces};
use crate::surface::arguments;
use serde_json::Value;

/// Changes the tool as the entry at `path` says; bounds are compared under `settings`.
pub(super) fn apply(
    report: &mut Report<'_>,
    raw: &RawToolEntry,
    path: &Path,
    tool: &mut ToolSpec,
    settings: &SurfaceSettings,
) {
    let what = format!("tool `{}`", tool.id);
    if let Some(name) = &raw.name {
        tool.name = self::name(report, name, path, &what);
    }
    if raw.title.is_some() {
        tool.title = report.text(raw.title.as_ref(), path, "title", &what);
    }
    let fixed = [
        ("statement", raw.statement.is_some()),
        ("policy", raw.policy.is_some()),
        ("limit", raw.limit.is_some()),
        ("output", raw.output.is_some()),
    ];
    for (key, _) in fixed.iter().filter(|(_, given)| *given) {
        let message = if tool.statement.is_some() {
            format!("`{key}` of {what} cannot be changed; define the tool again, without `tool`")
        } else {
            format!("`{key}` of {what} is built in; make a new tool, without `tool`")
        };
        report.key(&path.key(key), message);
    }
    if let Some(words) = &raw.words {
        let at = path.key("words");
        let parts = [
            (&words.purpose, "purpose", &mut tool.words.purpose),
            (&words.usage, "use", &mut tool.words.usage),
            (&words.returns, "returns", &mut tool.words.returns),
            (&words.refuses, "refuses", &mut tool.words.refuses),
            (&words.effects, "effects", &mut tool.words.effects),
        ];
        for (given, key, part) in parts {
            if given.is_some() {
                *part = report.text(given.as_ref(), &at, key, &format!("the description of {what}"));
            }
        }
    }
    let at = path.key("params");
    for (index, raw) in raw.params.iter().flatten().enumerate() {
        param(report, raw, &at.index(index), tool, settings);
    }
    let names = raw.params.iter().flatten().enumerate();
    let names =
        names.filter_map(|(index, raw)| Some((raw.name.as_deref()?.trim(), at.index(index).key("name"))));
    report.unique("parameter", names);
}

/// A name that agents can call.
pub(super) fn name(report: &mut Report<'_>, name: &str, path: &Path, what: &str) -> String {
    let name = name.trim();
    if !is_identifier(name) || name.len() > 64 {
        let message = format!(
            "{what} needs a name of lower-case letters, digits and `_`, at most 64 of them, got `{name}`"
        );
        report.value(&path.key("name"), message);
    }
    name.to_owned()
}

fn param(
    report: &mut Report<'_>,
    raw: &RawParamEntry,
    path: &Path,
    tool: &mut ToolSpec,
    settings: &SurfaceSettings,
) {
    let tool_id = tool.id.clone();
    let given = report.text(raw.name.as_ref(), path, "name", &format!("a parameter of tool `{tool_id}`"));
    let known: Vec<String> = tool.params.iter().map(|param| param.name.clone()).collect();
    let Some(param) = tool.params.iter_mut().find(|param| param.name == given) else {
        if !given.is_empty() {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let message =
                format!("tool `{tool_id}` has no parameter `{given}`{}", suggestion(&given, &known));
            report.value(&path.key("name"), message);
        }
        return;
    };
    let what = format!("parameter `{given}` of tool `{tool_id}`");
    let fixed = [
        ("type", raw.kind.is_some()),
        ("items", raw.items.is_some()),
        ("required", raw.required.is_some()),
        ("enum", raw.choices.is_some()),
        ("pattern", raw.pattern.is_some()),
    ];
    for (key, _) in fixed.iter().filter(|(_, given)| *given) {
        report.key(&path.key(key), format!("`{key}` of {what} cannot be changed"));
    }
    if raw.description.is_some() {
        param.description = report.text(raw.description.as_ref(), path, "description", &what);
    }
    bounds(report, raw, path, param, settings, &what);
}

fn bounds(
    report: &mut Report<'_>,
    raw: &RawParamEntry,
    path: &Path,
    param: &mut ParamSpec,
    settings: &SurfaceSettings,
    what: &str,
) {
    let context = Context::new(settings, &[], false);
    let number = |value: &Value| context.resolve(value).as_f64();
    let counts = matches!(param.kind, ParamType::Integer | ParamType::Signed | ParamType::Number);
    let old_least =
        param.minimum.as_ref().and_then(number).or((param.kind == ParamType::Integer).then_some(0.0));
    let old_most = context.maximum_of(param).as_ref().and_then(Value::as_f64);
    let shown = |least: Option<f64>, most: Option<f64>| match (least, most) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("{least} and more"),
        (None, Some(most)) => format!("{most} and less"),
        (None, None) => "any number".to_owned(),
    };
    for (key, given) in [("minimum", &raw.minimum), ("maximum", &raw.maximum)] {
        let Some(value) = given.as_ref().filter(|value| !value.is_null()) else { continue };
        let at = path.key(key);
        if !counts {
            report.key(&at, format!("{what} is no number, so it has no `{key}`"));
            continue;
        }
        let Some(new) = bound(report, value, &at, &format!("`{key}` of {what}"), settings) else { continue };
        let within = old_least.is_none_or(|least| new >= least) && old_most.is_none_or(|most| new <= most);
        if !within {
            let built_in = shown(old_least, old_most);
            report
                .value(&at, format!("`{key}` of {what} is {new}, outside of what it can narrow: {built_in}"));
            continue;
        }
        if key == "minimum" {
            param.minimum = Some(value.clone());
        } else if param.maximum.as_ref() != Some(value) {
            if param.ceiling.is_none() {
                param.ceiling = param.maximum.take();
            }
            param.maximum = Some(value.clone());
        }
    }
    let (least, most) = (param.minimum.as_ref().and_then(number), param.maximum.as_ref().and_then(number));
    if let (Some(least), Some(most)) = (least, most)
        && least > most
    {
        report.value(&path.key("maximum"), format!("{what} has a maximum below its minimum"));
        return;
    }
    if let Some(default) = raw.default.as_ref().filter(|value| !value.is_null()) {
        let at = path.key("default");
        if param.required {
            report.key(&at, format!("{what} is required, so its default would never hold"));
        } else if let Err(mistake) = arguments::value(param, settings, context.resolve(default)) {
            report.value(&at, format!("the default of {what} does not fit: {mistake}"));
        } else {
            param.default = Some(default.clone());
        }
    } else if let Some(default) = context.default_of(param).filter(|_| counts)
        && arguments::value(param, settings, default.clone()).is_err()
    {
        let message =
            format!("{what} has the default {default}, which is outside its bounds now; give a `default`");
        report.value(&path.key("minimum"), message);
    }
}

/// A number, or a known setting in braces.
fn bound(
    report: &mut Report<'_>,
    value: &Value,
    path: &Path,
    what: &str,
    settings: &SurfaceSettings,
) -> Option<f64> {
    let known = settings.to_map();
    match value.as_str().and_then(setting_in_braces) {
        Some(name) if known.contains_key(name) => known.get(name).and_then(Value::as_f64),
        Some(name) => {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            report.value(path, format!("{what}: unknown setting `{name}`{}", suggestion(name, &names)));
            None
        }
        None => {
            let number = value.as_f64();
            if number.is_none() {
                let example = "{{ max_rows }}";
                report.value(
                    path,
                    format!("{what} must be a number or a setting in braces, like \"{example}\""),
                );
            }
            number
        }
    }
}
