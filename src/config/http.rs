//! Settings of serving over HTTP: where, for whom, and by which token.
//!
//! They hold for serving alone, not for the commands, and are no part of what a client's configuration repeats. The
//! token is read from the environment and never from a flag: other users of the machine see command lines. It opens
//! no socket and looks no name up.

use super::oauth::{OauthSettings, oauth};
use super::resolve::Sources;
use super::value::Given;
use crate::error::StartError;
use clap::Args;
use http::Uri;
use http::uri::Authority;
use std::cell::RefCell;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The variable that holds the token.
const TOKEN: &str = "INDELIBLE_HTTP_TOKEN";

/// Characters that a token has at least.
const SHORTEST_TOKEN: usize = 16;

/// The flags as given.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Serving over HTTP")]
pub struct HttpArgs {
    /// Serve over HTTP here, at the path /mcp, and not on stdin and stdout; port 0 is any free one. Clients must send
    /// the token that INDELIBLE_HTTP_TOKEN holds; those of groups, a key from `indelible keys` [INDELIBLE_HTTP]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub http: Option<String>,

    /// Name or NAME:PORT that clients may address it by, beside localhost, 127.0.0.1 and [::1]; repeatable
    /// [INDELIBLE_HTTP_ALLOW_HOST: separated by commas]
    #[arg(long, value_name = "NAME")]
    pub http_allow_host: Vec<String>,

    /// Origin of web pages that may use it, beside those of this machine: https://app.example.com; repeatable
    /// [INDELIBLE_HTTP_ALLOW_ORIGIN: separated by commas]
    #[arg(long, value_name = "ORIGIN")]
    pub http_allow_origin: Vec<String>,

    /// Where clients reach it, if that is not http://NAME as they address it: https://state.example.com; signed URLs
    /// begin so, and its name may be addressed [INDELIBLE_HTTP_PUBLIC_URL]
    #[arg(long, value_name = "URL")]
    pub http_public_url: Option<String>,

    /// URL of an OAuth issuer whose tokens let clients of groups in; http only on this machine
    /// [INDELIBLE_OAUTH_ISSUER]
    #[arg(long, value_name = "URL")]
    pub oauth_issuer: Option<String>,

    /// What such a token must name as its audience [INDELIBLE_OAUTH_AUDIENCE]
    #[arg(long, value_name = "AUDIENCE")]
    pub oauth_audience: Option<String>,

    /// Ask clients for no token and no key; only on a loopback address [INDELIBLE_NO_AUTH]
    #[arg(long)]
    pub no_auth: bool,
}

impl HttpArgs {
    /// The first flag that was given, with its dashes.
    #[must_use]
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            (self.http.is_some(), "--http"),
            (!self.http_allow_host.is_empty(), "--http-allow-host"),
            (!self.http_allow_origin.is_empty(), "--http-allow-origin"),
            (self.http_public_url.is_some(), "--http-public-url"),
            (self.oauth_issuer.is_some(), "--oauth-issuer"),
            (self.oauth_audience.is_some(), "--oauth-audience"),
            (self.no_auth, "--no-auth"),
        ];
        given.into_iter().find_map(|(given, flag)| given.then_some(flag))
    }
}

/// The secret that every client knows. It is not shown by `{:?}`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The secret itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Serving over HTTP, judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSettings {
    /// Where to listen; port 0 is any free one.
    pub address: SocketAddr,
    /// What else than the names of this machine clients may address the server by, in lower case: `name` with any
    /// port, or `name:port`.
    pub hosts: Vec<String>,
    /// Origins of web pages as browsers write them: in lower case, without a port where it is the scheme's usual one.
    pub origins: Vec<String>,
    /// Scheme, name and port under which clients reach it, where they are not told by what they address.
    pub public_url: Option<String>,
    /// Whose tokens let clients in.
    pub oauth: Option<OauthSettings>,
    /// The secret that lets its sender in.
    pub token: Option<Token>,
    /// Whether nobody has to send anything; only on a loopback address, and without a token.
    pub no_auth: bool,
}

/// Resolves them; none where the server is for stdin and stdout. With `keys`, clients may have keys of their own, which
/// stand elsewhere; whether there is one is then to be looked at.
///
/// # Errors
/// The first value that breaks its rule, and an address that anybody could use without a token; exit status 2.
pub fn http(
    raw: &HttpArgs,
    env: impl Fn(&str) -> Option<OsString>,
    keys: bool,
) -> Result<Option<HttpSettings>, StartError> {
    let token = env(TOKEN).filter(|token| !token.is_empty()).map(judged_token).transpose();
    let sources = Sources { env, seen: RefCell::default() };
    let Some(address) = sources.text("http", &raw.http) else {
        return match raw.given() {
            Some(flag) => Err(StartError::usage(format!("{flag} is for --http ADDRESS:PORT; give that too"))),
            None => Ok(None),
        };
    };
    let address = judged_address(&address)?;
    let hosts = many(&sources, "http-allow-host", &raw.http_allow_host, judged_host)?;
    let origins = many(&sources, "http-allow-origin", &raw.http_allow_origin, judged_origin)?;
    let public_url = sources.text("http-public-url", &raw.http_public_url);
    let public_url = public_url.map(|given| judged_public_url(&given)).transpose()?;
    let hosts = hosts.into_iter().chain(public_url.as_deref().and_then(authority)).collect();
    let issuer = sources.text("oauth-issuer", &raw.oauth_issuer);
    let audience = sources.text("oauth-audience", &raw.oauth_audience);
    let oauth = if keys { oauth(issuer, audience)? } else { None };
    if !keys && (raw.oauth_issuer.is_some() || raw.oauth_audience.is_some()) {
        return Err(StartError::usage("--oauth-issuer is for profiles that serve groups; leave it out here"));
    }
    let no_auth = raw.no_auth || sources.given("no-auth", None).map_or(Ok(false), |given| given.boolean())?;
    let token = token?;
    match (&token, no_auth) {
        (Some(_), true) => Err(StartError::usage(format!(
            "--no-auth asks for no token, and {TOKEN} is set: give only one of them"
        ))),
        (None, false) if !keys => Err(StartError::usage(format!(
            "no token: set {TOKEN} to a secret, which clients send as `Authorization: Bearer SECRET`; on a loopback \
             address --no-auth lets everybody on this machine in"
        ))),
        (None, true) if !address.ip().to_canonical().is_loopback() => Err(StartError::usage(format!(
            "--no-auth is for loopback addresses, and {} is none: set {TOKEN}, or listen on 127.0.0.1",
            address.ip()
        ))),
        _ => Ok(Some(HttpSettings { address, hosts, origins, public_url, oauth, token, no_auth })),
    }
}

