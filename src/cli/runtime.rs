//! The event loop and the signals that end it.
//!
//! One thread: the work is in worker processes, and a second thread would only cost wake-ups.

use crate::error::StartError;
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

/// A token that SIGTERM, SIGINT or SIGHUP cancels. Until it is called, signals end the process as usual,
/// which is right while a database is opened: that may wait for a lock and has nothing to lose.
#[cfg(unix)]
pub(super) fn stop_at_signals() -> Result<CancellationToken, StartError> {
    use tokio::signal::unix::{SignalKind, signal};
    let stop = CancellationToken::new();
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        let mut signals =
            signal(kind).map_err(|error| StartError::failure(format!("cannot wait for signals: {error}")))?;
        let stop = stop.clone();
        tokio::spawn(async move {
            signals.recv().await;
            stop.cancel();
        });
    }
    Ok(stop)
}

/// A token that ctrl-c cancels.
#[cfg(not(unix))]
pub(super) fn stop_at_signals() -> Result<CancellationToken, StartError> {
    let stop = CancellationToken::new();
    let cancelled = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            cancelled.cancel();
        }
    });
    Ok(stop)
}
