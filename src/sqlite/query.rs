//! Runs a statement that reads, and writes its rows straight into CSV.
//!
//! Rows are capped by not stepping on; the SQL is never rewritten.

use super::fault::Fault;
use super::guard::{Compiled, Guarded};
use super::params::Params;
use crate::error::ErrorCode;
use crate::policy::{Policy, Refusal};
use crate::render::{Caps, Cell, CsvSink, DatumRows, DatumSink, Flow, RowCut};
use rusqlite::types::ValueRef;
use rusqlite::{Rows, Statement};

/// One read.
#[derive(Clone, Copy, Debug)]
pub struct Read<'a> {
    /// The statement.
    pub sql: &'a str,
    /// Its parameters.
    pub params: &'a Params,
    /// Rows to return at most.
    pub limit: u64,
    /// The greatest limit a call may ask for, named in the trailer.
    pub max_rows: u64,
    /// Caps of the text.
    pub caps: Caps,
    /// What the result is wanted as.
    pub form: Form,
}

/// What a result is wanted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Form {
    /// CSV, written straight from the columns.
    Csv,
    /// Values.
    Data,
    /// Values, and of blobs the bytes.
    Exact,
}

/// The rows of a read.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum ReadRows {
    /// As CSV with a trailer.
    Text(TextResult),
    /// As values.
    Data(DatumRows),
}

/// A result as text.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TextResult {
    /// The text for the agent.
    pub text: String,
    /// Rows in it.
    pub rows: u64,
}

/// Compiles, judges, and runs one statement that reads.
///
/// `before_log` is called once before the first step of a statement that reads the server's log.
///
/// # Errors
/// Refusals, stops and SQLite's errors.
pub fn run(
    guarded: &Guarded,
    policy: &'static Policy,
    read: Read<'_>,
    before_log: &mut dyn FnMut(),
) -> Result<ReadRows, Fault> {
    match attempt(guarded, policy, read, before_log) {
        Err((_, true)) => attempt(guarded, policy, read, before_log).map_err(|(fault, _)| fault),
        Err((fault, false)) => Err(fault),
        Ok(result) => Ok(result),
    }
}

/// One try; the flag says that the schema changed under the statement and a second try is worth it.
fn attempt(
    guarded: &Guarded,
    policy: &'static Policy,
    read: Read<'_>,
    before_log: &mut dyn FnMut(),
) -> Result<ReadRows, (Fault, bool)> {
    let plain = |fault: Fault| (fault, false);
    let mut compiled = guarded.compile(policy, read.sql).map_err(plain)?;
    must_read(policy, &compiled).map_err(plain)?;
    if compiled.judged.facts.reads_log {
        before_log();
    }
    compiled.statement.clear_bindings();
    read.params.bind(&mut compiled.statement).map_err(plain)?;
    let columns = column_names(&compiled.statement);
    let mut sink = Sink::new(columns.clone(), read);
    let running = guarded.enter(&compiled.judged);
    let Compiled { statement, .. } = &mut compiled;
    let filled = fill(&mut statement.raw_query(), columns.len(), &mut sink, read);
    let filled = filled.map_err(|error| {
        let surprised = guarded.surprised(policy, read.sql);
        (guarded.fault(&error), surprised)
    });
    drop(running);
    // Where another process changed the schema, SQLite compiles a statement anew at its first step
    // (https://sqlite.org/rescode.html#schema), and `SELECT *` may have other columns than it had before.
    if column_names(&compiled.statement) != columns {
        return Err((
            Fault::error(ErrorCode::Busy, "the schema changed under the statement; try again"),
            true,
        ));
    }
    filled.map(|cut| sink.finish(cut))
}

