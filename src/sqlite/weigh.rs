//! What a statement would do and which policies would take it, without running anything of it.
//!
//! For people who look at a policy: the connection is read-only and behind the guard, or an empty database
//! in memory. The body of a trigger is not seen; it is judged when the trigger is made.

use super::fault::Fault;
use super::guard::Guarded;
use super::watch::Watch;
use super::write::Writer;
use super::{hiding, query};
use crate::generated::PROTECTED;
use crate::policy::{Action, Bounds, ConnectionKind, Narrowing, Policy};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How a tool takes its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It runs one that reads.
    Reads,
    /// It runs one that changes.
    Changes,
    /// It makes a view of a SELECT.
    MakesView,
}

/// The scales.
pub struct Weigher(Writer);

impl Weigher {
    /// On a database, or on an empty one in memory.
    ///
    /// # Errors
    /// What SQLite reports when the file cannot be opened.
    pub fn open(path: Option<&Path>, narrowing: Narrowing) -> rusqlite::Result<Self> {
        let path = path.unwrap_or(Path::new(":memory:"));
        let watch = Watch::alone(Duration::from_secs(5));
        let guarded = Guarded::open(path, ConnectionKind::ReadOnly, false, &PROTECTED, watch)?;
        Ok(Self(Writer::new(guarded.narrowed(narrowing), path.to_owned())?))
    }

    /// Everything that the statement would do, each thing once, in the order in which SQLite tells it.
    #[must_use]
    pub fn actions(&self, sql: &str) -> Vec<Action> {
        // A virtual table connects at the first mention, with SQL of its own.
        self.0.guarded().overhear(sql);
        let mut actions: Vec<Action> = Vec::new();
        for action in self.0.guarded().overhear(sql).1 {
            if !actions.contains(&action) {
                actions.push(action);
            }
        }
        actions
    }

    /// Whether a tool that takes statements in this way under this policy would accept it.
    ///
    /// # Errors
    /// The refusal, or SQLite's error.
    pub fn verdict(&self, policy: &'static Policy, way: Way, sql: &str) -> Result<(), Fault> {
        match way {
            Way::Reads => query::must_read(policy, &self.0.guarded().compile(policy, sql)?),
            Way::Changes => self.0.compile(policy, sql).map(drop),
            Way::MakesView => self.0.checked_select(policy, sql).map(drop),
        }
    }

    /// What the policy file takes away in this database.
    ///
    /// # Errors
    /// What SQLite reports while the schema is read.
    pub fn bounds(&self) -> Result<Arc<Bounds>, Fault> {
        self.0.guarded().bounds()
    }

    /// What of the policy file finds nothing in this database, and what else to hide.
    ///
    /// # Errors
    /// What SQLite reports while the schema is read.
    pub fn notes(&self, narrowing: &Narrowing) -> rusqlite::Result<Vec<String>> {
        hiding::notes(self.0.guarded(), narrowing)
    }
}
