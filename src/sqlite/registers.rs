//! What the registers of a compiled program can hold, told without running it.
//!
//! Every instruction that may put something into a register counts, whatever way the program takes to it.
//! What cannot be told is unknown; it is for the caller to take that as the worse case.

use super::program::Instruction;

/// How many copies a value is followed through.
const MAX_COPIES: u8 = 4;

/// What a register holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// NULL.
    Null,
    /// This constant, in lower case.
    Text(String),
    /// A value that is known only when it runs.
    Unknown,
}

/// What a register can hold, whatever way the program takes.
pub(super) fn value_of(steps: &[Instruction], register: i64) -> Held {
    value_within(steps, register, 0)
}

/// Whether some instruction puts NULL into a register, directly or by copies.
pub(super) fn can_be_null(steps: &[Instruction], register: i64) -> bool {
    null_within(steps, register, 0)
}

fn null_within(steps: &[Instruction], register: i64, depth: u8) -> bool {
    // Copies of copies of copies are not followed for ever: then it can.
    depth > MAX_COPIES
        || steps.iter().any(|step| match step.opcode.as_str() {
            "Null" | "SoftNull" => puts_null(step, register),
            _ => source_of(step, register).is_some_and(|from| null_within(steps, from, depth + 1)),
        })
}

fn puts_null(step: &Instruction, register: i64) -> bool {
    match step.opcode.as_str() {
        "Null" => step.p2 == register || (step.p2..=step.p3).contains(&register),
        "SoftNull" => step.p1 == register,
        _ => false,
    }
}

/// The register that a copying instruction takes the value of this one from.
fn source_of(step: &Instruction, register: i64) -> Option<i64> {
    let copies = match step.opcode.as_str() {
        "SCopy" | "IntCopy" => step.p2 == register,
        "Copy" => (step.p2..=step.p2 + step.p3).contains(&register),
        _ => false,
    };
    copies.then(|| step.p1 + register - step.p2)
}

fn value_within(steps: &[Instruction], register: i64, depth: u8) -> Held {
    if depth > MAX_COPIES {
        return Held::Unknown;
    }
    let mut known: Option<Held> = None;
    for step in steps {
        let value = if puts_null(step, register) {
            Held::Null
        } else if let Some(from) = source_of(step, register) {
            value_within(steps, from, depth + 1)
        } else if matches!(step.opcode.as_str(), "String8" | "String") && step.p2 == register {
            step.p4.as_ref().map_or(Held::Unknown, |text| Held::Text(text.to_ascii_lowercase()))
        } else if may_write(step, register) {
            Held::Unknown
        } else {
            continue;
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
        "Abortable",
        "AddImm",
        "AggInverse",
        "AggValue",
        "AutoCommit",
        "Clear",
        "ClrSubtype",
        "CollSeq",
        "ColumnsUsed",
        "CursorHint",
        "CursorLock",
        "CursorUnlock",
        "DeferredSeek",
        "ElseEq",
        "Expire",
        "FinishSeek",
        "IFindKey",
        "IfSizeBetween",
        "MemMax",
        "NullRow",
        "Offset",
        "ReopenIdx",
        "ResetCount",
        "ResetSorter",
        "RowCell",
        "RowSetAdd",
        "RowSetRead",
        "RowSetTest",
        "Savepoint",
        "SeekEnd",
        "SeekHit",
        "SeekScan",
        "SequenceTest",
        "Trace",
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
        "AddImm",
        "AutoCommit",
        "CollSeq",
        "ColumnsUsed",
        "Compare",
        "CursorHint",
        "CursorLock",
        "CursorUnlock",
        "ElseEq",
        "Expire",
        "Filter",
        "FilterAdd",
        "FinishSeek",
        "MemMax",
        "NullRow",
        "OpenAutoindex",
        "OpenDup",
        "Permutation",
        "ReopenIdx",
        "ResetCount",
        "Savepoint",
        "SeekHit",
        "SorterCompare",
        "SorterInsert",
        "SorterNext",
        "Trace",
        "TypeCheck",
    ];
    let opcode = step.opcode.as_str();
    // Looked at before; these write nowhere else.
    if matches!(opcode, "Null" | "SoftNull" | "SCopy" | "IntCopy" | "Copy" | "String8" | "String") {
        return false;
    }
    let by_p2 = step.p2 == register && !P2_IS_NO_OUTPUT.contains(&opcode);
    let by_p3 = step.p3 == register && !P3_IS_NO_OUTPUT.contains(&opcode);
    let in_place =
        step.p1 == register && matches!(opcode, "Cast" | "RealAffinity" | "AddImm" | "AggFinal" | "MemMax");
    // Move leaves NULL behind and puts values into as many registers as its third operand says.
    let moved = opcode == "Move" && (step.p2..step.p2.saturating_add(step.p3.max(1))).contains(&register);
    by_p2 || by_p3 || in_place || moved
}
