//! Writes a whole database file from rows that somebody else made up: the demo's music store.
//!
//! It knows no names and makes no data. The same contents give the same bytes with the same SQLite: page size
//! and encoding are fixed, and nothing in the file depends on the clock.

use crate::error::StartError;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql, params_from_iter};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;

/// One value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// An INTEGER.
    Integer(i64),
    /// A TEXT.
    Text(String),
}

impl ToSql for Field {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

/// The rows of one table, every one with all of the table's columns in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRows {
    /// The table's name, as `schema` spells it.
    pub table: &'static str,
    /// Its rows, in the order they are inserted in.
    pub rows: Vec<Vec<Field>>,
}

/// What is to be in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// CREATE statements that run before the rows are there.
    pub schema: &'static str,
    /// The rows, parents before children: foreign keys are on.
    pub tables: Vec<TableRows>,
    /// CREATE statements that run behind the rows: indexes, views.
    pub finish: &'static str,
    /// Whether the file is left in WAL mode, as a server wants it that writes, or in rollback mode, where
    /// a reader needs no file beside it.
    pub wal: bool,
}

/// Writes a new file in one transaction.
///
/// # Errors
/// Exit status 1: something is at `path` already (it is left alone), or the file cannot be written
/// (nothing is left of it).
pub fn write(path: &Path, contents: &Contents) -> Result<(), StartError> {
    let shown = path.display();
    claim(path)?;
    let written = fill(path, contents);
    written.map_err(|error| {
        // What is half written is of no use to anybody, and the error is said already.
        let _ = std::fs::remove_file(path);
        StartError::failure(format!("cannot write the demo database `{shown}`: {error}"))
    })
}

/// Makes the empty file, so that nobody else's can be hit between a look and the writing.
fn claim(path: &Path) -> Result<File, StartError> {
    let shown = path.display();
    OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| {
        StartError::failure(match error.kind() {
            ErrorKind::AlreadyExists => format!(
                "`{shown}` exists and the demo overwrites nothing; give --db a path where nothing is yet, or remove it"
            ),
            _ => format!("cannot create the demo database `{shown}`: {error}"),
        })
    })
}

fn fill(path: &Path, contents: &Contents) -> rusqlite::Result<()> {
    let absolute = std::path::absolute(path).map_err(|_| rusqlite::Error::InvalidPath(path.to_path_buf()))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(absolute, flags)?;
    // Half a file is thrown away, so that neither a journal nor a sync is needed.
    connection.execute_batch(
        "PRAGMA page_size=4096; PRAGMA encoding='UTF-8'; PRAGMA auto_vacuum=NONE;
         PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA foreign_keys=ON",
    )?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(contents.schema)?;
    for TableRows { table, rows } in &contents.tables {
        let columns = rows.first().map_or(0, Vec::len);
        let marks = vec!["?"; columns].join(",");
        let mut insert = transaction.prepare(&format!("INSERT INTO {table} VALUES ({marks})"))?;
        for row in rows {
            insert.execute(params_from_iter(row))?;
        }
    }
    transaction.execute_batch(contents.finish)?;
    transaction.commit()?;
    let mode = if contents.wal { "wal" } else { "delete" };
    connection.query_row(&format!("PRAGMA journal_mode={mode}"), [], |_| Ok(()))?;
    connection.close().map_err(|(_, error)| error)
}
