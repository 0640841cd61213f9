//! Why a statement was refused, as data, and the words an agent reads.
//!
//! The worker sends the data; the process that speaks MCP knows the tools' names and chooses the
//! words. A refusal names the thing refused and the tool that allows it, nothing about other tables.

use super::{Action, ActionKind, ActionWords};
use crate::error::{ErrorCode, ToolError};
use serde::{Deserialize, Serialize};

/// Why a statement may not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The policy does not allow this action.
    Action {
        /// What it is.
        kind: ActionKind,
        /// On what.
        object: String,
        /// The trigger or view through which it happens.
        accessor: Option<String>,
    },
    /// The object belongs to the server.
    Protected {
        /// Its name.
        object: String,
    },
    /// A table that SQLite keeps for itself.
    Internal {
        /// Its name.
        object: String,
    },
    /// A table of ANALYZE's.
    Statistics {
        /// Its name.
        object: String,
    },
    /// A pragma that is not listed in this form.
    Pragma {
        /// Lower-case name.
        name: String,
        /// Whether a value was given.
        with_value: bool,
    },
    /// A function that is never called.
    Function {
        /// Lower-case name.
        name: String,
    },
    /// A module that CREATE VIRTUAL TABLE may not name.
    Module {
        /// Lower-case name.
        name: String,
    },
    /// The statement changes something that the authorizer does not report (VACUUM).
    Unrecorded,
    /// A statement that only reads, where a change is expected.
    OnlyReads,
    /// A statement that only adds, where a destructive one is expected.
    OnlyAdds,
    /// A command to a full-text table that removes index content, or one that cannot be read.
    TextCommand {
        /// The table.
        table: String,
        /// The command, where it is a constant.
        command: Option<String>,
    },
    /// More existing rows would be overwritten than the cap allows.
    Overwrites {
        /// How many.
        rows: u64,
        /// The cap.
        cap: u64,
    },
    /// Not one SELECT or VALUES.
    NotSelect,
    /// A table or column that the user's policy file hides.
    Hidden {
        /// `people`, or `people.email`.
        object: String,
        /// Why it is hidden, where the file does not name it itself.
        because: Option<String>,
        /// The trigger or view through which it would be read.
        through: Option<String>,
    },
    /// An UPDATE of a hidden column.
    HiddenUpdate {
        /// `people.email`.
        object: String,
    },
    /// A change of a table's form that might uncover a hidden column.
    HoldsHidden {
        /// What it is.
        kind: ActionKind,
        /// The table.
        table: String,
        /// The hidden column.
        column: String,
    },
    /// A join whose compared columns SQLite does not report, with a table that holds something hidden.
    HiddenJoin {
        /// The table.
        table: String,
    },
    /// A table or view that the user's policy file protects.
    PolicyProtected {
        /// Its name.
        object: String,
    },
    /// An action that the user's policy file refuses.
    Narrowed {
        /// What it is.
        kind: ActionKind,
        /// The trigger or view through which it happens.
        through: Option<String>,
    },
    /// A function that the user's policy file refuses.
    NarrowedFunction {
        /// Lower-case name.
        name: String,
    },
    /// A pragma that the user's policy file refuses.
    NarrowedPragma {
        /// Lower-case name.
        name: String,
    },
    /// A statement that returns nothing to read.
    NothingToRead,
}

impl Refusal {
    /// The refusal of one action.
    #[must_use]
    pub fn action(action: &Action) -> Self {
        Self::Action { kind: action.kind, object: action.object.clone(), accessor: action.accessor.clone() }
    }

    /// The kind of action that was refused, where the refusal is of one.
    #[must_use]
    pub fn kind(&self) -> Option<ActionKind> {
        match self {
            Self::Action { kind, .. } | Self::Narrowed { kind, .. } => Some(*kind),
            _ => None,
        }
    }

    /// The refusal of a temporary object.
    #[must_use]
    pub fn temporary(object: &str) -> Self {
        Self::Action { kind: ActionKind::CreateTempTable, object: object.to_owned(), accessor: None }
    }

    /// Whether the user's policy file is the reason.
    #[must_use]
    pub fn is_of_the_file(&self) -> bool {
        matches!(
            self,
            Self::Hidden { .. }
                | Self::HiddenUpdate { .. }
                | Self::HoldsHidden { .. }
                | Self::HiddenJoin { .. }
                | Self::PolicyProtected { .. }
                | Self::Narrowed { .. }
                | Self::NarrowedFunction { .. }
                | Self::NarrowedPragma { .. }
        )
    }