/// Refuses what does not read, and under some policies what is not one SELECT or VALUES.
///
/// # Errors
/// `NotSelect`.
pub fn must_read(policy: &Policy, compiled: &Compiled<'_>) -> Result<(), Fault> {
    let judged = &compiled.judged;
    // SQLite calls an explained statement by what it would do; it does nothing.
    let reads = judged.readonly || judged.facts.pragma || judged.explain;
    let only_select = !policy.selects_only || !(judged.facts.pragma || judged.explain);
    if reads && only_select && compiled.statement.column_count() > 0 {
        Ok(())
    } else {
        Err(if policy.selects_only { Refusal::NotSelect } else { Refusal::NothingToRead }.into())
    }
}

/// Where rows go.
enum Sink {
    Csv(CsvSink),
    Data(DatumSink),
    Exact(DatumSink),
}

impl Sink {
    fn new(columns: Vec<String>, read: Read<'_>) -> Self {
        match read.form {
            Form::Csv => Self::Csv(CsvSink::new(&columns, read.caps)),
            Form::Data => Self::Data(DatumSink::new(columns, read.caps)),
            Form::Exact => Self::Exact(DatumSink::new(columns, read.caps)),
        }
    }

    fn push(&mut self, row: &rusqlite::Row<'_>, columns: usize) -> rusqlite::Result<Flow> {
        match self {
            Self::Csv(sink) => push_row(row, columns, sink),
            Self::Data(sink) => {
                for at in 0..columns {
                    sink.cell(cell_of(row.get_ref(at)?));
                }
                Ok(sink.end_row())
            }
            Self::Exact(sink) => push_exactly(row, columns, sink),
        }
    }

    fn finish(self, cut: RowCut) -> ReadRows {
        match self {
            Self::Csv(sink) => {
                let rendered = sink.finish(cut);
                ReadRows::Text(TextResult { text: rendered.text, rows: rendered.rows })
            }
            Self::Data(sink) | Self::Exact(sink) => {
                ReadRows::Data(sink.finish(matches!(cut, RowCut::Limit { .. })))
            }
        }
    }
}

fn fill(rows: &mut Rows<'_>, columns: usize, sink: &mut Sink, read: Read<'_>) -> rusqlite::Result<RowCut> {
    let mut shown = 0;
    while let Some(row) = rows.next()? {
        if shown >= read.limit {
            return Ok(RowCut::Limit { limit: read.limit, maximum: read.max_rows });
        }
        if sink.push(row, columns)? == Flow::Full {
            return Ok(RowCut::None);
        }
        shown += 1;
    }
    Ok(RowCut::None)
}

/// Writes one row into the sink.
///
/// # Errors
/// What SQLite reports while it fetches a column, out of memory say.
pub fn push_row(row: &rusqlite::Row<'_>, columns: usize, sink: &mut CsvSink) -> rusqlite::Result<Flow> {
    sink.begin_row();
    for at in 0..columns {
        sink.cell(cell_of(row.get_ref(at)?));
    }
    Ok(sink.end_row())
}

/// Adds one row as values, the bytes of blobs among them.
///
/// # Errors
/// What SQLite reports while it fetches a column.
pub(super) fn push_exactly(
    row: &rusqlite::Row<'_>,
    columns: usize,
    sink: &mut DatumSink,
) -> rusqlite::Result<Flow> {
    for at in 0..columns {
        let value = row.get_ref(at)?;
        sink.cell(if let ValueRef::Blob(bytes) = value { Cell::Bytes(bytes) } else { cell_of(value) });
    }
    Ok(sink.end_row())
}

/// A column's value as a cell.
#[must_use]
pub fn cell_of(value: ValueRef<'_>) -> Cell<'_> {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(value) => Cell::Integer(value),
        ValueRef::Real(value) => Cell::Real(value),
        ValueRef::Text(text) => Cell::Text(text),
        ValueRef::Blob(blob) => Cell::Blob(blob.len()),
    }
}

/// The result's column names, in order; a name that is no UTF-8 comes with replacement characters.
#[must_use]
pub fn column_names(statement: &Statement<'_>) -> Vec<String> {
    (0..statement.column_count())
        .map(|at| statement.column_name(at).map_or_else(|_| String::new(), str::to_owned))
        .collect()
}
