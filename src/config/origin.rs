//! Where each setting came from, and the flags that would give the same settings again.
//!
//! It judges nothing; `resolve` does, and notes what it looked at.

use super::raw::RawArgs;
use super::resolve::Settings;
use super::value::Given;
use crate::error::StartError;
use clap::Args;
use std::ffi::{OsStr, OsString};

/// Where a setting's value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The command line; the flag as written, `--max-rows`.
    Flag(String),
    /// The environment; the variable, `INDELIBLE_MAX_ROWS`.
    Variable(String),
    /// The profile, by its own defaults or because none of its tools writes.
    Profile,
    /// The default that all profiles share.
    Default,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::Profile => f.write_str("profile"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// One setting as it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The flag without its dashes: `max-rows`.
    pub name: String,
    /// The value as it would be given; empty where there is none.
    pub value: OsString,
    /// Where it came from.
    pub origin: Origin,
}

/// Settings, and where each came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The settings.
    pub settings: Settings,
    /// Each of them, in the order of the help.
    pub listed: Vec<Setting>,
}

impl Resolved {
    /// The arguments that give another start the same settings, whatever its environment and its folder: the
    /// database first, then everything that was given by flag or variable.
    ///
    /// # Errors
    /// A value that is not UTF-8, which no configuration file can hold; exit status 2.
    pub fn arguments(&self) -> Result<Vec<String>, StartError> {
        let mut arguments = Vec::new();
        for setting in &self.listed {
            if !matches!(setting.origin, Origin::Flag(_) | Origin::Variable(_)) {
                continue;
            }
            if setting.name == "tools" {
                for path in &self.settings.tools {
                    let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                    arguments.extend(["--tools".to_owned(), written("tools", path.as_os_str())?.to_owned()]);
                }
                continue;
            }
            let value = written(&setting.name, &setting.value)?;
            match (setting.name.as_str(), value) {
                ("read-only" | "immutable", "true") | ("verbose", "1") => {
                    arguments.push(format!("--{}", setting.name))
                }
                ("verbose", "2") => arguments.push("-vv".to_owned()),
                ("read-only" | "immutable" | "verbose", _) => {}
                (name, value) => arguments.extend([format!("--{name}"), value.to_owned()]),
            }
        }
        Ok(arguments)
    }
}

/// The value as a configuration file can hold it.
fn written<'v>(name: &str, value: &'v OsStr) -> Result<&'v str, StartError> {
    value.to_str().ok_or_else(|| {
        let shown = value.to_string_lossy();
        StartError::usage(format!("--{name} `{shown}`: is not UTF-8, so it cannot be written down"))
    })
}

/// Every setting of the command line with its value and origin; `seen` is what `resolve` looked at, by flag.
pub(super) fn listed(raw: &RawArgs, settings: &Settings, seen: &[(String, Given)]) -> Vec<Setting> {
    let origin = |name: &str| {
        let given = seen.iter().find(|(flag, _)| flag == name).map(|(_, given)| given.name.clone());
        given.map(|name| if name.starts_with('-') { Origin::Flag(name) } else { Origin::Variable(name) })
    };
    let command = RawArgs::augment_args(clap::Command::new("settings"));
    let names = command.get_arguments().filter_map(|argument| argument.get_long());
    // Another name for --query-timeout, and shown there.
    let names = names.filter(|name| *name != "timeout-ms");
    let setting = |name: &str| {
        let (value, unset) = value(settings, name);
        let switched_on = match name {
            "read-only" => raw.read_only,
            "immutable" => raw.immutable,
            "verbose" => raw.verbose > 0,
            _ => false,
        };
        let origin = match name {
            _ if switched_on => Some(Origin::Flag(format!("--{name}"))),
            "query-timeout" => origin(name).or_else(|| origin("timeout-ms")),
            _ => origin(name),
        };
        Setting { name: name.to_owned(), value, origin: origin.unwrap_or(unset) }
    };
    names.map(setting).collect()
}

/// A setting's value, and where it came from if nobody gave it.
fn value(settings: &Settings, name: &str) -> (OsString, Origin) {
    let path = |path: &std::path::Path| path.as_os_str().to_owned();
    let text = |text: &dyn ToString| OsString::from(text.to_string());
    match name {
        "db" => (path(&settings.db), Origin::Default),
        "data" => {
            (settings.primitives.as_ref().map(|one| path(&one.data)).unwrap_or_default(), Origin::Default)
        }
        "group" => (
            settings
                .primitives
                .as_ref()
                .and_then(|one| one.group.as_ref())
                .map(OsString::from)
                .unwrap_or_default(),
            Origin::Default,
        ),
        "embedding-model" => (
            settings
                .primitives
                .as_ref()
                .and_then(|one| one.embedding_model.as_deref())
                .map(path)
                .unwrap_or_default(),
            Origin::Default,
        ),
        "profile" => (text(&settings.profile), Origin::Default),
        // As the variable takes them; where a path has the separator in it, nothing is shown.
        "tools" => (std::env::join_paths(&settings.tools).unwrap_or_default(), Origin::Default),
        // On without being asked for: the profile only reads.
        "read-only" => {
            (text(&settings.read_only), if settings.read_only { Origin::Profile } else { Origin::Default })
        }
        "immutable" => (text(&settings.immutable), Origin::Default),
        "query-timeout" => (text(&settings.query_timeout.as_secs_f64()), Origin::Profile),
        "busy-timeout" => (text(&settings.busy_timeout.as_secs_f64()), Origin::Default),
        "default-limit" => (text(&settings.default_limit), Origin::Profile),
        "max-rows" => (text(&settings.max_rows), Origin::Profile),
        "max-result-bytes" => (text(&settings.max_result_bytes), Origin::Profile),
        "max-cell-chars" => (text(&settings.max_cell_chars), Origin::Profile),
        "max-update-rows" => (text(&settings.max_update_rows), Origin::Default),
        "search-candidates" => (text(&settings.search_candidates), Origin::Default),
        "snapshots" => (text(&settings.snapshots), Origin::Default),
        "confirm" => (text(&settings.confirm.as_str()), Origin::Default),
        "snapshot-dir" => (path(&settings.snapshot_dir), Origin::Default),
        "audit-keep" => {
            (settings.audit_keep.as_ref().map(|keep| text(keep)).unwrap_or_default(), Origin::Default)
        }
        "audit-log" => (settings.audit_log.as_deref().map(path).unwrap_or_default(), Origin::Default),
        "policy" => (settings.policy.as_deref().map(path).unwrap_or_default(), Origin::Default),
        "verbose" => (text(&settings.verbosity), Origin::Default),
        // A new setting must be added above; a test finds it.
        _ => (OsStr::new(UNLISTED).to_owned(), Origin::Default),
    }
}