    /// The words for an agent that called `tool`.
    ///
    /// `tool_of` gives the name of the active tool that runs statements under a policy, if the active
    /// surface has one.
    #[must_use]
    pub fn words(
        &self,
        tool: &str,
        words: &[ActionWords],
        tool_of: &dyn Fn(&str) -> Option<String>,
    ) -> ToolError {
        let elsewhere = |policy: &str| tool_of(policy).filter(|name| name != tool);
        let send_to = |policy: &str, text: String| match elsewhere(policy) {
            Some(name) => format!("{text}; use {name}"),
            None => format!("{text}; no tool of this server does this"),
        };
        let or_send_to = |policy: &str, text: String| match elsewhere(policy) {
            Some(name) => format!("{text}, or use {name}"),
            None => text,
        };
        match self {
            Self::Action { kind, accessor, .. } => {
                let entry = words.iter().find(|entry| entry.kind == *kind);
                let label = entry.map_or("this statement", |entry| entry.label);
                let through =
                    accessor.as_ref().map(|name| format!(" (it comes through `{name}`)")).unwrap_or_default();
                let text = format!("{label} is not allowed in {tool}{through}");
                let reason = entry.map_or("", |entry| entry.reason);
                let text = match entry.and_then(|entry| entry.instead) {
                    Some(policy) => send_to(policy, text),
                    None if reason.is_empty() => text,
                    None => format!("{text}: {reason}"),
                };
                ToolError::new(ErrorCode::NotReadOnly.or_refused(*kind), text)
            }
            Self::Protected { object } => refused(format!(
                "`{object}` belongs to the server and cannot be changed by any tool; read it with SELECT"
            )),
            Self::Internal { object } => {
                refused(format!("`{object}` is kept by SQLite itself and cannot be written"))
            }
            Self::Statistics { object } => refused(format!(
                "`{object}` is kept by ANALYZE and cannot be edited; run ANALYZE to refresh it"
            )),
            Self::Pragma { name, with_value } => refused(if *with_value {
                format!("PRAGMA {name} with a value is not allowed in {tool}; pragmas can be read, not set")
            } else {
                format!(
                    "PRAGMA {name} is not allowed in {tool}; those that only look are, such as table_info(t), index_list(t) and integrity_check"
                )
            }),
            Self::Function { name } => refused(format!(
                "the function `{name}` is not authorized in any tool: it reaches outside SQL; do without it"
            )),
            Self::Module { name } => refused(format!(
                "CREATE VIRTUAL TABLE with the module `{name}` is not allowed; fts5, fts4, fts3 and rtree are"
            )),
            Self::Unrecorded => refused(format!(
                "this statement is not allowed in {tool}: it changes the file in a way that no policy covers (VACUUM is one)"
            )),
            Self::OnlyReads => ToolError::new(
                ErrorCode::Refused,
                send_to("read", format!("a statement that only reads does not belong in {tool}")),
            ),
            Self::OnlyAdds => ToolError::new(
                ErrorCode::Refused,
                send_to(
                    "write",
                    format!(
                        "a statement that only adds does not belong in {tool}; nothing was run and no snapshot made"
                    ),
                ),
            ),
            Self::TextCommand { table, command } => {
                let what = command.as_ref().map_or_else(
                    || format!("a command to `{table}` that is not a constant"),
                    |command| format!("the command '{command}' to `{table}`"),
                );
                refused(send_to("destroy", format!("{what} is not allowed in {tool}")))
            }
            Self::Overwrites { rows, cap } => refused(or_send_to(
                "destroy",
                format!(
                    "the statement would overwrite {rows} existing rows, more than {cap}, and was rolled back; narrow it with WHERE"
                ),
            )),
            Self::NothingToRead => ToolError::new(
                ErrorCode::NotSelect,
                format!(
                    "{tool} takes one statement that reads: SELECT, VALUES, WITH, EXPLAIN or an inspecting PRAGMA"
                ),
            ),
            Self::NotSelect => ToolError::new(
                ErrorCode::NotSelect,
                format!("{tool} takes one SELECT, VALUES or WITH ... SELECT statement"),
            ),
            _ => self.words_of_the_file(tool, words, &elsewhere),
        }
    }

    /// The words for what the user's policy file takes away.
    fn words_of_the_file(
        &self,
        tool: &str,
        words: &[ActionWords],
        elsewhere: &dyn Fn(&str) -> Option<String>,
    ) -> ToolError {
        let label = |kind: ActionKind| {
            words.iter().find(|entry| entry.kind == kind).map_or("this statement", |entry| entry.label)
        };
        let via = |name: &Option<String>| {
            name.as_ref().map(|name| format!(" (it comes through `{name}`)")).unwrap_or_default()
        };
        refused(match self {
            Self::Hidden { object, because, through } => {
                let why = because.as_ref().map(|why| format!(", because {why}")).unwrap_or_default();
                let next = if object.contains('.') {
                    "leave it out, and name the columns you need instead of `*`"
                } else {
                    "leave it out; no tool shows it"
                };
                format!("`{object}` is hidden by this server's policy{why}{}; {next}", via(through))
            }
            Self::HiddenUpdate { object } => {
                format!(
                    "`{object}` is hidden by this server's policy, so no tool overwrites it; leave it out"
                )
            }
            Self::HoldsHidden { kind, table, column } => format!(
                "{} of `{table}` is refused: this server's policy hides its column `{column}`",
                label(*kind)
            ),
            Self::HiddenJoin { table } => format!(
                "a join by NATURAL or USING with `{table}` might compare what this server's policy hides; join with ON and name the columns"
            ),
            Self::PolicyProtected { object } => format!(
                "`{object}` is protected by this server's policy and cannot be changed by any tool; read it with SELECT"
            ),
            Self::Narrowed { kind, through } => {
                let text =
                    format!("{} is refused in {tool} by this server's policy{}", label(*kind), via(through));
                let instead = words.iter().find(|entry| entry.kind == *kind).and_then(|entry| entry.instead);
                match instead.and_then(elsewhere) {
                    Some(name) => format!("{text}; use {name}"),
                    None => format!("{text}; no tool of this server does this"),
                }
            }
            Self::NarrowedFunction { name } => {
                format!("the function `{name}` is refused in {tool} by this server's policy; do without it")
            }
            Self::NarrowedPragma { name } => {
                format!("PRAGMA {name} is refused in {tool} by this server's policy; do without it")
            }
            _ => format!("this statement is not allowed in {tool}"),
        })
    }
}

fn refused(message: String) -> ToolError {
    ToolError::new(ErrorCode::Refused, message)
}

impl ErrorCode {
    /// The code for a refused action: one that writes is `NOT_READ_ONLY`, the rest `REFUSED`.
    fn or_refused(self, kind: ActionKind) -> Self {
        match kind {
            ActionKind::Attach
            | ActionKind::Detach
            | ActionKind::Transaction
            | ActionKind::Savepoint
            | ActionKind::Unknown => Self::Refused,
            _ => self,
        }
    }
}
