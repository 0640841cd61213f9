//! The server's end of the pipes to one worker: frames out and in, safe to drop half-way.
//!
//! It keeps no time and knows no job.

use super::protocol::{FrameError, body_length, decode, encode};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};

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

/// Bytes from a worker that are not a whole frame yet.
#[derive(Default)]
pub(super) struct Inbox {
    buffer: Vec<u8>,
    taken: usize,
}

/// A message as a frame.
///
/// # Errors
/// When it does not fit one.
pub(super) fn encoded<T: serde::Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    encode(message, &mut bytes).map_err(to_io)?;
    Ok(bytes)
}

/// The next message, or none at the end. Safe to drop half-way: what was read stays in the inbox.
pub(super) async fn receive<T: serde::de::DeserializeOwned>(
    output: &mut ChildStdout,
    inbox: &mut Inbox,
) -> io::Result<Option<T>> {
    loop {
        let bytes = inbox.buffer.get(inbox.taken..).unwrap_or_default();
        if let Some((head, rest)) = bytes.split_first_chunk::<4>() {
            let length = body_length(*head).map_err(to_io)?;
            if let Some(body) = rest.get(..length) {
                let message = decode(body).map_err(to_io)?;
                inbox.taken += 4 + length;
                if inbox.taken == inbox.buffer.len() {
                    inbox.buffer.clear();
                    inbox.taken = 0;
                    if inbox.buffer.capacity() > 1 << 20 {
                        inbox.buffer = Vec::new();
                    }
                }
                return Ok(Some(message));
            }
        }
        if output.read_buf(&mut inbox.buffer).await? == 0 {
            return Ok(None);
        }
    }
}

fn to_io(error: FrameError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
