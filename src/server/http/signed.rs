//! Objects behind signed URLs: `GET`, `HEAD` and `PUT` on `/s/PRIMITIVE`, for any client of HTTP.
//!
//! What an object holds may have been written by an agent, and a browser may open it here: so nothing is guessed about
//! its type (nosniff), scripts in it are in a sandbox with an origin of its own, what is not harmless to show is
//! offered as a file, and the URL, which is a secret, goes to nobody as a referrer. Which URLs hold is [`Groups::signed`]'s.

use super::body::{self, Unread};
use super::groups::Groups;
use super::load::busy;
use super::router::Bounds;
use crate::error::{ErrorCode, ToolError};
use crate::shares::Owner;
use crate::state::blobs::MOST_WRITTEN;
use crate::state::catalog::Primitive;
use crate::state::objects::{Condition, DEFAULT_TYPE, Head, Objects, check_type, range, same_type};
use crate::state::signing::{Grant, PATH};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, IF_RANGE, RANGE, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::stream;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// Bytes that are read and sent at once.
const PIECE_BYTES: usize = 256 << 10;

/// An object that a URL lets its bearer at.
pub struct Signed {
    /// What the URL allows; it was signed here, and holds.
    pub grant: Grant,
    /// Where the object is.
    pub objects: Arc<dyn Objects>,
    /// The primitive that it is in.
    pub primitive: Primitive,
    /// In whose share of what goes on at once.
    pub owner: Owner,
}

/// Why a URL opens nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsigned {
    /// It does not hold; in words. Status 403.
    Forbidden(&'static str),
    /// What it was for is no more. Status 404.
    Gone,
    /// It cannot be found out now; in words. Status 503.
    Later(String),
}

/// What the routes share.
struct Route<G> {
    groups: Arc<G>,
    bounds: Bounds,
}

/// The routes.
pub(super) fn routes<G: Groups>(groups: Arc<G>, bounds: &Bounds) -> Router {
    let state = Arc::new(Route { groups, bounds: bounds.clone() });
    let both = get(read::<G>).put(write::<G>);
    Router::new().route(&format!("{PATH}/{{primitive}}"), both).with_state(state)
}

async fn read<G: Groups>(
    State(route): State<Arc<Route<G>>>,
    Path(primitive): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    answered(&route, &primitive, query, request, false).await
}

async fn write<G: Groups>(
    State(route): State<Arc<Route<G>>>,
    Path(primitive): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    // In a task of its own: the client may go, and what it has written is noted all the same.
    let work = async move { answered(&route, &primitive, query, request, true).await };
    tokio::spawn(work).await.unwrap_or_else(|_| guarded(StatusCode::INTERNAL_SERVER_ERROR.into_response()))
}

/// Judges the URL, does what it allows, and has it noted as calls are.
async fn answered<G: Groups>(
    route: &Route<G>,
    primitive: &str,
    query: Option<String>,
    request: Request,
    writes: bool,
) -> Response {
    let began = Instant::now();
    let signed = match route.groups.signed(primitive, &query.unwrap_or_default(), writes).await {
        Ok(signed) => signed,
        Err(unsigned) => {
            tracing::info!(?unsigned, "a request by signed URL was turned away");
            return guarded(refused(unsigned));
        }
    };
    let method = request.method().clone();
    let response = match route.bounds.load.place(&signed.owner) {
        None => busy(),
        Some(_place) if writes => put(route, &signed, request).await,
        Some(_place) => read_object(&signed, request).await,
    };
    route.groups.note_signed(&signed, &method, response.status().as_u16(), began).await;
    guarded(response)
}

