//! The commands, their arguments and their help.
//!
//! It parses and judges nothing: values are strings until `config` or the command has looked at them.

use super::keys::KeysAction;
use super::people::{GroupsAction, PrimitivesAction};
use super::tools::{ToolsCommand, ToolsFormat};
use super::vault::VaultAction;
use crate::clients::CLIENTS;
use crate::config::{HttpArgs, RawArgs};
use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

const ABOUT: &str = "Serves one SQLite file to AI agents over the Model Context Protocol";

const LONG_ABOUT: &str = "\
Serves one SQLite file to AI agents over the Model Context Protocol, on stdin and stdout or over HTTP.

The safety is in the server: reads cannot write, writes cannot delete, destructive statements run \
behind a snapshot, every call is logged, and the agent's memory is a chain of events it cannot rewrite.

Without a command it serves:  indelible --db notes.db";

const AFTER_HELP: &str = "\
Each setting can also be given by the variable named in brackets; a flag comes before its \
variable, and that before the default. Variables that are switches take 1, 0, true, false, yes or no. \
`~` is the home folder.

Exit statuses:
  0  done; for verify: the chain is intact
  1  it could not be done: say, no database to serve, a tool's error, a problem that doctor found
  2  a flag, a variable or an argument is wrong
  3  verify: the chain is broken or has another head; snapshots verify: it cannot be restored
  4  verify: the file cannot be read as an Indelible database";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "indelible", version, about = ABOUT, long_about = LONG_ABOUT, after_help = AFTER_HELP)]
#[command(disable_help_subcommand = true)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) raw: RawArgs,

    #[command(flatten)]
    pub(super) http: HttpArgs,

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
  git log -1 | indelible call append_event --db notes.db kind=commit content=@-

NAME=@- takes the value from stdin, NAME=@-.FIELD a field of the JSON object on stdin.
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
    /// Show the tools that agents get, with files of --tools laid over the built-in ones
    #[command(after_help = "\
Examples:
  indelible tools
  indelible tools --profile explorer --format json
  indelible tools --format yaml > mine.yaml       then change mine.yaml, and
  indelible tools check mine.yaml                 and serve with --tools mine.yaml")]
    Tools {
        /// How to show them
        #[arg(long, value_enum, default_value = "table")]
        format: ToolsFormat,
        #[command(subcommand)]
        command: Option<ToolsCommand>,
    },
    /// List, show, verify and restore snapshots
    #[command(
        after_help = "\
Examples:
  indelible snapshots list --db notes.db
  indelible snapshots restore --db notes.db notes.db.20261130T090102.123Z.auto.db --reason 'the wrong rows were deleted'
  indelible snapshots list --data state --group team
  indelible snapshots restore --data state --group team 01kb4w0q2v8x5c3m7n9p1r6t4z

A restore brings your tables back as they were and keeps the events, checkpoints and log rows written since. It makes a \
snapshot first, so it can be undone; clients may go on working meanwhile. With --data it is about snapshots of \
primitives, which are made and restored while no server has the folder.

Exit status 3 when verify finds that the snapshot cannot be restored.",
        arg_required_else_help = false
    )]
    Snapshots {
        #[command(subcommand)]
        action: SnapshotAction,
    },
    /// List and make groups of primitives
    #[command(after_help = "\
Examples:
  indelible groups create --data state team
  indelible groups list --data state

It works while a server has the folder.")]
    Groups {
        #[command(subcommand)]
        action: GroupsAction,
    },
    /// List, make, pause and resume primitives
    #[command(after_help = "\
Examples:
  indelible primitives list --data state
  indelible primitives create --data state --group team kv settings
  indelible primitives pause --data state --group team settings

It works while a server has the folder.")]
    Primitives {
        #[command(subcommand)]
        action: PrimitivesAction,
    },
    /// Make, list and revoke the keys that let agents into a group over HTTP
    #[command(after_help = "\
Examples:
  indelible keys create --data state --group team --expires 30d --name ci
  indelible keys create --data state --group team --tools kv_get,kv_list
  indelible keys create --data state --group team --read-only
  indelible keys list --data state
  indelible keys revoke --data state ci

