//! Which path leads where, and what stands in front of it.
//!
//! A service becomes an [`endpoint`], an endpoint is mounted at a path (one by [`mount`], many by `groups`), and what is
//! mounted goes behind one [`front`]. It serves nothing itself but `/healthz` and `/metrics`.

use super::access::{self, Access};
use super::body::{self, MAX_BODY_BYTES, Room};
use super::load::{self, Load};
use super::names::{self, Names};
use crate::config::HttpSettings;
use crate::error::StartError;
use crate::server::Service;
use crate::server::handler::{Handler, Shared, Wire};
use crate::server::metrics::Metrics;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

/// Where it is said what is counted.
pub(super) const METRICS: &str = "/metrics";

/// How long a browser may remember what it was allowed.
const ALLOWED_FOR: Duration = Duration::from_secs(3600);

/// One service, ready to be mounted.
pub(super) type Endpoint<S> = StreamableHttpService<Arc<Handler<S>>, NeverSessionManager>;

/// Makes a service an endpoint. `streams` ends what is still open when it is cancelled.
///
/// # Errors
/// The service's descriptors cannot be sent.
pub(super) fn endpoint<S: Service>(
    service: Arc<S>,
    shared: &Shared,
    streams: CancellationToken,
) -> Result<Endpoint<S>, StartError> {
    let handler = Arc::new(Handler::new(service, Wire::Http, shared)?);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_retry(None)
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        .with_cancellation_token(streams)
        // `names` looks at them, in front of every path and before the token is asked for.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let sessions = Arc::new(NeverSessionManager::default());
    Ok(StreamableHttpService::new(move || Ok(Arc::clone(&handler)), sessions, config))
}

/// An endpoint at its path, and what is counted.
pub(super) fn mount<S: Service>(
    path: &str,
    endpoint: Endpoint<S>,
    settings: &HttpSettings,
    shared: &Shared,
) -> Router {
    let access = Arc::new(Access::new(settings.token.as_ref()));
    let mounted = Router::new().route_service(path, endpoint).merge(measures(shared));
    bounded(mounted, &Bounds::default()).layer(from_fn_with_state(access, access::required))
}

/// What is counted, for those whom the layers in front of it let through.
pub(super) fn measures(shared: &Shared) -> Router {
    let metrics = Arc::clone(&shared.metrics);
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Router::new().route(METRICS, get(move || std::future::ready((kind, metrics.text()))))
}

/// How many requests at once and how much of their bodies.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    pub(super) load: Arc<Load>,
    pub(super) room: Arc<Room>,
}

/// Bounds what is routed here, and refuses bodies that are no message.
pub(super) fn bounded(mounted: Router, bounds: &Bounds) -> Router {
    loaded(mounted.layer(from_fn_with_state(Arc::clone(&bounds.room), body::judged)), bounds)
}

/// Bounds how many requests at once are routed here.
pub(super) fn loaded(mounted: Router, bounds: &Bounds) -> Router {
    mounted.layer(from_fn_with_state(Arc::clone(&bounds.load), load::bounded))
}

/// Counts a request.
async fn counted(State(metrics): State<Arc<Metrics>>, request: Request, next: Next) -> Response {
    let under_way = metrics.request();
    let response = next.run(request).await;
    metrics.answered(response.status().as_u16());
    drop(under_way);
    response
}

/// What is mounted, with those who may come in judged, behind what every request has to pass; and `/healthz` beside
/// it, which tells nothing.
pub(super) fn front(mounted: Router, settings: &HttpSettings, shared: &Shared) -> Router {
    let names = Arc::new(Names::new(&settings.hosts, &settings.origins));
    // The last one is the first to see a request.
    mounted
        .layer(pages(Arc::clone(&names)))
        .layer(from_fn_with_state(names, names::checked))
        .layer(from_fn_with_state(Arc::clone(&shared.metrics), counted))
        .route("/healthz", get(async || "ok\n"))
}

/// What browsers ask for before they let a page of a known origin use the server.
fn pages(names: Arc<Names>) -> CorsLayer {
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(move |origin, _| names.knows_origin(origin)))
        .allow_methods([Method::POST])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([WWW_AUTHENTICATE])
        .max_age(ALLOWED_FOR)
}
