//! The server's own reading connection: one consistent view of events and checkpoints, fed to the
//! chain's verifier and to the resume text.
//!
//! How the events are read stands in `chain_view`. It judges nothing itself and writes nothing.

use super::chain_view::{NewestCheckpoint, ReadFault, UNREAD, View, Walked};
use super::one_moment::{begin_both, run};
use crate::chain::resume::{ResumeEvent, ResumeText};
use crate::chain::{SoundPrefix, Tally, Verdict};
use crate::error::{ErrorCode, StartError, ToolError};
use crate::render::{Caps, Flow};
use crate::sqlite::identity::Opened;
use crate::sqlite::rows::cell;
use crate::sqlite::{diagnose, open, tables};
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a reading may take, and who wants to know how it goes.
pub struct Pace<'a> {
    /// When to give up.
    pub deadline: Instant,
    /// The time from the start to the deadline, for the message.
    pub limit: Duration,
    /// Whether the caller has given up; asked often.
    pub cancelled: &'a (dyn Fn() -> bool + Sync + 'a),
    /// Told the events done and about how many there are, a few times a second at most.
    pub progress: &'a (dyn Fn(u64, u64) + 'a),
}

impl Pace<'_> {
    /// # Errors
    /// The caller has given up, or the deadline has passed.
    pub fn check(&self) -> Result<(), ToolError> {
        if (self.cancelled)() {
            return Err(ToolError::new(ErrorCode::Cancelled, "the client cancelled the call"));
        }
        if Instant::now() < self.deadline {
            return Ok(());
        }
        let limit = self.limit.as_secs_f64();
        let message = format!(
            "checking the chain took longer than {limit} s and was stopped; ask again when the server is less busy, \
             or check it with `indelible verify`"
        );
        Err(ToolError::new(ErrorCode::Timeout, message))
    }
}

/// What a resume text shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumeChoice {
    /// The most events shown.
    pub max_events: u64,
    /// Kinds left out and not counted.
    pub exclude_kinds: Vec<String>,
    /// How much text.
    pub caps: Caps,
}

/// A chain in which nothing was wrong, as far as a later reading needs it to go on from there.
#[derive(Clone, Debug)]
pub struct Known {
    pub(super) sound: SoundPrefix,
    /// Events behind the newest checkpoint there was.
    pub(super) tally: Tally,
    pub(super) has_hash: bool,
}

impl Known {
    /// None where something was wrong, or where the reading was not of one moment.
    pub(super) fn of(view: &View<'_>, walked: &Walked) -> Option<Self> {
        let sound = walked.verifier.sound().filter(|_| !view.in_pieces)?;
        Some(Self { sound, tally: walked.tally.clone(), has_hash: view.has_hash })
    }
}

/// The reading connection.
#[derive(Debug)]
pub struct Readout {
    connection: Connection,
    opened: Option<Opened>,
}

impl Readout {
    /// Opens the file to read.
    ///
    /// # Errors
    /// Exit status 1: the file cannot be read.
    pub fn open(path: &Path, busy_timeout: Duration) -> Result<Self, StartError> {
        let connection = open::for_reading(path, busy_timeout)?;
        let opened = Opened::of(path, None).ok();
        let readout = Self::over(connection).map_err(|error| diagnose::sqlite_error(path, &error))?;
        Ok(Self { opened, ..readout })
    }

    /// Reads over a connection that is open already, and keeps it to reading.
    ///
    /// # Errors
    /// SQLite's.
    pub(super) fn over(mut connection: Connection) -> rusqlite::Result<Self> {
        connection.authorizer(Some(only_reading))?;
        Ok(Self { connection, opened: None })
    }

    /// Checks every event and every checkpoint, with a second connection on two threads. Also says what a later
    /// reading may go on from.
    ///
    /// # Errors
    /// No such tables, the deadline, a cancelled call, or SQLite's. A broken chain is a verdict.
    pub fn verify(
        &self,
        pace: &Pace<'_>,
        beside: Option<&mut Self>,
    ) -> Result<(Verdict, Option<Known>), ToolError> {
        self.in_one_view(beside, |view, beside| {
            let since = newest_since(view.newest_checkpoint()?.as_ref());
            let walked = view.walk(Tally::behind(since, &[]), pace, beside)?;
            let known = Known::of(view, &walked);
            Ok((walked.verifier.finish(), known))
        })
    }

