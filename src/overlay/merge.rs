//! All overlay files over the manifest: profiles first, then new tools, then changes, file by file.
//!
//! Later files win. Every mistake of all files comes out at once.

use super::change;
use super::profile;
use super::raw::{RawInstructions, RawOverlay, keys};
use super::statement;
use super::{Effective, OverlayFile, Part, Site, check};
use crate::spec::diagnostic::{Diagnostic, suggestion};
use crate::spec::environment::expand;
use crate::spec::load::load;
use crate::spec::model::{Manifest, ProfileSpec, ToolSpec};
use crate::spec::position::{Path, Positions, TOP};
use crate::spec::report::Report;
use crate::spec::settings::SurfaceSettings;
use crate::spec::shape::Shape;
use std::collections::HashMap;

/// Lays the files over the built-in manifest.
///
/// `served` is the profile that is served, which top-level entries are about; without one, the first. A profile
/// of an unknown name is left for the settings to report. `environment` gives a variable's value.
///
/// # Errors
///
/// Every mistake, by file and place.
pub fn merge(
    built_in: &Manifest,
    files: &[OverlayFile],
    served: Option<&str>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Effective, Vec<Diagnostic>> {
    let mut found = Vec::new();
    let mut parsed = Vec::new();
    for file in files {
        let loaded = load::<RawOverlay>(&file.name, &file.text, keys);
        found.extend(loaded.diagnostics);
        if let Some(mut raw) = loaded.raw {
            found.extend(fill_in(&file.name, &mut raw, &loaded.positions, environment));
            parsed.push(Parsed { file: &file.name, raw, positions: loaded.positions });
        }
    }
    let mut reports: Vec<Report<'_>> =
        parsed.iter().map(|parsed| Report::new(parsed.file, &parsed.positions)).collect();
    let mut merge = Merge {
        effective: Effective::built_in(built_in.clone()),
        own: Vec::new(),
        only: None,
        hidden: Vec::new(),
        touched: Vec::new(),
    };
    merge.effective.files = files.to_vec();
    let each = || parsed.iter().enumerate();
    for (at, file) in each() {
        if let Some(report) = reports.get_mut(at) {
            merge.profiles(file, report);
        }
    }
    let served = served.map(str::to_owned).or_else(|| built_in.profiles.first().map(|p| p.id.clone()));
    let served = served.filter(|id| merge.manifest().profile(id).is_some());
    for (at, file) in each() {
        if let Some(report) = reports.get_mut(at) {
            merge.new_tools(file, report, served.as_deref());
        }
    }
    for (at, file) in each() {
        if let Some(report) = reports.get_mut(at) {
            merge.profile_tools(file, report);
        }
    }
    if let Some(served) = &served {
        merge.adopt(served);
        for (at, file) in each() {
            if let Some(report) = reports.get_mut(at) {
                merge.changes(file, report, served);
            }
        }
        merge.mask(served);
    }
    found.extend(reports.into_iter().flat_map(|report| report.diagnostics));
    let mut profiles = std::mem::take(&mut merge.touched);
    profiles.extend(served.clone());
    let whole = check::check(&mut merge.effective, &profiles, served.as_deref());
    // Of what is wrong already, no more is said.
    let told = |later: &Diagnostic| {
        found.iter().any(|found: &Diagnostic| found.file == later.file && found.position == later.position)
    };
    let sound = found.is_empty();
    let whole: Vec<Diagnostic> =
        whole.into_iter().filter(|later| sound || later.position != TOP && !told(later)).collect();
    found.extend(whole);
    found.sort();
    found.dedup();
    if found.is_empty() { Ok(merge.effective) } else { Err(found) }
}

/// One file, parsed and with its variables filled in.
pub(super) struct Parsed<'f> {
    pub(super) file: &'f str,
    pub(super) raw: RawOverlay,
    pub(super) positions: Positions,
}

/// What the files have made of the manifest so far.
pub(super) struct Merge {
    pub(super) effective: Effective,
    /// The ids of tools made of SQL.
    own: Vec<String>,
    only: Option<Vec<String>>,
    hidden: Vec<String>,
    /// Profiles that a file has an entry for.
    touched: Vec<String>,
}

