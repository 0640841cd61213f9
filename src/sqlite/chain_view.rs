//! The chain as it stood at one moment: walked from its first event to its last, by one thread or by two.
//!
//! It judges nothing itself and writes nothing. In WAL the view is one read transaction, which blocks
//! nobody. In rollback mode a reader that steps keeps writers from committing, so there the events are
//! read in pieces up to the newest one at the start; they are append-only.

use super::one_moment::run;
use super::readout::Pace;
use crate::chain::resume::ResumeCheckpoint;
use crate::chain::{ChainVerifier, Pins, Tally};
use crate::error::{ErrorCode, ToolError};
use crate::sqlite::open;
use crate::sqlite::rows::{checkpoint_of, event_of};
use crate::sqlite::tables::{self, SchemaFault};
use rusqlite::{Connection, OptionalExtension, Row};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A piece of the chain, read in one go, ends at this many events or bytes of text.
const PIECE_EVENTS: usize = 2000;
const PIECE_BYTES: usize = 16 << 20;
/// What two threads share out among them, and the events from which that is worth a thread.
const PARTS: i64 = 16;
const WORTH_TWO_THREADS: i64 = 4096;
/// How often progress is told.
const TOLD_EVERY: Duration = Duration::from_millis(200);
pub(super) const UNREAD: &str = "the chain cannot be read";

/// The file as it was at one moment.
pub(super) struct View<'a> {
    pub(super) connection: &'a Connection,
    /// The newest event then; `i64::MIN` for none.
    pub(super) last: i64,
    /// Whether checkpoints have the column `hash`.
    pub(super) has_hash: bool,
    pub(super) in_pieces: bool,
}

/// How far a walk has come.
#[derive(Clone, Debug)]
pub(super) struct Walked {
    pub(super) verifier: ChainVerifier,
    pub(super) tally: Tally,
}

impl Walked {
    fn joined(self, later: Self) -> Self {
        Self { tally: self.tally.joined(&later.tally), verifier: self.verifier.joined(later.verifier) }
    }
}

/// Events behind `after` up to `through`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    after: i64,
    through: i64,
}

impl<'a> View<'a> {
    /// Looks whether the tables are the server's. The connection is in a transaction.
    pub(super) fn of(connection: &'a Connection, in_pieces: bool) -> Result<Self, ReadFault> {
        let has_hash = match tables::readable(connection) {
            Ok(readable) => readable.checkpoint_hash,
            Err(SchemaFault::Sqlite(error)) => return Err(error.into()),
            Err(SchemaFault::Foreign(what)) => {
                return Err(ToolError::new(ErrorCode::UnknownTable, format!("{UNREAD}: {what}")).into());
            }
        };
        Ok(Self::of_known(connection, has_hash, in_pieces)?)
    }

    /// The same where it is known that they are.
    pub(super) fn of_known(
        connection: &'a Connection,
        has_hash: bool,
        in_pieces: bool,
    ) -> rusqlite::Result<Self> {
        let last: Option<i64> = connection
            .prepare_cached("SELECT id FROM memory_events ORDER BY id DESC LIMIT 1")?
            .query_row([], |row| row.get(0))
            .optional()?;
        Ok(Self { connection, last: last.unwrap_or(i64::MIN), has_hash, in_pieces })
    }

    /// Feeds all checkpoints and events to a verifier, and counts; with a second connection that has the same
    /// view, on two threads.
    pub(super) fn walk(
        &self,
        tally: Tally,
        pace: &Pace<'_>,
        beside: Option<&mut Connection>,
    ) -> Result<Walked, ReadFault> {
        let start = Walked { verifier: ChainVerifier::new(self.pins(pace)?), tally };
        if self.in_pieces {
            run(self.connection, "COMMIT")?;
        }
        let shares = Shares::new(self, start)?;
        let mut parts = match beside {
            Some(beside) if shares.parts.len() > 1 => self.walk_beside(&shares, pace, beside)?,
            _ => self.walk_parts(&shares, pace)?,
        };
        parts.sort_by_key(|(at, _)| *at);
        let walked = parts.into_iter().map(|(_, walked)| walked).reduce(Walked::joined);
        let walked = walked.unwrap_or(shares.start);
        (pace.progress)(walked.verifier.events(), walked.verifier.events());
        Ok(walked)
    }

