//! Lengths of time as agents write them: `30s`, `15m`, `1h`, `7d`, or seconds.
//!
//! Whole numbers with one unit, so that nobody has to guess; no months and no `1h30m`.

use crate::error::ToolError;

/// The longest length of time, in milliseconds: ten years.
const LONGEST: i64 = 10 * 365 * 86_400_000;

/// A length of time in milliseconds, at least `least` and at most `most` (milliseconds, too).
///
/// # Errors
/// `INVALID_ARGUMENTS` that names the argument and the rule.
pub fn milliseconds(name: &str, text: &str, least: i64, most: Option<i64>) -> Result<i64, ToolError> {
    let most = most.unwrap_or(LONGEST);
    let parsed = parse(text.trim());
    parsed.filter(|length| (least..=most).contains(length)).ok_or_else(|| {
        ToolError::arguments(format!(
            "`{name}` must be a length of time such as 30s, 15m, 1h, 7d or seconds, from {} to {}, got \"{}\"",
            words(least),
            words(most),
            text.chars().take(40).flat_map(char::escape_debug).collect::<String>(),
        ))
    })
}

fn parse(text: &str) -> Option<i64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let number: i64 = number.parse().ok()?;
    let unit = match unit {
        "" | "s" => 1_000,
        "ms" => 1,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// The length in its greatest whole unit.
#[must_use]
pub fn words(milliseconds: i64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let unit = units.iter().find(|(unit, _)| milliseconds != 0 && milliseconds % unit == 0);
    match unit {
        Some((unit, name)) => format!("{}{name}", milliseconds / unit),
        None if milliseconds == 0 => "0s".to_owned(),
        None => format!("{milliseconds}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_whole_numbers_with_one_unit() {
        let rows = [
            ("30s", Some(30_000)),
            ("15m", Some(900_000)),
            ("1h", Some(3_600_000)),
            ("7d", Some(604_800_000)),
            ("90", Some(90_000)),
            (" 5 ", Some(5_000)),
            ("250ms", Some(250)),
            ("0", Some(0)),
            ("", None),
            ("s", None),
            ("-1", None),
            ("1.5h", None),
            ("1h30m", None),
            ("9223372036854775807d", None),
            ("1y", None),
        ];
        for (text, expected) in rows {
            assert_eq!(milliseconds("ttl", text, 0, None).ok(), expected, "{text}");
        }
    }

    #[test]
    fn the_error_names_the_argument_and_the_bounds() {
        let error = milliseconds("wait", "1h", 0, Some(20_000)).unwrap_err();
        assert_eq!(
            error.message,
            "`wait` must be a length of time such as 30s, 15m, 1h, 7d or seconds, from 0s to 20s, got \"1h\""
        );
    }
}
