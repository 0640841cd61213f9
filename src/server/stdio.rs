//! File descriptors 0 and 1 as async streams, each by the fastest way its kind allows.
//!
//! A client may hand over pipes (Python, shells) or socket pairs (Node): both are driven by the event loop, which
//! costs a fraction of the blocking thread pool that everything else (files, terminals) goes through.
//! It reads and writes nothing.

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

/// Standard input.
pub type Input = Box<dyn AsyncRead + Send + Unpin>;

/// Standard output.
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Standard input; call it inside a tokio runtime.
#[must_use]
pub fn input() -> Input {
    #[cfg(unix)]
    if let Some(stream) = events::input() {
        return stream;
    }
    Box::new(tokio::io::stdin())
}

/// Standard output; call it inside a tokio runtime.
#[must_use]
pub fn output() -> Output {
    #[cfg(unix)]
    if let Some(stream) = events::output() {
        return stream;
    }
    Box::new(tokio::io::stdout())
}

/// Cancelled when the other end of standard input is closed, also while there is something left to read: who
/// has paused reading would not notice the end. Where the system does not tell, it never is.
#[must_use]
pub fn hang_up() -> CancellationToken {
    let hung_up = CancellationToken::new();
    #[cfg(unix)]
    events::watch(hung_up.clone());
    hung_up
}

#[cfg(unix)]
mod events {
    //! Streams that the event loop can drive.

    use super::{Input, Output};
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::fs::{FileType, fstat};
    use rustix::io::Errno;
    use std::os::fd::AsFd;
    use tokio::net::UnixStream;
    use tokio_util::sync::CancellationToken;

    pub(super) fn input() -> Option<Input> {
        let stdin = std::io::stdin();
        match kind(&stdin)? {
            FileType::Socket => Some(Box::new(socket(&stdin)?)),
            FileType::Fifo => pipe::receiver(&stdin),
            _ => None,
        }
    }

    pub(super) fn output() -> Option<Output> {
        let stdout = std::io::stdout();
        match kind(&stdout)? {
            FileType::Socket => Some(Box::new(socket(&stdout)?)),
            FileType::Fifo => pipe::sender(&stdout),
            _ => None,
        }
    }

    /// Waits in a thread that ends with the process: the event loop tells of the end only those who read.
    pub(super) fn watch(hung_up: CancellationToken) {
        let waiting = std::thread::Builder::new().name("hang-up".to_owned()).spawn(move || {
            let stdin = std::io::stdin();
            let mut polled = [PollFd::new(&stdin, closing())];
            while matches!(poll(&mut polled, None), Err(Errno::INTR)) {}
            if polled.iter().any(|fd| fd.revents().intersects(closing() | PollFlags::HUP | PollFlags::ERR)) {
                hung_up.cancel();
            }
        });
        if let Err(error) = waiting {
            tracing::warn!(%error, "the end of the input is noticed only when it is read");
        }
    }

    /// A socket says so with a flag of its own, which must be asked for; a pipe says HUP unasked.
    #[cfg(target_os = "linux")]
    fn closing() -> PollFlags {
        PollFlags::RDHUP
    }

    #[cfg(not(target_os = "linux"))]
    fn closing() -> PollFlags {
        PollFlags::empty()
    }

    fn kind(stream: &impl AsFd) -> Option<FileType> {
        Some(FileType::from_raw_mode(fstat(stream).ok()?.st_mode))
    }

    /// A duplicate shares its flags with the original, so O_NONBLOCK holds for that too; the
    /// other end of a socket pair, which is the client's, has flags of its own.
    fn socket(stream: &impl AsFd) -> Option<UnixStream> {
        let duplicate = stream.as_fd().try_clone_to_owned().ok()?;
        let stream = std::os::unix::net::UnixStream::from(duplicate);
        stream.set_nonblocking(true).ok()?;
        UnixStream::from_std(stream).ok()
    }

    #[cfg(target_os = "linux")]
    mod pipe {
        //! A pipe's flags are shared with whoever holds the same open file, so it is opened once more
        //! through /proc, which gives O_NONBLOCK to this process alone.

        use super::{Input, Output};
        use rustix::fs::{Mode, OFlags, open};
        use std::os::fd::{AsFd, AsRawFd, OwnedFd};
        use tokio::net::unix::pipe::{Receiver, Sender};

        pub(in super::super) fn receiver(stream: &impl AsFd) -> Option<Input> {
            Some(Box::new(Receiver::from_owned_fd(reopened(stream, OFlags::RDONLY)?).ok()?))
        }

        pub(in super::super) fn sender(stream: &impl AsFd) -> Option<Output> {
            Some(Box::new(Sender::from_owned_fd(reopened(stream, OFlags::WRONLY)?).ok()?))
        }

        fn reopened(stream: &impl AsFd, mode: OFlags) -> Option<OwnedFd> {
            let path = format!("/proc/self/fd/{}", stream.as_fd().as_raw_fd());
            open(path, mode | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok()
        }
    }

    #[cfg(not(target_os = "linux"))]
    mod pipe {
        //! Elsewhere a pipe cannot be opened once more, and its flags are left alone.

        use super::{Input, Output};
        use std::os::fd::AsFd;

        pub(in super::super) fn receiver(_: &impl AsFd) -> Option<Input> {
            None
        }

        pub(in super::super) fn sender(_: &impl AsFd) -> Option<Output> {
            None
        }
    }
}
