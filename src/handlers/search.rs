//! search_text: regular expressions over the values of a table.
//!
//! The worker searches and renders; here arguments become its work.

use super::{Call, Reply, unexpected_answer};
use crate::error::ToolError;
use crate::sqlite::search_rows::Search;
use crate::worker::protocol::{Answer, Work};

/// Arguments of [`text`].
pub struct TextInput {
    /// Regular expression or literal.
    pub pattern: String,
    /// Table or view.
    pub table: String,
    /// Columns to search; none for all.
    pub columns: Option<Vec<String>>,
    /// Condition on candidate rows.
    pub filter: Option<String>,
    /// Column that names a row.
    pub key_column: Option<String>,
    /// Whether letter case is ignored.
    pub ignore_case: bool,
    /// Whether the pattern is a literal.
    pub fixed_strings: bool,
    /// Matches to show at most.
    pub limit: u64,
    /// Characters around a match.
    pub context_chars: u64,
}

/// Searches.
///
/// # Errors
/// A pattern that does not compile; as the worker says.
pub async fn text(call: &Call<'_>, input: TextInput) -> Result<Reply, ToolError> {
    call.note_query(&input.pattern);
    call.note("table", input.table.as_str());
    if let Some(filter) = &input.filter {
        call.note("where", filter.as_str());
    }
    if let Some(columns) = &input.columns {
        call.note("columns", columns.clone());
    }
    if let Some(key_column) = &input.key_column {
        call.note("key_column", key_column.as_str());
    }
    for (name, set) in [("ignore_case", input.ignore_case), ("fixed_strings", input.fixed_strings)] {
        if set {
            call.note(name, true);
        }
    }
    call.note("limit", input.limit);
    let search = Search {
        pattern: input.pattern,
        fixed_strings: input.fixed_strings,
        ignore_case: input.ignore_case,
        table: input.table,
        columns: input.columns.unwrap_or_default(),
        filter: input.filter,
        key_column: input.key_column,
        limit: input.limit,
        max_rows: call.limits().max_rows,
        context_chars: usize::try_from(input.context_chars).unwrap_or(usize::MAX),
        max_candidates: call.limits().search_candidates,
        caps: call.caps(),
    };
    match call.read(Work::Search(search)).await? {
        Answer::Text(result) => Ok(Reply::text(result.text, Some(result.rows))),
        _ => Err(unexpected_answer()),
    }
}
