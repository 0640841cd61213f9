//! Who may come in: token, Host, Origin; and what is open to everybody.

use super::support::Bench;
use super::{Desk, TOKEN, call, shake};
use http::Request;
use serde_json::json;

#[test]
fn only_the_token_opens_and_every_other_answer_is_a_challenge() {
    let desk = Desk::open(&[]);
    let right = format!("Bearer {TOKEN}");
    let longer = format!("Bearer {TOKEN}x");
    let rows = [
        (Some(right.as_str()), 200, ""),
        (None, 401, "Bearer realm=\"indelible\""),
        (Some("Basic dXNlcjpwdw=="), 401, "Bearer realm=\"indelible\""),
        (Some("Bearer wrong"), 401, "invalid_token"),
        (Some(longer.as_str()), 401, "invalid_token"),
    ];
    for (given, status, challenge) in rows {
        let mut request = desk.post();
        request.headers_mut().unwrap().remove("authorization");
        if let Some(given) = given {
            request = request.header("authorization", given);
        }
        let heard = desk.run(request.body(shake("2025-11-25").to_string()).unwrap());
        assert_eq!(heard.status, status, "{given:?}: {heard:?}");
        assert!(heard.header("www-authenticate").contains(challenge), "{given:?}: {heard:?}");
        assert_eq!(heard.header("www-authenticate").is_empty(), status == 200);
        assert!(!heard.text.contains(TOKEN));
    }
    // The token in the URL opens nothing.
    let mut request = desk.post().uri(format!("{}?access_token={TOKEN}", desk.url()));
    request.headers_mut().unwrap().remove("authorization");
    assert_eq!(desk.run(request.body(shake("2025-11-25").to_string()).unwrap()).status, 401);
    assert!(!desk.server.stderr().contains(TOKEN));
}

#[test]
fn whoever_is_turned_away_reaches_no_tool() {
    let desk = Desk::open(&[]);
    let mut request = desk.post();
    request.headers_mut().unwrap().insert("authorization", "Bearer wrong".parse().unwrap());
    let write = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call("write_query", json!({"query": "INSERT INTO notes(title) VALUES ('x')"}))});
    assert_eq!(desk.run(request.body(write.to_string()).unwrap()).status, 401);
    assert_eq!(
        desk.call("read_query", json!({"query": "SELECT count(*) AS n FROM notes"})),
        "n\n3\n# 1 rows"
    );
    assert_eq!(desk.log(1), ["read_query 1"]);
}

#[test]
fn unknown_names_and_web_pages_are_refused_before_the_token_is_asked_for() {
    let desk =
        Desk::open(&["--http-allow-host", "memory.example", "--http-allow-origin", "https://app.example"]);
    let own = desk.authority.clone();
    let port = own.rsplit(':').next().unwrap().to_owned();
    let local = format!("localhost:{port}");
    // Host, Origin, status
    let rows = [
        (own.as_str(), None, 200),
        (local.as_str(), None, 200),
        ("memory.example", None, 200),
        ("evil.example", None, 403),
        ("127.0.0.1.evil.example", None, 403),
        (own.as_str(), Some("http://localhost:3000"), 200),
        (own.as_str(), Some("https://app.example"), 200),
        (own.as_str(), Some("http://app.example"), 403),
        (own.as_str(), Some("https://evil.example"), 403),
        (own.as_str(), Some("null"), 403),
    ];
    for (host, origin, status) in rows {
        let mut request = desk.post().header("host", host);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let heard = desk.run(request.body(shake("2025-11-25").to_string()).unwrap());
        assert_eq!(heard.status, status, "{host} {origin:?}: {heard:?}");
        if let (Some(origin), 200) = (origin, status) {
            assert_eq!(heard.header("access-control-allow-origin"), origin);
        } else {
            assert_eq!(heard.header("access-control-allow-origin"), "");
        }
    }
    let mut request = desk.post().header("origin", "https://evil.example");
    request.headers_mut().unwrap().remove("authorization");
    assert_eq!(desk.run(request.body(shake("2025-11-25").to_string()).unwrap()).status, 403);
}

#[test]
fn a_browser_may_ask_first_for_pages_that_are_known() {
    let desk = Desk::open(&["--http-allow-origin", "https://app.example"]);
    let ask = |origin: &str| {
        let request = Request::builder()
            .method("OPTIONS")
            .uri(desk.url())
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,mcp-protocol-version");
        desk.run(request.body(String::new()).unwrap())
    };
    let heard = ask("https://app.example");
    assert_eq!(heard.status, 200, "{heard:?}");
    assert_eq!(heard.header("access-control-allow-origin"), "https://app.example");
    assert_eq!(heard.header("access-control-allow-methods"), "POST");
    assert_eq!(heard.header("access-control-allow-headers"), "authorization,mcp-protocol-version");
    assert_eq!(ask("https://evil.example").status, 403);
}

#[test]
fn health_is_open_and_everything_else_is_not() {
    let desk = Desk::open(&[]);
    let get = |path: &str, token: bool| {
        let mut request = Request::builder().uri(format!("http://{}{path}", desk.authority));
        if token {
            request = request.header("authorization", format!("Bearer {TOKEN}"));
        }
        desk.run(request.header("host", desk.authority.as_str()).body(String::new()).unwrap())
    };
    let health = get("/healthz", false);
    assert_eq!((health.status, health.text.as_str()), (200, "ok\n"));
    assert_eq!(get("/mcp", false).status, 401);
    assert_eq!(get("/mcp", true).status, 405);
    assert_eq!(get("/", true).status, 404);
    assert_eq!(get("/mcp/notes", true).status, 404);
}

#[test]
fn without_auth_everybody_on_this_machine_comes_in_and_web_pages_do_not() {
    let desk = Desk::on(Bench::notes(), &[], None);
    let mut request = desk.post();
    request.headers_mut().unwrap().remove("authorization");
    assert_eq!(desk.run(request.body(shake("2025-11-25").to_string()).unwrap()).status, 200);
    let request = desk.post().header("origin", "https://evil.example");
    assert_eq!(desk.run(request.body(shake("2025-11-25").to_string()).unwrap()).status, 403);
}
