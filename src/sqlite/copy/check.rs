//! Whether a copy is whole.
//!
//! It judges pages and b-trees, which is what a copy can lose. Rows that break a NOT NULL, and search
//! indexes that disagree with their content, were so in the source too; they do not stand in the way of
//! a snapshot, or nobody could mend them.

use crate::sqlite::objects::text;
use crate::sqlite::open;
use rusqlite::{Connection, ErrorCode as SqliteCode};
use std::path::Path;

/// `None` if the file is a sound database, else what is wrong with it.
///
/// # Errors
/// SQLite's, when the file cannot be read at all.
pub(super) fn damage(copy: &Path) -> rusqlite::Result<Option<String>> {
    let connection = open::for_checking(copy)?;
    match first_damage(&connection, "PRAGMA main.quick_check") {
        Ok(damage) => Ok(damage),
        // A virtual table that cannot connect (its shadow tables are gone, say) keeps the whole check from
        // compiling: then table by table.
        Err(error) if error.sqlite_error_code() == Some(SqliteCode::Unknown) => table_by_table(&connection),
        Err(error) => Err(error),
    }
}

fn table_by_table(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let mut tables =
        connection.prepare("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0")?;
    let names = tables.query_map([], |row| text(row, 0))?.collect::<Result<Vec<_>, _>>()?;
    for name in names {
        let quoted = name.replace('"', "\"\"");
        let damage = first_damage(connection, &format!("PRAGMA main.quick_check(\"{quoted}\")"))?;
        if damage.is_some() {
            return Ok(damage);
        }
    }
    Ok(None)
}

fn first_damage(connection: &Connection, sql: &str) -> rusqlite::Result<Option<String>> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let message = text(row, 0)?;
        if !is_about_content(&message) {
            return Ok(Some(message));
        }
    }
    Ok(None)
}

/// The check's messages that do not speak of pages (the texts are those of `sqlite3.c`, pragma.c and the
/// modules' xIntegrity).
fn is_about_content(message: &str) -> bool {
    const BEGINNINGS: [&str; 6] = [
        "NULL value in ",
        "NUMERIC value in ",
        "TEXT value in ",
        "CHECK constraint failed in ",
        "In RTree ",
        "fts5: ",
    ];
    let of_strict_table = message.starts_with("non-") && !message.starts_with("non-unique entry ");
    let of_search_index =
        ["malformed inverted index for FTS", "unable to validate the inverted index for FTS"]
            .iter()
            .any(|beginning| message.starts_with(beginning));
    message == "ok"
        || of_strict_table
        || of_search_index
        || BEGINNINGS.iter().any(|beginning| message.starts_with(beginning))
}
