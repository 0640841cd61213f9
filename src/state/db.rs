//! Databases: an agent's own tables, reached by its own SQL.
//!
//! The SQL is the agent's text, in the dialect of whatever keeps the database; nothing else here knows a dialect.

use super::Outcome;
use crate::error::ToolError;
use crate::render::{Caps, DatumRows};
use crate::shares::Owner;
use async_trait::async_trait;
use serde_json::Value;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The most statements of one transaction.
pub const MOST_STATEMENTS: usize = 1_000;

/// A statement of an agent's.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Its text.
    pub sql: String,
    /// An array or an object of values; none where it has no parameters. A blob is `{"base64": ...}`.
    pub params: Option<Value>,
}

/// The terms of one call.
#[derive(Clone, Debug)]
pub struct Terms {
    /// How long it may run, from the moment it is begun; and how long it may wait for that moment.
    pub timeout: Duration,
    /// Rows of each statement that are shown at most.
    pub max_rows: u64,
    /// Caps of the rows of all statements together.
    pub caps: Caps,
    /// The tool, for errors.
    pub tool: String,
    /// The tools of the server that read and that change a database, for errors; none where it has none.
    pub others: Others,
    /// Cancelled when the client no longer wants the answer.
    pub cancel: CancellationToken,
    /// In whose share of what goes on at once.
    pub owner: Owner,
}

/// The tools that an error may send an agent to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// What reads a database.
    pub reads: Option<String>,
    /// What changes one.
    pub changes: Option<String>,
}

/// What one statement of a transaction came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Executed {
    /// Rows that it changed.
    pub rows_affected: u64,
    /// The rowid of the last row that it inserted, where there is such a thing.
    pub last_insert_rowid: Option<i64>,
    /// The rows that it gives back.
    pub rows: Option<DatumRows>,
}

/// A branch: a copy of main at a moment, which goes its own way until it takes main's place or is discarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its name.
    pub name: String,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
    /// Whether it has changed since.
    pub changed: bool,
}

/// What main is called where a branch can be named.
pub const MAIN: &str = "main";
/// The most branches of one database.
pub const MOST_BRANCHES: usize = 20;

/// A name of a branch.
///
/// # Errors
/// `INVALID_ARGUMENTS` with the rule.
pub fn check_branch(name: &str) -> Outcome<()> {
    if name == MAIN {
        return Err(ToolError::arguments(
            "`branch` must not be main, which branches are made of; choose another name",
        ));
    }
    super::catalog::check_name("branch", name)
}

/// A branch to promote or to discard.
///
/// # Errors
/// `INVALID_ARGUMENTS` for main.
pub fn check_no_main(name: &str) -> Outcome<()> {
    if name == MAIN {
        return Err(ToolError::arguments(
            "`branch` must be a branch, and main is none: branches take its place or are discarded; list shows them",
        ));
    }
    Ok(())
}

/// A db primitive: main, and branches of it. No branch stands for main.
#[async_trait]
pub trait Db: Send + Sync {
    /// Runs one statement that reads; whatever it says, nothing is changed.
    ///
    /// # Errors
    /// What the statement may not do, and what is wrong with it, with the next step.
    async fn query_ro(
        &self,
        branch: Option<String>,
        statement: Statement,
        terms: Terms,
    ) -> Outcome<DatumRows>;

    /// Runs statements in one transaction: all are committed and on the disk, or none.
    ///
    /// # Errors
    /// As [`Self::query_ro`]; the words name the statement, where there are several.
    async fn exec_tx(
        &self,
        branch: Option<String>,
        statements: Vec<Statement>,
        terms: Terms,
    ) -> Outcome<Vec<Executed>>;

    /// Makes a branch of main as it is now.
    ///
    /// # Errors
    /// `CONFLICT` where there is one of the name, or too many.
    async fn create_branch(&self, branch: &str) -> Outcome<()>;

    /// Puts a branch in main's place, in one step, and ends it. Where main has changed since the branch was made, that
    /// takes `force`, which keeps main as it was: the snapshot's id.
    ///
    /// # Errors
    /// `NOT_FOUND`; `CONFLICT` where main has changed.
    async fn promote_branch(&self, branch: &str, force: bool) -> Outcome<Option<String>>;

    /// Ends a branch. One that has changed is not there any more afterwards, so that takes `force`.
    ///
    /// # Errors
    /// `NOT_FOUND`; `CONFLICT` where it has changed.
    async fn discard_branch(&self, branch: &str, force: bool) -> Outcome<()>;

    /// The branches, by name.
    async fn branches(&self) -> Outcome<Vec<Branch>>;
}
