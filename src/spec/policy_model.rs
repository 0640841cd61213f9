//! policy.yaml as checked data: policies, the words of each action, protected objects, exceptions.
//!
//! Plain structs; the static tables that the guard reads are generated from them.

use crate::policy::action::ActionKind;
use serde::{Deserialize, Serialize};

/// policy.yaml.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyFile {
    /// The policies, in reading order.
    pub policies: Vec<PolicySpec>,
    /// The words of every action, in reading order; each action once.
    pub actions: Vec<ActionSpec>,
    /// What belongs to the server.
    pub protected: ProtectedSpec,
    /// Tools that may call themselves not destructive although their policy can lose data.
    pub exceptions: Vec<ExceptionSpec>,
}

/// One policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicySpec {
    /// `read`.
    pub id: String,
    /// One line for people.
    pub title: String,
    /// The name of the tool that runs agent-written SQL under it, if one does.
    pub tool: Option<String>,
    /// How the file is opened for it.
    pub connection: Connection,
    /// What the server's own code does under it.
    pub server_does: ServerWork,
    /// Whether a statement must be one SELECT or VALUES: no pragma or EXPLAIN of its own.
    pub selects_only: bool,
    /// Authorizer actions allowed.
    pub actions: Vec<ActionKind>,
    /// Pragmas allowed to be read without a value.
    pub pragmas_read: Vec<String>,
    /// Pragmas whose argument names what to look at.
    pub pragmas_introspect: Vec<String>,
    /// SQL functions refused; lower case.
    pub functions_denied: Vec<String>,
    /// Modules that CREATE VIRTUAL TABLE may name; lower case.
    pub modules: Vec<String>,
    /// Whether overwritten rows are counted and capped.
    pub counts_overwrites: bool,
    /// Whether a snapshot is made first.
    pub snapshots_first: bool,
}

/// How the file is opened for a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connection {
    /// Read-only and `query_only`.
    ReadOnly,
    /// Read and write.
    ReadWrite,
    /// No agent-written SQL runs.
    None,
}

/// What the server's own code does under a policy on which no agent-written SQL runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerWork {
    /// Nothing: the policy is for agent-written SQL.
    Nothing,
    /// It reads.
    Look,
    /// It adds rows to its own tables.
    Append,
    /// It writes a copy beside the database.
    Copy,
    /// It replaces everything but its own tables.
    Replace,
    /// It sends a request to another machine.
    Reach,
}

/// The words of one action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionSpec {
    /// The action.
    pub action: ActionKind,
    /// `DROP TABLE`.
    pub label: String,
    /// The policy that allows it, if any.
    pub instead: Option<String>,
    /// Why no tool does it, or what to do; may be empty beside `instead`.
    pub reason: String,
}

/// What belongs to the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProtectedSpec {
    /// Tables.
    pub tables: Vec<String>,
    /// Views.
    pub views: Vec<String>,
    /// Triggers and indexes.
    pub others: Vec<String>,
}

/// Why a tool may call itself not destructive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExceptionSpec {
    /// The tool's id.
    pub tool: String,
    /// Why it keeps or caps what its policy could lose.
    pub reason: String,
}

impl PolicySpec {
    /// Whether anything can change under it, a file beside the database or something elsewhere included.
    #[must_use]
    pub fn writes(&self) -> bool {
        matches!(
            self.server_does,
            ServerWork::Append | ServerWork::Copy | ServerWork::Replace | ServerWork::Reach
        ) || self.actions.iter().any(|action| action.writes())
    }

    /// Whether it can delete or overwrite what was there before.
    #[must_use]
    pub fn can_lose(&self) -> bool {
        self.server_does == ServerWork::Replace || self.actions.iter().any(|action| action.can_lose())
    }
}

impl PolicyFile {
    /// The policy of this id.
    #[must_use]
    pub fn policy(&self, id: &str) -> Option<&PolicySpec> {
        self.policies.iter().find(|policy| policy.id == id)
    }

    /// The exception for the tool of this id.
    #[must_use]
    pub fn exception(&self, tool: &str) -> Option<&ExceptionSpec> {
        self.exceptions.iter().find(|exception| exception.tool == tool)
    }
}
