//! The keys of an issuer: found through its metadata, fetched, kept, and fetched again for a key that is not among them.
//!
//! Sources: RFC 8414 for the metadata (and OpenID Connect Discovery 1.0, where an issuer has only that), RFC 7517 for keys.
//! Fetches are rare, whatever clients send: one at a time, and none within half a minute of the last.

use super::Refused;
use crate::config::is_permitted_issuer as is_permitted;
use crate::outbound::trusting_the_system;
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use serde::Deserialize;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use url::Url;

/// How long keys are kept before they are fetched again.
const KEPT_FOR: Duration = Duration::from_secs(600);
/// From one fetch to the next at least.
const BETWEEN: Duration = Duration::from_secs(30);
/// How long a fetch may take.
const FETCH_TIME: Duration = Duration::from_secs(10);
/// The longest document that is read.
const LONGEST: usize = 256 << 10;

/// The keys of one issuer.
#[derive(Debug)]
pub(super) struct IssuerKeys {
    issuer: String,
    client: Client,
    /// Held while they are fetched: who comes meanwhile waits for the same keys.
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    keys: Option<JwkSet>,
    fetched: Option<Instant>,
    tried: Option<Instant>,
}

#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

impl IssuerKeys {
    pub(super) fn new(issuer: &str) -> Result<Self, String> {
        let client = Client::builder()
            .tls_backend_preconfigured(trusting_the_system()?)
            .no_proxy()
            .redirect(Policy::none())
            .timeout(FETCH_TIME)
            .user_agent(concat!("indelible/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { issuer: issuer.to_owned(), client, kept: Mutex::default() })
    }

    /// The key of this id for this algorithm; without an id, the only one for it.
    pub(super) async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<DecodingKey, Refused> {
        let mut kept = self.kept.lock().await;
        let fresh = kept.fetched.is_some_and(|at| at.elapsed() < KEPT_FOR);
        let found = kept.keys.as_ref().and_then(|keys| chosen(keys, id, algorithm));
        let may_try = kept.tried.is_none_or(|at| at.elapsed() >= BETWEEN);
        if may_try && !(fresh && found.is_some()) {
            kept.tried = Some(Instant::now());
            match self.fetched().await {
                Ok(keys) => {
                    *kept = Kept { keys: Some(keys), fetched: Some(Instant::now()), tried: kept.tried }
                }
                Err(why) => {
                    tracing::warn!("the keys of the issuer {} cannot be fetched: {why}", self.issuer);
                    // The former ones hold while the issuer is away.
                    if kept.keys.is_none() {
                        return Err(Refused::NoKeys(why));
                    }
                }
            }
        }
        let keys = kept.keys.as_ref();
        let keys =
            keys.ok_or_else(|| Refused::NoKeys("they could not be fetched a moment ago".to_owned()))?;
        chosen(keys, id, algorithm).ok_or_else(|| Refused::Invalid("the issuer has no such key".to_owned()))
    }

    async fn fetched(&self) -> Result<JwkSet, String> {
        let issuer = Url::parse(&self.issuer).map_err(|error| error.to_string())?;
        let mut why = "it has no metadata".to_owned();
        for url in places(&issuer) {
            let metadata: Metadata = match self.document(&url).await {
                Ok(Some(metadata)) => metadata,
                Ok(None) => continue,
                Err(error) => {
                    why = error;
                    continue;
                }
            };
            if metadata.issuer != self.issuer {
                return Err(format!("its metadata is that of `{}`", metadata.issuer));
            }
            let keys = Url::parse(&metadata.jwks_uri).map_err(|error| format!("its jwks_uri: {error}"))?;
            if !is_permitted(&keys) || (issuer.scheme() == "https" && keys.scheme() != "https") {
                return Err(format!("its keys would come from `{keys}`, which is not over TLS"));
            }
            return self.document(&keys).await?.ok_or_else(|| "its jwks_uri leads nowhere".to_owned());
        }
        Err(why)
    }

    /// A JSON document; none where there is none.
    async fn document<T: for<'de> Deserialize<'de>>(&self, url: &Url) -> Result<Option<T>, String> {
        let failed = |error: reqwest::Error| error.without_url().to_string();
        let mut response = self.client.get(url.clone()).send().await.map_err(failed)?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(None),
            status => return Err(format!("{url} answers {status}")),
        }
        let mut text = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            text.extend_from_slice(&piece);
            if text.len() > LONGEST {
                return Err(format!("what {url} answers is too long"));
            }
        }
        serde_json::from_slice(&text).map(Some).map_err(|error| format!("{url}: {error}"))
    }
}

/// Where an issuer's metadata may be: RFC 8414 puts the well-known part before the issuer's path, OpenID behind it.
fn places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let paths = [
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
        format!("{path}/.well-known/openid-configuration"),
    ];
    let mut places: Vec<Url> = Vec::new();
    for path in paths {
        let mut url = issuer.clone();
        url.set_path(&path);
        url.set_query(None);
        if !places.contains(&url) {
            places.push(url);
        }
    }
    places
}

fn chosen(keys: &JwkSet, id: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
    let mut fitting = keys.keys.iter().filter(|key| fits(key, algorithm));
    let key = match id {
        Some(id) => fitting.find(|key| key.common.key_id.as_deref() == Some(id))?,
        None => {
            let only = fitting.next()?;
            if fitting.next().is_some() {
                return None;
            }
            only
        }
    };
    DecodingKey::from_jwk(key).ok()
}

/// Whether a key is for signatures by this algorithm. A secret that both ends share never is.
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let family = match &key.algorithm {
        AlgorithmParameters::RSA(_) => AlgorithmFamily::Rsa,
        AlgorithmParameters::EllipticCurve(_) => AlgorithmFamily::Ec,
        AlgorithmParameters::OctetKeyPair(_) => AlgorithmFamily::Ed,
        _ => return false,
    };
    let named = key.common.key_algorithm.as_ref();
    let named = named.is_none_or(|named| *named == KeyAlgorithm::from(algorithm));
    let signs = key.common.public_key_use.as_ref().is_none_or(|kind| *kind == PublicKeyUse::Signature);
    named && signs && family.algorithms().contains(&algorithm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_where_issuers_have_it() {
        let all = |issuer: &str| {
            let places = places(&Url::parse(issuer).unwrap());
            places.iter().map(Url::path).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            all("https://issuer.example"),
            ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]
        );
        assert_eq!(
            all("https://issuer.example/realms/a"),
            [
                "/.well-known/oauth-authorization-server/realms/a",
                "/.well-known/openid-configuration/realms/a",
                "/realms/a/.well-known/openid-configuration"
            ]
        );
    }
}
