//! One value as one CSV field: how each storage class is written, quoted and cut.
//!
//! It knows nothing of rows, byte budgets of whole results or trailers; `csv` does.

use super::Cell;
use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// The head of a text that is shown, decoded, and what is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown<'a> {
    /// At most the characters asked for; invalid UTF-8 became U+FFFD.
    pub text: Cow<'a, str>,
    /// Bytes of the source that `text` stands for.
    pub bytes: usize,
    /// Characters behind `text` that are left out; 0 when the whole text is there.
    pub left_out: usize,
}

/// Writes one value as a CSV field and says whether it was cut to `max_chars` characters.
///
/// NULL is nothing at all, the empty text `""`. Reals are the shortest digits that read back as the same
/// number, always with a point or an exponent; infinities are `Inf` and `-Inf`. `first` says that the field
/// opens its row: then a leading `#` is quoted as well, so that no row can pass for a trailer.
pub fn write_cell(out: &mut String, cell: Cell<'_>, max_chars: usize, first: bool) -> bool {
    matches!(write_cell_within(out, cell, max_chars, first, usize::MAX), Some(1..))
}

/// Writes plain text as a CSV field: quoted where RFC 4180 asks for it, the empty text as nothing.
///
/// For the server's own listings, where there is no NULL to tell from `''`. `first` as in [`write_cell`].
pub fn write_field(out: &mut String, text: &str, first: bool) {
    if !text.is_empty() {
        write_cell(out, Cell::Text(text.as_bytes()), usize::MAX, first);
    }
}

/// [`write_cell`] under a limit for the length of `out`, in bytes.
///
/// Gives the number of characters cut off, or `None` when the field does not fit: then `out` may hold it
/// or a part of it (a text longer than `limit` is never copied), and the caller truncates.
pub(super) fn write_cell_within(
    out: &mut String,
    cell: Cell<'_>,
    max_chars: usize,
    first: bool,
    limit: usize,
) -> Option<usize> {
    let mut left_out = 0;
    match cell {
        Cell::Null => {}
        Cell::Integer(value) => write_formatted(out, format_args!("{value}")),
        Cell::Real(value) => write_real(out, value),
        Cell::Blob(bytes) => write_formatted(out, format_args!("<blob {bytes} bytes>")),
        Cell::Bytes(bytes) => write_formatted(out, format_args!("<blob {} bytes>", bytes.len())),
        Cell::Text(bytes) => {
            let shown = shown(bytes, max_chars);
            left_out = shown.left_out;
            // Looked at before anything is copied: a cell may be far larger than the result.
            if out.len().saturating_add(shown.text.len()) > limit {
                return None;
            }
            write_text(out, &shown.text, left_out, first);
        }
    }
    (out.len() <= limit).then_some(left_out)
}

/// Writes as much of a text cell as keeps `out` within `limit` bytes, closing quote included.
///
/// Anything but text is left out whole: half a number would be another number.
pub(super) fn write_cell_head(
    out: &mut String,
    cell: Cell<'_>,
    max_chars: usize,
    first: bool,
    limit: usize,
) -> bool {
    let Cell::Text(bytes) = cell else { return false };
    let room = limit.saturating_sub(out.len());
    // A character takes a byte or more, so no more than `room` of them can fit.
    let head = head(bytes, max_chars.min(room)).text;
    let quoted = needs_quotes(&head, first);
    let mut left = if quoted { room.saturating_sub(2) } else { room };
    let mut end = 0;
    for (at, character) in head.char_indices() {
        let size = if character == '"' { 2 } else { character.len_utf8() };
        if size > left {
            break;
        }
        left -= size;
        end = at + character.len_utf8();
    }
    if end == 0 {
        return false;
    }
    write_quoted(out, head.get(..end).unwrap_or_default(), "", quoted);
    true
}

/// The first `max_chars` characters of a text that may be invalid UTF-8, and how many follow.
///
/// The head is decoded once, the rest only counted, once and without a copy.
#[must_use]
pub fn shown(bytes: &[u8], max_chars: usize) -> Shown<'_> {
    let mut head = head(bytes, max_chars);
    head.left_out = count_chars(bytes.get(head.bytes..).unwrap_or_default());
    head
}

