//! What ended a statement of an agent's, in words for the tool that ran it.

use crate::error::{ErrorCode, ToolError};
use crate::generated::{ACTION_WORDS, POLICIES};
use crate::sqlite::fault::Fault;
use crate::sqlite::watch::Stop;
use crate::state::db::Terms;
use crate::worker::pool::JobError;

/// What ended a job.
pub(super) fn explained(error: JobError, terms: &Terms) -> ToolError {
    match error {
        JobError::Fault(Fault::Error(error)) => with_next_step(error),
        // In WAL mode, which these files are in, a commit that fails does not stand.
        JobError::Fault(Fault::CutOff(words) | Fault::InDoubt(words)) => {
            ToolError::new(ErrorCode::SqlError, words)
        }
        JobError::Fault(Fault::Refused(refusal)) => {
            let writes = |id: &str| POLICIES.iter().any(|policy| policy.id == id && policy.writes);
            refusal.words(&terms.tool, ACTION_WORDS, &|policy| {
                if writes(policy) { terms.others.changes.clone() } else { terms.others.reads.clone() }
            })
        }
        JobError::Fault(Fault::Stopped(stop)) | JobError::Killed(stop) => stopped(stop, terms),
        JobError::Fault(_) => unexpected(),
        JobError::Lost(words) => ToolError::new(
            ErrorCode::WorkerLost,
            format!("{words}; nothing was changed, other calls are not affected: try again"),
        ),
    }
}

/// What to do next, behind SQLite's own words. What says it already says it behind a semicolon.
fn with_next_step(error: ToolError) -> ToolError {
    let step = match error.code {
        _ if error.message.contains("; ") => return error,
        ErrorCode::UnknownTable => "SELECT name FROM sqlite_schema shows what there is",
        ErrorCode::UnknownColumn => "SELECT name FROM pragma_table_info('t') shows the columns of a table",
        ErrorCode::SyntaxError => "correct the SQL there and send it again",
        ErrorCode::SqlError => "change the statement and send it again",
        _ => return error,
    };
    ToolError { message: format!("{}; {step}", error.message), ..error }
}

fn stopped(stop: Stop, terms: &Terms) -> ToolError {
    match stop {
        Stop::Cancelled => {
            ToolError::new(ErrorCode::Cancelled, "the call was cancelled and nothing was changed")
        }
        Stop::Deadline => ToolError::new(
            ErrorCode::Timeout,
            format!(
                "the call ran longer than {} s and was stopped, nothing was changed; narrow it with WHERE or LIMIT, do less at once, or look at the plan with EXPLAIN QUERY PLAN",
                terms.timeout.as_secs_f64()
            ),
        ),
    }
}

/// An error that names the statement, where there are several.
pub(super) fn of_statement(at: usize, count: usize, error: ToolError) -> ToolError {
    if count < 2 {
        return error;
    }
    ToolError {
        message: format!("statement {} of {count}: {}; nothing was changed", at + 1, error.message),
        ..error
    }
}

/// A worker answered something else.
pub(super) fn unexpected() -> ToolError {
    ToolError::new(
        ErrorCode::WorkerLost,
        "the worker gave an unexpected answer; nothing was changed, try again",
    )
}
