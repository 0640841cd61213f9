//! What each policy lets a statement do, and the verdict over what SQLite's authorizer reported.
//!
//! The tables come from `policy.yaml` through the build (`crate::generated::POLICIES`). Pure: it opens
//! nothing and knows no connection; `sqlite/guard.rs` feeds it.

pub mod action;
pub mod bounds;
pub mod decide;
pub mod narrowing;
pub mod refusal;

pub use action::{Action, ActionKind};
pub use bounds::{Bounds, Hidden};
pub use narrowing::Narrowing;
pub use refusal::Refusal;

/// How a worker opens the file for a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionKind {
    /// `SQLITE_OPEN_READONLY` and `query_only`.
    ReadOnly,
    /// Read and write.
    ReadWrite,
    /// No agent SQL runs under this policy; the server's own code does the work.
    None,
}

/// Whether a pragma may be given something in parentheses or behind `=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PragmaForm {
    /// Read without a value: `PRAGMA journal_mode`.
    Read,
    /// The value names what to look at, it sets nothing: `PRAGMA table_info(notes)`.
    Introspect,
}

/// One pragma a policy allows.
#[derive(Clone, Copy, Debug)]
pub struct PragmaRule {
    /// Lower-case name.
    pub name: &'static str,
    /// Which forms of it.
    pub form: PragmaForm,
}

/// What one policy allows. Everything that is not named here is refused.
#[derive(Debug)]
pub struct Policy {
    /// The id in policy.yaml: `read`, `write`, `destroy`, `view`, `chain`, `snapshot`.
    pub id: &'static str,
    /// One line for people.
    pub title: &'static str,
    /// The name of the tool that runs agent-written SQL under it; empty where none does.
    pub tool: &'static str,
    /// How the worker opens the file.
    pub connection: ConnectionKind,
    /// Whether anything can change under it, a file beside the database included.
    pub writes: bool,
    /// Whether it can delete or overwrite what was there before.
    pub can_lose: bool,
    /// Whether a statement must be one SELECT or VALUES. Pragmas are then for pragma functions in it.
    pub selects_only: bool,
    /// Authorizer actions.
    pub actions: &'static [ActionKind],
    /// Pragmas.
    pub pragmas: &'static [PragmaRule],
    /// SQL functions refused although `function` is allowed; lower case.
    pub functions_denied: &'static [&'static str],
    /// Modules that CREATE VIRTUAL TABLE may name; lower case.
    pub modules: &'static [&'static str],
    /// Whether UPDATE, upsert and REPLACE are held to `--max-update-rows`.
    pub counts_overwrites: bool,
    /// Whether a snapshot is made first.
    pub snapshots_first: bool,
}

/// The words of one authorizer action: what people call it and where it is allowed.
#[derive(Debug)]
pub struct ActionWords {
    /// The action.
    pub kind: ActionKind,
    /// `DROP TABLE`.
    pub label: &'static str,
    /// The id of the policy under which the server does this (`destroy`), if any.
    pub instead: Option<&'static str>,
    /// Why no tool does this, or what to do instead; empty when `instead` says it all.
    pub reason: &'static str,
}

/// The objects that belong to the server: no agent statement writes, alters or drops them.
#[derive(Debug)]
pub struct Protected {
    /// `memory_events`, `memory_checkpoints`, `query_log`.
    pub tables: &'static [&'static str],
    /// `query_errors`.
    pub views: &'static [&'static str],
    /// Triggers and indexes of those tables.
    pub others: &'static [&'static str],
}

/// For files in which nothing is the server's.
pub static NOTHING_PROTECTED: Protected = Protected { tables: &[], views: &[], others: &[] };
