//! Runs a statement that changes the database, with its audit row in the same transaction.
//!
//! The order: compile and judge, take the write lock, run, count what was overwritten, look into a new
//! trigger, write the audit row with the guard lifted, commit. Whatever fails before the commit rolls
//! everything back. Snapshots are not made here; whoever needs one has made it before.

pub use super::change::{Change, Changed, Moments};
use super::change::{Counted, Done, Retry, not_here};
use super::fault::Fault;
use super::guard::{Compiled, Guarded, Judged};
use super::identity::Opened;
use super::ledger::insert_audit;
use super::overwrites::{Counts, Ran, Scope, committed_view};
use super::params::Params;
use super::program;
use super::query::{column_names, push_row};
use super::seen::Seen;
use super::text_command;
use super::toll::Ran as Taken;
use crate::audit::AuditRow;
use crate::policy::{ActionKind, Policy, Refusal};
use crate::render::csv::{CsvSink, Flow};
use crate::render::trailer::RowCut;
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// A connection for changes and what goes with it.
pub struct Writer {
    guarded: Guarded,
    seen: Seen,
    path: PathBuf,
    opened: Option<Opened>,
    committed: Option<Connection>,
}

impl Writer {
    /// A writer over a guarded connection.
    ///
    /// # Errors
    /// What rusqlite reports when the hook cannot be set.
    pub fn new(mut guarded: Guarded, path: PathBuf) -> rusqlite::Result<Self> {
        let seen = Seen::default();
        seen.install(guarded.trusted_mut())?;
        let opened = Opened::of(&path, None).ok();
        Ok(Self { guarded, seen, path, opened, committed: None })
    }

    /// The guarded connection.
    #[must_use]
    pub fn guarded(&self) -> &Guarded {
        &self.guarded
    }

    /// Compiles and judges without running, as a destructive call does before its snapshot; false if nothing is to do.
    ///
    /// # Errors
    /// As [`Self::run`], as far as it can be told before.
    pub fn check(&self, policy: &'static Policy, sql: &str, params: &Params) -> Result<bool, Fault> {
        let mut compiled = self.compile(policy, sql)?;
        params.bind(&mut compiled.statement)?;
        let facts = &compiled.judged.facts;
        let Some(table) = facts.trigger_on.clone() else { return Ok(!facts.nothing) };
        // What a trigger does shows only once it is there.
        self.begin()?;
        let running = self.guarded.enter(&compiled.judged);
        let made = compiled.statement.raw_execute().map_err(|error| self.fault(&error));
        drop(running);
        let verdict = made.and_then(|_| self.judge_trigger(policy, &table));
        drop(compiled);
        self.roll_back();
        verdict.map(|()| true)
    }

    /// Runs one change.
    ///
    /// # Errors
    /// Refusals, stops, SQLite's errors; the database is as it was then.
    pub fn run(
        &mut self,
        policy: &'static Policy,
        change: &Change<'_>,
        moments: &mut dyn Moments,
    ) -> Result<Changed, Fault> {
        let began = Instant::now();
        for attempt in 0..3 {
            let counted = if attempt == 0 { Counted::Beside } else { Counted::Before };
            match self.attempt(policy, change, moments, counted, began) {
                Err(Retry::No(fault)) => return Err(fault),
                Err(Retry::Yes(fault)) if attempt == 2 => return Err(fault),
                Err(Retry::Yes(_)) => {}
                Ok(changed) => return Ok(changed),
            }
        }
        Err(Fault::error(
            crate::error::ErrorCode::Busy,
            "the schema keeps changing under the statement: try again",
        ))
    }

