//! How the demo looks: numbered steps, what the agent sends, what the server answers.
//!
//! It decides what fits on a line and nothing about what is said. Plain text; on a terminal, bold and dim.

use crate::error::StartError;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, ErrorKind, Write};

/// Columns a line may take. A longer word stands alone on its line, uncut.
const WIDTH: usize = 80;
/// Where what is sent and answered begins.
const INDENT: &str = "    ";

/// Why the demo ends before its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Halt {
    /// Nobody reads any more, as with `| head`: no error.
    Unread,
    /// Something failed.
    Failed(StartError),
}

impl From<StartError> for Halt {
    fn from(error: StartError) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Self {
        if error.kind() == ErrorKind::BrokenPipe {
            return Self::Unread;
        }
        Self::Failed(StartError::failure(format!("cannot write to stdout: {error}")))
    }
}

/// Where the demo is shown.
pub struct Page<W> {
    out: W,
    styled: bool,
    steps: usize,
    /// Whether anything stands on it.
    begun: bool,
}

impl<W: Write> Page<W> {
    /// A page without steps; `styled` for a terminal.
    pub fn new(out: W, styled: bool) -> Self {
        Self { out, styled, steps: 0, begun: false }
    }

    /// A headline.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn headline(&mut self, text: &str) -> Result<(), Halt> {
        let text = self.bold(text);
        self.write(&format!("\n{text}\n"))
    }

    /// A paragraph, set off from what stands before it.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn paragraph(&mut self, text: &str) -> Result<(), Halt> {
        let gap = if self.begun { "\n" } else { "" };
        self.write(&format!("{gap}{}\n", wrapped(text, "", "").join("\n")))
    }

    /// Begins a step and says what it is about.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn step(&mut self, narration: &str) -> Result<(), Halt> {
        self.steps += 1;
        let number = format!("{:>2}. ", self.steps);
        let lines = wrapped(narration, &number, INDENT).into_iter().map(|line| self.bold(&line));
        let lines: Vec<String> = lines.collect();
        self.write(&format!("\n{}\n", lines.join("\n")))
    }

    /// What the agent sends: a method or a tool, and its arguments.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn sent(&mut self, name: &str, arguments: Option<&Value>) -> Result<(), Halt> {
        let arguments = arguments.map(|arguments| format!(" {}", spaced_json(arguments))).unwrap_or_default();
        let lines = wrapped(&format!("{name}{arguments}"), &format!("{INDENT}-> "), &format!("{INDENT}   "));
        let lines: Vec<String> = lines.iter().map(|line| self.dim(line)).collect();
        self.write(&format!("{}\n", lines.join("\n")))
    }

    /// What somebody does who does not go through the server.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn done_behind(&mut self, statement: &str) -> Result<(), Halt> {
        let lines = wrapped(statement, &format!("{INDENT}!! "), &format!("{INDENT}   "));
        self.write(&format!("{}\n", lines.join("\n")))
    }

    /// What somebody sees who looks at the file itself.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn measured(&mut self, text: &str) -> Result<(), Halt> {
        self.write(&format!("{INDENT}== {text}\n"))
    }

    /// What the server answers, at most this many lines of it; JSON spaced out.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn answered(&mut self, text: &str, is_error: bool, most_lines: usize) -> Result<(), Halt> {
        let label = if is_error { "error: " } else { "" };
        let json = serde_json::from_str(text).ok().filter(Value::is_object);
        let text = &json.map_or_else(|| text.to_owned(), |value| spaced_json(&value));
        let mut lines: Vec<String> = Vec::new();
        for (nth, line) in text.trim_end().lines().take(most_lines).enumerate() {
            let (first, label) = if nth == 0 { ("<- ", label) } else { ("   ", "") };
            lines.extend(wrapped(
                &format!("{label}{line}"),
                &format!("{INDENT}{first}"),
                &format!("{INDENT}     "),
            ));
        }
        let more = text.trim_end().lines().count().saturating_sub(most_lines);
        if more > 0 {
            lines.push(format!("{INDENT}   [{more} more lines]"));
        }
        self.write(&format!("{}\n", lines.join("\n")))
    }

    /// Lines to be copied, as they are.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn commands<T: AsRef<str>>(&mut self, lines: &[T]) -> Result<(), Halt> {
        let lines: Vec<String> = lines.iter().map(|line| format!("{INDENT}{}\n", line.as_ref())).collect();
        self.write(&format!("\n{}", lines.concat()))
    }

    fn write(&mut self, text: &str) -> Result<(), Halt> {
        self.begun = true;
        self.out.write_all(text.as_bytes())?;
        Ok(self.out.flush()?)
    }

    fn bold(&self, text: &str) -> String {
        if self.styled { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn dim(&self, text: &str) -> String {
        if self.styled { format!("\u{1b}[2m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Broken at spaces; spaces inside a line are kept.
fn wrapped(text: &str, first: &str, others: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split(' ') {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::replace(&mut line, others.to_owned()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.push(line);
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// JSON on one line with a space behind colons and commas, as people write it.
fn spaced_json(value: &Value) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Spaced);
    match value.serialize(&mut serializer) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => value.to_string(),
    }
}

struct Spaced;

impl serde_json::ser::Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(styled: bool, show: impl FnOnce(&mut Page<&mut Vec<u8>>) -> Result<(), Halt>) -> String {
        let mut out = Vec::new();
        show(&mut Page::new(&mut out, styled)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn steps_are_numbered_and_calls_are_shown_as_sent() {
        let text = shown(false, |page| {
            page.step("Look.")?;
            page.sent("read_query", Some(&json!({"query": "SELECT ?", "params": [1, "a,b"]})))?;
            page.answered("a\n1\n2\n3\n# 3 rows\n", false, 3)?;
            page.step("Fail.")?;
            page.answered("no", true, 3)?;
            page.answered("{\"a\":[1,2]}", false, 3)
        });
        let expected = "\n 1. Look.\n    -> read_query {\"query\": \"SELECT ?\", \"params\": [1, \"a,b\"]}\n    <- a\n       1\n       2\n       [2 more lines]\n\n 2. Fail.\n    <- error: no\n    <- {\"a\": [1, 2]}\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn no_line_is_longer_than_the_page_unless_a_word_is() {
        let words = "seven letters ".repeat(30);
        let long = "x".repeat(100);
        let text = shown(false, |page| {
            page.paragraph(&words)?;
            page.step(&words)?;
            page.sent("tool", Some(&json!({ "a": words })))?;
            page.answered(&format!("path: {long} end"), false, 9)
        });
        for line in text.lines().filter(|line| !line.contains("xxx")) {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        assert!(text.contains(&format!("\n         {long}\n")), "{text}");
    }

    #[test]
    fn only_a_styled_page_has_escapes() {
        for styled in [false, true] {
            let text = shown(styled, |page| {
                page.headline("A")?;
                page.step("B")?;
                page.sent("C", None)
            });
            assert_eq!(text.contains('\u{1b}'), styled, "{text:?}");
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_told_from_a_full_disk() {
        assert_eq!(Halt::from(io::Error::from(ErrorKind::BrokenPipe)), Halt::Unread);
        assert!(matches!(Halt::from(io::Error::from(ErrorKind::StorageFull)), Halt::Failed(_)));
    }
}
