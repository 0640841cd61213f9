//! How much memory a schema takes in each connection that reads it, estimated from the stored text.
//!
//! SQLite keeps every definition taken apart, its expressions included, for as long as a connection is open: a
//! few megabytes of text can fill a worker, and then nobody can read the file any more. It estimates and judges
//! nothing; `aftermath` does.

use rusqlite::Connection;

/// The most that an agent's statement may let a schema grow to: half of what a worker that reads may take.
pub(super) const MOST: u64 = 32 << 20;

/// Bytes that a word or sign takes at most once it is taken apart (measured: the rows of a VALUES in a view).
const SIGN_BYTES: u64 = 112;

/// Bytes that the schema of the file takes at most.
pub(super) fn of_schema(conn: &Connection) -> rusqlite::Result<u64> {
    let mut statement = conn.prepare_cached("SELECT sql FROM main.sqlite_schema WHERE sql IS NOT NULL")?;
    let mut rows = statement.query([])?;
    let mut weight = 0_u64;
    while let Some(row) = rows.next()? {
        weight = weight.saturating_add(of_text(row.get_ref(0)?.as_bytes().unwrap_or_default()));
    }
    Ok(weight)
}

/// Bytes that one definition takes at most: its text, what is quoted in it, and each word and sign.
fn of_text(sql: &[u8]) -> u64 {
    let (mut signs, mut end, mut in_word) = (0_u64, None, false);
    for byte in sql {
        match (end, byte) {
            (Some(last), byte) => {
                if *byte == last {
                    end = None;
                }
                continue;
            }
            (None, b'\'' | b'"' | b'`') => end = Some(*byte),
            (None, b'[') => end = Some(b']'),
            _ => {}
        }
        let of_word = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.') || !byte.is_ascii();
        let goes_on = of_word && in_word;
        if !(goes_on || byte.is_ascii_whitespace()) {
            signs += 1;
        }
        in_word = of_word;
    }
    signs.saturating_mul(SIGN_BYTES).saturating_add(2 * u64::try_from(sql.len()).unwrap_or(u64::MAX / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_signs_weigh_and_quoted_text_hardly_does() {
        for (sql, signs) in [
            ("", 0),
            ("CREATE TABLE t(a, b)", 8),
            ("SELECT 1.5+22", 4),
            ("DEFAULT 'a, (b) , c'", 2),
            ("\"a b\" [c, d] `e,f`", 3),
            ("VALUES(1),(2)", 8),
        ] {
            assert_eq!(of_text(sql.as_bytes()), signs * SIGN_BYTES + 2 * sql.len() as u64, "{sql}");
        }
    }
}