async fn read_object(signed: &Signed, request: Request) -> Response {
    let (grant, objects) = (&signed.grant, Arc::clone(&signed.objects));
    let (method, headers) = (request.method(), request.headers());
    let head = match objects.head(grant.key.clone()).await {
        Ok(Some(head)) => head,
        Ok(None) => {
            return (StatusCode::NOT_FOUND, "there is no object at this key\n").into_response();
        }
        Err(error) => return failed(&error),
    };
    let known = text(headers, IF_NONE_MATCH).is_some_and(|tags| tags == "*" || lists(tags, &head.etag));
    if known {
        return (StatusCode::NOT_MODIFIED, [(ETAG, head.etag)]).into_response();
    }
    let (status, (start, end)) = match part(headers, &head) {
        Part::Whole => (StatusCode::OK, (0, head.size)),
        Part::Of(part) => (StatusCode::PARTIAL_CONTENT, part),
        Part::None => {
            let all = format!("bytes */{}", head.size);
            return (StatusCode::RANGE_NOT_SATISFIABLE, [(CONTENT_RANGE, all)]).into_response();
        }
    };
    let body = if *method == Method::HEAD { Body::empty() } else { pieces(objects, &head, start, end) };
    let mut response = (status, body).into_response();
    let mut set = |name: HeaderName, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            response.headers_mut().insert(name, value);
        }
    };
    set(CONTENT_TYPE, head.content_type.clone());
    set(CONTENT_LENGTH, (end - start).to_string());
    set(ETAG, head.etag.clone());
    set(ACCEPT_RANGES, "bytes".to_owned());
    if status == StatusCode::PARTIAL_CONTENT {
        set(CONTENT_RANGE, format!("bytes {start}-{}/{}", end - 1, head.size));
    }
    if !is_harmless(&head.content_type) {
        set(CONTENT_DISPOSITION, "attachment".to_owned());
    }
    response
}

async fn put<G>(route: &Route<G>, signed: &Signed, request: Request) -> Response {
    let Signed { grant, objects, owner, .. } = signed;
    let (parts, body) = request.into_parts();
    // RFC 9110 (14.5, 8.4): whoever does not know these two must not take the body for the whole object as it is.
    if parts.headers.contains_key(CONTENT_RANGE) {
        let words = "a PUT here writes the whole object; send all of it, without `Content-Range`\n";
        return (StatusCode::BAD_REQUEST, words).into_response();
    }
    if parts.headers.contains_key(CONTENT_ENCODING) {
        let words = "an object is kept as its bytes come; send them unpacked, without `Content-Encoding`\n";
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, words).into_response();
    }
    let given = text(&parts.headers, CONTENT_TYPE);
    let content_type = match (&grant.content_type, given) {
        (Some(signed), given) if !given.is_some_and(|given| same_type(given, signed)) => {
            let words = format!("this URL was signed for `Content-Type: {signed}`; send that\n");
            return (StatusCode::UNSUPPORTED_MEDIA_TYPE, words).into_response();
        }
        (_, Some(given)) => given.to_owned(),
        (_, None) => DEFAULT_TYPE.to_owned(),
    };
    let condition = match condition(&parts.headers, grant.if_none) {
        Ok(condition) => condition,
        Err(words) => return (StatusCode::BAD_REQUEST, words).into_response(),
    };
    if let Err(error) = check_type(&content_type) {
        return failed(&error);
    }
    let most =
        grant.max_size.and_then(|most| usize::try_from(most).ok()).unwrap_or(MOST_WRITTEN).min(MOST_WRITTEN);
    let bytes = match body::collected(&route.bounds.room, owner, &parts.headers, body, most).await {
        Ok(bytes) => bytes,
        Err(Unread::TooLong) => {
            let words = format!("this URL takes at most {most} bytes\n");
            return (StatusCode::PAYLOAD_TOO_LARGE, words).into_response();
        }
        Err(unread) => return unread.into_response(),
    };
    match objects.put(grant.key.clone(), bytes.to_vec(), content_type, "{}".to_owned(), condition).await {
        Ok(head) => {
            let written = json!({"key": head.key, "etag": head.etag, "size": head.size});
            let kind = HeaderValue::from_static("application/json");
            let etag = HeaderValue::try_from(head.etag).unwrap_or(HeaderValue::from_static(""));
            ([(ETAG, etag), (CONTENT_TYPE, kind)], written.to_string()).into_response()
        }
        Err(error) => failed(&error),
    }
}

