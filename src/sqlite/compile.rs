//! Compiles and judges a statement that will be run later, and says what it is like.
//!
//! It runs nothing.

use super::fault::Fault;
use super::guard::{Compiled, Guarded};
use super::write::Writer;
use super::{program, query};
use crate::policy::Policy;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a statement is like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compilation {
    /// The names of its parameters with their prefix character, in order; none for a bare `?`.
    pub parameters: Vec<Option<String>>,
    /// Whether it may change or replace rows that are there.
    pub overwrites: bool,
}

/// Compiles a statement that reads.
///
/// # Errors
/// Refusals and SQLite's errors.
pub fn read(guarded: &Guarded, policy: &'static Policy, sql: &str) -> Result<Compilation, Fault> {
    let compiled = guarded.compile(policy, sql)?;
    query::must_read(policy, &compiled)?;
    Ok(Compilation { parameters: parameters(&compiled), overwrites: false })
}

/// Compiles a statement that writes.
///
/// # Errors
/// Refusals and SQLite's errors.
pub fn write(writer: &Writer, policy: &'static Policy, sql: &str) -> Result<Compilation, Fault> {
    let compiled = writer.compile(policy, sql)?;
    let (parameters, judged) = (parameters(&compiled), Arc::clone(&compiled.judged));
    drop(compiled);
    let inserts = !judged.facts.inserted.is_empty();
    let overwrites =
        judged.facts.changes_rows || (inserts && program::replaces(writer.guarded(), policy, sql, &judged)?);
    Ok(Compilation { parameters, overwrites })
}

fn parameters(compiled: &Compiled<'_>) -> Vec<Option<String>> {
    let statement = &compiled.statement;
    (1..=statement.parameter_count()).map(|at| statement.parameter_name(at).map(str::to_owned)).collect()
}
