//! read_query, write_query, destructive_query: SQL that an agent wrote.
//!
//! What is allowed is the policy's and the worker's to say; here the order of things is kept: for a
//! destructive call compile, then snapshot, then run.

use super::{Call, Reply, note_params, required_text, rows, unexpected_answer};
use crate::error::ToolError;
use crate::generated::ACTION_WORDS;
use crate::policy::ActionKind;
use crate::spec::model::Format;
use crate::sqlite::copy::SnapshotKind;
use crate::sqlite::params::Params;
use crate::sqlite::query::Form;
use crate::sqlite::write::Changed;
use crate::store::TurnGuard;
use crate::worker::protocol::{Answer, Work};
use serde_json::Value;

/// Arguments of [`read`].
pub struct ReadInput {
    /// The statement.
    pub query: String,
    /// Array or object of parameters.
    pub params: Option<Value>,
    /// Rows to return at most.
    pub limit: u64,
}

/// Arguments of [`write`].
pub struct WriteInput {
    /// The statement.
    pub query: String,
    /// Array or object of parameters.
    pub params: Option<Value>,
}

/// Arguments of [`destroy`].
pub struct DestroyInput {
    /// The statement.
    pub query: String,
    /// Array or object of parameters.
    pub params: Option<Value>,
    /// Why, for the log and the snapshot's reader.
    pub reason: String,
}

/// Runs one statement that reads.
///
/// # Errors
/// As the worker says.
pub async fn read(call: &Call<'_>, input: ReadInput) -> Result<Reply, ToolError> {
    call.note_query(&input.query);
    call.note("limit", input.limit);
    note_params(call, input.params.as_ref());
    let params = Params::from_json(input.params)?;
    let work = Work::Read {
        sql: input.query,
        params,
        limit: input.limit,
        max_rows: call.core.settings.max_rows,
        caps: call.core.caps(),
        form: match call.format() {
            Format::Csv => Form::Csv,
            Format::Structured => Form::Data,
        },
    };
    match call.read(work).await? {
        Answer::Text(result) => Ok(Reply::text(result.text, Some(result.rows))),
        Answer::Rows(found) => rows::reply(call, found, input.limit),
        _ => Err(unexpected_answer()),
    }
}

/// Runs one statement that adds, or overwrites within the cap.
///
/// # Errors
/// As the worker says.
pub async fn write(call: &Call<'_>, input: WriteInput) -> Result<Reply, ToolError> {
    call.note_query(&input.query);
    note_params(call, input.params.as_ref());
    let params = Params::from_json(input.params)?;
    let turn = call.turn().await?;
    let changed = change(call, input.query, params, &turn).await?;
    Ok(reply(&changed, ""))
}

/// Runs one statement that deletes, alters or overwrites at large, after a snapshot.
///
/// # Errors
/// As the worker says; a snapshot that fails; both are named when the statement fails after one.
pub async fn destroy(call: &Call<'_>, input: DestroyInput) -> Result<Reply, ToolError> {
    call.note_query(&input.query);
    call.note("reason", input.reason.as_str());
    note_params(call, input.params.as_ref());
    required_text("reason", &input.reason)?;
    let params = Params::from_json(input.params)?;
    let turn = call.turn().await?;
    call.write(Work::Check { sql: input.query.clone(), params: params.clone() }, &turn).await?;
    if call.core.settings.snapshots == 0 {
        let changed = change(call, input.query, params, &turn).await?;
        return Ok(reply(&changed, "; snapshots are disabled (--snapshots 0)"));
    }
    let done = call.snapshot(SnapshotKind::Auto).await?;
    let path = done.path.display().to_string();
    call.note("snapshot", path.as_str());
    match change(call, input.query, params, &turn).await {
        Ok(changed) => Ok(reply(&changed, &format!("; snapshot: {path}"))),
        Err(error) => Err(ToolError::new(
            error.code,
            format!("{}; reason: {}; a snapshot had been made: {path}", error.message, input.reason.trim()),
        )),
    }
}

async fn change(
    call: &Call<'_>,
    sql: String,
    params: Params,
    turn: &TurnGuard,
) -> Result<Changed, ToolError> {
    let policy = call.policy.policy();
    let mut audit = call.audit_row(None, None);
    let work = Work::Change {
        sql,
        params,
        max_rows: call.core.settings.max_rows,
        caps: call.core.caps(),
        max_overwrites: policy.counts_overwrites.then_some(call.core.settings.max_update_rows),
        audit: audit.clone(),
    };
    match call.write(work, turn).await? {
        Answer::Changed(changed) => {
            audit.rows = i64::try_from(changed.rows).ok();
            call.recorded(audit);
            if changed.structural.as_ref().is_some_and(|(kind, _)| changes_tables(*kind)) {
                call.core.schema_changed();
            }
            Ok(changed)
        }
        _ => Err(unexpected_answer()),
    }
}

/// Whether tables and views may be others afterwards, or have other names.
fn changes_tables(kind: ActionKind) -> bool {
    matches!(
        kind,
        ActionKind::CreateTable
            | ActionKind::CreateVtable
            | ActionKind::CreateView
            | ActionKind::DropTable
            | ActionKind::DropVtable
            | ActionKind::DropView
            | ActionKind::AlterTable
    )
}

fn reply(changed: &Changed, more: &str) -> Reply {
    let done = match &changed.structural {
        Some((kind, object)) => {
            let label =
                ACTION_WORDS.iter().find(|words| words.kind == *kind).map_or("done", |words| words.label);
            format!("{label} {object}").trim_end().to_owned()
        }
        None => format!("{} rows affected", changed.rows),
    };
    let rowid = changed.last_insert_rowid.map(|id| format!(" (last_insert_rowid={id})")).unwrap_or_default();
    let returning = changed.returning.as_ref().map(|rows| format!("\n{rows}")).unwrap_or_default();
    Reply::text(format!("ok: {done}{rowid}{more}{returning}"), Some(changed.rows))
}
