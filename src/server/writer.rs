//! The one task that writes: whole lines, in the order they were queued, many in one write where many wait.
//!
//! It does not know what a line holds. Queueing never waits; the reader stops reading while too much
//! is queued, which is where a client that does not read its answers is held back.

use super::flight::Flight;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Queued lines are gathered into one write up to about this many bytes.
const GATHERED_BYTES: usize = 64 * 1024;

/// The way to the writing task. Cheap to clone.
#[derive(Clone)]
pub(super) struct Writer {
    lines: mpsc::UnboundedSender<Queued>,
    queued: Arc<AtomicUsize>,
    /// Cancelled when a write fails: the client no longer reads.
    pub(super) broken: CancellationToken,
}

enum Queued {
    Line(Vec<u8>),
    End,
}

impl Writer {
    /// Starts the task. `flight.changed` is told whenever lines have been written.
    pub(super) fn start<W>(output: W, flight: Arc<Flight>) -> (Self, JoinHandle<()>)
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (lines, queue) = mpsc::unbounded_channel();
        let writer = Self { lines, queued: Arc::new(AtomicUsize::new(0)), broken: CancellationToken::new() };
        let task = tokio::spawn(write_lines(output, queue, writer.clone(), flight));
        (writer, task)
    }

    /// Queues one line; the newline is added here.
    pub(super) fn line(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        self.queued.fetch_add(line.len(), Ordering::Relaxed);
        // Fails only when the task has ended, and then nobody reads.
        let _ = self.lines.send(Queued::Line(line));
    }

    /// Bytes that wait to be written; none once writing has failed.
    pub(super) fn queued_bytes(&self) -> usize {
        if self.broken.is_cancelled() { 0 } else { self.queued.load(Ordering::Relaxed) }
    }

    /// Ends the task behind what is queued, and waits that long at most.
    pub(super) async fn close(&self, task: JoinHandle<()>, patience: Duration) {
        let _ = self.lines.send(Queued::End);
        let _ = tokio::time::timeout(patience, task).await;
    }
}

async fn write_lines<W: AsyncWrite + Unpin>(
    mut output: W,
    mut queue: mpsc::UnboundedReceiver<Queued>,
    writer: Writer,
    flight: Arc<Flight>,
) {
    let mut ended = false;
    while !ended {
        let Some(Queued::Line(mut bytes)) = queue.recv().await else { return };
        while bytes.len() < GATHERED_BYTES {
            match queue.try_recv() {
                Ok(Queued::Line(more)) => bytes.extend_from_slice(&more),
                Ok(Queued::End) => {
                    ended = true;
                    break;
                }
                Err(_) => break,
            }
        }
        let written = async {
            output.write_all(&bytes).await?;
            output.flush().await
        };
        if let Err(error) = written.await {
            tracing::debug!(%error, "the client no longer reads");
            writer.broken.cancel();
            flight.changed.notify_one();
            return;
        }
        writer.queued.fetch_sub(bytes.len(), Ordering::Relaxed);
        flight.changed.notify_one();
    }
}
