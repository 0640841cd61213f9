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
    use std::io::{BufRead, BufReader, Write};
    use std::sync::Arc;

    /// An issuer on this machine that gives these documents, by their path; its thread ends with the test.
    fn issuer(keys: Arc<std::sync::Mutex<String>>) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let metadata = format!(r#"{{"issuer": "{url}", "jwks_uri": "{url}/keys"}}"#);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = Vec::new();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while reader.read_until(b'\n', &mut head).is_ok_and(|bytes| bytes > 2) {}
                let body = if head.starts_with(b"GET /keys ") {
                    keys.lock().unwrap().clone()
                } else {
                    metadata.clone()
                };
                let head =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                let _ = stream.write_all((head + &body).as_bytes());
            }
        });
        url
    }

    #[tokio::test]
    async fn keys_that_were_exchanged_are_found_half_a_minute_later_and_the_former_ones_no_more() {
        let jwks = |ids: &[&str]| {
            let key = |id: &&str| {
                serde_json::json!({
                    "kty": "EC", "crv": "P-256", "kid": id,
                    "x": "bcJNYD0sJpFbxqzGscRhkVGh1XxvmPC93MzZVilgJWA",
                    "y": "mB_00D0rouMwnSE_CQlLsmYCl8hrD4DcAmrP87DnLF4",
                })
            };
            serde_json::json!({"keys": ids.iter().map(key).collect::<Vec<_>>()}).to_string()
        };
        let shown = Arc::new(std::sync::Mutex::new(jwks(&["one"])));
        let keys = IssuerKeys::new(&issuer(Arc::clone(&shown))).unwrap();
        let found = async |id: &str| keys.find(Some(id), Algorithm::ES256).await.is_ok();
        assert!(found("one").await && !found("two").await);
        *shown.lock().unwrap() = jwks(&["two"]);
        assert!(found("one").await && !found("two").await, "nothing is fetched yet");
        let before = Instant::now().checked_sub(BETWEEN);
        assert!(before.is_some());
        keys.kept.lock().await.tried = before;
        assert!(found("one").await, "a key that is known asks for no fetch");
        assert!(found("two").await && !found("one").await);
        // Kept keys are looked at again when they are old, however well known.
        *shown.lock().unwrap() = jwks(&["three"]);
        let old = Instant::now().checked_sub(KEPT_FOR);
        assert!(old.is_some());
        let mut kept = keys.kept.lock().await;
        (kept.tried, kept.fetched) = (before, old);
        drop(kept);
        assert!(!found("two").await && found("three").await);
    }

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
