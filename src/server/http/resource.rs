//! What a client of OAuth asks before it has a token: which issuer gives tokens for this server (RFC 9728), and the
//! challenges that lead there.
//!
//! It tells nothing about groups: what stands in a path comes back as it was asked for, whether there is a group or not.

use super::PATH;
use super::groups::Groups;
use crate::state::catalog::check_name;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;
use std::sync::Arc;

/// Where the document is; the resource's path may stand behind it.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The document's routes, where there is an issuer.
pub(super) fn routes<G: Groups>(groups: &Arc<G>) -> Router {
    if groups.issuer().is_none() {
        return Router::new();
    }
    Router::new()
        .route(WELL_KNOWN, get(whole::<G>))
        .route(&format!("{WELL_KNOWN}{PATH}/{{name}}"), get(of_group::<G>))
        .with_state(Arc::clone(groups))
}

async fn whole<G: Groups>(State(groups): State<Arc<G>>, headers: HeaderMap) -> Response {
    document(&*groups, &headers, None)
}

async fn of_group<G: Groups>(
    State(groups): State<Arc<G>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    if check_name("group", &name).is_err() {
        return StatusCode::NOT_FOUND.into_response();
    }
    document(&*groups, &headers, Some(&name))
}

fn document<G: Groups>(groups: &G, headers: &HeaderMap, name: Option<&str>) -> Response {
    let base = groups.base(host(headers));
    let mut scopes = vec!["tools:read".to_owned()];
    scopes.splice(0..0, name.map(|name| format!("group:{name}")));
    let document = json!({
        "resource": name.map_or_else(|| base.clone(), |name| format!("{base}{PATH}/{name}")),
        "authorization_servers": [groups.issuer()],
        "scopes_supported": scopes,
        "bearer_methods_supported": ["header"],
        "resource_name": "Indelible",
    });
    ([(CONTENT_TYPE, "application/json")], document.to_string()).into_response()
}

/// What a challenge says beside its error, for a request to this path: where the document is, and which scope would open
/// the path. Nothing where there is no issuer.
pub(super) fn parameters<G: Groups>(groups: &G, headers: &HeaderMap, path: &str) -> String {
    if groups.issuer().is_none() {
        return String::new();
    }
    let base = groups.base(host(headers));
    let name = path.strip_prefix(PATH).and_then(|rest| rest.strip_prefix('/'));
    match name.filter(|name| check_name("group", name).is_ok()) {
        Some(name) => {
            format!(", resource_metadata=\"{base}{WELL_KNOWN}{PATH}/{name}\", scope=\"group:{name}\"")
        }
        None => format!(", resource_metadata=\"{base}{WELL_KNOWN}\""),
    }
}

fn host(headers: &HeaderMap) -> &str {
    headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}
