//! The query plan of a statement that reads, without running it.
//!
//! The statement is compiled and judged by itself first; then its plan is asked for by EXPLAIN QUERY PLAN
//! (<https://sqlite.org/eqp.html>). Reading a plan is not running it.

use super::fault::Fault;
use super::guard::Guarded;
use super::params::Params;
use super::query;
use crate::policy::Policy;
use crate::results::PlanStep;

/// The steps of the plan. Parameters may be left out: the plan hardly depends on them.
///
/// # Errors
/// Refusals and SQLite's errors, as for the statement itself.
pub fn run(
    guarded: &Guarded,
    policy: &'static Policy,
    sql: &str,
    params: &Params,
) -> Result<Vec<PlanStep>, Fault> {
    let compiled = guarded.compile(policy, sql)?;
    query::must_read(policy, &compiled)?;
    drop(compiled);
    let mut explained = guarded.compile(policy, &format!("EXPLAIN QUERY PLAN {sql}"))?;
    explained.statement.clear_bindings();
    if *params != Params::None {
        params.bind(&mut explained.statement)?;
    }
    let _running = guarded.enter(&explained.judged);
    explained
        .statement
        .raw_query()
        .mapped(|row| Ok(PlanStep { id: row.get(0)?, parent: row.get(1)?, detail: row.get(3)? }))
        .collect::<rusqlite::Result<_>>()
        .map_err(|error| guarded.fault(&error))
}
