//! What holds for the whole when all files are laid over: names, templates, budgets; and what is worth a note.
//!
//! The build's limits, reported at the overlay's entry that broke them.

use super::{Effective, Part, Site};
use crate::spec::check::{DESCRIPTION_CHARS, list_budget};
use crate::spec::descriptor::{Context, Renderer};
use crate::spec::diagnostic::Diagnostic;
use crate::spec::model::{Format, ProfileSpec, ToolSpec};
use crate::spec::position::TOP;
use crate::spec::settings::SurfaceSettings;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};

const ENTRY: &[Part] = &[Part::Entry];
const NAMED: &[Part] = &[Part::Name, Part::Entry];
const WORDED: &[Part] = &[Part::Words, Part::Entry];
const ANY: &[Part] = &[Part::Words, Part::Params, Part::Entry];

/// Checks these profiles.
pub(super) fn check(effective: &mut Effective, profiles: &[String], served: Option<&str>) -> Vec<Diagnostic> {
    let ids: BTreeSet<&String> = profiles.iter().collect();
    let mut found = Vec::new();
    for id in ids {
        if let Some(profile) = effective.manifest.profile(id) {
            found.extend(check_profile(effective, profile));
        }
    }
    if let Some(profile) = served.and_then(|id| effective.manifest.profile(id)) {
        effective.notes = notes(effective, profile);
    }
    found
}

fn check_profile(effective: &Effective, profile: &ProfileSpec) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let tools = tools_of(effective, profile);
    if tools.is_empty() {
        found.push(top(effective, format!("profile `{}` has no tools left", profile.id)));
        return found;
    }
    let mut names: HashMap<&str, &str> = HashMap::new();
    for tool in &tools {
        if let Some(first) = names.insert(&tool.name, &tool.id) {
            let message = format!(
                "in profile `{}`, tools `{first}` and `{}` are both called `{}`; rename or hide one",
                profile.id, tool.id, tool.name
            );
            // At the one that an overlay named.
            let site =
                if effective.sites.contains_key(&(tool.id.clone(), Part::Name)) { &tool.id } else { first };
            found.push(effective.diagnostic(site, NAMED, message));
        }
        if profile.format == Format::Structured && tool.output.is_none() && tool.statement.is_none() {
            let message = format!(
                "tool `{}` has no structured results, and profile `{}` sends such",
                tool.id, profile.id
            );
            found.push(effective.diagnostic(&tool.id, ENTRY, message));
        }
    }
    let active: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let settings = SurfaceSettings::for_profile(&profile.defaults);
    for read_only in [true, false] {
        let context = Context::new(&settings, &active, read_only);
        let renderer = Renderer::new(&context);
        if let Err(message) = renderer.text(&profile.instructions) {
            let message = format!("instructions of profile `{}`: {message}", profile.id);
            found.push(effective.diagnostic(&profile.id, &[Part::Instructions], message));
        }
        found.extend(budgets(effective, &renderer, profile, &tools));
        if !found.is_empty() {
            // The other mode would say nearly the same once more.
            break;
        }
    }
    found
}

fn budgets(
    effective: &Effective,
    renderer: &Renderer<'_>,
    profile: &ProfileSpec,
    tools: &[&ToolSpec],
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut descriptors = Vec::new();
    for tool in tools {
        match renderer.descriptor(tool, None) {
            Err(message) => {
                found.push(effective.diagnostic(&tool.id, ANY, format!("tool `{}`: {message}", tool.id)));
            }
            Ok(descriptor) => {
                let length = text_of(&descriptor, "description").chars().count();
                if length > DESCRIPTION_CHARS {
                    let message = format!(
                        "the description of tool `{}` is {length} characters long, above {DESCRIPTION_CHARS}",
                        tool.id
                    );
                    found.push(effective.diagnostic(&tool.id, WORDED, message));
                }
                descriptors.push(descriptor);
            }
        }
    }
    let bytes = json!({ "tools": descriptors }).to_string().len();
    let most = list_budget(profile);
    if found.is_empty() && bytes > most {
        let message = format!(
            "tools/list of profile `{}` is {bytes} bytes of compact JSON, above {most}; shorten words or hide tools",
            profile.id
        );
        found.push(top(effective, message));
    }
    found
}

/// Words and instructions that speak of a tool which is not there.
fn notes(effective: &Effective, profile: &ProfileSpec) -> Vec<Diagnostic> {
    let tools = tools_of(effective, profile);
    let active: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let settings = SurfaceSettings::for_profile(&profile.defaults);
    let context = Context::new(&settings, &active, false);
    let renderer = Renderer::new(&context);
    // A name of one word is a word of the language as well.
    let gone: BTreeSet<&str> = effective
        .manifest
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .filter(|name| name.contains('_') && !active.contains(name))
        .collect();
    let mentions = |text: &str| {
        let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        words.find(|word| gone.contains(word)).map(str::to_owned)
    };
    let mut found = Vec::new();
    if let Some(name) = renderer.text(&profile.instructions).ok().and_then(|text| mentions(&text)) {
        let message = format!(
            "the instructions speak of `{name}`, which is no tool here; change them with `instructions`"
        );
        found.push(top(effective, message));
    }
    for tool in tools {
        let Ok(descriptor) = renderer.descriptor(tool, None) else { continue };
        let schema = descriptor.get("inputSchema").map(ToString::to_string).unwrap_or_default();
        let text = format!("{} {schema}", text_of(&descriptor, "description"));
        if let Some(name) = mentions(&text) {
            let message = format!(
                "the words of tool `{}` speak of `{name}`, which is no tool here; change them with `words`",
                tool.name
            );
            found.push(effective.diagnostic(&tool.id, WORDED, message));
        }
    }
    found
}

fn text_of<'d>(descriptor: &'d Value, key: &str) -> &'d str {
    descriptor.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn tools_of<'e>(effective: &'e Effective, profile: &ProfileSpec) -> Vec<&'e ToolSpec> {
    profile.tools.iter().filter_map(|id| effective.manifest.tool(id)).collect()
}

/// At the top of the last file, which had the last word.
fn top(effective: &Effective, message: String) -> Diagnostic {
    let site = Site { file: effective.last_file(), position: TOP };
    Diagnostic { file: site.file, position: site.position, message }
}
