//! The protocol over Streamable HTTP: many clients, one service, no sessions.
//!
//! Each request stands for itself, in revisions with a handshake as well: what such a client said before is not known,
//! it can be told of nothing between its requests, and asked nothing. What is refused for that is said where it
//! happens. TLS is a proxy's work.
//!
//! # Layout
//!
//! - `connections`: sockets, bounded in number and time, until the server is told to stop
//! - `router`: which path leads where, and what stands in front of it; `groups`: many services below one path; `signed`: objects
//!   behind signed URLs; `resource`: what leads clients of OAuth to their issuer
//! - `names`: who the server is addressed as and from which web page; `access`: who may come in; `load`: how much at
//!   once; `body`: bodies that are no message are refused
//! - this file: start to end

mod access;
mod body;
mod connections;
mod groups;
mod load;
mod names;
mod resource;
mod router;
mod signed;

use super::handler::Shared;
use super::{ANSWERS_AFTER_END, Ending, Service, shut_down};
use crate::config::HttpSettings;
use crate::error::StartError;
use axum::Router;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use body::MAX_BODY_BYTES;
pub use groups::{Admitted, Asked, Groups, Turned, serve_groups};
pub use signed::{Signed, Unsigned};

/// Where the protocol is served; a group of primitives, at its name below.
pub const PATH: &str = "/mcp";

/// How long the last answers may take to be written once the service is down.
const LAST_WRITE: Duration = Duration::from_millis(50);

/// A socket that listens.
#[derive(Debug)]
pub struct Listening {
    socket: TcpListener,
    /// Where it really does, with the port that was free.
    pub address: SocketAddr,
}

/// Listens at the settings' address. Clients that come before [`serve`] wait.
///
/// # Errors
/// The address is taken, or none of this machine's; exit status 1.
pub async fn listen(settings: &HttpSettings) -> Result<Listening, StartError> {
    let failed = |error: std::io::Error| {
        let address = settings.address;
        StartError::failure(format!(
            "cannot listen on {address}: {error}; --http takes another address or port"
        ))
    };
    let socket = TcpListener::bind(settings.address).await.map_err(failed)?;
    let address = socket.local_addr().map_err(failed)?;
    Ok(Listening { socket, address })
}

/// Serves at [`PATH`] until `stop` is cancelled. Then no more connections are taken, answers to requests already
/// received go out for [`ANSWERS_AFTER_END`], and the service shuts down.
///
/// # Errors
/// The service's descriptors cannot be sent. Nothing a client sends is an error.
pub async fn serve<S: Service>(
    service: Arc<S>,
    listening: Listening,
    settings: &HttpSettings,
    stop: CancellationToken,
) -> Result<Ending, StartError> {
    let (shared, streams) = (Shared::default(), CancellationToken::new());
    let endpoint = router::endpoint(Arc::clone(&service), &shared, streams.clone())?;
    let app = router::front(router::mount(PATH, endpoint, settings, &shared), settings, &shared);
    Ok(until_stopped(listening, app, &shared, &streams, stop, |deadline| service.shutdown(deadline)).await)
}

/// Serves the router, and brings everything to its end.
async fn until_stopped<F: Future<Output = ()>>(
    listening: Listening,
    app: Router,
    shared: &Shared,
    streams: &CancellationToken,
    stop: CancellationToken,
    shutdown: impl FnOnce(Instant) -> F,
) -> Ending {
    let connections = connections::accept(listening.socket, app, &stop).await;
    let stopped = Instant::now();
    shared.ends.input.cancel();
    let mut answered = std::pin::pin!(connections.shutdown());
    let in_time = tokio::time::timeout(ANSWERS_AFTER_END, &mut answered).await.is_ok();
    shared.ends.calls.cancel();
    shut_down(stopped, shutdown).await;
    if !in_time {
        // What the service still said of its calls goes out; streams that nothing comes on any more end.
        let _ = tokio::time::timeout(LAST_WRITE, &mut answered).await;
        streams.cancel();
    }
    Ending::Stopped
}
