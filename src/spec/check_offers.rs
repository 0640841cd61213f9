//! Resources, prompts and the words of error codes: from raw to checked, and against the profiles.
//!
//! Tools are checked in `check_tool.rs` and `check.rs`.

use super::check::known_policy;
use super::check_tool::check_handler;
use super::descriptor::{Context, Renderer};
use super::diagnostic::suggestion;
use super::model::{
    Address, ErrorSpec, Manifest, ProfileSpec, PromptArgument, PromptSpec, ResourceSpec, STRUCTURE,
    ValueSource,
};
use super::policy_model::PolicyFile;
use super::position::Path;
use super::raw::{RawError, RawManifest, RawPrompt, RawPromptArgument, RawResource};
use super::report::{Report, is_identifier, is_keyword};
use super::settings::SurfaceSettings;
use crate::error::ErrorCode;

const SOURCES: &[(&str, ValueSource)] = &[("table", ValueSource::Table)];

/// Checks every resource and prompt; without a policy file, what depends on policies is left out.
pub fn check_offers(
    report: &mut Report<'_>,
    raw: &RawManifest,
    policy: Option<&PolicyFile>,
) -> (Vec<ResourceSpec>, Vec<PromptSpec>) {
    let list = Path::root().key("resources");
    let given = raw.resources.iter().flatten().enumerate();
    let resources: Vec<ResourceSpec> =
        given.map(|(index, resource)| check_resource(report, resource, &list.index(index), policy)).collect();
    let at = |index: usize, key: &str| list.index(index).key(key);
    let ids = resources.iter().enumerate().map(|(index, r)| (r.id.as_str(), at(index, "id")));
    report.unique("resource", ids);
    let uris: Vec<String> = resources.iter().map(|resource| resource.address.shown()).collect();
    let named = uris.iter().enumerate().map(|(index, uri)| (uri.as_str(), list.index(index)));
    report.unique("URI", named.filter(|(uri, _)| !uri.starts_with('{')));

    let list = Path::root().key("prompts");
    let given = raw.prompts.iter().flatten().enumerate();
    let prompts: Vec<PromptSpec> =
        given.map(|(index, prompt)| check_prompt(report, prompt, &list.index(index), policy)).collect();
    let at = |index: usize, key: &str| list.index(index).key(key);
    report.unique("prompt", prompts.iter().enumerate().map(|(index, p)| (p.id.as_str(), at(index, "id"))));
    let names = prompts.iter().enumerate().map(|(index, p)| (p.name.as_str(), at(index, "name")));
    report.unique("prompt name", names);
    (resources, prompts)
}

/// Checks the words of error codes: every code, each once.
pub fn check_errors(report: &mut Report<'_>, raw: &[RawError]) -> Vec<ErrorSpec> {
    let list = Path::root().key("errors");
    let known: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    let named = raw
        .iter()
        .enumerate()
        .filter_map(|(index, e)| Some((e.code.as_deref()?, list.index(index).key("code"))));
    report.unique("error code", named);
    let mut errors = Vec::new();
    for (index, raw) in raw.iter().enumerate() {
        let path = list.index(index);
        let name = report.text(raw.code.as_ref(), &path, "code", "an error");
        let what = format!("error code `{name}`");
        let meaning = report.text(raw.meaning.as_ref(), &path, "meaning", &what);
        let next = report.text(raw.next.as_ref(), &path, "next", &what);
        match ErrorCode::ALL.iter().find(|code| code.as_str() == name) {
            Some(code) => errors.push(ErrorSpec { code: *code, meaning, next }),
            None if name.is_empty() => {}
            None => {
                report.value(&path.key("code"), format!("unknown {what}{}", suggestion(&name, &known)));
            }
        }
    }
    for code in ErrorCode::ALL {
        if !errors.iter().any(|error| error.code == *code) {
            report.key(&list, format!("error code `{}` has no words; add it under `errors`", code.as_str()));
        }
    }
    errors
}

/// What the profile offers must be there and render, in both modes.
pub fn check_profile_offers(
    report: &mut Report<'_>,
    profile: &ProfileSpec,
    path: &Path,
    manifest: &Manifest,
) {
    let resources: Vec<&str> = manifest.resources.iter().map(|resource| resource.id.as_str()).collect();
    let prompts: Vec<&str> = manifest.prompts.iter().map(|prompt| prompt.id.as_str()).collect();
    for (key, what, listed, known) in [
        ("resources", "resource", &profile.resources, &resources),
        ("prompts", "prompt", &profile.prompts, &prompts),
    ] {
        let list = path.key(key);
        let named = listed.iter().enumerate().map(|(index, id)| (id.as_str(), list.index(index)));
        report.unique(what, named);
        for (index, id) in listed.iter().enumerate().filter(|(_, id)| !known.contains(&id.as_str())) {
            let message =
                format!("profile `{}` lists unknown {what} `{id}`{}", profile.id, suggestion(id, known));
            report.value(&list.index(index), message);
        }
    }
    let names: Vec<&str> =
        profile.tools.iter().filter_map(|id| Some(manifest.tool(id)?.name.as_str())).collect();
    let settings = SurfaceSettings::for_profile(&profile.defaults);
    for read_only in [true, false] {
        let context = Context::new(&settings, &names, read_only);
        check_texts(report, &context, profile, manifest);
    }
    report.diagnostics.dedup();
}

