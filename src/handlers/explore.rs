//! sample_rows, explain_query: looking at a database without knowing it.
//!
//! Rows are drawn and plans made in the worker; here they become results.

use super::rows::structured;
use super::{Call, Reply, note_params, rows, unexpected_answer};
use crate::error::ToolError;
use crate::render::markdown;
use crate::results::{PlanStep, QueryPlan, Truncated, json_bytes};
use crate::sqlite::params::Params;
use crate::sqlite::sample::Sample;
use crate::worker::protocol::{Answer, Work};
use serde_json::Value;

/// Arguments of [`sample_rows`].
pub struct SampleRowsInput {
    /// The table or view.
    pub table: String,
    /// Columns; none for all.
    pub columns: Option<Vec<String>>,
    /// Rows at most.
    pub limit: u64,
    /// Whether they are drawn at random.
    pub random: bool,
}

/// Arguments of [`explain`].
pub struct ExplainInput {
    /// The statement.
    pub query: String,
    /// Array or object of parameters.
    pub params: Option<Value>,
}

/// Rows of a table or view to look at.
///
/// # Errors
/// As the worker says.
pub async fn sample_rows(call: &Call<'_>, input: SampleRowsInput) -> Result<Reply, ToolError> {
    call.note("table", input.table.as_str());
    call.note("limit", input.limit);
    call.note("random", input.random);
    if let Some(columns) = &input.columns {
        call.note("columns", columns.clone());
    }
    let limit = input.limit;
    let sample = Sample {
        table: input.table,
        columns: input.columns.unwrap_or_default(),
        limit,
        random: input.random,
        caps: call.caps(),
    };
    match call.read(Work::Sample(sample)).await? {
        Answer::Rows(found) => rows::reply(call, found, limit, call.limits().max_rows),
        _ => Err(unexpected_answer()),
    }
}

/// The plan of a statement that reads.
///
/// # Errors
/// As the worker says.
pub async fn explain(call: &Call<'_>, input: ExplainInput) -> Result<Reply, ToolError> {
    call.note_query(&input.query);
    note_params(call, input.params.as_ref());
    let params = Params::from_json(input.params)?;
    match call.read(Work::Explain { sql: input.query, params }).await? {
        Answer::Plan(plan) => {
            let most = call.caps().max_result_bytes;
            let plan = plan_within(plan, most);
            let scans = match (plan.full_scans.as_slice(), plan.truncated) {
                ([], None) => "No table is read from end to end.".to_owned(),
                ([], Some(_)) => format!("cut at {most} bytes"),
                (names, truncated) => {
                    let names: Vec<String> = names.iter().map(|name| markdown::escaped(name)).collect();
                    let cut = truncated.map(|_| format!("\ncut at {most} bytes")).unwrap_or_default();
                    format!(
                        "Read from end to end: {}. An index on the columns compared may help.{cut}",
                        names.join(", ")
                    )
                }
            };
            let rows = u64::try_from(plan.plan.len()).ok();
            let text = format!("{}\n{scans}", markdown::code_block("", &plan.tree));
            structured(&plan, text, rows)
        }
        _ => Err(unexpected_answer()),
    }
}

/// The plan with its tree and scans, of the first steps only where all do not fit into `max_bytes` bytes of JSON.
fn plan_within(mut steps: Vec<PlanStep>, max_bytes: usize) -> QueryPlan {
    let mut truncated = None;
    loop {
        let tree = tree(&steps);
        let full_scans = steps.iter().filter_map(|step| full_scan(&step.detail)).collect();
        let plan = QueryPlan { plan: steps, tree, full_scans, truncated };
        let bytes = json_bytes(&plan);
        if bytes <= max_bytes || plan.plan.is_empty() {
            return plan;
        }
        steps = plan.plan;
        // As many as would fit if all were of one length; fewer in the next round if they do not.
        steps.truncate((steps.len() * max_bytes / bytes).min(steps.len() - 1));
        truncated = Some(Truncated::MaxOutputBytes);
    }
}

/// The plan as SQLite's own shell draws it.
fn tree(plan: &[PlanStep]) -> String {
    let mut out = String::from("QUERY PLAN");
    branch(&mut out, plan, 0, "");
    out
}

fn branch(out: &mut String, plan: &[PlanStep], parent: i64, indent: &str) {
    // A plan is a few dozen steps deep at most: SQLite bounds the nesting of a statement.
    let children: Vec<&PlanStep> = plan.iter().filter(|step| step.parent == parent).collect();
    for (at, step) in children.iter().enumerate() {
        let last = at + 1 == children.len();
        out.push('\n');
        out.push_str(indent);
        out.push_str(if last { "`--" } else { "|--" });
        out.push_str(&step.detail);
        if step.id != parent {
            branch(out, plan, step.id, &format!("{indent}{}", if last { "   " } else { "|  " }));
        }
    }
}

/// The table that a step reads from end to end (<https://sqlite.org/eqp.html>): `SCAN t`, also over a
/// covering index; not a subquery, a constant row, or a virtual table that was given a constraint.
fn full_scan(detail: &str) -> Option<String> {
    let rest = detail.strip_prefix("SCAN ")?;
    let constant = rest.starts_with('(') || rest.starts_with("CONSTANT ROW") || rest.contains("-ROW VALUES");
    let constrained = rest.split_once(" VIRTUAL TABLE INDEX ").is_some_and(|(_, index)| index != "0:");
    if constant || constrained {
        return None;
    }
    let end = [" USING ", " VIRTUAL TABLE ", " LEFT-JOIN"].iter().filter_map(|mark| rest.find(mark)).min();
    Some(rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_scans_are_told_from_other_steps() {
        for (detail, expected) in [
            ("SCAN t", Some("t")),
            ("SCAN t USING COVERING INDEX t_a", Some("t")),
            ("SCAN t LEFT-JOIN", Some("t")),
            ("SCAN my table USING INDEX i", Some("my table")),
            ("SEARCH t USING INDEX t_a (a=?)", None),
            ("SCAN CONSTANT ROW", None),
            ("SCAN 3-ROW VALUES CLAUSE", None),
            ("SCAN (subquery-1)", None),
            ("SCAN docs VIRTUAL TABLE INDEX 0:M1", None),
            ("SCAN docs VIRTUAL TABLE INDEX 0:", Some("docs")),
            ("USE TEMP B-TREE FOR ORDER BY", None),
        ] {
            assert_eq!(full_scan(detail).as_deref(), expected, "{detail}");
        }
    }

    #[test]
    fn the_tree_is_drawn_as_sqlite_draws_it() {
        let step = |id, parent, detail: &str| PlanStep { id, parent, detail: detail.to_owned() };
        let plan = [step(3, 0, "CO-ROUTINE q"), step(5, 3, "SCAN a"), step(9, 0, "SCAN q")];
        assert_eq!(tree(&plan), "QUERY PLAN\n|--CO-ROUTINE q\n|  `--SCAN a\n`--SCAN q");
    }
}
