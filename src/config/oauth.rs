//! Settings of the OAuth issuer whose tokens let clients in. It fetches nothing.

use super::value::Given;
use crate::error::StartError;
use url::{Host, Url};

/// Whose tokens, and which of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OauthSettings {
    /// The issuer's URL, as its metadata and its tokens have it.
    pub issuer: String,
    /// What a token must name as its audience.
    pub audience: String,
}

/// Both or none.
///
/// # Errors
/// One without the other, or an issuer that nobody could be sure of; exit status 2.
pub(super) fn oauth(
    issuer: Option<Given>,
    audience: Option<Given>,
) -> Result<Option<OauthSettings>, StartError> {
    let (issuer, audience) = match (issuer, audience) {
        (None, None) => return Ok(None),
        (Some(issuer), Some(audience)) => (issuer, audience),
        (Some(_), None) => {
            return Err(StartError::usage(
                "--oauth-issuer needs --oauth-audience, too: what its tokens for this server name as their audience",
            ));
        }
        (None, Some(_)) => {
            return Err(StartError::usage("--oauth-audience is for --oauth-issuer URL; give that too"));
        }
    };
    let rule = "must be a URL with https, or with http on this very machine, without query and fragment";
    let text = issuer.text.to_string_lossy().trim().to_owned();
    let url = Url::parse(&text).map_err(|_| issuer.refused(rule))?;
    let plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    if !plain || !is_permitted_issuer(&url) {
        return Err(issuer.refused(rule));
    }
    let named = audience.text.to_string_lossy().trim().to_owned();
    if named.is_empty() || named.contains(char::is_control) {
        return Err(audience.refused("must be the audience that tokens name"));
    }
    Ok(Some(OauthSettings { issuer: text, audience: named }))
}

/// Whether keys may come from this URL: over TLS, or in plain HTTP from this very machine.
#[must_use]
pub fn is_permitted_issuer(url: &Url) -> bool {
    let local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_over_tls_or_from_this_machine() {
        let rows = [
            ("https://issuer.example", true),
            ("http://127.0.0.1:9", true),
            ("http://localhost:9/x", true),
            ("http://[::1]:9", true),
            ("http://issuer.example", false),
            ("http://localhost.evil.example", false),
            ("http://10.0.0.1", false),
            ("file:///etc/keys", false),
        ];
        for (url, expected) in rows {
            assert_eq!(is_permitted_issuer(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
