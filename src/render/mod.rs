//! Turns values into the text an agent reads: CSV, cut cells, trailers.
//!
//! Pure: no I/O, no SQLite. It does not decide how many rows are read; it says when a result is full.

pub mod cell;
pub mod csv;
pub mod datum;
pub mod markdown;
pub mod trailer;

pub use cell::{write_cell, write_field};
pub use csv::{CsvSink, Flow, Rendered};
pub use datum::{Datum, DatumRows, DatumSink};
pub(crate) use trailer::boundary_before;
pub use trailer::{RowCut, cap_block, cap_text, cut_text, one_line};

use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// How much of a result is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caps {
    /// Bytes of result text, header included and trailer not; hard to within 500 bytes of trailer.
    pub max_result_bytes: usize,
    /// Characters (Unicode scalar values) of one cell before it is cut as `...[+N chars]`.
    pub max_cell_chars: usize,
}

/// One SQL value by its storage class, borrowed from where it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// NULL.
    Null,
    /// INTEGER.
    Integer(i64),
    /// REAL.
    Real(f64),
    /// TEXT; the bytes may be invalid UTF-8 and may hold NUL.
    Text(&'a [u8]),
    /// BLOB; shown by its length alone.
    Blob(usize),
    /// BLOB, where its bytes are wanted.
    Bytes(&'a [u8]),
}

/// Bytes as lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
