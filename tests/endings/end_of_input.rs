//! The client closes its end: answers to what was received go out, then everything is gone.

use crate::support::{Bench, Client, Server, children_of, is_alive, wait_until};
use crate::{ENDLESS, ENDLESS_INSERT};
use serde_json::json;
use std::time::Duration;

/// Two seconds, and half a one more for a loaded machine.
const END: Duration = Duration::from_millis(2500);

#[track_caller]
fn ends(client: Client, answered: &[i64]) {
    let workers = children_of(client.pid());
    let ended = client.close();
    assert!(ended.status.success() && ended.took < END, "{ended:?}");
    for id in answered {
        let answer = ended.said.iter().find(|message| message["id"] == *id);
        let answer = answer.unwrap_or_else(|| panic!("no answer to {id}: {:?}", ended.said));
        assert_ne!(answer["result"]["isError"], true, "{answer}");
    }
    assert!(wait_until(|| !workers.iter().any(|worker| is_alive(*worker))), "workers outlive the server");
}

#[test]
fn answers_to_calls_received_go_out_and_no_worker_stays_behind() {
    for sockets in [false, true] {
        let bench = Bench::notes();
        let server = Server::on(&bench).flags(&["--query-timeout", "60"]);
        let mut client = if sockets { server.over_sockets() } else { server }.start();
        client.is_alive();
        client.send_call("read_query", json!({"query": ENDLESS}));
        let read = client.send_call("read_query", json!({"query": "SELECT 1 AS a"}));
        let written =
            client.send_call("write_query", json!({"query": "INSERT INTO notes(title) VALUES ('late')"}));
        let event = client.send_call("append_event", json!({"content": "late"}));
        ends(client, &[read, written, event]);
        assert_eq!(bench.query("SELECT count(*) FROM notes WHERE title = 'late'"), "1");
        assert_eq!(bench.query("SELECT content FROM memory_events"), "late");
    }
}

#[test]
fn the_end_is_noticed_while_reading_pauses_for_too_many_calls() {
    for sockets in [false, true] {
        let bench = Bench::notes();
        let server = Server::on(&bench).flags(&["--query-timeout", "60"]);
        let mut client = if sockets { server.over_sockets() } else { server }.start();
        client.is_alive();
        for _ in 0..600 {
            client.send_call("read_query", json!({"query": ENDLESS}));
        }
        std::thread::sleep(Duration::from_millis(300));
        ends(client, &[]);
    }
}

#[test]
fn a_large_call_that_is_not_read_to_its_end_does_not_hold_up_the_end() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--query-timeout", "60"]).start();
    client.is_alive();
    let large = "x".repeat(10_000_000);
    let endless = format!("SELECT ?1, * FROM ({ENDLESS})");
    client.send_call("read_query", json!({"query": endless, "params": [large]}));
    // It is held back while the first one runs; no more of it comes.
    client.send_raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":9,\"x\":\"{}", "x".repeat(1_060_000)).as_bytes());
    std::thread::sleep(Duration::from_millis(500));
    ends(client, &[]);
}

#[test]
fn a_change_that_runs_at_the_end_is_rolled_back() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--query-timeout", "60"]).start();
    client.write("INSERT INTO notes(title) VALUES ('x')").ok();
    client.send_call("write_query", json!({"query": ENDLESS_INSERT}));
    std::thread::sleep(Duration::from_millis(200));
    ends(client, &[]);
    assert_eq!(bench.query("SELECT count(*) FROM notes"), "4");
    assert_eq!(bench.query("PRAGMA integrity_check"), "ok");
}

#[test]
fn with_nothing_to_do_the_end_comes_at_once() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client.is_alive();
    client.write("INSERT INTO notes(title) VALUES ('x')").ok();
    let ended = client.close();
    assert!(ended.status.success() && ended.took < Duration::from_millis(1200), "{ended:?}");
    // A client that goes before it has said a word.
    let ended = Server::on(&bench).spawn().close();
    assert!(ended.status.success() && ended.said.is_empty(), "{ended:?}");
}

#[test]
fn every_call_before_the_end_is_answered_and_logged() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let mut ids = Vec::new();
    for n in 0..40 {
        ids.push(client.send_call("read_query", json!({"query": format!("SELECT {n} AS n")})));
        ids.push(client.send_call("append_event", json!({"content": format!("event {n}")})));
    }
    ends(client, &ids);
    assert_eq!(bench.query("SELECT count(*) FROM query_log WHERE tool = 'read_query'"), "40");
    assert_eq!(bench.query("SELECT count(*) FROM query_log WHERE tool = 'append_event'"), "40");
    assert_eq!(bench.query("SELECT count(*) FROM memory_events"), "40");
}

#[test]
fn rows_that_cannot_be_written_at_the_end_go_to_stderr() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--busy-timeout", "0.1"]).start();
    client.is_alive();
    std::thread::sleep(Duration::from_millis(100));
    let holder = bench.open();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    client.read("SELECT 42 AS unwritten").ok();
    let (stderr, ended) = client.close_with_stderr();
    assert!(ended.status.success() && ended.took < END, "{ended:?}");
    assert!(
        stderr.contains("not written to query_log") && stderr.contains("SELECT 42 AS unwritten"),
        "{stderr}"
    );
    drop(holder);
    assert_eq!(bench.query("SELECT count(*) FROM query_log"), "1");
}
