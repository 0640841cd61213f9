//! What goes on at once is shared: whatever one group or one caller starts, another's call is answered.

use super::hall::{Hall, people};
use super::support::wait_until;
use super::{ENDLESS, TOKEN};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;

/// Two groups with primitives, a key to each, and the operator's token for what is counted.
fn hall() -> (Hall, String, String) {
    let folder = tempfile::tempdir().unwrap();
    for group in ["team", "other"] {
        people(folder.path(), &["groups", "create", group]);
        for (kind, name) in [("queue", "jobs"), ("kv", "state"), ("db", "d0")] {
            people(folder.path(), &["primitives", "create", kind, name, "--group", group]);
        }
    }
    for name in ["d1", "d2", "d3", "d4"] {
        people(folder.path(), &["primitives", "create", "db", name, "--group", "team"]);
    }
    let key = |group: &str| people(folder.path(), &["keys", "create", "--group", group]);
    let (team, other) = (key("team"), key("other"));
    (Hall::on(folder, &[], &[("INDELIBLE_HTTP_TOKEN", TOKEN)]), team, other)
}

/// Sends calls and does not wait for their answers. They go on for as long as their connections are kept.
fn begun(
    hall: &Hall,
    group: &str,
    key: &str,
    calls: impl Iterator<Item = (&'static str, Value)>,
) -> Vec<TcpStream> {
    let started = calls.map(|(tool, arguments)| {
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let mut stream = TcpStream::connect(&hall.caller.authority).unwrap();
        let head = format!(
            "POST /mcp/{group} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\nMCP-Protocol-Version: 2025-11-25\r\n\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            hall.caller.authority,
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        stream
    });
    started.collect()
}

/// What is counted under this name.
fn counted(hall: &Hall, name: &str) -> u64 {
    let (_, text) = super::metrics::metrics(&hall.caller, Some(TOKEN));
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.map_or(0, |number| number.parse().unwrap())
}

#[test]
fn whoever_waits_for_jobs_keeps_nobody_waiting() {
    let (hall, team, other) = hall();
    let waiting = (0..100).map(|_| ("queue_receive", json!({"queue": "q", "wait": "20s"})));
    let connections = begun(&hall, "team", &team, waiting);
    assert!(wait_until(|| counted(&hall, "indelible_calls_in_flight") == 100));
    for (path, key) in [("/mcp/team", &team), ("/mcp/other", &other)] {
        let set = hall.ok(path, key, "kv_set", json!({"key": "a", "value": 1}));
        assert_eq!(set["data"][0]["key"], "a", "{set}");
        let rows = hall.ok(path, key, "db_query", json!({"primitive": "d0", "sql": "SELECT 1 AS one"}));
        assert_eq!(rows["rows"], json!([[1]]));
    }
    assert_eq!(counted(&hall, "indelible_calls_in_flight"), 100, "they all wait still");
    // Each of them gets its job as soon as there is one.
    for _ in 0..3 {
        hall.ok("/mcp/team", &team, "queue_send", json!({"queue": "q", "body": 1}));
    }
    assert!(wait_until(|| counted(&hall, "indelible_calls_in_flight") == 97));
    drop(connections);
}

#[test]
fn a_group_that_has_used_up_its_share_keeps_no_other_waiting() {
    let (hall, team, other) = hall();
    let second = hall.key("team", &[]);
    let endless = |of: usize| {
        (0..of).map(|at| ("db_query", json!({"primitive": format!("d{}", at % 5), "sql": ENDLESS})))
    };
    // As many requests as one caller can have; what is above that is sent away.
    let mut connections = begun(&hall, "team", &team, endless(140));
    let sent_away = || counted(&hall, "indelible_requests_total{status=\"503\"}");
    let under_way = || counted(&hall, "indelible_calls_in_flight");
    assert!(wait_until(|| sent_away() + under_way() == 140));
    assert_eq!(under_way(), 128);
    // And as many as its group can have. The request that counts is one, too.
    connections.extend(begun(&hall, "team", &second, endless(60)));
    assert!(wait_until(|| sent_away() + under_way() == 200));
    let all = under_way();
    assert!((170..=171).contains(&all), "{all}");
    let set = hall.ok("/mcp/other", &other, "kv_set", json!({"key": "a", "value": 1}));
    assert_eq!(set["data"][0]["key"], "a", "{set}");
    let rows = hall.ok("/mcp/other", &other, "db_query", json!({"sql": "SELECT 1 AS one"}));
    assert_eq!(rows["rows"], json!([[1]]));
    let changed = hall.ok("/mcp/other", &other, "db_exec", json!({"sql": "CREATE TABLE t(a)"}));
    assert_eq!(changed["results"].as_array().map(Vec::len), Some(1));
    assert_eq!(under_way(), all, "none of theirs has ended");
    drop(connections);
}
