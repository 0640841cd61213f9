//! A database in a temporary folder, and connections to it from outside the server.
//!
//! It starts no server.

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder is removed when this is dropped.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
    path: PathBuf,
}

/// Three notes and their tags, the database of most tests.
pub(crate) const NOTES: &str = "
    CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT, score REAL);
    INSERT INTO notes VALUES (1, 'alpha', 'an apple a day', 1.5),
        (2, 'beta', 'with \"quotes\" and, commas', 2.0), (3, 'gamma', NULL, NULL);
    CREATE TABLE tags(id INTEGER PRIMARY KEY AUTOINCREMENT, note_id INTEGER REFERENCES notes(id), tag TEXT);
    CREATE INDEX tags_note ON tags(note_id);
";

impl Bench {
    /// A folder without a database.
    pub(crate) fn empty() -> Self {
        Self::named("memory.db")
    }

    /// The same, with a path for the database below the folder.
    pub(crate) fn named(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        Self { folder, path }
    }

    /// A database that this SQL made, in rollback mode.
    pub(crate) fn with(sql: &str) -> Self {
        let bench = Self::empty();
        bench.sql(sql);
        bench
    }

    /// The notes.
    pub(crate) fn notes() -> Self {
        Self::with(NOTES)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A connection from outside.
    pub(crate) fn open(&self) -> Connection {
        let connection = Connection::open(&self.path).unwrap();
        connection.busy_timeout(Duration::from_secs(20)).unwrap();
        connection
    }

    /// Runs statements from outside.
    #[track_caller]
    pub(crate) fn sql(&self, sql: &str) {
        self.open().execute_batch(sql).unwrap();
    }

    /// What a query gives: cells joined by `|`, rows by line feeds.
    #[track_caller]
    pub(crate) fn query(&self, sql: &str) -> String {
        query(&self.open(), sql)
    }

    /// The schema and every row of every stored table but the log's: equal before and after means that
    /// nothing was changed.
    #[track_caller]
    pub(crate) fn content(&self) -> String {
        let connection = self.open();
        let mut content =
            query(&connection, "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY 1, 2");
        content.push_str(&query(&connection, "PRAGMA user_version"));
        content.push_str(&query(&connection, "PRAGMA journal_mode"));
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name <> 'query_log' ORDER BY 1";
        for table in query(&connection, tables).lines() {
            let quoted = table.replace('"', "\"\"");
            content.push_str(&format!("\n== {table}\n"));
            content.push_str(&query(&connection, &format!("SELECT * FROM \"{quoted}\"")));
        }
        content
    }

    /// Names in the folder, each with length and digest of the bytes behind it.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        files_below(self.folder.path(), self.folder.path())
    }

    /// Paths of the automatic and manual snapshots, oldest first.
    pub(crate) fn snapshots(&self) -> Vec<PathBuf> {
        let mut folder = self.path.clone().into_os_string();
        folder.push(".snapshots");
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        found.sort();
        found
    }
}

/// What a query gives on this connection: cells joined by `|`, rows by line feeds.
#[track_caller]
pub(crate) fn query(connection: &Connection, sql: &str) -> String {
    let mut statement = connection.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let columns = statement.column_count();
    let mut rows = statement.query([]).unwrap();
    let mut lines: Vec<String> = Vec::new();
    while let Some(row) = rows.next().unwrap_or_else(|error| panic!("{sql}: {error}")) {
        let cells: Vec<String> = (0..columns).map(|at| cell(row.get_ref(at).unwrap())).collect();
        lines.push(cells.join("|"));
    }
    lines.join("\n")
}

fn cell(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(value) => value.to_string(),
        ValueRef::Real(value) => format!("{value:?}"),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Blob(bytes) => {
            format!("x'{}'", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
    }
}

fn files_below(folder: &Path, root: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.push((name, "folder".to_owned()));
            found.extend(files_below(&path, root));
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            found.push((name, format!("{} bytes {digest}", bytes.len())));
        } else {
            found.push((name, "special".to_owned()));
        }
    }
    found.sort();
    found
}
