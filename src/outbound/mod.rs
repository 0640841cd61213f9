//! Requests to the outside: to an address that was looked at, and to no other.
//!
//! A name is looked up once. Every address it has is judged, and the connection goes to one of those, so that a name
//! that means something else a moment later leads nowhere. No redirect is followed, no proxy used, no cookie kept, no
//! connection used twice. It knows neither grants nor secrets; what it reports may repeat what was sent.
//!
//! # Layout
//!
//! - `address`: whose an address is; `tls`: the provider of cryptography and whom to trust
//! - `redact`: takes a secret out of an answer, in every spelling of `spellings`, under the escapes that `unescape` undoes

mod address;
mod redact;
mod spellings;
mod tls;
mod unescape;

pub use address::{Reach, reach};
pub use redact::{PLACEHOLDER, Redactor};
pub use tls::trusting_the_system;

use crate::error::{ErrorCode, ToolError};
use crate::shares::{Owner, Shares, Taken};
use async_trait::async_trait;
use http::{HeaderMap, Method};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, retry};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use url::{Host, Url};

/// Requests under way at once.
pub const MOST_AT_ONCE: usize = 16;
/// How long one may take from beginning to end.
pub const LONGEST_TIME: Duration = Duration::from_secs(30);

/// Looks names up.
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    /// The addresses of a name.
    ///
    /// # Errors
    /// The system's.
    async fn resolve(&self, name: &str) -> std::io::Result<Vec<IpAddr>>;
}

/// The system's.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// Sends requests.
pub struct Outbound {
    resolver: Arc<dyn Resolver>,
    places: Shares,
    /// How long a request may take.
    pub limit: Duration,
}

impl Default for Outbound {
    fn default() -> Self {
        Self::new(Arc::new(SystemResolver), LONGEST_TIME)
    }
}

/// What to send. It may carry a secret, so nothing shows it.
pub struct Request {
    /// To where.
    pub url: Url,
    /// How.
    pub method: Method,
    /// Which headers.
    pub headers: HeaderMap,
    /// Which body; may be empty.
    pub body: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// As much of the body as was wanted, unpacked.
    pub body: Vec<u8>,
    /// Whether there is more of it.
    pub more: bool,
}

/// Addresses that were looked at, for one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    host: String,
    addresses: Vec<SocketAddr>,
}

/// Why there is no way to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// An address that is private, and may not be; or one that is nobody's to send to, which `never` says.
    Forbidden {
        /// What the host has.
        address: IpAddr,
        /// Whether nothing can allow it.
        never: bool,
    },
    /// The name has no address, in words.
    Unknown(String),
}

impl Outbound {
    /// With this way of looking names up, and this time for each request.
    #[must_use]
    pub fn new(resolver: Arc<dyn Resolver>, limit: Duration) -> Self {
        Self { resolver, places: Shares::new(MOST_AT_ONCE), limit }
    }

    /// A place among the requests at once.
    ///
    /// # Errors
    /// `BUSY`: all of this share are taken.
    pub fn place(&self, owner: &Owner) -> Result<Taken, ToolError> {
        self.places.try_take(owner, 1).ok_or_else(|| {
            let words = format!(
                "as many requests with secrets are under way as this caller's share of the {MOST_AT_ONCE} at once; \
                 nothing was sent, try again when one of them has its answer"
            );
            ToolError::new(ErrorCode::Busy, words)
        })
    }

