//! Grants from every side.

use super::super::{Numbered, target};
use super::*;

fn grant(hosts: &[&str]) -> Grant {
    Grant::to(hosts.iter().map(|host| HostRule::parse(host).unwrap()).collect())
}

fn entry(grants: Vec<Grant>) -> Entry {
    let numbered = grants.into_iter().zip(1..).map(|(grant, number)| Numbered { number, grant });
    Entry { name: "token".to_owned(), version: 1, grants: numbered.collect() }
}

#[track_caller]
fn check(grants: &[Grant], url: &str, method: &str, form: &AuthForm, refused: Option<&str>) {
    let url = target::read(url).unwrap();
    match (judge(&entry(grants.to_vec()), &url, method, form), refused) {
        (Ok(_), None) => {}
        (Err(error), Some(why)) => {
            assert_eq!(error.code, ErrorCode::NotGranted, "{url}");
            assert!(error.message.contains(why), "{url}: {error}");
            assert!(error.message.contains("`indelible vault grant token --host HOST`"), "{error}");
        }
        (found, _) => panic!("{url} {method} {form}: {found:?}"),
    }
}

#[test]
fn hosts_are_those_granted_and_no_others() {
    // The granted host, the URL, whether it is allowed.
    let rows = [
        ("api.example.com", "https://api.example.com/", true),
        ("api.example.com", "https://API.EXAMPLE.COM/x", true),
        ("api.example.com", "https://api.example.com./x", true),
        ("api.example.com", "https://api.example.com:443/", true),
        ("api.example.com", "https://%61pi.example.com/", true),
        ("api.example.com", "https://ａｐｉ.example.com/", true),
        ("api.example.com", "https://api.example.com:8443/", false),
        ("api.example.com", "https://example.com/", false),
        ("api.example.com", "https://x.api.example.com/", false),
        ("api.example.com", "https://api.example.com.evil.com/", false),
        ("api.example.com", "https://api.example.comevil.com/", false),
        ("api.example.com", "https://evil.com/api.example.com", false),
        ("api.example.com", "https://evil.com/?https://api.example.com", false),
        ("api.example.com", "https://evil.com\\@api.example.com/", false),
        ("api.example.com:8443", "https://api.example.com:8443/", true),
        ("api.example.com:8443", "https://api.example.com/", false),
        ("api.example.com:443", "https://api.example.com/", true),
        (".example.com", "https://a.example.com/", true),
        (".example.com", "https://a.b.example.com/", true),
        (".example.com", "https://a.b.example.com./", true),
        (".example.com", "https://example.com/", false),
        (".example.com", "https://evilexample.com/", false),
        (".example.com", "https://a.example.com.evil.com/", false),
        (".example.com", "https://a.example.com:8443/", false),
        (".example.com:8443", "https://a.example.com:8443/", true),
        ("bücher.example", "https://xn--bcher-kva.example/", true),
        ("bücher.example", "https://BÜCHER.example/", true),
        ("xn--bcher-kva.example", "https://bücher.example/", true),
        ("bucher.example", "https://bücher.example/", false),
        ("127.0.0.1", "https://2130706433/", true),
        ("127.0.0.1", "https://0x7f.0.0.1/", true),
        ("127.0.0.1", "https://0177.0.0.1/", true),
        ("127.0.0.1", "https://127.1/", true),
        ("127.0.0.1", "https://[::ffff:127.0.0.1]/", false),
        ("127.0.0.1", "https://127.0.0.2/", false),
        ("[::1]", "https://[0:0:0:0:0:0:0:1]/", true),
        ("[::1]", "https://[::2]/", false),
        ("localhost", "https://localhost./", true),
        ("localhost", "https://127.0.0.1/", false),
    ];
    for (host, url, allowed) in rows {
        let refused = if allowed { None } else { Some("allows host `") };
        check(&[grant(&[host])], url, "GET", &AuthForm::Bearer, refused);
    }
    let both = [grant(&["a.example"]), grant(&["b.example", "c.example"])];
    for (url, refused) in [
        ("https://a.example/", None),
        ("https://c.example/", None),
        ("https://d.example/", Some("host `d.example`")),
    ] {
        check(&both, url, "GET", &AuthForm::Bearer, refused);
    }
    check(&[], "https://a.example/", "GET", &AuthForm::Bearer, Some("`token` has no grant"));
}

