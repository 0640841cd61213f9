//! A change as it comes to the writer, and what it comes to.
//!
//! It runs nothing; `write` does, and `group`.

use super::fault::Fault;
use super::guard::Judged;
use super::params::Params;
use super::toll::Agreed;
use crate::audit::AuditRow;
use crate::error::ErrorCode;
use crate::policy::ActionKind;
use crate::render::Caps;
use std::sync::Arc;

/// One change.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    /// The statement.
    pub sql: &'a str,
    /// Its parameters.
    pub params: &'a Params,
    /// RETURNING rows to show at most.
    pub max_rows: u64,
    /// Caps of their text.
    pub caps: Caps,
    /// Existing rows that may be overwritten; none where the policy does not count.
    pub max_overwrites: Option<u64>,
    /// What a person has agreed that it may take.
    pub agreed: Agreed<'a>,
    /// The audit row, but for rows and duration.
    pub audit: &'a AuditRow,
}

/// What a change came to.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Changed {
    /// `sqlite3_changes` of the statement; 0 for CREATE, DROP and their like.
    pub rows: u64,
    /// The rowid of the last row it inserted itself.
    pub last_insert_rowid: Option<i64>,
    /// For CREATE, DROP, ALTER, ANALYZE, REINDEX: what was done to what.
    pub structural: Option<(ActionKind, String)>,
    /// Whether there was nothing to do (IF EXISTS, IF NOT EXISTS).
    pub nothing: bool,
    /// RETURNING rows as CSV with a trailer.
    pub returning: Option<String>,
}

/// Told of the moments that the parent must know of.
pub trait Moments {
    /// The statement reads the server's log: write what is gathered first.
    fn before_log(&mut self);
    /// What follows is not to be interrupted.
    fn before_commit(&mut self);
}

/// Where the row counts from before come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    /// From a second connection, when they are needed.
    Beside,
    /// From this one, before the statement.
    Before,
    /// From nowhere: where they are needed, the change is not for here.
    Elsewhere,
}

/// A change that was made and is not committed yet.
pub(super) struct Done {
    pub(super) changed: Changed,
    /// Rows changed by it and by what it set off.
    pub(super) total: u64,
    pub(super) judged: Arc<Judged>,
}

/// Why a change was not made, and whether another try may succeed.
pub(super) enum Retry {
    Yes(Fault),
    No(Fault),
}

pub(super) fn not_here() -> Fault {
    Fault::error(ErrorCode::Busy, "rows are to be counted for the change: try again")
}

impl From<Fault> for Retry {
    fn from(fault: Fault) -> Self {
        Self::No(fault)
    }
}
