//! Bytes to lines: cut at newlines, bounded in length, safe to cancel at every await.
//!
//! It does not look into a line; `message` does.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// The longest line that is read, in bytes without its newline. Longer ones are skipped and refused.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// Bytes read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// A line buffer above this size is given back once its line is done with.
const KEPT_BYTES: usize = 1024 * 1024;

/// What the stream held next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line, without its newline; the last one of a stream may never have had one.
    Whole(Vec<u8>),
    /// A line longer than the limit. Reported when the limit is passed; the rest of it is skipped.
    TooLong,
    /// The next line is longer than the caller takes now. What was read of it is kept.
    Held,
    /// The stream is over.
    End,
}

/// Reads lines.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    // Kept here and not in `next`, because the future of `next` may be dropped halfway.
    line: Vec<u8>,
    skipping: bool,
    limit: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        let reader = BufReader::with_capacity(CHUNK_BYTES, reader);
        Self { reader, line: Vec::new(), skipping: false, limit }
    }

    /// The next line, if it has no more than about `most` bytes. A stream that fails is over: nobody is left
    /// to tell.
    pub(super) async fn next(&mut self, most: usize) -> Line {
        loop {
            let chunk = match self.reader.fill_buf().await {
                Ok(chunk) => chunk,
                Err(error) => {
                    tracing::warn!(%error, "the input cannot be read any more");
                    return Line::End;
                }
            };
            if chunk.is_empty() {
                self.skipping = false;
                return if self.line.is_empty() { Line::End } else { self.take() };
            }
            // From here to the end of the loop nothing awaits, so what is consumed is never lost.
            let newline = chunk.iter().position(|byte| *byte == b'\n');
            let part = chunk.get(..newline.unwrap_or(chunk.len())).unwrap_or_default();
            let consumed = part.len() + usize::from(newline.is_some());
            if newline.is_none() && !self.skipping && self.line.len() + part.len() > most {
                return Line::Held;
            }
            let too_long = !self.skipping && self.line.len() + part.len() > self.limit;
            if too_long {
                self.line = Vec::new();
                self.skipping = true;
            } else if !self.skipping {
                self.line.extend_from_slice(part);
            }
            self.reader.consume(consumed);
            if newline.is_some() {
                if self.skipping {
                    self.skipping = false;
                } else {
                    return self.take();
                }
            }
            if too_long {
                return Line::TooLong;
            }
        }
    }

    fn take(&mut self) -> Line {
        let next = Vec::with_capacity(self.line.len().clamp(256, KEPT_BYTES));
        Line::Whole(std::mem::replace(&mut self.line, next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(input: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = Lines::new(input, limit);
        let mut found = Vec::new();
        loop {
            let line = lines.next(usize::MAX).await;
            if line == Line::End {
                return found;
            }
            found.push(line);
        }
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn lines_are_cut_at_newlines_and_refused_above_the_limit() {
        let rows: &[(&str, &[Line])] = &[
            ("", &[]),
            ("a\nb\n", &[whole("a"), whole("b")]),
            ("a\nb", &[whole("a"), whole("b")]),
            ("\n\na\n", &[whole(""), whole(""), whole("a")]),
            ("12345\n", &[whole("12345")]),
            ("123456\nb\n", &[Line::TooLong, whole("b")]),
            ("123456", &[Line::TooLong]),
            ("123456789\n\nb", &[Line::TooLong, whole(""), whole("b")]),
        ];
        for (input, expected) in rows {
            assert_eq!(&all(input.as_bytes(), 5).await, expected, "{input:?}");
        }
    }

    #[tokio::test]
    async fn a_long_line_is_held_without_a_loss() {
        let long = vec![b'x'; 3 * CHUNK_BYTES + 1];
        let mut input = b"a\n".to_vec();
        input.extend_from_slice(&long);
        input.push(b'\n');
        let mut lines = Lines::new(input.as_slice(), MAX_LINE_BYTES);
        assert_eq!(lines.next(CHUNK_BYTES).await, whole("a"));
        assert_eq!(lines.next(CHUNK_BYTES).await, Line::Held);
        assert_eq!(lines.next(CHUNK_BYTES).await, Line::Held);
        assert_eq!(lines.next(2 * CHUNK_BYTES).await, Line::Held);
        assert_eq!(lines.next(usize::MAX).await, Line::Whole(long));
        assert_eq!(lines.next(CHUNK_BYTES).await, Line::End);
    }

    #[tokio::test]
    async fn a_line_longer_than_a_chunk_arrives_whole() {
        let long = vec![b'x'; 3 * CHUNK_BYTES + 1];
        let mut input = long.clone();
        input.extend_from_slice(b"\nb\n");
        assert_eq!(all(&input, MAX_LINE_BYTES).await, [Line::Whole(long.clone()), whole("b")]);
        assert_eq!(all(&input, 2 * CHUNK_BYTES).await, [Line::TooLong, whole("b")]);
    }
}
