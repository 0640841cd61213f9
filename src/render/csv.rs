//! Rows as CSV, written straight into one buffer under a hard byte cap.
//!
//! The dialect is what PostgreSQL's COPY writes: NULL is an empty field, the empty text `""`, quoting as in
//! RFC 4180, every row ends in a line feed, and a row of one NULL is an empty line. It does not read rows and
//! does not know whether more exist; the caller says so in [`CsvSink::finish`].

use super::cell::{write_cell_head, write_cell_within};
use super::trailer::{RowCut, Trailer};
use super::{Caps, Cell};
use serde::{Deserialize, Serialize};

/// Whether another row can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The row is in; go on.
    Continue,
    /// The byte cap is reached: the row was left out or cut, and no later one will be shown.
    Full,
}

/// A finished result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rendered {
    /// Header, rows and trailer; no line feed at the end.
    pub text: String,
    /// Rows shown, one that was cut included.
    pub rows: u64,
    /// Shown cells and column names that were cut to `max_cell_chars`.
    pub cut_cells: u64,
    /// Whether the byte cap left something out.
    pub bytes_cut: bool,
}

/// Takes rows cell by cell and writes them as CSV.
///
/// `begin_row`, one `cell` per column, `end_row`; then `finish`. A row that does not fit is left out whole,
/// except the first one, of which is shown what fits, so that a result is never empty for its width alone.
#[derive(Debug)]
pub struct CsvSink {
    text: String,
    caps: Caps,
    rows: u64,
    cut_cells: u64,
    full: Option<Full>,
    line: Line,
}

/// The line being written.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    start: usize,
    fields: usize,
    cut_cells: u64,
    /// It has met the byte cap; what else comes for it is passed over.
    over: bool,
}

/// What the byte cap hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Full {
    Header,
    FirstRow,
    LaterRow,
}

impl CsvSink {
    /// Starts a result with its header line.
    pub fn new(columns: &[impl AsRef<str>], caps: Caps) -> Self {
        let mut sink = Self::without_header(caps);
        for column in columns {
            sink.cell(Cell::Text(column.as_ref().as_bytes()));
        }
        sink.cut_cells = sink.line.cut_cells;
        if sink.line.over {
            sink.full = Some(Full::Header);
        }
        if !sink.text.is_empty() || !sink.line.over {
            sink.text.push('\n');
        }
        sink
    }

    /// Starts rows that stand below a header written elsewhere.
    pub(crate) fn without_header(caps: Caps) -> Self {
        let text = String::with_capacity(caps.max_result_bytes.min(4096));
        Self { text, caps, rows: 0, cut_cells: 0, full: None, line: Line::default() }
    }

    /// Whether the byte cap is reached, by a row or already by the header.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// Rows taken so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes written so far.
    pub(crate) fn written(&self) -> usize {
        self.text.len()
    }

    /// Opens a row.
    pub fn begin_row(&mut self) {
        self.line = Line { start: self.text.len(), ..Line::default() };
    }

    /// Writes the row's next value.
    pub fn cell(&mut self, cell: Cell<'_>) {
        if self.line.over || self.full.is_some() {
            return;
        }
        let start = self.text.len();
        let first = self.line.fields == 0;
        if !first {
            self.text.push(',');
        }
        let max_chars = self.caps.max_cell_chars;
        // One byte is kept for the line feed.
        let limit = self.caps.max_result_bytes.saturating_sub(1);
        match write_cell_within(&mut self.text, cell, max_chars, first, limit) {
            Some(left_out) => {
                self.line.fields += 1;
                self.line.cut_cells += u64::from(left_out > 0);
            }
            None => {
                self.line.over = true;
                if self.rows > 0 {
                    self.text.truncate(self.line.start);
                    return;
                }
                self.text.truncate(start);
                if !first {
                    self.text.push(',');
                }
                if !write_cell_head(&mut self.text, cell, max_chars, first, limit) {
                    self.text.truncate(start);
                }
            }
        }
    }

    /// Closes the row.
    pub fn end_row(&mut self) -> Flow {
        if self.full.is_some() {
            return Flow::Full;
        }
        if self.line.over {
            // Nothing of a first row fitted when nothing was written for it.
            if self.rows > 0 || self.text.len() == self.line.start {
                self.full = Some(Full::LaterRow);
                return Flow::Full;
            }
            self.full = Some(Full::FirstRow);
        }
        self.text.push('\n');
        self.rows += 1;
        self.cut_cells += self.line.cut_cells;
        if self.full.is_some() { Flow::Full } else { Flow::Continue }
    }

    /// Ends the result with `# N rows` and a reason for each cut.
    #[must_use]
    pub fn finish(self, cut: RowCut) -> Rendered {
        let head = format!("# {} rows", self.rows);
        self.finish_with(&head, &[cut.reason()])
    }

    /// Ends the result with a trailer of another head; the empty ones of `reasons` are passed over, the
    /// sink's own come behind them.
    #[must_use]
    pub fn finish_with(self, head: &str, reasons: &[String]) -> Rendered {
        let bytes = self.caps.max_result_bytes;
        let mut trailer = Trailer::new(head);
        reasons.iter().for_each(|reason| trailer.reason(reason));
        trailer.reason(&match self.full {
            Some(Full::Header) => format!("header cut at {bytes} bytes, rows not shown"),
            Some(Full::FirstRow) => format!("row 1 cut at {bytes} bytes, later rows not shown"),
            Some(Full::LaterRow) => format!("cut at {bytes} bytes"),
            None => String::new(),
        });
        if self.cut_cells > 0 {
            trailer.reason(&format!("{} cells cut to {} chars", self.cut_cells, self.caps.max_cell_chars));
        }
        let mut rendered = self.into_rows();
        trailer.write_to(&mut rendered.text);
        rendered
    }

    /// Ends the result without a trailer; the text ends in a line feed.
    pub(crate) fn into_rows(self) -> Rendered {
        Rendered {
            bytes_cut: self.full.is_some(),
            text: self.text,
            rows: self.rows,
            cut_cells: self.cut_cells,
        }
    }
}
