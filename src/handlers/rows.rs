//! Rows as structuredContent and Markdown, for profiles of that format. They come capped already.

use super::{Call, Reply, unexpected_answer};
use crate::error::ToolError;
use crate::render::{DatumRows, markdown};
use crate::results::RowSet;

/// A result of rows: data, and a Markdown table with what is missing below it. `most` is the greatest limit
/// that a call can ask for.
///
/// # Errors
/// None that an agent can cause.
pub fn reply(call: &Call<'_>, rows: DatumRows, limit: u64, most: u64) -> Result<Reply, ToolError> {
    let settings = call.limits();
    let mut notes = vec![format!("{} rows", rows.rows.len())];
    if rows.more_rows {
        notes.push(format!("more rows exist (limit {limit}, maximum {most})"));
    }
    if rows.columns_left_out > 0 {
        notes.push(format!("{} more columns not shown", rows.columns_left_out));
    }
    if rows.bytes_cut {
        notes.push(format!("cut at {} bytes", settings.max_result_bytes));
    }
    if rows.cells_cut > 0 {
        notes.push(format!("{} cells cut to {} chars", rows.cells_cut, settings.max_cell_chars));
    }
    let set = RowSet::of(rows);
    let table = markdown::table(&set.columns, set.rows.iter().map(Vec::as_slice));
    structured(&set, format!("{table}\n{}", notes.join("; ")), Some(set.row_count))
}

/// A reply with data beside its text.
///
/// # Errors
/// A result that has no JSON form, which would be a fault of the server.
pub fn structured(data: &impl serde::Serialize, text: String, rows: Option<u64>) -> Result<Reply, ToolError> {
    let structured = serde_json::to_value(data).map_err(|_| unexpected_answer())?;
    Ok(Reply { structured: Some(structured), ..Reply::text(text, rows) })
}
