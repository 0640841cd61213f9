//! The commands, their arguments and their help.
//!
//! It parses and judges nothing: values are strings until `config` or the command has looked at them.

use crate::config::RawArgs;
use clap::{Parser, Subcommand};
use clap_complete::Shell;

const ABOUT: &str = "Serves one SQLite file to AI agents over the Model Context Protocol";

const LONG_ABOUT: &str = "\
Serves one SQLite file to AI agents over the Model Context Protocol, on stdin and stdout.

The safety is in the server: reads cannot write, writes cannot delete, destructive statements run \
behind a snapshot, every call is logged, and the agent's memory is a chain of events it cannot rewrite.

Without a command it serves:  indelible --db notes.db";

const AFTER_HELP: &str = "\
Each setting can also be given by the variable named in brackets; a flag comes before its \
variable, and that before the default. Variables that are switches take 1, 0, true, false, yes or no. \
`~` is the home folder.

Exit statuses:
  0  done; for verify: the chain is intact
  1  the database cannot be served, or the called tool answered with an error
  2  a flag, a variable or an argument is wrong
  3  verify: the chain is broken, or its head is not the expected one
  4  verify: the file cannot be read as an Indelible database";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "indelible", version, about = ABOUT, long_about = LONG_ABOUT, after_help = AFTER_HELP)]
#[command(disable_help_subcommand = true)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) raw: RawArgs,

    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

/// What to do instead of serving.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Call one tool as an agent would, audit row included, and print its text
    #[command(after_help = "\
Examples:
  indelible call read_query --db notes.db query='SELECT * FROM notes' limit=5
  indelible call append_event --db notes.db '{\"kind\": \"decision\", \"content\": \"use WAL\"}'

Exit status 1 when the tool answers with an error.")]
    Call {
        /// The tool's name
        tool: String,
        /// The tool's arguments: each as NAME=VALUE, or all as one JSON object
        #[arg(value_name = "NAME=VALUE | JSON")]
        arguments: Vec<String>,
    },
    /// Check the event chain and its checkpoints
    #[command(after_help = "Exit status 0 when intact, 3 when broken, 4 when the file cannot be read.")]
    Verify {
        /// Also require this hash as the chain's head: 64 hex digits, as verify or a checkpoint showed it
        #[arg(long, value_name = "HASH")]
        expect_head: Option<String>,
    },
    /// Show what each policy allows, narrowed by --policy
    #[command(after_help = "\
Examples:
  indelible policy --policy narrow.yaml
  indelible policy explain --db notes.db 'DELETE FROM notes'")]
    Policy {
        /// What else to show
        #[command(subcommand)]
        command: Option<PolicyCommand>,
        /// JSON instead of text
        #[arg(long, global = true)]
        json: bool,
    },
    /// Show an agent's session on a small music store
    #[command(after_help = "\
Examples:
  indelible demo                  in a temporary folder that is removed at the end
  indelible demo --db music.db    keeps the database; the file must not exist yet

Of the settings only --db and --profile count here, and no variable does.")]
    Demo,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// What `policy` can show beside the table.
#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Show what a statement would do, which tools take it, and why others do not; nothing runs
    Explain {
        /// The statement; --db names the database it is meant for, else an empty one is taken
        sql: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_commands_are_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_setting_names_its_variable() {
        let command = Cli::command();
        let settings = command.get_arguments().filter_map(|arg| Some((arg.get_long()?, arg.get_help()?)));
        let mut seen = 0;
        for (flag, help) in settings {
            let variable = format!("[INDELIBLE_{}", flag.replace('-', "_").to_uppercase());
            assert!(help.to_string().contains(&variable), "--{flag}: {help}");
            seen += 1;
        }
        assert!(seen >= 15, "{seen} settings");
    }

    #[test]
    fn flags_stand_before_or_behind_a_command() {
        for line in
            ["indelible --db d call t a=1", "indelible call t a=1 --db d", "indelible call --db d t a=1"]
        {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            assert_eq!(cli.raw.db, Some("d".into()), "{line}");
            let Some(Command::Call { tool, arguments }) = cli.command else { panic!("{line}") };
            assert_eq!((tool.as_str(), arguments), ("t", vec!["a=1".to_owned()]), "{line}");
        }
    }
}