impl Merge {
    pub(super) fn manifest(&self) -> &Manifest {
        &self.effective.manifest
    }

    pub(super) fn note(&mut self, file: &Parsed<'_>, tool: &str, part: Part, path: &Path) {
        let position = file.positions.value(path);
        self.effective.sites.insert((tool.to_owned(), part), Site { file: file.file.to_owned(), position });
    }

    fn profiles(&mut self, file: &Parsed<'_>, report: &mut Report<'_>) {
        let path = Path::root().key("profiles");
        for (index, raw) in file.raw.profiles.iter().flatten().enumerate() {
            let at = path.index(index);
            if let Some(made) = profile::make(report, raw, &at, self.manifest()) {
                self.touched.push(made.id.clone());
                self.note_instructions(file, &made.id, raw.instructions.as_ref(), &at);
                match self.effective.manifest.profiles.iter_mut().find(|known| known.id == made.id) {
                    Some(known) => *known = made,
                    None => self.effective.manifest.profiles.push(made),
                }
            }
        }
    }

    /// Where a mistake in a profile's instructions stands, should one be found in the whole.
    fn note_instructions(
        &mut self,
        file: &Parsed<'_>,
        profile: &str,
        raw: Option<&RawInstructions>,
        path: &Path,
    ) {
        let Some(raw) = raw else { return };
        let key = if raw.append.is_some() { "append" } else { "replace" };
        self.note(file, profile, Part::Instructions, &path.key("instructions").key(key));
    }

    fn new_tools(&mut self, file: &Parsed<'_>, report: &mut Report<'_>, served: Option<&str>) {
        let path = Path::root().key("tools");
        let mut names: Vec<(String, Path)> = Vec::new();
        for (index, raw) in file.raw.tools.iter().flatten().enumerate() {
            let at = path.index(index);
            if raw.tool.is_some() {
                continue;
            }
            let Some(tool) = statement::make(report, raw, &at, self.manifest(), served) else { continue };
            names.push((tool.name.clone(), at.key("name")));
            for (part, key) in [
                (Part::Name, "name"),
                (Part::Words, "words"),
                (Part::Statement, "statement"),
                (Part::Params, "params"),
            ] {
                self.note(file, &tool.id, part, &at.key(key));
            }
            self.note(file, &tool.id, Part::Entry, &at);
            if !self.own.contains(&tool.id) {
                self.own.push(tool.id.clone());
            }
            match self.effective.manifest.tools.iter_mut().find(|known| known.id == tool.id) {
                Some(known) => *known = tool,
                None => self.effective.manifest.tools.push(tool),
            }
        }
        report.unique("tool", names.iter().map(|(name, path)| (name.as_str(), path.clone())));
    }

    fn profile_tools(&mut self, file: &Parsed<'_>, report: &mut Report<'_>) {
        let path = Path::root().key("profiles");
        for (index, raw) in file.raw.profiles.iter().flatten().enumerate() {
            let (Some(id), Some(tools)) = (raw.id.as_deref().map(str::trim), &raw.tools) else { continue };
            let at = path.index(index).key("tools");
            let listed: Vec<String> = tools
                .iter()
                .enumerate()
                .filter_map(|(index, tool)| {
                    let found = self.named(tool, id).or_else(|| self.anywhere(tool));
                    if found.is_none() {
                        report.value(&at.index(index), self.no_tool(tool, id));
                    }
                    found
                })
                .collect();
            report
                .unique("tool", listed.iter().enumerate().map(|(index, id)| (id.as_str(), at.index(index))));
            if tools.is_empty() {
                report.value(&at, format!("profile `{id}` has no `tools`"));
            }
            if let Some(profile) =
                self.effective.manifest.profiles.iter_mut().find(|profile| profile.id == id)
            {
                profile.tools = listed;
            }
        }
    }

