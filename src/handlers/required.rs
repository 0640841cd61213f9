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

/// Why something is done, for the log. It goes to a worker and back: as long as an event may be, and no longer.
///
/// # Errors
/// When it is blank or too long.
pub fn required_reason(reason: &str) -> Result<(), ToolError> {
    const MOST: usize = 1 << 20;
    required_text("reason", reason)?;
    if reason.len() > MOST {
        return Err(ToolError::arguments(format!(
            "`reason` is {} bytes long, but at most {MOST} are taken; say it in one sentence",
            reason.len()
        )));
    }
    Ok(())
}
