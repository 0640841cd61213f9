//! What vault_use is asked to send, checked before a grant is held against it: form, headers, body.
//!
//! It knows no secret's value and sends nothing.

use crate::error::{ErrorCode, ToolError};
use crate::state::vault::check_secret;
use crate::state::vault::grant::AuthForm;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use url::Url;

/// The most bytes of a body that is sent.
pub(super) const MOST_SENT: usize = 1 << 20;
/// The most headers, and the most bytes of them together.
const MOST_HEADERS: (usize, usize) = (64, 16 << 10);
/// The longest user name, header's name or parameter, in bytes.
const LONGEST_NAME: usize = 256;

/// Which secret to send, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Auth {
    /// The secret's name.
    pub(super) secret: String,
    /// The form.
    pub(super) form: AuthForm,
    /// With basic: who.
    pub(super) username: String,
}

/// Headers that say where a request goes, how it is framed, what it is taken for, and which part of an answer comes
/// back: they are the server's, or would lead around a grant or around redaction. `_` counts as `-`, since servers
/// that hand headers on as variables make one of both.
const REFUSED: &[&str] = &[
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "cookie",
    "cookie2",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "if-range",
    "keep-alive",
    "range",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-host",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-host",
    "x-original-method",
    "x-original-url",
    "x-rewrite-url",
];
const REFUSED_FAMILIES: &[&str] = &["proxy-", "sec-", "x-forwarded-"];

fn is_refused(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    REFUSED.contains(&name.as_str()) || REFUSED_FAMILIES.iter().any(|family| name.starts_with(family))
}

/// Reads `auth`: `{bearer: SECRET}`, `{header: {name, secret}}`, `{basic: {username, secret}}` or
/// `{query: {param, secret}}`.
///
/// # Errors
/// `INVALID_ARGUMENTS` with the rule.
pub(super) fn auth(given: &Map<String, Value>) -> Result<Auth, ToolError> {
    let wrong = || {
        ToolError::arguments(
            "`auth` must be one of {\"bearer\":SECRET}, {\"header\":{\"name\":N,\"secret\":SECRET}}, {\"basic\":{\"username\":U,\"secret\":SECRET}} and {\"query\":{\"param\":P,\"secret\":SECRET}}, with the name of a secret that vault_list shows",
        )
    };
    let (Some((form, value)), 1) = (given.iter().next(), given.len()) else { return Err(wrong()) };
    let (secret, second) = match (form.as_str(), value) {
        ("bearer", Value::String(secret)) => (secret.clone(), String::new()),
        ("bearer", _) => return Err(wrong()),
        (_, Value::Object(fields)) if fields.len() == 2 => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
            let second = match form.as_str() {
                "header" => text("name"),
                "basic" => text("username"),
                "query" => text("param"),
                _ => None,
            };
            (text("secret").ok_or_else(wrong)?, second.ok_or_else(wrong)?)
        }
        _ => return Err(wrong()),
    };
    check_secret("auth", &secret)?;
    if second.len() > LONGEST_NAME || second.chars().any(char::is_control) {
        return Err(ToolError::arguments(format!(
            "the second field of `auth` must have at most {LONGEST_NAME} bytes and no control characters"
        )));
    }
    let mut username = String::new();
    let form = match form.as_str() {
        "bearer" => AuthForm::Bearer,
        "basic" if second.contains(':') => {
            return Err(ToolError::arguments("`username` must have no `:`, which ends it"));
        }
        "basic" => {
            username = second;
            AuthForm::Basic
        }
        "header" => {
            let name = HeaderName::from_bytes(second.as_bytes()).map_err(|_| {
                ToolError::arguments("`name` must be the name of a header, such as X-Api-Key")
            })?;
            if is_refused(name.as_str()) && name != AUTHORIZATION {
                return Err(refused_header(name.as_str()));
            }
            AuthForm::Header(name.as_str().to_owned())
        }
        _ if second.is_empty() => return Err(ToolError::arguments("`param` must not be empty")),
        _ => AuthForm::Query(second),
    };
    Ok(Auth { secret, form, username })
}