    /// The resume text, over the same view of the file as the verdict in it; otherwise as [`Readout::verify`].
    ///
    /// # Errors
    /// As [`Readout::verify`].
    pub fn resume(
        &self,
        choice: &ResumeChoice,
        pace: &Pace<'_>,
        beside: Option<&mut Self>,
    ) -> Result<(String, Option<Known>), ToolError> {
        self.in_one_view(beside, |view, beside| {
            let newest = view.newest_checkpoint()?;
            let tally = Tally::behind(newest_since(newest.as_ref()), &choice.exclude_kinds);
            let walked = view.walk(tally, pace, beside)?;
            let known = Known::of(view, &walked);
            // It is known: the kinds left out are counted apart.
            let events = walked.tally.without(&choice.exclude_kinds).unwrap_or_default();
            let verdict = walked.verifier.finish();
            Ok((resume_text(view, newest.as_ref(), events, &verdict, choice, pace)?, known))
        })
    }

    fn in_one_view<T>(
        &self,
        beside: Option<&mut Self>,
        read: impl FnOnce(&View<'_>, Option<&mut Connection>) -> Result<T, ReadFault>,
    ) -> Result<T, ToolError> {
        if let Some(opened) = &self.opened {
            opened.look()?;
        }
        let mut beside = beside.map(|beside| &mut beside.connection);
        let result = self
            .begin(beside.as_deref())
            .and_then(|(view, both)| read(&view, beside.as_deref_mut().filter(|_| both)));
        for connection in [Some(&self.connection), beside.as_deref()].into_iter().flatten() {
            end(connection);
        }
        result.map_err(in_words)
    }

    /// Begins the view, also on the second connection where both can have the same.
    fn begin(&self, beside: Option<&Connection>) -> Result<(View<'_>, bool), ReadFault> {
        let connection = &self.connection;
        let mode: String =
            connection.prepare_cached("PRAGMA main.journal_mode")?.query_row([], |row| row.get(0))?;
        let in_pieces = mode != "wal";
        let both = match beside {
            Some(beside) if !in_pieces => begin_both(connection, beside)?,
            _ => run(connection, "BEGIN").map(|()| false)?,
        };
        Ok((View::of(connection, in_pieces)?, both))
    }
}

/// The event that the newest checkpoint names; without one, all events lie behind it.
pub(super) fn newest_since(newest: Option<&NewestCheckpoint>) -> i64 {
    newest.map_or(i64::MIN, |checkpoint| checkpoint.last_event_id)
}

/// The text: the newest checkpoint, the newest events behind it of the `events` that there are, the verdict.
pub(super) fn resume_text(
    view: &View<'_>,
    newest: Option<&NewestCheckpoint>,
    events: u64,
    verdict: &Verdict,
    choice: &ResumeChoice,
    pace: &Pace<'_>,
) -> Result<String, ReadFault> {
    let chosen =
        |kind: Option<&[u8]>| !choice.exclude_kinds.iter().any(|excluded| Some(excluded.as_bytes()) == kind);
    let mut text = ResumeText::new(newest.map(NewestCheckpoint::borrowed), choice.caps);
    let mut statement = view.connection.prepare_cached(
        "SELECT id, ts, kind, content FROM memory_events WHERE id > ?1 AND id <= ?2 ORDER BY id DESC",
    )?;
    let mut rows = statement.query((newest_since(newest), view.last))?;
    let mut shown = 0;
    while shown < choice.max_events
        && let Some(row) = rows.next()?
    {
        pace.check()?;
        if !chosen(row.get_ref(2)?.as_bytes().ok()) {
            continue;
        }
        let event =
            ResumeEvent { id: cell(row, 0)?, ts: cell(row, 1)?, kind: cell(row, 2)?, content: cell(row, 3)? };
        if text.older(&event) == Flow::Full {
            break;
        }
        shown += 1;
    }
    Ok(text.finish(events, verdict))
}

/// Ends a read transaction, if there is one.
pub(super) fn end(connection: &Connection) {
    if !connection.is_autocommit()
        && let Err(error) = connection.execute_batch("ROLLBACK")
    {
        tracing::error!("cannot end a read transaction: {error}");
    }
}

pub(super) fn in_words(fault: ReadFault) -> ToolError {
    match fault {
        ReadFault::Tool(error) => error,
        ReadFault::Sqlite(error) => diagnose::tool_error(UNREAD, &error),
    }
}

/// Reading the schema and the server's tables, and through no view or trigger.
fn only_reading(context: AuthContext<'_>) -> Authorization {
    let readable = |table: &str| {
        tables::TABLES.iter().any(|name| name.eq_ignore_ascii_case(table))
            || matches!(table, "sqlite_master" | "sqlite_schema")
    };
    let allowed = context.accessor.is_none()
        && match context.action {
            AuthAction::Select | AuthAction::Transaction { .. } => true,
            AuthAction::Read { table_name, .. } => readable(table_name),
            AuthAction::Pragma { pragma_name, .. } => {
                matches!(pragma_name, "table_xinfo" | "journal_mode" | "data_version")
            }
            _ => false,
        };
    if allowed { Authorization::Allow } else { Authorization::Deny }
}
