//! tools.yaml and policy.yaml held against each other: the one entry for the build and for overlays.
//!
//! Every semantic mistake of both files comes out at once. It reads no file; callers hand in texts.

use super::check_offers::{check_errors, check_listed, check_offers, check_profile_offers};
use super::check_policy::check_policy;
use super::check_tool::check_tool;
use super::descriptor::{Context, Renderer};
use super::diagnostic::{Diagnostic, suggestion};
use super::load::load;
use super::model::{Defaults, ErrorStyle, Format, Manifest, ProfileSpec, Serves, ToolSpec};
use super::policy_model::{PolicyFile, PolicySpec};
use super::position::{Path, Positions};
use super::raw::{RawDefaults, RawManifest, RawPolicyFile, RawProfile, manifest_keys, policy_keys};
use super::report::{Report, is_identifier};
use super::settings::SurfaceSettings;
use serde_json::json;

/// Characters of one composed description.
pub const DESCRIPTION_CHARS: usize = 1_024;
/// Bytes of a profile's tools/list result as compact JSON, where the profile does not say otherwise.
pub const TOOLS_LIST_BYTES: usize = 16_000;

/// A text and the name that diagnostics give it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The file's name.
    pub file: &'a str,
    /// The whole text.
    pub text: &'a str,
}

/// Both files, without a mistake.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// tools.yaml.
    pub manifest: Manifest,
    /// policy.yaml.
    pub policy: PolicyFile,
}

/// Loads both texts and checks them together.
///
/// # Errors
///
/// Every mistake, by file and place.
pub fn check_sources(tools: Source<'_>, policy: Source<'_>) -> Result<Checked, Vec<Diagnostic>> {
    let loaded_policy = load::<RawPolicyFile>(policy.file, policy.text, policy_keys);
    let loaded_tools = load::<RawManifest>(tools.file, tools.text, manifest_keys);
    let mut found = loaded_policy.diagnostics;
    found.extend(loaded_tools.diagnostics);
    let policy_file = loaded_policy.raw.map(|raw| {
        let (checked, diagnostics) = check_policy(policy.file, &raw, &loaded_policy.positions);
        found.extend(diagnostics);
        checked
    });
    let manifest = loaded_tools.raw.map(|raw| {
        let (manifest, diagnostics) =
            check_manifest(tools.file, &raw, &loaded_tools.positions, policy_file.as_ref());
        found.extend(diagnostics);
        manifest
    });
    match (manifest, policy_file) {
        (Some(manifest), Some(policy_file)) => {
            found.extend(check_policy_names(policy.file, &loaded_policy.positions, &policy_file, &manifest));
            if found.is_empty() { Ok(Checked { manifest, policy: policy_file }) } else { Err(sorted(found)) }
        }
        _ => Err(sorted(found)),
    }
}

