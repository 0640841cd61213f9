//! Tells a row for a full-text table from a command to it, by the compiled program.
//!
//! FTS3, FTS4 and FTS5 take commands as an INSERT into a hidden column named like the table
//! (<https://sqlite.org/fts5.html#special_insert_commands>). The authorizer reports an Insert either
//! way, so the answer is read from EXPLAIN: the register that VUpdate takes for that column is Null for
//! a row and a constant string for a command. Whatever is neither counts as destructive. The SQL text
//! is not looked at.

use super::fault::Fault;
use super::guard::{Guarded, Judged};
use super::objects::quoted;
use crate::policy::decide::{ObjectKind, Objects};
use crate::policy::{ActionKind, Policy, Refusal};
use rusqlite::Connection;

/// Commands that remove index content without the row that it stands for.
const DESTRUCTIVE: &[&str] = &["delete", "delete-all"];

/// What an INSERT into a full-text table asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A row.
    Row,
    /// A command known by its constant.
    Command(String),
    /// A value that is known only when it runs.
    Unknown,
}

/// One instruction of a compiled program.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// The opcode's name (<https://sqlite.org/opcode.html>).
    pub opcode: String,
    /// First operand.
    pub p1: i64,
    /// Second.
    pub p2: i64,
    /// Third.
    pub p3: i64,
    /// Fourth, where it is text.
    pub p4: Option<String>,
    /// Fifth.
    pub p5: i64,
}

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
        let fired_by_update = trigger && judged.facts.changes_rows;
        let command = match asked {
            Asked::Row => continue,
            Asked::Command(name) if name == "delete" && fired_by_update => continue,
            Asked::Command(name) if !DESTRUCTIVE.contains(&name.as_str()) => continue,
            Asked::Command(name) => Some(name),
            Asked::Unknown => None,
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
        Asked::Row => false,
        Asked::Command(name) => DESTRUCTIVE.contains(&name.as_str()),
        Asked::Unknown => true,
    }))
}

/// Every insert into a full-text table: which table, whether a trigger does it, what it asks for.
fn inserts(
    guarded: &Guarded,
    policy: &'static Policy,
    sql: &str,
    judged: &Judged,
) -> Result<Vec<(String, bool, Asked)>, Fault> {
    let mut found = Vec::new();
    let Some(catalog) = &judged.catalog else { return Ok(found) };
    let mut program: Option<Vec<Segment>> = None;
    for table in judged.facts.inserted.iter().filter(|table| catalog.kind(table) == Some(ObjectKind::Virtual))
    {
        let hidden = hidden_column(guarded.trusted(), table).map_err(|e| guarded.fault(&e))?;
        let Some((column, columns)) = hidden else { continue };
        let segments = match &program {
            Some(segments) => segments,
            None => program.insert(explain(guarded, policy, sql)?),
        };
        for segment in segments {
            for asked in asked_of(segment, column, columns) {
                found.push((table.clone(), segment.trigger, asked));
            }
        }
    }
    Ok(found)
}

/// Whether the program of an INSERT may replace rows that are there: it holds a Delete, or an insert
/// into a virtual table that replaces on conflict.
///
/// # Errors
/// What SQLite reports while the program is read.
pub fn replaces(guarded: &Guarded, policy: &'static Policy, sql: &str) -> Result<bool, Fault> {
    const OE_REPLACE: i64 = 5;
    let program = explain(guarded, policy, sql)?;
    Ok(program.iter().flat_map(|segment| &segment.instructions).any(|step| {
        matches!(step.opcode.as_str(), "Delete" | "IdxDelete")
            || step.opcode == "VUpdate" && (step.p5 == OE_REPLACE || step.p2 == 1)
    }))
}

/// The main program or one trigger's.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Whether it is a trigger's.
    pub trigger: bool,
    /// In order.
    pub instructions: Vec<Instruction>,
}

