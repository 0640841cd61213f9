//! `NAME=@-` and `NAME=@-.FIELD` in `indelible call`: an argument's value from stdin.
//!
//! Other programs hand over what they have on stdin, as text or as a JSON object: a hook of Claude Code, say.
//! It reads stdin once and only when an argument asks for it.

use crate::error::StartError;
use crate::server::MAX_LINE_BYTES;
use serde_json::Value;
use std::io::Read;

/// What stands on stdin, once it has been read.
pub(super) struct Stdin<R> {
    input: Option<R>,
    text: String,
}

impl<R: Read> Stdin<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input: Some(input), text: String::new() }
    }

    /// The value that a word stands for: itself; all of stdin for `@-`, less a newline at its end; for
    /// `@-.a.b` the field `b` of the field `a` of the JSON object on stdin, a text as it is and anything else
    /// as JSON.
    ///
    /// # Errors
    /// Stdin cannot be read, or has no such field; exit status 2.
    pub(super) fn value(&mut self, name: &str, word: &str) -> Result<String, StartError> {
        let Some(rest) = word.strip_prefix("@-") else { return Ok(word.to_owned()) };
        let wrong = |why: String| StartError::usage(format!("argument `{name}={word}`: {why}"));
        match rest.strip_prefix('.') {
            None if rest.is_empty() => {
                let text = self.text().map_err(wrong)?;
                let line = text.strip_suffix('\n').unwrap_or(text);
                Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
            }
            // A text that only looks like it, `@-me`, is a text.
            None => Ok(word.to_owned()),
            Some(path) => {
                let text = self.text().map_err(wrong)?;
                let json: Value = serde_json::from_str(text)
                    .map_err(|error| wrong(format!("stdin is not one JSON value: {error}")))?;
                field(&json, path).map_err(wrong)
            }
        }
    }

    fn text(&mut self) -> Result<&str, String> {
        if let Some(input) = self.input.take() {
            let most = MAX_LINE_BYTES as u64;
            let read = input.take(most + 1).read_to_string(&mut self.text);
            read.map_err(|error| format!("stdin cannot be read as text: {error}"))?;
            if self.text.len() > MAX_LINE_BYTES {
                return Err(format!("stdin has more than {MAX_LINE_BYTES} bytes"));
            }
        }
        Ok(&self.text)
    }
}

fn field(json: &Value, path: &str) -> Result<String, String> {
    let mut value = json;
    for name in path.split('.') {
        value = value.get(name).ok_or_else(|| {
            let there: Vec<&str> =
                value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
            let there = if there.is_empty() { "no fields".to_owned() } else { there.join(", ") };
            format!("the JSON on stdin has no field `{name}` there; it has {there}")
        })?;
    }
    Ok(match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_itself_or_stdin_or_a_field_of_it() {
        let json = r#"{"prompt": "two\nlines", "tool_input": {"n": 3, "list": [1, "x"]}, "none": null}"#;
        // stdin, word, value
        let rows = [
            ("ignored", "plain", "plain"),
            ("ignored", "a@-", "a@-"),
            ("ignored", "@-me", "@-me"),
            ("all of it\n\n", "@-", "all of it\n"),
            ("all of it\r\n", "@-", "all of it"),
            ("", "@-", ""),
            (json, "@-.prompt", "two\nlines"),
            (json, "@-.tool_input.n", "3"),
            (json, "@-.tool_input.list", "[1,\"x\"]"),
            (json, "@-.none", "null"),
        ];
        for (input, word, expected) in rows {
            assert_eq!(Stdin::new(input.as_bytes()).value("x", word), Ok(expected.to_owned()), "{word}");
        }
    }

    #[test]
    fn a_missing_field_is_named_with_what_is_there() {
        let rows: &[(&[u8], &str, &str)] = &[
            (b"{\"a\": 1, \"b\": 2}", "@-.c", "the JSON on stdin has no field `c` there; it has a, b"),
            (b"{\"a\": 1}", "@-.a.b", "the JSON on stdin has no field `b` there; it has no fields"),
            (b"", "@-.a", "stdin is not one JSON value: EOF while parsing a value at line 1 column 0"),
            (b"\xff", "@-", "stdin cannot be read as text: stream did not contain valid UTF-8"),
        ];
        for (input, word, expected) in rows {
            let error = Stdin::new(*input).value("x", word).unwrap_err();
            assert_eq!((error.message, error.exit), (format!("argument `x={word}`: {expected}"), 2));
        }
    }

    #[test]
    fn stdin_is_read_once_for_all_arguments() {
        let mut stdin = Stdin::new(&b"{\"a\": \"1\", \"b\": \"2\"}"[..]);
        assert_eq!(stdin.value("x", "@-.a"), Ok("1".to_owned()));
        assert_eq!(stdin.value("y", "@-.b"), Ok("2".to_owned()));
    }
}
