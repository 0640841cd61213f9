//! Reads the schema as data: tables with row counts, one table's columns, keys and indexes, all DDL.
//!
//! Fixed SQL over SQLite's own catalog (<https://sqlite.org/pragma.html#pragma_table_list>,
//! <https://sqlite.org/schematab.html>), in one read transaction, under the watch. It renders nothing.

use super::fault::Fault;
use super::guard::Guarded;
use super::names::{find_table, table_names, unknown_table};
use super::objects::{Catalog, quoted, text};
use super::shown::{shown, shown_columns, shown_indexes, shown_keys};
use crate::policy::decide::{ObjectKind, Objects};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde::{Deserialize, Serialize};

/// Bytes of a file within which counting the rows of a table takes a moment at most.
const QUICKLY_COUNTED: i64 = 16 << 20;
/// Tables counted by one statement; SQLite takes 500 parts.
const COUNTED_TOGETHER: usize = 100;

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

impl TableDescription {
    /// Whether the primary key is another name of the rowid, which is never NULL: one column of the type
    /// INTEGER, without an index of its own (<https://sqlite.org/lang_createtable.html#rowids_and_the_integer_primary_key>).
    #[must_use]
    pub fn key_is_rowid(&self) -> bool {
        let mut key = self.columns.iter().filter(|column| column.primary_key > 0);
        let integer = key.next().is_some_and(|column| column.declared_type.eq_ignore_ascii_case("integer"));
        integer && key.next().is_none() && !self.indexes.iter().any(|index| index.origin == "pk")
    }
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
            let catalog = Catalog::read(conn)?;
            let mut entries: Vec<TableEntry> = catalog
                .shown()
                .into_iter()
                .map(|entry| TableEntry {
                    name: entry.name.clone(),
                    view: entry.kind == ObjectKind::View,
                    system: self.protected().owns(&entry.name),
                    columns: entry.columns,
                    rows: None,
                })
                .collect();
            entries.retain(|entry| !bounds.hidden.is_left_out(&entry.name));
            for entry in &mut entries {
                // table_list counts the hidden columns of a virtual table, too.
                if catalog.kind(&entry.name) == Some(ObjectKind::Virtual)
                    && let Ok(columns) = columns(conn, &entry.name)
                {
                    let shown = columns.iter().filter(|column| column.hidden != 1).count();
                    entry.columns = u64::try_from(shown).unwrap_or(u64::MAX);
                }
                let hidden = u64::try_from(bounds.hidden.columns_of(&entry.name).count()).unwrap_or(0);
                entry.columns = entry.columns.saturating_sub(hidden);
            }
            entries.sort_by_key(|entry| entry.system);
            if counts {
                let mut tables: Vec<&mut TableEntry> =
                    entries.iter_mut().filter(|entry| !entry.view).collect();
                for tables in tables.chunks_mut(COUNTED_TOGETHER) {
                    self.count_rows(conn, tables);
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
        self.in_read(|conn| {
            let Some((name, view)) = find_table(&Catalog::read_one(conn, table)?, table) else {
                let names = table_names(&Catalog::read(conn)?);
                return Ok(Err(unknown_table(table, &shown(hidden, names))));
            };
            if let Err(refusal) = hidden.must_show(&name) {
                return Ok(Err(refusal.into()));
            }
            let sql = "SELECT sql FROM main.sqlite_schema WHERE name = ?1 AND type IN ('table', 'view')";
            let stored = conn.prepare_cached(sql)?.query_row([&name], |row| text(row, 0)).ok();
            Ok(Ok(TableDescription {
                columns: shown_columns(hidden, &name, columns(conn, &name)?),
                foreign_keys: shown_keys(hidden, &name, foreign_keys(conn, &name)?),
                indexes: shown_indexes(hidden, &name, indexes(conn, &name)?),
                rows: if count && !view { self.row_count(conn, &name) } else { None },
                sql: stored,
                view,
                name,
            }))
        })?
    }

    /// The stored definitions, up to about `max_bytes` of text; not those of hidden tables and their indexes
    /// and triggers.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn definitions(&self, include_system: bool, max_bytes: usize) -> Result<Schema, Fault> {
        let bounds = self.bounds()?;
        self.in_read(|conn| {
            let catalog = Catalog::read(conn)?;
            let sql = "SELECT type, name, sql, tbl_name FROM main.sqlite_schema
                       WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
                       ORDER BY CASE type WHEN 'table' THEN 0 WHEN 'index' THEN 1 WHEN 'view' THEN 2 ELSE 3 END,
                                name COLLATE NOCASE, name";
            let mut statement = conn.prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            let mut schema = Schema { definitions: Vec::new(), hidden: 0, cut: false };
            let mut bytes = 0;
            while let Some(row) = rows.next()? {
                let (name, table) = (text(row, 1)?, text(row, 3)?);
                let left_out = bounds.hidden.is_left_out(&name) || bounds.hidden.is_left_out(&table);
                if left_out || catalog.kind(&table) == Some(ObjectKind::Shadow) {
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
                let sql = text(row, 2)?;
                bytes += sql.len();
                schema.definitions.push(Definition { kind: text(row, 0)?, name, sql });
            }
            Ok(schema)
        })
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

    /// Fills in the rows of tables: in a small file by one statement, which is kept for the next time, else or where
    /// that fails one by one.
    fn count_rows(&self, conn: &Connection, tables: &mut [&mut TableEntry]) {
        let count = |table: &&mut TableEntry| format!("SELECT count(*) FROM main.{}", quoted(&table.name));
        let together = || -> rusqlite::Result<Vec<i64>> {
            let sql = tables.iter().map(count).collect::<Vec<_>>().join(" UNION ALL ");
            conn.prepare_cached(&sql)?.query_map([], |row| row.get(0))?.collect()
        };
        let small = size(conn).is_ok_and(|bytes| bytes <= QUICKLY_COUNTED);
        let counted =
            if small && !self.watch().must_stop() { together().unwrap_or_default() } else { Vec::new() };
        for (at, table) in tables.iter_mut().enumerate() {
            table.rows = match counted.get(at) {
                Some(rows) => Some(rows.unsigned_abs()),
                None => self.row_count(conn, &table.name),
            };
        }
    }

    /// Rows of a table; none where it cannot be read or the time is up.
    fn row_count(&self, conn: &Connection, name: &str) -> Option<u64> {
        if self.watch().must_stop() {
            return None;
        }
        // count(*) alone is one instruction, within which nobody looks at the watch; count(1) is many.
        let small = size(conn).is_ok_and(|bytes| bytes <= QUICKLY_COUNTED);
        let sql = format!("SELECT count({}) FROM main.{}", if small { "*" } else { "1" }, quoted(name));
        conn.prepare(&sql)
            .and_then(|mut statement| statement.query_row([], |row| row.get::<_, i64>(0)))
            .ok()
            .map(i64::unsigned_abs)
    }
}

/// Bytes of the file.
fn size(conn: &Connection) -> rusqlite::Result<i64> {
    let pragma = |sql: &str| conn.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0));
    Ok(pragma("PRAGMA main.page_count")?.saturating_mul(pragma("PRAGMA main.page_size")?))
}

