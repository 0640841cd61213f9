//! How much at once: requests that wait for their answer are bounded, and the bytes of their bodies.
//!
//! Calls that run at once are bounded behind it, by `turns`. Streams of subscriptions are, by `changes`.

use crate::outcome::Caller;
use crate::shares::{Owner, Shares, Taken};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Requests whose answer has not begun; more are sent away.
const REQUESTS_AT_ONCE: usize = 256;

/// The places.
#[derive(Debug)]
pub(super) struct Load(Shares);

impl Default for Load {
    fn default() -> Self {
        Self(Shares::new(REQUESTS_AT_ONCE))
    }
}

impl Load {
    /// A place in this share, if there is one.
    pub(super) fn place(&self, owner: &Owner) -> Option<Taken> {
        self.0.try_take(owner, 1)
    }
}

/// Sends requests away while there are too many.
pub(super) async fn bounded(State(load): State<Arc<Load>>, request: Request, next: Next) -> Response {
    match load.place(&owner(&request)) {
        Some(_place) => next.run(request).await,
        None => busy(),
    }
}

/// In whose share of what goes on at once a request is.
pub(super) fn owner(request: &Request) -> Owner {
    request.extensions().get::<Caller>().map(|caller| caller.owner.clone()).unwrap_or_default()
}

/// The answer to whom there is no room for.
pub(super) fn busy() -> Response {
    let words = "the server has as many requests as it takes at once; try again\n";
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], words).into_response()
}
