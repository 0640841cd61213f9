//! The surroundings of a match on one line.
//!
//! Only the bytes near the match are looked at, whatever the size of the value. It does not search.

use crate::render::cell::head;
use crate::render::trailer::is_control_or_break;
use std::ops::Range;

/// Characters of the match itself that are shown before it is cut.
const MATCH_CHARS: usize = 400;

/// The match at `found` with up to `context_chars` characters before and behind it.
///
/// Invalid UTF-8 shows as U+FFFD, a line break (CRLF as one) as `⏎`, any other control character as a space.
pub(super) fn snippet_around(value: &[u8], found: Range<usize>, context_chars: usize) -> String {
    let before = value.get(..found.start).unwrap_or_default();
    let matched = value.get(found.clone()).unwrap_or_default();
    let behind = value.get(found.end..).unwrap_or_default();

    let (lead, lead_cut) = tail(before, context_chars);
    let shown = head(matched, MATCH_CHARS);
    let whole = shown.bytes == matched.len();
    let trail = head(behind, if whole { context_chars } else { 0 });

    let mut text = String::with_capacity(lead.len() + shown.bytes + trail.bytes + 16);
    if lead_cut {
        text.push_str("...");
    }
    let mut after_return = false;
    for character in lead.chars().chain(shown.text.chars()).chain(trail.text.chars()) {
        match character {
            '\n' if after_return => {}
            '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => text.push('⏎'),
            _ if is_control_or_break(character) => text.push(' '),
            _ => text.push(character),
        }
        after_return = character == '\r';
    }
    if !whole || trail.bytes < behind.len() {
        text.push_str("...");
    }
    text
}

/// The last `max_chars` characters, and whether others stand before them.
fn tail(bytes: &[u8], max_chars: usize) -> (String, bool) {
    if max_chars == 0 {
        return (String::new(), !bytes.is_empty());
    }
    let start = bytes.len() - max_chars.saturating_mul(4).min(bytes.len());
    // A character cut by the window's start decodes as garbage, but lies before the last `max_chars`.
    let window = String::from_utf8_lossy(bytes.get(start..).unwrap_or_default());
    let skipped = window.char_indices().rev().nth(max_chars - 1).map_or(0, |(at, _)| at);
    (window.get(skipped..).unwrap_or_default().to_owned(), start + skipped > 0)
}
