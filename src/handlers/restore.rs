//! list_snapshots and restore_snapshot: the way back from a destructive call.
//!
//! A process of its own looks at snapshots and restores them (`sqlite/restore`): their files may have been edited
//! by anyone, and locks on the database must not be dropped by closing a file.

use super::confirm::Consent;
use super::fate::{self, Fate};
use super::snapshot::KEPT_ANYWAY;
use super::{Call, Reply, required_reason, required_text};
use crate::error::ToolError;
use crate::policy::Narrowing;
use crate::render::Cell;
use crate::render::csv::CsvSink;
use crate::render::trailer::RowCut;
use crate::sqlite::restore::{Listing, RestoreRequest, Restored, SnapshotEntry};

/// Arguments of [`list`]: none.
pub struct ListInput {}

/// Arguments of [`restore`].
pub struct RestoreInput {
    /// The snapshot's name or path.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// Lists the snapshots.
///
/// # Errors
/// What keeps the folder or the database from being read.
pub async fn list(call: &Call<'_>, ListInput {}: ListInput) -> Result<Reply, ToolError> {
    let found = entries(call).await?;
    let columns = ["name", "kind", "time", "bytes", "events", "verdict"];
    let mut sink = CsvSink::new(&columns, call.caps());
    for entry in &found {
        if sink.is_full() {
            break;
        }
        row(&mut sink, entry);
    }
    let rendered = sink.finish(RowCut::None);
    Ok(Reply::text(rendered.text, Some(rendered.rows)))
}

async fn entries(call: &Call<'_>) -> Result<Vec<SnapshotEntry>, ToolError> {
    let settings = &call.core.settings;
    let listing = Listing {
        database: settings.db.clone(),
        folder: settings.snapshot_dir.clone(),
        busy_timeout: settings.busy_timeout,
    };
    call.core.check_file()?;
    call.core.pool.snapshots(listing, &call.cancel).await.map_err(|error| call.explain(error))
}

fn row(sink: &mut CsvSink, entry: &SnapshotEntry) {
    let integer = |value: u64| Cell::Integer(i64::try_from(value).unwrap_or(i64::MAX));
    sink.begin_row();
    sink.cell(Cell::Text(entry.name.as_bytes()));
    sink.cell(Cell::Text(entry.kind.as_bytes()));
    sink.cell(Cell::Text(entry.time.as_bytes()));
    sink.cell(integer(entry.bytes));
    sink.cell(entry.events.map_or(Cell::Null, integer));
    sink.cell(Cell::Text(entry.verdict.words().as_bytes()));
    sink.end_row();
}

/// Restores a snapshot, behind a snapshot of what is there.
///
/// # Errors
/// As [`run`]; a person who does not agree, where one must.
pub async fn restore(call: &Call<'_>, input: RestoreInput) -> Result<Reply, ToolError> {
    if call.must_ask()
        && let Some(pending) = ask(call, &input).await?
    {
        return Ok(pending);
    }
    let narrowing = call.policy_file().narrowing.clone();
    let restored = run(call, input, narrowing).await?;
    let text = format!(
        "ok: {} restored (event {}); snapshot: {}",
        restored.name,
        restored.event,
        restored.undo.display()
    );
    Ok(Reply::text(text, None))
}

/// Asks a person until they agree to what the snapshot is now; a reply where they are asked by way of it.
async fn ask(call: &Call<'_>, input: &RestoreInput) -> Result<Option<Reply>, ToolError> {
    note_arguments(call, input)?;
    let mut agreed = None;
    loop {
        let found = entries(call).await?;
        let entry = found.iter().find(|entry| entry.name == input.name);
        let question = call.restore_question(&input.name, &input.reason, entry);
        if agreed.is_some_and(|subject: String| subject == question.subject) || call.has_consent(&question)? {
            return Ok(None);
        }
        let subject = question.subject.clone();
        match call.ask(question).await? {
            Consent::Given => agreed = Some(subject),
            Consent::Pending(reply) => return Ok(Some(reply)),
        }
    }
}

/// What a restore is in the words about its end.
const RESTORE: fate::Change =
    fate::Change { process: "the process that restores", done: "the snapshot is restored" };

fn note_arguments(call: &Call<'_>, input: &RestoreInput) -> Result<(), ToolError> {
    call.note("name", input.name.as_str());
    call.note("reason", input.reason.as_str());
    required_text("name", &input.name)?;
    required_reason(&input.reason)
}

/// The same without asking, with what it came to as data: also for a person at the command line, whom no policy file
/// binds.
///
/// # Errors
/// No such snapshot; it is damaged or of another database; it differs in what the policy file keeps; no snapshot could
/// be made. Nothing is changed then.
pub async fn run(call: &Call<'_>, input: RestoreInput, narrowing: Narrowing) -> Result<Restored, ToolError> {
    note_arguments(call, &input)?;
    let _turn = call.turn().await?;
    let settings = &call.core.settings;
    let keep = if settings.snapshots == 0 { KEPT_ANYWAY } else { settings.snapshots };
    let request = RestoreRequest {
        database: settings.db.clone(),
        folder: settings.snapshot_dir.clone(),
        name: input.name,
        reason: input.reason,
        keep: usize::try_from(keep).unwrap_or(usize::MAX),
        busy_timeout: settings.busy_timeout,
        narrowing,
        audit: call.audit_row(None, None),
    };
    match call.core.pool.restore(request, &call.cancel).await {
        Ok(restored) => {
            call.recorded(restored.audit.clone());
            call.core.schema_changed();
            for warning in &restored.warnings {
                tracing::warn!("{warning}");
            }
            Ok(restored)
        }
        Err(error) if fate::is_in_doubt(&error) => {
            let fate = call.fate().await;
            if fate != Fate::Undone {
                call.core.schema_changed();
            }
            Err(call.fated(fate, RESTORE, error))
        }
        Err(error) => Err(call.explain(error)),
    }
}
