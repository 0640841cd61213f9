//! The server's tables, index, view and triggers as SQL, and the judgement over what a file already
//! holds under their names.
//!
//! It changes nothing; `bootstrap.rs` does what [`missing`] says is to be done.

use super::judge::{columns_are_complete, foreign, judge, judge_index};
use rusqlite::Connection;

/// One object the server makes.
#[derive(Debug, PartialEq, Eq)]
pub struct ServerObject {
    /// `table`, `index`, `trigger` or `view`, as in `sqlite_schema.type`.
    pub kind: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The table it belongs to; its own name for tables and views.
    pub table: &'static str,
    /// The statement that makes it.
    pub sql: &'static str,
}

/// The three append-only tables.
pub const TABLES: &[&str] = &["memory_events", "memory_checkpoints", "query_log"];

macro_rules! append_only {
    ($table:literal, $taken:literal) => {
        [
            ServerObject {
                kind: "trigger",
                name: concat!($table, "_no_update"),
                table: $table,
                sql: concat!(
                    "CREATE TRIGGER ",
                    $table,
                    "_no_update BEFORE UPDATE ON ",
                    $table,
                    " BEGIN SELECT RAISE(ABORT, '",
                    $table,
                    " is append-only'); END"
                ),
            },
            ServerObject {
                kind: "trigger",
                name: concat!($table, "_no_delete"),
                table: $table,
                sql: concat!(
                    "CREATE TRIGGER ",
                    $table,
                    "_no_delete BEFORE DELETE ON ",
                    $table,
                    " BEGIN SELECT RAISE(ABORT, '",
                    $table,
                    " is append-only'); END"
                ),
            },
            // INSERT OR REPLACE deletes the row in its way without firing a delete trigger.
            ServerObject {
                kind: "trigger",
                name: concat!($table, "_no_replace"),
                table: $table,
                sql: concat!(
                    "CREATE TRIGGER ",
                    $table,
                    "_no_replace BEFORE INSERT ON ",
                    $table,
                    " WHEN EXISTS (SELECT 1 FROM ",
                    $table,
                    " WHERE ",
                    $taken,
                    ")",
                    " BEGIN SELECT RAISE(ABORT, '",
                    $table,
                    " is append-only'); END"
                ),
            },
        ]
    };
}

/// The tables, the index and the view, in the order they are made.
pub const OBJECTS: &[ServerObject] = &[
    ServerObject {
        kind: "table",
        name: "memory_events",
        table: "memory_events",
        sql: "CREATE TABLE memory_events (id INTEGER PRIMARY KEY, ts TEXT NOT NULL, session TEXT NOT NULL, \
              kind TEXT NOT NULL DEFAULT 'note', content TEXT NOT NULL, prev_hash TEXT NOT NULL, \
              hash TEXT NOT NULL UNIQUE)",
    },
    ServerObject {
        kind: "table",
        name: "memory_checkpoints",
        table: "memory_checkpoints",
        sql: "CREATE TABLE memory_checkpoints (id INTEGER PRIMARY KEY, ts TEXT NOT NULL, \
              session TEXT NOT NULL, summary TEXT NOT NULL, last_event_id INTEGER NOT NULL, \
              head_hash TEXT NOT NULL, hash TEXT)",
    },
    ServerObject {
        kind: "table",
        name: "query_log",
        table: "query_log",
        sql: "CREATE TABLE query_log (id INTEGER PRIMARY KEY, ts TEXT NOT NULL, session TEXT NOT NULL, \
              tool TEXT NOT NULL, query TEXT, ok INTEGER NOT NULL, rows INTEGER, error TEXT, \
              duration_ms INTEGER NOT NULL, detail TEXT)",
    },
    ServerObject {
        kind: "index",
        name: "query_log_ts",
        table: "query_log",
        sql: "CREATE INDEX query_log_ts ON query_log(ts)",
    },
    ServerObject {
        kind: "view",
        name: "query_errors",
        table: "query_errors",
        sql: "CREATE VIEW query_errors AS\n\
              -- description: calls that failed, newest first; read it to see which names and statements go wrong\n\
              SELECT id, ts, tool, query, error FROM query_log WHERE ok = 0 ORDER BY id DESC",
    },
];

/// The triggers that keep the three tables append-only, three to a table.
pub const TRIGGERS: &[[ServerObject; 3]] = &[
    append_only!("memory_events", "id = NEW.id OR hash = NEW.hash"),
    append_only!("memory_checkpoints", "id = NEW.id"),
    append_only!("query_log", "id = NEW.id"),
];

/// What is to be done to a file before it can be served.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Objects to make, in order.
    pub objects: Vec<&'static ServerObject>,
    /// The checkpoints are the Python server's: `hash` is to be added and filled.
    pub checkpoint_hash: bool,
    /// Triggers whose table was there without them: somebody dropped them.
    pub dropped: Vec<&'static str>,
}

impl Missing {
    /// Whether the file is complete.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.objects.is_empty() && !self.checkpoint_hash
    }
}

/// A row of `sqlite_schema`.
pub(super) struct Stored {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) table: String,
    pub(super) root_page: i64,
    pub(super) sql: Option<String>,
}

