//! The server's own reading connection: one consistent view of events and checkpoints, fed to the
//! chain's verifier and to the resume text.
//!
//! It judges nothing itself and writes nothing. In WAL the view is one read transaction, which blocks
//! nobody. In rollback mode a reader that steps keeps writers from committing, so there the events are
//! read in pieces up to the newest one at the start; they are append-only.

use crate::chain::resume::{ResumeCheckpoint, ResumeEvent, ResumeText};
use crate::chain::{ChainVerifier, Pins, Verdict};
use crate::error::{ErrorCode, StartError, ToolError};
use crate::render::{Caps, Flow};
use crate::sqlite::identity::Opened;
use crate::sqlite::rows::{cell, checkpoint_of, event_of};
use crate::sqlite::tables::{self, SchemaFault};
use crate::sqlite::{diagnose, open};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, OptionalExtension, Row};
use std::path::Path;
use std::time::{Duration, Instant};

/// A piece of the chain, read in one go, ends at this many events or bytes of text.
const PIECE_EVENTS: usize = 2000;
const PIECE_BYTES: usize = 16 << 20;
const UNREAD: &str = "the chain cannot be read";

/// How long a reading may take, and who wants to know how it goes.
pub struct Pace<'a> {
    /// When to give up.
    pub deadline: Instant,
    /// The time from the start to the deadline, for the message.
    pub limit: Duration,
    /// Whether the caller has given up; asked often.
    pub cancelled: &'a (dyn Fn() -> bool + 'a),
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

    /// Checks every event and every checkpoint.
    ///
    /// # Errors
    /// No such tables, the deadline, a cancelled call, or SQLite's. A broken chain is a verdict.
    pub fn verify(&self, pace: &Pace<'_>) -> Result<Verdict, ToolError> {
        self.in_one_view(|view| Ok(view.walk(pace, |_, _| {})?.0))
    }

    /// The resume text, over the same view of the file as the verdict in it.
    ///
    /// # Errors
    /// As [`Readout::verify`].
    pub fn resume(&self, choice: &ResumeChoice, pace: &Pace<'_>) -> Result<String, ToolError> {
        let chosen = |kind: Option<&[u8]>| {
            !choice.exclude_kinds.iter().any(|excluded| Some(excluded.as_bytes()) == kind)
        };
        self.in_one_view(|view| {
            let newest = view.newest_checkpoint()?;
            let since = newest.as_ref().map_or(i64::MIN, |checkpoint| checkpoint.last_event_id);
            let mut events = 0;
            let (verdict, last) = view.walk(pace, |id, kind| {
                events += u64::from(id > since && chosen(kind));
            })?;
            let mut text = ResumeText::new(newest.as_ref().map(NewestCheckpoint::borrowed), choice.caps);
            let mut statement = view.connection.prepare_cached(
                "SELECT id, ts, kind, content FROM memory_events WHERE id > ?1 AND id <= ?2 ORDER BY id DESC",
            )?;
            let mut rows = statement.query((since, last))?;
            let mut shown = 0;
            while shown < choice.max_events
                && let Some(row) = rows.next()?
            {
                pace.check()?;
                if !chosen(row.get_ref(2)?.as_bytes().ok()) {
                    continue;
                }
                let event = ResumeEvent {
                    id: cell(row, 0)?,
                    ts: cell(row, 1)?,
                    kind: cell(row, 2)?,
                    content: cell(row, 3)?,
                };
                if text.older(&event) == Flow::Full {
                    break;
                }
                shown += 1;
            }
            Ok(text.finish(events, &verdict))
        })
    }

    fn in_one_view<T>(&self, read: impl FnOnce(&View<'_>) -> Result<T, ReadFault>) -> Result<T, ToolError> {
        if let Some(opened) = &self.opened {
            opened.look()?;
        }
        let result = self.view().and_then(|view| read(&view));
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!("cannot end a read transaction: {error}");
        }
        result.map_err(|fault| match fault {
            ReadFault::Tool(error) => error,
            ReadFault::Sqlite(error) => diagnose::tool_error(UNREAD, &error),
        })
    }

    fn view(&self) -> Result<View<'_>, ReadFault> {
        let connection = &self.connection;
        connection.execute_batch("BEGIN")?;
        let has_hash = match tables::readable(connection) {
            Ok(readable) => readable.checkpoint_hash,
            Err(SchemaFault::Sqlite(error)) => return Err(error.into()),
            Err(SchemaFault::Foreign(what)) => {
                return Err(ToolError::new(ErrorCode::UnknownTable, format!("{UNREAD}: {what}")).into());
            }
        };
        // Reading starts the view, here at the latest.
        let last: Option<i64> = connection
            .prepare_cached("SELECT id FROM memory_events ORDER BY id DESC LIMIT 1")?
            .query_row([], |row| row.get(0))
            .optional()?;
        let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
        Ok(View { connection, last: last.unwrap_or(i64::MIN), has_hash, in_pieces: mode != "wal" })
    }
}

/// The file as it was at one moment.
struct View<'a> {
    connection: &'a Connection,
    /// The newest event then; `i64::MIN` for none.
    last: i64,
    /// Whether checkpoints have the column `hash`.
    has_hash: bool,
    in_pieces: bool,
}

