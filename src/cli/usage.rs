//! clap's answers in our words: help and version on stdout, everything else as one line.
//!
//! It knows no flag by name.

use super::output;
use crate::error::{EXIT_OK, StartError};
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What to do about it.
///
/// # Errors
/// The line for stderr, exit status 2, where clap's answer is no help that was asked for.
pub(super) fn answer(error: &clap::Error) -> Result<u8, StartError> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            output::print(&error.render().to_string())?;
            Ok(EXIT_OK)
        }
        _ => Err(StartError::usage(line(error))),
    }
}

fn line(error: &clap::Error) -> String {
    let what = |kind| error.get(kind).map(words);
    let given = what(ContextKind::InvalidArg).unwrap_or_default();
    let choices = what(ContextKind::ValidValue).filter(|choices| !choices.is_empty());
    let said = match error.kind() {
        ErrorKind::UnknownArgument => format!("unknown argument `{given}`"),
        ErrorKind::InvalidSubcommand => {
            format!("unknown command `{}`", what(ContextKind::InvalidSubcommand).unwrap_or_default())
        }
        ErrorKind::MissingRequiredArgument => format!("missing {given}"),
        ErrorKind::MissingSubcommand => {
            format!("missing one of {}", what(ContextKind::ValidSubcommand).unwrap_or_default())
        }
        ErrorKind::ArgumentConflict => {
            match what(ContextKind::PriorArg).filter(|other| !other.is_empty() && *other != given) {
                Some(other) => format!("`{given}` and `{other}` exclude each other"),
                None => format!("`{given}` may be given only once"),
            }
        }
        ErrorKind::InvalidValue => {
            let value = what(ContextKind::InvalidValue).filter(|value| !value.is_empty());
            match (value, &choices) {
                (Some(value), Some(choices)) => format!("{given} `{value}`: must be one of {choices}"),
                (Some(value), None) => format!("{given} `{value}`: is no value that it takes"),
                (None, Some(choices)) => format!("{given} needs a value, one of {choices}"),
                (None, None) => format!("{given} needs a value"),
            }
        }
        _ => first_line(&error.render().to_string()),
    };
    let suggested =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    let suggested = suggested.into_iter().find_map(what).filter(|words| !words.is_empty());
    match suggested {
        Some(words) => format!("{said}; did you mean `{words}`?"),
        // Whoever has read the choices needs no help.
        None if choices.is_some() => said,
        None => {
            format!("{said}; see `{} --help`", command(&what(ContextKind::Usage).unwrap_or_default()))
        }
    }
}

/// The command whose usage clap would show: the words before the first that stands for something.
fn command(usage: &str) -> String {
    let words = usage.split_whitespace().skip_while(|word| *word != "indelible");
    let words = words.take_while(|word| word.starts_with(|first: char| first.is_ascii_lowercase()));
    let words: Vec<&str> = words.collect();
    if words.is_empty() { "indelible".to_owned() } else { words.join(" ") }
}

fn words(value: &ContextValue) -> String {
    match value {
        ContextValue::String(word) => word.clone(),
        ContextValue::Strings(words) => words.join(", "),
        ContextValue::StyledStr(words) => words.to_string(),
        ContextValue::StyledStrs(many) => many.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        _ => String::new(),
    }
}

fn first_line(rendered: &str) -> String {
    let line = rendered.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::args::Cli;
    use super::*;
    use clap::Parser;

    #[test]
    fn a_wrong_command_line_is_one_line() {
        let rows = [
            ("--dbb x", "unknown argument `--dbb`; did you mean `--db`?"),
            ("--zzz", "unknown argument `--zzz`; see `indelible --help`"),
            ("verfy", "unknown command `verfy`; did you mean `verify`?"),
            ("--db", "--db <PATH> needs a value; see `indelible --help`"),
            ("tools --format", "--format <FORMAT> needs a value, one of table, json, yaml"),
            ("--db a --db b", "`--db <PATH>` may be given only once; see `indelible --help`"),
            ("call", "missing <TOOL>; see `indelible call --help`"),
            ("completions", "missing <SHELL>; see `indelible completions --help`"),
            (
                "snapshots",
                "missing one of list, create, show, verify, restore; see `indelible snapshots --help`",
            ),
            ("tools check", "missing <FILE>...; see `indelible tools check --help`"),
            ("config claude-code --log-prompts", "missing --hooks; see `indelible config --help`"),
            (
                "config emacs",
                "<CLIENT> `emacs`: must be one of claude-code, claude-desktop, cursor, vscode, codex, gemini-cli, \
                 zed",
            ),
            (
                "completions bas",
                "<SHELL> `bas`: must be one of bash, elvish, fish, powershell, zsh; did you mean `bash`?",
            ),
            (
                "keys create --tools a --read-only",
                "`--tools <TOOL,TOOL>` and `--read-only` exclude each other; see `indelible keys create --help`",
            ),
            ("verify --expect-hed x", "unknown argument `--expect-hed`; did you mean `--expect-head`?"),
        ];
        for (arguments, expected) in rows {
            let words = std::iter::once("indelible").chain(arguments.split(' '));
            let error = Cli::try_parse_from(words).expect_err(arguments);
            let said = answer(&error).expect_err(arguments);
            assert_eq!((said.message.as_str(), said.exit), (expected, 2), "{arguments}");
        }
    }
}
