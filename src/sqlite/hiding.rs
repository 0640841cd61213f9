//! Finds out what is hidden in a schema: what a policy file names, and what holds or is made from it.
//!
//! Generated columns, virtual tables over hidden columns and the tables those keep their data in, views
//! that read them, the samples of ANALYZE. Stored definitions are looked at as words, on the safe side:
//! one mention too many hides too much. It judges no statement.

use super::guard::Guarded;
use super::objects::{Catalog, quoted, text};
use super::stored_sql::words;
use crate::policy::decide::{ObjectKind, Objects};
use crate::policy::narrowing::HiddenPattern;
use crate::policy::{Action, ActionKind, Hidden, Narrowing};
use rusqlite::Connection;

/// The columns of ANALYZE's tables that hold or tell of values
/// (<https://sqlite.org/fileformat2.html#the_sqlite_stat4_table>).
const STATISTICS: &[(&str, &str)] = &[
    ("sqlite_stat1", "stat"),
    ("sqlite_stat3", "sample"),
    ("sqlite_stat4", "sample"),
    ("sqlite_stat4", "neq"),
    ("sqlite_stat4", "nlt"),
    ("sqlite_stat4", "ndlt"),
];

/// What the narrowing hides in the schema as it is now.
///
/// # Errors
/// What SQLite reports while the schema is read.
pub fn hidden(guarded: &Guarded, narrowing: &Narrowing) -> rusqlite::Result<Hidden> {
    let objects = Object::all(guarded.trusted())?;
    let mut hidden = Hidden::default();
    for pattern in &narrowing.hidden {
        name_directly(&mut hidden, pattern, &objects);
    }
    for object in objects.iter().filter(|object| object.kind == Kind::Table) {
        generated_columns(&mut hidden, object);
    }
    for (table, column) in STATISTICS {
        hidden.hide_column(table, column, Some("it holds samples of the tables".to_owned()));
    }
    loop {
        let before = hidden.len();
        for view in objects.iter().filter(|object| object.kind == Kind::View) {
            look_through(guarded, &mut hidden, view);
        }
        for object in objects.iter().filter(|object| object.kind == Kind::Virtual) {
            holds_hidden(&mut hidden, object, &objects);
        }
        for trigger in objects.iter().filter(|object| object.kind == Kind::Trigger) {
            feeds(&mut hidden, trigger, &objects);
        }
        if hidden.len() == before {
            return Ok(hidden);
        }
    }
}

/// What of the narrowing finds nothing in this schema, and what a hidden column is copied into: lines for
/// whoever wrote the file.
///
/// # Errors
/// What SQLite reports while the schema is read.
pub fn notes(guarded: &Guarded, narrowing: &Narrowing) -> rusqlite::Result<Vec<String>> {
    let objects = Object::all(guarded.trusted())?;
    let mut notes = Vec::new();
    for pattern in &narrowing.hidden {
        let table = pattern.table.as_str();
        let mut tables =
            objects.iter().filter(|object| object.is_table() && pattern.table.matches(&object.name));
        let Some(first) = tables.next() else {
            notes
                .push(format!("the policy file hides `{table}`, and the database has no such table or view"));
            continue;
        };
        for column in &pattern.columns {
            let found = std::iter::once(first).chain(tables.clone());
            if !found.flat_map(|object| &object.columns).any(|(name, _)| column.matches(name)) {
                let column = column.as_str();
                notes.push(format!(
                    "the policy file hides `{table}.{column}`, and the database has no such column"
                ));
            }
        }
    }
    for pattern in &narrowing.protected {
        if !objects.iter().any(|object| pattern.matches(&object.name)) {
            let name = pattern.as_str();
            notes.push(format!(
                "the policy file protects `{name}`, and the database has no such table or view"
            ));
        }
    }
    let hidden = hidden(guarded, narrowing)?;
    for trigger in objects.iter().filter(|object| object.kind == Kind::Trigger) {
        let Some(source) = reads_hidden(&hidden, trigger) else { continue };
        let into = objects.iter().filter(|object| object.kind == Kind::Table);
        for table in into.filter(|object| !object.name.eq_ignore_ascii_case(&trigger.table)) {
            let is_source = hidden.columns_of(&table.name).next().is_some();
            if hidden.table(&table.name).is_none() && !is_source && trigger.mentions(&table.name) {
                let (name, table) = (&trigger.name, &table.name);
                notes.push(format!(
                    "the trigger `{name}` may copy {source}, which is hidden, into `{table}`; hide that too if it does"
                ));
            }
        }
    }
    for table in objects.iter().filter(|object| object.kind == Kind::Table) {
        notes.extend(references(guarded.trusted(), &hidden, &table.name)?);
    }
    Ok(notes)
}

