//! Tokens of an OAuth issuer: which of them open what. The issuer is a small one on this machine, over plain HTTP.

use super::desk::Heard;
use super::hall::{Hall, people, serving};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const AUDIENCE: &str = "https://state.example/mcp";

/// A key of P-256: PKCS #8, and the point's coordinates. Made for these tests.
struct Pair(&'static str, &'static str, &'static str);

const ONE: Pair = Pair(
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQga0z90g1QraG63VVGW52AmElbQ2EPK/f4G+lggX95Dp2hRANCAARtwk1gPSwmkVvGrMaxxGGRUaHVfG+Y8L3czNlWKWAlYJgf9NA9K6LjMJ0hPwkJS7JmApfIaw+A3AJqz/Ow5yxe",
    "bcJNYD0sJpFbxqzGscRhkVGh1XxvmPC93MzZVilgJWA",
    "mB_00D0rouMwnSE_CQlLsmYCl8hrD4DcAmrP87DnLF4",
);
const TWO: Pair = Pair(
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg1t0mDBj0VJKGVaVj5zuaiOYjoRgY//2fSPdkpU+rvgyhRANCAAQN0+pt+oxMuvkLvvHE2dufTkU1eujNLOMeym6koZJrvAdrOnkyNzeIbJ+TrePgy5K4lNwBWr61KspE8pIfeHKu",
    "DdPqbfqMTLr5C77xxNnbn05FNXrozSzjHspupKGSa7w",
    "B2s6eTI3N4hsn5Ot4-DLkriU3AFavrUqykTykh94cq4",
);

/// A running issuer.
struct Issuer {
    url: String,
    /// Its keys, as they are given to whoever asks.
    keys: Arc<Mutex<Value>>,
    /// How often they were asked for.
    fetches: Arc<AtomicUsize>,
}

impl Issuer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let keys = Arc::new(Mutex::new(json!({"keys": [public(&ONE, "one")]})));
        let fetches = Arc::new(AtomicUsize::new(0));
        let (shown, counted, own) = (Arc::clone(&keys), Arc::clone(&fetches), url.clone());
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let Some(Ok(first)) = lines.next() else { continue };
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let (status, body) = match first.split(' ').nth(1).unwrap() {
                    "/.well-known/openid-configuration" => {
                        ("200 OK", json!({"issuer": own, "jwks_uri": format!("{own}/keys")}))
                    }
                    "/keys" => {
                        counted.fetch_add(1, Ordering::SeqCst);
                        ("200 OK", shown.lock().unwrap().clone())
                    }
                    _ => ("404 Not Found", Value::Null),
                };
                let body = body.to_string();
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all((head + &body).as_bytes());
            }
        });
        Self { url, keys, fetches }
    }

    /// What a good token says.
    fn claims(&self, scope: &str) -> Value {
        json!({"iss": self.url, "aud": AUDIENCE, "sub": "agent", "exp": get_current_timestamp() + 300, "scope": scope})
    }
}

/// A key of RSA with 2048 bits: PKCS #1 in base64, and the modulus; the exponent is 65537. Made for these tests.
const RSA: (&str, &str) = (
    include_str!("rsa_key.txt"),
    "q7LtciYwUJYPkBrgoEOSRLtXw02hFl2CxiDpMmUXie9iNyZ5xXvM-8ryXgdOBJN4-enEsTz-acyP2L6Umi_Gbyu57qRy4bcXRovqyOKMnSmQGdhyX0Fzefpqu6qFBlgLEhPkZIvYYdVzs3zNvJKQpTsUjvHaRyvSLY0nrhCUNgKUJZbnLLjk4KPO0GjduFUUWYM2lk_-DDNjSBBfxjGDDy27qNuQeDZX4hhMjN-1ygxQs7_-_zzEfPXjB6cqAaWxUcqCxIgR1RzaeMHjGD8gX34H1FxXfHlVMgsL8lxZCkfFdM_bT-28O6f__rpFd8sp96W42AoWneni_P2fKJTBXQ",
);

fn rsa_token(algorithm: Algorithm, id: &str, claims: &Value) -> String {
    let mut header = Header::new(algorithm);
    header.kid = Some(id.to_owned());
    let key = STANDARD.decode(RSA.0.replace('\n', "")).unwrap();
    encode(&header, claims, &EncodingKey::from_rsa_der(&key)).unwrap()
}

fn public(pair: &Pair, id: &str) -> Value {
    json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": id, "x": pair.1, "y": pair.2})
}

