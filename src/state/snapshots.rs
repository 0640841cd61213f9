//! Snapshots of primitives: states to go back to.

use super::Outcome;
use crate::error::ToolError;

/// The longest label, in characters.
pub const LONGEST_LABEL: usize = 200;

/// A snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// 26 characters, lower case (a ULID).
    pub id: String,
    /// What whoever made it calls it, or why it was made.
    pub label: Option<String>,
    /// Whether it was made by itself, before something was replaced.
    pub automatic: bool,
    /// Bytes, large contents aside.
    pub bytes: u64,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
}

/// A label: one line that is not too long.
///
/// # Errors
/// `INVALID_ARGUMENTS` with the rule.
pub fn check_label(label: &str) -> Outcome<()> {
    if label.chars().count() > LONGEST_LABEL || label.chars().any(char::is_control) {
        return Err(ToolError::arguments(format!(
            "`label` must be one line of at most {LONGEST_LABEL} characters"
        )));
    }
    Ok(())
}