/// The compiled program of an accepted statement. The text is compiled behind EXPLAIN under the same
/// ears: nothing of it runs.
fn explain(guarded: &Guarded, policy: &'static Policy, sql: &str) -> Result<Vec<Segment>, Fault> {
    let text = format!("EXPLAIN {sql}");
    let mut compiled = guarded.compile(policy, &text)?;
    let _running = guarded.enter(&compiled.judged);
    let mut rows = compiled.statement.raw_query();
    let mut segments: Vec<Segment> = Vec::new();
    loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break,
            Err(error) => return Err(guarded.fault(&error)),
        };
        let instruction = (|| -> rusqlite::Result<Instruction> {
            Ok(Instruction {
                opcode: row.get(1)?,
                p1: row.get(2)?,
                p2: row.get(3)?,
                p3: row.get(4)?,
                p4: row.get_ref(5)?.as_str_or_null().ok().flatten().map(str::to_owned),
                p5: row.get(6)?,
            })
        })()
        .map_err(|error| guarded.fault(&error))?;
        if instruction.opcode == "Init" {
            segments.push(Segment { trigger: !segments.is_empty(), instructions: Vec::new() });
        }
        if let Some(segment) = segments.last_mut() {
            segment.instructions.push(instruction);
        }
    }
    Ok(segments)
}

/// Where the hidden column named like the table stands, and how many columns there are in all.
fn hidden_column(conn: &Connection, table: &str) -> rusqlite::Result<Option<(i64, i64)>> {
    let mut statement = conn.prepare(&format!("PRAGMA main.table_xinfo({})", quoted(table)))?;
    let mut rows = statement.query([])?;
    let (mut found, mut count) = (None, 0);
    while let Some(row) = rows.next()? {
        let (name, hidden): (String, i64) = (row.get(1)?, row.get(6)?);
        if hidden != 0 && name.eq_ignore_ascii_case(table) {
            found = Some(count);
        }
        count += 1;
    }
    Ok(found.map(|at| (at, count)))
}

/// What the inserts of one program into a table of this shape ask for.
fn asked_of(segment: &Segment, column: i64, columns: i64) -> Vec<Asked> {
    let steps = &segment.instructions;
    steps
        .iter()
        .filter(|step| step.opcode == "VUpdate" && step.p2 == columns + 2)
        // The first register is NULL for an insert and the old rowid for an update.
        .filter(|step| value_of(steps, step.p3, 0) == Asked::Row)
        .map(|step| value_of(steps, step.p3 + 2 + column, 0))
        .collect()
}

/// What a register holds: `Row` stands for NULL.
fn value_of(steps: &[Instruction], register: i64, depth: u8) -> Asked {
    if depth > 4 {
        return Asked::Unknown;
    }
    let mut known: Option<Asked> = None;
    for step in steps {
        let value = match step.opcode.as_str() {
            "Null" if step.p2 == register || (step.p2..=step.p3).contains(&register) => Asked::Row,
            "SoftNull" if step.p1 == register => Asked::Row,
            "String8" | "String" if step.p2 == register => match &step.p4 {
                Some(text) => Asked::Command(text.to_ascii_lowercase()),
                None => Asked::Unknown,
            },
            "SCopy" | "IntCopy" if step.p2 == register => value_of(steps, step.p1, depth + 1),
            "Copy" if (step.p2..=step.p2 + step.p3).contains(&register) => {
                value_of(steps, step.p1 + register - step.p2, depth + 1)
            }
            "Null" | "SoftNull" | "SCopy" | "IntCopy" | "Copy" | "String8" | "String" => continue,
            _ if may_write(step, register) => Asked::Unknown,
            _ => continue,
        };
        match &known {
            None => known = Some(value),
            Some(before) if *before == value => {}
            Some(_) => return Asked::Unknown,
        }
    }
    known.unwrap_or(Asked::Unknown)
}

