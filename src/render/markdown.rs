//! Tables and code blocks as Markdown, from text that may hold anything.
//!
//! A cell cannot leave its place: `|`, backticks, backslashes, line breaks and control characters are
//! escaped or replaced. It cuts nothing; what it gets is within the caps already.

use serde_json::Value;

/// A table: header, rule, rows.
#[must_use]
pub fn table<'r>(columns: &[impl AsRef<str>], rows: impl IntoIterator<Item = &'r [Value]>) -> String {
    let mut out = String::new();
    line(&mut out, columns.iter().map(|name| escaped(name.as_ref())));
    line(&mut out, columns.iter().map(|_| "---".to_owned()));
    for row in rows {
        line(&mut out, row.iter().map(cell));
    }
    out
}

/// A block of code that no line of the text can close: its fence is longer than any run of backticks in it.
#[must_use]
pub fn code_block(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

/// Text that shows as itself within a line.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '|' | '`' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => out.push('⏎'),
            '\t' => out.push(' '),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// One cell: NULL shows as `NULL`, text as itself.
#[must_use]
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => escaped(text),
        other => escaped(&other.to_string()),
    }
}

fn line(out: &mut String, cells: impl Iterator<Item = String>) {
    out.push('|');
    for cell in cells {
        out.push(' ');
        out.push_str(&cell);
        out.push_str(" |");
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_cell_can_break_its_row() {
        for (value, shown) in [
            (json!("a|b"), "a\\|b"),
            (json!("a\nb\r\nc\rd"), "a⏎b⏎c⏎d"),
            (json!("`x` \\| y"), "\\`x\\` \\\\\\| y"),
            (json!(null), "NULL"),
            (json!(1.5), "1.5"),
            (json!("\u{1b}[31m"), "\u{fffd}[31m"),
        ] {
            let row = [value];
            assert_eq!(table(&["c"], [&row[..]]), format!("| c |\n| --- |\n| {shown} |\n"));
        }
    }

    #[test]
    fn no_text_can_close_its_code_block() {
        assert_eq!(code_block("sql", "SELECT 1\n"), "```sql\nSELECT 1\n```\n");
        assert_eq!(code_block("", "a ``` b"), "````\na ``` b\n````\n");
    }
}
