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
    /// BLOB, where its bytes are wanted.
    Blob {
        /// The bytes, possibly cut.
        bytes: Vec<u8>,
        /// Bytes behind them that are left out.
        left_out: usize,
    },
}

/// Bytes of a blob in a result beside its base64 text: `{"base64":"","left_out":}` and a number.
const AROUND_BLOB: usize = 46;

impl Datum {
    /// The value of a cell, its text cut to `max_chars` characters as `...[+N chars]`, a blob as
    /// `<blob N bytes>` or cut to what has so many characters as base64; and whether it was cut.
    #[must_use]
    pub fn of(value: Cell<'_>, max_chars: usize) -> (Self, bool) {
        let (datum, left_out) = Self::counted(value, max_chars);
        (datum, left_out > 0)
    }

    /// The same with the number of characters, or bytes of a blob, left out.
    fn counted(value: Cell<'_>, max_chars: usize) -> (Self, usize) {
        match value {
            Cell::Null => (Self::Null, 0),
            Cell::Integer(number) => (Self::Integer(number), 0),
            Cell::Real(number) => (Self::Real(number), 0),
            Cell::Blob(bytes) => (Self::Text(format!("<blob {bytes} bytes>")), 0),
            Cell::Bytes(bytes) => {
                let kept = bytes.get(..max_chars / 4 * 3).unwrap_or(bytes);
                let left_out = bytes.len() - kept.len();
                (Self::Blob { bytes: kept.to_vec(), left_out }, left_out)
            }
            Cell::Text(text) => {
                let shown = cell::shown(text, max_chars);
                let mut text = shown.text.into_owned();
                text.push_str(&mark(shown.left_out));
                (Self::Text(text), shown.left_out)
            }
        }
    }

    /// How many bytes it takes in a result at most, as JSON and as Markdown.
    #[must_use]
    pub fn width(&self) -> usize {
        match self {
            Self::Null => 4,
            // A sign, and quotes where it is shown as a string.
            Self::Integer(number) => 4 + number.unsigned_abs().checked_ilog10().unwrap_or(0) as usize,
            Self::Real(_) => 24,
            Self::Text(text) => text_width(text),
            Self::Blob { bytes, .. } => bytes.len().div_ceil(3) * 4 + AROUND_BLOB,
        }
    }
}

/// How many bytes a text takes in a result at most, as JSON and as Markdown.
#[must_use]
pub fn text_width(text: &str) -> usize {
    text.chars().map(char_width).sum::<usize>() + 2
}

/// What stands behind a text of which characters were left out.
fn mark(left_out: usize) -> String {
    if left_out == 0 { String::new() } else { format!("...[+{left_out} chars]") }
}

/// Bytes of a character, escaped as JSON or as Markdown needs it, whichever is longer.
fn char_width(c: char) -> usize {
    match c {
        '|' | '`' | '\\' | '"' | '\t' => 2,
        '\n' | '\r' => 3,
        '\0'..='\u{1f}' => 6,
        c if c.is_control() => 3,
        c => c.len_utf8(),
    }
}

/// Rows as data, with what is missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatumRows {
    /// Column names; a name may repeat.
    pub columns: Vec<String>,
    /// Columns behind them that the cap on bytes left no room for.
    pub columns_left_out: usize,
    /// Rows beside them.
    pub rows: Vec<Vec<Datum>>,
    /// More rows exist than were asked for.
    pub more_rows: bool,
    /// The cap on bytes left something out.
    pub bytes_cut: bool,
    /// Cells that were cut.
    pub cells_cut: u64,
}

/// Bytes between two cells: `, ` and quotes, or ` | `.
const BETWEEN: usize = 3;

/// Collects rows as data under the caps.
#[derive(Debug)]
pub struct DatumSink {
    caps: Caps,
    result: DatumRows,
    /// Each with the number of characters left out of it.
    row: Vec<(Datum, usize)>,
    bytes: usize,
    full: bool,
}

impl DatumSink {
    /// A sink for these columns. Names count towards the bytes and are cut as cells are; those that do not fit
    /// into half the bytes are left out, with what stands below them.
    #[must_use]
    pub fn new(columns: Vec<String>, caps: Caps) -> Self {
        let room = caps.max_result_bytes / 2;
        let mut result = DatumRows::default();
        let mut bytes = 0;
        for name in &columns {
            let mut shown = Datum::counted(Cell::Text(name.as_bytes()), caps.max_cell_chars);
            if result.columns.is_empty() {
                shorten(&mut shown, share(room, 1));
            }
            // Below each name stands a rule.
            let needed = shown.0.width() + BETWEEN + 6;
            if bytes + needed > room && !result.columns.is_empty() {
                break;
            }
            bytes += needed;
            result.cells_cut += u64::from(shown.1 > 0);
            result.columns.push(match shown.0 {
                Datum::Text(text) => text,
                _ => String::new(),
            });
        }
        result.columns_left_out = columns.len() - result.columns.len();
        result.bytes_cut = result.columns_left_out > 0;
        Self { caps, result, row: Vec::new(), bytes, full: false }
    }

