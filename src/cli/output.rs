//! Text on stdout, for the commands that people call.
//!
//! Never used while serving: then stdout carries the protocol.

use crate::error::StartError;
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