/// What stands for the value of a setting that this file does not know.
const UNLISTED: &str = "(not listed)";

#[cfg(test)]
mod tests {
    use super::super::resolve::tests::everything;
    use super::*;

    #[test]
    fn every_setting_is_listed_with_its_value_and_where_it_came_from() {
        let resolved = everything("", "").unwrap();
        let names: Vec<&str> = resolved.listed.iter().map(|setting| setting.name.as_str()).collect();
        assert!(names.len() >= 16, "{names:?}");
        for setting in &resolved.listed {
            assert_ne!(setting.value, UNLISTED, "add {} to src/config/origin.rs", setting.name);
        }
        // flags beside --db /d, environment, setting, value, origin
        let rows = [
            ("", "", "db", "/d", "--db"),
            ("", "", "profile", "memory", "default"),
            ("", "INDELIBLE_PROFILE=explorer", "profile", "explorer", "INDELIBLE_PROFILE"),
            ("--profile explorer", "", "read-only", "true", "profile"),
            ("--read-only", "INDELIBLE_READ_ONLY=0", "read-only", "true", "--read-only"),
            ("", "INDELIBLE_READ_ONLY=1", "read-only", "true", "INDELIBLE_READ_ONLY"),
            ("", "", "read-only", "false", "default"),
            ("", "", "max-rows", "1000", "profile"),
            ("--max-rows 7", "INDELIBLE_MAX_ROWS=9", "max-rows", "7", "--max-rows"),
            ("--timeout-ms 1500", "", "query-timeout", "1.5", "--timeout-ms"),
            ("", "INDELIBLE_TIMEOUT_MS=1500", "query-timeout", "1.5", "INDELIBLE_TIMEOUT_MS"),
            ("--query-timeout 2", "INDELIBLE_TIMEOUT_MS=1500", "query-timeout", "2", "--query-timeout"),
            ("", "", "query-timeout", "10", "profile"),
            ("", "", "audit-log", "", "default"),
            ("", "INDELIBLE_CONFIRM=destructive", "confirm", "destructive", "INDELIBLE_CONFIRM"),
            ("", "", "snapshot-dir", "/d.snapshots", "default"),
            ("-vv", "", "verbose", "2", "--verbose"),
            ("", "INDELIBLE_VERBOSE=1", "verbose", "1", "INDELIBLE_VERBOSE"),
            ("--tools /a --tools /b", "INDELIBLE_TOOLS=/c", "tools", "/a:/b", "--tools"),
            ("", "", "tools", "", "default"),
        ];
        for (flags, env, name, value, origin) in rows {
            let resolved = everything(flags, env).unwrap();
            let setting = resolved.listed.iter().find(|setting| setting.name == name).unwrap();
            let found = (setting.value.to_str().unwrap(), setting.origin.to_string());
            assert_eq!(found, (value, origin.to_owned()), "{flags} {env}: {name}");
        }
    }

    #[test]
    fn the_arguments_give_the_same_settings_again() {
        let rows = [
            ("", "", "--db /d"),
            ("--max-rows 7", "INDELIBLE_PROFILE=explorer", "--db /d --profile explorer --max-rows 7"),
            ("--read-only --timeout-ms 1500", "", "--db /d --read-only --query-timeout 1.5"),
            ("", "INDELIBLE_READ_ONLY=0 INDELIBLE_VERBOSE=2", "--db /d -vv"),
            ("-v --snapshot-dir /s", "", "--db /d --snapshot-dir /s --verbose"),
            ("--tools /a --tools /b", "INDELIBLE_TOOLS=/c", "--db /d --tools /a --tools /b"),
            ("", "INDELIBLE_TOOLS=/a:/b", "--db /d --tools /a --tools /b"),
        ];
        for (flags, env, expected) in rows {
            let resolved = everything(flags, env).unwrap();
            let arguments = resolved.arguments().unwrap();
            assert_eq!(arguments.join(" "), expected, "{flags} {env}");
            let again = arguments.get(2..).unwrap().join(" ");
            assert_eq!(everything(&again, "").unwrap().settings, resolved.settings, "{flags} {env}");
        }
    }
}
