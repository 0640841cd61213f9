//! Reads the schema as data: tables with row counts, one table's columns, keys and indexes, all DDL.
//!
//! Fixed SQL over SQLite's own catalog (<https://sqlite.org/pragma.html#pragma_table_list>,
//! <https://sqlite.org/schematab.html>), in one read transaction, under the watch. It renders nothing.

use super::fault::Fault;
use super::guard::Guarded;
use super::objects::quoted;
use crate::error::ErrorCode;
use crate::policy::Hidden;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

/// A table or view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableEntry {
    /// Its name as stored.
    pub name: String,
    /// Whether it is a view.
    pub view: bool,
    /// Whether it belongs to the server.
    pub system: bool,
    /// How many columns it has, hidden ones aside.
    pub columns: u64,
    /// Rows; none for views, for a table that cannot be read, and after the deadline.
    pub rows: Option<u64>,
}

/// A column (<https://sqlite.org/pragma.html#pragma_table_xinfo>).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its place, from 0.
    pub cid: i64,
    /// Its name.
    pub name: String,
    /// The declared type, possibly empty.
    pub declared_type: String,
    /// NOT NULL.
    pub not_null: bool,
    /// The default as SQL text.
    pub default: Option<String>,
    /// Its place in the primary key from 1; 0 if it is not part of it.
    pub primary_key: i64,
    /// 0 plain, 1 hidden, 2 generated virtual, 3 generated stored.
    pub hidden: i64,
}

/// A foreign key, composite ones kept together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// Columns here.
    pub from: Vec<String>,
    /// The table referred to.
    pub table: String,
    /// Columns there; none where the declaration leaves them to the primary key.
    pub to: Vec<Option<String>>,
    /// ON UPDATE.
    pub on_update: String,
    /// ON DELETE.
    pub on_delete: String,
}

/// An index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// UNIQUE.
    pub unique: bool,
    /// `c` by CREATE INDEX, `u` by a UNIQUE constraint, `pk` by a PRIMARY KEY.
    pub origin: String,
    /// Whether it has a WHERE clause.
    pub partial: bool,
    /// Columns; none for an expression.
    pub columns: Vec<Option<String>>,
}

/// Everything about one table or view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDescription {
    /// Its name as stored.
    pub name: String,
    /// Whether it is a view.
    pub view: bool,
    /// Columns in order.
    pub columns: Vec<Column>,
    /// Foreign keys.
    pub foreign_keys: Vec<ForeignKey>,
    /// Indexes.
    pub indexes: Vec<Index>,
    /// Rows, where counted in time.
    pub rows: Option<u64>,
    /// The CREATE statement.
    pub sql: Option<String>,
}

/// One stored definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// `table`, `index`, `view` or `trigger`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The text as stored.
    pub sql: String,
}

/// All definitions shown, and how many were not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// Tables, then indexes, views and triggers, by name.
    pub definitions: Vec<Definition>,
    /// The server's own objects that were left out.
    pub hidden: u64,
    /// Whether definitions were left out because the text grew beyond the caller's bound.
    pub cut: bool,
}

impl Guarded {
    /// The tables and views of the file, the user's first, by name. Shadow tables and SQLite's own are
    /// left out, and what is hidden. A table that cannot be read costs its own count only.
    ///
    /// # Errors
    /// What SQLite reports while it reads the catalog; cancellation.
    pub fn tables(&self, counts: bool) -> Result<Vec<TableEntry>, Fault> {
        let bounds = self.bounds()?;
        self.in_read(|conn| {
            let sql = "SELECT name, type, ncol FROM pragma_table_list
                       WHERE schema = 'main' AND type <> 'shadow' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
                       ORDER BY name COLLATE NOCASE, name";
            let mut statement = conn.prepare_cached(sql)?;
            let mut entries = statement
                .query_map([], |row| {
                    let name: String = row.get(0)?;
                    Ok(TableEntry {
                        view: row.get_ref(1)?.as_str().is_ok_and(|kind| kind == "view"),
                        system: self.protected().owns(&name),
                        columns: row.get::<_, i64>(2)?.unsigned_abs(),
                        rows: None,
                        name,
                    })
                })?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            entries.retain(|entry| !bounds.hidden.is_left_out(&entry.name));
            for entry in &mut entries {
                let hidden = u64::try_from(bounds.hidden.columns_of(&entry.name).count()).unwrap_or(0);
                entry.columns = entry.columns.saturating_sub(hidden);
            }
            entries.sort_by_key(|entry| entry.system);
            if counts {
                for entry in entries.iter_mut().filter(|entry| !entry.view) {
                    entry.rows = self.row_count(conn, &entry.name);
                }
            }
            Ok(entries)
        })
    }

