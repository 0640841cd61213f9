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
                let snippet = crate::render::one_line(text, LONGEST_SNIPPET);
                found.push(Found { path: path.clone(), line, snippet });
                if found.len() == most {
                    return Ok(found);
                }
            }
        }
    }
    Ok(found)
}
