//! Asks the person at the terminal, for `indelible call` under `--confirm`.
//!
//! The question goes to the terminal itself and not to stdout or stderr, which may be files. Where stdin
//! is no terminal nobody is asked: a script cannot agree.

use crate::confirm::{Confirmer, PATIENCE, Question, Said};
use crate::platform;
use crate::state::vault::LONGEST_VALUE;
use futures::future::BoxFuture;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::path::Path;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

/// The terminal of this process.
#[cfg(unix)]
const TERMINAL: (&str, &str) = ("/dev/tty", "/dev/tty");
/// What is typed and what is shown (<https://learn.microsoft.com/windows/console/console-handles>).
#[cfg(not(unix))]
const TERMINAL: (&str, &str) = ("CONIN$", "CONOUT$");

/// The person at the terminal.
pub(super) struct Terminal {
    /// Cancelled by a signal.
    pub(super) stop: CancellationToken,
}

impl Confirmer for Terminal {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(async {
            if !std::io::stdin().is_terminal() {
                return Said::Unsupported("stdin is no terminal".to_owned());
            }
            let text = question.text.clone();
            // The thread may stay in its read; the runtime leaves such threads behind.
            let answer = tokio::task::spawn_blocking(move || ask_on(&text));
            tokio::select! {
                answer = answer => match answer {
                    Ok(Ok(said)) => said,
                    Ok(Err(error)) => Said::Unsupported(format!("the terminal cannot be used: {error}")),
                    Err(_) => Said::Unsupported("the terminal cannot be used".to_owned()),
                },
                () = self.stop.cancelled() => Said::Cancelled,
                () = tokio::time::sleep(PATIENCE) => Said::Expired,
            }
        })
    }
}

fn ask_on(text: &str) -> std::io::Result<Said> {
    let (input, output) = TERMINAL;
    let open = |path: &str, write: bool| OpenOptions::new().read(!write).write(write).open(Path::new(path));
    let mut shown = open(output, true)?;
    write!(shown, "{text}\n\nRun it? [y/N] ")?;
    shown.flush()?;
    let mut answer = String::new();
    if BufReader::new(open(input, false)?).read_line(&mut answer)? == 0 {
        return Ok(Said::Cancelled);
    }
    Ok(heard(&answer))
}

/// Asks for a secret, which is not shown while it is typed; without the line break at its end.
///
/// # Errors
/// There is no terminal, or it cannot be told to keep it to itself.
pub(super) fn secret(question: &str) -> std::io::Result<Zeroizing<String>> {
    let (input, output) = TERMINAL;
    let mut typed = OpenOptions::new().read(true).open(input)?;
    let mut shown = OpenOptions::new().write(true).open(output)?;
    write!(shown, "{question}")?;
    shown.flush()?;
    let mut line = Zeroizing::new(Vec::with_capacity(LONGEST_VALUE + 1));
    let terminal = typed.try_clone()?;
    platform::without_echo(&terminal, || {
        // Byte by byte, so that no buffer keeps a copy.
        let mut byte = [0];
        while line.len() <= LONGEST_VALUE && typed.read(&mut byte)? == 1 && byte != *b"\n" {
            line.extend(byte);
        }
        Ok(())
    })?;
    writeln!(shown)?;
    let text = std::str::from_utf8(&line).map_err(|_| std::io::ErrorKind::InvalidData)?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// Only a clear yes is one.
fn heard(answer: &str) -> Said {
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Said::Accepted,
        _ => Said::Declined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        for (answer, said) in [
            ("y\n", Said::Accepted),
            (" YES \r\n", Said::Accepted),
            ("\n", Said::Declined),
            ("n\n", Said::Declined),
            ("yn\n", Said::Declined),
            ("true\n", Said::Declined),
        ] {
            assert_eq!(heard(answer), said, "{answer:?}");
        }
    }
}
