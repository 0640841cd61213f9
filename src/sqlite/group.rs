//! Changes of several calls in one transaction: one commit, and one sync of the disk, for all of them.
//!
//! Each has a savepoint of its own and is judged, capped and logged as if it were alone; its row in the log stands in
//! the same transaction. Only plain changes of rows are taken in. A change that turns out to need more (rows
//! counted, more time) is rolled back and left to be run alone, and when the transaction fails as a whole, all are.

use super::change::{Change, Changed, Counted, Moments, Retry};
use super::fault::Fault;
use super::guard::Judged;
use super::watch::Stop;
use super::write::Writer;
use crate::policy::Policy;
use crate::policy::decide::{ObjectKind, Objects};
use std::time::{Duration, Instant};

/// How long one change may take here, while others wait for it.
const MEMBER_TIME: Duration = Duration::from_millis(50);

/// What became of one change; none: it is to be run alone.
pub type Outcome = Option<Result<Changed, Fault>>;

impl Writer {
    /// Runs changes, in order.
    ///
    /// # Errors
    /// The write lock was not to be had, or nobody knows whether the commit stands.
    pub fn run_group(
        &mut self,
        policy: &'static Policy,
        changes: &[Change<'_>],
        moments: &mut dyn Moments,
    ) -> Result<Vec<Outcome>, Fault> {
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(changes.len());
        let mut members = Vec::with_capacity(changes.len());
        for (at, change) in changes.iter().enumerate() {
            self.guarded().watch().start(MEMBER_TIME);
            // What cannot be compiled waits for no lock.
            outcomes.push(match self.compile(policy, change.sql) {
                Ok(compiled) => {
                    if is_plain(&compiled.judged) {
                        members.push(at);
                    }
                    None
                }
                Err(fault) => settled(fault),
            });
        }
        if members.is_empty() {
            return Ok(outcomes);
        }
        self.guarded().watch().start(MEMBER_TIME);
        self.begin()?;
        let mut total = 0;
        for at in &members {
            let (Some(change), Some(outcome)) = (changes.get(*at), outcomes.get_mut(*at)) else { continue };
            let (member, rows) = self.run_member(policy, change);
            *outcome = member;
            total += rows;
            if self.guarded().trusted().is_autocommit() {
                // Some errors end the transaction, and what the others did in it
                // (https://sqlite.org/lang_transaction.html, "Response To Errors Within A Transaction").
                return Ok(all_alone(outcomes, &members));
            }
        }
        let any = members.iter().any(|at| matches!(outcomes.get(*at), Some(Some(Ok(_)))));
        self.watch_out(moments, total);
        let committed = if any { self.commit() } else { Ok(()) };
        if !any || committed.is_err() {
            self.roll_back();
        }
        match committed {
            Ok(()) => Ok(outcomes),
            // What may stand is not to be run a second time.
            Err(fault @ Fault::InDoubt(_)) => Err(fault),
            Err(_) => Ok(all_alone(outcomes, &members)),
        }
    }

    /// One change within its savepoint, and how many rows it changed.
    fn run_member(&mut self, policy: &'static Policy, change: &Change<'_>) -> (Outcome, u64) {
        let began = Instant::now();
        self.guarded().watch().start(MEMBER_TIME);
        if self.savepoint("SAVEPOINT member").is_err() {
            return (None, 0);
        }
        let done = self.change(policy, change, Counted::Elsewhere).and_then(|done| {
            self.log(change, &done, began)?;
            Ok(done)
        });
        // What is rolled back or kept from here on takes no time of its own.
        self.guarded().watch().disarm();
        match done {
            Ok(done) if self.savepoint("RELEASE member").is_ok() => (Some(Ok(done.changed)), done.total),
            Ok(_) => (self.undone(None), 0),
            Err(Retry::Yes(_)) => (self.undone(None), 0),
            Err(Retry::No(fault)) => (self.undone(settled(fault)), 0),
        }
    }

    /// Rolls the member back. If even that fails, so will the commit.
    fn undone(&self, outcome: Outcome) -> Outcome {
        if self.guarded().trusted().is_autocommit() {
            return None;
        }
        let undone = self.savepoint("ROLLBACK TO member").and_then(|()| self.savepoint("RELEASE member"));
        if undone.is_err() {
            self.roll_back();
            return None;
        }
        outcome
    }

    fn savepoint(&self, sql: &str) -> rusqlite::Result<()> {
        self.guarded().trusted().prepare_cached(sql)?.execute([]).map(|_| ())
    }
}

/// Whether a statement changes rows of ordinary tables and nothing else.
fn is_plain(judged: &Judged) -> bool {
    let facts = &judged.facts;
    let is_table = |name: &String| {
        judged.catalog.as_ref().and_then(|catalog| catalog.kind(name)) == Some(ObjectKind::Table)
    };
    facts.structural.is_none()
        && !facts.nothing
        && facts.trigger_on.is_none()
        && !facts.reads_log
        && facts.written.iter().all(is_table)
}

/// Out of time here is not out of time.
fn settled(fault: Fault) -> Outcome {
    match fault {
        Fault::Stopped(Stop::Deadline) => None,
        fault => Some(Err(fault)),
    }
}

/// What was true within a transaction that is no more need not be true without it.
fn all_alone(mut outcomes: Vec<Outcome>, members: &[usize]) -> Vec<Outcome> {
    for at in members {
        if let Some(outcome) = outcomes.get_mut(*at) {
            *outcome = None;
        }
    }
    outcomes
}

#[cfg(test)]
mod tests;