    /// New tools belong to the served profile, at the end unless it lists them.
    fn adopt(&mut self, served: &str) {
        let own = self.own.clone();
        if let Some(profile) = self.served_mut(served) {
            let missing: Vec<String> = own.into_iter().filter(|id| !profile.tools.contains(id)).collect();
            profile.tools.extend(missing);
        }
    }

    fn changes(&mut self, file: &Parsed<'_>, report: &mut Report<'_>, served: &str) {
        // Within one file, tools go by the names they had before it.
        let before = self.names(served);
        let path = Path::root().key("tools");
        let mut targets: Vec<Option<String>> = Vec::new();
        for (index, raw) in file.raw.tools.iter().flatten().enumerate() {
            let target = raw.tool.as_deref().map(str::trim).and_then(|reference| {
                let found = self.found(reference, &before);
                if found.is_none() {
                    report.value(&path.index(index).key("tool"), self.no_tool(reference, served));
                }
                found
            });
            targets.push(target);
        }
        let entries = file.raw.tools.iter().flatten().zip(&targets);
        let renames: Vec<(String, String)> = entries
            .filter_map(|(raw, target)| {
                let tool = self.manifest().tool(target.as_ref()?)?;
                let name = raw.name.as_deref()?.trim();
                (name != tool.name).then(|| (tool.name.clone(), name.to_owned()))
            })
            .collect();
        self.rename_in_words(served, &renames);
        let settings = self.settings(served);
        for (index, (raw, target)) in file.raw.tools.iter().flatten().zip(&targets).enumerate() {
            let (Some(id), at) = (target, path.index(index)) else { continue };
            for (part, given) in [
                (Part::Name, raw.name.is_some()),
                (Part::Words, raw.words.is_some()),
                (Part::Params, raw.params.is_some()),
            ] {
                let key = match part {
                    Part::Name => "name",
                    Part::Words => "words",
                    _ => "params",
                };
                if given {
                    self.note(file, id, part, &at.key(key));
                }
            }
            self.note(file, id, Part::Entry, &at);
            if let Some(tool) = self.effective.manifest.tools.iter_mut().find(|tool| tool.id == *id) {
                change::apply(report, raw, &at, tool, &settings);
            }
        }
        let ids = targets.iter().enumerate();
        let ids = ids.filter_map(|(index, id)| Some((id.as_deref()?, path.index(index).key("tool"))));
        report.unique("tool", ids);
        self.note_instructions(file, served, file.raw.instructions.as_ref(), &Path::root());
        if let Some(raw) = &file.raw.instructions {
            let at = Path::root().key("instructions");
            if let Some(profile) = self.served_mut(served) {
                instructions(report, raw, &at, &mut profile.instructions);
            }
        }
        self.lists(file, report, served, &before);
    }

    fn lists(
        &mut self,
        file: &Parsed<'_>,
        report: &mut Report<'_>,
        served: &str,
        before: &HashMap<String, String>,
    ) {
        if let Some(list) = &file.raw.only {
            self.only = Some(self.listed(list, "only", report, served, before));
            self.hidden.clear();
            if list.is_empty() {
                report.value(&Path::root().key("only"), "`only` lists no tool, so none would be left");
            }
        }
        if let Some(list) = &file.raw.hide {
            let hidden = self.listed(list, "hide", report, served, before);
            self.hidden.extend(hidden);
        }
    }

    fn listed(
        &self,
        list: &[String],
        key: &str,
        report: &mut Report<'_>,
        served: &str,
        before: &HashMap<String, String>,
    ) -> Vec<String> {
        let path = Path::root().key(key);
        let mut ids = Vec::new();
        for (index, reference) in list.iter().enumerate() {
            let reference = reference.trim();
            let found = self.found(reference, before).or_else(|| self.named(reference, served));
            match found.filter(|id| self.tools_of(served).any(|tool| tool.id == *id)) {
                Some(id) => ids.push((id, path.index(index))),
                None => report.value(&path.index(index), self.no_tool(reference, served)),
            }
        }
        report.unique("tool", ids.iter().map(|(id, path)| (id.as_str(), path.clone())));
        ids.into_iter().map(|(id, _)| id).collect()
    }

