//! How many values a JSON text holds, before anybody reads it.
//!
//! A value takes some hundred bytes in memory and two in a text. It does not check the text: what is no JSON is
//! the parser's to refuse.

/// Values in one JSON text: more than any statement takes parameters (32,766), any tool list items, any batch
/// messages.
pub const MAX_VALUES: usize = 100_000;

/// Whether the text holds more than [`MAX_VALUES`] values.
#[must_use]
pub fn too_many(json: &[u8]) -> bool {
    // A value takes a byte and a comma.
    if json.len() < MAX_VALUES {
        return false;
    }
    let (mut values, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in json {
        if in_text {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_text = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => in_text = true,
                b',' | b'[' | b'{' => values += 1,
                _ => {}
            }
            if values > MAX_VALUES {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_texts_alone() {
        for (json, expected) in [
            (format!("[{}0]", "0,".repeat(MAX_VALUES - 1)), false),
            (format!("[{}0]", "0,".repeat(MAX_VALUES)), true),
            (format!("[{}0]", "{},".repeat(MAX_VALUES / 2)), true),
            (format!("{{\"a\":[{}[]]}}", "[],".repeat(MAX_VALUES)), true),
            (format!("[\"{}\"]", ",[{\\\",".repeat(MAX_VALUES)), false),
            (format!("[\"\\\\\",{}0]", "0,".repeat(MAX_VALUES)), true),
        ] {
            assert_eq!(too_many(json.as_bytes()), expected, "{}", json.get(..40).unwrap());
        }
    }
}
