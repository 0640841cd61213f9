//! The hashes of events and checkpoints: SHA-256 over a compact JSON array of the stored texts.
//!
//! The array is what Python's `json.dumps(.., separators=(",", ":"), ensure_ascii=False)` writes, so that
//! anyone can check a chain with a few lines of a common language. The writer here is by hand because the
//! bytes are a promise, and because it feeds the hasher without building the array. It verifies nothing;
//! `verify` does.

use super::EventRow;
use sha2::{Digest, Sha256};
use std::fmt::{self, Write};

/// The hash before the first: 64 zeros.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The hash of an event, lower-case hex: over `[id, ts, session, kind, content, prev_hash]`.
#[must_use]
pub fn event_hash(id: i64, ts: &str, session: &str, kind: &str, content: &str, prev_hash: &str) -> String {
    let mut hash = String::with_capacity(64);
    write_hash(
        id,
        &[Item::Text(ts), Item::Text(session), Item::Text(kind), Item::Text(content), Item::Text(prev_hash)],
        &mut hash,
    );
    hash
}

/// The hash of a checkpoint, lower-case hex: over
/// `[id, ts, session, summary, last_event_id, head_hash, previous]`, where `previous` is the hash of the
/// checkpoint before, [`GENESIS`] for the first.
#[must_use]
pub fn checkpoint_hash(
    id: i64,
    ts: &str,
    session: &str,
    summary: &str,
    last_event_id: i64,
    head_hash: &str,
    previous: &str,
) -> String {
    let mut hash = String::with_capacity(64);
    let rest = [
        Item::Text(ts),
        Item::Text(session),
        Item::Text(summary),
        Item::Integer(last_event_id),
        Item::Text(head_hash),
        Item::Text(previous),
    ];
    write_hash(id, &rest, &mut hash);
    hash
}

/// [`event_hash`] of a row's own fields, into a buffer that is kept from event to event.
pub(super) fn write_event_hash(row: &EventRow<'_>, out: &mut String) {
    let rest = [row.ts, row.session, row.kind, row.content, row.prev_hash].map(Item::Text);
    write_hash(row.id, &rest, out);
}

#[derive(Clone, Copy)]
enum Item<'a> {
    Integer(i64),
    Text(&'a str),
}

fn write_hash(id: i64, rest: &[Item<'_>], out: &mut String) {
    let mut hasher = Sha256::new();
    hasher.update(b"[");
    update_number(&mut hasher, id);
    for item in rest {
        match item {
            Item::Integer(value) => {
                hasher.update(b",");
                update_number(&mut hasher, *value);
            }
            Item::Text(text) => {
                hasher.update(b",\"");
                update_escaped(&mut hasher, text);
                hasher.update(b"\"");
            }
        }
    }
    hasher.update(b"]");
    out.clear();
    for byte in hasher.finalize() {
        out.push(hex_digit(byte >> 4));
        out.push(hex_digit(byte & 15));
    }
}

/// `digit` is below 16.
fn hex_digit(digit: u8) -> char {
    char::from(if digit < 10 { b'0' + digit } else { b'a' - 10 + digit })
}

/// Feeds the decimal digits without a text in between: a chain is many of them.
fn update_number(hasher: &mut Sha256, value: i64) {
    struct Feed<'h>(&'h mut Sha256);
    impl Write for Feed<'_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.update(text);
            Ok(())
        }
    }
    // The result is dropped because feeding cannot fail.
    let _ = write!(Feed(hasher), "{value}");
}

/// Feeds a text as the inside of a JSON string. Only `"`, `\` and the controls below U+0020 are escaped:
/// not DEL, not `/`, nothing beyond ASCII.
fn update_escaped(hasher: &mut Sha256, text: &str) {
    let special = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    let mut rest = text.as_bytes();
    // Most texts have nothing to escape. No early exit: this way the compiler looks at many bytes at once.
    if !rest.iter().fold(false, |found, byte| found | special(byte)) {
        hasher.update(rest);
        return;
    }
    while let Some(at) = rest.iter().position(special) {
        let (plain, special) = rest.split_at_checked(at).unwrap_or((rest, &[]));
        hasher.update(plain);
        let Some((byte, after)) = special.split_first() else { return };
        match byte {
            b'"' => hasher.update(b"\\\""),
            b'\\' => hasher.update(b"\\\\"),
            b'\n' => hasher.update(b"\\n"),
            b'\r' => hasher.update(b"\\r"),
            b'\t' => hasher.update(b"\\t"),
            0x08 => hasher.update(b"\\b"),
            0x0c => hasher.update(b"\\f"),
            control => hasher.update(format!("\\u{control:04x}")),
        }
        rest = after;
    }
    hasher.update(rest);
}
