//! One file of state: a thread that writes, and connections that read.
//!
//! One writer per file, so that nobody waits for a lock inside this process. What comes in while a transaction is
//! committed shares the next one: a commit costs a sync of the disk, and a hundred writes can share it. A write
//! that fails is rolled back alone (a savepoint) and does not touch its neighbours.

use crate::error::{ErrorCode, ToolError};
use crate::sqlite::state_file::{self, Steps};
use crate::state::Outcome;
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use tokio::sync::{oneshot, watch};

/// The most writes that share a transaction.
const MOST_AT_ONCE: usize = 512;
/// Connections that are kept for the next reader.
const READERS_KEPT: usize = 2;

/// A file of state.
pub struct StateFile {
    path: PathBuf,
    writes: mpsc::Sender<Message>,
    writer: Mutex<Option<JoinHandle<()>>>,
    readers: Mutex<Vec<Connection>>,
    changes: watch::Sender<u64>,
}

enum Message {
    Write(Box<dyn Write>),
    /// Say so, and wait until the other end is dropped.
    Hold(oneshot::Sender<()>, mpsc::Receiver<()>),
    Close,
}

/// While it lives, nothing is written to a file; what comes in waits.
pub struct Held {
    _release: mpsc::Sender<()>,
}

/// A write on its way: run in the transaction, answered after the commit.
trait Write: Send {
    /// Whether there is anything to keep.
    fn run(&mut self, connection: &Connection) -> bool;
    fn answer(self: Box<Self>, committed: Result<(), ToolError>);
}

struct Task<T, W> {
    work: Option<W>,
    result: Option<Outcome<T>>,
    answer: oneshot::Sender<Outcome<T>>,
}

impl<T: Send, W: FnOnce(&Connection) -> Outcome<T> + Send> Write for Task<T, W> {
    fn run(&mut self, connection: &Connection) -> bool {
        let Some(work) = self.work.take() else { return false };
        let result = in_savepoint(connection, work);
        let kept = result.is_ok();
        self.result = Some(result);
        kept
    }

    fn answer(self: Box<Self>, committed: Result<(), ToolError>) {
        let result = self.result.unwrap_or_else(|| Err(lost()));
        // Who asked may be gone; the write stands.
        let _ = self.answer.send(result.and_then(|value| committed.map(|()| value)));
    }
}

impl StateFile {
    /// Opens the file, made if it is missing, and starts its thread.
    ///
    /// # Errors
    /// As [`state_file::writer`].
    pub fn open(path: PathBuf, steps: Steps) -> Outcome<Self> {
        let connection = state_file::writer(&path, steps)?;
        let (writes, inbox) = mpsc::channel();
        let writer = std::thread::Builder::new()
            .name("state".to_owned())
            .spawn(move || write_all(&connection, &inbox))
            .map_err(|error| {
                ToolError::new(ErrorCode::Busy, format!("cannot start a thread: {error}; try again"))
            })?;
        Ok(Self {
            path,
            writes,
            writer: Mutex::new(Some(writer)),
            readers: Mutex::default(),
            changes: watch::Sender::new(0),
        })
    }

    /// Wakes those who wait for a change.
    pub fn changed(&self) {
        self.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// Tells of every call of [`Self::changed`] from now on.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Runs work in a transaction and answers when it is on the disk. An error rolls back this work alone.
    ///
    /// # Errors
    /// The work's own; or that nothing could be committed.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Outcome<T> {
        let (answer, answered) = oneshot::channel();
        let task = Task { work: Some(work), result: None, answer };
        self.writes.send(Message::Write(Box::new(task))).map_err(|_| lost())?;
        answered.await.map_err(|_| lost())?
    }

    /// Runs work over one committed state of the file.
    ///
    /// # Errors
    /// The work's own.
    pub async fn read<T: Send + 'static>(
        self: &std::sync::Arc<Self>,
        work: impl FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Outcome<T> {
        let file = std::sync::Arc::clone(self);
        let read = move || {
            let connection = match file.idle_reader() {
                Some(connection) => connection,
                None => state_file::reader(&file.path)?,
            };
            let result = in_savepoint(&connection, work);
            let mut readers = file.readers.lock().unwrap_or_else(PoisonError::into_inner);
            if readers.len() < READERS_KEPT {
                readers.push(connection);
            }
            result
        };
        tokio::task::spawn_blocking(read).await.map_err(|_| lost())?
    }

    /// Holds the writer up, after what is queued.
    ///
    /// # Errors
    /// The file is closed.
    pub async fn hold(&self) -> Outcome<Held> {
        let (held, holds) = oneshot::channel();
        let (release, until) = mpsc::channel();
        self.writes.send(Message::Hold(held, until)).map_err(|_| lost())?;
        holds.await.map_err(|_| lost())?;
        Ok(Held { _release: release })
    }

    fn idle_reader(&self) -> Option<Connection> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Ends the thread after what is queued, and closes the connections.
    pub async fn close(&self) {
        let _ = self.writes.send(Message::Close);
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            let _ = tokio::task::spawn_blocking(move || writer.join()).await;
        }
    }
}

fn in_savepoint<T>(connection: &Connection, work: impl FnOnce(&Connection) -> Outcome<T>) -> Outcome<T> {
    let run = |sql| connection.execute_batch(sql).map_err(|error| state_file::error(&error));
    run("SAVEPOINT one")?;
    let result = work(connection);
    if result.is_err() {
        run("ROLLBACK TO one")?;
    }
    run("RELEASE one")?;
    result
}

/// The writing thread.
fn write_all(connection: &Connection, inbox: &mpsc::Receiver<Message>) {
    let mut next = inbox.recv().ok();
    while let Some(message) = next.take() {
        match message {
            Message::Close => return,
            Message::Hold(held, until) => {
                if held.send(()).is_ok() {
                    // Ends with an error when the other end is dropped.
                    let _ = until.recv();
                }
            }
            Message::Write(first) => next = write_some(connection, first, inbox),
        }
        if next.is_none() {
            next = inbox.recv().ok();
        }
    }
}

/// One transaction with everything that waits; gives back a message of another kind that it met.
fn write_some(
    connection: &Connection,
    first: Box<dyn Write>,
    inbox: &mpsc::Receiver<Message>,
) -> Option<Message> {
    if let Err(error) = connection.execute_batch("BEGIN IMMEDIATE") {
        first.answer(Err(state_file::error(&error)));
        return None;
    }
    let mut done = Vec::new();
    let mut met = None;
    let mut kept = false;
    let mut task = Some(first);
    while let Some(mut write) = task.take() {
        kept |= write.run(connection);
        done.push(write);
        if done.len() < MOST_AT_ONCE {
            match inbox.try_recv() {
                Ok(Message::Write(write)) => task = Some(write),
                Ok(other) => met = Some(other),
                Err(_) => {}
            }
        }
    }
    let end = if kept { "COMMIT" } else { "ROLLBACK" };
    let committed = connection.execute_batch(end).map_err(|error| state_file::error(&error));
    if committed.is_err() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    done.into_iter().for_each(|write| write.answer(committed.clone()));
    met
}

/// The thread is gone: the server ends, or the thread died.
fn lost() -> ToolError {
    ToolError::new(ErrorCode::Busy, "the server is closing this primitive; try again")
}
