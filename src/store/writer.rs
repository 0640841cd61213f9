//! The thread that owns the writing connection.
//!
//! It decides nothing about turns: whoever sends a drain has the turn, or holds it elsewhere meanwhile.

use super::queue::{Append, Job, Queue, Text, report};
use super::reader::Reading;
use super::settling::Settling;
use super::trimming::TrimOrder;
use crate::audit::AuditRow;
use crate::error::{StartError, ToolError};
use crate::sqlite::ledger::{Appended, Batch, Ledger, LedgerError, Reach};
use crate::sqlite::readout::{Known, Pace, ResumeChoice};
use crate::sqlite::trim::Trimmed;
use std::collections::VecDeque;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedMutexGuard, oneshot};

/// What the thread is asked.
pub(super) enum Message {
    /// Write what waits, as one transaction.
    Drain {
        /// Whether appends are written, too. Who waits for one has a patience of its own: it is not for a drain
        /// that gives up early to tell them that the lock was not to be had.
        appends: bool,
        /// Given back when it is done.
        turn: Option<OwnedMutexGuard<()>>,
        /// How long to wait for other processes.
        wait: Duration,
        /// Told whether all was written.
        done: Option<oneshot::Sender<bool>>,
    },
    /// The newest audit row of a session.
    MaxId { session: String, reply: oneshot::Sender<Result<i64, ToolError>> },
    /// Whether a call of this run has its row.
    HasRow { call: u64, wait: Duration, reply: oneshot::Sender<Result<bool, ToolError>> },
    /// The number that changes when somebody else commits.
    Version { reply: oneshot::Sender<Option<i64>> },
    /// Remember what was verified, unless somebody else has committed since that number was asked for.
    Trust { version: i64, known: Box<Known> },
    /// The next resume verifies from the first event.
    Distrust,
    /// The resume text, going on from that; none where it has to be verified in full.
    Resume {
        choice: ResumeChoice,
        reading: Reading,
        reply: oneshot::Sender<Result<Option<String>, ToolError>>,
    },
    /// Move old audit rows into a file.
    Trim {
        order: TrimOrder,
        /// Given back when it is done.
        turn: OwnedMutexGuard<()>,
        reply: oneshot::Sender<Result<Option<Trimmed>, ToolError>>,
    },
    /// Close the connection and end.
    Stop {
        /// Told when the connection is closed.
        closed: Option<oneshot::Sender<()>>,
    },
}

/// The way to the thread.
#[derive(Debug)]
pub(super) struct Writer {
    messages: mpsc::Sender<Message>,
}

impl Writer {
    /// Starts it.
    pub(super) fn start(
        ledger: Ledger,
        queue: Arc<Queue>,
        session: String,
        settling: Arc<Settling>,
    ) -> Result<Self, StartError> {
        let (messages, inbox) = mpsc::channel();
        std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || serve(ledger, &queue, &session, &inbox, &settling))
            .map_err(|error| StartError::failure(format!("cannot start the writing thread: {error}")))?;
        Ok(Self { messages })
    }

    /// Sends. To a thread that has ended, the message is dropped, which closes the reply in it.
    pub(super) fn send(&self, message: Message) {
        let _ = self.messages.send(message);
    }
}

fn serve(
    mut ledger: Ledger,
    queue: &Queue,
    session: &str,
    inbox: &mpsc::Receiver<Message>,
    settling: &Settling,
) {
    while let Ok(message) = inbox.recv() {
        match message {
            Message::Drain { appends, turn, wait, done } => {
                let settled = drain(&mut ledger, queue, session, appends, wait);
                drop(turn);
                if settled.unsynced {
                    settling.is_due();
                }
                if let Some(done) = done {
                    // Nobody listens: the caller has gone, and that is its right.
                    let _ = done.send(settled.all_written);
                }
                for (reply, result) in settled.replies {
                    let _ = reply.send(result);
                }
            }
            Message::MaxId { session, reply } => {
                let _ = reply.send(ledger.max_audit_id(&session));
            }
            Message::Version { reply } => {
                let _ = reply.send(ledger.data_version());
            }
            Message::Trust { version, known } => ledger.trust(version, *known),
            Message::Distrust => ledger.distrust(),
            // Whoever had no patience verifies in full by now.
            Message::Resume { reply, .. } if reply.is_closed() => {}
            Message::Resume { choice, reading, reply } => {
                let cancelled = || reading.cancel.is_cancelled();
                let deadline = Instant::now() + reading.limit;
                let pace =
                    Pace { deadline, limit: reading.limit, cancelled: &cancelled, progress: &|_, _| {} };
                let _ = reply.send(ledger.resume(&choice, &pace));
            }
            Message::HasRow { call, wait, reply } => {
                let _ = reply.send(ledger.has_row_of(session, call, wait));
            }
            Message::Trim { order, turn, reply } => {
                let trimmed = order.run(&mut ledger, session);
                drop(turn);
                let _ = reply.send(trimmed);
            }
            Message::Stop { closed } => {
                // The last connection to close takes the WAL into the file and removes it. Another server may stay.
                settling.sync();
                drop(ledger);
                if let Some(closed) = closed {
                    let _ = closed.send(());
                }
                return;
            }
        }
    }
}

