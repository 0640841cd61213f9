//! What a search answers: a row per match and a trailer that counts what was looked at.
//!
//! It renders and counts. It does not decide when to stop searching.

use super::{Found, Pattern};
use crate::render::{Caps, Cell, CsvSink, Rendered, write_cell};

/// Collects matches as `key,column,snippet`.
#[derive(Debug)]
pub struct SearchReport {
    sink: CsvSink,
    context_chars: usize,
    columns: usize,
    limit: u64,
    candidates: u64,
    matching_rows: u64,
    matching_values: u64,
    row_counted: bool,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchEnd {
    /// The most a call may ask for as `limit`; named when more values match than are shown.
    pub maximum: u64,
    /// Set when the setting `--search-candidates` stopped it: that many rows were looked at and more exist.
    pub candidates_cut: Option<u64>,
}

impl SearchReport {
    /// Starts a report that shows up to `limit` matches, found in `columns` searched columns.
    #[must_use]
    pub fn new(columns: usize, limit: u64, context_chars: usize, caps: Caps) -> Self {
        let sink = CsvSink::new(&["key", "column", "snippet"], caps);
        Self {
            sink,
            context_chars,
            columns,
            limit,
            candidates: 0,
            matching_rows: 0,
            matching_values: 0,
            row_counted: false,
        }
    }

    /// Opens the next candidate row.
    pub fn begin_row(&mut self) {
        self.candidates += 1;
        self.row_counted = false;
    }

    /// Looks at one value of the row, and shows it if it matches and there is room. `key` is the row's key,
    /// more than one value for a composite one (shown joined by `|`).
    pub fn value(&mut self, pattern: &Pattern, key: &[Cell<'_>], column: &str, value: &[u8]) {
        let snippet = if self.sink.rows() < self.limit && !self.sink.is_full() {
            pattern.snippet(value, self.context_chars)
        } else {
            pattern.is_match(value).then(String::new)
        };
        let Some(snippet) = snippet else { return };
        self.matching_values += 1;
        if !self.row_counted {
            self.row_counted = true;
            self.matching_rows += 1;
        }
        if self.sink.rows() < self.limit && !self.sink.is_full() {
            self.show(key, column, &snippet);
        }
    }

    /// Takes what was found in the rows behind those so far, in these columns.
    pub fn take(&mut self, found: Found, columns: &[String]) {
        self.candidates += found.candidates;
        self.matching_rows += found.matching_rows;
        self.matching_values += found.matching_values;
        for matched in found.kept {
            if self.sink.rows() >= self.limit || self.sink.is_full() {
                break;
            }
            let column = columns.get(matched.column).map(String::as_str).unwrap_or_default();
            self.show(&[Cell::Integer(matched.rowid)], column, &matched.snippet);
        }
    }

    /// Candidate rows looked at so far.
    #[must_use]
    pub fn candidates(&self) -> u64 {
        self.candidates
    }

    /// Ends with `# 1 of 5 matching values in 3 rows (3 candidate rows x 2 columns scanned)` and a reason for
    /// each cut.
    #[must_use]
    pub fn finish(self, end: SearchEnd) -> Rendered {
        let Self { sink, columns, limit, candidates, matching_rows, matching_values, .. } = self;
        let shown = sink.rows();
        let head = format!(
            "# {shown} of {matching_values} matching values in {matching_rows} rows \
             ({candidates} candidate rows x {columns} columns scanned)"
        );
        let at_limit = shown == limit && matching_values > shown;
        let more = at_limit.then(|| format!("more matches exist (limit {limit}, maximum {})", end.maximum));
        let stopped = end.candidates_cut.map(|most| {
            format!("stopped after {most} candidate rows (--search-candidates), narrow them with `where`")
        });
        sink.finish_with(&head, &[more.unwrap_or_default(), stopped.unwrap_or_default()])
    }

    fn show(&mut self, key: &[Cell<'_>], column: &str, snippet: &str) {
        self.sink.begin_row();
        match key {
            [single] => self.sink.cell(*single),
            composite => self.sink.cell(Cell::Text(joined(composite).as_bytes())),
        }
        self.sink.cell(Cell::Text(column.as_bytes()));
        self.sink.cell(Cell::Text(snippet.as_bytes()));
        self.sink.end_row();
    }
}

/// The values of a composite key, joined by `|`.
fn joined(key: &[Cell<'_>]) -> String {
    let mut text = String::new();
    for (index, cell) in key.iter().enumerate() {
        if index > 0 {
            text.push('|');
        }
        match cell {
            // Not as a field: quoting and cutting are for the joined text.
            Cell::Text(bytes) => text.push_str(&String::from_utf8_lossy(bytes)),
            other => {
                write_cell(&mut text, *other, usize::MAX, false);
            }
        }
    }
    text
}