    fn attempt(
        &mut self,
        policy: &'static Policy,
        change: &Change<'_>,
        moments: &mut dyn Moments,
        counted: Counted,
        began: Instant,
    ) -> Result<Changed, Retry> {
        {
            // Before the lock is taken: most of what is refused waits for nobody.
            let mut compiled = self.compile(policy, change.sql)?;
            change.params.bind(&mut compiled.statement)?;
            if compiled.judged.facts.reads_log {
                moments.before_log();
            }
        }
        self.begin()?;
        let result = self.in_transaction(policy, change, moments, counted, began);
        if result.is_err() {
            self.roll_back();
        }
        result
    }

    fn in_transaction(
        &mut self,
        policy: &'static Policy,
        change: &Change<'_>,
        moments: &mut dyn Moments,
        counted: Counted,
        began: Instant,
    ) -> Result<Changed, Retry> {
        let done = self.change(policy, change, counted)?;
        self.watch_out(moments, done.total);
        self.log(change, &done, began)?;
        self.commit()?;
        Ok(done.changed)
    }

    /// Runs the change, within a transaction that has the write lock.
    pub(super) fn change(
        &mut self,
        policy: &'static Policy,
        change: &Change<'_>,
        counted: Counted,
    ) -> Result<Done, Retry> {
        // Judged again: nobody can change the schema from here on.
        let judged = Arc::clone(&self.compile(policy, change.sql)?.judged);
        let scope = match (change.max_overwrites, &judged.catalog) {
            (Some(cap), Some(catalog)) => {
                Some((cap, Scope::of(&self.guarded, &judged.facts, catalog).map_err(|e| self.fault(&e))?))
            }
            _ => None,
        };
        let before_here = match (&scope, counted) {
            (Some((_, scope)), Counted::Before) => {
                Some(scope.count(self.guarded.trusted()).map_err(|e| self.fault(&e))?)
            }
            _ => None,
        };
        let weighed = change.agreed.before(self.guarded.trusted(), &judged).map_err(|e| self.fault(&e))?;
        let ours = match &judged.facts.structural {
            Some(_) => Some((self.server_objects()?, self.schema_bytes()?)),
            None => None,
        };
        self.seen.reset();
        let total_before = self.guarded.trusted().total_changes();
        let changed = self.step(policy, change)?;
        let total = self.guarded.trusted().total_changes().saturating_sub(total_before);
        if let Some((cap, scope)) = &scope
            && scope.worth_counting(total, *cap)
        {
            let before = match before_here {
                Some(counts) => counts,
                None if counted == Counted::Elsewhere => return Err(Retry::Yes(not_here())),
                None => self.count_beside(scope)?,
            };
            let after = scope.count(self.guarded.trusted()).map_err(|e| self.fault(&e))?;
            let replaces_virtual =
                scope.asks_for_replaces() && program::replaces_virtual(&self.guarded, policy, change.sql)?;
            let ran = Ran { total, changes: changed.rows, seen: &self.seen, replaces_virtual };
            let rows = scope.overwritten(&before, &after, ran);
            if rows > *cap {
                return Err(Retry::No(Refusal::Overwrites { rows, cap: *cap }.into()));
            }
        }
        if let Some((ours, bytes)) = &ours {
            self.check_server_objects(ours)?;
            self.check_no_temporary()?;
            self.check_schema_size(*bytes)?;
        }
        if let Some(table) = &judged.facts.trigger_on {
            self.judge_trigger(policy, table)?;
        }
        if let Some(before) = &weighed {
            let ran = Taken { total, changes: changed.rows, seen: &self.seen };
            let toll = before.toll(self.guarded.trusted(), &ran).map_err(|e| self.fault(&e))?;
            change.agreed.holds_for(toll)?;
        }
        Ok(Done { changed, total, judged })
    }

    /// Writes the change's audit row.
    pub(super) fn log(&self, change: &Change<'_>, done: &Done, began: Instant) -> Result<(), Fault> {
        let mut audit = change.audit.clone();
        audit.rows = i64::try_from(done.changed.rows).ok();
        audit.duration_ms += i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.write_audit(&audit, &done.judged)
    }