/// Whether an instruction other than a plain constant or copy may put something into the register. The
/// lists are of instructions whose second or third operand is no output; an unknown one counts as a
/// writer of both.
fn may_write(step: &Instruction, register: i64) -> bool {
    const P2_IS_NO_OUTPUT: &[&str] = &[
        "Init",
        "Goto",
        "Gosub",
        "Return",
        "Halt",
        "HaltIfNull",
        "If",
        "IfNot",
        "IsNull",
        "NotNull",
        "IsType",
        "Eq",
        "Ne",
        "Lt",
        "Le",
        "Gt",
        "Ge",
        "Once",
        "Next",
        "Prev",
        "Rewind",
        "Last",
        "Sort",
        "SorterSort",
        "SorterNext",
        "InitCoroutine",
        "EndCoroutine",
        "Yield",
        "Jump",
        "IfPos",
        "IfNotZero",
        "DecrJumpZero",
        "IfEmpty",
        "IfNullRow",
        "NotExists",
        "Found",
        "NotFound",
        "NoConflict",
        "IfNoHope",
        "SeekGE",
        "SeekGT",
        "SeekLE",
        "SeekLT",
        "SeekRowid",
        "MustBeInt",
        "VFilter",
        "VNext",
        "Program",
        "Transaction",
        "OpenRead",
        "OpenWrite",
        "OpenEphemeral",
        "OpenPseudo",
        "OpenDup",
        "OpenAutoindex",
        "SorterOpen",
        "Close",
        "Insert",
        "IdxInsert",
        "Delete",
        "IdxDelete",
        "VUpdate",
        "VOpen",
        "ResultRow",
        "MakeRecord",
        "Column",
        "VColumn",
        "Affinity",
        "Cast",
        "RealAffinity",
        "Compare",
        "Permutation",
        "Explain",
        "Noop",
        "TableLock",
        "VBegin",
        "FkCounter",
        "FkIfZero",
        "FkCheck",
        "Filter",
        "FilterAdd",
        "ReleaseReg",
        "IdxGE",
        "IdxGT",
        "IdxLE",
        "IdxLT",
        "IdxRowid",
        "SorterInsert",
        "SorterCompare",
        "TypeCheck",
        "Function",
        "PureFunc",
        "AggStep",
        "AggStep1",
        "AggFinal",
        "Concat",
        "Add",
        "Subtract",
        "Multiply",
        "Divide",
        "Remainder",
        "BitAnd",
        "BitOr",
        "ShiftLeft",
        "ShiftRight",
        "And",
        "Or",
    ];
    const P3_IS_NO_OUTPUT: &[&str] = &[
        "Init",
        "Goto",
        "Gosub",
        "Return",
        "Halt",
        "HaltIfNull",
        "If",
        "IfNot",
        "IsNull",
        "NotNull",
        "IsType",
        "Eq",
        "Ne",
        "Lt",
        "Le",
        "Gt",
        "Ge",
        "Once",
        "Next",
        "Prev",
        "Rewind",
        "Last",
        "Sort",
        "SorterSort",
        "InitCoroutine",
        "EndCoroutine",
        "Yield",
        "Jump",
        "IfPos",
        "NotExists",
        "Found",
        "NotFound",
        "NoConflict",
        "IfNoHope",
        "SeekGE",
        "SeekGT",
        "SeekLE",
        "SeekLT",
        "SeekRowid",
        "MustBeInt",
        "VFilter",
        "VNext",
        "Program",
        "Transaction",
        "OpenRead",
        "OpenWrite",
        "OpenEphemeral",
        "OpenPseudo",
        "Close",
        "Insert",
        "IdxInsert",
        "Delete",
        "IdxDelete",
        "VUpdate",
        "ResultRow",
        "Integer",
        "Int64",
        "Real",
        "Blob",
        "Variable",
        "Rowid",
        "NewRowid",
        "Param",
        "Affinity",
        "Explain",
        "Noop",
        "VOpen",
        "VBegin",
        "TableLock",
        "FkCounter",
        "FkIfZero",
        "FkCheck",
        "ReleaseReg",
        "SorterOpen",
        "IdxGE",
        "IdxGT",
        "IdxLE",
        "IdxLT",
        "Count",
        "Sequence",
        "ReadCookie",
    ];
    let opcode = step.opcode.as_str();
    let by_p2 = step.p2 == register && !P2_IS_NO_OUTPUT.contains(&opcode);
    let by_p3 = step.p3 == register && !P3_IS_NO_OUTPUT.contains(&opcode);
    let in_place = step.p1 == register && matches!(opcode, "Cast" | "RealAffinity" | "AddImm" | "AggFinal");
    by_p2 || by_p3 || in_place
}
