//! Statements of one call in one transaction, over a file in which nothing is the server's.
//!
//! Each is judged when its turn comes, over the schema as those before it have left it. The first that fails rolls
//! everything back. With the transaction goes a stamp, so that whoever lost this process can see whether it was
//! committed, and anybody whether the file has changed since: `PRAGMA user_version`, which agents can read and not
//! set (<https://sqlite.org/pragma.html#pragma_user_version>). No row is counted and no audit row written.

use super::change::Moments;
use super::fault::Fault;
use super::params::Params;
use super::query::{column_names, push_exactly};
use super::write::Writer;
use crate::error::ErrorCode;
use crate::policy::Policy;
use crate::render::{Caps, DatumRows, DatumSink, Flow};
use serde::{Deserialize, Serialize};

/// Statements to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// In order.
    pub statements: Vec<Bound>,
    /// Rows of each that are shown at most.
    pub max_rows: u64,
    /// Caps of the rows of all together.
    pub caps: Caps,
    /// What marks the file when something was changed; not the mark that it has.
    pub stamp: i32,
}

/// A statement and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The statement.
    pub sql: String,
    /// Its parameters.
    pub params: Params,
}

/// What one statement came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Executed {
    /// Rows that it changed itself; 0 for CREATE, DROP and their like.
    pub rows_affected: u64,
    /// The rowid of the last row that it inserted itself.
    pub last_insert_rowid: Option<i64>,
    /// The rows of a SELECT or RETURNING.
    pub rows: Option<DatumRows>,
}

/// Why everything was rolled back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failed {
    /// Which statement it was, from 0; none where it was the transaction itself.
    pub at: Option<usize>,
    /// Why.
    pub fault: Fault,
}

impl Writer {
    /// Runs statements and commits them all, or none.
    ///
    /// # Errors
    /// Refusals, stops, SQLite's errors; the file is as it was then.
    pub fn run_batch(
        &mut self,
        policy: &'static Policy,
        batch: &Batch,
        moments: &mut dyn Moments,
    ) -> Result<Vec<Executed>, Failed> {
        let whole = |fault| Failed { at: None, fault };
        self.begin().map_err(whole)?;
        let mut results = Vec::with_capacity(batch.statements.len());
        let mut run = || {
            let mut caps = batch.caps;
            let mut changed = false;
            for (at, bound) in batch.statements.iter().enumerate() {
                let here = |fault| Failed { at: Some(at), fault };
                let (executed, changes, bytes) =
                    self.run_bound(policy, bound, batch.max_rows, caps).map_err(here)?;
                changed |= changes;
                caps.max_result_bytes = caps.max_result_bytes.saturating_sub(bytes);
                results.push(executed);
            }
            if changed {
                let stamped = self.guarded().trusted().pragma_update(None, "user_version", batch.stamp);
                stamped.map_err(|error| whole(self.fault(&error)))?;
            }
            // From here on nothing is stopped, and the server knows that it may have been committed.
            self.watch_out(moments, u64::MAX);
            self.commit().map_err(whole)
        };
        let done = run();
        if done.is_err() {
            self.roll_back();
        }
        done.map(|()| results)
    }

    /// One statement; what it came to, whether it may have changed the file, and the bytes of its rows.
    fn run_bound(
        &self,
        policy: &'static Policy,
        bound: &Bound,
        max_rows: u64,
        caps: Caps,
    ) -> Result<(Executed, bool, usize), Fault> {
        let guarded = self.guarded();
        guarded.refresh_schema()?;
        let mut compiled = guarded.compile(policy, &bound.sql)?;
        bound.params.bind(&mut compiled.statement)?;
        let judged = compiled.judged.clone();
        let facts = &judged.facts;
        let schema_bytes = facts.structural.as_ref().map(|_| self.schema_bytes()).transpose()?;
        let columns = column_names(&compiled.statement);
        let mut sink = (!columns.is_empty()).then(|| DatumSink::new(columns.clone(), caps));
        self.forget_seen();
        let rowid_before = guarded.trusted().last_insert_rowid();
        let reads = judged.readonly || facts.pragma || judged.explain;
        let running = guarded.enter(&judged);
        let mut more = false;
        {
            let mut rows = compiled.statement.raw_query();
            let mut full = false;
            while let Some(row) = rows.next().map_err(|error| self.fault(&error))? {
                let Some(sink) = &mut sink else { continue };
                more |= full || sink.rows() >= max_rows;
                if !more {
                    let flow = push_exactly(row, columns.len(), sink).map_err(|error| self.fault(&error))?;
                    full = flow == Flow::Full;
                } else if reads {
                    // What changes rows must run to its end.
                    break;
                }
            }
        }
        drop(running);
        if guarded.trusted().is_autocommit() {
            return Err(Fault::error(
                ErrorCode::SqlError,
                "the statement ended the transaction, and nothing was changed; leave ON CONFLICT ROLLBACK out",
            ));
        }
        let (rows_affected, last_insert_rowid) =
            if reads { (0, None) } else { self.counts(&judged, rowid_before) };
        if let Some(bytes) = schema_bytes {
            self.check_no_temporary()?;
            self.check_schema_size(bytes)?;
        }
        if let Some(table) = &facts.trigger_on {
            self.judge_trigger(policy, table)?;
        }
        let bytes = sink.as_ref().map_or(0, DatumSink::bytes);
        let rows = sink.map(|sink| sink.finish(more));
        let executed = Executed { rows_affected, last_insert_rowid, rows };
        Ok((executed, !reads && !facts.nothing, bytes))
    }
}