    /// Describes one table or view, whose name is matched without regard to ASCII case. Hidden columns and
    /// what is built on them is left out, but for the stored text.
    ///
    /// # Errors
    /// `UNKNOWN_TABLE`, with names that are near; the refusal of a hidden table; what SQLite reports.
    pub fn describe(&self, table: &str, count: bool) -> Result<TableDescription, Fault> {
        let bounds = self.bounds()?;
        let hidden = &bounds.hidden;
        let found = self.in_read(|conn| {
            let Some((name, view)) = find_table(conn, table)? else {
                return Ok(Err(unknown_table(table, &shown(hidden, table_names(conn)?))));
            };
            if let Err(refusal) = hidden.must_show(&name) {
                return Ok(Err(refusal.into()));
            }
            let sql = "SELECT sql FROM main.sqlite_schema WHERE name = ?1 AND type IN ('table', 'view')";
            let stored = conn.prepare_cached(sql)?.query_row([&name], |row| row.get(0));
            Ok(Ok(TableDescription {
                columns: shown_columns(hidden, &name, columns(conn, &name)?),
                foreign_keys: shown_keys(hidden, &name, foreign_keys(conn, &name)?),
                indexes: shown_indexes(hidden, &name, indexes(conn, &name)?),
                rows: if count && !view { self.row_count(conn, &name) } else { None },
                sql: stored.unwrap_or(None),
                view,
                name,
            }))
        })?;
        found
    }

    /// The stored definitions, up to about `max_bytes` of text; not those of hidden tables and their indexes
    /// and triggers.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn definitions(&self, include_system: bool, max_bytes: usize) -> Result<Schema, Fault> {
        let bounds = self.bounds()?;
        self.in_read(|conn| {
            let sql = "SELECT s.type, s.name, s.sql, s.tbl_name FROM main.sqlite_schema AS s
                       LEFT JOIN pragma_table_list AS l ON l.schema = 'main' AND l.name = s.tbl_name
                       WHERE s.sql IS NOT NULL AND s.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
                         AND coalesce(l.type, '') <> 'shadow'
                       ORDER BY CASE s.type WHEN 'table' THEN 0 WHEN 'index' THEN 1 WHEN 'view' THEN 2 ELSE 3 END,
                                s.name COLLATE NOCASE, s.name";
            let mut statement = conn.prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            let mut schema = Schema { definitions: Vec::new(), hidden: 0, cut: false };
            let mut bytes = 0;
            while let Some(row) = rows.next()? {
                let (name, table): (String, String) = (row.get(1)?, row.get(3)?);
                if bounds.hidden.is_left_out(&name) || bounds.hidden.is_left_out(&table) {
                    continue;
                }
                let system = self.protected().owns(&name) || self.protected().owns(&table);
                if system && !include_system {
                    schema.hidden += 1;
                    continue;
                }
                if bytes > max_bytes {
                    schema.cut = true;
                    break;
                }
                let sql: String = row.get(2)?;
                bytes += sql.len();
                schema.definitions.push(Definition { kind: row.get(0)?, name, sql });
            }
            Ok(schema)
        })
    }

    /// Whether the log holds the row of this call.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn was_committed(&self, session: &str, call: i64) -> Result<bool, Fault> {
        let sql = "SELECT EXISTS (SELECT 1 FROM main.query_log
                   WHERE session = ?1 AND json_extract(detail, '$.call') = ?2)";
        self.in_read(|conn| conn.prepare_cached(sql)?.query_row((session, call), |row| row.get(0)))
    }

    /// Runs fixed SQL in one read transaction: one view of the file, one lock.
    pub(super) fn in_read<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Fault> {
        let conn = self.trusted();
        let begun = conn.prepare_cached("BEGIN").and_then(|mut statement| statement.execute([]));
        let result = begun.and_then(|_| work(conn)).map_err(|error| self.fault(&error));
        if !conn.is_autocommit() {
            // A read transaction has nothing to lose; if even ROLLBACK fails the next BEGIN reports it.
            let _ = conn.execute_batch("ROLLBACK");
        }
        result
    }

    /// Rows of a table; none where it cannot be read or the time is up.
    fn row_count(&self, conn: &Connection, name: &str) -> Option<u64> {
        if self.watch().must_stop() {
            return None;
        }
        let sql = format!("SELECT count(*) FROM main.{}", quoted(name));
        conn.prepare(&sql)
            .and_then(|mut statement| statement.query_row([], |row| row.get::<_, i64>(0)))
            .ok()
            .map(i64::unsigned_abs)
    }
}

