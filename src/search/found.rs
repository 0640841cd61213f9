//! Matches in a part of a table, for a report to take in order with those of the other parts.
//!
//! It shows nothing and holds no more than a report could show.

use super::Pattern;

/// What was found in a part of a table whose rows are named by their rowid.
#[derive(Clone, Debug)]
pub struct Found {
    context_chars: usize,
    /// Matches that may still be kept, and bytes.
    room: (u64, usize),
    row_counted: bool,
    pub(super) candidates: u64,
    pub(super) matching_rows: u64,
    pub(super) matching_values: u64,
    pub(super) kept: Vec<Match>,
}

/// A match that is shown where there is room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) rowid: i64,
    /// Its place among the searched columns.
    pub(super) column: usize,
    pub(super) snippet: String,
}

impl Found {
    /// Nothing yet; at most `limit` matches and about `bytes` of their text are kept, the others counted.
    #[must_use]
    pub fn new(limit: u64, bytes: usize, context_chars: usize) -> Self {
        Self {
            context_chars,
            room: (limit, bytes),
            row_counted: false,
            candidates: 0,
            matching_rows: 0,
            matching_values: 0,
            kept: Vec::new(),
        }
    }

    /// Opens the next candidate row.
    pub fn begin_row(&mut self) {
        self.candidates += 1;
        self.row_counted = false;
    }

    /// Looks at one value of the row.
    pub fn value(&mut self, pattern: &Pattern, rowid: i64, column: usize, value: &[u8]) {
        let keep = self.room.0 > 0 && self.room.1 > 0;
        let snippet = match keep {
            true => pattern.snippet(value, self.context_chars),
            false => pattern.is_match(value).then(String::new),
        };
        let Some(snippet) = snippet else { return };
        self.matching_values += 1;
        if !self.row_counted {
            self.row_counted = true;
            self.matching_rows += 1;
        }
        if keep {
            self.room = (self.room.0 - 1, self.room.1.saturating_sub(snippet.len()));
            self.kept.push(Match { rowid, column, snippet });
        }
    }
}
