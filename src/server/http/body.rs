//! Bodies: bounded in size and time, and refused as on stdin where they are no message.
//!
//! What is one goes on to the library as it came. The library itself answers everything it cannot read with 415 and a
//! plain text, which tells a client neither what is wrong nor which of its requests.

use super::super::message::{self, INVALID_REQUEST, Message, Parsed, Refusal};
use super::load::owner;
use crate::shares::{Owner, Shares};
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// The longest body that is read.
pub const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of bodies that are read at once, of all requests together; more wait.
const BYTES_AT_ONCE: usize = 4 * MAX_BODY_BYTES;

/// How long a body may take, waiting for its turn included.
const BODY_TIME: Duration = Duration::from_secs(30);

/// What is counted at once.
const BLOCK_BYTES: usize = 16 * 1024;

/// Room for the bodies that are being read.
#[derive(Debug)]
pub(super) struct Room(Shares);

impl Default for Room {
    fn default() -> Self {
        Self(Shares::new(BYTES_AT_ONCE / BLOCK_BYTES))
    }
}

/// Reads the body of a POST and refuses what is no message.
pub(super) async fn judged(State(room): State<Arc<Room>>, request: Request, next: Next) -> Response {
    // Everything else has its answer in the library: 405, 406 or 415.
    if request.method() != Method::POST || !is_json(request.headers()) {
        return next.run(request).await;
    }
    let owner = owner(&request);
    let (parts, body) = request.into_parts();
    let body = match collected(&room, &owner, &parts.headers, body, MAX_BODY_BYTES).await {
        Ok(body) => body,
        Err(Unread::TooLong) => return too_long(),
        Err(unread) => return unread.into_response(),
    };
    match refusal(&body) {
        Verdict::Message => next.run(Request::from_parts(parts, Body::from(body))).await,
        Verdict::Ignored => StatusCode::ACCEPTED.into_response(),
        Verdict::Refused(refusal) => answer(&refusal),
    }
}

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is longer than it may be, by its head or once it was read so far.
    TooLong,
    BrokenOff,
    TooSlow,
}

impl IntoResponse for Unread {
    fn into_response(self) -> Response {
        match self {
            Self::TooLong => (StatusCode::PAYLOAD_TOO_LARGE, "the body is too long\n").into_response(),
            Self::BrokenOff => (StatusCode::BAD_REQUEST, "the body broke off\n").into_response(),
            Self::TooSlow => (StatusCode::REQUEST_TIMEOUT, "the body took too long\n").into_response(),
        }
    }
}

/// Reads a whole body of at most so many bytes, once there is room for it.
///
/// # Errors
/// Why it was not read.
pub(super) async fn collected(
    room: &Room,
    owner: &Owner,
    headers: &HeaderMap,
    body: Body,
    most: usize,
) -> Result<Bytes, Unread> {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let length: usize = length.unwrap_or(most);
    if length > most {
        return Err(Unread::TooLong);
    }
    let read = async {
        let _room = room.0.take(owner, length.div_ceil(BLOCK_BYTES).max(1)).await;
        let mut reading = Request::new(body);
        DefaultBodyLimit::max(most).apply(&mut reading);
        Bytes::from_request(reading, &()).await
    };
    match tokio::time::timeout(BODY_TIME, read).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(error)) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => Err(Unread::TooLong),
        Ok(Err(_)) => Err(Unread::BrokenOff),
        Err(_) => Err(Unread::TooSlow),
    }
}

/// What a body is.
#[derive(Debug)]
enum Verdict {
    Message,
    Ignored,
    Refused(Refusal),
}

fn refusal(body: &[u8]) -> Verdict {
    let refused = |words: &str| Verdict::Refused(Refusal::new(None, INVALID_REQUEST, words));
    match message::parse(body) {
        Parsed::Nothing => refused("the body is empty; POST one message of JSON-RPC"),
        Parsed::Batch(_) => refused("over HTTP there are no batches; POST one message at a time"),
        Parsed::One(Message::Refused(refusal)) => Verdict::Refused(refusal),
        Parsed::One(Message::Ignored) => Verdict::Ignored,
        Parsed::One(Message::Request(..) | Message::Ping(_) | Message::Passing(_)) => Verdict::Message,
    }
}

fn answer(refusal: &Refusal) -> Response {
    // Where the request is known by its id, the client waits for this very answer, which comes as answers do.
    let status = if refusal.id.is_some() && refusal.code != INVALID_REQUEST {
        StatusCode::OK
    } else {
        StatusCode::BAD_REQUEST
    };
    (status, [(CONTENT_TYPE, "application/json")], refusal.to_bytes()).into_response()
}

fn too_long() -> Response {
    let words = format!("a body may hold {MAX_BODY_BYTES} bytes");
    let refusal = Refusal::new(None, INVALID_REQUEST, words);
    (StatusCode::PAYLOAD_TOO_LARGE, [(CONTENT_TYPE, "application/json")], refusal.to_bytes()).into_response()
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}
