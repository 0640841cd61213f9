//! Where the data folder is, which is no agent's business: it is left out of the errors that agents read.
//!
//! The log keeps it, for people.

use crate::error::ToolError;
use std::path::Path;

/// What stands in its place.
const PLACEHOLDER: &str = "DATA";

/// The folder's path, as errors may spell it.
#[derive(Debug, Default)]
pub(super) struct Whereabouts(Vec<String>);

impl Whereabouts {
    pub(super) fn of(data: &Path) -> Self {
        let absolute = std::path::absolute(data).ok();
        let resolved = std::fs::canonicalize(data).ok();
        let mut spellings: Vec<String> = [absolute, resolved]
            .into_iter()
            .flatten()
            .filter(|path| path.file_name().is_some())
            .map(|path| path.display().to_string())
            .collect();
        // The longer one may hold the other.
        spellings.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
        spellings.dedup();
        Self(spellings)
    }

    /// The error without it.
    pub(super) fn left_out_of(&self, mut error: ToolError) -> ToolError {
        for spelling in &self.0 {
            if error.message.contains(spelling) {
                error.message = error.message.replace(spelling, PLACEHOLDER);
            }
        }
        error
    }
}
