//! Frames on their way to a worker, which may take them in parts.
//!
//! It keeps no time: the caller stops waiting.

use std::io;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;

/// Frames on their way to a worker.
pub(super) struct Unsent {
    bytes: Vec<u8>,
    sent: usize,
}

impl Unsent {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, sent: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn push(&mut self, frame: Vec<u8>) {
        self.bytes.extend_from_slice(&frame);
    }

    /// Sends a part. Safe to drop half-way: what was taken by the pipe is counted before anything waits.
    pub(super) async fn send(&mut self, input: &mut ChildStdin) -> io::Result<()> {
        let rest = self.bytes.get(self.sent..).unwrap_or_default();
        self.sent += input.write(rest).await?;
        if self.sent >= self.bytes.len() {
            *self = Self::new(Vec::new());
        }
        Ok(())
    }
}
