//! From a user's policy file to a checked [`Narrowing`]: every mistake at once, by its place.
//!
//! Such a file can only take away. What would widen a policy is a mistake here, as is what would change
//! nothing: a name that nothing bears is most likely a slip, and a slip must not leave a hole. It reads no
//! file and no environment.

use super::diagnostic::{Diagnostic, suggestion};
use super::environment::expand;
use super::load::load;
use super::position::{Path, Positions};
use super::raw::{
    RawHidden, RawNarrowedPolicy, RawNarrowing, RawPolicy, RawPolicyFile, RawRefused, narrowing_keys,
};
use super::report::Report;
use crate::policy::action::ActionKind;
use crate::policy::narrowing::{HiddenPattern, LowerLimits, NarrowedPolicy, Narrowing, Pattern, Refused};
use serde_json::Value;

/// What there is to take away from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ground {
    /// The policies under which agent-written SQL runs.
    pub policies: Vec<GroundPolicy>,
    /// Every function of this SQLite, and every one that is refused anyway; lower case.
    pub functions: Vec<String>,
    /// The limits in force, from flags, environment and profile.
    pub limits: GroundLimits,
}

/// What one built-in policy allows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroundPolicy {
    /// Its id.
    pub id: String,
    /// Actions.
    pub actions: Vec<ActionKind>,
    /// Pragmas, in any form.
    pub pragmas: Vec<String>,
}

/// The limits in force.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroundLimits {
    /// Rows.
    pub max_rows: u64,
    /// Bytes.
    pub max_result_bytes: u64,
    /// Characters.
    pub max_cell_chars: u64,
    /// Rows.
    pub max_update_rows: u64,
    /// Milliseconds.
    pub query_timeout_ms: u64,
}

/// Gives the value of a variable of the environment.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Loads and checks a policy file.
///
/// # Errors
/// Every mistake, sorted by place.
pub fn check_narrowing(
    file: &str,
    text: &str,
    ground: &Ground,
    environment: Environment<'_>,
) -> Result<Narrowing, Vec<Diagnostic>> {
    let loaded = load::<RawNarrowing>(file, text, narrowing_keys);
    let mut found: Vec<Diagnostic> = loaded.diagnostics.into_iter().map(widening).collect();
    // A file of comments alone is a map without keys.
    let nothing = text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
    let raw = if nothing { Some(RawNarrowing::default()) } else { loaded.raw };
    if nothing {
        found.clear();
    }
    let Some(raw) = raw else { return Err(sorted(found)) };
    let (narrowing, diagnostics) = Checker::new(file, &loaded.positions, ground, environment).all(&raw);
    found.extend(diagnostics);
    if found.is_empty() { Ok(narrowing) } else { Err(sorted(found)) }
}

/// A key of policy.yaml that is no key here is not unknown: it would replace or allow something.
fn widening(mut diagnostic: Diagnostic) -> Diagnostic {
    let key = diagnostic.message.strip_prefix("unknown key `").and_then(|rest| rest.split('`').next());
    if let Some(key) = key {
        let built_in = RawPolicy::KEYS.iter().chain(RawPolicyFile::KEYS).any(|known| *known == key);
        if built_in || ["allow", "protected", "show"].contains(&key) {
            diagnostic.message = format!(
                "`{key}` is not for a policy file of your own, which can only narrow; it takes `protect`, `hide`, `refuse`, `policies` with `refuse`, and `limits`"
            );
        }
    }
    diagnostic
}

fn sorted(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    found.sort();
    found.dedup();
    found
}

struct Checker<'a> {
    report: Report<'a>,
    ground: &'a Ground,
    environment: Environment<'a>,
}

impl<'a> Checker<'a> {
    fn new(
        file: &'a str,
        positions: &'a Positions,
        ground: &'a Ground,
        environment: Environment<'a>,
    ) -> Self {
        Self { report: Report::new(file, positions), ground, environment }
    }

    fn all(mut self, raw: &RawNarrowing) -> (Narrowing, Vec<Diagnostic>) {
        let root = Path::root();
        let hide = root.key("hide");
        let hidden = raw.hide.iter().flatten().enumerate();
        let hidden: Vec<_> = hidden.filter_map(|(index, raw)| self.hidden(raw, &hide.index(index))).collect();
        let policies = root.key("policies");
        let narrowed = raw.policies.iter().flatten().enumerate();
        let narrowed: Vec<_> =
            narrowed.filter_map(|(index, raw)| self.policy(raw, &policies.index(index))).collect();
        let ids = narrowed.iter().map(|(policy, at)| (policy.id.as_str(), at.clone()));
        self.report.unique("policy", ids);
        let refused = raw.refuse.as_ref().map(|raw| self.refused(raw, &root.key("refuse"), None));
        let narrowing = Narrowing {
            protected: self.patterns(raw.protect.as_deref(), &root.key("protect")),
            hidden,
            refused: refused.unwrap_or_default(),
            policies: narrowed.into_iter().map(|(policy, _)| policy).collect(),
            limits: self.limits(raw),
        };
        (narrowing, self.report.diagnostics)
    }