/// Reads `headers`.
///
/// # Errors
/// `INVALID_ARGUMENTS`: what can be no header, one that is not the agent's to set, or the one that the secret goes in.
pub(super) fn headers(given: Option<&Map<String, Value>>, form: &AuthForm) -> Result<HeaderMap, ToolError> {
    let mut headers = HeaderMap::new();
    let mut bytes = 0;
    for (name, value) in given.into_iter().flatten() {
        let shown = crate::render::one_line(name, 80);
        let wrong = |why: &str| ToolError::arguments(format!("header `{shown}` {why}"));
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("is no name of a header"))?;
        let own = matches!(form, AuthForm::Header(own) if *own == parsed.as_str().replace('_', "-") || *own == parsed.as_str());
        if own || is_refused(parsed.as_str()) {
            return Err(refused_header(parsed.as_str()));
        }
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return Err(wrong("must have a text as its value")),
        };
        bytes += name.len() + text.len();
        let text = HeaderValue::from_str(&text).ok().filter(|_| text.is_ascii());
        let text = text.ok_or_else(|| wrong("must have a value of printable ASCII, without line breaks"))?;
        if headers.insert(parsed, text).is_some() {
            return Err(wrong("is given twice"));
        }
    }
    let (most, most_bytes) = MOST_HEADERS;
    if headers.len() > most || bytes > most_bytes {
        return Err(ToolError::new(
            ErrorCode::TooLarge,
            format!("`headers` may hold {most} headers and {most_bytes} bytes; leave some out"),
        ));
    }
    Ok(headers)
}

fn refused_header(name: &str) -> ToolError {
    ToolError::arguments(format!(
        "header `{name}` is not yours to set: it is the server's, is given by `auth`, or would change where the request goes or what it is taken for; leave it out"
    ))
}

/// Reads the body: text as it is, base64 where `encoding` says so, anything else as JSON with its media type.
///
/// # Errors
/// `INVALID_ARGUMENTS`, `TOO_LARGE`.
pub(super) fn body(
    given: Option<Value>,
    encoding: Option<&str>,
    method: &str,
    headers: &mut HeaderMap,
) -> Result<Vec<u8>, ToolError> {
    let Some(given) = given else {
        return match encoding {
            Some(_) => Err(ToolError::arguments("`encoding` goes with `body`")),
            None => Ok(Vec::new()),
        };
    };
    if matches!(method, "GET" | "HEAD") {
        return Err(ToolError::arguments(format!(
            "a {method} has no `body`; give `method` too, such as POST"
        )));
    }
    let bytes = match (given, encoding) {
        (Value::String(text), Some("base64")) => STANDARD
            .decode(text)
            .map_err(|_| ToolError::arguments("`body` must be base64 text, since `encoding` is base64"))?,
        (_, Some("base64")) => {
            return Err(ToolError::arguments("`body` must be base64 text, since `encoding` is base64"));
        }
        (Value::String(text), _) => text.into_bytes(),
        (json, _) => {
            headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
            json.to_string().into_bytes()
        }
    };
    if bytes.len() > MOST_SENT {
        return Err(ToolError::new(
            ErrorCode::TooLarge,
            format!(
                "`body` has {} bytes, and a request takes at most {MOST_SENT}; send less at once",
                bytes.len()
            ),
        ));
    }
    Ok(bytes)
}

/// Puts a secret's value into a request; the texts that an answer must not show.
///
/// # Errors
/// `INVALID_ARGUMENTS`: the value cannot stand in a header, or the URL has the parameter already.
pub(super) fn carry(
    auth: &Auth,
    value: &str,
    url: &mut Url,
    headers: &mut HeaderMap,
) -> Result<Vec<zeroize::Zeroizing<String>>, ToolError> {
    use zeroize::Zeroizing;
    let mut hidden = vec![Zeroizing::new(value.to_owned())];
    let (name, text) = match &auth.form {
        AuthForm::Bearer => (AUTHORIZATION, Zeroizing::new(format!("Bearer {value}"))),
        AuthForm::Basic => {
            let both = Zeroizing::new(format!("{}:{value}", auth.username));
            let text = Zeroizing::new(format!("Basic {}", STANDARD.encode(both.as_bytes())));
            hidden.push(both);
            (AUTHORIZATION, text)
        }
        AuthForm::Header(name) => {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| ToolError::arguments("`name` must be the name of a header"))?;
            (name, Zeroizing::new(value.to_owned()))
        }
        AuthForm::Query(param) => {
            if url.query_pairs().any(|(name, _)| name == param.as_str()) {
                return Err(ToolError::arguments(
                    "`url` has the parameter already that `auth` names; leave it out there",
                ));
            }
            url.query_pairs_mut().append_pair(param, value);
            return Ok(hidden);
        }
    };
    let mut text = HeaderValue::from_bytes(text.as_bytes()).map_err(|_| {
        ToolError::arguments("the secret cannot stand in a header; a person must set it anew")
    })?;
    text.set_sensitive(true);
    headers.insert(name, text);
    Ok(hidden)
}

#[cfg(test)]
mod tests;
