//! Tells a row for a full-text table from a command to it, by the compiled program.
//!
//! FTS3, FTS4 and FTS5 take commands as an INSERT into a hidden column named like the table
//! (<https://sqlite.org/fts5.html#special_insert_commands>). The authorizer reports an Insert either
//! way, so the answer is read from EXPLAIN: the register that VUpdate takes for that column is Null for
//! a row and a constant string for a command. Whatever is neither counts as destructive. The SQL text
//! is not looked at.

use super::fault::Fault;
use super::guard::{Guarded, Judged};
use super::objects::{quoted, text, writable_columns};
use super::program::{self, Segment};
use super::registers::{self, Held};
use crate::policy::decide::{ObjectKind, Objects};
use crate::policy::{ActionKind, Policy, Refusal};
use rusqlite::Connection;

/// Commands that remove index content without the row that it stands for.
const DESTRUCTIVE: &[&str] = &["delete", "delete-all"];

/// Refuses a statement whose inserts into full-text tables are destructive commands, under a policy
/// that may not delete.
///
/// # Errors
/// The refusal; or what SQLite reports while the program is read.
pub fn check(guarded: &Guarded, policy: &'static Policy, sql: &str, judged: &Judged) -> Result<(), Fault> {
    if policy.actions.contains(&ActionKind::Delete) {
        return Ok(());
    }
    for (table, trigger, asked) in inserts(guarded, policy, sql, judged)? {
        // External-content tables are kept up by triggers that delete the old text on UPDATE.
        let by_update = || trigger.as_ref().is_some_and(|name| fires_on_update(guarded, policy, name));
        let command = match asked {
            Held::Null => continue,
            Held::Text(name) if name == "delete" && by_update() => continue,
            Held::Text(name) if !DESTRUCTIVE.contains(&name.as_str()) => continue,
            Held::Text(name) => Some(name),
            Held::Unknown => None,
        };
        return Err(Refusal::TextCommand { table, command }.into());
    }
    Ok(())
}

/// Whether a statement holds an insert that [`check`] would refuse: it belongs under a destructive policy.
///
/// # Errors
/// What SQLite reports while the program is read.
pub fn has_command(
    guarded: &Guarded,
    policy: &'static Policy,
    sql: &str,
    judged: &Judged,
) -> Result<bool, Fault> {
    let inserts = inserts(guarded, policy, sql, judged)?;
    Ok(inserts.iter().any(|(_, _, asked)| match asked {
        Held::Null => false,
        Held::Text(name) => DESTRUCTIVE.contains(&name.as_str()),
        Held::Unknown => true,
    }))
}

/// Whether a trigger is one of UPDATE: an UPDATE of its table has it in its program. A trigger has one
/// event only.
fn fires_on_update(guarded: &Guarded, policy: &'static Policy, trigger: &str) -> bool {
    let conn = guarded.trusted();
    let update = || -> rusqlite::Result<String> {
        let sql = "SELECT tbl_name FROM main.sqlite_schema WHERE type = 'trigger' AND name = ?1";
        let table = conn.prepare_cached(sql)?.query_row([trigger], |row| text(row, 0))?;
        let columns = writable_columns(conn, &table)?;
        let sets: Vec<_> = columns.iter().map(|column| format!("{0} = {0}", quoted(column))).collect();
        Ok(format!("UPDATE main.{} SET {}", quoted(&table), sets.join(", ")))
    };
    // What cannot be compiled shows nothing, and then the command is not taken for an UPDATE's.
    let program = update().ok().and_then(|sql| program::read(guarded, policy, &sql).ok());
    program.is_some_and(|segments| segments.iter().any(|segment| segment.trigger.as_deref() == Some(trigger)))
}

/// Every insert into a full-text table: which table, by which trigger, what it asks for.
fn inserts(
    guarded: &Guarded,
    policy: &'static Policy,
    sql: &str,
    judged: &Judged,
) -> Result<Vec<(String, Option<String>, Held)>, Fault> {
    let mut found = Vec::new();
    let Some(catalog) = &judged.catalog else { return Ok(found) };
    let mut known: Option<Vec<Segment>> = None;
    for table in judged.facts.inserted.iter().filter(|table| catalog.kind(table) == Some(ObjectKind::Virtual))
    {
        let hidden = hidden_column(guarded.trusted(), table).map_err(|e| guarded.fault(&e))?;
        let Some((column, columns)) = hidden else { continue };
        let segments = match &known {
            Some(segments) => segments,
            None => known.insert(program::read(guarded, policy, sql)?),
        };
        for segment in segments {
            for asked in asked_of(segment, column, columns) {
                found.push((table.clone(), segment.trigger.clone(), asked));
            }
        }
    }
    Ok(found)
}

/// Where the hidden column named like the table stands, and how many columns there are in all.
fn hidden_column(conn: &Connection, table: &str) -> rusqlite::Result<Option<(i64, i64)>> {
    let mut statement = conn.prepare(&format!("PRAGMA main.table_xinfo({})", quoted(table)))?;
    let mut rows = statement.query([])?;
    let (mut found, mut count) = (None, 0);
    while let Some(row) = rows.next()? {
        let (name, hidden) = (text(row, 1)?, row.get::<_, i64>(6)?);
        if hidden != 0 && name.eq_ignore_ascii_case(table) {
            found = Some(count);
        }
        count += 1;
    }
    Ok(found.map(|at| (at, count)))
}

/// What the inserts of one program into a table of this shape put into the hidden column.
fn asked_of(segment: &Segment, column: i64, columns: i64) -> Vec<Held> {
    let steps = &segment.instructions;
    steps
        .iter()
        .filter(|step| step.opcode == "VUpdate" && step.p2 == columns + 2)
        // The first register is NULL for an insert, and for an update the old rowid, which never is: an
        // insert must not pass for an update because its registers serve other things as well.
        .filter(|step| registers::can_be_null(steps, step.p3))
        .map(|step| registers::value_of(steps, step.p3 + 2 + column))
        .collect()
}
