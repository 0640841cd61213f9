//! sample_rows and explain_query.
//!
//! Not written yet: it holds the arguments that tools.yaml binds.

use super::{Call, Reply, unexpected_answer};
use crate::error::ToolError;
use serde_json::Value;

/// Arguments of [`sample_rows`].
pub struct SampleRowsInput {
    /// The table or view.
    pub table: String,
    /// Columns to show; all where none are given.
    pub columns: Option<Vec<String>>,
    /// Rows to return at most.
    pub limit: u64,
    /// Whether the rows are random ones rather than the first.
    pub random: bool,
}

/// Arguments of [`explain`].
pub struct ExplainInput {
    /// The statement.
    pub query: String,
    /// Array or object of parameters.
    pub params: Option<Value>,
}

/// Some rows of one table or view.
///
/// # Errors
/// As the worker says.
pub async fn sample_rows(_: &Call<'_>, _: SampleRowsInput) -> Result<Reply, ToolError> {
    Err(unexpected_answer())
}

/// The plan of one statement.
///
/// # Errors
/// As the worker says.
pub async fn explain(_: &Call<'_>, _: ExplainInput) -> Result<Reply, ToolError> {
    Err(unexpected_answer())
}
