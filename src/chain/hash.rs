//! The hashes of events and checkpoints: SHA-256 over a compact JSON array of the stored texts.
//!
//! The array is what Python's `json.dumps(.., separators=(",", ":"), ensure_ascii=False)` writes, so that
//! anyone can check a chain with a few lines of a common language. The writer here is by hand because the
//! bytes are a promise, and because it feeds the hasher without building the array. It verifies nothing;
//! `verify` does.

use super::EventRow;
use sha2::{Digest, Sha256};

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
    hasher.update(id.to_string());
    for item in rest {
        match item {
            Item::Integer(value) => hasher.update(format!(",{value}")),
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
        out.extend([byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0')));
    }
}

/// Feeds a text as the inside of a JSON string. Only `"`, `\` and the controls below U+0020 are escaped:
/// not DEL, not `/`, nothing beyond ASCII.
fn update_escaped(hasher: &mut Sha256, text: &str) {
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\')) {
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
