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
    /// The trigger's name; empty for one without (a foreign key's).
    pub trigger: Option<String>,
    /// In order.
    pub instructions: Vec<Instruction>,
}

/// Whether the compiled program of a statement comes to its end without a look at the file: what an IF EXISTS or
/// IF NOT EXISTS leaves of a statement that has nothing to do. SQLite puts a question for the journal mode into it,
/// so that it does not count as one that only reads. False for one whose program cannot be read.
#[must_use]
pub fn does_nothing(guarded: &Guarded, policy: &'static Policy, sql: &str) -> bool {
    const QUERY: i64 = -1;
    let idle = |step: &Instruction| match step.opcode.as_str() {
        "Init" | "Goto" => true,
        "Halt" => step.p1 == 0,
        "Transaction" => step.p2 == 0,
        "JournalMode" => step.p3 == QUERY,
        _ => false,
    };
    read(guarded, policy, sql)
        .is_ok_and(|segments| segments.iter().flat_map(|segment| &segment.instructions).all(idle))
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
            let name = instruction.p4.as_deref().and_then(|text| text.strip_prefix("-- TRIGGER "));
            let trigger = (!segments.is_empty()).then(|| name.unwrap_or_default().to_owned());
            segments.push(Segment { trigger, instructions: Vec::new() });
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
