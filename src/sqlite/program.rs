//! A compiled program as EXPLAIN lists it (<https://sqlite.org/opcode.html>), and what can be told from it
//! about a statement that the authorizer does not tell.
//!
//! Nothing of the program runs, and the SQL text is not looked at. What cannot be told counts as unknown;
//! it is for the caller to take that as the worse case.

use super::fault::Fault;
use super::guard::{Guarded, Judged};
use super::objects::text;
use crate::policy::Policy;
use crate::policy::decide::{ObjectKind, Objects};
use std::collections::BTreeSet;

/// `OE_Replace`, as `VUpdate` carries it in its fifth operand.
const OE_REPLACE: i64 = 5;

/// What a register holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// NULL.
    Null,
    /// This constant, in lower case.
    Text(String),
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

/// The main program or one trigger's.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Whether it is a trigger's.
    pub trigger: bool,
    /// In order.
    pub instructions: Vec<Instruction>,
}

/// The compiled program of an accepted statement, its own part first, then those of triggers. The text is
/// compiled behind EXPLAIN under the same ears.
///
/// # Errors
/// What SQLite reports while the program is read.
pub fn read(guarded: &Guarded, policy: &'static Policy, sql: &str) -> Result<Vec<Segment>, Fault> {
    // A terminator in front ends an empty statement; behind EXPLAIN it would end EXPLAIN.
    let text = format!("EXPLAIN {}", sql.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ';'));
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

/// Whether the program of an INSERT may replace rows that are there.
///
/// # Errors
/// What SQLite reports while the program is read.
pub fn replaces(
    guarded: &Guarded,
    policy: &'static Policy,
    sql: &str,
    judged: &Judged,
) -> Result<bool, Fault> {
    let program = read(guarded, policy, sql)?;
    let roots = rowless_roots(guarded, judged).map_err(|error| guarded.fault(&error))?;
    Ok(program.iter().any(|segment| {
        let steps = &segment.instructions;
        deletes(steps)
            || steps.iter().any(replaces_virtual_row)
            || replaces_by_rowid(steps)
            || replaces_without_look(steps, &roots)
    }))
}

/// Whether the program replaces rows of a virtual table on conflict.
///
/// # Errors
/// What SQLite reports while the program is read.
pub fn replaces_virtual(guarded: &Guarded, policy: &'static Policy, sql: &str) -> Result<bool, Fault> {
    let program = read(guarded, policy, sql)?;
    Ok(program.iter().flat_map(|segment| &segment.instructions).any(replaces_virtual_row))
}

fn replaces_virtual_row(step: &Instruction) -> bool {
    step.opcode == "VUpdate" && (step.p5 == OE_REPLACE || step.p2 == 1)
}

fn deletes(steps: &[Instruction]) -> bool {
    steps.iter().any(|step| matches!(step.opcode.as_str(), "Delete" | "IdxDelete"))
}

/// A table without indexes and triggers needs no Delete: the row is written over. What remains of the
/// conflict is a look for the rowid that goes on to the next instruction whatever it finds.
fn replaces_by_rowid(steps: &[Instruction]) -> bool {
    steps.iter().zip(1..).any(|(step, next)| step.opcode == "NotExists" && step.p2 == next)
}

/// In a WITHOUT ROWID table of that kind not even a look remains.
fn replaces_without_look(steps: &[Instruction], roots: &BTreeSet<i64>) -> bool {
    let cursors = |root: &i64| -> Vec<i64> {
        let opens = |step: &&Instruction| step.opcode == "OpenWrite" && step.p2 == *root;
        steps.iter().filter(opens).map(|step| step.p1).collect()
    };
    let looks = |cursor: &i64| {
        steps.iter().any(|step| {
            step.p1 == *cursor && matches!(step.opcode.as_str(), "NoConflict" | "NotFound" | "Found")
        })
    };
    roots.iter().map(cursors).any(|cursors| !cursors.is_empty() && !cursors.iter().any(looks))
}

/// Root pages of the WITHOUT ROWID tables that a statement inserts into.
fn rowless_roots(guarded: &Guarded, judged: &Judged) -> rusqlite::Result<BTreeSet<i64>> {
    let Some(catalog) = &judged.catalog else { return Ok(BTreeSet::new()) };
    let wanted = |name: &str| {
        judged.facts.inserted.iter().any(|table| table.eq_ignore_ascii_case(name))
            && catalog.kind(name) == Some(ObjectKind::Table)
            && catalog.entry(name).is_some_and(|entry| entry.without_rowid)
    };
    let sql = "SELECT name, rootpage FROM main.sqlite_schema WHERE type = 'table'";
    let mut statement = guarded.trusted().prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut roots = BTreeSet::new();
    while let Some(row) = rows.next()? {
        if wanted(&text(row, 0)?) {
            roots.insert(row.get(1)?);
        }
    }
    Ok(roots)
}

/// What a register can hold, whatever way the program takes.
#[must_use]
pub fn value_of(steps: &[Instruction], register: i64) -> Held {
    value_within(steps, register, 0)
}

fn value_within(steps: &[Instruction], register: i64, depth: u8) -> Held {
    if depth > 4 {
        return Held::Unknown;
    }
    let mut known: Option<Held> = None;
    for step in steps {
        let value = match step.opcode.as_str() {
            "Null" if step.p2 == register || (step.p2..=step.p3).contains(&register) => Held::Null,
            "SoftNull" if step.p1 == register => Held::Null,
            "String8" | "String" if step.p2 == register => match &step.p4 {
                Some(text) => Held::Text(text.to_ascii_lowercase()),
                None => Held::Unknown,
            },
            "SCopy" | "IntCopy" if step.p2 == register => value_within(steps, step.p1, depth + 1),
            "Copy" if (step.p2..=step.p2 + step.p3).contains(&register) => {
                value_within(steps, step.p1 + register - step.p2, depth + 1)
            }
            "Null" | "SoftNull" | "SCopy" | "IntCopy" | "Copy" | "String8" | "String" => continue,
            _ if may_write(step, register) => Held::Unknown,
            _ => continue,
        };
        match &known {
            None => known = Some(value),
            Some(before) if *before == value => {}
            Some(_) => return Held::Unknown,
        }
    }
    known.unwrap_or(Held::Unknown)
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
    // Move leaves NULL behind and puts values into as many registers as its third operand says.
    let moved = opcode == "Move" && (step.p2..step.p2.saturating_add(step.p3.max(1))).contains(&register);
    by_p2 || by_p3 || in_place || moved
}