fn token(pair: &Pair, id: &str, claims: &Value) -> String {
    let mut header = Header::new(Algorithm::ES256);
    header.kid = Some(id.to_owned());
    encode(&header, claims, &EncodingKey::from_ec_der(&STANDARD.decode(pair.0).unwrap())).unwrap()
}

/// A server that takes the issuer's tokens, with two groups.
fn hall(issuer: &Issuer) -> Hall {
    let folder = tempfile::tempdir().unwrap();
    for group in ["team", "other"] {
        people(folder.path(), &["groups", "create", group]);
        people(folder.path(), &["primitives", "create", "storage", "files", "--group", group]);
    }
    Hall::on(folder, &["--oauth-issuer", &issuer.url, "--oauth-audience", AUDIENCE], &[])
}

#[test]
fn scopes_of_a_token_open_groups_and_narrow_tools() {
    let issuer = Issuer::start();
    let hall = hall(&issuer);
    let with = |scope: &str| token(&ONE, "one", &issuer.claims(scope));
    let rows = [
        ("group:team", 200, 403),
        ("openid group:team group:other", 200, 200),
        ("group:nosuch", 403, 403),
        ("", 403, 403),
    ];
    for (scope, team, other) in rows {
        let token = with(scope);
        assert_eq!(hall.status("/mcp/team", Some(&token)), team, "{scope}");
        assert_eq!(hall.status("/mcp/other", Some(&token)), other, "{scope}");
        assert_eq!(hall.status("/metrics", Some(&token)), 403, "{scope}");
    }
    // A scope names a group that is not there: its holder learns so.
    assert_eq!(hall.status("/mcp/nosuch", Some(&with("group:nosuch"))), 404);
    let narrow = with("group:team tool:storage_read tool:nosuch");
    assert_eq!(hall.tools("/mcp/team", &narrow), ["primitive_list", "storage_read"]);
    let reads = hall.tools("/mcp/team", &with("group:team tools:read"));
    assert!(reads.contains(&"kv_get".to_owned()) && !reads.contains(&"kv_set".to_owned()), "{reads:?}");
    assert_eq!(hall.refused("/mcp/team", &narrow, "storage_list", json!({})).0, "forbidden_tool");
    assert_eq!(issuer.fetches.load(Ordering::SeqCst), 1);
}

#[test]
fn only_a_token_of_the_issuer_for_this_server_and_this_time_opens_anything() {
    let issuer = Issuer::start();
    let hall = hall(&issuer);
    let good = issuer.claims("group:team");
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        token(&ONE, "one", &claims)
    };
    let without = |name: &str| {
        let mut claims = good.clone();
        claims.as_object_mut().unwrap().remove(name);
        token(&ONE, "one", &claims)
    };
    let now = get_current_timestamp();
    assert_eq!(hall.status("/mcp/team", Some(&token(&ONE, "one", &good))), 200);
    // Dates of RFC 7519 may have fractions.
    for (name, date) in [("exp", now as f64 + 200.5), ("nbf", now as f64 - 0.5), ("iat", now as f64 - 0.25)] {
        assert_eq!(hall.status("/mcp/team", Some(&with(name, json!(date)))), 200, "{name}");
    }
    assert_eq!(hall.status("/mcp/team", Some(&with("aud", json!(["x", AUDIENCE])))), 200);
    // A secret made of the public key, as a server that lets the token choose would take it.
    let mut forged = Header::new(Algorithm::HS256);
    forged.kid = Some("one".to_owned());
    let forged = encode(&forged, &good, &EncodingKey::from_secret(ONE.1.as_bytes()).unwrap()).unwrap();
    let signed = token(&ONE, "one", &good);
    let (message, signature) = signed.rsplit_once('.').unwrap();
    let payload = message.split_once('.').unwrap().1;
    let none = "eyJhbGciOiJub25lIn0";
    let rows = [
        ("another key under the id", token(&TWO, "one", &good)),
        ("an unknown key", token(&TWO, "two", &good)),
        ("another issuer", with("iss", json!("https://evil.example"))),
        ("another audience", with("aud", json!("https://other.example/mcp"))),
        ("over", with("exp", json!(now - 31))),
        ("over by a fraction", with("exp", json!(now as f64 - 31.5))),
        ("not yet", with("nbf", json!(now + 60))),
        ("not yet by a fraction", with("nbf", json!(now as f64 + 60.5))),
        ("an end that is none", with("exp", json!("soon"))),
        ("no issuer", without("iss")),
        ("no audience", without("aud")),
        ("no end", without("exp")),
        ("by a shared secret", forged),
        ("by no algorithm", format!("{none}.{payload}.")),
        ("by no algorithm, signed", format!("{none}.{payload}.{signature}")),
        ("without signature", format!("{message}.")),
        ("cut", signed[..signed.len() - 2].to_owned()),
        ("no token", "a.b.c".to_owned()),
        ("too long", "a".repeat(20_000)),
    ];
    for (what, token) in rows {
        let heard = hall.send("/mcp/team", Some(&token), "ping", json!({}));
        assert_eq!(heard.status, 401, "{what}: {heard:?}");
        assert!(heard.header("www-authenticate").contains("error=\"invalid_token\""), "{what}");
        assert!(!heard.text.contains("issuer has") && !hall.server.stderr().contains(&token), "{what}");
    }
    // Keys still open their group, beside tokens.
    let key = hall.key("team", &[]);
    assert_eq!(hall.status("/mcp/team", Some(&key)), 200);
}

