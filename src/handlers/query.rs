//! read_query, write_query, destructive_query: SQL that an agent wrote.
//!
//! What is allowed is the policy's and the worker's to say; here the order of things is kept: for a
//! destructive call compile, then snapshot, then run.

use super::confirm::{Consent, Statement};
use super::{Call, Reply, note_params, required_reason, rows, together, unexpected_answer};
use crate::audit::AuditRow;
use crate::error::ToolError;
use crate::generated::ACTION_WORDS;
use crate::policy::ActionKind;
use crate::render::one_line;
use crate::spec::model::Format;
use crate::sqlite::copy::SnapshotKind;
use crate::sqlite::params::Params;
use crate::sqlite::query::Form;
use crate::sqlite::toll::Toll;
use crate::sqlite::write::Changed;
use crate::store::TurnGuard;
use crate::worker::protocol::{Answer, Grouped, Work};
use serde_json::Value;

/// The answer to a statement that an IF EXISTS or IF NOT EXISTS leaves nothing to do.
const NOTHING_TO_DO: &str =
    "ok: nothing was to be done, by its IF EXISTS or IF NOT EXISTS; nothing has changed";
/// Characters of a name that an answer repeats.
const MAX_SHOWN_NAME: usize = 200;

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
    read_up_to(call, input, call.limits().max_rows).await
}

/// As [`read`], where a call can ask for no more than `most` rows.
///
/// # Errors
/// As the worker says.
pub(super) async fn read_up_to(call: &Call<'_>, input: ReadInput, most: u64) -> Result<Reply, ToolError> {
    call.note_query(&input.query);
    call.note("limit", input.limit);
    note_params(call, input.params.as_ref());
    let params = Params::from_json(input.params)?;
    let work = Work::Read {
        sql: input.query,
        params,
        limit: input.limit,
        max_rows: most,
        caps: call.caps(),
        form: match call.format() {
            Format::Csv => Form::Csv,
            Format::Structured => Form::Data,
        },
    };
    match call.read(work).await? {
        Answer::Text(result) => Ok(Reply::text(result.text, Some(result.rows))),
        Answer::Rows(found) => rows::reply(call, found, input.limit, most),
        _ => Err(unexpected_answer()),
    }
}

/// Runs one statement that adds, or overwrites within the cap.
///
/// # Errors
/// As the worker says; a person who does not agree, where one must.
pub async fn write(call: &Call<'_>, input: WriteInput) -> Result<Reply, ToolError> {
    call.note_query(&input.query);
    note_params(call, input.params.as_ref());
    let wanted = Wanted::new(call, input.query, input.params, None)?;
    if call.must_ask() {
        return run_if_agreed(call, wanted).await;
    }
    call.note("call", call.number());
    if together::fits(&wanted.sql, &wanted.params) {
        let grouped = wanted.clone().grouped(call);
        let audit = grouped.audit.clone();
        if let Some(changed) = call.change_together(grouped).await? {
            note_change(call, audit, &changed);
            return Ok(reply(&changed, ""));
        }
    }
    let turn = call.turn().await?;
    run(call, wanted, None, &turn).await?.ok_or_else(unexpected_answer)
}

/// Runs one statement that deletes, alters or overwrites at large, after a snapshot.
///
/// # Errors
/// As the worker says; a snapshot that fails; a person who does not agree. Reason and snapshot are named
/// when the statement fails after one.
pub async fn destroy(call: &Call<'_>, input: DestroyInput) -> Result<Reply, ToolError> {
    call.note_query(&input.query);
    call.note("reason", input.reason.as_str());
    note_params(call, input.params.as_ref());
    required_reason(&input.reason)?;
    let wanted = Wanted::new(call, input.query, input.params, Some(input.reason))?;
    let turn = call.turn().await?;
    let check = Work::Check { sql: wanted.sql.clone(), params: wanted.params.clone() };
    if let Answer::Accepted { to_do: false } = call.write(check, &turn).await? {
        return Ok(Reply::text(NOTHING_TO_DO, Some(0)));
    }
    if call.must_ask() {
        drop(turn);
        return run_if_agreed(call, wanted).await;
    }
    run(call, wanted, None, &turn).await?.ok_or_else(unexpected_answer)
}

/// A change that an agent wants.
#[derive(Clone)]
struct Wanted {
    sql: String,
    params: Params,
    /// The parameters as a person is shown them; none where nobody is asked.
    shown: Option<Value>,
    /// Why; none where the tool asks for none.
    reason: Option<String>,
}

impl Wanted {
    fn new(
        call: &Call<'_>,
        sql: String,
        given: Option<Value>,
        reason: Option<String>,
    ) -> Result<Self, ToolError> {
        let shown = if call.must_ask() { given.clone() } else { None };
        Ok(Self { sql, params: Params::from_json(given)?, shown, reason })
    }

