//! Whether an object in a file that has one of the server's names, or hangs on one of its tables, is what
//! the server (or its Python forerunner) makes.
//!
//! It reads the schema and changes nothing.

use super::tables::{SchemaFault, ServerObject, Stored, ours};
use crate::sqlite::stored_sql::words;
use rusqlite::Connection;

/// Judges one object by its kind, name and stored text.
pub(super) fn judge(object: &Stored) -> Result<(), SchemaFault> {
    let Stored { kind, name, table, .. } = object;
    let found = words(object.sql.as_deref().unwrap_or_default());
    match ours(name) {
        Some(expected)
            if expected.kind != kind
                || expected.name != name
                || !expected.table.eq_ignore_ascii_case(table) =>
        {
            foreign(format!("the {kind} `{name}` has a name that belongs to the server"))
        }
        Some(expected) => match expected.kind {
            "table" if object.root_page == 0 => {
                foreign(format!("`{name}` is a virtual table, not the server's table"))
            }
            "table" => judge_table(name, &found),
            "trigger" if is_append_only_trigger(expected, &found) => Ok(()),
            _ if found == words(expected.sql) => Ok(()),
            _ => foreign(format!("the {kind} `{name}` is not as the server makes it")),
        },
        None if kind == "index" => Ok(()),
        None => foreign(format!("the {kind} `{name}` on `{table}` is not the server's")),
    }
}

/// Nothing in the table's own text may run code, replace rows or point elsewhere; the columns
/// themselves are looked at by [`columns_are_complete`].
fn judge_table(name: &str, found: &[String]) -> Result<(), SchemaFault> {
    const NOT_OURS: &[&str] =
        &["check", "references", "generated", "as", "collate", "conflict", "without", "foreign", "strict"];
    match found.iter().find(|word| NOT_OURS.contains(&word.as_str())) {
        Some(word) => foreign(format!(
            "the table `{name}` is not the server's (its definition says {})",
            word.to_uppercase()
        )),
        None => Ok(()),
    }
}

/// The trigger as we make it, or as the Python server did: `BEFORE UPDATE` or `BEFORE DELETE` and
/// nothing but a RAISE.
fn is_append_only_trigger(expected: &ServerObject, found: &[String]) -> bool {
    let without_message = |words: &[String]| -> Vec<String> {
        words
            .iter()
            .map(|word| match word.as_str() {
                "fail" | "rollback" => "abort".to_owned(),
                text if text.starts_with('\'') => "''".to_owned(),
                other => other.to_owned(),
            })
            .collect()
    };
    let mut found = found.to_vec();
    if let Some(at) = found.windows(3).position(|three| three == ["for", "each", "row"]) {
        found.drain(at..at + 3);
    }
    without_message(&found) == without_message(&words(expected.sql))
}

/// Whether the table has all columns; false for the Python server's checkpoints, which lack `hash`.
pub(super) fn columns_are_complete(
    connection: &Connection,
    table: &ServerObject,
) -> Result<bool, SchemaFault> {
    let found = columns(connection, table.name)?;
    let expected: &[(&str, &str)] = match table.name {
        "memory_events" => &[
            ("id", "INTEGER"),
            ("ts", "TEXT"),
            ("session", "TEXT"),
            ("kind", "TEXT"),
            ("content", "TEXT"),
            ("prev_hash", "TEXT"),
            ("hash", "TEXT"),
        ],
        "memory_checkpoints" => &[
            ("id", "INTEGER"),
            ("ts", "TEXT"),
            ("session", "TEXT"),
            ("summary", "TEXT"),
            ("last_event_id", "INTEGER"),
            ("head_hash", "TEXT"),
            ("hash", "TEXT"),
        ],
        _ => &[
            ("id", "INTEGER"),
            ("ts", "TEXT"),
            ("session", "TEXT"),
            ("tool", "TEXT"),
            ("query", "TEXT"),
            ("ok", "INTEGER"),
            ("rows", "INTEGER"),
            ("error", "TEXT"),
            ("duration_ms", "INTEGER"),
            ("detail", "TEXT"),
        ],
    };
    let same = |expected: &[(&str, &str)]| {
        found.len() == expected.len()
            && found.iter().zip(expected).enumerate().all(|(at, (column, (name, declared)))| {
                column.name == *name
                    && column.declared.eq_ignore_ascii_case(declared)
                    && column.key == i64::from(at == 0)
                    && column.hidden == 0
            })
    };
    if same(expected) {
        return Ok(true);
    }
    let without_hash = expected.split_last().map_or(expected, |(_, head)| head);
    if table.name == "memory_checkpoints" && same(without_hash) {
        return Ok(false);
    }
    let names: Vec<_> = found.iter().map(|column| column.name.as_str()).collect();
    foreign(format!(
        "the table `{}` is not the server's: it has the columns ({})",
        table.name,
        names.join(", ")
    ))
}

struct Column {
    name: String,
    declared: String,
    key: i64,
    hidden: i64,
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<Column>> {
    let mut statement = connection.prepare(&format!("PRAGMA main.table_xinfo({table})"))?;
    let columns = statement.query_map([], |row| {
        Ok(Column {
            name: row.get("name")?,
            declared: row.get("type")?,
            key: row.get("pk")?,
            hidden: row.get("hidden")?,
        })
    })?;
    columns.collect()
}

/// What `PRAGMA index_xinfo` gives as `cid` of an expression (<https://sqlite.org/pragma.html#pragma_index_xinfo>).
const EXPRESSION: i64 = -2;

/// A person may index the server's tables; an expression or a condition would run at each insert.
pub(super) fn judge_index(connection: &Connection, index: &Stored) -> Result<(), SchemaFault> {
    if index.sql.is_none() || ours(&index.name).is_some() {
        return Ok(());
    }
    let found = words(index.sql.as_deref().unwrap_or_default());
    // The PRAGMA, not the table-valued function: a file may hold a view of that name.
    let quoted = index.name.replace('"', "\"\"");
    let mut statement = connection.prepare(&format!("PRAGMA main.index_xinfo(\"{quoted}\")"))?;
    let columns = statement.query_map([], |row| row.get::<_, i64>("cid"))?.collect::<Result<Vec<_>, _>>()?;
    if columns.contains(&EXPRESSION)
        || found.iter().any(|word| matches!(word.as_str(), "where" | "collate" | "unique"))
    {
        return foreign(format!(
            "the index `{}` on `{}` is not the server's and would run code or refuse rows at each insert",
            index.name, index.table
        ));
    }
    Ok(())
}

pub(super) fn foreign<T>(what: String) -> Result<T, SchemaFault> {
    Err(SchemaFault::Foreign(what))
}