#[test]
fn keys_of_rsa_open_by_their_own_algorithm_and_by_no_other() {
    let issuer = Issuer::start();
    let hall = hall(&issuer);
    let rsa = |id: &str, algorithm: Option<&str>| {
        let mut key = json!({"kty": "RSA", "use": "sig", "kid": id, "n": RSA.1, "e": "AQAB"});
        if let Some(algorithm) = algorithm {
            key["alg"] = json!(algorithm);
        }
        key
    };
    *issuer.keys.lock().unwrap() =
        json!({"keys": [public(&ONE, "one"), rsa("two", Some("RS256")), rsa("three", None)]});
    let good = issuer.claims("group:team");
    // What a server takes for a secret that lets the token choose its algorithm.
    let by_secret = |secret: &[u8]| {
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some("two".to_owned());
        encode(&header, &good, &EncodingKey::from_secret(secret).unwrap()).unwrap()
    };
    let mut over = good.clone();
    over["exp"] = json!(get_current_timestamp() - 31);
    let mut elsewhere = good.clone();
    elsewhere["aud"] = json!("https://other.example/mcp");
    let modulus = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(RSA.1).unwrap();
    let rows = [
        ("RS256", rsa_token(Algorithm::RS256, "two", &good), 200),
        ("RS256 with a key for any", rsa_token(Algorithm::RS256, "three", &good), 200),
        ("PS256 with a key for any", rsa_token(Algorithm::PS256, "three", &good), 200),
        ("PS256 with a key for RS256", rsa_token(Algorithm::PS256, "two", &good), 401),
        ("RS256 with a key of an elliptic curve", rsa_token(Algorithm::RS256, "one", &good), 401),
        ("ES256 with a key of RSA", token(&ONE, "two", &good), 401),
        ("HS256 with the modulus", by_secret(RSA.1.as_bytes()), 401),
        ("HS256 with the modulus as bytes", by_secret(&modulus), 401),
        ("over", rsa_token(Algorithm::RS256, "two", &over), 401),
        ("another audience", rsa_token(Algorithm::RS256, "two", &elsewhere), 401),
    ];
    for (what, token, status) in rows {
        assert_eq!(hall.status("/mcp/team", Some(&token)), status, "{what}");
    }
}

#[test]
fn a_new_key_of_the_issuer_is_fetched_and_never_often() {
    let issuer = Issuer::start();
    let hall = hall(&issuer);
    let claims = issuer.claims("group:team");
    *issuer.keys.lock().unwrap() = json!({"keys": [public(&ONE, "one"), public(&TWO, "two")]});
    assert_eq!(hall.status("/mcp/team", Some(&token(&TWO, "two", &claims))), 200);
    for _ in 0..20 {
        assert_eq!(hall.status("/mcp/team", Some(&token(&TWO, "three", &claims))), 401);
    }
    assert_eq!(issuer.fetches.load(Ordering::SeqCst), 1, "none within half a minute of the last");
    assert_eq!(hall.status("/mcp/team", Some(&token(&ONE, "one", &claims))), 200);
}

