//! The names in `main` and what they stand for, as `PRAGMA table_list` tells it.
//!
//! A snapshot of one moment: whoever needs it to hold takes it inside a transaction. It reads no rows.

use crate::policy::decide::{ObjectKind, Objects};
use rusqlite::Connection;
use std::collections::HashMap;

/// The tables and views of `main`, by lower-case name.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    kinds: HashMap<String, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    kind: ObjectKind,
    without_rowid: bool,
}

impl Catalog {
    /// Reads the catalog (<https://sqlite.org/pragma.html#pragma_table_list>).
    ///
    /// # Errors
    /// What SQLite reports, for a damaged schema say.
    pub fn read(conn: &Connection) -> rusqlite::Result<Self> {
        let mut statement =
            conn.prepare_cached("SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main'")?;
        let mut rows = statement.query([])?;
        let mut kinds = HashMap::new();
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            let kind = match row.get_ref(1)?.as_str().unwrap_or_default() {
                "view" => ObjectKind::View,
                "virtual" => ObjectKind::Virtual,
                "shadow" => ObjectKind::Shadow,
                _ => ObjectKind::Table,
            };
            let without_rowid = row.get::<_, i64>(2)? != 0;
            kinds.insert(name.to_ascii_lowercase(), Entry { kind, without_rowid });
        }
        Ok(Self { kinds })
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

/// A name as an SQL identifier, in double quotes.
#[must_use]
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
