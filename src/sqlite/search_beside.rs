//! A search through a large table by two threads, each with a connection of its own and the same view of the file.
//!
//! Only for a whole table whose rows are named by their rowid: its parts are then found in the order in which one
//! thread would find them. Whatever keeps a second thread from its work leaves all of it to the caller.

use super::fault::Fault;
use super::guard::{Compiled, Guarded};
use super::objects::quoted;
use super::one_moment::{begin_both, run as run_sql};
use super::search_rows::{Looks, Plan, Search};
use crate::policy::Policy;
use crate::search::{Found, Pattern};
use rusqlite::OptionalExtension;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the threads share out among them, and the rowids from which that is worth a thread.
const PARTS: i64 = 8;
const WORTH_TWO_THREADS: i64 = 20_000;

/// What is found in each part of the table, in order; none where this is not for two threads.
///
/// # Errors
/// Stops.
pub(super) fn run(
    guarded: &Guarded,
    policy: &'static Policy,
    search: &Search,
    plan: &Plan,
    pattern: &Pattern,
) -> Result<Option<Vec<Found>>, Fault> {
    let (Some(rowid), None) = (plan.rowid, &search.filter) else { return Ok(None) };
    if !std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) {
        return Ok(None);
    }
    let Some((first, last)) = ends(guarded, rowid, plan) else { return Ok(None) };
    let Some(span) = last.checked_sub(first) else { return Ok(None) };
    let all = search.max_candidates == 0 || span.unsigned_abs() < search.max_candidates;
    if span < WORTH_TWO_THREADS || !all {
        return Ok(None);
    }
    let Ok(mut another) = guarded.another() else { return Ok(None) };
    if !begin_both(guarded.trusted(), another.trusted()).unwrap_or(false) {
        end(guarded);
        return Ok(None);
    }
    let select = format!("SELECT {} FROM main.{}", plan.columns(), quoted(&plan.table));
    let sql = format!("{select} WHERE {rowid} BETWEEN ?1 AND ?2");
    let parts = parts(first, span);
    let work = Work { policy, search, plan, pattern, sql: &sql, parts: &parts, next: AtomicUsize::new(0) };
    let found = std::thread::scope(|scope| {
        let (work, another) = (&work, &mut another);
        let theirs = std::thread::Builder::new()
            .name("search".to_owned())
            .spawn_scoped(scope, move || work.look_through(another, work.pattern.clone()));
        let mine = work.look_through(guarded, pattern.clone());
        // Without a second thread, this one has looked through it all.
        let theirs =
            theirs.map_or_else(|_| Ok(Vec::new()), |theirs| theirs.join().unwrap_or(Err(Out::Failed)));
        match (mine, theirs) {
            (Ok(mut mine), Ok(theirs)) => {
                mine.extend(theirs);
                Ok(mine)
            }
            (Err(Out::Stopped(fault)), _) | (_, Err(Out::Stopped(fault))) => Err(Some(fault)),
            _ => Err(None),
        }
    });
    end(guarded);
    match found {
        Ok(mut found) if found.len() == parts.len() => {
            found.sort_by_key(|(at, _)| *at);
            Ok(Some(found.into_iter().map(|(_, found)| found).collect()))
        }
        Err(Some(fault)) => Err(fault),
        // What SQLite did not like, two large values at once say, one thread may manage or say in full.
        _ => Ok(None),
    }
}

/// Why a thread gave up.
enum Out {
    Stopped(Fault),
    Failed,
}

struct Work<'w> {
    policy: &'static Policy,
    search: &'w Search,
    plan: &'w Plan,
    pattern: &'w Pattern,
    sql: &'w str,
    parts: &'w [(i64, i64)],
    next: AtomicUsize,
}

impl Work<'_> {
    /// Looks through parts that nobody else has taken, until none is left.
    fn look_through(&self, guarded: &Guarded, pattern: Pattern) -> Result<Vec<(usize, Found)>, Out> {
        let out = |fault: Fault| match fault {
            fault @ Fault::Stopped(_) => Out::Stopped(fault),
            _ => Out::Failed,
        };
        let mut compiled = guarded.compile(self.policy, self.sql).map_err(out)?;
        let mut parts = Vec::new();
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = self.parts.get(at) else { return Ok(parts) };
            let found = self.look_at(guarded, &mut compiled, &pattern, *part);
            if found.is_err() {
                // Nobody needs the rest.
                self.next.store(self.parts.len(), Ordering::Relaxed);
            }
            parts.push((at, found.map_err(out)?));
        }
    }

    fn look_at(
        &self,
        guarded: &Guarded,
        compiled: &mut Compiled<'_>,
        pattern: &Pattern,
        (from, through): (i64, i64),
    ) -> Result<Found, Fault> {
        let Search { limit, caps, context_chars, .. } = self.search;
        let mut found = Found::new(*limit, caps.max_result_bytes, *context_chars);
        let _running = guarded.enter(&compiled.judged);
        let failed = |error: &rusqlite::Error| guarded.fault(error);
        let statement = &mut compiled.statement;
        statement.raw_bind_parameter(1, from).map_err(|error| failed(&error))?;
        statement.raw_bind_parameter(2, through).map_err(|error| failed(&error))?;
        let mut rows = statement.raw_query();
        let mut looks = Looks::default();
        while let Some(row) = rows.next().map_err(|error| failed(&error))? {
            found.begin_row();
            let rowid = row.get(0).map_err(|error| failed(&error))?;
            for column in 0..self.plan.searched.len() {
                let value = row.get_ref(1 + column).map_err(|error| failed(&error))?;
                looks.value(value, |text| found.value(pattern, rowid, column, text));
            }
            looks.go_on(guarded)?;
        }
        Ok(found)
    }
}

/// Ranges of rowids, both ends included, that together hold all from `first` on and nothing twice.
fn parts(first: i64, span: i64) -> Vec<(i64, i64)> {
    let width = span / PARTS;
    let part = |at: i64| {
        let from = if at == 0 { i64::MIN } else { first + at * width + 1 };
        (from, if at + 1 == PARTS { i64::MAX } else { first + (at + 1) * width })
    };
    (0..PARTS).map(part).collect()
}

/// The first and the last rowid.
fn ends(guarded: &Guarded, rowid: &str, plan: &Plan) -> Option<(i64, i64)> {
    let end = |order: &str| {
        let table = quoted(&plan.table);
        let sql = format!("SELECT {rowid} FROM main.{table} ORDER BY {rowid} {order} LIMIT 1");
        guarded.trusted().query_row(&sql, [], |row| row.get::<_, i64>(0)).optional().ok().flatten()
    };
    Some((end("ASC")?, end("DESC")?))
}

fn end(guarded: &Guarded) {
    if !guarded.trusted().is_autocommit() {
        // A read transaction has nothing to lose; if even this fails the next BEGIN reports it.
        let _ = run_sql(guarded.trusted(), "ROLLBACK");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_every_rowid_once() {
        for (first, last) in [(1, 20_001), (-5, 1 << 40), (i64::MIN, -1), (1, i64::MAX)] {
            let parts = parts(first, last - first);
            assert_eq!((parts[0].0, parts[parts.len() - 1].1), (i64::MIN, i64::MAX));
            for pair in parts.windows(2) {
                assert_eq!(pair[0].1 + 1, pair[1].0);
                assert!(pair[1].0 <= pair[1].1);
            }
        }
    }
}
