//! Texts that a call must give: something said, and no more than is wanted.
//!
//! Types and bounds are `surface::arguments`' to check; this is what no schema says.

use crate::error::ToolError;

/// A text argument that must say something.
///
/// # Errors
/// When it is blank, naming it.
pub fn required_text(name: &str, value: &str) -> Result<(), ToolError> {
    if value.trim().is_empty() {
        return Err(ToolError::arguments(format!("`{name}` must not be blank: say something in it")));
    }
    Ok(())
}

/// Why something is done: one sentence, for the log.
///
/// # Errors
/// When it is blank, or a text instead of a sentence.
pub fn required_reason(reason: &str) -> Result<(), ToolError> {
    const MOST: usize = 2000;
    required_text("reason", reason)?;
    match reason.chars().nth(MOST) {
        None => Ok(()),
        Some(_) => Err(ToolError::arguments(format!(
            "`reason` must have at most {MOST} characters: say it in one sentence"
        ))),
    }
}