    /// A string value with its variables replaced; none, and a diagnostic, where it says nothing.
    fn text(&mut self, given: &str, path: &Path) -> Option<String> {
        match expand(given, self.environment) {
            Ok(text) if text.trim().is_empty() => {
                self.report.value(path, "an empty name");
                None
            }
            Ok(text) => Some(text.trim().to_owned()),
            Err(words) => {
                self.report.value(path, words);
                None
            }
        }
    }

    fn patterns(&mut self, given: Option<&[String]>, path: &Path) -> Vec<Pattern> {
        let given = given.unwrap_or_default().iter().enumerate();
        given.filter_map(|(index, text)| self.text(text, &path.index(index))).map(Pattern::new).collect()
    }

    fn hidden(&mut self, raw: &RawHidden, path: &Path) -> Option<HiddenPattern> {
        let Some(table) = &raw.table else {
            self.report.value(path, "an entry of `hide` has no `table`");
            return None;
        };
        let table = Pattern::new(self.text(table, &path.key("table"))?);
        let schema = ["sqlite_schema", "sqlite_master"];
        if table.is_plain() && schema.iter().any(|name| table.matches(name)) {
            let words = format!("`{}` cannot be hidden: SQL cannot be written without it", table.as_str());
            self.report.value(&path.key("table"), words);
        }
        let columns = self.patterns(raw.columns.as_deref(), &path.key("columns"));
        if raw.columns.as_ref().is_some_and(Vec::is_empty) {
            let words = format!(
                "`columns` of `{}` is empty; name them, or leave the key out to hide the whole table",
                table.as_str()
            );
            self.report.key(&path.key("columns"), words);
        }
        Some(HiddenPattern { table, columns })
    }

    fn policy(&mut self, raw: &RawNarrowedPolicy, path: &Path) -> Option<(NarrowedPolicy, Path)> {
        let at = path.key("id");
        let Some(id) = &raw.id else {
            self.report.value(path, "an entry of `policies` has no `id`");
            return None;
        };
        let id = self.text(id, &at)?;
        let ground = self.ground;
        let Some(policy) = ground.policies.iter().find(|policy| policy.id == id) else {
            let known: Vec<&str> = ground.policies.iter().map(|policy| policy.id.as_str()).collect();
            self.report.value(&at, format!("unknown policy `{id}`{}", suggestion(&id, &known)));
            return None;
        };
        let Some(refuse) = &raw.refuse else {
            self.report.value(path, format!("policy `{id}` has no `refuse`, so nothing would change"));
            return None;
        };
        let refused = self.refused(refuse, &path.key("refuse"), Some(policy));
        Some((NarrowedPolicy { id, refused }, at))
    }

    /// What is refused under one policy, or under all.
    fn refused(&mut self, raw: &RawRefused, path: &Path, policy: Option<&GroundPolicy>) -> Refused {
        let ground = self.ground;
        let of = |policy: &'a GroundPolicy| policy.pragmas.iter().map(String::as_str);
        let mut pragmas: Vec<&str> = match policy {
            Some(policy) => policy.pragmas.iter().map(String::as_str).collect(),
            None => ground.policies.iter().flat_map(of).collect(),
        };
        pragmas.sort_unstable();
        pragmas.dedup();
        let functions: Vec<&str> = ground.functions.iter().map(String::as_str).collect();
        Refused {
            actions: self.actions(raw.actions.as_deref(), &path.key("actions"), policy),
            functions: self.names(raw.functions.as_deref(), &path.key("functions"), &functions, |name| {
                format!("SQLite has no function `{name}`")
            }),
            pragmas: self.names(
                raw.pragmas.as_deref(),
                &path.key("pragmas"),
                &pragmas,
                |name| match policy {
                    Some(policy) => format!("policy `{}` allows no pragma `{name}`", policy.id),
                    None => format!("no policy allows the pragma `{name}`"),
                },
            ),
        }
    }