/// Checks a manifest; without a policy file, what depends on policies is left out.
pub fn check_manifest(
    file: &str,
    raw: &RawManifest,
    positions: &Positions,
    policy: Option<&PolicyFile>,
) -> (Manifest, Vec<Diagnostic>) {
    let mut report = Report::new(file, positions);
    let root = Path::root();
    let tools_path = root.key("tools");
    let raw_tools = raw.tools.as_deref().unwrap_or_default();
    if raw_tools.is_empty() {
        report.value(&root, format!("{file} has no `tools`"));
    }
    let raw_profiles = raw.profiles.as_deref().unwrap_or_default();
    if raw_profiles.is_empty() {
        report.value(&root, format!("{file} has no `profiles`"));
    }
    let settings = SurfaceSettings::for_profile(&no_defaults()).to_map();
    // query_timeout may have a fraction, and a bound is a whole number
    let names: Vec<&str> =
        settings.keys().map(String::as_str).filter(|name| *name != "query_timeout").collect();
    let tools: Vec<ToolSpec> = raw_tools
        .iter()
        .enumerate()
        .map(|(index, tool)| check_tool(&mut report, tool, &tools_path.index(index), &names))
        .collect();
    let ids = tools.iter().enumerate().map(|(index, t)| (t.id.as_str(), tools_path.index(index).key("id")));
    report.unique("tool id", ids);
    let profiles_path = root.key("profiles");
    let profiles: Vec<ProfileSpec> = raw_profiles
        .iter()
        .enumerate()
        .map(|(index, profile)| check_profile(&mut report, profile, &profiles_path.index(index)))
        .collect();
    let ids =
        profiles.iter().enumerate().map(|(index, p)| (p.id.as_str(), profiles_path.index(index).key("id")));
    report.unique("profile", ids);
    let (resources, prompts) = check_offers(&mut report, raw, policy);
    let errors = check_errors(&mut report, raw.errors.as_deref().unwrap_or_default());
    let manifest = Manifest { profiles, tools, resources, prompts, errors };
    for (index, profile) in manifest.profiles.iter().enumerate() {
        let path = profiles_path.index(index);
        check_profile_tools(&mut report, profile, &path, &manifest);
        check_profile_offers(&mut report, profile, &path, &manifest);
    }
    for (index, tool) in manifest.tools.iter().enumerate() {
        let path = tools_path.index(index);
        if !tool.id.is_empty() && !manifest.profiles.iter().any(|p| p.tools.contains(&tool.id)) {
            report.value(&path.key("id"), format!("no profile lists tool `{}`", tool.id));
        }
        if let Some(policy) = policy {
            check_hints(&mut report, tool, &path, policy);
        }
    }
    check_listed(&mut report, &manifest);
    (manifest, report.diagnostics)
}

fn no_defaults() -> Defaults {
    Defaults { query_timeout: 0.0, default_limit: 0, max_rows: 0, max_result_bytes: 0, max_cell_chars: 0 }
}

fn check_profile(report: &mut Report<'_>, raw: &RawProfile, path: &Path) -> ProfileSpec {
    let id = report.text(raw.id.as_ref(), path, "id", "a profile");
    let what = format!("profile `{id}`");
    if !id.is_empty() && !is_identifier(&id) {
        report.value(&path.key("id"), format!("{what} needs an id of lower-case letters, digits and `_`"));
    }
    let formats = [("csv", Format::Csv), ("structured", Format::Structured)];
    let styles =
        [("plain", ErrorStyle::Plain), ("coded", ErrorStyle::Coded), ("lower_coded", ErrorStyle::LowerCoded)];
    let served = [("database", Serves::Database), ("group", Serves::Group)];
    ProfileSpec {
        title: report.text(raw.title.as_ref(), path, "title", &what),
        format: report
            .must_choose(raw.format.as_ref(), path, "format", &what, &formats)
            .unwrap_or(Format::Csv),
        errors: report
            .must_choose(raw.errors.as_ref(), path, "errors", &what, &styles)
            .unwrap_or(ErrorStyle::Plain),
        list_bytes: raw.list_bytes,
        serves: report.choice(raw.serves.as_ref(), path, "serves", &what, &served).unwrap_or_default(),
        defaults: check_defaults(report, raw.defaults.as_ref(), path, &what),
        tools: raw.tools.clone().unwrap_or_default(),
        resources: raw.resources.clone().unwrap_or_default(),
        prompts: raw.prompts.clone().unwrap_or_default(),
        instructions: report.text(raw.instructions.as_ref(), path, "instructions", &what),
        id,
    }
}

fn check_defaults(report: &mut Report<'_>, raw: Option<&RawDefaults>, path: &Path, what: &str) -> Defaults {
    let Some(raw) = raw else {
        report.value(path, format!("{what} has no `defaults`"));
        return no_defaults();
    };
    let path = path.key("defaults");
    let what = format!("`defaults` of {what}");
    let defaults = Defaults {
        query_timeout: report.given(raw.query_timeout, &path, "query_timeout", &what),
        default_limit: report.given(raw.default_limit, &path, "default_limit", &what),
        max_rows: report.given(raw.max_rows, &path, "max_rows", &what),
        max_result_bytes: report.given(raw.max_result_bytes, &path, "max_result_bytes", &what),
        max_cell_chars: report.given(raw.max_cell_chars, &path, "max_cell_chars", &what),
    };
    if defaults.default_limit > defaults.max_rows {
        report.value(&path.key("default_limit"), format!("{what}: `default_limit` is above `max_rows`"));
    }
    defaults
}