    fn walk_beside(
        &self,
        shares: &Shares,
        pace: &Pace<'_>,
        beside: &mut Connection,
    ) -> Result<Vec<(usize, Walked)>, ReadFault> {
        let (last, has_hash) = (self.last, self.has_hash);
        let (deadline, limit, cancelled) = (pace.deadline, pace.limit, pace.cancelled);
        std::thread::scope(|scope| {
            let theirs =
                std::thread::Builder::new().name("chain".to_owned()).spawn_scoped(scope, move || {
                    let view = View { connection: beside, last, has_hash, in_pieces: false };
                    view.walk_parts(shares, &Pace { deadline, limit, cancelled, progress: &|_, _| {} })
                });
            // Without a second thread, this one walks it all.
            let mut parts = self.walk_parts(shares, pace)?;
            if let Ok(theirs) = theirs {
                parts.extend(theirs.join().unwrap_or_else(|_| Err(walk_failed().into()))?);
            }
            Ok(parts)
        })
    }

    /// Walks parts that nobody else has taken, until none is left.
    fn walk_parts(&self, shares: &Shares, pace: &Pace<'_>) -> Result<Vec<(usize, Walked)>, ReadFault> {
        let mut walked = Vec::new();
        let mut told = Instant::now();
        while let Some((at, part)) = shares.next() {
            let result = self.begin_part(shares, at, part).and_then(|mut begun| {
                self.walk_part(&mut begun, part, pace, |events| {
                    let done = shares.done.fetch_add(events, Ordering::Relaxed) + events;
                    if told.elapsed() >= TOLD_EVERY {
                        told = Instant::now();
                        (pace.progress)(done, u64::try_from(self.last).unwrap_or_default().max(done));
                    }
                })?;
                Ok(begun)
            });
            match result {
                Ok(part) => walked.push((at, part)),
                Err(fault) => {
                    shares.failed.store(true, Ordering::Relaxed);
                    return Err(fault);
                }
            }
        }
        Ok(walked)
    }