/// Why a file's schema cannot be used.
#[derive(Debug)]
pub enum SchemaFault {
    /// SQLite's error while looking.
    Sqlite(rusqlite::Error),
    /// An object under a name of the server's that is not the server's, in words.
    Foreign(String),
}

impl From<rusqlite::Error> for SchemaFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Looks at everything in the file that has one of the server's names or hangs on one of its tables.
///
/// # Errors
/// Something of that kind is not the server's, or SQLite cannot read the schema.
pub fn missing(connection: &Connection) -> Result<Missing, SchemaFault> {
    let stored = stored_objects(connection)?;
    for object in &stored {
        judge(object)?;
    }
    let has = |name: &str| stored.iter().any(|object| object.name == name);
    let mut missing = Missing::default();
    for object in OBJECTS {
        if !has(object.name) {
            missing.objects.push(object);
        } else if object.kind == "table" {
            missing.checkpoint_hash |= !columns_are_complete(connection, object)?;
        }
    }
    for object in stored.iter().filter(|object| object.kind == "index") {
        judge_index(connection, object)?;
    }
    let takes_over = missing.checkpoint_hash || !has("query_log");
    for trigger in TRIGGERS.iter().flatten().filter(|trigger| !has(trigger.name)) {
        missing.objects.push(trigger);
        let never_had = takes_over && trigger.name.ends_with("_no_replace");
        if has(trigger.table) && !never_had {
            missing.dropped.push(trigger.name);
        }
    }
    Ok(missing)
}

/// Everything in the file that has one of the server's names, or hangs on one of its tables, and is not the
/// server's; in words. [`missing`] stops at the first.
///
/// # Errors
/// SQLite cannot read the schema.
pub fn foreign_objects(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut foreign = Vec::new();
    for object in &stored_objects(connection)? {
        let judged = judge(object).and_then(|()| match (object.kind.as_str(), ours(&object.name)) {
            ("table", Some(expected)) => columns_are_complete(connection, expected).map(|_| ()),
            ("index", _) => judge_index(connection, object),
            _ => Ok(()),
        });
        match judged {
            Ok(()) => {}
            Err(SchemaFault::Foreign(what)) => foreign.push(what),
            Err(SchemaFault::Sqlite(error)) => return Err(error),
        }
    }
    Ok(foreign)
}

/// What the reading connection needs to know of a file it may not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readable {
    /// Whether checkpoints have the column `hash`.
    pub checkpoint_hash: bool,
}

/// Whether `memory_events` and `memory_checkpoints` are there and are the server's. Triggers do not
/// matter for reading.
///
/// # Errors
/// One is absent or not the server's, or SQLite cannot read the schema.
pub fn readable(connection: &Connection) -> Result<Readable, SchemaFault> {
    let stored = stored_objects(connection)?;
    let mut checkpoint_hash = false;
    for table in OBJECTS.iter().filter(|object| matches!(object.name, "memory_events" | "memory_checkpoints"))
    {
        let Some(found) = stored.iter().find(|object| object.name.eq_ignore_ascii_case(table.name)) else {
            return foreign(format!(
                "the file has no table `{}`; open it once without --read-only to have it made",
                table.name
            ));
        };
        judge(found)?;
        checkpoint_hash = columns_are_complete(connection, table)?;
    }
    Ok(Readable { checkpoint_hash })
}

/// Whether there is an ordinary table of one of the server's names.
pub(super) fn has_table(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name = ?1";
    connection.query_row(sql, [name], |row| row.get::<_, i64>(0)).map(|count| count > 0)
}

pub(super) fn ours(name: &str) -> Option<&'static ServerObject> {
    OBJECTS.iter().chain(TRIGGERS.iter().flatten()).find(|object| object.name.eq_ignore_ascii_case(name))
}

pub(super) fn is_our_table_or_view(name: &str) -> bool {
    OBJECTS.iter().any(|object| object.kind != "index" && object.name.eq_ignore_ascii_case(name))
}

/// Everything with one of the server's names or on one of its tables, in the order of its making.
pub(super) fn stored_objects(connection: &Connection) -> rusqlite::Result<Vec<Stored>> {
    let mut statement = connection
        .prepare("SELECT type, name, tbl_name, rootpage, sql FROM main.sqlite_schema ORDER BY rowid")?;
    let mut rows = statement.query([])?;
    let mut objects = Vec::new();
    while let Some(row) = rows.next()? {
        let text = |column: usize| -> rusqlite::Result<Option<String>> {
            let bytes = row.get_ref(column)?.as_bytes_or_null().unwrap_or_default();
            Ok(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
        };
        let object = Stored {
            kind: text(0)?.unwrap_or_default(),
            name: text(1)?.unwrap_or_default(),
            table: text(2)?.unwrap_or_default(),
            root_page: row.get_ref(3)?.as_i64().unwrap_or_default(),
            sql: text(4)?,
        };
        if ours(&object.name).is_some() || is_our_table_or_view(&object.table) {
            objects.push(object);
        }
    }
    Ok(objects)
}