    fn no_tool(&self, reference: &str, profile: &str) -> String {
        let elsewhere = self.manifest().profiles.iter().filter(|other| {
            self.tools_of(&other.id).any(|tool| tool.name == reference || tool.id == reference)
        });
        let elsewhere: Vec<String> = elsewhere.map(|other| format!("--profile {}", other.id)).collect();
        let known: Vec<&str> = self.tools_of(profile).map(|tool| tool.name.as_str()).collect();
        let hint = if elsewhere.is_empty() {
            suggestion(reference, &known)
        } else {
            format!("; there is one with {}", elsewhere.join(" or "))
        };
        format!("no tool `{reference}` in profile `{profile}`{hint}")
    }

    /// Takes out what is hidden or not among the only ones.
    fn mask(&mut self, served: &str) {
        let (only, hidden) = (self.only.take(), std::mem::take(&mut self.hidden));
        if let Some(profile) = self.served_mut(served) {
            profile
                .tools
                .retain(|id| !hidden.contains(id) && only.as_ref().is_none_or(|only| only.contains(id)));
        }
    }

    pub(super) fn served_mut(&mut self, served: &str) -> Option<&mut ProfileSpec> {
        self.effective.manifest.profiles.iter_mut().find(|profile| profile.id == served)
    }

    fn settings(&self, served: &str) -> SurfaceSettings {
        let profile = self.manifest().profile(served).or_else(|| self.manifest().profiles.first());
        match profile {
            Some(profile) => SurfaceSettings::for_profile(&profile.defaults),
            None => SurfaceSettings::for_profile(&crate::spec::model::Defaults {
                query_timeout: 0.0,
                default_limit: 0,
                max_rows: 0,
                max_result_bytes: 0,
                max_cell_chars: 0,
            }),
        }
    }

    /// The tools of a profile by their names.
    fn names(&self, profile: &str) -> HashMap<String, String> {
        self.tools_of(profile).map(|tool| (tool.name.clone(), tool.id.clone())).collect()
    }

    pub(super) fn tools_of(&self, profile: &str) -> impl Iterator<Item = &ToolSpec> {
        let tools =
            self.manifest().profile(profile).map(|profile| profile.tools.as_slice()).unwrap_or_default();
        tools.iter().filter_map(|id| self.manifest().tool(id))
    }

    fn found(&self, reference: &str, names: &HashMap<String, String>) -> Option<String> {
        let by_id = self.manifest().tool(reference).map(|tool| tool.id.clone());
        by_id.or_else(|| names.get(reference).cloned())
    }

    fn named(&self, reference: &str, profile: &str) -> Option<String> {
        self.found(reference, &self.names(profile))
    }

    /// A tool of this name in whatever profile, or made by an overlay.
    fn anywhere(&self, name: &str) -> Option<String> {
        self.manifest().tools.iter().find(|tool| tool.name == name).map(|tool| tool.id.clone())
    }
}

/// Replaces or extends instructions.
pub(super) fn instructions(report: &mut Report<'_>, raw: &RawInstructions, at: &Path, text: &mut String) {
    if raw.replace.is_none() && raw.append.is_none() {
        report.value(at, "`instructions` needs `replace` or `append`");
    }
    if let Some(replace) = &raw.replace {
        *text = report.text(Some(replace), at, "replace", "`instructions`");
    }
    if let Some(append) = &raw.append {
        let more = report.text(Some(append), at, "append", "`instructions`");
        *text = format!("{}\n\n{more}", text.trim_end());
    }
}

/// Fills in variables from the environment, in every text of the file.
fn fill_in(
    file: &str,
    raw: &mut RawOverlay,
    positions: &Positions,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    raw.texts(&Path::root(), &mut |path, text| match expand(text, environment) {
        Ok(expanded) => *text = expanded,
        Err(message) => {
            found.push(Diagnostic { file: file.to_owned(), position: positions.value(path), message });
        }
    });
    found
}