/// How many characters a text has when each invalid sequence counts as one (U+FFFD).
#[must_use]
pub fn count_chars(mut bytes: &[u8]) -> usize {
    /// Small enough that counting finds in the cache what validating has just read.
    const BLOCK: usize = 16 * 1024;
    let mut count = 0;
    while !bytes.is_empty() {
        let (block, rest) = bytes.split_at_checked(BLOCK).unwrap_or((bytes, &[]));
        match std::str::from_utf8(block) {
            Ok(text) => {
                count += text.chars().count();
                bytes = rest;
            }
            Err(error) => {
                let valid = error.valid_up_to();
                count += block.get(..valid).map_or(0, count_starts);
                let skipped = match error.error_len() {
                    Some(length) => length,
                    // A sequence cut by the block's end is looked at again with the bytes that follow.
                    None if !rest.is_empty() => {
                        bytes = bytes.get(valid..).unwrap_or_default();
                        continue;
                    }
                    None => block.len() - valid,
                };
                count += 1;
                bytes = bytes.get(valid + skipped..).unwrap_or_default();
            }
        }
    }
    count
}

/// [`shown`] without the count of what follows.
pub(crate) fn head(bytes: &[u8], max_chars: usize) -> Shown<'_> {
    // A character, or what U+FFFD stands for, takes one byte to four.
    let window = bytes.get(..max_chars.saturating_mul(4).min(bytes.len())).unwrap_or(bytes);
    match std::str::from_utf8(window) {
        Ok(text) => return valid_head(text, max_chars),
        Err(error) => {
            let valid = window.get(..error.valid_up_to()).unwrap_or_default();
            let text = std::str::from_utf8(valid).unwrap_or_default();
            let head = valid_head(text, max_chars);
            if head.text.chars().count() == max_chars {
                return head;
            }
        }
    }
    let mut text = String::with_capacity(window.len());
    let mut used = 0;
    let mut room = max_chars;
    for chunk in window.utf8_chunks() {
        let valid = valid_head(chunk.valid(), room);
        text.push_str(&valid.text);
        used += valid.bytes;
        room -= valid.text.chars().count();
        if room == 0 || valid.bytes < chunk.valid().len() {
            break;
        }
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            used += chunk.invalid().len();
            room -= 1;
        }
    }
    Shown { text: Cow::Owned(text), bytes: used, left_out: 0 }
}

fn valid_head(text: &str, max_chars: usize) -> Shown<'_> {
    // No text has more characters than bytes.
    let end = if text.len() <= max_chars {
        text.len()
    } else {
        text.char_indices().nth(max_chars).map_or(text.len(), |(at, _)| at)
    };
    Shown { text: Cow::Borrowed(text.get(..end).unwrap_or(text)), bytes: end, left_out: 0 }
}

/// Characters of valid UTF-8: the bytes that do not continue one.
fn count_starts(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| (**byte & 0b1100_0000) != 0b1000_0000).count()
}

fn write_real(out: &mut String, value: f64) {
    if value.is_infinite() {
        out.push_str(if value > 0.0 { "Inf" } else { "-Inf" });
    } else {
        // `{:?}` is the shortest text that reads back as the same number, and keeps `.0` on whole ones.
        write_formatted(out, format_args!("{value:?}"));
    }
}

/// Formats in place.
pub(super) fn write_formatted(out: &mut String, arguments: fmt::Arguments<'_>) {
    // The result is dropped because writing into a String cannot fail.
    let _ = out.write_fmt(arguments);
}

fn write_text(out: &mut String, text: &str, left_out: usize, first: bool) {
    let quoted = needs_quotes(text, first);
    if left_out > 0 {
        write_quoted(out, text, &format!("...[+{left_out} chars]"), quoted);
    } else {
        write_quoted(out, text, "", quoted || text.is_empty());
    }
}

fn write_quoted(out: &mut String, text: &str, marker: &str, quoted: bool) {
    if !quoted {
        out.push_str(text);
        out.push_str(marker);
        return;
    }
    out.push('"');
    let mut parts = text.split('"');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        out.push_str("\"\"");
        out.push_str(part);
    }
    out.push_str(marker);
    out.push('"');
}

fn needs_quotes(text: &str, first: bool) -> bool {
    // No early exit: this way the compiler looks at many bytes at once.
    let special = |found: bool, byte: &u8| found | matches!(*byte, b',' | b'"' | b'\n' | b'\r');
    text.as_bytes().iter().fold(false, special) || (first && text.starts_with('#'))
}
