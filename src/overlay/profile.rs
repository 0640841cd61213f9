//! One profile of an overlay: a new one that starts from another, or one that is changed.
//!
//! Which tools its list names is looked up when all new tools are known.

use super::merge::instructions;
use super::raw::RawProfileEntry;
use crate::spec::diagnostic::suggestion;
use crate::spec::model::{Defaults, Manifest, ProfileSpec};
use crate::spec::position::Path;
use crate::spec::raw::RawDefaults;
use crate::spec::report::{Report, is_identifier};

/// The profile as the entry at `path` has it; none where it is unclear which it is or what it starts from.
pub(super) fn make(
    report: &mut Report<'_>,
    raw: &RawProfileEntry,
    path: &Path,
    manifest: &Manifest,
) -> Option<ProfileSpec> {
    let id = report.text(raw.id.as_ref(), path, "id", "a profile");
    let what = format!("profile `{id}`");
    if id.is_empty() {
        return None;
    }
    if !is_identifier(&id) {
        report.value(&path.key("id"), format!("{what} needs an id of lower-case letters, digits and `_`"));
    }
    let ids: Vec<&str> = manifest.profiles.iter().map(|profile| profile.id.as_str()).collect();
    let known = manifest.profile(&id);
    let base = match (known, raw.base.as_deref().map(str::trim)) {
        (Some(known), None) => known,
        (Some(_), Some(_)) => {
            report.key(&path.key("base"), format!("{what} is there already, so it has no `base`"));
            return None;
        }
        (None, None) => {
            let message = format!(
                "{what} is new: say with `base` which profile it starts from{}",
                suggestion("", &ids)
            );
            report.value(path, message);
            return None;
        }
        (None, Some(base)) => match manifest.profile(base) {
            Some(base) => base,
            None => {
                let message = format!("{what} has an unknown `base`: `{base}`{}", suggestion(base, &ids));
                report.value(&path.key("base"), message);
                return None;
            }
        },
    };
    let mut profile = ProfileSpec { id, ..base.clone() };
    if raw.title.is_some() {
        profile.title = report.text(raw.title.as_ref(), path, "title", &what);
    }
    let lists = [
        ("resources", &raw.resources, &mut profile.resources, &base.resources),
        ("prompts", &raw.prompts, &mut profile.prompts, &base.prompts),
    ];
    for (key, given, list, offered) in lists {
        let Some(given) = given else { continue };
        let offered: Vec<&str> = offered.iter().map(String::as_str).collect();
        for (index, id) in given.iter().enumerate().filter(|(_, id)| !offered.contains(&id.as_str())) {
            let at = path.key(key).index(index);
            report.value(
                &at,
                format!("{what} starts from one without `{id}` in its `{key}`{}", suggestion(id, &offered)),
            );
        }
        list.clone_from(given);
    }
    if let Some(raw) = &raw.defaults {
        defaults(report, raw, &path.key("defaults"), &what, &mut profile.defaults);
    }
    if let Some(raw) = &raw.instructions {
        instructions(report, raw, &path.key("instructions"), &mut profile.instructions);
    }
    Some(profile)
}

fn defaults(report: &mut Report<'_>, raw: &RawDefaults, path: &Path, what: &str, defaults: &mut Defaults) {
    let counts = [
        ("default_limit", raw.default_limit, &mut defaults.default_limit),
        ("max_rows", raw.max_rows, &mut defaults.max_rows),
        ("max_result_bytes", raw.max_result_bytes, &mut defaults.max_result_bytes),
        ("max_cell_chars", raw.max_cell_chars, &mut defaults.max_cell_chars),
    ];
    for (key, given, value) in counts {
        let Some(given) = given else { continue };
        if given == 0 || given > *value {
            report.value(&path.key(key), format!("`{key}` of {what} must be from 1 to {value}, got {given}"));
        } else {
            *value = given;
        }
    }
    if let Some(given) = raw.query_timeout {
        if given > 0.0 && given <= defaults.query_timeout {
            defaults.query_timeout = given;
        } else {
            let most = defaults.query_timeout;
            let message =
                format!("`query_timeout` of {what} must be above 0 and at most {most}, got {given}");
            report.value(&path.key("query_timeout"), message);
        }
    }
    defaults.default_limit = defaults.default_limit.min(defaults.max_rows);
}
