//! Values that travel: what a cell shows, owned, after the cap on characters.
//!
//! For results as data; CSV is written from [`Cell`](super::Cell)s directly and needs none of this.

use super::{Caps, Cell, Flow, cell};
use serde::{Deserialize, Serialize};

/// A value as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Datum {
    /// NULL.
    Null,
    /// INTEGER.
    Integer(i64),
    /// REAL.
    Real(f64),
    /// TEXT, possibly cut; or what stands for a blob.
    Text(String),
}

impl Datum {
    /// The value of a cell, its text cut to `max_chars` characters as `...[+N chars]`, a blob as
    /// `<blob N bytes>`; and whether it was cut.
    #[must_use]
    pub fn of(value: Cell<'_>, max_chars: usize) -> (Self, bool) {
        match value {
            Cell::Null => (Self::Null, false),
            Cell::Integer(number) => (Self::Integer(number), false),
            Cell::Real(number) => (Self::Real(number), false),
            Cell::Blob(bytes) => (Self::Text(format!("<blob {bytes} bytes>")), false),
            Cell::Text(text) => {
                let shown = cell::shown(text, max_chars);
                match shown.left_out {
                    0 => (Self::Text(shown.text.into_owned()), false),
                    left_out => (Self::Text(format!("{}...[+{left_out} chars]", shown.text)), true),
                }
            }
        }
    }

    /// About how many bytes it takes in a result.
    #[must_use]
    pub fn width(&self) -> usize {
        match self {
            Self::Null => 4,
            Self::Integer(_) | Self::Real(_) => 12,
            Self::Text(text) => text.len() + 2,
        }
    }
}

/// Rows as data, with what is missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatumRows {
    /// Column names; a name may repeat.
    pub columns: Vec<String>,
    /// Rows beside them.
    pub rows: Vec<Vec<Datum>>,
    /// More rows exist than were asked for.
    pub more_rows: bool,
    /// The cap on bytes left something out.
    pub bytes_cut: bool,
    /// Cells that were cut.
    pub cells_cut: u64,
}

/// Collects rows as data under the caps.
#[derive(Debug)]
pub struct DatumSink {
    caps: Caps,
    result: DatumRows,
    row: Vec<Datum>,
    row_cells_cut: u64,
    bytes: usize,
    full: bool,
}

impl DatumSink {
    /// A sink for these columns. Names count towards the bytes and are cut as cells are.
    #[must_use]
    pub fn new(columns: Vec<String>, caps: Caps) -> Self {
        let share = share(caps.max_result_bytes, columns.len());
        let mut result = DatumRows::default();
        for name in columns {
            let most = caps.max_cell_chars.min(share);
            let (shown, cut) = Datum::of(Cell::Text(name.as_bytes()), most);
            result.cells_cut += u64::from(cut);
            result.columns.push(match shown {
                Datum::Text(text) => text,
                _ => name,
            });
        }
        let bytes = result.columns.iter().map(|name| name.len() + 3).sum();
        Self { caps, result, row: Vec::new(), row_cells_cut: 0, bytes, full: false }
    }

    /// Adds a cell to the row under way.
    pub fn cell(&mut self, value: Cell<'_>) {
        let (datum, cut) = Datum::of(value, self.caps.max_cell_chars);
        self.row_cells_cut += u64::from(cut);
        self.row.push(datum);
    }

    /// Ends the row. One that does not fit is left out, but for the first, whose cells are cut to fit.
    pub fn end_row(&mut self) -> Flow {
        let mut row = std::mem::take(&mut self.row);
        let cells_cut = std::mem::take(&mut self.row_cells_cut);
        let width = |row: &[Datum]| row.iter().map(|datum| datum.width() + 3).sum::<usize>();
        let left = self.caps.max_result_bytes.saturating_sub(self.bytes);
        let mut needed = width(&row);
        if needed > left {
            self.result.bytes_cut = true;
            self.full = true;
            if !self.result.rows.is_empty() {
                return Flow::Full;
            }
            let share = share(left, row.len());
            for datum in &mut row {
                shorten(datum, share);
            }
            needed = width(&row);
        }
        self.bytes += needed;
        self.result.cells_cut += cells_cut;
        self.result.rows.push(row);
        if self.full { Flow::Full } else { Flow::Continue }
    }

    /// Rows so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        u64::try_from(self.result.rows.len()).unwrap_or(u64::MAX)
    }

    /// The rows; `more_rows` says that more exist than were asked for.
    #[must_use]
    pub fn finish(mut self, more_rows: bool) -> DatumRows {
        self.result.more_rows = more_rows;
        self.result
    }
}

/// The bytes that each of `columns` values may take of `bytes`.
fn share(bytes: usize, columns: usize) -> usize {
    (bytes / columns.max(1)).saturating_sub(24)
}

fn shorten(datum: &mut Datum, bytes: usize) {
    if let Datum::Text(text) = datum
        && text.len() > bytes
    {
        // A character takes up to four bytes.
        let (shorter, _) = Datum::of(Cell::Text(text.as_bytes()), bytes / 4);
        *datum = shorter;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPS: Caps = Caps { max_result_bytes: 400, max_cell_chars: 1000 };

    #[test]
    fn rows_beyond_the_byte_cap_are_left_out_and_said_so() {
        let mut sink = DatumSink::new(vec!["a".to_owned()], CAPS);
        let mut flow = Flow::Continue;
        while flow == Flow::Continue {
            sink.cell(Cell::Text(&[b'x'; 100]));
            flow = sink.end_row();
        }
        let result = sink.finish(false);
        assert_eq!((result.rows.len(), result.bytes_cut, result.cells_cut), (3, true, 0));
    }

    #[test]
    fn a_first_row_that_is_too_wide_is_cut_and_not_lost() {
        let mut sink = DatumSink::new(vec!["a".to_owned(), "b".to_owned()], CAPS);
        sink.cell(Cell::Text("ž".repeat(900).as_bytes()));
        sink.cell(Cell::Integer(7));
        assert_eq!(sink.end_row(), Flow::Full);
        let result = sink.finish(false);
        assert_eq!(result.rows.len(), 1);
        assert!(result.rows[0].iter().map(Datum::width).sum::<usize>() <= 400);
        assert_eq!(result.rows[0][1], Datum::Integer(7));
    }
}
