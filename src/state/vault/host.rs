//! Names of hosts in grants, read as URLs are, so that no spelling of a name stands for another host than it does
//! in a request.

use crate::error::ToolError;
use crate::state::Outcome;
use serde::{Deserialize, Serialize};
use std::fmt;
use url::{Host, Url};

/// One host, or every host below a name; with a port, or with the usual one of the scheme.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostRule {
    name: Name,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    /// As in a URL: lower case, punycode, an IP address in its usual form, IPv6 in brackets.
    Exact(String),
    /// With the dot in front.
    Below(String),
}

impl HostRule {
    /// Reads `api.example.com`, `.example.com`, `127.0.0.1:8080` or `[::1]`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENTS` with the rule.
    pub fn parse(text: &str) -> Outcome<Self> {
        let wrong = |why: &str| {
            ToolError::arguments(format!(
                "host `{}`: {why}; write `api.example.com`, `.example.com` for every host below it, or either with `:PORT`",
                crate::render::one_line(text, 80)
            ))
        };
        if text.contains('*') {
            return Err(wrong("`*` stands for nothing here"));
        }
        let (below, rest) = match text.strip_prefix('.') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let bare = |c: char| {
            !c.is_whitespace() && !c.is_control() && !matches!(c, '/' | '\\' | '?' | '#' | '@' | '%')
        };
        if rest.is_empty() || !rest.chars().all(bare) {
            return Err(wrong("is no name of a host"));
        }
        let read = |scheme: &str| {
            Url::parse(&format!("{scheme}://{rest}/")).map_err(|error| wrong(&error.to_string()))
        };
        // Each scheme leaves its own usual port out.
        let (secure, plain) = (read("https")?, read("http")?);
        let port = secure.port().or(plain.port());
        let host = match secure.host() {
            Some(Host::Domain(name)) => name.strip_suffix('.').unwrap_or(name).to_owned(),
            Some(_) if below => return Err(wrong("an address has nothing below it")),
            Some(address) => address.to_string(),
            None => return Err(wrong("is no name of a host")),
        };
        if host.split('.').any(str::is_empty) && !host.starts_with('[') {
            return Err(wrong("a part of the name is empty"));
        }
        if below && !host.contains('.') {
            return Err(wrong("that is every host of a top-level domain"));
        }
        let name = if below { Name::Below(format!(".{host}")) } else { Name::Exact(host) };
        Ok(Self { name, port })
    }

    /// Whether it stands for the URL's host and port. The URL is one that `target` has judged.
    #[must_use]
    pub fn covers(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        let named = match &self.name {
            Name::Exact(name) => host == name,
            // What is below has something in front of the dot, and an address is below nothing.
            Name::Below(suffix) => {
                matches!(url.host(), Some(Host::Domain(_)))
                    && host.strip_suffix(suffix.as_str()).is_some_and(|front| !front.is_empty())
            }
        };
        named
            && match self.port {
                Some(port) => url.port_or_known_default() == Some(port),
                None => url.port().is_none(),
            }
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Name::Exact(name) | Name::Below(name)) = &self.name;
        match self.port {
            Some(port) => write!(f, "{name}:{port}"),
            None => f.write_str(name),
        }
    }
}

impl From<HostRule> for String {
    fn from(rule: HostRule) -> Self {
        rule.to_string()
    }
}

impl TryFrom<String> for HostRule {
    type Error = ToolError;

    fn try_from(text: String) -> Outcome<Self> {
        Self::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_kept_as_a_url_has_it() {
        let rows = [
            ("api.example.com", Some("api.example.com")),
            ("API.Example.COM", Some("api.example.com")),
            ("api.example.com.", Some("api.example.com")),
            (".example.com", Some(".example.com")),
            (".example.com:8443", Some(".example.com:8443")),
            ("api.example.com:443", Some("api.example.com:443")),
            ("api.example.com:80", Some("api.example.com:80")),
            ("bücher.example", Some("xn--bcher-kva.example")),
            ("127.0.0.1:8080", Some("127.0.0.1:8080")),
            ("2130706433", Some("127.0.0.1")),
            ("0x7f.1", Some("127.0.0.1")),
            ("[::1]", Some("[::1]")),
            ("[0:0::1]:9", Some("[::1]:9")),
            ("localhost", Some("localhost")),
            ("", None),
            (".", None),
            (".com", None),
            ("*.example.com", None),
            ("..example.com", None),
            ("a..example.com", None),
            (".127.0.0.1", None),
            (".[::1]", None),
            ("https://example.com", None),
            ("example.com/path", None),
            ("user@example.com", None),
            ("example.com:99999", None),
            ("example.com?x", None),
            ("exa%6dple.com", None),
            ("exa mple.com", None),
        ];
        for (text, kept) in rows {
            let rule = HostRule::parse(text).map(|rule| rule.to_string());
            assert_eq!(rule.as_deref().ok(), kept, "{text}");
            if let Some(kept) = kept {
                assert_eq!(HostRule::parse(kept), HostRule::parse(text), "{text}");
            }
        }
    }
}