    /// Compiles for a change: what only reads, or under a destructive policy only adds, is sent on.
    ///
    /// # Errors
    /// Refusals, SQLite's errors, a statement that only reads.
    pub(super) fn compile(&self, policy: &'static Policy, sql: &str) -> Result<Compiled<'_>, Fault> {
        let compiled = self.guarded.compile(policy, sql).map_err(|fault| sent_on(policy, fault))?;
        let judged = &compiled.judged;
        if judged.facts.nothing {
            return Ok(compiled);
        }
        if judged.explain || (judged.facts.written.is_empty() && judged.facts.structural.is_none()) {
            return Err(Refusal::OnlyReads.into());
        }
        if policy.snapshots_first
            && judged.facts.structural.is_none()
            && !judged.facts.changes_rows
            && !program::replaces(&self.guarded, policy, sql, judged)?
            && !text_command::has_command(&self.guarded, policy, sql, judged)?
        {
            return Err(Refusal::OnlyAdds.into());
        }
        text_command::check(&self.guarded, policy, sql, judged)?;
        Ok(compiled)
    }

    fn step(&self, policy: &'static Policy, change: &Change<'_>) -> Result<Changed, Retry> {
        let mut compiled = self.guarded.compile(policy, change.sql)?;
        change.params.bind(&mut compiled.statement)?;
        let columns = column_names(&compiled.statement);
        let conn = self.guarded.trusted();
        let rowid_before = conn.last_insert_rowid();
        let mut sink = (!columns.is_empty()).then(|| CsvSink::new(&columns, change.caps));
        let running = self.guarded.enter(&compiled.judged);
        let outcome = fill(&mut compiled, columns.len(), sink.as_mut(), change.max_rows);
        let cut = match outcome {
            Ok(cut) => cut,
            Err(error) => {
                let surprised = self.guarded.surprised(policy, change.sql);
                let fault = self.fault(&error);
                return Err(if surprised { Retry::Yes(fault) } else { Retry::No(fault) });
            }
        };
        drop(running);
        let (rows, last_insert_rowid) = self.counts(&compiled.judged, rowid_before);
        let facts = &compiled.judged.facts;
        let structural = facts.structural.clone();
        let returning = sink.map(|sink| sink.finish(cut).text);
        Ok(Changed { rows, last_insert_rowid, structural, nothing: facts.nothing, returning })
    }

    /// Rows that the statement has changed, and the rowid of the last that it inserted itself. What was seen must have
    /// been forgotten before it ran.
    pub(super) fn counts(&self, judged: &Judged, rowid_before: i64) -> (u64, Option<i64>) {
        let (facts, conn) = (&judged.facts, self.guarded.trusted());
        if facts.structural.is_some() {
            return (0, None);
        }
        let rows = if facts.nothing { 0 } else { conn.changes() };
        let rowid = conn.last_insert_rowid();
        // Rows that only triggers inserted have no part in it, nor has a command to a full-text table,
        // which leaves 0.
        let inserted =
            facts.inserted.intersection(&facts.direct).any(|table| self.seen.of(table).inserts > 0);
        let is_new = inserted || (rowid != rowid_before && rowid != 0 && !facts.inserted.is_empty());
        (rows, is_new.then_some(rowid))
    }

    /// Forgets what was seen of the statements before.
    pub(super) fn forget_seen(&self) {
        self.seen.reset();
    }

    /// Inserts the audit row, within the transaction of the change.
    pub(super) fn write_audit(&self, audit: &AuditRow, judged: &Arc<Judged>) -> Result<(), Fault> {
        let _running = self.guarded.enter_audit(judged);
        insert_audit(self.guarded.trusted(), audit).map_err(|error| {
            Fault::Error(super::diagnose::tool_error(
                "the call could not be logged, so nothing was changed",
                &error,
            ))
        })
    }

    fn count_beside(&mut self, scope: &Scope) -> Result<Counts, Retry> {
        if self.committed.is_none() {
            let watch = self.guarded.watch().clone();
            let mut conn = committed_view(&self.path).map_err(|e| self.fault(&e))?;
            conn.progress_handler(super::watch::PROGRESS_OPS, Some(move || watch.must_stop()))
                .map_err(|e| self.fault(&e))?;
            self.committed = Some(conn);
        }
        let Some(conn) = &self.committed else { return Ok(Counts::new()) };
        scope.count(conn).map_err(|error| {
            let busy = error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy);
            let fault = self.fault(&error);
            // In rollback mode a writer that has spilled its cache shuts readers out: count first then.
            if busy { Retry::Yes(fault) } else { Retry::No(fault) }
        })
    }