    fn actions(
        &mut self,
        given: Option<&[String]>,
        path: &Path,
        policy: Option<&GroundPolicy>,
    ) -> Vec<ActionKind> {
        let known: Vec<&str> = ActionKind::ALL.iter().map(|action| action.name()).collect();
        let mut actions = Vec::new();
        for (index, text) in given.unwrap_or_default().iter().enumerate() {
            let at = path.index(index);
            let Some(name) = self.text(text, &at) else { continue };
            let Some(kind) = ActionKind::from_name(&name) else {
                self.report.value(&at, format!("unknown action `{name}`{}", suggestion(&name, &known)));
                continue;
            };
            let allowed = match policy {
                Some(policy) => policy.actions.contains(&kind),
                None => self.ground.policies.iter().any(|policy| policy.actions.contains(&kind)),
            };
            if !allowed {
                let whose = match policy {
                    Some(policy) => format!("policy `{}` does not allow", policy.id),
                    None => "no policy allows".to_owned(),
                };
                self.report.value(&at, format!("{whose} `{name}`; refusing it changes nothing"));
            }
            actions.push(kind);
        }
        actions
    }

    fn names(
        &mut self,
        given: Option<&[String]>,
        path: &Path,
        known: &[&str],
        unknown: impl Fn(&str) -> String,
    ) -> Vec<String> {
        let mut names = Vec::new();
        for (index, text) in given.unwrap_or_default().iter().enumerate() {
            let at = path.index(index);
            let Some(name) = self.text(text, &at) else { continue };
            let name = name.to_ascii_lowercase();
            if !known.contains(&name.as_str()) {
                // All of them would be a long line.
                let near = super::diagnostic::nearest(&name, known);
                let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                self.report.value(&at, format!("{}{hint}", unknown(&name)));
            }
            names.push(name);
        }
        names
    }

    fn limits(&mut self, raw: &RawNarrowing) -> LowerLimits {
        let Some(limits) = &raw.limits else { return LowerLimits::default() };
        let most = self.ground.limits;
        LowerLimits {
            max_rows: self.count("max_rows", limits.max_rows.as_ref(), 1, most.max_rows),
            max_result_bytes: self.count(
                "max_result_bytes",
                limits.max_result_bytes.as_ref(),
                1,
                most.max_result_bytes,
            ),
            max_cell_chars: self.count(
                "max_cell_chars",
                limits.max_cell_chars.as_ref(),
                1,
                most.max_cell_chars,
            ),
            max_update_rows: self.count(
                "max_update_rows",
                limits.max_update_rows.as_ref(),
                0,
                most.max_update_rows,
            ),
            query_timeout_ms: self.milliseconds(limits.query_timeout.as_ref(), most.query_timeout_ms),
        }
    }

    fn number(&mut self, key: &str, given: Option<&Value>) -> Option<(f64, Path)> {
        let at = Path::root().key("limits").key(key);
        let text = match given? {
            Value::Null => return None,
            Value::String(text) => self.text(text, &at)?,
            other => other.to_string(),
        };
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Some((number, at)),
            _ => {
                self.report.value(&at, format!("`{key}` must be a number, and `{text}` is none"));
                None
            }
        }
    }

    fn count(&mut self, key: &str, given: Option<&Value>, least: u64, most: u64) -> Option<u64> {
        let (number, at) = self.number(key, given)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, not negative, and far below 2^53"
        )]
        let whole = (number.fract() == 0.0 && (0.0..=4e9).contains(&number)).then_some(number as u64);
        match whole.filter(|whole| (least..=most).contains(whole)) {
            Some(whole) => return Some(whole),
            None if whole.is_some_and(|whole| whole > most) => {
                let words =
                    format!("`{key}` is {number} and {most} is in force; a policy file can only lower it");
                self.report.value(&at, words);
            }
            None => {
                self.report.value(&at, format!("`{key}` must be a whole number from {least} to {most}"));
            }
        }
        None
    }

    fn milliseconds(&mut self, given: Option<&Value>, most: u64) -> Option<u64> {
        let (seconds, at) = self.number("query_timeout", given)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bounded from both sides"
        )]
        let milliseconds = (seconds * 1000.0).ceil().clamp(0.0, 1e15) as u64;
        if milliseconds > most {
            #[expect(clippy::cast_precision_loss, reason = "a day in milliseconds at most")]
            let force = most as f64 / 1000.0;
            self.report.value(
                &at,
                format!(
                    "`query_timeout` is {seconds} and {force} is in force; a policy file can only lower it"
                ),
            );
            return None;
        }
        if milliseconds == 0 {
            self.report.value(&at, "`query_timeout` must be a number of seconds above 0");
            return None;
        }
        Some(milliseconds)
    }
}