/// Columns of the table that refer to a hidden one, and so hold its values.
fn references(conn: &Connection, hidden: &Hidden, table: &str) -> rusqlite::Result<Vec<String>> {
    if hidden.table(table).is_some() {
        return Ok(Vec::new());
    }
    let mut statement = conn.prepare(&format!("PRAGMA main.foreign_key_list({})", quoted(table)))?;
    let mut rows = statement.query([])?;
    let mut notes = Vec::new();
    while let Some(row) = rows.next()? {
        let (parent, from, to) = (text(row, 2)?, text(row, 3)?, text(row, 4)?);
        let source = match hidden.table(&parent) {
            Some(whole) => Some(format!("`{}`", whole.name)),
            None => hidden.column(&parent, &to).map(|column| format!("`{parent}.{}`", column.name)),
        };
        if let Some(source) = source.filter(|_| hidden.column(table, &from).is_none()) {
            notes.push(format!(
                "`{table}.{from}` refers to {source}, which is hidden, and holds values of it; hide that too if they matter"
            ));
        }
    }
    Ok(notes)
}

/// The names of every function that this SQLite has, in lower case.
///
/// # Errors
/// What SQLite reports.
pub fn function_names() -> rusqlite::Result<Vec<String>> {
    let conn = Connection::open_in_memory()?;
    let mut statement = conn.prepare("SELECT DISTINCT lower(name) FROM pragma_function_list ORDER BY 1")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Table,
    Virtual,
    Shadow,
    View,
    Trigger,
}

/// A table, view or trigger of the schema.
#[derive(Debug)]
struct Object {
    kind: Kind,
    name: String,
    /// The table of a trigger.
    table: String,
    /// The definition.
    sql: String,
    /// Names, and whether they are generated.
    columns: Vec<(String, bool)>,
}

impl Object {
    fn all(conn: &Connection) -> rusqlite::Result<Vec<Self>> {
        let catalog = Catalog::read(conn)?;
        let sql = "SELECT type, name, tbl_name, sql FROM main.sqlite_schema
                   WHERE type IN ('table', 'view', 'trigger')";
        let mut statement = conn.prepare_cached(sql)?;
        let mut rows = statement.query([])?;
        let mut objects = Vec::new();
        while let Some(row) = rows.next()? {
            let kind = match (text(row, 0)?.as_str(), catalog.kind(&text(row, 1)?)) {
                ("view", _) => Kind::View,
                ("trigger", _) => Kind::Trigger,
                (_, Some(ObjectKind::Virtual)) => Kind::Virtual,
                (_, Some(ObjectKind::Shadow)) => Kind::Shadow,
                _ => Kind::Table,
            };
            let (name, table, sql) = (text(row, 1)?, text(row, 2)?, text(row, 3)?);
            objects.push(Self { kind, name, table, sql, columns: Vec::new() });
        }
        for object in objects.iter_mut().filter(|object| object.is_table()) {
            let sql = format!("PRAGMA main.table_xinfo({})", quoted(&object.name));
            // A view that does not compile and a module that is not there have no columns to hide.
            let Ok(mut statement) = conn.prepare(&sql) else { continue };
            let Ok(mut rows) = statement.query([]) else { continue };
            while let Ok(Some(row)) = rows.next() {
                object.columns.push((text(row, 1)?, row.get::<_, i64>(6)? > 1));
            }
        }
        Ok(objects)
    }

    fn is_table(&self) -> bool {
        self.kind != Kind::Trigger
    }

    fn mentions(&self, name: &str) -> bool {
        Hidden::mentions(&self.sql, name)
    }
}

/// What the file names itself.
fn name_directly(hidden: &mut Hidden, pattern: &HiddenPattern, objects: &[Object]) {
    for object in objects.iter().filter(|object| object.is_table() && pattern.table.matches(&object.name)) {
        if pattern.columns.is_empty() {
            hide_whole(hidden, object, None, objects);
            continue;
        }
        for (column, _) in &object.columns {
            if pattern.columns.iter().any(|pattern| pattern.matches(column)) {
                if object.kind == Kind::Virtual {
                    // A module answers for a column by way of others: MATCH, or the table's own name.
                    let why = format!("its column `{column}` is hidden");
                    hide_whole(hidden, object, Some(why), objects);
                } else {
                    hidden.hide_column(&object.name, column, None);
                }
            }
        }
    }
    if pattern.columns.is_empty() && pattern.table.is_plain() {
        // Also what is not there yet.
        hidden.hide_table(pattern.table.as_str(), None);
    }
}

/// Hides a table, and of a virtual one the tables it keeps its data in.
fn hide_whole(hidden: &mut Hidden, object: &Object, because: Option<String>, objects: &[Object]) {
    if object.kind == Kind::Virtual {
        let start = format!("{}_", object.name);
        for shadow in objects.iter().filter(|shadow| shadow.kind == Kind::Shadow) {
            if shadow.name.get(..start.len()).is_some_and(|s| s.eq_ignore_ascii_case(&start)) {
                hidden.hide_table(&shadow.name, Some(format!("`{}` keeps its data in it", object.name)));
            }
        }
    }
    hidden.hide_table(&object.name, because);
}