fn check_texts(report: &mut Report<'_>, context: &Context, profile: &ProfileSpec, manifest: &Manifest) {
    let renderer = Renderer::new(context);
    let offered = |ids: &[String], id: &String| ids.contains(id);
    let resources = manifest.resources.iter().enumerate();
    for (index, resource) in resources.filter(|(_, resource)| offered(&profile.resources, &resource.id)) {
        if let Err(message) = renderer.text(&resource.description) {
            let at = Path::root().key("resources").index(index).key("description");
            report.value(&at, format!("resource `{}`: {message}", resource.id));
        }
    }
    let prompts = manifest.prompts.iter().enumerate();
    for (index, prompt) in prompts.filter(|(_, prompt)| offered(&profile.prompts, &prompt.id)) {
        let at = Path::root().key("prompts").index(index);
        if let Err(message) = renderer.text(&prompt.description) {
            report.value(&at.key("description"), format!("prompt `{}`: {message}", prompt.id));
        }
        // With every argument, and with none that may be left out.
        for all in [true, false] {
            let mut context = context.clone();
            for argument in &prompt.arguments {
                context.set(&argument.name, (all || argument.required).then(|| "x".to_owned()));
            }
            if prompt.table_argument().is_some() {
                context.set(STRUCTURE, Some("x".to_owned()));
            }
            if let Err(message) = Renderer::new(&context).text(&prompt.text) {
                report.value(&at.key("text"), format!("prompt `{}`: {message}", prompt.id));
                break;
            }
        }
    }
}

/// Every resource and prompt must be offered by a profile.
pub fn check_listed(report: &mut Report<'_>, manifest: &Manifest) {
    let root = Path::root();
    for (index, resource) in manifest.resources.iter().enumerate() {
        if !resource.id.is_empty() && !manifest.profiles.iter().any(|p| p.resources.contains(&resource.id)) {
            let at = root.key("resources").index(index).key("id");
            report.value(&at, format!("no profile lists resource `{}`", resource.id));
        }
    }
    for (index, prompt) in manifest.prompts.iter().enumerate() {
        if !prompt.id.is_empty() && !manifest.profiles.iter().any(|p| p.prompts.contains(&prompt.id)) {
            let at = root.key("prompts").index(index).key("id");
            report.value(&at, format!("no profile lists prompt `{}`", prompt.id));
        }
    }
}

fn check_resource(
    report: &mut Report<'_>,
    raw: &RawResource,
    path: &Path,
    policy: Option<&PolicyFile>,
) -> ResourceSpec {
    let id = check_id(report, raw.id.as_ref(), path, "resource");
    let what = format!("resource `{id}`");
    let mime_type = report.text(raw.mime_type.as_ref(), path, "mime_type", &what);
    if !mime_type.is_empty() && !mime_type.contains('/') {
        report.value(
            &path.key("mime_type"),
            format!("{what} needs a type like `text/plain`, got `{mime_type}`"),
        );
    }
    let handler = report.text(raw.handler.as_ref(), path, "handler", &what);
    check_handler(report, &handler, &path.key("handler"), &what);
    ResourceSpec {
        address: check_address(report, raw, path, &what),
        name: report.text(raw.name.as_ref(), path, "name", &what),
        title: report.text(raw.title.as_ref(), path, "title", &what),
        description: report.text(raw.description.as_ref(), path, "description", &what),
        policy: check_looks(report, raw.policy.as_ref(), path, &what, policy),
        id,
        mime_type,
        handler,
    }
}