#[test]
fn schemes_methods_paths_and_forms_are_those_granted() {
    let usual = grant(&["h.example"]);
    let wide = Grant {
        methods: vec!["POST".to_owned()],
        path: "/api".to_owned(),
        auth: vec![AuthRule::Header(Some("x-key".to_owned())), AuthRule::Query(Some("key".to_owned()))],
        http: true,
        ..usual.clone()
    };
    let header = |name: &str| AuthForm::Header(name.to_owned());
    let query = |name: &str| AuthForm::Query(name.to_owned());
    let rows = [
        (&usual, "https://h.example/any/path", "GET", AuthForm::Bearer, None),
        (&usual, "https://h.example/", "HEAD", AuthForm::Basic, None),
        (&usual, "https://h.example/", "GET", header("x-any"), None),
        (&usual, "http://h.example/", "GET", AuthForm::Bearer, Some("only https")),
        (&usual, "https://h.example/", "POST", AuthForm::Bearer, Some("method POST")),
        (&usual, "https://h.example/", "get", AuthForm::Bearer, Some("method get")),
        (&usual, "https://h.example/", "GET", query("key"), Some("the form query:key")),
        (&wide, "http://h.example/api/x", "POST", header("x-key"), None),
        (&wide, "https://h.example/api", "POST", query("key"), None),
        (&wide, "https://h.example/apix", "POST", query("key"), Some("must lie under `/api`")),
        (&wide, "https://h.example/api/%2e%2e%2fx", "POST", query("key"), Some("must lie under")),
        (&wide, "https://h.example/api/../x", "POST", query("key"), Some("path `/x`")),
        (&wide, "https://h.example/api", "GET", query("key"), Some("method GET")),
        (&wide, "https://h.example/api", "POST", query("other"), Some("the form query:other")),
        (&wide, "https://h.example/api", "POST", header("x-other"), Some("the form header:x-other")),
        (&wide, "https://h.example/api", "POST", AuthForm::Bearer, Some("the form bearer")),
    ];
    for (grant, url, method, form, refused) in rows {
        check(std::slice::from_ref(grant), url, method, &form, refused);
    }
    // No request is put together from two grants.
    check(&[usual, wide], "http://h.example/api", "GET", &AuthForm::Bearer, Some("no grant of `token`"));
}

#[test]
fn private_addresses_are_allowed_by_a_grant_that_allows_the_request() {
    let url = target::read("https://h.example/").unwrap();
    let private = |hosts: &[&str]| Grant { private: true, ..grant(hosts) };
    let rows = [
        (vec![grant(&["h.example"])], false),
        (vec![private(&["h.example"])], true),
        (vec![grant(&["h.example"]), private(&["h.example"])], true),
        (vec![grant(&["h.example"]), private(&["other.example"])], false),
    ];
    for (grants, expected) in rows {
        assert_eq!(judge(&entry(grants), &url, "GET", &AuthForm::Bearer), Ok(expected));
    }
}

#[test]
fn a_grant_that_says_nothing_certain_is_not_kept() {
    let usual = grant(&["h.example"]);
    assert_eq!(usual.check(), Ok(()));
    let path = |path: &str| Grant { path: path.to_owned(), ..usual.clone() };
    for good in ["/", "/api", "/api/", "/api/v1.2/a-b_c~d"] {
        assert_eq!(path(good).check(), Ok(()), "{good}");
    }
    for bad in ["", "api", "/a//b", "/a/../b", "/.", "/a%2fb", "/a?b", "/a#b", "/a\\b", "/a b", "/ž", "/a;b"]
    {
        assert!(path(bad).check().is_err(), "{bad}");
    }
    for bad in [
        Grant { hosts: Vec::new(), ..usual.clone() },
        Grant { methods: Vec::new(), ..usual.clone() },
        Grant { methods: vec!["TRACE".to_owned()], ..usual.clone() },
        Grant { methods: vec!["get".to_owned()], ..usual.clone() },
        Grant { auth: Vec::new(), ..usual.clone() },
    ] {
        assert!(bad.check().is_err(), "{bad:?}");
    }
}

#[test]
fn a_grant_is_kept_as_data_and_read_back() {
    let grant = Grant {
        methods: vec!["POST".to_owned()],
        path: "/v1".to_owned(),
        auth: ["bearer", "basic", "header", "header:X-Key", "query", "query:K"]
            .map(|text| AuthRule::parse(text).unwrap())
            .into(),
        private: true,
        http: true,
        ..grant(&["h.example", ".b.example:8443", "[::1]"])
    };
    let text = serde_json::to_string(&grant).unwrap();
    assert_eq!(
        text,
        r#"{"hosts":["h.example",".b.example:8443","[::1]"],"methods":["POST"],"path":"/v1","auth":["bearer","basic","header","header:x-key","query","query:K"],"private":true,"http":true}"#
    );
    assert_eq!(serde_json::from_str::<Grant>(&text).unwrap(), grant);
    for bad in ["", "Bearer", "bearer:x", "header:", "query:", "cookie", "basic:x"] {
        assert!(AuthRule::parse(bad).is_err(), "{bad}");
    }
}
