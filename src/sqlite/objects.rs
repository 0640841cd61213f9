//! The names in `main` and what they stand for, as `PRAGMA table_list` tells it.
//!
//! A snapshot of one moment: whoever needs it to hold takes it inside a transaction. It reads no rows.

use crate::policy::decide::{ObjectKind, Objects};
use rusqlite::{Connection, Row, Statement};
use std::collections::HashMap;

/// A name that is longer is looked for in vain.
const MAX_NAME_BYTES: usize = 100_000;

/// The tables and views of `main`, by lower-case name.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    kinds: HashMap<String, Entry>,
}

/// A table or view.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name as stored.
    pub name: String,
    /// What it is.
    pub kind: ObjectKind,
    /// How many columns it has, hidden ones aside.
    pub columns: u64,
    /// Whether it was made WITHOUT ROWID.
    pub without_rowid: bool,
}

impl Catalog {
    /// Reads the catalog (<https://sqlite.org/pragma.html#pragma_table_list>). The PRAGMA, not the
    /// table-valued function: a file may hold a table of that name. A name that is no UTF-8 gets
    /// replacement characters; no statement of an agent's can name it.
    ///
    /// # Errors
    /// What SQLite reports, for a damaged schema say.
    pub fn read(conn: &Connection) -> rusqlite::Result<Self> {
        Self::listed(&mut *conn.prepare_cached("PRAGMA main.table_list")?)
    }

    /// The same of one table or view, whose name is matched without regard to ASCII case; empty where there is none.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_one(conn: &Connection, name: &str) -> rusqlite::Result<Self> {
        // Whatever was given: no table has such a name, and no statement could hold it.
        if name.contains('\0') || name.len() > MAX_NAME_BYTES {
            return Ok(Self::default());
        }
        Self::listed(&mut conn.prepare(&format!("PRAGMA main.table_list({})", quoted(name)))?)
    }

    fn listed(statement: &mut Statement<'_>) -> rusqlite::Result<Self> {
        let mut rows = statement.query([])?;
        let mut kinds = HashMap::new();
        while let Some(row) = rows.next()? {
            let kind = match row.get_ref(2)?.as_str().unwrap_or_default() {
                "view" => ObjectKind::View,
                "virtual" => ObjectKind::Virtual,
                "shadow" => ObjectKind::Shadow,
                _ => ObjectKind::Table,
            };
            let columns = row.get::<_, i64>(3)?.unsigned_abs();
            let without_rowid = row.get::<_, i64>(4)? != 0;
            let name = text(row, 1)?;
            kinds.insert(name.to_ascii_lowercase(), Entry { name, kind, columns, without_rowid });
        }
        Ok(Self { kinds })
    }

    /// Tables and views by name, without regard to ASCII case; shadow tables and SQLite's own are left out.
    pub fn shown(&self) -> Vec<&Entry> {
        let mut shown: Vec<&Entry> = self
            .kinds
            .iter()
            .filter(|(name, entry)| entry.kind != ObjectKind::Shadow && !name.starts_with("sqlite_"))
            .map(|(_, entry)| entry)
            .collect();
        shown.sort_by_cached_key(|entry| entry.name.to_ascii_lowercase());
        shown
    }

    /// The table or view of this name.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.kinds.get(&name.to_ascii_lowercase())
    }

    /// Whether the table was made WITHOUT ROWID.
    #[must_use]
    pub fn without_rowid(&self, name: &str) -> bool {
        self.kinds.get(&name.to_ascii_lowercase()).is_some_and(|entry| entry.without_rowid)
    }
}

impl Objects for Catalog {
    fn kind(&self, name: &str) -> Option<ObjectKind> {
        self.kinds.get(&name.to_ascii_lowercase()).map(|entry| entry.kind)
    }
}

/// A column of SQLite's catalog as text; what is no UTF-8 gets replacement characters, NULL is empty.
pub(in crate::sqlite) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    let bytes = row.get_ref(column)?.as_bytes_or_null().unwrap_or_default();
    Ok(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default())
}

/// A name as an SQL identifier, in double quotes.
#[must_use]
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The columns of a table or view that an INSERT or UPDATE can name, hidden ones among them.
pub(super) fn writable_columns(conn: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = conn.prepare(&format!("PRAGMA main.table_xinfo({})", quoted(table)))?;
    let mut rows = statement.query([])?;
    let mut columns = Vec::new();
    while let Some(row) = rows.next()? {
        // 2 and 3 are generated columns.
        if row.get::<_, i64>(6)? < 2 {
            columns.push(text(row, 1)?);
        }
    }
    Ok(columns)
}