impl View<'_> {
    /// Feeds all checkpoints and events to the verifier, and each event's id and kind to `each`. Also
    /// returns the newest event's id.
    fn walk(
        &self,
        pace: &Pace<'_>,
        mut each: impl FnMut(i64, Option<&[u8]>),
    ) -> Result<(Verdict, i64), ReadFault> {
        let mut verifier = ChainVerifier::new(self.pins(pace)?);
        if self.in_pieces {
            self.connection.execute_batch("COMMIT")?;
        }
        let total = u64::try_from(self.last).unwrap_or_default();
        let mut told = Instant::now();
        let mut after = i64::MIN;
        while let Some(reached) = self.piece(after, &mut verifier, pace, &mut each)? {
            after = reached;
            if told.elapsed() >= Duration::from_millis(200) {
                told = Instant::now();
                (pace.progress)(verifier.events(), total.max(verifier.events()));
            }
        }
        (pace.progress)(verifier.events(), verifier.events());
        Ok((verifier.finish(), self.last))
    }

    /// Reads the events behind `after`, up to a piece of them; the last id read, if any.
    fn piece(
        &self,
        after: i64,
        verifier: &mut ChainVerifier,
        pace: &Pace<'_>,
        each: &mut impl FnMut(i64, Option<&[u8]>),
    ) -> Result<Option<i64>, ReadFault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT id, ts, session, kind, content, prev_hash, hash FROM memory_events \
             WHERE id > ?1 AND id <= ?2 ORDER BY id",
        )?;
        let mut rows = statement.query((after, self.last))?;
        let (mut events, mut bytes, mut reached) = (0, 0, None);
        while events < PIECE_EVENTS && bytes < PIECE_BYTES {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(error) if is_too_big(&error) => {
                    drop(rows);
                    drop(statement);
                    return self.too_big(reached.unwrap_or(after), verifier, each);
                }
                Err(error) => return Err(error.into()),
            };
            if events.is_multiple_of(64) || bytes >= PIECE_BYTES / 16 {
                pace.check()?;
            }
            let id = row.get(0)?;
            match event_of(row, id) {
                Ok(event) => {
                    bytes += event.content.len();
                    verifier.event(&event);
                }
                Err(reason) => verifier.unreadable(id, &reason),
            }
            each(id, row.get_ref(3)?.as_bytes().ok());
            reached = Some(id);
            events += 1;
        }
        Ok(reached)
    }

    /// An event that is larger than any value the server reads: its id is all that can be had.
    fn too_big(
        &self,
        after: i64,
        verifier: &mut ChainVerifier,
        each: &mut impl FnMut(i64, Option<&[u8]>),
    ) -> Result<Option<i64>, ReadFault> {
        let id: Option<i64> = self
            .connection
            .prepare_cached("SELECT id FROM memory_events WHERE id > ?1 ORDER BY id LIMIT 1")?
            .query_row([after], |row| row.get(0))
            .optional()?;
        if let Some(id) = id {
            verifier.unreadable(id, &format!("it is larger than {} MiB", open::MAX_VALUE_BYTES >> 20));
            each(id, None);
        }
        Ok(id)
    }

    fn pins(&self, pace: &Pace<'_>) -> Result<Pins, ReadFault> {
        let mut pins = Pins::new();
        let sql = if self.has_hash {
            "SELECT id, ts, session, summary, last_event_id, head_hash, hash FROM memory_checkpoints ORDER BY id"
        } else {
            "SELECT id, ts, session, summary, last_event_id, head_hash FROM memory_checkpoints ORDER BY id"
        };
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            pace.check()?;
            let id = row.get(0)?;
            match checkpoint_of(row, id, self.has_hash) {
                Ok(checkpoint) => pins.checkpoint(&checkpoint),
                Err(reason) => pins.unreadable(id, &reason),
            }
        }
        Ok(pins)
    }

    fn newest_checkpoint(&self) -> Result<Option<NewestCheckpoint>, ReadFault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT id, ts, last_event_id, summary FROM memory_checkpoints ORDER BY id DESC LIMIT 1",
        )?;
        // A checkpoint written from outside may hold anything; it is shown as far as it can be.
        let checkpoint = |row: &Row<'_>| {
            let text = |column: usize| -> rusqlite::Result<String> {
                let bytes = row.get_ref(column)?.as_bytes().unwrap_or_default();
                Ok(String::from_utf8_lossy(bytes).into_owned())
            };
            let last_event_id = row.get_ref(2)?.as_i64().unwrap_or_default();
            Ok(NewestCheckpoint { id: row.get(0)?, ts: text(1)?, last_event_id, summary: text(3)? })
        };
        Ok(statement.query_row([], checkpoint).optional()?)
    }
}

struct NewestCheckpoint {
    id: i64,
    ts: String,
    last_event_id: i64,
    summary: String,
}

impl NewestCheckpoint {
    fn borrowed(&self) -> ResumeCheckpoint<'_> {
        let Self { id, ts, last_event_id, summary } = self;
        ResumeCheckpoint { id: *id, ts, last_event_id: *last_event_id, summary }
    }
}

enum ReadFault {
    Sqlite(rusqlite::Error),
    Tool(ToolError),
}

impl From<rusqlite::Error> for ReadFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<ToolError> for ReadFault {
    fn from(error: ToolError) -> Self {
        Self::Tool(error)
    }
}

fn is_too_big(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::TooBig)
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
            AuthAction::Pragma { pragma_name, .. } => matches!(pragma_name, "table_xinfo" | "journal_mode"),
            _ => false,
        };
    if allowed { Authorization::Allow } else { Authorization::Deny }
}