    /// Looks the URL's host up and judges every address it has.
    ///
    /// # Errors
    /// One of them is none to go to, or there is none.
    pub async fn route(&self, url: &Url, private: bool) -> Result<Route, NoRoute> {
        let (host, addresses) = match url.host() {
            Some(Host::Ipv4(address)) => (address.to_string(), vec![IpAddr::V4(address)]),
            Some(Host::Ipv6(address)) => (address.to_string(), vec![IpAddr::V6(address)]),
            Some(Host::Domain(name)) => {
                let found = self.resolver.resolve(name).await;
                (name.to_owned(), found.map_err(|error| NoRoute::Unknown(error.to_string()))?)
            }
            None => return Err(NoRoute::Unknown("the URL has no host".to_owned())),
        };
        if addresses.is_empty() {
            return Err(NoRoute::Unknown("the name has no address".to_owned()));
        }
        for address in &addresses {
            match reach(*address) {
                Reach::Public => {}
                Reach::Private if private => {}
                Reach::Private => return Err(NoRoute::Forbidden { address: *address, never: false }),
                Reach::Never => return Err(NoRoute::Forbidden { address: *address, never: true }),
            }
        }
        // The port is the URL's.
        let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, 0)).collect();
        Ok(Route { host, addresses })
    }

    /// Sends a request along a route and reads up to `most` bytes of the answer's body.
    ///
    /// # Errors
    /// `UNREACHABLE`, `TIMEOUT`. The words may repeat what was sent.
    pub async fn send(&self, request: Request, route: Route, most: usize) -> Result<Answer, ToolError> {
        let host = route.host.clone();
        let client = client(&request.url, route).map_err(|why| unreachable(&host, &why))?;
        let sent = client.request(request.method, request.url).headers(request.headers).body(request.body);
        let failed = |error: reqwest::Error| {
            let connecting = error.is_connect();
            if error.is_timeout() && !connecting {
                return timed_out(&host);
            }
            let what =
                if connecting { "no connection, nothing was sent" } else { "the answer cannot be read" };
            unreachable(&host, &format!("{what}: {}", innermost(&error.without_url())))
        };
        let mut response = sent.send().await.map_err(failed)?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = Vec::new();
        while body.len() <= most {
            let Some(chunk) = response.chunk().await.map_err(failed)? else { break };
            body.extend_from_slice(&chunk);
        }
        let more = body.len() > most;
        body.truncate(most);
        Ok(Answer { status, headers, body, more })
    }
}

/// A client for one request.
fn client(url: &Url, route: Route) -> Result<Client, String> {
    let secure = url.scheme() == "https";
    let tls = if secure { tls::trusting_the_system() } else { tls::trusting_nobody() }?;
    let client = Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(Arc::new(Pinned(route)))
        .no_proxy()
        .redirect(Policy::none())
        .retry(retry::never())
        .referer(false)
        .https_only(secure)
        .pool_max_idle_per_host(0)
        .connect_timeout(Duration::from_secs(10))
        .user_agent(concat!("indelible/", env!("CARGO_PKG_VERSION")))
        .build();
    client.map_err(|error| innermost(&error))
}

/// Gives the addresses that were looked at, and looks nothing up.
struct Pinned(Route);

impl Resolve for Pinned {
    fn resolve(&self, name: Name) -> Resolving {
        let found: Result<Addrs, Box<dyn std::error::Error + Send + Sync>> = if name.as_str() == self.0.host {
            Ok(Box::new(self.0.addresses.clone().into_iter()))
        } else {
            Err("another host than was looked at".into())
        };
        Box::pin(std::future::ready(found))
    }
}

/// The words of what went wrong first.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    crate::render::one_line(&inner.to_string(), 300)
}

/// The error for a host that does not answer as it should.
#[must_use]
pub fn unreachable(host: &str, why: &str) -> ToolError {
    let host = crate::render::one_line(host, 100);
    ToolError::new(
        ErrorCode::Unreachable,
        format!("`{host}`: {why}; look at the URL, and try again later if the host should be there"),
    )
}

/// The error for a request that took too long.
#[must_use]
pub fn timed_out(host: &str) -> ToolError {
    let host = crate::render::one_line(host, 100);
    ToolError::new(
        ErrorCode::Timeout,
        format!(
            "`{host}` did not answer in time; whether the request had an effect is not known, so look before you repeat it"
        ),
    )
}