/// Generated columns whose definition mentions a hidden column of their table, also by way of others.
fn generated_columns(hidden: &mut Hidden, table: &Object) {
    if hidden.columns_of(&table.name).next().is_none() {
        return;
    }
    let definitions = definitions(&table.sql);
    loop {
        let known: Vec<String> = hidden.columns_of(&table.name).map(|thing| thing.name.clone()).collect();
        for (column, _) in table.columns.iter().filter(|(_, generated)| *generated) {
            let own = definitions.iter().find(|words| words.first().is_some_and(|first| same(first, column)));
            // A definition that is not found might be made from anything.
            let source = match own {
                None => known.first(),
                Some(words) => known
                    .iter()
                    .find(|name| words.iter().skip(1).any(|word| same(word.trim_matches('\''), name))),
            };
            if let Some(source) = source.filter(|source| !same(source, column)) {
                let why = format!("it is made from `{}.{source}`", table.name);
                hidden.hide_column(&table.name, column, Some(why));
            }
        }
        if hidden.columns_of(&table.name).count() == known.len() {
            return;
        }
    }
}

/// The words of each entry between the outermost parentheses of a CREATE TABLE.
fn definitions(sql: &str) -> Vec<Vec<String>> {
    let mut entries: Vec<Vec<String>> = vec![Vec::new()];
    let mut depth = 0_usize;
    for word in words(sql) {
        match word.as_str() {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            "," if depth == 1 => {
                entries.push(Vec::new());
                continue;
            }
            _ => {}
        }
        if (depth > 0 && !(depth == 1 && word == "("))
            && let Some(entry) = entries.last_mut()
        {
            entry.push(word);
        }
    }
    entries
}

/// Views that read something hidden, and views whose joins might.
fn look_through(guarded: &Guarded, hidden: &mut Hidden, view: &Object) {
    if hidden.is_left_out(&view.name) {
        return;
    }
    if let Some(table) = hidden.joined(&view.sql) {
        let why = format!("it joins `{table}` by NATURAL or USING, and might compare what is hidden");
        hidden.hide_table(&view.name, Some(why));
        return;
    }
    let (_, heard) = guarded.overhear(&format!("SELECT * FROM main.{}", quoted(&view.name)));
    if let Some(source) = heard.iter().find_map(|action| hidden_source(hidden, action)) {
        hidden.note_view(&view.name, format!("it reads {source}"));
    }
}

/// What of an action is hidden.
fn hidden_source(hidden: &Hidden, action: &Action) -> Option<String> {
    let through = action.accessor.as_deref().and_then(|name| hidden.table(name));
    let table = hidden.table(&action.object);
    if let Some(thing) = through.or(table) {
        return Some(format!("`{}`", thing.name));
    }
    let column = action.detail.as_deref().filter(|_| action.kind == ActionKind::Read)?;
    hidden.column(&action.object, column).map(|thing| format!("`{}.{}`", action.object, thing.name))
}

/// A virtual table over something hidden: an index over its text, a list of that index's terms.
fn holds_hidden(hidden: &mut Hidden, object: &Object, objects: &[Object]) {
    if hidden.table(&object.name).is_some() {
        return;
    }
    for other in objects.iter().filter(|other| other.is_table() && other.name != object.name) {
        if !object.mentions(&other.name) {
            continue;
        }
        let column = hidden
            .columns_of(&other.name)
            .find(|thing| object.columns.iter().any(|(column, _)| same(column, &thing.name)));
        let source = match column {
            Some(thing) => format!("`{}.{}`", other.name, thing.name),
            None if hidden.is_left_out(&other.name) && other.kind != Kind::Shadow => {
                format!("`{}`", other.name)
            }
            None => continue,
        };
        return hide_whole(hidden, object, Some(format!("it holds {source}")), objects);
    }
}

/// Virtual tables that a trigger fills with something hidden.
fn feeds(hidden: &mut Hidden, trigger: &Object, objects: &[Object]) {
    let Some(source) = reads_hidden(hidden, trigger) else { return };
    for object in objects.iter().filter(|object| object.kind == Kind::Virtual) {
        if hidden.table(&object.name).is_none() && trigger.mentions(&object.name) {
            let why = format!("the trigger `{}` may copy {source} into it", trigger.name);
            hide_whole(hidden, object, Some(why), objects);
        }
    }
}

/// What a trigger mentions that is hidden.
fn reads_hidden(hidden: &Hidden, trigger: &Object) -> Option<String> {
    let concerns = |name: &str| same(name, &trigger.table) || trigger.mentions(name);
    hidden.find_source(concerns, |column| trigger.mentions(column))
}

fn same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entries_of_a_table_are_told_apart() {
        let sql = "CREATE TABLE \"a(b\" (id INTEGER, -- one, two\n c TEXT DEFAULT 'x,(', d AS (f(id, c)), PRIMARY KEY(id, c)) STRICT";
        let first: Vec<_> = definitions(sql).into_iter().map(|words| words.first().cloned()).collect();
        assert_eq!(first, ["id", "c", "d", "primary"].map(|word| Some(word.to_owned())));
    }
}
