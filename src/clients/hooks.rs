//! Hooks for Claude Code: one `indelible call` line each, which can be tried by hand.
//!
//! A hook that fails never stands in the way: exit status 2 would block a prompt or a compaction, so every
//! line ends in 0 or 1 (<https://code.claude.com/docs/en/hooks>, "Exit code output"). What SessionStart and
//! UserPromptSubmit print goes into the agent's context, so only the first prints.

use super::json::{edit, input, object_of, property};
use super::{Launch, quoted};
use crate::error::StartError;
use jsonc_parser::cst::{CstArray, CstObject, CstObjectProp};
use serde_json::{Value, json};

/// The file, below the project's folder: it holds paths of this machine, and this one is not shared.
pub const FILE: &str = ".claude/settings.local.json";

/// The reminder that stands in the memory once the conversation is compacted.
const REMINDER: &str = "The conversation was compacted here. Before anything else write a checkpoint: \
                        what is done, what is open, what comes next.";

/// The words by which the hook for prompts is known.
const LOGS_PROMPTS: &[&str] = &["call", "append_event", "kind=prompt"];

/// One hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The event: `SessionStart`.
    pub event: &'static str,
    /// Which cases of it; none for all.
    pub matcher: Option<&'static str>,
    /// The command line.
    pub command: String,
    /// The words by which an older line of ours is known again, beside the database's path.
    call: &'static [&'static str],
}

/// The hooks: the resume text at the start of a session and after a compaction; a reminder before one, and the
/// person's prompts if `prompts`, both where the profile `appends`.
///
/// # Errors
/// A path that cannot be written into a command line; exit status 2.
pub fn hooks(launch: &Launch, appends: bool, prompts: bool) -> Result<Vec<Hook>, StartError> {
    let line = |words: &[&str]| {
        let settings = launch.arguments.iter().map(String::as_str);
        quoted([launch.program.as_str(), "call"].into_iter().chain(words.iter().copied()).chain(settings))
    };
    let silent = |words: &[&str]| Ok::<_, StartError>(format!("{} > /dev/null || exit 1", line(words)?));
    let resume: &[&str] = if prompts {
        // They are there for the record and would drown the rest.
        &["get_resume_context", "exclude_kinds=[\"prompt\"]"]
    } else {
        &["get_resume_context"]
    };
    let mut hooks = vec![Hook {
        event: "SessionStart",
        matcher: Some("startup|clear|compact"),
        command: format!("{} || exit 1", line(resume)?),
        call: &["call", "get_resume_context"],
    }];
    if appends {
        hooks.push(Hook {
            event: "PreCompact",
            matcher: None,
            command: silent(&["append_event", "kind=compaction", &format!("content={REMINDER}")])?,
            call: &["call", "append_event", "kind=compaction"],
        });
    }
    if appends && prompts {
        hooks.push(Hook {
            event: "UserPromptSubmit",
            matcher: None,
            command: silent(&["append_event", "kind=prompt", "content=@-.prompt"])?,
            call: LOGS_PROMPTS,
        });
    }
    Ok(hooks)
}

/// Whether a settings file's text has our hook for prompts of this database.
///
/// # Errors
/// As [`merged`].
pub fn logs_prompts(text: &str, database: &str) -> Result<bool, String> {
    let mut logs = false;
    edit(text, |root| {
        let groups = match object_of(root, "hooks")? {
            Some(all) => property(&all, "UserPromptSubmit")?.and_then(|found| found.array_value()),
            None => None,
        };
        logs = groups.is_some_and(|groups| {
            lines(&groups).any(|(_, command)| is_ours(&command, LOGS_PROMPTS, database))
        });
        Ok(())
    })?;
    Ok(logs)
}

/// The settings file's text with the hooks in it. A line of ours for the same database is brought up to date;
/// everything else stays.
///
/// # Errors
/// The text is no JSON object, or something else stands in the hooks' place; in words.
pub fn merged(text: &str, hooks: &[Hook], database: &str) -> Result<String, String> {
    edit(text, |root| {
        let all = match object_of(root, "hooks")? {
            Some(all) => all,
            None => {
                root.append("hooks", input(&json!({})));
                object_of(root, "hooks")?.ok_or("`hooks` cannot be added")?
            }
        };
        hooks.iter().try_for_each(|hook| put(&all, hook, database))
    })
}

fn put(all: &CstObject, hook: &Hook, database: &str) -> Result<(), String> {
    let event = hook.event;
    let groups = match property(all, event)? {
        Some(found) => {
            found.array_value().ok_or_else(|| format!("`{event}` is there and is not an array"))?
        }
        None => {
            all.append(event, input(&json!([group(hook)])));
            return Ok(());
        }
    };
    for (line, command) in lines(&groups) {
        if command == hook.command {
            return Ok(());
        }
        if is_ours(&command, hook.call, database) {
            line.set_value(input(&json!(hook.command)));
            return Ok(());
        }
    }
    groups.append(input(&group(hook)));
    Ok(())
}

/// The command lines of an event, with where each stands.
fn lines(groups: &CstArray) -> impl Iterator<Item = (CstObjectProp, String)> {
    let lines = groups.elements().into_iter().filter_map(|group| group.as_object()?.array_value("hooks"));
    let lines = lines.flat_map(|lines| lines.elements()).filter_map(|line| line.as_object()?.get("command"));
    lines.filter_map(|line| {
        let command = line.value()?.as_string_lit()?.decoded_value().ok()?;
        Some((line, command))
    })
}

/// Whether a line makes this call on this database, by whatever program and with whatever settings.
fn is_ours(command: &str, call: &[&str], database: &str) -> bool {
    let words = shlex::split(command).unwrap_or_default();
    let has = |word: &str| words.iter().any(|found| found == word);
    has(database) && call.iter().all(|word| has(word))
}

fn group(hook: &Hook) -> Value {
    let hooks = json!([{"type": "command", "command": hook.command}]);
    match hook.matcher {
        Some(matcher) => json!({"matcher": matcher, "hooks": hooks}),
        None => json!({"hooks": hooks}),
    }
}
