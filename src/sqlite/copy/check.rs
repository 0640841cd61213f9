//! Whether a copy is whole.
//!
//! It judges pages and b-trees, which is what a copy can lose. Rows that break a NOT NULL, and search
//! indexes that disagree with their content, were so in the source too; they do not stand in the way of
//! a snapshot, or nobody could mend them.

use crate::sqlite::objects::text;
use crate::sqlite::open;
use rusqlite::{Connection, ErrorCode as SqliteCode};
use std::path::Path;

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sqlite) enum Depth {
    /// `quick_check`: what a copy can lose.
    Pages,
    /// `integrity_check`: that indexes hold what their tables hold as well.
    Indexes,
}

impl Depth {
    fn pragma(self) -> &'static str {
        match self {
            Self::Pages => "PRAGMA main.quick_check",
            Self::Indexes => "PRAGMA main.integrity_check",
        }
    }
}

/// What a check found, the first message of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Integrity {
    /// Pages or b-trees are damaged.
    pub damage: Option<String>,
    /// Rows break a rule of their table, or a search index disagrees with its content.
    pub content: Option<String>,
}

/// `None` if the file is a sound database, else what is wrong with it.
///
/// # Errors
/// SQLite's, when the file cannot be read at all.
pub(in crate::sqlite) fn damage(copy: &Path, depth: Depth) -> rusqlite::Result<Option<String>> {
    checked(&open::for_checking(copy)?, depth).map(|found| found.damage)
}

/// Checks the database behind a connection.
///
/// # Errors
/// SQLite's, when it cannot be read at all.
pub(in crate::sqlite) fn integrity(connection: &Connection) -> rusqlite::Result<Integrity> {
    checked(connection, Depth::Pages)
}

fn checked(connection: &Connection, depth: Depth) -> rusqlite::Result<Integrity> {
    let mut found = Integrity::default();
    match look(connection, depth.pragma(), &mut found) {
        Ok(()) => {}
        // A virtual table that cannot connect (its shadow tables are gone, say) keeps the whole check from
        // compiling: then table by table.
        Err(error) if error.sqlite_error_code() == Some(SqliteCode::Unknown) => {
            table_by_table(connection, depth, &mut found)?;
        }
        Err(error) => return Err(error),
    }
    Ok(found)
}

fn table_by_table(connection: &Connection, depth: Depth, found: &mut Integrity) -> rusqlite::Result<()> {
    let mut tables =
        connection.prepare("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0")?;
    let names = tables.query_map([], |row| text(row, 0))?.collect::<Result<Vec<_>, _>>()?;
    for name in names {
        let quoted = name.replace('"', "\"\"");
        look(connection, &format!("{}(\"{quoted}\")", depth.pragma()), found)?;
        if found.damage.is_some() {
            break;
        }
    }
    Ok(())
}

/// Up to the first damage.
fn look(connection: &Connection, sql: &str, found: &mut Integrity) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let message = text(row, 0)?;
        if !is_about_content(&message) {
            found.damage = Some(message);
            break;
        }
        if message != "ok" {
            found.content.get_or_insert(message);
        }
    }
    Ok(())
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