type Reply = oneshot::Sender<Result<Appended, ToolError>>;

/// What a drain came to.
struct Settled {
    all_written: bool,
    /// Something was committed that a power cut could take back.
    unsynced: bool,
    replies: Vec<(Reply, Result<Appended, ToolError>)>,
}

/// One transaction over what waits.
fn drain(ledger: &mut Ledger, queue: &Queue, session: &str, appends: bool, wait: Duration) -> Settled {
    let (mut jobs, more) = if appends { (queue.take(), false) } else { queue.take_rows() };
    jobs.retain(|job| !matches!(job, Job::Append(append) if append.reply.is_closed()));
    let mut work = Work::default();
    if jobs.is_empty() {
        return Settled { all_written: !more, unsynced: false, replies: Vec::new() };
    }
    let power_safe = jobs.iter().any(|job| matches!(job, Job::Append(_)));
    let outcome = match ledger.batch(wait, power_safe) {
        Ok(batch) => work.write(batch, &mut jobs, session),
        Err(error) => Err(error),
    };
    let lost = match outcome {
        Err(lost) if lost.reach != Reach::Nowhere => lost,
        written => {
            for (row, error) in &work.refused {
                tracing::error!("{}", error.message);
                report(row);
            }
            let mut replies = work.replies;
            if let Err(shaken) = written {
                tracing::error!("{}", shaken.error.message);
                for (_, result) in replies.iter_mut().filter(|(_, result)| result.is_ok()) {
                    *result = Err(shaken.error.clone());
                }
            }
            return Settled { all_written: !more, unsynced: !power_safe, replies };
        }
    };
    // Nothing stands. Audit rows wait for the next try, appends are told.
    let mut rows = work.rows;
    rows.extend(work.refused.into_iter().map(|(row, _)| row));
    let mut replies: Vec<_> = work
        .replies
        .into_iter()
        .map(|(reply, result)| (reply, result.and_then(|_| Err(lost.error.clone()))))
        .collect();
    for job in jobs {
        match job {
            Job::Audit(row) => rows.push(row),
            Job::Append(append) => replies.push((append.reply, Err(lost.error.clone()))),
        }
    }
    if rows.is_empty() {
        return Settled { all_written: true, unsynced: false, replies };
    }
    tracing::debug!("{} audit rows wait: {}", rows.len(), lost.error.message);
    queue.put_back(rows);
    Settled { all_written: false, unsynced: false, replies }
}

/// What a batch has done so far.
#[derive(Default)]
struct Work {
    /// Audit rows inserted.
    rows: Vec<AuditRow>,
    /// Audit rows that cannot be inserted, whatever the lock.
    refused: Vec<(AuditRow, ToolError)>,
    /// Appends, done or refused.
    replies: Vec<(Reply, Result<Appended, ToolError>)>,
}

impl Work {
    fn write(
        &mut self,
        mut batch: Batch<'_>,
        jobs: &mut VecDeque<Job>,
        session: &str,
    ) -> Result<(), LedgerError> {
        while let Some(job) = jobs.pop_front() {
            match job {
                Job::Audit(row) => match batch.audit(&row) {
                    Ok(()) => self.rows.push(row),
                    Err(LedgerError { reach: Reach::Row, error }) => self.refused.push((row, error)),
                    Err(lost) => {
                        self.rows.push(row);
                        return Err(lost);
                    }
                },
                Job::Append(append) => self.append(&mut batch, append, session)?,
            }
        }
        batch.commit()
    }

    fn append(&mut self, batch: &mut Batch<'_>, append: Append, session: &str) -> Result<(), LedgerError> {
        let Append { text, audit, reply } = append;
        let written = match &text {
            Text::Event { kind, content } => batch.event(session, kind, content, audit),
            Text::Checkpoint { summary } => batch.checkpoint(session, summary, audit),
        };
        match written {
            Ok(appended) => {
                self.replies.push((reply, Ok(appended)));
                Ok(())
            }
            Err(LedgerError { reach: Reach::Row, error }) => {
                self.replies.push((reply, Err(error)));
                Ok(())
            }
            Err(lost) => {
                self.replies.push((reply, Err(lost.error.clone())));
                Err(lost)
            }
        }
    }
}
