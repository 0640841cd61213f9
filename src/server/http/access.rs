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
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let header = given.next().ok_or(Denied::NoToken)?;
        let (scheme, token) =
            header.to_str().ok().and_then(|header| header.split_once(' ')).ok_or(Denied::NoToken)?;
        if !scheme.eq_ignore_ascii_case("Bearer") {
            return Err(Denied::NoToken);
        }
        // Hashes are compared, all of them: how long it takes tells neither the token nor its length.
        let matches = constant_time_eq_32(&digest(token.trim()), expected);
        if matches && given.next().is_none() { Ok(()) } else { Err(Denied::WrongToken) }
    }
}

/// Lets in who may come in.
pub(super) async fn required(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let denied = match access.judge(request.headers()) {
        Ok(()) => return next.run(request).await,
        Err(denied) => denied,
    };
    tracing::info!(?denied, "a request was turned away");
    let (challenge, words) = match denied {
        Denied::NoToken => (
            "Bearer realm=\"indelible\"",
            "this server asks for its token: send `Authorization: Bearer TOKEN`\n",
        ),
        Denied::WrongToken => (
            "Bearer realm=\"indelible\", error=\"invalid_token\", error_description=\"not the token of this server\"",
            "this is not the token of this server, which is in its INDELIBLE_HTTP_TOKEN\n",
        ),
    };
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)], words).into_response()
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
