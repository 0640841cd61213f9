//! Bearer tokens of an OAuth issuer: signed JWTs, held against the issuer's keys.
//!
//! This server is a protected resource and nothing else (RFC 6750, RFC 9068, and the authorization part of MCP): it asks
//! nobody to log in and gives out no tokens. What a token says is believed once its signature is that of a key of the
//! issuer's, by an asymmetric algorithm, and it names this server as its audience.
//!
//! # Layout
//!
//! - `keys`: the issuer's keys, fetched and kept; `scopes`: what a token's scopes open
//! - here: one token judged

mod keys;
pub mod scopes;

use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use keys::IssuerKeys;
use scopes::Scopes;
use serde::Deserialize;
use serde_json::Value;

/// How far clocks may be apart, in seconds.
const LEEWAY: u64 = 30;
/// Longer ones are not looked at, in bytes.
const LONGEST_TOKEN: usize = 16 << 10;

/// Algorithms with a key that only the issuer has.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// Judges tokens of one issuer.
#[derive(Debug)]
pub struct Verifier {
    issuer: String,
    audience: String,
    keys: IssuerKeys,
}

/// What a token that holds says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Whose it is, for records.
    pub subject: String,
    /// When it ends; milliseconds since 1970.
    pub until: i64,
    /// What it opens.
    pub scopes: Scopes,
}

/// Why a token does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is none of the issuer's for this server, or is over. Why is for the log alone.
    Invalid(String),
    /// The issuer's keys cannot be had now.
    NoKeys(String),
}

#[derive(Deserialize)]
struct Claims {
    /// A NumericDate, which may have a fraction (<https://datatracker.ietf.org/doc/html/rfc7519#section-2>).
    exp: f64,
    sub: Option<String>,
    client_id: Option<String>,
    scope: Option<Value>,
    scp: Option<Value>,
}

impl Verifier {
    /// For tokens of this issuer, a URL, that name this audience.
    ///
    /// # Errors
    /// In words: no client of HTTP can be made.
    pub fn new(issuer: &str, audience: &str) -> Result<Self, String> {
        let keys = IssuerKeys::new(issuer)?;
        Ok(Self { issuer: issuer.to_owned(), audience: audience.to_owned(), keys })
    }

    /// The issuer.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// What tokens of others are not valid for.
    #[must_use]
    pub fn binding(&self) -> String {
        Value::from(vec![self.issuer.as_str(), self.audience.as_str()]).to_string()
    }

    /// Judges a token.
    ///
    /// # Errors
    /// Why it does not hold.
    pub async fn judge(&self, token: &str) -> Result<Token, Refused> {
        let invalid = |why: &dyn std::fmt::Display| Refused::Invalid(why.to_string());
        if token.len() > LONGEST_TOKEN {
            return Err(invalid(&"it is too long"));
        }
        let header = decode_header(token).map_err(|error| invalid(&error))?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(invalid(&format_args!("its algorithm is {:?}", header.alg)));
        }
        let key = self.keys.find(header.kid.as_deref(), header.alg).await?;
        // The algorithm is one that this key is for, and not what the token would like it to be.
        let mut rules = Validation::new(header.alg);
        rules.set_issuer(&[&self.issuer]);
        rules.set_audience(&[&self.audience]);
        rules.set_required_spec_claims(&["exp", "iss", "aud"]);
        rules.validate_nbf = true;
        rules.leeway = LEEWAY;
        let claims = decode::<Claims>(token, &key, &rules).map_err(|error| invalid(&error))?.claims;
        let subject = claims.sub.or(claims.client_id).unwrap_or_default();
        Ok(Token {
            subject: crate::render::one_line(&subject, 100),
            // What is beyond 64 bits stays at their end.
            until: (claims.exp * 1_000.0) as i64,
            scopes: Scopes::of(claims.scope.as_ref().or(claims.scp.as_ref())),
        })
    }
}
