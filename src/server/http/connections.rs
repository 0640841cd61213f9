//! Sockets to HTTP connections, until the server is told to stop.
//!
//! It bounds how many there are and how long a client may take for the head of a request, and looks into none.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Connections at once; more wait in the system's queue. Each is a descriptor, of which a process commonly has 1024.
const CONNECTIONS_AT_ONCE: usize = 512;

/// How long a client may take for the head of a request, and how long a connection without one is kept.
const HEAD_TIME: Duration = Duration::from_secs(75);

/// How long to wait where no connection can be taken, for want of descriptors say.
const BREATH: Duration = Duration::from_millis(200);

/// Serves connections until `stop` is cancelled; returns those that are left, which are to be shut down.
pub(super) async fn accept(listener: TcpListener, app: Router, stop: &CancellationToken) -> GracefulShutdown {
    let places = Arc::new(Semaphore::new(CONNECTIONS_AT_ONCE));
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    loop {
        let (stream, place) = tokio::select! {
            biased;
            () = stop.cancelled() => return graceful,
            accepted = next(&listener, &places) => accepted,
        };
        let app = TowerToHyperService::new(app.clone());
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), app));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended");
            }
            drop(place);
        });
    }
}

/// The next connection, once there is a place for it. May be dropped while it waits.
async fn next(listener: &TcpListener, places: &Arc<Semaphore>) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed.
    let place = Arc::clone(places).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Answers are small and written at once: waiting to fill packets would cost 40 ms each.
                let _ = stream.set_nodelay(true);
                return (stream, place);
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be taken");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}