    /// Takes the write lock. From here on the schema is as it will be when the statement runs.
    pub(super) fn begin(&self) -> Result<(), Fault> {
        let result = self.guarded.trusted().prepare_cached("BEGIN IMMEDIATE").and_then(|mut s| s.execute([]));
        self.guarded.watch().waited();
        result.map_err(|e| self.fault(&e))?;
        let fresh = self.guarded.refresh_schema();
        if fresh.is_err() {
            self.roll_back();
        }
        fresh
    }

    pub(super) fn commit(&self) -> Result<(), Fault> {
        if let Some(opened) = &self.opened {
            opened.look()?;
        }
        let result = self.guarded.trusted().prepare_cached("COMMIT").and_then(|mut s| s.execute([]));
        self.guarded.watch().waited();
        result.map(|_| ()).map_err(|error| Fault::of_commit(&error, self.guarded.watch()))
    }

    pub(super) fn roll_back(&self) {
        let conn = self.guarded.trusted();
        if !conn.is_autocommit() {
            // A failed rollback leaves the transaction open; the next BEGIN says so and the worker is replaced.
            let _ = conn.execute_batch("ROLLBACK");
        }
        // The schema may be another one now than within the transaction.
        self.guarded.forget();
    }

    /// From here on nothing is stopped; the parent is told when it might otherwise lose patience.
    pub(super) fn watch_out(&self, moments: &mut dyn Moments, total_changes: u64) {
        let near = self.guarded.watch().left().is_none_or(|left| left.as_millis() < 1000);
        self.guarded.watch().disarm();
        if near || total_changes > 50_000 {
            moments.before_commit();
        }
    }

    pub(super) fn fault(&self, error: &rusqlite::Error) -> Fault {
        self.guarded.fault(error)
    }
}

/// Under a destructive policy, what `write` allows is refused in words of its own.
fn sent_on(policy: &Policy, fault: Fault) -> Fault {
    match fault {
        Fault::Refused(Refusal::Action { kind, .. })
            if policy.snapshots_first
                && matches!(
                    kind,
                    ActionKind::CreateTable
                        | ActionKind::CreateIndex
                        | ActionKind::CreateVtable
                        | ActionKind::Analyze
                        | ActionKind::Reindex
                ) =>
        {
            Refusal::OnlyAdds.into()
        }
        other => other,
    }
}

fn fill(
    compiled: &mut Compiled<'_>,
    columns: usize,
    mut sink: Option<&mut CsvSink>,
    max_rows: u64,
) -> rusqlite::Result<RowCut> {
    let mut rows = compiled.statement.raw_query();
    let (mut shown, mut full, mut cut) = (0, false, RowCut::None);
    // RETURNING rows beyond the caps are stepped over: the statement must run to its end.
    while let Some(row) = rows.next()? {
        let Some(sink) = sink.as_deref_mut() else { continue };
        if full {
            continue;
        }
        if shown >= max_rows {
            cut = RowCut::AtMost { rows: max_rows };
            full = true;
            continue;
        }
        full = push_row(row, columns, sink)? == Flow::Full;
        shown += 1;
    }
    Ok(cut)
}
