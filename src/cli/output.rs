//! Text on stdout, for the commands that people call.
//!
//! Never used while serving: then stdout carries the protocol.

use crate::error::StartError;
use crate::state::clock;
use std::io::{ErrorKind, Write};

/// Writes the text with a newline behind it, if it has none. A reader that has gone is no error.
pub(super) fn print(text: &str) -> Result<(), StartError> {
    let mut stdout = std::io::stdout().lock();
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    match write!(stdout, "{text}{newline}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(StartError::failure(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// A moment for people and programs, to the second in UTC.
pub(super) fn moment(milliseconds: i64) -> String {
    clock::shown(milliseconds - milliseconds.rem_euclid(1000)).replace(".000Z", "Z")
}

/// Columns as wide as their widest cell, two spaces between them.
pub(super) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; N]| {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
