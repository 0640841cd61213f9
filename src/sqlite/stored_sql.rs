//! Stored SQL as a list of words, to tell whether an object in a file is the one the server makes.
//!
//! It is no parser and judges no agent's statement: it only lets two texts be compared without regard
//! to spaces, comments, case and quoting style.

/// The words of a stored `CREATE` statement: names and keywords in lower case and without their
/// quotes, string literals with their quotes, every other character on its own.
#[must_use]
pub fn words(sql: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = sql.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            _ if c.is_whitespace() => {}
            '-' if rest.peek() == Some(&'-') => {
                for skipped in rest.by_ref() {
                    if skipped == '\n' {
                        break;
                    }
                }
            }
            '/' if rest.peek() == Some(&'*') => {
                rest.next();
                let mut before = ' ';
                for skipped in rest.by_ref() {
                    if before == '*' && skipped == '/' {
                        break;
                    }
                    before = skipped;
                }
            }
            '\'' => words.push(format!("'{}'", quoted(&mut rest, '\''))),
            '"' | '`' => words.push(quoted(&mut rest, c).to_lowercase()),
            '[' => words.push(quoted(&mut rest, ']').to_lowercase()),
            _ if is_name(c) => {
                let mut word = String::from(c);
                while let Some(next) = rest.next_if(|next| is_name(*next)) {
                    word.push(next);
                }
                words.push(word.to_lowercase());
            }
            _ => words.push(c.to_string()),
        }
    }
    while words.last().is_some_and(|last| last == ";") {
        words.pop();
    }
    words
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$' || !c.is_ascii()
}

/// What stands before `end`, a doubled `end` meaning one.
fn quoted(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, end: char) -> String {
    let mut text = String::new();
    while let Some(c) = rest.next() {
        if c == end && (end == ']' || rest.next_if_eq(&end).is_none()) {
            break;
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_does_not_matter_and_meaning_does() {
        let plain = words("CREATE TABLE t (id INTEGER, s TEXT DEFAULT 'a''b')");
        for same in [
            "create table \"t\"(id integer,s text default 'a''b');",
            "CREATE TABLE [t] -- why\n (`id` INTEGER, /* x */ s TEXT DEFAULT 'a''b')",
        ] {
            assert_eq!(words(same), plain, "{same}");
        }
        for other in [
            "CREATE TABLE t (id INTEGER, s TEXT DEFAULT 'A''b')",
            "CREATE TABLE t (id INTEGER, s TEXT)",
            "CREATE TABLE t (id INTEGER, s TEXT DEFAULT 'a''b') STRICT",
        ] {
            assert_ne!(words(other), plain, "{other}");
        }
    }

    #[test]
    fn unended_quotes_and_comments_end_with_the_text() {
        for (sql, count) in [("'a", 1), ("/* a", 0), ("-- a", 0), ("\"", 1), ("", 0)] {
            assert_eq!(words(sql).len(), count, "{sql}");
        }
    }
}
