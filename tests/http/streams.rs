//! What comes before an answer or without one: progress, changes of a list; and a client that goes away.

use super::support::wait_until;
use super::{Desk, ENDLESS, TOKEN, call};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn progress_comes_before_the_answer_on_the_same_stream() {
    let desk = Desk::open(&[]);
    desk.call("append_event", json!({"content": "something to verify"}));
    let mut params = call("verify_chain", json!({}));
    params["_meta"] = json!({"progressToken": "p"});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let messages = desk.send(&request).messages();
    let (answer, reports) = messages.split_last().unwrap();
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert!(!reports.is_empty(), "{messages:?}");
    for report in reports {
        assert_eq!(
            (&report["method"], &report["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!("p"))
        );
    }
}

#[test]
fn a_subscriber_is_told_of_new_tables_made_by_another_client() {
    let desk = Desk::open(&[]);
    let params = json!({"notifications": {"resourcesListChanged": true}});
    let stream = desk.stream(desk.modern("subscriptions/listen", params));
    assert_eq!(stream.status(), 200);
    let mut lines = BufReader::new(stream.into_body().into_reader()).lines();
    let mut next = || -> Value {
        let data = lines.by_ref().find_map(|line| line.unwrap().strip_prefix("data:").map(str::to_owned));
        serde_json::from_str(&data.unwrap()).unwrap()
    };
    assert_eq!(next()["method"], "notifications/subscriptions/acknowledged");
    desk.call("write_query", json!({"query": "CREATE TABLE fresh(x)"}));
    assert_eq!(next()["method"], "notifications/resources/list_changed");
}

#[test]
fn a_client_that_goes_away_cancels_its_call() {
    let desk = Desk::open(&["--query-timeout", "60"]);
    for (revision, headers) in
        [("2025-11-25", ""), ("2026-07-28", "Mcp-Method: tools/call\r\nMcp-Name: read_query\r\n")]
    {
        let params = call("read_query", json!({"query": ENDLESS}));
        let body = match revision {
            "2026-07-28" => super::modern("tools/call", params),
            _ => json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}),
        };
        let body = body.to_string();
        let mut stream = TcpStream::connect(&desk.authority).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nMCP-Protocol-Version: {revision}\r\n{headers}Content-Length: {}\r\n\r\n",
            desk.authority,
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).unwrap();
        // Long enough for the statement to run.
        std::thread::sleep(Duration::from_millis(700));
        let gone = Instant::now();
        drop(stream);
        let row = "SELECT error FROM query_log WHERE tool = 'read_query' AND ok = 0";
        let rows = |desk: &Desk| desk.bench.query(row).lines().count();
        let expected = if revision == "2026-07-28" { 2 } else { 1 };
        assert!(wait_until(|| rows(&desk) == expected), "{revision}: {}", desk.bench.query(row));
        assert!(gone.elapsed() < Duration::from_secs(10), "{revision}");
        assert!(desk.bench.query(row).contains("cancelled"), "{revision}: {}", desk.bench.query(row));
    }
    assert_eq!(desk.call("read_query", json!({"query": "SELECT 1 AS alive"})), "alive\n1\n# 1 rows");
    let said = desk.server.stderr();
    assert!(!said.contains("ERROR"), "whoever goes away is no fault of the server's: {said}");
}
