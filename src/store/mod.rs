//! The parent's storage: the one turn that every write takes, audit rows that never make an answer
//! wait, appends that share a commit, and the readers of the chain.
//!
//! It runs no agent SQL and renders no result. All SQL is below, in `sqlite/`; all threads and queues
//! of storage are here.
//!
//! # How a row gets to the disk
//!
//! Audit rows and appends stand in one queue, in order. Whoever has the turn sends the writing thread
//! a *drain*: it takes what waits and commits it as one transaction. Audit rows alone are
//! drained by a background task within 5 ms; an append drains at once, so that appends which arrive
//! while one commits share the next commit. Rows that meet another process's lock go back to the
//! front of the queue. Such a commit is not synced; a tenth of a second later the WAL is, beside everything else.

pub mod audit_log;
pub mod crowd;
pub mod queue;
pub mod reader;
mod settling;
mod trimming;
mod trusted;
mod writer;

use crate::audit::{AuditRow, Keep};
use crate::error::{ErrorCode, StartError, ToolError};
use crate::sqlite::identity::Opened;
pub use crate::sqlite::ledger::Appended;
use crate::sqlite::ledger::{Ledger, MAX_TEXT_BYTES};
use crate::sqlite::trim::RESERVED;
use crowd::Crowd;
use queue::{Append, AuditMaker, Job, Queue, Text};
use settling::Settling;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, Notify, OwnedMutexGuard, oneshot};
use trimming::TrimOrder;
use writer::{Message, Writer};

/// How long an audit row may wait for others to share its commit with.
const GATHER: Duration = Duration::from_millis(3);
/// How long a background drain waits for another process. Short: in rollback mode a waiting commit
/// keeps new readers out.
const BACKGROUND_WAIT: Duration = Duration::from_millis(50);
/// The longest pause between two tries.
const MAX_PAUSE: Duration = Duration::from_millis(250);
/// How long the last rows wait for another process's lock.
const LAST_WAIT: Duration = Duration::from_millis(165);

/// What the store needs to know.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// The database file.
    pub path: PathBuf,
    /// One id per server run; goes into every event and checkpoint.
    pub session: String,
    /// How long a write waits for another process's lock.
    pub busy_timeout: Duration,
    /// How much of the log stays in the database; none is all.
    pub keep: Option<Keep>,
}

