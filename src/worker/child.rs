//! One worker process as the server holds it: how it is started, and frames to and from it.
//!
//! It keeps no time and knows no jobs; `pool` does.

use super::confine::TEMP_VARIABLES;
use super::protocol::{FrameError, FromWorker, Order, body_length, decode, encode};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Environment a worker keeps. Nothing else of the server's reaches it.
const KEPT_ENVIRONMENT: &[&str] = &["RUST_BACKTRACE", "LLVM_PROFILE_FILE", "SystemRoot"];

/// glibc's allocator in a worker: large values get pages of their own, which go back to the system when
/// they are freed (<https://man7.org/linux/man-pages/man3/mallopt.3.html>). As it is set up otherwise,
/// values of up to 32 MB leave holes in its heap, and a worker holds far more than SQLite's heap limit.
const ALLOCATOR_ENVIRONMENT: &[(&str, &str)] =
    &[("MALLOC_ARENA_MAX", "1"), ("MALLOC_MMAP_THRESHOLD_", "262144"), ("MALLOC_TRIM_THRESHOLD_", "1048576")];

/// One child process. Dropping it kills it.
pub(super) struct Worker {
    pub(super) child: Child,
    /// Which narrowing it was set up with.
    pub(super) narrowing_changes: u64,
    pub(super) input: ChildStdin,
    pub(super) output: ChildStdout,
    pub(super) inbox: Inbox,
}

/// Bytes from a worker that are not a whole frame yet.
#[derive(Default)]
pub(super) struct Inbox {
    buffer: Vec<u8>,
    taken: usize,
}

impl Worker {
    /// Starts one of this program, or of another one, whose temporary files go into this folder; without one it has
    /// none.
    pub(super) fn spawn(program: Option<&Path>, temporary: Option<&Path>) -> io::Result<Self> {
        let mut command = worker_command(program, "worker", temporary)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let gone = || io::Error::other("the worker has no pipe");
        let input = child.stdin.take().ok_or_else(gone)?;
        let output = child.stdout.take().ok_or_else(gone)?;
        Ok(Self { child, narrowing_changes: 0, input, output, inbox: Inbox::default() })
    }

    /// The worker, unless it died while nobody looked.
    pub(super) fn if_alive(mut self) -> Option<Self> {
        matches!(self.child.try_wait(), Ok(None)).then_some(self)
    }

    /// Sends the first message and waits for the answer to it.
    pub(super) async fn order(&mut self, order: &Order) -> io::Result<Option<FromWorker>> {
        self.input.write_all(&encoded(order)?).await?;
        receive(&mut self.output, &mut self.inbox).await
    }
}

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

/// A command that runs this same program, or the one given, in a process group of its own (a terminal's Ctrl-C is for the
/// server) and without the server's environment.
///
/// # Errors
/// When the program's own file cannot be found.
fn worker_command(
    program: Option<&Path>,
    subcommand: impl AsRef<OsStr>,
    temporary: Option<&Path>,
) -> io::Result<Command> {
    let program = match program {
        Some(program) => program.to_path_buf(),
        // On Linux this is the running program even if its file was replaced meanwhile.
        None if cfg!(target_os = "linux") => PathBuf::from("/proc/self/exe"),
        None => std::env::current_exe()?,
    };
    let mut command = std::process::Command::new(program);
    command.arg(subcommand).env_clear();
    command.envs(ALLOCATOR_ENVIRONMENT.iter().copied());
    for (name, folder) in TEMP_VARIABLES.iter().zip(std::iter::repeat(temporary)) {
        if let Some(folder) = folder {
            command.env(name, folder);
        }
    }
    for name in KEPT_ENVIRONMENT {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        command.arg0("indelible").process_group(0);
    }
    Ok(Command::from(command))
}
