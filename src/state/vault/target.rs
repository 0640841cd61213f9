//! The URL that an agent gives, before a grant is held against it.

use crate::error::ToolError;
use crate::state::Outcome;
use url::{Host, Url};

/// The longest URL, in bytes.
pub const LONGEST_URL: usize = 8 << 10;

/// Reads a URL: http or https, an absolute one with a host, without a name or password in it. The fragment and a
/// dot at the end of the host are dropped; what is judged is what is sent.
///
/// # Errors
/// `INVALID_ARGUMENTS` with the rule.
pub fn read(text: &str) -> Outcome<Url> {
    let wrong = |why: &str| {
        ToolError::arguments(format!("`url` {why}; give one like https://api.example.com/v1/things"))
    };
    if text.len() > LONGEST_URL {
        return Err(wrong(&format!("must have at most {LONGEST_URL} bytes")));
    }
    // The parser would drop them in silence.
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(wrong("must have no spaces or control characters, which are written as %20"));
    }
    let mut url = Url::parse(text).map_err(|error| wrong(&format!("cannot be read: {error}")))?;
    if !matches!(url.scheme(), "https" | "http") {
        return Err(wrong("must begin with https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("must have no user name or password in front of the host; `auth` says who calls"));
    }
    url.set_fragment(None);
    if let Some(Host::Domain(name)) = url.host() {
        let bare = name.strip_suffix('.').unwrap_or(name).to_owned();
        if bare.split('.').any(str::is_empty) {
            return Err(wrong("must have a host without empty parts"));
        }
        if bare != name {
            url.set_host(Some(&bare)).map_err(|error| wrong(&format!("cannot be read: {error}")))?;
        }
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_as_it_will_be_sent() {
        let rows = [
            ("https://API.example.com", Some("https://api.example.com/")),
            ("https://api.example.com./x#y", Some("https://api.example.com/x")),
            ("https://api.example.com:443/", Some("https://api.example.com/")),
            ("https://api.example.com/a/../b/%2e%2e/c", Some("https://api.example.com/c")),
            ("https:\\\\api.example.com\\x", Some("https://api.example.com/x")),
            ("https://bücher.example/", Some("https://xn--bcher-kva.example/")),
            ("https://①②⑦.0.0.1/", Some("https://127.0.0.1/")),
            ("http://2130706433/", Some("http://127.0.0.1/")),
            ("http://0x7f.1/", Some("http://127.0.0.1/")),
            ("http://017700000001/", Some("http://127.0.0.1/")),
            ("http://[::ffff:127.0.0.1]/", Some("http://[::ffff:7f00:1]/")),
            ("https://api.example.com@evil.com/", None),
            ("https://api.example.com:x@evil.com/", None),
            ("https://:x@evil.com/", None),
            ("https://api.example.com../", None),
            ("https://a..example.com/", None),
            ("https://ap\ti.example.com/", None),
            ("https://api.example.com/a b", None),
            ("ftp://api.example.com/", None),
            ("file:///etc/passwd", None),
            ("//api.example.com/", None),
            ("/x", None),
            ("https://", None),
            ("https://[::1/", None),
            ("https://1.2.3.4.5/", None),
        ];
        for (text, expected) in rows {
            let url = read(text).map(String::from);
            assert_eq!(url.as_deref().ok(), expected, "{text}");
        }
        assert!(read(&format!("https://api.example.com/{}", "x".repeat(LONGEST_URL))).is_err());
    }
}
