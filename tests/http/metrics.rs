//! What is counted, and who may see it.

use super::hall::Hall;
use super::{Desk, TOKEN};
use http::Request;
use serde_json::json;

/// What /metrics answers to this credential.
pub(crate) fn metrics(caller: &super::desk::Caller, credential: Option<&str>) -> (u16, String) {
    let mut request = Request::builder().uri(format!("http://{}/metrics", caller.authority));
    if let Some(credential) = credential {
        request = request.header("authorization", format!("Bearer {credential}"));
    }
    let heard = caller.run(request.body(String::new()).unwrap());
    if heard.status == 200 {
        assert_eq!(heard.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    }
    (heard.status, heard.text)
}

#[test]
fn calls_of_all_groups_are_counted_and_nothing_that_agents_say() {
    let hall = Hall::open(&["team", "other"]);
    for group in ["team", "other"] {
        let path = format!("/mcp/{group}");
        hall.ok(&path, TOKEN, "primitive_create", json!({"type": "kv", "name": "a-name-of-an-agent"}));
        hall.refused(&path, TOKEN, "kv_get", json!({"primitive": "a-name-of-an-agent-too", "key": "a-key"}));
    }
    hall.send("/mcp/team", Some(TOKEN), "tools/call", super::call("a-tool-of-an-agent", json!({})));
    hall.send("/mcp/team", Some("wrong"), "ping", json!({}));
    let (status, text) = metrics(&hall.caller, Some(TOKEN));
    assert_eq!(status, 200);
    for line in [
        "indelible_calls_total{tool=\"primitive_create\",code=\"ok\"} 2",
        "indelible_calls_total{tool=\"kv_get\",code=\"not_found\"} 2",
        "indelible_calls_total{tool=\"unknown\",code=\"no_such_tool\"} 1",
        "indelible_call_duration_seconds_count{tool=\"kv_get\"} 2",
        "indelible_requests_total{status=\"401\"} 1",
        "indelible_requests_total{status=\"200\"} 5",
        "indelible_requests_in_flight 1",
        "indelible_calls_in_flight 0",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} in\n{text}");
    }
    for word in ["agent", "a-key", "team", "other", TOKEN] {
        assert!(!text.contains(word), "{word} in\n{text}");
    }
}

#[test]
fn a_key_of_a_group_does_not_see_what_all_groups_do() {
    let hall = Hall::open(&["team"]);
    let key = hall.key("team", &[]);
    for (credential, status) in
        [(Some(TOKEN), 200), (Some(key.as_str()), 403), (Some("wrong"), 401), (None, 401)]
    {
        assert_eq!(metrics(&hall.caller, credential).0, status, "{credential:?}");
    }
}

#[test]
fn a_memory_is_counted_behind_its_token() {
    let desk = Desk::open(&[]);
    desk.call("read_query", json!({"query": "SELECT 1"}));
    desk.call("read_query", json!({"query": "SELECT * FROM nosuch"}));
    let (status, text) = metrics(&desk.caller, Some(TOKEN));
    assert_eq!(status, 200);
    assert!(text.contains("indelible_calls_total{tool=\"read_query\",code=\"ok\"} 1"), "{text}");
    assert!(text.contains("indelible_calls_total{tool=\"read_query\",code=\"unknown_table\"} 1"), "{text}");
    assert_eq!(metrics(&desk.caller, None).0, 401);
}
