//! How much at once: requests that wait for their answer are bounded, and the bytes of their bodies.
//!
//! Calls that run at once are bounded behind it, by `turns`. Streams of subscriptions are, by `changes`.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Requests whose answer has not begun; more are sent away.
const REQUESTS_AT_ONCE: usize = 256;

/// The places.
#[derive(Debug)]
pub(super) struct Load(Semaphore);

impl Default for Load {
    fn default() -> Self {
        Self(Semaphore::new(REQUESTS_AT_ONCE))
    }
}

/// Sends requests away while there are too many.
pub(super) async fn bounded(State(load): State<Arc<Load>>, request: Request, next: Next) -> Response {
    match load.0.try_acquire() {
        Ok(_place) => next.run(request).await,
        Err(_) => busy(),
    }
}

/// The answer to whom there is no room for.
pub(super) fn busy() -> Response {
    let words = "the server has as many requests as it takes at once; try again\n";
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], words).into_response()
}