    /// Adds a cell to the row under way.
    pub fn cell(&mut self, value: Cell<'_>) {
        if self.row.len() < self.result.columns.len() {
            self.row.push(Datum::counted(value, self.caps.max_cell_chars));
        }
    }

    /// Ends the row. One that does not fit is left out, but for the first, whose cells are cut to fit; where
    /// even that is not enough, the last columns are left out.
    pub fn end_row(&mut self) -> Flow {
        let mut row = std::mem::take(&mut self.row);
        let width = |row: &[(Datum, usize)]| {
            row.iter().map(|(datum, _)| datum.width() + BETWEEN).sum::<usize>() + BETWEEN
        };
        let left = self.caps.max_result_bytes.saturating_sub(self.bytes);
        let mut needed = width(&row);
        if needed > left {
            self.result.bytes_cut = true;
            self.full = true;
            if !self.result.rows.is_empty() {
                return Flow::Full;
            }
            let share = share(left, row.len());
            for cell in &mut row {
                shorten(cell, share);
            }
            needed = width(&row);
            while needed > left && row.len() > 1 {
                row.pop();
                self.result.columns.pop();
                self.result.columns_left_out += 1;
                needed = width(&row);
            }
        }
        self.bytes += needed;
        self.result.cells_cut += row.iter().map(|(_, left_out)| u64::from(*left_out > 0)).sum::<u64>();
        self.result.rows.push(row.into_iter().map(|(datum, _)| datum).collect());
        if self.full { Flow::Full } else { Flow::Continue }
    }

    /// Bytes that names and rows so far take at most.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
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

/// Leaves of a text what takes at most `bytes`, the mark aside; of a blob likewise.
fn shorten(cell: &mut (Datum, usize), bytes: usize) {
    if cell.0.width() <= bytes {
        return;
    }
    if let (Datum::Blob { bytes: kept, left_out }, cut) = cell {
        let whole = kept.len() + *left_out;
        kept.truncate(bytes.saturating_sub(AROUND_BLOB) / 4 * 3);
        *left_out = whole - kept.len();
        *cut = *left_out;
        return;
    }
    let (Datum::Text(text), left_out) = cell else { return };
    text.truncate(text.len().saturating_sub(mark(*left_out).len()));
    let mut width = 2;
    let fits = |c: &char| {
        width += char_width(*c);
        width <= bytes
    };
    let kept: String = text.chars().take_while(fits).collect();
    *left_out += text.chars().count() - kept.chars().count();
    *text = kept + &mark(*left_out);
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

    #[test]
    fn a_cell_that_is_cut_twice_says_how_much_is_missing_in_all() {
        let mut sink =
            DatumSink::new(vec!["a".to_owned()], Caps { max_result_bytes: 100, max_cell_chars: 90 });
        sink.cell(Cell::Text(&[b'x'; 1000]));
        sink.end_row();
        let Datum::Text(text) = &sink.finish(false).rows[0][0] else { panic!() };
        let kept = text.bytes().take_while(|byte| *byte == b'x').count();
        assert_eq!(*text, format!("{}...[+{} chars]", "x".repeat(kept), 1000 - kept));
        assert!((30..90).contains(&kept), "{text}");
    }

    #[test]
    fn a_blob_is_cut_where_its_base64_would_be_too_long() {
        for (bytes, max_chars, kept) in [(9, 12, 9), (10, 12, 9), (0, 12, 0), (300, 1000, 300)] {
            let blob = vec![7; bytes];
            let (datum, cut) = Datum::of(Cell::Bytes(&blob), max_chars);
            let left_out = bytes - kept;
            assert_eq!((&datum, cut), (&Datum::Blob { bytes: vec![7; kept], left_out }, left_out > 0));
            assert!(crate::results::json_value(datum.clone()).to_string().len() <= datum.width());
        }
        let mut sink = DatumSink::new(vec!["a".to_owned()], CAPS);
        sink.cell(Cell::Bytes(&[7; 900]));
        assert_eq!(sink.end_row(), Flow::Full);
        let result = sink.finish(false);
        let Datum::Blob { bytes, left_out } = &result.rows[0][0] else { panic!() };
        assert_eq!((bytes.len() + left_out, result.cells_cut), (900, 1));
        assert!((150..300).contains(&bytes.len()), "{}", bytes.len());
    }

    #[test]
    fn escapes_count() {
        use crate::{render::markdown, results::json_value};
        for text in ["|`\\\"", "\n\r\t", "\u{1}\u{7f}\u{85}", "\u{2028}žx"] {
            let (datum, _) = Datum::of(Cell::Text(text.as_bytes()), 100);
            let json = json_value(datum.clone());
            let shown = markdown::cell(&json).len().max(json.to_string().len());
            assert!(shown <= datum.width(), "{text:?}: {shown} > {}", datum.width());
        }
        for number in [0, 9, -10, i64::MAX, i64::MIN] {
            let width = Datum::Integer(number).width();
            assert!(json_value(Datum::Integer(number)).to_string().len() <= width, "{number}");
        }
    }
}