fn check_address(report: &mut Report<'_>, raw: &RawResource, path: &Path, what: &str) -> Address {
    let values = report.choice(raw.values.as_ref(), path, "values", what, SOURCES);
    match (raw.uri.as_deref().map(str::trim), raw.uri_template.as_deref().map(str::trim)) {
        (Some(uri), None) => {
            if !uri.contains("://") || uri.contains(['{', '}', ' ']) {
                report
                    .value(&path.key("uri"), format!("{what} needs a URI like `scheme://name`, got `{uri}`"));
            }
            if raw.values.is_some() {
                report.key(&path.key("values"), format!("{what} has `values` and no `uri_template`"));
            }
            Address::Uri(uri.to_owned())
        }
        (None, Some(template)) => {
            if raw.values.is_none() {
                report.value(path, format!("{what} has no `values` for its template's variable"));
            }
            let parts = template.strip_suffix('}').and_then(|rest| rest.split_once('{'));
            let good = |(prefix, variable): &(&str, &str)| {
                prefix.contains("://") && !prefix.contains(['}', ' ']) && is_identifier(variable)
            };
            let parts = parts.filter(good);
            if parts.is_none() {
                let message = format!(
                    "{what} needs a template that ends in one variable, like `scheme://kind/{{name}}`"
                );
                report.value(&path.key("uri_template"), message);
            }
            let (prefix, variable) = parts.unwrap_or_default();
            Address::Template {
                prefix: prefix.to_owned(),
                variable: variable.to_owned(),
                values: values.unwrap_or(ValueSource::Table),
            }
        }
        (None, None) => {
            report.value(path, format!("{what} has no `uri` and no `uri_template`"));
            Address::Uri(String::new())
        }
        (Some(uri), Some(_)) => {
            report.key(&path.key("uri_template"), format!("{what} has `uri` and `uri_template`; keep one"));
            Address::Uri(uri.to_owned())
        }
    }
}

fn check_prompt(
    report: &mut Report<'_>,
    raw: &RawPrompt,
    path: &Path,
    policy: Option<&PolicyFile>,
) -> PromptSpec {
    let id = check_id(report, raw.id.as_ref(), path, "prompt");
    let what = format!("prompt `{id}`");
    let name = report.text(raw.name.as_ref(), path, "name", &what);
    if !name.is_empty() && !is_identifier(&name.replace('-', "_")) {
        let message = format!("{what} needs a name of lower-case letters, digits, `-` and `_`, got `{name}`");
        report.value(&path.key("name"), message);
    }
    PromptSpec {
        title: report.text(raw.title.as_ref(), path, "title", &what),
        description: report.text(raw.description.as_ref(), path, "description", &what),
        policy: check_looks(report, raw.policy.as_ref(), path, &what, policy),
        arguments: check_arguments(report, raw, path, &what),
        text: report.text(raw.text.as_ref(), path, "text", &what),
        id,
        name,
    }
}

fn check_arguments(report: &mut Report<'_>, raw: &RawPrompt, path: &Path, what: &str) -> Vec<PromptArgument> {
    let list = path.key("arguments");
    let given = raw.arguments.as_deref().unwrap_or_default();
    let arguments: Vec<PromptArgument> = given
        .iter()
        .enumerate()
        .map(|(index, argument)| check_argument(report, argument, &list.index(index), what))
        .collect();
    let names =
        arguments.iter().enumerate().map(|(index, a)| (a.name.as_str(), list.index(index).key("name")));
    report.unique("argument", names);
    let tables = arguments.iter().enumerate().filter(|(_, argument)| argument.values.is_some());
    for (index, argument) in tables.skip(1) {
        let message = format!("{what} has a second argument with `values`: `{}`; keep one", argument.name);
        report.key(&list.index(index).key("values"), message);
    }
    arguments
}

fn check_argument(
    report: &mut Report<'_>,
    raw: &RawPromptArgument,
    path: &Path,
    prompt: &str,
) -> PromptArgument {
    let name = report.text(raw.name.as_ref(), path, "name", &format!("an argument of {prompt}"));
    let what = format!("argument `{name}` of {prompt}");
    if !name.is_empty() && !is_identifier(&name) {
        report.value(&path.key("name"), format!("{what} needs a name of lower-case letters, digits and `_`"));
    }
    let taken = ["tools", "read_only", STRUCTURE];
    if taken.contains(&name.as_str()) {
        report.value(&path.key("name"), format!("{what} has a name that the text knows as something else"));
    }
    let values = report.choice(raw.values.as_ref(), path, "values", &what, SOURCES);
    let required = raw.required.unwrap_or_default();
    if values.is_some() && !required {
        report.value(path, format!("{what} has `values`, so it must be required"));
    }
    PromptArgument {
        description: report.text(raw.description.as_ref(), path, "description", &what),
        name,
        required,
        values,
    }
}

fn check_id(report: &mut Report<'_>, given: Option<&String>, path: &Path, kind: &str) -> String {
    let id = report.text(given, path, "id", &format!("a {kind}"));
    if !id.is_empty() && (!is_identifier(&id) || is_keyword(&id)) {
        let message =
            format!("{kind} `{id}` needs an id of lower-case letters, digits and `_`, no Rust keyword");
        report.value(&path.key("id"), message);
    }
    id
}

/// The policy of something that is only read.
fn check_looks(
    report: &mut Report<'_>,
    given: Option<&String>,
    path: &Path,
    what: &str,
    file: Option<&PolicyFile>,
) -> String {
    let id = report.text(given, path, "policy", what);
    let policy = file.filter(|_| !id.is_empty()).and_then(|file| known_policy(report, &id, path, what, file));
    if policy.is_some_and(super::policy_model::PolicySpec::writes) {
        report.value(&path.key("policy"), format!("{what} is only read, but policy `{id}` can write"));
    }
    id
}
