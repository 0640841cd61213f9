//! The worker's end of its pipe: frames over stdin and stdout.
//!
//! It knows no message.

use super::protocol::{FrameError, body_length, decode, encode};
use std::fs::File;
use std::io::{self, Read, Write};

/// Frames over stdin and stdout, read through a buffer of our own so that we know what is in it.
pub(super) struct Frames {
    input: File,
    output: File,
    buffer: Vec<u8>,
    taken: usize,
    scratch: Vec<u8>,
}

impl Frames {
    #[cfg(unix)]
    pub(super) fn of_stdio() -> io::Result<Self> {
        use std::os::fd::AsFd;
        let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Self { input, output, buffer: Vec::new(), taken: 0, scratch: Vec::new() })
    }

    #[cfg(windows)]
    pub(super) fn of_stdio() -> io::Result<Self> {
        use std::os::windows::io::AsHandle;
        let input = File::from(io::stdin().as_handle().try_clone_to_owned()?);
        let output = File::from(io::stdout().as_handle().try_clone_to_owned()?);
        Ok(Self { input, output, buffer: Vec::new(), taken: 0, scratch: Vec::new() })
    }

    pub(super) fn receive<T: serde::de::DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        loop {
            let bytes = self.buffer.get(self.taken..).unwrap_or_default();
            if let Some((head, rest)) = bytes.split_first_chunk::<4>() {
                let length = body_length(*head).map_err(to_io)?;
                if let Some(body) = rest.get(..length) {
                    let message = decode(body).map_err(to_io)?;
                    self.taken += 4 + length;
                    if self.taken == self.buffer.len() {
                        self.forget();
                    }
                    return Ok(Some(message));
                }
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    pub(super) fn send<T: serde::Serialize>(&mut self, message: &T) -> io::Result<()> {
        self.scratch.clear();
        encode(message, &mut self.scratch).map_err(to_io)?;
        self.output.write_all(&self.scratch)?;
        if self.scratch.capacity() > 1 << 20 {
            self.scratch = Vec::new();
        }
        Ok(())
    }

    fn fill(&mut self) -> io::Result<bool> {
        let mut chunk = [0_u8; 16 * 1024];
        loop {
            match self.input.read(&mut chunk) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    self.buffer.extend_from_slice(chunk.get(..count).unwrap_or_default());
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn forget(&mut self) {
        self.buffer.clear();
        self.taken = 0;
        if self.buffer.capacity() > 1 << 20 {
            self.buffer = Vec::new();
        }
    }

    /// Whether a receive would find something now, the end of input included.
    #[cfg(unix)]
    pub(super) fn readable(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        if self.taken < self.buffer.len() {
            return true;
        }
        let mut polled = [PollFd::new(&self.input, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Elsewhere the server's timer kills the worker a second later.
    #[cfg(not(unix))]
    pub(super) fn readable(&self) -> bool {
        self.taken < self.buffer.len()
    }
}

fn to_io(error: FrameError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
