//! create_view: a SELECT kept under a name, with what it is for.
//!
//! Whether it is a SELECT and may stand is the worker's to say; here its name is judged.

use super::{Call, Reply, unexpected_answer};
use crate::error::ToolError;
use crate::render::one_line;
use crate::worker::protocol::{Answer, Work};

/// Characters of a view's name.
const MAX_NAME_CHARS: usize = 100;
/// Characters of a view's description.
const MAX_DESCRIPTION_CHARS: usize = 2000;

/// Arguments of [`create`].
pub struct CreateInput {
    /// The view's name.
    pub name: String,
    /// Its SELECT.
    pub select_sql: String,
    /// What it is for.
    pub description: Option<String>,
    /// Whether to replace one of that name.
    pub replace: bool,
}

/// Creates or replaces a view.
///
/// # Errors
/// A name that is no plain identifier; as the worker says.
pub async fn create(call: &Call<'_>, input: CreateInput) -> Result<Reply, ToolError> {
    call.note_query(&input.select_sql);
    call.note("name", input.name.as_str());
    call.note("replace", input.replace);
    if let Some(description) = &input.description {
        call.note("description", description.as_str());
    }
    check_name(&input.name)?;
    if input.description.as_ref().is_some_and(|text| text.chars().count() > MAX_DESCRIPTION_CHARS) {
        return Err(ToolError::arguments(format!(
            "`description` must have at most {MAX_DESCRIPTION_CHARS} characters"
        )));
    }
    let turn = call.turn().await?;
    let mut audit = call.audit_row(Some(0), None);
    let work = Work::CreateView {
        name: input.name.clone(),
        select_sql: input.select_sql,
        description: input.description,
        replace: input.replace,
        audit: audit.clone(),
    };
    match call.write(work, &turn).await? {
        Answer::ViewCreated(view) => {
            if let Some(old) = &view.replaced {
                call.note_whole("replaced", old.as_str());
                audit.detail = call.audit_row(Some(0), None).detail;
            }
            call.recorded(audit);
            call.core.schema_changed();
            let done = if view.replaced.is_some() { "replaced" } else { "created" };
            let columns: Vec<String> = view.columns.iter().map(|name| one_line(name, 200)).collect();
            let text = format!("ok: view {} {done} with columns {}", input.name, columns.join(", "));
            let text = crate::render::cap_block(text, call.caps().max_result_bytes);
            Ok(Reply::text(text, Some(0)))
        }
        _ => Err(unexpected_answer()),
    }
}

fn check_name(name: &str) -> Result<(), ToolError> {
    let mut chars = name.chars();
    let plain = chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.len() <= MAX_NAME_CHARS;
    if !plain {
        return Err(ToolError::arguments(format!(
            "`name` must be a plain name of letters, digits and `_`, not beginning with a digit, at most {MAX_NAME_CHARS} long"
        )));
    }
    if name.to_ascii_lowercase().starts_with("sqlite_") {
        return Err(ToolError::arguments(
            "`name` must not begin with `sqlite_`, which SQLite keeps for itself",
        ));
    }
    Ok(())
}
