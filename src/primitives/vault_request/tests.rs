//! Requests as agents ask for them.

use super::*;
use serde_json::json;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other}"),
    }
}

#[test]
fn auth_names_a_secret_and_one_form() {
    let rows = [
        (json!({"bearer": "gh"}), Some(("gh", AuthForm::Bearer, ""))),
        (json!({"basic": {"username": "me", "secret": "gh"}}), Some(("gh", AuthForm::Basic, "me"))),
        (json!({"basic": {"username": "", "secret": "gh"}}), Some(("gh", AuthForm::Basic, ""))),
        (
            json!({"header": {"name": "X-Key", "secret": "gh"}}),
            Some(("gh", AuthForm::Header("x-key".to_owned()), "")),
        ),
        (
            json!({"header": {"name": "Authorization", "secret": "gh"}}),
            Some(("gh", AuthForm::Header("authorization".to_owned()), "")),
        ),
        (
            json!({"query": {"param": "key", "secret": "gh"}}),
            Some(("gh", AuthForm::Query("key".to_owned()), "")),
        ),
        (json!({}), None),
        (json!({"bearer": "gh", "basic": {"username": "me", "secret": "gh"}}), None),
        (json!({"bearer": {"secret": "gh"}}), None),
        (json!({"bearer": ""}), None),
        (json!({"bearer": "a b"}), None),
        (json!({"cookie": {"name": "x", "secret": "gh"}}), None),
        (json!({"header": "gh"}), None),
        (json!({"header": {"secret": "gh"}}), None),
        (json!({"header": {"name": "X Key", "secret": "gh"}}), None),
        (json!({"header": {"name": "X-Key", "secret": "gh", "value": "x"}}), None),
        (json!({"header": {"name": "Host", "secret": "gh"}}), None),
        (json!({"header": {"name": "Cookie", "secret": "gh"}}), None),
        (json!({"header": {"name": "X-Forwarded-Host", "secret": "gh"}}), None),
        (json!({"basic": {"username": "a:b", "secret": "gh"}}), None),
        (json!({"basic": {"username": "a\nb", "secret": "gh"}}), None),
        (json!({"query": {"param": "", "secret": "gh"}}), None),
    ];
    for (given, expected) in rows {
        let found = auth(&object(given.clone())).map(|found| (found.secret, found.form, found.username));
        let expected = expected.map(|(secret, form, user)| (secret.to_owned(), form, user.to_owned()));
        assert_eq!(found.ok(), expected, "{given}");
    }
}

#[test]
fn headers_that_are_not_the_agent_s_are_refused() {
    let own = AuthForm::Header("x-key".to_owned());
    for name in [
        "Host",
        "Authorization",
        "authorization",
        "COOKIE",
        "Cookie2",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Keep-Alive",
        "TE",
        "Trailer",
        "Upgrade",
        "Expect",
        "Accept-Encoding",
        "Range",
        "Proxy-Authorization",
        "Proxy-Connection",
        "Proxy-X",
        "X-Forwarded-Host",
        "X-Forwarded-For",
        "Forwarded",
        "Via",
        "Sec-Fetch-Site",
        "X-HTTP-Method-Override",
        "x_http_method_override",
        "X-Original-URL",
        "X-Rewrite-Url",
        "Content_Length",
        "X-Key",
        "x-key",
        "X_Key",
    ] {
        let error = headers(Some(&object(json!({name: "x"}))), &own).unwrap_err();
        assert!(error.message.contains("is not yours to set"), "{name}: {error}");
    }
    for (name, value) in [
        ("a b", json!("x")),
        ("", json!("x")),
        ("x\r\ny", json!("x")),
        ("X-A", json!("a\r\nHost: evil")),
        ("X-A", json!("ž")),
        ("X-A", json!({"a": 1})),
        ("X-A", json!(null)),
    ] {
        assert!(headers(Some(&object(json!({name: value}))), &own).is_err(), "{name:?} {value}");
    }
    let good = json!({"Accept": "application/json", "X-Number": 5, "User-Agent": "me"});
    let found = headers(Some(&object(good)), &own).unwrap();
    assert_eq!((found.len(), found["x-number"].to_str().unwrap()), (3, "5"));
    assert!(headers(Some(&object(json!({"X-A": "1", "x-a": "2"}))), &own).is_err());
    assert!(headers(Some(&object(json!({"X-A": "x".repeat(17_000)}))), &own).is_err());
}

#[test]
fn a_body_is_text_json_or_bytes() {
    let read = |given: Value, encoding, method| {
        let mut headers = HeaderMap::new();
        body(Some(given), encoding, method, &mut headers)
            .map(|bytes| (bytes, headers.get("content-type").map(|kind| kind.to_str().unwrap().to_owned())))
    };
    let json_type = || Some("application/json".to_owned());
    assert_eq!(read(json!("text"), None, "POST").unwrap(), (b"text".to_vec(), None));
    assert_eq!(read(json!("AP8="), Some("base64"), "PUT").unwrap(), (vec![0, 255], None));
    assert_eq!(read(json!("AP8="), Some("utf8"), "PUT").unwrap(), (b"AP8=".to_vec(), None));
    assert_eq!(read(json!({"a": [1]}), None, "PATCH").unwrap(), (b"{\"a\":[1]}".to_vec(), json_type()));
    assert_eq!(read(json!(5), None, "DELETE").unwrap(), (b"5".to_vec(), json_type()));
    assert!(read(json!("?"), Some("base64"), "POST").is_err());
    assert!(read(json!({"a": 1}), Some("base64"), "POST").is_err());
    assert!(read(json!("x"), None, "GET").is_err());
    assert_eq!(read(json!("x".repeat(MOST_SENT + 1)), None, "POST").unwrap_err().code, ErrorCode::TooLarge);
    let mut own = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/x-own"))]);
    body(Some(json!({})), None, "POST", &mut own).unwrap();
    assert_eq!(own["content-type"], "application/x-own");
    assert!(body(None, Some("utf8"), "POST", &mut own).is_err());
}

#[test]
fn a_value_stands_where_the_form_says_and_nowhere_else() {
    let put = |given: Value, url: &str| {
        let (mut url, mut headers) = (Url::parse(url).unwrap(), HeaderMap::new());
        let hidden = carry(&auth(&object(given)).unwrap(), "top secret&", &mut url, &mut headers)?;
        assert!(headers.values().all(HeaderValue::is_sensitive));
        let headers: Vec<String> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        Ok::<_, ToolError>((url.to_string(), headers.join("\n"), hidden.len()))
    };
    let basic = STANDARD.encode("me:top secret&");
    let rows = [
        (json!({"bearer": "s"}), "https://h/", "authorization: Bearer top secret&".to_owned(), 1),
        (
            json!({"basic": {"username": "me", "secret": "s"}}),
            "https://h/",
            format!("authorization: Basic {basic}"),
            2,
        ),
        (
            json!({"header": {"name": "X-Key", "secret": "s"}}),
            "https://h/",
            "x-key: top secret&".to_owned(),
            1,
        ),
        (json!({"query": {"param": "k", "secret": "s"}}), "https://h/?k=top+secret%26", String::new(), 1),
    ];
    for (given, url, headers, hidden) in rows {
        assert_eq!(put(given, "https://h/").unwrap(), (url.to_owned(), headers, hidden));
    }
    let query = json!({"query": {"param": "k", "secret": "s"}});
    assert_eq!(put(query.clone(), "https://h/?a=1").unwrap().0, "https://h/?a=1&k=top+secret%26");
    assert!(put(query, "https://h/?%6b=1").is_err());
}
