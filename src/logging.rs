//! What the program says on stderr: one event a line, nothing that could pass for another line.
//!
//! Stdout is never touched: it carries the protocol. What events may say is decided where they are made.

use crate::server::NothingOfGoneClients;
use std::io::{self, Write};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

/// The target of the few lines that are shown whatever the verbosity: what is served, and how it ended.
pub const START: &str = "indelible::start";

/// Starts logging to stderr. Verbosity 0 shows warnings and the start, 1 what happens, 2 details.
///
/// A panic becomes a line as well. Called twice, the second call changes nothing.
pub fn start(verbosity: u8) {
    let lines = tracing_subscriber::fmt::layer().with_writer(EscapedStderr);
    let subscriber =
        tracing_subscriber::registry().with(lines).with(filter(verbosity)).with(NothingOfGoneClients);
    if tracing::subscriber::set_global_default(subscriber).is_ok() {
        std::panic::set_hook(Box::new(|panic| tracing::error!("a bug, please report it: {panic}")));
    }
}

/// Prints one line for a person to stderr: what keeps the program from its work.
pub fn complain(message: &str) {
    // Nobody is left to tell when stderr is gone.
    let _ = io::stderr().write_all(escaped(format!("indelible: {message}").as_bytes()).as_bytes());
}

/// rmcp logs whole requests and answers as it goes, so it stays at errors at every verbosity.
fn filter(verbosity: u8) -> EnvFilter {
    EnvFilter::new(match verbosity {
        0 => "warn,rmcp=error,indelible::start=info",
        1 => "warn,rmcp=error,indelible=info",
        _ => "warn,rmcp=error,indelible=debug",
    })
}

/// Stderr with control characters escaped.
struct EscapedStderr;

impl<'a> MakeWriter<'a> for EscapedStderr {
    type Writer = Escaping<io::Stderr>;

    fn make_writer(&'a self) -> Self::Writer {
        Escaping(io::stderr())
    }
}

/// Escapes every control character but the newline that ends an event. Each write is one whole event.
struct Escaping<W>(W);

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        // A closed stderr must not become an error: it would be reported on stderr, and panic there.
        let _ = self.0.write_all(escaped(event).as_bytes());
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.0.flush();
        Ok(())
    }
}

fn escaped(event: &[u8]) -> String {
    let event = String::from_utf8_lossy(event);
    let mut line = String::with_capacity(event.len() + 1);
    for character in event.trim_end_matches('\n').chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_without_control_characters() {
        let rows = [
            ("plain žluť\n", "plain žluť\n"),
            ("two\nlines\n", "two\\nlines\n"),
            ("\u{1b}[31mred\u{7}\r\n", "\\u{1b}[31mred\\u{7}\\r\n"),
            ("c1 \u{9b}2J\u{0}", "c1 \\u{9b}2J\\u{0}\n"),
        ];
        for (event, expected) in rows {
            assert_eq!(escaped(event.as_bytes()), expected, "{event:?}");
        }
    }
}