/// What must hold for a write: what was signed, and what the client asks for beyond it.
fn condition(headers: &HeaderMap, signed: bool) -> Result<Condition, &'static str> {
    let if_none = match text(headers, IF_NONE_MATCH) {
        None => signed,
        Some("*") => true,
        Some(_) => return Err("`If-None-Match` of a PUT must be *\n"),
    };
    let if_match = text(headers, IF_MATCH).map(str::to_owned);
    if if_match.is_some() && if_none {
        return Err("send `If-Match` or `If-None-Match`, not both; this URL may be signed for the latter\n");
    }
    Ok(Condition { if_match, if_none })
}

/// What of an object is asked for.
enum Part {
    Whole,
    Of((u64, u64)),
    None,
}

/// The range of RFC 9110 (14.2): one of bytes; any other is passed over, as is one of another version of the object.
fn part(headers: &HeaderMap, head: &Head) -> Part {
    let wanted = text(headers, RANGE).filter(|range| range.starts_with("bytes="));
    let Some(wanted) = wanted else { return Part::Whole };
    if text(headers, IF_RANGE).is_some_and(|tag| tag != head.etag) || range(wanted, u64::MAX).is_err() {
        return Part::Whole;
    }
    range(wanted, head.size).map_or(Part::None, Part::Of)
}

/// The object's bytes, read while they are sent. Should it be replaced meanwhile, the answer breaks off.
fn pieces(objects: Arc<dyn Objects>, head: &Head, start: u64, end: u64) -> Body {
    let (key, etag) = (head.key.clone(), head.etag.clone());
    Body::from_stream(stream::try_unfold(start, move |at| {
        let (objects, key, etag) = (Arc::clone(&objects), key.clone(), etag.clone());
        async move {
            let most = usize::try_from(end.saturating_sub(at)).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            if most == 0 {
                return Ok(None);
            }
            let broken = |why: String| std::io::Error::other(why);
            let found = objects.read(key, at, most).await.map_err(|error| broken(error.message))?;
            match found {
                Some((now, bytes)) if now.etag == etag && !bytes.is_empty() => {
                    let next = at.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                    Ok(Some((bytes, next)))
                }
                _ => Err(broken("the object was replaced while it was sent".to_owned())),
            }
        }
    }))
}

/// Whether a browser runs nothing of it, also where it shows it as a page.
fn is_harmless(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let shown = ["text/plain", "application/json", "application/pdf", "image/png", "image/jpeg", "image/gif"];
    let media = kind.starts_with("audio/") || kind.starts_with("video/");
    media || shown.contains(&kind.as_str()) || matches!(kind.as_str(), "image/webp" | "image/avif")
}

fn lists(tags: &str, etag: &str) -> bool {
    tags.split(',').any(|tag| tag.trim().trim_start_matches("W/") == etag)
}

/// A header that stands once.
fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    if values.next().is_none() { Some(value.trim()) } else { Some("") }
}

fn refused(unsigned: Unsigned) -> Response {
    match unsigned {
        Unsigned::Forbidden(words) => (StatusCode::FORBIDDEN, format!("{words}\n")).into_response(),
        Unsigned::Gone => (StatusCode::NOT_FOUND, "what this URL was for is no more\n").into_response(),
        Unsigned::Later(words) => {
            tracing::warn!(words, "a signed URL cannot be judged");
            busy()
        }
    }
}

fn failed(error: &ToolError) -> Response {
    let status = match error.code {
        ErrorCode::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::InvalidArguments => StatusCode::BAD_REQUEST,
        ErrorCode::Busy => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, format!("{}\n", error.message)).into_response()
}

/// What every answer carries.
fn guarded(mut response: Response) -> Response {
    let always = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, "sandbox"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "private, no-cache"),
    ];
    for (name, value) in always {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