/// The values of a flag that may be repeated; in its variable commas separate them.
fn many<E: Fn(&str) -> Option<OsString>>(
    sources: &Sources<E>,
    flag: &str,
    given: &[String],
    judge: impl Fn(&Given) -> Result<String, StartError>,
) -> Result<Vec<String>, StartError> {
    let flags = given.iter().map(|text| Given { name: format!("--{flag}"), text: text.into() });
    let mut values: Vec<Given> = flags.collect();
    if values.is_empty()
        && let Some(variable) = sources.given(flag, None)
    {
        let text = variable.text.to_string_lossy().into_owned();
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        values.extend(parts.map(|part| Given { name: variable.name.clone(), text: part.into() }));
    }
    values.iter().map(judge).collect()
}

fn judged_address(given: &Given) -> Result<SocketAddr, StartError> {
    let rule = "must be an IP address and a port, as in 127.0.0.1:7777";
    let text = given.text.to_str().map(str::trim).unwrap_or_default();
    let local = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    let local = local.map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    local.or_else(|| text.parse().ok()).ok_or_else(|| given.refused(rule))
}

fn judged_host(given: &Given) -> Result<String, StartError> {
    let rule = "must be a name as it stands in a URL, with or without a port, as in memory.example.com";
    let text = text(given);
    let authority: Authority = text.parse().map_err(|_| given.refused(rule))?;
    if authority.host().is_empty() || text.contains(['@', '*']) || bad_port(&authority) {
        return Err(given.refused(rule));
    }
    Ok(text)
}

fn judged_origin(given: &Given) -> Result<String, StartError> {
    let rule =
        "must be a scheme, a name and, if it is not the usual one, a port, as in https://app.example.com";
    let text = text(given);
    let uri: Uri = text.parse().map_err(|_| given.refused(rule))?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(given.refused(rule));
    };
    let bare = matches!(uri.path(), "" | "/") && uri.query().is_none() && !text.contains(['@', '*', '#']);
    if !bare || authority.host().is_empty() || bad_port(authority) {
        return Err(given.refused(rule));
    }
    // Browsers leave the usual port out.
    Ok(match (scheme, authority.port_u16()) {
        ("http", Some(80)) | ("https", Some(443)) | (_, None) => format!("{scheme}://{}", authority.host()),
        (_, Some(port)) => format!("{scheme}://{}:{port}", authority.host()),
    })
}

fn judged_public_url(given: &Given) -> Result<String, StartError> {
    let web = |origin: &String| origin.starts_with("http://") || origin.starts_with("https://");
    judged_origin(given).ok().filter(web).ok_or_else(|| {
        given.refused(
            "must be http or https, a name and, if it is not the usual one, a port, as in https://state.example.com",
        )
    })
}

/// The name in an origin, with its port where it has one.
fn authority(origin: &str) -> Option<String> {
    origin.split_once("://").map(|(_, authority)| authority.to_owned())
}

/// A colon without a number that can be a port behind it.
fn bad_port(authority: &Authority) -> bool {
    let behind = authority.as_str().rsplit_once(']').map_or(authority.as_str(), |(_, rest)| rest);
    behind.contains(':') && authority.port_u16().is_none()
}

fn text(given: &Given) -> String {
    given.text.to_string_lossy().trim().to_ascii_lowercase()
}

/// What is wrong with a token is said without it.
fn judged_token(text: OsString) -> Result<Token, StartError> {
    let token = text.to_str().map(str::trim).filter(|token| !token.is_empty());
    let token = token.filter(|token| token.bytes().all(|byte| byte.is_ascii_graphic()));
    let token = token.ok_or_else(|| {
        StartError::usage(format!("{TOKEN}: must be letters, digits and signs of ASCII, without spaces"))
    })?;
    if token.len() < SHORTEST_TOKEN {
        return Err(StartError::usage(format!(
            "{TOKEN}: must have at least {SHORTEST_TOKEN} characters, so that nobody guesses it; `openssl rand -hex 32` \
             makes one"
        )));
    }
    Ok(Token(token.to_owned()))
}

#[cfg(test)]
mod tests;
