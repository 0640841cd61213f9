//! Who may come in: whoever sends the token.
//!
//! Sources: RFC 6750 for the header and the answers, RFC 9110 (11.6.1) for the challenge. It takes a token from the
//! header alone, never from the URL, and keeps its hash.

use crate::config::Token;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use constant_time_eq::constant_time_eq_32;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// What is asked for.
#[derive(Debug)]
pub(super) enum Access {
    /// Nothing.
    Open,
    /// The token with this SHA-256.
    Token([u8; 32]),
}

/// Why somebody may not come in.
#[derive(Debug, PartialEq, Eq)]
enum Denied {
    NoToken,
    WrongToken,
}

impl Access {
    pub(super) fn new(token: Option<&Token>) -> Self {
        token.map_or(Self::Open, |token| Self::Token(digest(token.reveal())))
    }

    fn judge(&self, headers: &HeaderMap) -> Result<(), Denied> {
        let Self::Token(expected) = self else { return Ok(()) };
        match bearer(headers) {
            Bearer::None => Err(Denied::NoToken),
            Bearer::Two => Err(Denied::WrongToken),
            // Hashes are compared, all of them: how long it takes tells neither the token nor its length.
            Bearer::One(token) if constant_time_eq_32(&digest(token), expected) => Ok(()),
            Bearer::One(_) => Err(Denied::WrongToken),
        }
    }
}

/// What stands in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bearer<'h> {
    /// No token.
    None,
    /// A token.
    One(&'h str),
    /// A token and something else beside it.
    Two,
}

/// The token of a request.
pub(super) fn bearer(headers: &HeaderMap) -> Bearer<'_> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let token = given.next().and_then(|header| header.to_str().ok()?.split_once(' '));
    match token {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("Bearer") => {
            if given.next().is_none() {
                Bearer::One(token.trim())
            } else {
                Bearer::Two
            }
        }
        _ => Bearer::None,
    }
}

/// Lets in who may come in.
pub(super) async fn required(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let denied = match access.judge(request.headers()) {
        Ok(()) => return next.run(request).await,
        Err(denied) => denied,
    };
    tracing::info!(?denied, "a request was turned away");
    match denied {
        Denied::NoToken => {
            challenge("", "this server asks for its token: send `Authorization: Bearer TOKEN`\n")
        }
        Denied::WrongToken => challenge(
            ", error=\"invalid_token\", error_description=\"not the token of this server\"",
            "this is not the token of this server, which is in its INDELIBLE_HTTP_TOKEN\n",
        ),
    }
}

/// 401: `parameters` stand behind the realm, each with a comma before it.
pub(super) fn challenge(parameters: &str, words: &'static str) -> Response {
    let value = format!("Bearer realm=\"indelible\"{parameters}");
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, value)], words).into_response()
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_comes_in() {
        let rows: &[(&[&str], Result<(), Denied>)] = &[
            (&["Bearer secret"], Ok(())),
            (&["bearer  secret "], Ok(())),
            (&[], Err(Denied::NoToken)),
            (&["secret"], Err(Denied::NoToken)),
            (&["Basic secret"], Err(Denied::NoToken)),
            (&["Bearer"], Err(Denied::NoToken)),
            (&["Bearer "], Err(Denied::WrongToken)),
            (&["Bearer secre"], Err(Denied::WrongToken)),
            (&["Bearer secret2"], Err(Denied::WrongToken)),
            (&["Bearer Secret"], Err(Denied::WrongToken)),
            (&["Bearer secret", "Bearer secret"], Err(Denied::WrongToken)),
        ];
        for (given, expected) in rows {
            let mut headers = HeaderMap::new();
            for value in *given {
                headers.append(AUTHORIZATION, value.parse().unwrap());
            }
            assert_eq!(&Access::Token(digest("secret")).judge(&headers), expected, "{given:?}");
            assert_eq!(Access::Open.judge(&headers), Ok(()), "{given:?}");
        }
    }
}
