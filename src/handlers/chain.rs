//! append_event, checkpoint, verify_chain, get_resume_context: the memory that is only added to.
//!
//! The store writes and reads it; hashes and verdicts are `chain/`'s.

use super::{Call, Reply, required_text};
use crate::error::ToolError;
use crate::sqlite::readout::ResumeChoice;
use crate::store::Appended;
use crate::store::reader::Reading;
use std::sync::Arc;
use std::time::Duration;

/// The least time a verification may take, whatever --query-timeout says: it reads the whole chain.
const LEAST_VERIFY_TIME: Duration = Duration::from_secs(60);

/// Arguments of [`append_event`].
pub struct AppendEventInput {
    /// The text.
    pub content: String,
    /// Its kind.
    pub kind: String,
}

/// Arguments of [`checkpoint`].
pub struct CheckpointInput {
    /// Where the work stands.
    pub summary: String,
}

/// Arguments of [`verify`]: none.
pub struct VerifyInput {}

/// Arguments of [`resume`].
pub struct ResumeInput {
    /// Events to show at most.
    pub max_events: u64,
    /// Kinds to leave out.
    pub exclude_kinds: Option<Vec<String>>,
}

/// Appends one event.
///
/// # Errors
/// As the store says.
pub async fn append_event(call: &Call<'_>, input: AppendEventInput) -> Result<Reply, ToolError> {
    call.note("kind", input.kind.as_str());
    call.note("content_bytes", input.content.len());
    required_text("content", &input.content)?;
    required_text("kind", &input.kind)?;
    let store = call.store()?;
    let row = call.audit_row(Some(1), None);
    let for_log = row.clone();
    let made = move |appended: &Appended| with_id(row, "event", appended.id);
    let appended = store.append_event(Some(&input.kind), &input.content, made).await?;
    call.recorded(with_id(for_log, "event", appended.id));
    let hash = appended.hash.get(..12).unwrap_or(&appended.hash);
    Ok(Reply::text(format!("ok: event {} appended (hash {hash}...)", appended.id), Some(1)))
}

/// Writes a checkpoint at the newest event.
///
/// # Errors
/// As the store says.
pub async fn checkpoint(call: &Call<'_>, input: CheckpointInput) -> Result<Reply, ToolError> {
    call.note("summary_bytes", input.summary.len());
    required_text("summary", &input.summary)?;
    let store = call.store()?;
    let row = call.audit_row(Some(1), None);
    let for_log = row.clone();
    let made = move |appended: &Appended| with_id(row, "checkpoint", appended.id);
    let appended = store.checkpoint(&input.summary, made).await?;
    call.recorded(with_id(for_log, "checkpoint", appended.id));
    let text = format!("ok: checkpoint {} written at event {}", appended.id, appended.last_event_id);
    Ok(Reply::text(text, Some(1)))
}

/// Checks the whole chain and says so in JSON.
///
/// # Errors
/// As the reader says.
pub async fn verify(call: &Call<'_>, _: VerifyInput) -> Result<Reply, ToolError> {
    let reader = call.reader()?;
    let verdict = match &call.core.store {
        Some(store) => store.verify(reader, reading(call)).await?,
        None => reader.verify(reading(call)).await?,
    };
    call.note("ok", verdict.ok);
    Ok(Reply::text(verdict.to_json().to_string(), Some(verdict.events)))
}

/// The resume text.
///
/// # Errors
/// As the reader says.
pub async fn resume(call: &Call<'_>, input: ResumeInput) -> Result<Reply, ToolError> {
    let exclude_kinds = input.exclude_kinds.unwrap_or_default();
    call.note("max_events", input.max_events);
    if !exclude_kinds.is_empty() {
        call.note("exclude_kinds", exclude_kinds.clone());
    }
    let choice = ResumeChoice { max_events: input.max_events, exclude_kinds, caps: call.caps() };
    let reader = call.reader()?;
    let text = match &call.core.store {
        Some(store) => store.resume(reader, choice, reading(call)).await?,
        None => reader.resume(choice, reading(call)).await?,
    };
    Ok(Reply::text(text, None))
}

fn reading(call: &Call<'_>) -> Reading {
    let progress = call.progress.clone().map(|report| {
        let told: crate::store::reader::Progress = Arc::new(move |done, total| {
            #[expect(clippy::cast_precision_loss, reason = "a count of events for a progress bar")]
            report(done as f64, Some(total as f64), "verifying the chain".to_owned());
        });
        told
    });
    Reading { limit: call.timeout().max(LEAST_VERIFY_TIME), cancel: call.cancel.clone(), progress }
}

/// The row with the new row's id in its detail.
fn with_id(mut row: crate::audit::AuditRow, name: &str, id: i64) -> crate::audit::AuditRow {
    let mut detail: serde_json::Map<String, serde_json::Value> =
        row.detail.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    detail.insert(name.to_owned(), id.into());
    row.detail = Some(serde_json::Value::Object(detail).to_string());
    row
}