/// The profile's tools by id and name, and everything its clients will read, within the budgets.
fn check_profile_tools(report: &mut Report<'_>, profile: &ProfileSpec, path: &Path, manifest: &Manifest) {
    let list = path.key("tools");
    let listed = profile.tools.iter().enumerate();
    report.unique("tool", listed.map(|(index, id)| (id.as_str(), list.index(index))));
    if profile.tools.is_empty() {
        report.value(path, format!("profile `{}` has no `tools`", profile.id));
    }
    let ids: Vec<&str> = manifest.tools.iter().map(|tool| tool.id.as_str()).collect();
    let mut tools: Vec<(usize, &ToolSpec)> = Vec::new();
    for (index, id) in profile.tools.iter().enumerate() {
        match manifest.tools.iter().enumerate().find(|(_, tool)| tool.id == *id) {
            Some((at, _)) if tools.iter().any(|(listed, _)| *listed == at) => {}
            Some(found) => tools.push(found),
            None => {
                let message =
                    format!("profile `{}` lists unknown tool `{id}`{}", profile.id, suggestion(id, &ids));
                report.value(&list.index(index), message);
            }
        }
    }
    let at = |index: usize| Path::root().key("tools").index(index);
    let names = tools.iter().map(|(index, tool)| (tool.name.as_str(), at(*index).key("name")));
    report.unique(&format!("in profile `{}`, tool name", profile.id), names);
    for (index, tool) in &tools {
        if profile.format == Format::Structured && tool.output.is_none() {
            let message = format!(
                "tool `{}` has no `output`, and profile `{}` sends structured results",
                tool.id, profile.id
            );
            report.value(&at(*index), message);
        }
    }
    let active: Vec<&str> = tools.iter().map(|(_, tool)| tool.name.as_str()).collect();
    let settings = SurfaceSettings::for_profile(&profile.defaults);
    let mut templates_hold = true;
    // Both modes are tried, so that no branch of a template fails first at a user's.
    for read_only in [true, false] {
        let context = Context::new(&settings, &active, read_only);
        let renderer = Renderer::new(&context);
        if let Err(message) = renderer.text(&profile.instructions) {
            report.value(
                &path.key("instructions"),
                format!("instructions of profile `{}`: {message}", profile.id),
            );
            templates_hold = false;
        }
        for (index, tool) in &tools {
            templates_hold &= check_templates(report, &renderer, tool, &at(*index));
        }
        if !templates_hold {
            return;
        }
        check_budgets(report, &renderer, profile, &tools, &list);
    }
    report.diagnostics.dedup();
}

/// Whether every template of the tool renders.
fn check_templates(report: &mut Report<'_>, renderer: &Renderer<'_>, tool: &ToolSpec, path: &Path) -> bool {
    let words = path.key("words");
    let mut texts = vec![
        (words.key("purpose"), &tool.words.purpose),
        (words.key("use"), &tool.words.usage),
        (words.key("returns"), &tool.words.returns),
        (words.key("refuses"), &tool.words.refuses),
        (words.key("effects"), &tool.words.effects),
    ];
    for (index, param) in tool.params.iter().enumerate() {
        texts.push((path.key("params").index(index).key("description"), &param.description));
    }
    let mut good = true;
    for (at, text) in texts {
        if let Err(message) = renderer.text(text) {
            report.value(&at, format!("tool `{}`: {message}", tool.id));
            good = false;
        }
    }
    good
}

fn check_budgets(
    report: &mut Report<'_>,
    renderer: &Renderer<'_>,
    profile: &ProfileSpec,
    tools: &[(usize, &ToolSpec)],
    list: &Path,
) {
    for (index, tool) in tools {
        let length = renderer.description(tool).map_or(0, |text| text.chars().count());
        if length > DESCRIPTION_CHARS {
            let at = Path::root().key("tools").index(*index).key("words");
            let message = format!(
                "the description of tool `{}` is {length} characters long, above {DESCRIPTION_CHARS}",
                tool.id
            );
            report.key(&at, message);
        }
    }
    let descriptors: Vec<_> =
        tools.iter().filter_map(|(_, tool)| renderer.descriptor(tool, None).ok()).collect();
    let bytes = json!({ "tools": descriptors }).to_string().len();
    let most = list_budget(profile);
    if bytes > most {
        let message =
            format!("tools/list of profile `{}` is {bytes} bytes of compact JSON, above {most}", profile.id);
        report.key(list, message);
    }
}

