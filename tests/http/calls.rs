//! Both families of revisions, both profiles, what a person is asked, and the log.

use super::support::Bench;
use super::{Desk, call, shake};
use serde_json::{Value, json};

#[test]
fn a_client_of_any_revision_with_a_handshake_is_served() {
    let desk = Desk::open(&[]);
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let answer = desk.shake(revision);
        assert_eq!(answer["result"]["protocolVersion"], revision);
        assert_eq!(answer["result"]["serverInfo"]["name"], "indelible");
        // Nothing comes between requests, so nothing of the kind is promised.
        assert_eq!(answer["result"]["capabilities"]["tools"], json!({}), "{answer}");
        assert_eq!(answer["result"]["capabilities"]["resources"], json!({}), "{answer}");
        let request = desk.post().header("mcp-protocol-version", revision);
        let list = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/list"}).to_string();
        let heard = desk.run(request.body(list).unwrap());
        assert_eq!(heard.header("content-type"), "application/json");
        assert_eq!(heard.answer()["id"], "a");
        let names: Vec<Value> = heard.answer()["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].clone())
            .collect();
        assert!(names.contains(&json!("append_event")), "{names:?}");
    }
    // A revision without a handshake that is asked for in one gets the latest that has it.
    assert_eq!(desk.shake("2026-07-28")["result"]["protocolVersion"], "2025-11-25");
}

impl Desk {
    fn shake(&self, revision: &str) -> Value {
        self.run(self.post().body(shake(revision).to_string()).unwrap()).answer()
    }
}

#[test]
fn a_client_of_the_revision_without_a_handshake_is_served() {
    let desk = Desk::open(&[]);
    let found = desk.ask_modern("server/discover", json!({}));
    assert!(
        found["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")),
        "{found}"
    );
    assert_eq!(found["result"]["capabilities"]["resources"], json!({"listChanged": true}), "{found}");
    let listed = desk.ask_modern("tools/list", json!({}));
    assert_eq!(listed["result"]["resultType"], "complete");
    assert_eq!(listed["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "indelible");
    let read = desk.ask_modern("resources/read", json!({"uri": "sqlite://schema"}));
    assert!(read["result"]["contents"][0]["text"].as_str().unwrap().contains("notes"), "{read}");
    assert_eq!(
        desk.call_modern("read_query", json!({"query": "SELECT title FROM notes WHERE id = 1"})),
        "title\nalpha\n# 1 rows"
    );
}

#[test]
fn what_the_revision_without_a_handshake_does_not_have_is_not_found() {
    let desk = Desk::open(&[]);
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "nope"] {
        let heard = desk.send_modern(method, json!({}));
        assert_eq!(
            (heard.status, &heard.answer()["error"]["code"]),
            (404, &json!(-32601)),
            "{method}: {heard:?}"
        );
    }
}

#[test]
fn headers_that_contradict_the_body_are_refused() {
    let desk = Desk::open(&[]);
    let body = super::modern("tools/call", call("read_query", json!({"query": "SELECT 1"}))).to_string();
    let with = |version: &str, method: &str, name: &str| {
        let request = desk.post().header("mcp-protocol-version", version).header("mcp-method", method);
        let heard = desk.run(request.header("mcp-name", name).body(body.clone()).unwrap());
        let code = heard.messages().pop().map(|message| message["error"]["code"].clone());
        (heard.status, code.unwrap_or_default())
    };
    assert_eq!(with("2026-07-28", "tools/call", "read_query"), (200, Value::Null));
    assert_eq!(with("2026-07-28", "tools/list", "read_query"), (400, json!(-32020)));
    assert_eq!(with("2026-07-28", "tools/call", "write_query"), (400, json!(-32020)));
    assert_eq!(with("2025-11-25", "tools/call", "read_query"), (400, json!(-32020)));
    assert_eq!(desk.log(1).len(), 1, "what is refused runs nothing");
}

#[test]
fn the_tools_of_the_memory_work_and_every_call_is_logged() {
    let desk = Desk::open(&[]);
    let refused = desk.call("write_query", json!({"query": "DELETE FROM notes"}));
    assert!(refused.contains("destructive_query"), "{refused}");
    desk.call_modern("append_event", json!({"kind": "decision", "content": "use HTTP"}));
    desk.call("checkpoint", json!({"summary": "both of us were here"}));
    let resumed = desk.call_modern("get_resume_context", json!({}));
    assert!(resumed.contains("both of us were here"), "{resumed}");
    let destroyed = desk
        .call("destructive_query", json!({"query": "DELETE FROM notes WHERE id = 3", "reason": "a test"}));
    assert!(destroyed.contains("snapshot"), "{destroyed}");
    assert_eq!(desk.bench.snapshots().len(), 1);
    desk.ask("resources/read", json!({"uri": "memory://resume"}));
    let log = desk.log(6);
    assert_eq!(
        log,
        [
            "write_query 0",
            "append_event 1",
            "checkpoint 1",
            "get_resume_context 1",
            "destructive_query 1",
            "resources/read 1"
        ]
    );
    // One run of the server is one session, whoever called.
    assert_eq!(desk.bench.query("SELECT count(DISTINCT session) FROM query_log"), "1");
}

#[test]
fn the_explorer_looks_over_http_too_and_writes_nothing() {
    let bench = Bench::notes();
    let before = bench.files();
    let desk = Desk::on(bench, &["--profile", "explorer"], Some(super::TOKEN));
    let answer =
        desk.ask_modern("tools/call", call("run_query", json!({"sql": "SELECT id, title FROM notes"})));
    assert_eq!(answer["result"]["structuredContent"]["rows"].as_array().unwrap().len(), 3, "{answer}");
    let refused = desk.ask("tools/call", call("run_query", json!({"sql": "DELETE FROM notes"})));
    assert_eq!(refused["result"]["isError"], true);
    let prompt = desk.ask("prompts/get", json!({"name": "analyse-table", "arguments": {"table": "notes"}}));
    assert!(
        prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap().contains("notes"),
        "{prompt}"
    );
    assert_eq!(desk.bench.files(), before);
}

#[test]
fn a_person_is_asked_by_rounds_and_who_cannot_be_asked_destroys_nothing() {
    let desk = Desk::open(&["--confirm", "destructive"]);
    let arguments = json!({"query": "DELETE FROM notes WHERE id = 3", "reason": "a test"});
    let older = desk.ask("tools/call", call("destructive_query", arguments.clone()));
    assert_eq!(older["result"]["isError"], true);
    let text = older["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("over HTTP, only clients of MCP 2026-07-28 can be asked"), "{text}");

    let asked = desk.ask_modern("tools/call", call("destructive_query", arguments.clone()));
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(desk.bench.query("SELECT count(*) FROM notes"), "3");
    let mut again = call("destructive_query", arguments);
    again["requestState"] = asked["result"]["requestState"].clone();
    again["inputResponses"] = json!({"confirm": {"action": "accept", "content": {"confirm": true}}});
    let done = desk.ask_modern("tools/call", again.clone());
    assert_eq!(done["result"]["isError"], false, "{done}");
    assert_eq!(desk.bench.query("SELECT count(*) FROM notes"), "2");
    // The answer was for once.
    let used = desk.send_modern("tools/call", again).answer();
    assert_eq!(used["error"]["code"], -32602, "{used}");
}
