//! Lines of text files that hold a text: files that may have it by the index, then line by line.

use super::blobs::FolderBlobs;
use super::files::{below, bytes_of};
use super::rows::all;
use crate::state::Outcome;
use crate::state::blobs::MOST_SHOWN;
use crate::state::files::Found;
use rusqlite::{Connection, params};

/// The longest line that a search shows, in characters.
const LONGEST_SNIPPET: usize = 200;
/// Characters of a longer line that stand in front of the hit.
const BEFORE: usize = 60;

/// Lines under `path` that hold the text, whatever its case; at most `most`, by path.
pub(super) fn search(
    connection: &Connection,
    blobs: &FolderBlobs,
    path: &str,
    text: &str,
    most: usize,
) -> Outcome<Vec<Found>> {
    let sought = text.to_lowercase();
    let (first, behind) = below(path);
    // A text of less than three characters has no part of three; large contents have no index.
    let (sql, words) = if text.chars().count() >= 3 {
        (
            "SELECT path, content FROM entries WHERE content IS NOT NULL AND (path = ?1 OR (path >= ?2 AND path < ?3))
             AND content IN (SELECT rowid FROM texts WHERE texts MATCH ?4
                             UNION ALL SELECT id FROM contents WHERE is_text AND size > ?5) ORDER BY path",
            format!("\"{}\"", text.replace('"', "\"\"")),
        )
    } else {
        (
            "SELECT path, content FROM entries WHERE content IS NOT NULL AND (path = ?1 OR (path >= ?2 AND path < ?3))
             AND content IN (SELECT id FROM contents WHERE is_text AND (?4 = '' OR ?5 >= 0)) ORDER BY path",
            String::new(),
        )
    };
    let indexed = i64::try_from(MOST_SHOWN).unwrap_or(i64::MAX);
    let candidates: Vec<(String, i64)> =
        all(connection, sql, params![path, first, behind, words, indexed], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let mut found = Vec::new();
    for (path, content) in candidates {
        let bytes = bytes_of(connection, blobs, content, 0, usize::MAX)?;
        let whole = String::from_utf8_lossy(&bytes);
        for (line, text) in (1..).zip(whole.lines()) {
            if text.to_lowercase().contains(&sought) {
                let snippet = snippet(text, &sought);
                found.push(Found { path: path.clone(), line, snippet });
                if found.len() == most {
                    return Ok(found);
                }
            }
        }
    }
    Ok(found)
}

/// The line, or, where it is long, what stands around the hit in it: all of the hit, if that is no longer itself.
fn snippet(line: &str, sought: &str) -> String {
    let length = line.chars().count();
    if length <= LONGEST_SNIPPET {
        return crate::render::one_line(line, LONGEST_SNIPPET);
    }
    let start = position(line, sought)
        .saturating_sub(BEFORE.min(LONGEST_SNIPPET.saturating_sub(sought.chars().count())));
    // The last part of a line is as long as others.
    let start = start.min(length - LONGEST_SNIPPET);
    let shown: String = line.chars().skip(start).take(LONGEST_SNIPPET).collect();
    let shown = crate::render::one_line(&shown, LONGEST_SNIPPET);
    let (lead, trail) =
        (if start > 0 { "..." } else { "" }, if start + LONGEST_SNIPPET < length { "..." } else { "" });
    format!("{lead}{shown}{trail}")
}

/// How many characters stand in front of the text that is sought, which is in lower case; some letters are several then.
fn position(line: &str, sought: &str) -> usize {
    // A capital sigma is lower-cased by what stands behind it, and so may not be found letter by letter.
    let plain = |text: &str| text.replace('ς', "σ");
    let mut lower = String::with_capacity(line.len());
    let mut ends = Vec::new();
    for one in line.chars() {
        lower.extend(one.to_lowercase().map(|one| if one == 'ς' { 'σ' } else { one }));
        ends.push(lower.len());
    }
    lower.find(&plain(sought)).map_or(0, |at| ends.partition_point(|end| *end <= at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_holds_the_hit_wherever_it_stands() {
        let (x, z) = ("x".repeat(500), "ž".repeat(500));
        let rows = [
            (format!("{x}Needle{x}"), "needle", format!("...{}Needle{}...", "x".repeat(60), "x".repeat(134))),
            (format!("Needle{z}"), "needle", format!("Needle{}...", "ž".repeat(194))),
            (format!("{z}NEEDLE"), "needle", format!("...{}NEEDLE", "ž".repeat(194))),
            ("a Needle\tb".to_owned(), "needle", "a Needle\\tb".to_owned()),
            // Two characters in lower case, and one that depends on what follows.
            (
                format!("{}ΟΔΟΣ{x}", "İ".repeat(300)),
                "οδος",
                format!("...{}ΟΔΟΣ{}...", "İ".repeat(60), "x".repeat(136)),
            ),
        ];
        for (line, sought, expected) in rows {
            assert_eq!(snippet(&line, sought), expected);
        }
        let sought = "y".repeat(190);
        assert!(snippet(&format!("{x}{sought}{x}"), &sought).contains(&sought));
    }
}