/// The names that are not left out of lists.
pub(super) fn shown(hidden: &Hidden, mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| !hidden.is_left_out(name));
    names
}

/// The columns that are not hidden.
pub(super) fn shown_columns(hidden: &Hidden, table: &str, mut columns: Vec<Column>) -> Vec<Column> {
    columns.retain(|column| hidden.column(table, &column.name).is_none());
    columns
}

fn shown_keys(hidden: &Hidden, table: &str, mut keys: Vec<ForeignKey>) -> Vec<ForeignKey> {
    keys.retain(|key| {
        let there = key.to.iter().flatten().any(|column| hidden.column(&key.table, column).is_some());
        let here = key.from.iter().any(|column| hidden.column(table, column).is_some());
        !here && !there && !hidden.is_left_out(&key.table)
    });
    keys
}

fn shown_indexes(hidden: &Hidden, table: &str, mut indexes: Vec<Index>) -> Vec<Index> {
    indexes.retain(|index| {
        !index.columns.iter().flatten().any(|column| hidden.column(table, column).is_some())
    });
    indexes
}

/// The stored name of a table or view and whether it is a view.
pub(super) fn find_table(conn: &Connection, table: &str) -> rusqlite::Result<Option<(String, bool)>> {
    let sql = "SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND name = ?1 COLLATE NOCASE
               ORDER BY name = ?1 DESC LIMIT 1";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([table])?;
    match rows.next()? {
        Some(row) => Ok(Some((row.get(0)?, row.get_ref(1)?.as_str().is_ok_and(|kind| kind == "view")))),
        None => Ok(None),
    }
}

/// Names of tables and views that an agent may mean.
pub(super) fn table_names(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name FROM pragma_table_list
               WHERE schema = 'main' AND type <> 'shadow' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
               ORDER BY name COLLATE NOCASE LIMIT 500";
    let mut statement = conn.prepare_cached(sql)?;

    statement.query_map([], |row| row.get(0))?.collect()
}

/// The error for a table that is not there, with near names first.
pub(super) fn unknown_table(table: &str, names: &[String]) -> Fault {
    Fault::error(
        ErrorCode::UnknownTable,
        format!("there is no table or view `{table}`; {}; list_tables shows them all", near(table, names)),
    )
}

/// Near names, or some of the known ones.
pub(super) fn near(wanted: &str, names: &[String]) -> String {
    let wanted = wanted.to_lowercase();
    let mut close: Vec<(f64, &String)> = names
        .iter()
        .map(|name| (strsim::jaro_winkler(&wanted, &name.to_lowercase()), name))
        .filter(|(score, _)| *score > 0.8)
        .collect();
    close.sort_by(|a, b| b.0.total_cmp(&a.0));
    let list = |names: Vec<&String>| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    if names.is_empty() {
        "there are none".to_owned()
    } else if close.is_empty() {
        format!("there are {}", list(names.iter().take(20).collect()))
    } else {
        let rest =
            names.iter().filter(|name| !close.iter().any(|(_, c)| c == name)).take(10).collect::<Vec<_>>();
        let near = list(close.iter().take(5).map(|(_, name)| *name).collect());
        if rest.is_empty() {
            format!("near is {near}")
        } else {
            format!("near is {near}; there are also {}", list(rest))
        }
    }
}

