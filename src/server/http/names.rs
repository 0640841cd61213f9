//! By which name the server is addressed, and from which web page: against pages that reach for servers on the
//! reader's own machine (DNS rebinding, <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports>).
//!
//! It holds for every path that tells something, and before the token is asked for. It keeps nobody out who is not a
//! browser: that is the token's work.

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// The names of the machine itself.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The names that are known.
#[derive(Debug)]
pub(super) struct Names {
    /// Beside those of the machine, in lower case: `name` with any port, or `name:port`.
    hosts: Vec<String>,
    /// Beside those of the machine, as browsers write them.
    origins: Vec<String>,
}

impl Names {
    pub(super) fn new(hosts: &[String], origins: &[String]) -> Self {
        Self { hosts: hosts.to_vec(), origins: origins.to_vec() }
    }

    fn knows_host(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        let (whole, name) = (host.to_ascii_lowercase(), authority.host().to_ascii_lowercase());
        !whole.contains('@')
            && (LOCAL.contains(&name.as_str())
                || self.hosts.iter().any(|known| *known == whole || *known == name))
    }

    /// Whether a web page of this origin may use the server.
    pub(super) fn knows_origin(&self, origin: &HeaderValue) -> bool {
        let Ok(origin) = origin.to_str() else { return false };
        if self.origins.iter().any(|known| known == origin) {
            return true;
        }
        let Ok(uri) = origin.parse::<Uri>() else { return false };
        let is_local = uri.host().is_some_and(|name| LOCAL.contains(&name));
        is_local && matches!(uri.scheme_str(), Some("http" | "https")) && !origin.contains('@')
    }
}

/// Refuses requests under an unknown name.
pub(super) async fn checked(State(names): State<Arc<Names>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let mut hosts = headers.get_all(HOST).iter();
    let (host, second) = (hosts.next().map(HeaderValue::to_str), hosts.next());
    let (Some(Ok(host)), None) = (host, second) else {
        return (StatusCode::BAD_REQUEST, "one `Host` header, as HTTP/1.1 has it, is needed\n")
            .into_response();
    };
    // A request that names its whole URL is addressed by that.
    let in_url = request.uri().authority().map(Authority::as_str);
    if !names.knows_host(host) || !in_url.is_none_or(|host| names.knows_host(host)) {
        tracing::info!("a request under an unknown Host was refused");
        let words = "this server does not know the name in `Host`; --http-allow-host makes it known\n";
        return (StatusCode::FORBIDDEN, words).into_response();
    }
    if !headers.get_all(ORIGIN).iter().all(|origin| names.knows_origin(origin)) {
        tracing::info!("a request of an unknown Origin was refused");
        let words = "web pages of this `Origin` may not use the server; --http-allow-origin lets them\n";
        return (StatusCode::FORBIDDEN, words).into_response();
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Names::new(
            &owned(&["memory.example", "other.example:8080"]),
            &owned(&["https://app.example", "http://dev.example:3000"]),
        )
    }

    #[test]
    fn the_machine_s_own_names_and_the_given_ones_are_known() {
        let rows = [
            ("localhost", true),
            ("LOCALHOST:7777", true),
            ("127.0.0.1:1", true),
            ("[::1]:7777", true),
            ("[::1]", true),
            ("::1", false),
            ("127.0.0.2", false),
            ("0.0.0.0:7777", false),
            ("localhost.evil.example", false),
            ("evil.example", false),
            ("localhost@evil.example", false),
            ("evil@localhost", false),
            ("", false),
            ("memory.example", true),
            ("Memory.Example:443", true),
            ("x.memory.example", false),
            ("other.example:8080", true),
            ("other.example", false),
            ("other.example:8081", false),
        ];
        for (host, known) in rows {
            assert_eq!(names().knows_host(host), known, "{host}");
        }
    }

    #[test]
    fn pages_of_the_machine_and_the_given_ones_are_known() {
        let rows = [
            ("http://localhost:3000", true),
            ("https://localhost", true),
            ("http://127.0.0.1:1", true),
            ("http://[::1]:5173", true),
            ("null", false),
            ("file://localhost", false),
            ("http://localhost.evil.example", false),
            ("http://evil.example", false),
            ("http://x@localhost", false),
            ("localhost", false),
            ("", false),
            ("https://app.example", true),
            ("http://app.example", false),
            ("https://app.example:444", false),
            ("http://dev.example:3000", true),
            ("http://dev.example", false),
        ];
        for (origin, known) in rows {
            assert_eq!(names().knows_origin(&origin.parse().unwrap()), known, "{origin}");
        }
    }
}