/// A name of the rowid that no column hides (<https://sqlite.org/rowidtable.html>).
pub(super) fn rowid_alias(columns: &[Column]) -> Option<&'static str> {
    ["rowid", "_rowid_", "oid"]
        .into_iter()
        .find(|alias| !columns.iter().any(|column| column.name.eq_ignore_ascii_case(alias)))
}

pub(super) fn columns(conn: &Connection, table: &str) -> rusqlite::Result<Vec<Column>> {
    looked_up(conn, "table_xinfo", table, |row| {
        Ok(Column {
            cid: row.get(0)?,
            name: text(row, 1)?,
            declared_type: text(row, 2)?,
            not_null: row.get(3)?,
            default: optional_text(row, 4)?,
            primary_key: row.get(5)?,
            hidden: row.get(6)?,
        })
    })
}

fn foreign_keys(conn: &Connection, table: &str) -> rusqlite::Result<Vec<ForeignKey>> {
    let mut columns = looked_up(conn, "foreign_key_list", table, |row| {
        let key = ForeignKey {
            from: vec![text(row, 3)?],
            table: text(row, 2)?,
            to: vec![optional_text(row, 4)?],
            on_update: text(row, 5)?,
            on_delete: text(row, 6)?,
        };
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, key))
    })?;
    columns.sort_by_key(|(id, place, _)| (*id, *place));
    let mut keys: Vec<(i64, ForeignKey)> = Vec::new();
    for (id, _, column) in columns {
        match keys.last_mut() {
            Some((last, key)) if *last == id => {
                key.from.extend(column.from);
                key.to.extend(column.to);
            }
            _ => keys.push((id, column)),
        }
    }
    Ok(keys.into_iter().map(|(_, key)| key).collect())
}

fn indexes(conn: &Connection, table: &str) -> rusqlite::Result<Vec<Index>> {
    let mut indexes = looked_up(conn, "index_list", table, |row| {
        Ok(Index {
            name: text(row, 1)?,
            unique: row.get(2)?,
            origin: text(row, 3)?,
            partial: row.get(4)?,
            columns: Vec::new(),
        })
    })?;
    for index in &mut indexes {
        index.columns = looked_up(conn, "index_info", &index.name, |row| optional_text(row, 2))?;
    }
    Ok(indexes)
}

/// The rows of an introspecting pragma. The PRAGMA, not the table-valued function: a file may hold a
/// table of that name.
fn looked_up<T>(
    conn: &Connection,
    pragma: &str,
    name: &str,
    row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let mut statement = conn.prepare(&format!("PRAGMA main.{pragma}({})", quoted(name)))?;

    statement.query_map([], row)?.collect()
}

fn optional_text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => text(row, column).map(Some),
    }
}