/// Bytes that the profile's tools/list may have.
#[must_use]
pub fn list_budget(profile: &ProfileSpec) -> usize {
    profile.list_bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(TOOLS_LIST_BYTES)
}

/// The hints that clients approve calls on must be borne out by the policy.
fn check_hints(report: &mut Report<'_>, tool: &ToolSpec, path: &Path, file: &PolicyFile) {
    if tool.policy.is_empty() {
        return;
    }
    let what = format!("tool `{}`", tool.id);
    let Some(policy) = known_policy(report, &tool.policy, path, &what, file) else { return };
    let hints = path.key("annotations");
    if tool.annotations.read_only && policy.writes() {
        let message =
            format!("tool `{}` says `read_only: true`, but policy `{}` can write", tool.id, policy.id);
        report.value(&hints.key("read_only"), message);
    }
    if tool.annotations.read_only && tool.annotations.destructive {
        let message = format!("tool `{}` says that it only reads and that it is destructive", tool.id);
        report.value(&hints.key("destructive"), message);
    }
    if !tool.annotations.destructive && policy.can_lose() && file.exception(&tool.id).is_none() {
        let message = format!(
            "tool `{}` says `destructive: false`, but policy `{}` can delete or overwrite; list the tool under `exceptions` in policy.yaml with the reason, or say `true`",
            tool.id, policy.id
        );
        report.value(&hints.key("destructive"), message);
    }
}

/// The policy that an entry names; a diagnostic where there is none of that name.
pub(super) fn known_policy<'f>(
    report: &mut Report<'_>,
    id: &str,
    path: &Path,
    what: &str,
    file: &'f PolicyFile,
) -> Option<&'f PolicySpec> {
    let policy = file.policy(id);
    if policy.is_none() {
        let known: Vec<&str> = file.policies.iter().map(|policy| policy.id.as_str()).collect();
        let message = format!("{what} has an unknown policy: `{id}`{}", suggestion(id, &known));
        report.value(&path.key("policy"), message);
    }
    policy
}

/// The tools that policy.yaml names must be there and need to be named.
fn check_policy_names(
    file: &str,
    positions: &Positions,
    policy: &PolicyFile,
    manifest: &Manifest,
) -> Vec<Diagnostic> {
    let mut report = Report::new(file, positions);
    let root = Path::root();
    for (index, entry) in policy.policies.iter().enumerate() {
        let path = root.key("policies").index(index);
        let Some(name) = &entry.tool else { continue };
        if !manifest.tools.iter().any(|tool| tool.name == *name && tool.policy == entry.id) {
            let names: Vec<&str> =
                manifest.tools.iter().filter(|t| t.policy == entry.id).map(|t| t.name.as_str()).collect();
            let message = format!(
                "policy `{}`: no tool named `{name}` runs under it{}",
                entry.id,
                suggestion(name, &names)
            );
            report.value(&path.key("tool"), message);
        }
    }
    for (index, exception) in policy.exceptions.iter().enumerate() {
        let at = root.key("exceptions").index(index).key("tool");
        let ids: Vec<&str> = manifest.tools.iter().map(|tool| tool.id.as_str()).collect();
        match manifest.tool(&exception.tool) {
            _ if exception.tool.is_empty() => {}
            None => {
                report.value(
                    &at,
                    format!(
                        "exception for unknown tool `{}`{}",
                        exception.tool,
                        suggestion(&exception.tool, &ids)
                    ),
                );
            }
            Some(tool) => {
                let needed = !tool.annotations.destructive
                    && policy.policy(&tool.policy).is_none_or(PolicySpec::can_lose);
                if !needed {
                    report.value(&at, format!("tool `{}` needs no exception; remove it", tool.id));
                }
            }
        }
    }
    report.diagnostics
}

fn sorted(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    diagnostics.sort();
    diagnostics.dedup();
    diagnostics
}
