//! What clients read by URI: the schema, one table, where the work stands.
//!
//! Bound to tools.yaml by the generated `read_resource`. It knows no URI: `app/requests.rs` takes them apart.

use super::{Call, chain, structured, unexpected_answer};
use crate::error::{ErrorCode, ToolError};
use crate::results::TableDetail;
use crate::worker::protocol::{Answer, Work};

/// Bytes of one resource's text; a longer schema is cut and says so.
const MAX_RESOURCE_BYTES: u64 = 4 * 1024 * 1024;

/// All definitions as stored, as SQL.
///
/// # Errors
/// As the worker says.
pub async fn schema(call: &Call<'_>) -> Result<String, ToolError> {
    match call.read(Work::Definitions { include_system: true, max_bytes: MAX_RESOURCE_BYTES }).await? {
        Answer::Definitions(schema) => {
            let mut text = super::schema::as_sql(&schema.definitions);
            if schema.cut {
                let note = format!("-- cut at {MAX_RESOURCE_BYTES} bytes; sqlite_schema holds the rest\n");
                text.push_str(&note);
            }
            Ok(text)
        }
        _ => Err(unexpected_answer()),
    }
}

/// One table or view, as JSON of [`TableDetail`].
///
/// # Errors
/// `UNKNOWN_TABLE`; `TOO_BIG` for a description of several megabytes; as the worker says.
pub async fn table(call: &Call<'_>, name: &str) -> Result<String, ToolError> {
    let text = json(&described(call, name).await?)?;
    if u64::try_from(text.len()).is_ok_and(|bytes| bytes <= MAX_RESOURCE_BYTES) {
        return Ok(text);
    }
    Err(ToolError::new(
        ErrorCode::TooBig,
        format!(
            "the description of `{name}` is longer than {MAX_RESOURCE_BYTES} bytes; query pragma_table_info"
        ),
    ))
}

/// The last checkpoint and the events since, as get_resume_context gives them.
///
/// # Errors
/// As the reader says.
pub async fn resume(call: &Call<'_>) -> Result<String, ToolError> {
    const EVENTS: u64 = 50;
    let input = chain::ResumeInput { max_events: EVENTS, exclude_kinds: None };
    chain::resume(call, input).await.map(|reply| reply.text)
}

/// One table or view with its row count.
pub(super) async fn described(call: &Call<'_>, table: &str) -> Result<TableDetail, ToolError> {
    match call.read(Work::Describe { table: table.to_owned(), count: true }).await? {
        Answer::Described(table) => Ok(structured::table_detail(*table)),
        _ => Err(unexpected_answer()),
    }
}

/// A description as JSON.
pub(super) fn json(detail: &TableDetail) -> Result<String, ToolError> {
    serde_json::to_string(detail).map_err(|error| ToolError::new(ErrorCode::SqlError, error.to_string()))
}