#[test]
fn clients_are_led_to_the_issuer() {
    let issuer = Issuer::start();
    let hall = hall(&issuer);
    let base = format!("http://{}", hall.caller.authority);
    let get = |path: &str| -> Heard {
        hall.caller.run(Request::builder().uri(format!("{base}{path}")).body(String::new()).unwrap())
    };
    for path in ["/mcp/team", "/mcp/nosuch"] {
        let heard = hall.send(path, None, "ping", json!({}));
        let document = format!("/.well-known/oauth-protected-resource{path}");
        let group = path.rsplit('/').next().unwrap();
        let expected = format!(
            "Bearer realm=\"indelible\", resource_metadata=\"{base}{document}\", scope=\"group:{group}\""
        );
        assert_eq!((heard.status, heard.header("www-authenticate")), (401, expected.as_str()));
        let described: Value = serde_json::from_str(&get(&document).text).unwrap();
        assert_eq!(described["resource"], format!("{base}{path}"));
        assert_eq!(described["authorization_servers"], json!([issuer.url]));
        assert_eq!(described["scopes_supported"], json!([format!("group:{group}"), "tools:read"]));
    }
    let root: Value = serde_json::from_str(&get("/.well-known/oauth-protected-resource").text).unwrap();
    assert_eq!(root["resource"], base);
    assert_eq!(get("/.well-known/oauth-protected-resource/mcp/a b".replace(' ', "%20").as_str()).status, 404);
    // Too narrow a token: which scope would do.
    let narrow = token(&ONE, "one", &issuer.claims("group:other"));
    let heard = hall.send("/mcp/team", Some(&narrow), "ping", json!({}));
    let challenge = heard.header("www-authenticate");
    assert_eq!(heard.status, 403);
    assert!(
        challenge.contains("error=\"insufficient_scope\"") && challenge.contains("scope=\"group:team\""),
        "{challenge}"
    );
    // Without an issuer there is nothing of it.
    let other = Hall::open(&["team"]);
    let heard = other.send("/mcp/team", None, "ping", json!({}));
    assert_eq!(heard.header("www-authenticate"), "Bearer realm=\"indelible\"");
    let url = format!("http://{}/.well-known/oauth-protected-resource", other.caller.authority);
    assert_eq!(other.caller.run(Request::builder().uri(url).body(String::new()).unwrap()).status, 401);
}

#[test]
fn a_url_that_a_token_signed_ends_with_the_token() {
    let issuer = Issuer::start();
    let hall = hall(&issuer);
    let token = token(&ONE, "one", &issuer.claims("group:team"));
    hall.ok("/mcp/team", &token, "storage_write", json!({"key": "k", "content": "x"}));
    let signed = hall.ok("/mcp/team", &token, "storage_sign", json!({"key": "k", "expires_in": "7d"}));
    let ends: jiff::Timestamp = signed["expires_at"].as_str().unwrap().parse().unwrap();
    let left = ends.as_second() - jiff::Timestamp::now().as_second();
    assert!((280..=300).contains(&left), "{left}");
    let url = signed["url"].as_str().unwrap();
    assert_eq!(hall.caller.run(Request::builder().uri(url).body(String::new()).unwrap()).text, "x");
}

#[test]
fn an_issuer_that_nobody_could_be_sure_of_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    people(folder.path(), &["groups", "create", "team"]);
    let rows: &[(&[&str], &str)] = &[
        (&["--oauth-issuer", "http://issuer.example", "--oauth-audience", "a"], "must be a URL with https"),
        (&["--oauth-issuer", "issuer.example", "--oauth-audience", "a"], "must be a URL with https"),
        (&["--oauth-issuer", "https://issuer.example"], "needs --oauth-audience"),
        (&["--oauth-audience", "a"], "give that too"),
    ];
    for (flags, words) in rows {
        let (status, line) = serving(folder.path(), flags).refusal();
        assert_eq!(status, 2, "{flags:?}: {line}");
        assert!(line.contains(words), "{flags:?}: {line}");
    }
}

#[test]
fn an_issuer_that_is_away_costs_its_tokens_alone() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let issuer = Issuer::start();
    let away = format!("http://{}", taken.local_addr().unwrap());
    drop(taken);
    let folder = tempfile::tempdir().unwrap();
    people(folder.path(), &["groups", "create", "team"]);
    let key = people(folder.path(), &["keys", "create", "--group", "team"]);
    let hall = Hall::on(folder, &["--oauth-issuer", &away, "--oauth-audience", AUDIENCE], &[]);
    let mut claims = issuer.claims("group:team");
    claims["iss"] = json!(away);
    let heard = hall.send("/mcp/team", Some(&token(&ONE, "one", &claims)), "ping", json!({}));
    assert_eq!(heard.status, 503, "{heard:?}");
    assert_eq!(hall.status("/mcp/team", Some(&key)), 200);
}
