//! The patterns of string parameters, compiled: linear time, bounded size.
//!
//! They are regular expressions of the regex crate; as in JSON Schema, a match anywhere in the text counts.

use regex::{Regex, RegexBuilder};

/// Bytes of a compiled pattern.
const MOST: usize = 256 * 1024;

/// The pattern, ready to match.
///
/// # Errors
/// One line that says what is wrong with it.
pub fn compiled(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern).size_limit(MOST).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => format!("it needs more than {MOST} bytes when compiled"),
        // The last line says what is wrong; the lines before it show the pattern and point at the place.
        other => {
            let words = other.to_string();
            let last = words.lines().last().unwrap_or_default().trim();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
    })
}