/// The turn to write: while it is held, nothing else of this server writes to the file.
#[derive(Debug)]
pub struct TurnGuard(#[expect(dead_code, reason = "held for its drop")] OwnedMutexGuard<()>);

/// The handle. Dropping it without [`Store::shutdown`] writes what waits, if the lock is free.
#[derive(Debug)]
pub struct Store {
    shared: Arc<Shared>,
    gatherer: tokio::task::JoinHandle<()>,
    settler: tokio::task::JoinHandle<()>,
    trimmer: Option<tokio::task::JoinHandle<()>>,
    session: String,
    busy_timeout: Duration,
    opened: Opened,
    in_rollback_mode: bool,
}

#[derive(Debug)]
struct Shared {
    queue: Arc<Queue>,
    turn: Arc<Mutex<()>>,
    writer: Writer,
    wake: Notify,
    /// Appends that came together.
    crowd: Crowd,
    /// Set when the server ends: what can wait for the next start does.
    stopping: Arc<AtomicBool>,
}

impl Store {
    /// Opens the file, makes the server's tables in it and starts the writing thread. Must be called in
    /// a tokio runtime.
    ///
    /// # Errors
    /// Exit status 1: the file cannot be served.
    pub fn open(settings: StoreSettings) -> Result<Self, StartError> {
        let ledger = Ledger::open(&settings.path, settings.busy_timeout)?;
        let opened = ledger.opened().clone();
        let in_rollback_mode = ledger.unsynced().is_none();
        let queue = Arc::new(Queue::default());
        let settling = Arc::new(Settling::new(ledger.unsynced()));
        let writer =
            Writer::start(ledger, Arc::clone(&queue), settings.session.clone(), Arc::clone(&settling))?;
        let shared = Arc::new(Shared {
            queue,
            turn: Arc::default(),
            writer,
            wake: Notify::new(),
            crowd: Crowd::default(),
            stopping: Arc::default(),
        });
        let gatherer = tokio::spawn(gather(Arc::clone(&shared)));
        let settler = tokio::spawn(settling::settle(settling));
        let trimmer = settings.keep.map(|keep| {
            let order =
                TrimOrder { keep, database: settings.path.clone(), stopping: Arc::clone(&shared.stopping) };
            tokio::spawn(trimming::trim_now_and_then(Arc::clone(&shared), order))
        });
        Ok(Self {
            shared,
            gatherer,
            settler,
            trimmer,
            session: settings.session,
            busy_timeout: settings.busy_timeout,
            opened,
            in_rollback_mode,
        })
    }

    /// The file, to see whether it is still there.
    #[must_use]
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Whether the file is not in WAL mode, so that what was cut off must be rolled back before anybody can read.
    #[must_use]
    pub fn is_in_rollback_mode(&self) -> bool {
        self.in_rollback_mode
    }

    /// The id of this server run.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Waits for the turn to write; first come, first served. Workers' writes take it too.
    pub async fn turn(&self) -> TurnGuard {
        TurnGuard(Arc::clone(&self.shared.turn).lock_owned().await)
    }

    /// Puts an audit row in the queue. Never waits.
    pub fn queue_audit(&self, row: AuditRow) {
        self.shared.queue.push(Job::Audit(row));
        self.shared.wake.notify_one();
    }

    /// Writes the audit rows that wait; true if none is left. Another process's lock is waited for no
    /// longer than `wait`. A caller that has the turn must hand it over as `held`.
    pub async fn flush_audit(&self, wait: Duration, held: Option<&TurnGuard>) -> bool {
        if held.is_some() {
            return !self.shared.queue.has_audit() || self.shared.drain(false, None, wait).await;
        }
        let started = Instant::now();
        // The turn is taken even with an empty queue: rows may be on their way in a drain of another.
        match tokio::time::timeout(wait, Arc::clone(&self.shared.turn).lock_owned()).await {
            Ok(_) if !self.shared.queue.has_audit() => true,
            Ok(turn) => self.shared.drain(false, Some(turn), wait.saturating_sub(started.elapsed())).await,
            Err(_) => false,
        }
    }

    /// Appends an event. `kind` `None` is `note`. The audit row that `audit` makes of it shares its
    /// transaction; after an error the caller queues its own.
    ///
    /// A future that is dropped before the writing thread takes the event up leaves nothing; later, the
    /// event and its row are there.
    ///
    /// # Errors
    /// A blank or too long text, a lock beyond the busy timeout, or what SQLite says.
    pub async fn append_event(
        &self,
        kind: Option<&str>,
        content: &str,
        audit: impl FnOnce(&Appended) -> AuditRow + Send + 'static,
    ) -> Result<Appended, ToolError> {
        check_text("content", content)?;
        let kind = kind.unwrap_or("note");
        check_text("kind", kind)?;
        if kind.starts_with(RESERVED) {
            return Err(ToolError::arguments(format!(
                "`kind` must not begin with `{RESERVED}`: such events are the server's own; choose another"
            )));
        }
        let text = Text::Event { kind: kind.to_owned(), content: content.to_owned() };
        self.append(text, Box::new(audit)).await
    }

    /// Writes a checkpoint at the newest event; otherwise as [`Store::append_event`].
    ///
    /// # Errors
    /// As [`Store::append_event`].
    pub async fn checkpoint(
        &self,
        summary: &str,
        audit: impl FnOnce(&Appended) -> AuditRow + Send + 'static,
    ) -> Result<Appended, ToolError> {
        check_text("summary", summary)?;
        self.append(Text::Checkpoint { summary: summary.to_owned() }, Box::new(audit)).await
    }

    /// The newest audit row of a session, 0 if there is none. Asked before and after, with the turn
    /// held, it tells whether a write worker that died had committed.
    ///
    /// # Errors
    /// SQLite's, or the writing thread is gone.
    pub async fn max_id_of_session(&self, session: &str) -> Result<i64, ToolError> {
        let (reply, answer) = oneshot::channel();
        self.shared.writer.send(Message::MaxId { session: session.to_owned(), reply });
        answer.await.unwrap_or_else(|_| Err(thread_is_gone()))
    }

    /// Whether a call of this run, by its number, has its row in the log: whether a process that died had
    /// committed.
    ///
    /// # Errors
    /// It cannot be found out.
    pub async fn has_row_of(&self, call: u64) -> Result<bool, ToolError> {
        let (reply, answer) = oneshot::channel();
        self.shared.writer.send(Message::HasRow { call, wait: self.busy_timeout, reply });
        answer.await.unwrap_or_else(|_| Err(thread_is_gone()))
    }

    /// Writes what waits, closes the connection and stops, by `deadline`. Rows that cannot be written, or of which that is
    /// not known by then, go to stderr, a line each.
    pub async fn shutdown(&self, deadline: Instant) {
        self.end_tasks();
        let left = || deadline.saturating_duration_since(Instant::now());
        let turn = tokio::time::timeout(left() / 2, Arc::clone(&self.shared.turn).lock_owned()).await;
        // Without the turn a worker still writes; the lock may yet come free while we wait for it.
        let rows = self.shared.queue.rows();
        // A lock of another process is not waited for as long as a disk that is at work.
        let wait = LAST_WAIT.min(left() * 3 / 4);
        if tokio::time::timeout(left(), self.shared.drain(true, turn.ok(), wait)).await.is_err() {
            rows.iter().for_each(queue::report_doubtful);
        }
        self.shared.queue.report_unwritten();
        let (closed, gone) = oneshot::channel();
        self.shared.writer.send(Message::Stop { closed: Some(closed) });
        // A WAL that takes longer to be taken in stays for the next start; nothing is lost by that.
        let _ = tokio::time::timeout(left(), gone).await;
    }

    fn end_tasks(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.gatherer.abort();
        self.settler.abort();
        if let Some(trimmer) = &self.trimmer {
            trimmer.abort();
        }
    }

    async fn append(&self, text: Text, audit: AuditMaker) -> Result<Appended, ToolError> {
        let (reply, mut settled) = oneshot::channel();
        self.shared.queue.push(Job::Append(Append { text, audit, reply }));
        let answer = tokio::select! {
            biased;
            // Taken along by the drain of another.
            answer = &mut settled => answer,
            turn = Arc::clone(&self.shared.turn).lock_owned() => {
                self.shared.crowd.gather(|| self.shared.queue.appends()).await;
                self.shared.writer.send(Message::Drain { appends: true, turn: Some(turn), wait: self.busy_timeout, done: None });
                settled.await
            }
        };
        answer.unwrap_or_else(|_| Err(thread_is_gone()))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.end_tasks();
        self.shared.writer.send(Message::Drain {
            appends: true,
            turn: None,
            wait: BACKGROUND_WAIT,
            done: None,
        });
        self.shared.writer.send(Message::Stop { closed: None });
    }
}

impl Shared {
    /// Has the thread write the audit rows that wait, or everything; true if no row is left. The thread gives the turn
    /// back when it is done, whoever still listens.
    async fn drain(&self, appends: bool, turn: Option<OwnedMutexGuard<()>>, wait: Duration) -> bool {
        let (done, answer) = oneshot::channel();
        self.writer.send(Message::Drain { appends, turn, wait, done: Some(done) });
        answer.await.unwrap_or(false)
    }
}

/// The background task: writes audit rows that nothing else takes along.
async fn gather(shared: Arc<Shared>) {
    loop {
        shared.wake.notified().await;
        tokio::time::sleep(GATHER).await;
        let mut pause = Duration::from_millis(20);
        while shared.queue.has_audit() {
            let turn = Arc::clone(&shared.turn).lock_owned().await;
            if shared.drain(false, Some(turn), BACKGROUND_WAIT).await {
                break;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }
}

fn check_text(name: &str, text: &str) -> Result<(), ToolError> {
    if text.trim().is_empty() {
        return Err(ToolError::arguments(format!("`{name}` is blank; give the text that is to be kept")));
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(ToolError::arguments(format!(
            "`{name}` is {} bytes long, but at most {MAX_TEXT_BYTES} are kept; shorten it or split it up",
            text.len()
        )));
    }
    Ok(())
}

fn thread_is_gone() -> ToolError {
    ToolError::new(ErrorCode::SqlError, "the server's writing thread has ended; restart the server")
}
