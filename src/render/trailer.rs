//! The last line of a result, which says what was left out, and caps for texts that are not tables.
//!
//! It does not cut rows or cells; `csv` and `cell` do and report here.

use super::cell::{shown, write_formatted};
use serde::{Deserialize, Serialize};

/// Why the caller stopped reading rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RowCut {
    /// There were no more, or the sink was full.
    #[default]
    None,
    /// More rows exist than the call's `limit`, which may be raised up to `maximum`.
    Limit {
        /// Rows the call asked for.
        limit: u64,
        /// The most a call may ask for.
        maximum: u64,
    },
    /// More rows exist than are ever shown; the call has no limit of its own to raise.
    AtMost {
        /// Rows shown at most.
        rows: u64,
    },
}

impl RowCut {
    /// The words for the trailer; empty for [`RowCut::None`].
    #[must_use]
    pub fn reason(self) -> String {
        match self {
            Self::None => String::new(),
            Self::Limit { limit, maximum } => format!("more rows exist (limit {limit}, maximum {maximum})"),
            Self::AtMost { rows } => format!("more rows exist (at most {rows} are shown)"),
        }
    }
}

/// A line like `# 2 rows; cut at 2000 bytes`.
#[derive(Clone, Debug)]
pub struct Trailer {
    line: String,
}

impl Trailer {
    /// Starts with a head such as `# 2 rows`.
    #[must_use]
    pub fn new(head: &str) -> Self {
        Self { line: head.to_owned() }
    }

    /// Adds what was cut and by which limit; an empty reason adds nothing.
    pub fn reason(&mut self, reason: &str) {
        if !reason.is_empty() {
            self.line.push_str("; ");
            self.line.push_str(reason);
        }
    }

    /// Puts the line at the end of a text, on a line of its own and without a line feed behind it.
    pub fn write_to(&self, out: &mut String) {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&self.line);
    }
}

/// Cuts a text to `max_bytes` bytes or the character boundary before; true when something was left out.
#[must_use]
pub fn cap_text(text: impl Into<String>, max_bytes: usize) -> (String, bool) {
    let mut text = text.into();
    if text.len() <= max_bytes {
        return (text, false);
    }
    text.truncate(boundary_before(&text, max_bytes));
    (text, true)
}

/// A text that is no table, cut to `max_bytes` bytes; a last line `# cut at N bytes` says so.
#[must_use]
pub fn cap_block(text: impl Into<String>, max_bytes: usize) -> String {
    let (mut text, cut) = cap_text(text, max_bytes);
    if cut {
        Trailer::new(&format!("# cut at {max_bytes} bytes")).write_to(&mut text);
    }
    text
}

/// A text cut to `max_chars` characters as `...[+N chars]`.
#[must_use]
pub fn cut_text(text: &str, max_chars: usize) -> String {
    let shown = shown(text.as_bytes(), max_chars);
    let mut cut = shown.text.into_owned();
    if shown.left_out > 0 {
        write_formatted(&mut cut, format_args!("...[+{} chars]", shown.left_out));
    }
    cut
}

/// A text on one line: control characters and line separators escaped as in JSON (`\n`, `\u001b`), cut to
/// `max_chars` characters as `...[+N chars]`.
#[must_use]
pub fn one_line(text: &str, max_chars: usize) -> String {
    let shown = shown(text.as_bytes(), max_chars);
    let mut line = String::with_capacity(shown.text.len());
    for character in shown.text.chars() {
        match character {
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            _ if is_control_or_break(character) => {
                write_formatted(&mut line, format_args!("\\u{:04x}", u32::from(character)));
            }
            _ => line.push(character),
        }
    }
    if shown.left_out > 0 {
        write_formatted(&mut line, format_args!("...[+{} chars]", shown.left_out));
    }
    line
}

/// Control characters (C0, DEL, C1) and the separators U+2028 and U+2029, which some readers break lines at.
pub(crate) fn is_control_or_break(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')
}

/// The last character boundary of `text` at or before `at`.
pub(crate) fn boundary_before(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(0)
}