The key is printed once, alone on stdout. It works while a server has the folder, and holds at once.")]
    Keys {
        #[command(subcommand)]
        action: KeysAction,
    },
    /// List, set and delete secrets of a vault, and say where each may go
    #[command(after_help = "\
Examples:
  indelible vault set --data state --group team github < token.txt
  indelible vault grant --data state --group team github --host api.github.com --path /repos
  indelible vault list --data state --group team

A value is read from stdin, or asked for at the terminal; never give it as an argument. A secret goes nowhere \
without a grant. It works while a server has the folder.")]
    Vault {
        #[command(subcommand)]
        action: VaultAction,
    },
    /// Look a database and its surroundings over, and say what is wrong; changes nothing
    #[command(after_help = "\
Each finding is ok, a note, a warning or a problem. Exit status 1 when there is a problem.
In rollback mode writers wait while it reads.")]
    Doctor {
        /// Print the findings as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print what a client wants in its settings file, or put it there
    #[command(after_help = "\
Examples:
  indelible config cursor --db notes.db                  prints it
  indelible config cursor --db notes.db --write          puts it into .cursor/mcp.json
  indelible config claude-code --db notes.db --hooks     also hooks that resume where the work stands

Settings given beside --db, by flag or by variable, go along. With --write everything else in the file stays, \
comments too, and the former text is kept beside it as .bak. Stdout gets the snippets alone.")]
    Config {
        /// The client
        #[arg(value_parser = PossibleValuesParser::new(CLIENTS.iter().map(|client| client.id)))]
        client: String,
        /// The server's name in the client
        #[arg(long, value_name = "NAME", default_value = "indelible")]
        name: String,
        /// Put it into the client's file: of this folder for claude-code, cursor and vscode, else your own
        #[arg(long)]
        write: bool,
        /// The file, instead of the client's usual one
        #[arg(long, value_name = "PATH")]
        file: Option<PathBuf>,
        /// Claude Code: hooks that give a session what the last one left, and remind of checkpoints
        #[arg(long)]
        hooks: bool,
        /// Claude Code: also log each of your prompts as an event of kind `prompt`; events are permanent
        #[arg(long, requires = "hooks")]
        log_prompts: bool,
        /// Claude Code: the file for hooks, instead of .claude/settings.local.json
        #[arg(long, value_name = "PATH", requires = "hooks")]
        hooks_file: Option<PathBuf>,
    },
    /// Write an MCP bundle, which desktop apps install by opening it
    #[command(after_help = "\
It holds this program and asks for the database's path. A path given with --db is what it suggests; \
other settings go along when they are given by flag, and no variable does.")]
    Bundle {
        /// The file to write; an older bundle of that name is replaced
        #[arg(long, value_name = "PATH", default_value = "indelible.mcpb")]
        out: PathBuf,
    },
    /// Show an agent's session on a small music store
    #[command(after_help = "\
Examples:
  indelible demo                       in a temporary folder that is removed at the end
  indelible demo --db music.db         keeps the database; the file must not exist yet
  indelible demo --profile explorer    an agent that may only look
  indelible demo --profile primitives  groups of primitives, over HTTP

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

/// What to do with snapshots.
#[derive(Debug, Subcommand)]
pub(super) enum SnapshotAction {
    /// List the snapshots, newest first; the verdict is from a look at their events, not at every page
    List {
        /// With --data: only of this primitive
        #[arg(long, value_name = "NAME")]
        primitive: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// With --data: keep a primitive as it is
    Create {
        /// The primitive, by name or id; may be left out where the group has one
        #[arg(long, value_name = "NAME")]
        primitive: Option<String>,
        /// What to call it
        #[arg(long, value_name = "TEXT")]
        label: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one snapshot, with the rows of its tables then and now
    Show {
        /// Its name, or its path in the snapshot folder
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check every page and index of one snapshot
    Verify {
        /// Its name, or its path in the snapshot folder
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Bring tables, views, indexes and triggers back as they were in a snapshot; with --data, a primitive
    Restore {
        /// Its name, or its path in the snapshot folder; with --data its id
        name: String,
        /// Why, for the record; must be given for a database
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// With --data: only of this primitive
        #[arg(long, value_name = "NAME")]
        primitive: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
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