/// The stored name of a column, with near names in the error.
pub(super) fn real_name(columns: &[&Column], table: &str, wanted: &str) -> Result<String, Fault> {
    let exact = columns.iter().find(|column| column.name == wanted);
    let any_case = || columns.iter().find(|column| column.name.eq_ignore_ascii_case(wanted));
    exact.or_else(any_case).map(|column| column.name.clone()).ok_or_else(|| {
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        Fault::error(
            ErrorCode::UnknownColumn,
            format!("`{table}` has no column `{wanted}`; {}", near(wanted, &names)),
        )
    })
}

/// A name of the rowid that no column hides (<https://sqlite.org/rowidtable.html>).
pub(super) fn rowid_alias(columns: &[Column]) -> Option<&'static str> {
    ["rowid", "_rowid_", "oid"]
        .into_iter()
        .find(|alias| !columns.iter().any(|column| column.name.eq_ignore_ascii_case(alias)))
}

/// Whether the rowid is the value of a hidden column.
pub(super) fn rowid_is_hidden(hidden: &Hidden, table: &str, columns: &[Column]) -> bool {
    let keys: Vec<&Column> = columns.iter().filter(|column| column.primary_key > 0).collect();
    matches!(keys.as_slice(), [key] if key.declared_type.eq_ignore_ascii_case("integer")
        && hidden.column(table, &key.name).is_some())
}

pub(super) fn columns(conn: &Connection, table: &str) -> rusqlite::Result<Vec<Column>> {
    let sql = "SELECT cid, name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?1)";
    let mut statement = conn.prepare_cached(sql)?;

    statement
        .query_map([table], |row| {
            Ok(Column {
                cid: row.get(0)?,
                name: row.get(1)?,
                declared_type: row.get(2)?,
                not_null: row.get(3)?,
                default: row.get(4)?,
                primary_key: row.get(5)?,
                hidden: row.get(6)?,
            })
        })?
        .collect()
}

fn foreign_keys(conn: &Connection, table: &str) -> rusqlite::Result<Vec<ForeignKey>> {
    let sql = "SELECT id, \"table\", \"from\", \"to\", on_update, on_delete
               FROM pragma_foreign_key_list(?1) ORDER BY id, seq";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([table])?;
    let mut keys: Vec<(i64, ForeignKey)> = Vec::new();
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let (from, to): (String, Option<String>) = (row.get(2)?, row.get(3)?);
        match keys.last_mut() {
            Some((last, key)) if *last == id => {
                key.from.push(from);
                key.to.push(to);
            }
            _ => keys.push((
                id,
                ForeignKey {
                    from: vec![from],
                    table: row.get(1)?,
                    to: vec![to],
                    on_update: row.get(4)?,
                    on_delete: row.get(5)?,
                },
            )),
        }
    }
    Ok(keys.into_iter().map(|(_, key)| key).collect())
}

fn indexes(conn: &Connection, table: &str) -> rusqlite::Result<Vec<Index>> {
    let sql = "SELECT name, \"unique\", origin, partial FROM pragma_index_list(?1) ORDER BY seq";
    let mut statement = conn.prepare_cached(sql)?;
    let mut indexes = statement
        .query_map([table], |row| {
            Ok(Index {
                name: row.get(0)?,
                unique: row.get(1)?,
                origin: row.get(2)?,
                partial: row.get(3)?,
                columns: Vec::new(),
            })
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let mut members = conn.prepare_cached("SELECT name FROM pragma_index_info(?1) ORDER BY seqno")?;
    for index in &mut indexes {
        index.columns =
            members.query_map([&index.name], |row| row.get(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    }
    Ok(indexes)
}