    fn begin_part(&self, shares: &Shares, at: usize, part: Part) -> Result<Walked, ReadFault> {
        if at == 0 {
            return Ok(shares.start.clone());
        }
        let sql = "SELECT id, hash FROM memory_events WHERE id <= ?1 ORDER BY id DESC LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let stored = statement.query_row([part.after], |row| {
            Ok((row.get::<_, i64>(0)?, row.get_ref(1)?.as_str().unwrap_or_default().to_owned()))
        });
        // What cannot be read is found by the part before, and then nothing here matters.
        let (id, hash) = match stored {
            Err(error) if is_too_big(&error) => (part.after, String::new()),
            stored => stored?,
        };
        Ok(Walked { verifier: shares.start.verifier.behind(id, &hash), tally: shares.start.tally.clone() })
    }

    /// Walks one part to its end; `told` gets the number of events now and then.
    fn walk_part(
        &self,
        walked: &mut Walked,
        mut part: Part,
        pace: &Pace<'_>,
        mut told: impl FnMut(u64),
    ) -> Result<(), ReadFault> {
        let mut before = walked.verifier.events();
        while let Some(reached) = self.piece(part, walked, pace)? {
            part.after = reached;
            told(walked.verifier.events() - before);
            before = walked.verifier.events();
        }
        Ok(())
    }

    /// Walks on from the event `after` to the newest.
    pub(super) fn walk_on(&self, walked: &mut Walked, after: i64, pace: &Pace<'_>) -> Result<(), ReadFault> {
        self.walk_part(walked, Part { after, through: self.last }, pace, |_| {})
    }

    /// Reads events of a part from its beginning, up to a piece of them; the last id read, if any.
    fn piece(&self, part: Part, walked: &mut Walked, pace: &Pace<'_>) -> Result<Option<i64>, ReadFault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT id, ts, session, kind, content, prev_hash, hash FROM memory_events \
             WHERE id > ?1 AND id <= ?2 ORDER BY id",
        )?;
        let mut rows = statement.query((part.after, part.through))?;
        let (mut events, mut bytes, mut reached) = (0, 0, None);
        while events < PIECE_EVENTS && bytes < PIECE_BYTES {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(error) if is_too_big(&error) => {
                    drop(rows);
                    drop(statement);
                    return self.too_big(reached.unwrap_or(part.after), walked);
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
                    walked.verifier.event(&event);
                }
                Err(reason) => walked.verifier.unreadable(id, &reason),
            }
            walked.tally.event(id, row.get_ref(3)?.as_bytes().ok());
            reached = Some(id);
            events += 1;
        }
        Ok(reached)
    }

    /// An event that is larger than any value the server reads: its id is all that can be had.
    fn too_big(&self, after: i64, walked: &mut Walked) -> Result<Option<i64>, ReadFault> {
        let id: Option<i64> = self
            .connection
            .prepare_cached("SELECT id FROM memory_events WHERE id > ?1 ORDER BY id LIMIT 1")?
            .query_row([after], |row| row.get(0))
            .optional()?;
        if let Some(id) = id {
            walked.verifier.unreadable(id, &format!("it is larger than {} MiB", open::MAX_VALUE_BYTES >> 20));
            walked.tally.event(id, None);
        }
        Ok(id)
    }

    pub(super) fn pins(&self, pace: &Pace<'_>) -> Result<Pins, ReadFault> {
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

    pub(super) fn newest_checkpoint(&self) -> Result<Option<NewestCheckpoint>, ReadFault> {
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

/// The work of two threads.
struct Shares {
    start: Walked,
    parts: Vec<Part>,
    next: AtomicUsize,
    done: AtomicU64,
    failed: AtomicBool,
}

impl Shares {
    fn new(view: &View<'_>, start: Walked) -> rusqlite::Result<Self> {
        let first: Option<i64> = view
            .connection
            .prepare_cached("SELECT id FROM memory_events ORDER BY id LIMIT 1")?
            .query_row([], |row| row.get(0))
            .optional()?;
        let parts = first.map_or_else(Vec::new, |first| parts(first, view.last));
        let (next, done, failed) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicBool::new(false));
        Ok(Self { start, parts, next, done, failed })
    }

    fn next(&self) -> Option<(usize, Part)> {
        if self.failed.load(Ordering::Relaxed) {
            return None;
        }
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        self.parts.get(at).map(|part| (at, *part))
    }
}

/// Ranges of ids that together hold every event from `first` to `last`.
fn parts(first: i64, last: i64) -> Vec<Part> {
    let whole = Part { after: i64::MIN, through: last };
    // Ids can be anything in a file from outside.
    let Some(span) = last.checked_sub(first).filter(|span| *span >= WORTH_TWO_THREADS) else {
        // `id > i64::MIN` leaves out one id that no chain has.
        return vec![whole];
    };
    let width = span / PARTS;
    let ends = (1..PARTS).map(|at| first + at * width).chain([last]);
    let starts = [i64::MIN].into_iter().chain((1..PARTS).map(|at| first + at * width));
    starts.zip(ends).map(|(after, through)| Part { after, through }).collect()
}

pub(super) struct NewestCheckpoint {
    id: i64,
    ts: String,
    pub(super) last_event_id: i64,
    summary: String,
}

impl NewestCheckpoint {
    pub(super) fn borrowed(&self) -> ResumeCheckpoint<'_> {
        let Self { id, ts, last_event_id, summary } = self;
        ResumeCheckpoint { id: *id, ts, last_event_id: *last_event_id, summary }
    }
}

pub(super) enum ReadFault {
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

fn walk_failed() -> ToolError {
    ToolError::new(
        ErrorCode::SqlError,
        format!("{UNREAD}: a thread that read it failed; see the server's stderr"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_every_id_once() {
        for (first, last) in [(1, 1), (1, 4096), (1, 4097), (5, 100_000), (-7, 1 << 40), (i64::MIN, i64::MAX)]
        {
            let parts = parts(first, last);
            assert_eq!(parts.first().map(|part| part.after), Some(i64::MIN), "{first} {last}");
            assert_eq!(parts.last().map(|part| part.through), Some(last), "{first} {last}");
            for pair in parts.windows(2) {
                assert_eq!(pair[0].through, pair[1].after, "{first} {last}");
                assert!(pair[1].after < pair[1].through, "{first} {last}");
            }
            let wide = last.checked_sub(first).is_some_and(|span| span >= WORTH_TWO_THREADS);
            assert_eq!(parts.len() > 1, wide, "{first} {last}");
        }
    }
}
