//! A search pattern, compiled under bounds, with errors an agent can mend.
//!
//! It runs on the regex crate over bytes: linear time, no copy of the value, no look-around and no
//! back-references. It does not cut or flatten what it finds; `snippet` does.

use super::snippet::snippet_around;
use crate::error::ToolError;
use crate::render::one_line;
use regex::bytes::{Regex, RegexBuilder};

/// Bytes of a regex. Until it is compiled, and then found too large, each of its classes takes kilobytes.
const REGEX_BYTES: usize = 8 << 10;
/// Bytes of a fixed string, which has no classes.
const FIXED_BYTES: usize = 32 << 10;
/// Bytes a compiled pattern may take: some thirty `\w` in a row, or a fixed string of 30 kB.
const COMPILED_BYTES: usize = 2 << 20;
/// Bytes of cache the lazy automaton may take while it searches.
const SEARCH_CACHE_BYTES: usize = 4 << 20;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
}

impl Pattern {
    /// Compiles a regex, or with `fixed_strings` a text that is searched for as it is.
    ///
    /// `^` and `$` are the ends of the value and `.` is no line feed, unless the pattern says `(?m)` or `(?s)`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENTS`, naming `pattern`: it is empty, is no regex of this engine, or is too large
    /// when compiled.
    pub fn new(pattern: &str, fixed_strings: bool, ignore_case: bool) -> Result<Self, ToolError> {
        if pattern.is_empty() {
            return Err(ToolError::arguments(
                "`pattern` is empty: give a regex, or a text with `fixed_strings`",
            ));
        }
        let most = if fixed_strings { FIXED_BYTES } else { REGEX_BYTES };
        if pattern.len() > most {
            return Err(ToolError::arguments(format!(
                "`pattern` is {} bytes long, but at most {most} are searched for; shorten it",
                pattern.len()
            )));
        }
        let escaped = fixed_strings.then(|| regex::escape(pattern));
        RegexBuilder::new(escaped.as_deref().unwrap_or(pattern))
            .case_insensitive(ignore_case)
            .size_limit(COMPILED_BYTES)
            .dfa_size_limit(SEARCH_CACHE_BYTES)
            .build()
            .map(|regex| Self { regex })
            .map_err(|error| ToolError::arguments(describe(&error)))
    }

    /// Whether the value matches anywhere.
    #[must_use]
    pub fn is_match(&self, value: &[u8]) -> bool {
        self.regex.is_match(value)
    }

    /// The first match with `context_chars` characters before and behind it, on one line; `None` without a
    /// match. `...` stands where the value goes on, `⏎` for a line break.
    #[must_use]
    pub fn snippet(&self, value: &[u8], context_chars: usize) -> Option<String> {
        let found = self.regex.find(value)?;
        Some(snippet_around(value, found.range(), context_chars))
    }
}

fn describe(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => format!(
            "`pattern` is too large: compiled, the regex would take more than {} MiB; shorten it, or lower its \
             repetition counts",
            COMPILED_BYTES >> 20
        ),
        regex::Error::Syntax(text) if text.contains("look-around") || text.contains("backreferences are") => {
            "look-around and back-references are not supported by this regex engine; match more in `pattern` and \
             narrow the rows with `where`"
                .to_owned()
        }
        // The engine draws the pattern and a marker first and gives the reason in the last line.
        regex::Error::Syntax(text) => {
            let reason = text.lines().last().unwrap_or_default();
            let reason = reason.strip_prefix("error: ").unwrap_or(reason);
            format!(
                "`pattern` is not a valid regex: {}; to search for the text as it is, set `fixed_strings` to true",
                one_line(reason, 200)
            )
        }
        other => format!("`pattern` is not a valid regex: {}", one_line(&other.to_string(), 200)),
    }
}
