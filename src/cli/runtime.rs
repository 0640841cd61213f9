//! The event loop and the signals that end it.
//!
//! One thread: the work is in worker processes, and a second thread would only cost wake-ups.

use crate::error::StartError;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Runs to the end of the future and leaves threads that are blocked in a read behind.
pub(super) fn run<T>(work: impl Future<Output = Result<T, StartError>>) -> Result<T, StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| StartError::failure(format!("cannot start the event loop: {error}")))?;
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    result
}

/// What signals ask for.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// Cancelled when the program is to end.
    pub(super) stop: CancellationToken,
    /// Woken when files are to be read again.
    pub(super) reload: Arc<Notify>,
}

/// SIGTERM and SIGINT stop; SIGHUP stops too, or with `reloads` asks for files to be read again. Until it is
/// called, signals end the process as usual, which is right while a database is opened: that may wait for a lock
/// and has nothing to lose.
#[cfg(unix)]
pub(super) fn signals(reloads: bool) -> Result<Signals, StartError> {
    use tokio::signal::unix::{SignalKind, signal};
    let asked = Signals::default();
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        let mut signals =
            signal(kind).map_err(|error| StartError::failure(format!("cannot wait for signals: {error}")))?;
        let asked = asked.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                if reloads && kind == SignalKind::hangup() {
                    asked.reload.notify_one();
                } else {
                    asked.stop.cancel();
                }
            }
        });
    }
    Ok(asked)
}

/// Ctrl-c stops.
#[cfg(not(unix))]
pub(super) fn signals(_reloads: bool) -> Result<Signals, StartError> {
    let asked = Signals::default();
    let stop = asked.stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    });
    Ok(asked)
}