    /// The change as it goes to a worker.
    fn grouped(self, call: &Call<'_>) -> Grouped {
        Grouped {
            sql: self.sql,
            params: self.params,
            max_rows: call.limits().max_rows,
            caps: call.caps(),
            max_overwrites: max_overwrites(call),
            audit: call.audit_row(None, None),
        }
    }
}

/// Runs a change that a person must agree to. Each round runs it on trial, so that what is asked about is what
/// it takes now; the turn is given back before the person is asked. A consent holds for one run, and the
/// run that takes something else is rolled back.
async fn run_if_agreed(call: &Call<'_>, wanted: Wanted) -> Result<Reply, ToolError> {
    let mut agreed = None;
    loop {
        let turn = call.turn().await?;
        let (sql, params) = (wanted.sql.clone(), wanted.params.clone());
        let trial = Work::Try { sql, params, max_overwrites: max_overwrites(call) };
        let Answer::Takes(toll) = call.write(trial, &turn).await? else { return Err(unexpected_answer()) };
        let (params, reason) = (wanted.shown.as_ref(), wanted.reason.as_deref());
        let question = call.question(Statement { sql: &wanted.sql, params, reason }, &toll);
        if agreed.take().is_some_and(|subject: String| subject == question.subject)
            || call.has_consent(&question)?
        {
            match run(call, wanted.clone(), Some(*toll), &turn).await? {
                Some(reply) => return Ok(reply),
                None => continue,
            }
        }
        drop(turn);
        let subject = question.subject.clone();
        match call.ask(question).await? {
            Consent::Given => agreed = Some(subject),
            Consent::Pending(reply) => return Ok(reply),
        }
    }
}

/// Runs a change, behind a snapshot where the policy wants one; none where it takes something else than was
/// agreed to and was rolled back.
async fn run(
    call: &Call<'_>,
    wanted: Wanted,
    agreed: Option<Toll>,
    turn: &TurnGuard,
) -> Result<Option<Reply>, ToolError> {
    if !call.policy.policy().snapshots_first {
        let changed = change(call, wanted, agreed, turn).await?;
        return Ok(changed.map(|changed| reply(&changed, "")));
    }
    if call.core.settings.snapshots == 0 {
        let changed = change(call, wanted, agreed, turn).await?;
        return Ok(changed.map(|changed| reply(&changed, "; snapshots are disabled (--snapshots 0)")));
    }
    let done = call.snapshot(SnapshotKind::Auto).await?;
    let path = done.path.display().to_string();
    call.note("snapshot", path.as_str());
    let reason = wanted.reason.clone().unwrap_or_default();
    match change(call, wanted, agreed, turn).await {
        Ok(changed) => Ok(changed.map(|changed| reply(&changed, &format!("; snapshot: {path}")))),
        Err(error) => Err(ToolError::new(
            error.code,
            format!("{}; reason: {}; a snapshot had been made: {path}", error.message, reason.trim()),
        )),
    }
}

fn max_overwrites(call: &Call<'_>) -> Option<u64> {
    call.policy.policy().counts_overwrites.then_some(call.limits().max_update_rows)
}

/// Runs a change; none where it takes something else than was agreed to.
async fn change(
    call: &Call<'_>,
    wanted: Wanted,
    agreed: Option<Toll>,
    turn: &TurnGuard,
) -> Result<Option<Changed>, ToolError> {
    let Grouped { sql, params, max_rows, caps, max_overwrites, audit } = wanted.grouped(call);
    let logged = audit.clone();
    let work = Work::Change { sql, params, max_rows, caps, max_overwrites, agreed, audit };
    match call.write(work, turn).await? {
        Answer::Changed(changed) => {
            note_change(call, logged, &changed);
            Ok(Some(changed))
        }
        Answer::Takes(_) => Ok(None),
        _ => Err(unexpected_answer()),
    }
}

/// The change is in the database, and its row with it.
fn note_change(call: &Call<'_>, mut audit: AuditRow, changed: &Changed) {
    audit.rows = i64::try_from(changed.rows).ok();
    call.recorded(audit);
    if changed.structural.as_ref().is_some_and(|(kind, _)| changes_tables(*kind)) {
        call.core.schema_changed();
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
    if changed.nothing {
        return Reply::text(NOTHING_TO_DO, Some(0));
    }
    let done = match &changed.structural {
        Some((kind, object)) => {
            let label =
                ACTION_WORDS.iter().find(|words| words.kind == *kind).map_or("done", |words| words.label);
            format!("{label} {}", one_line(object, MAX_SHOWN_NAME)).trim_end().to_owned()
        }
        None => format!("{} rows affected", changed.rows),
    };
    let rowid = changed.last_insert_rowid.map(|id| format!(" (last_insert_rowid={id})")).unwrap_or_default();
    let returning = changed.returning.as_ref().map(|rows| format!("\n{rows}")).unwrap_or_default();
    Reply::text(format!("ok: {done}{rowid}{more}{returning}"), Some(changed.rows))
}
