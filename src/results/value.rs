//! SQL values as JSON values that no reader gets wrong.

use crate::render::{Cell, cell};
use serde_json::Value;

/// The greatest integer that every JSON reader takes exactly: 2^53 - 1 (RFC 8259, section 6).
const MAX_EXACT: u64 = (1 << 53) - 1;

/// A cell as JSON, and whether it was cut. Integers beyond ±(2^53-1) and infinities are strings, blobs
/// `<blob N bytes>`, text is cut to `max_chars` characters as `...[+N chars]`.
#[must_use]
pub fn json_value(value: Cell<'_>, max_chars: usize) -> (Value, bool) {
    match value {
        Cell::Null => (Value::Null, false),
        Cell::Integer(number) if number.unsigned_abs() <= MAX_EXACT => (Value::from(number), false),
        Cell::Integer(number) => (Value::from(number.to_string()), false),
        Cell::Real(number) => match serde_json::Number::from_f64(number) {
            Some(number) => (Value::Number(number), false),
            None if number.is_nan() => (Value::Null, false),
            None => (Value::from(if number > 0.0 { "Inf" } else { "-Inf" }), false),
        },
        Cell::Blob(bytes) => (Value::from(format!("<blob {bytes} bytes>")), false),
        Cell::Text(text) => {
            let shown = cell::shown(text, max_chars);
            match shown.left_out {
                0 => (Value::from(shown.text.into_owned()), false),
                left_out => (Value::from(format!("{}...[+{left_out} chars]", shown.text)), true),
            }
        }
    }
}
