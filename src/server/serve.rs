//! One connection from its first byte to its end.
//!
//! The order of the end is here: how long answers go on, when the service shuts down, and that all
//! of it together takes less than two seconds. It does not choose the streams and installs no signal handler.

use super::Service;
use super::flight::Flight;
use super::guard::Guard;
use super::handler::{Ends, Handler, Shared, Wire};
use super::lines::{Lines, MAX_LINE_BYTES};
use super::stdio;
use super::transport::{self, LineTransport};
use super::writer::Writer;
use crate::error::StartError;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

/// How long answers to calls already received go out after the end of input.
pub const ANSWERS_AFTER_END: Duration = Duration::from_millis(1500);

/// How long [`Service::shutdown`] may take at least, whatever has been spent on answers before.
const SHUTDOWN_TIME: Duration = Duration::from_millis(400);

/// When the shutdown is to be over, from the end of input or the signal on: clients kill a server that is there after two
/// seconds. Where no answers were waited for, all of it is for a disk that is slow to sync the last rows.
const ALL_OVER: Duration = Duration::from_millis(1900);

/// How long the last lines may take to be written once the service is down.
const LAST_WRITE: Duration = Duration::from_millis(50);

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The client closed its end.
    Closed,
    /// `stop` was cancelled.
    Stopped,
}

/// Serves the client at standard input and output; otherwise as [`serve`].
///
/// # Errors
/// As [`serve`].
pub async fn serve_stdio<S: Service>(service: Arc<S>, stop: CancellationToken) -> Result<Ending, StartError> {
    serve_until(service, stdio::input(), stdio::output(), stop, stdio::hang_up()).await
}

/// Serves one client until it closes its end or `stop` is cancelled, then shuts the service down.
///
/// # Errors
/// The service's descriptors cannot be sent. Nothing a client sends is an error.
pub async fn serve<S, R, W>(
    service: Arc<S>,
    input: R,
    output: W,
    stop: CancellationToken,
) -> Result<Ending, StartError>
where
    S: Service,
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    serve_until(service, input, output, stop, CancellationToken::new()).await
}

/// `hung_up` says that the client has closed its end, although there may be something left to read.
async fn serve_until<S, R, W>(
    service: Arc<S>,
    input: R,
    output: W,
    stop: CancellationToken,
    hung_up: CancellationToken,
) -> Result<Ending, StartError>
where
    S: Service,
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let flight = Arc::new(Flight::default());
    let (input_over, running) = (CancellationToken::new(), CancellationToken::new());
    let ends = Ends { input: input_over.clone(), calls: running.clone() };
    let shared = Shared { ends, ..Shared::default() };
    let handler = Handler::new(Arc::clone(&service), Wire::Lines, &shared)?;
    let guard = Guard::new(handler, Arc::clone(&flight));
    let (writer, writing) = Writer::start(output, Arc::clone(&flight));
    let over = CancellationToken::new();
    let lines = Lines::new(input, MAX_LINE_BYTES);
    let ends = transport::Ends { hung_up, input: input_over.clone(), all: over.clone() };
    let transport = LineTransport::new(lines, writer.clone(), flight, ANSWERS_AFTER_END, ends);
    let talk = async {
        match guard.serve_with_ct(transport, running.clone()).await {
            Ok(service) => {
                let _ = service.waiting().await;
            }
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {}
            Err(error) => tracing::error!(%error, "the handshake failed"),
        }
    };
    let input_ended = OnceLock::new();
    let noticing = async {
        input_over.cancelled().await;
        let _ = input_ended.set(Instant::now());
        std::future::pending::<()>().await;
    };
    // `over` comes before the library's own wait for handlers, which takes longer than a client waits.
    let ending = tokio::select! {
        () = noticing => Ending::Closed,
        () = talk => Ending::Closed,
        () = over.cancelled() => Ending::Closed,
        () = stop.cancelled() => Ending::Stopped,
    };
    running.cancel();
    let ended = input_ended.get().copied().unwrap_or_else(Instant::now);
    shut_down(ended, |deadline| service.shutdown(deadline)).await;
    writer.close(writing, LAST_WRITE).await;
    Ok(ending)
}

/// Shuts a service down whose input ended, or which was told to stop, at this moment.
pub async fn shut_down<F: Future<Output = ()>>(ended: Instant, shutdown: impl FnOnce(Instant) -> F) {
    let deadline = (ended + ALL_OVER).max(Instant::now() + SHUTDOWN_TIME);
    if tokio::time::timeout_at(deadline.into(), shutdown(deadline)).await.is_err() {
        tracing::warn!("the shutdown took too long and was abandoned");
    }
}
