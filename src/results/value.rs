//! SQL values as JSON values that no reader gets wrong. They are cut before they come here.

use crate::render::Datum;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The greatest integer that every JSON reader takes exactly: 2^53 - 1 (RFC 8259, section 6).
const MAX_EXACT: u64 = (1 << 53) - 1;

/// A value as JSON: integers beyond ±(2^53-1) and infinities are strings; the bytes of a blob, where they are wanted,
/// `{"base64": ...}`, with `left_out` where it is cut.
#[must_use]
pub fn json_value(value: Datum) -> Value {
    match value {
        Datum::Null => Value::Null,
        Datum::Integer(number) if number.unsigned_abs() <= MAX_EXACT => Value::from(number),
        Datum::Integer(number) => Value::from(number.to_string()),
        Datum::Real(number) => match serde_json::Number::from_f64(number) {
            Some(number) => Value::Number(number),
            None if number.is_nan() => Value::Null,
            None => Value::from(if number > 0.0 { "Inf" } else { "-Inf" }),
        },
        Datum::Text(text) => Value::from(text),
        Datum::Blob { bytes, left_out: 0 } => json!({"base64": STANDARD.encode(bytes)}),
        Datum::Blob { bytes, left_out } => json!({"base64": STANDARD.encode(bytes), "left_out": left_out}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Cell;

    #[test]
    fn every_value_has_a_json_form_that_reads_back_exactly() {
        for (cell, expected) in [
            (Cell::Null, json!(null)),
            (Cell::Integer(9_007_199_254_740_991), json!(9_007_199_254_740_991_i64)),
            (Cell::Integer(-9_007_199_254_740_991), json!(-9_007_199_254_740_991_i64)),
            (Cell::Integer(9_007_199_254_740_992), json!("9007199254740992")),
            (Cell::Integer(i64::MIN), json!("-9223372036854775808")),
            (Cell::Real(1.5), json!(1.5)),
            (Cell::Real(f64::INFINITY), json!("Inf")),
            (Cell::Real(f64::NEG_INFINITY), json!("-Inf")),
            (Cell::Blob(3), json!("<blob 3 bytes>")),
            (Cell::Bytes(b"\0\xff"), json!({"base64": "AP8="})),
            (Cell::Bytes(b"\0\xff\0\xff"), json!({"base64": "AP8A", "left_out": 1})),
            (Cell::Text(b"\xff\0x"), json!("\u{fffd}\0x")),
            (Cell::Text("žluťoučký".as_bytes()), json!("žluť...[+5 chars]")),
        ] {
            let (datum, _) = Datum::of(cell, 4);
            assert_eq!(json_value(datum), expected);
        }
    }
}
