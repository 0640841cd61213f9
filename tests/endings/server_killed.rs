//! A server that is killed in the middle of writes: what it acknowledged is there, and the file is whole.

use crate::support::{Bench, Server, children_of, is_alive, wait_until};
use serde_json::json;
use std::collections::BTreeSet;

/// What a server acknowledged before it was killed.
#[derive(Default)]
struct Acknowledged {
    rows: BTreeSet<u32>,
    events: BTreeSet<u32>,
}

/// Sends a stream of writes and events, waits for some answers, and kills the server.
fn round(bench: &Bench, round: u32, acknowledged: &mut Acknowledged) {
    let mut client = Server::on(bench).start();
    let mut calls = Vec::new();
    for step in 0..40 {
        let value = round * 1000 + step;
        let call = match step % 3 {
            0 => client.send_call("append_event", json!({"content": format!("event {value}")})),
            1 => client
                .send_call("write_query", json!({"query": format!("INSERT INTO t(v) VALUES ({value})")})),
            _ => client.send_call(
                "write_query",
                json!({"query": "INSERT INTO big SELECT zeroblob(20000) FROM (VALUES (1), (2), (3))"}),
            ),
        };
        calls.push((step, value, call));
    }
    // Another moment in each round.
    for (step, value, call) in calls.into_iter().take(1 + (round as usize * 7) % 37) {
        client.answer(call).ok();
        match step % 3 {
            0 => drop(acknowledged.events.insert(value)),
            1 => drop(acknowledged.rows.insert(value)),
            _ => {}
        }
    }
    let workers = children_of(client.pid());
    client.kill();
    assert!(wait_until(|| !workers.iter().any(|worker| is_alive(*worker))), "workers outlive the server");
}

#[track_caller]
fn check(bench: &Bench, acknowledged: &Acknowledged) {
    assert_eq!(bench.query("PRAGMA integrity_check"), "ok");
    let numbers = |text: String| -> BTreeSet<u32> {
        text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let rows = numbers(bench.query("SELECT v FROM t"));
    let events = numbers(bench.query("SELECT content FROM memory_events"));
    assert!(rows.is_superset(&acknowledged.rows), "rows lost: {:?}", &acknowledged.rows - &rows);
    assert!(events.is_superset(&acknowledged.events), "events lost: {:?}", &acknowledged.events - &events);
    // No row, no change; no change, no row.
    assert_eq!(
        bench.query("SELECT count(*) FROM query_log WHERE ok AND tool = 'append_event'"),
        bench.query("SELECT count(*) FROM memory_events")
    );
    assert_eq!(
        bench.query("SELECT coalesce(sum(rows), 0) FROM query_log WHERE ok AND tool = 'write_query'"),
        bench.query("SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM big)")
    );
    let (status, text, _) = Server::bare().flags(&["verify", "--db", bench.path().to_str().unwrap()]).run();
    assert_eq!(status, 0, "{text}");
}

#[test]
fn what_was_acknowledged_outlives_kills_in_wal_and_in_rollback_mode() {
    for mode in ["wal", "delete"] {
        let bench =
            Bench::with(&format!("PRAGMA journal_mode = {mode}; CREATE TABLE t(v); CREATE TABLE big(b)"));
        let mut acknowledged = Acknowledged::default();
        for number in 1..=6 {
            round(&bench, number, &mut acknowledged);
            check(&bench, &acknowledged);
        }
        assert!(!acknowledged.rows.is_empty() && !acknowledged.events.is_empty());
    }
}

#[test]
fn a_server_killed_during_a_destructive_call_leaves_the_data_or_the_result() {
    let bench = Bench::notes();
    bench.sql("CREATE TABLE big(b); INSERT INTO big SELECT zeroblob(100000) FROM (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (0)), (VALUES (1), (2), (3), (4), (5))");
    for wait in [0, 5, 15, 30, 60] {
        let mut client = Server::on(&bench).start();
        client.send_call("destructive_query", json!({"query": "DELETE FROM big", "reason": "x"}));
        std::thread::sleep(std::time::Duration::from_millis(wait));
        client.kill();
        let left = bench.query("SELECT count(*) FROM big");
        assert!(left == "50" || left == "0", "{left}");
        assert_eq!(bench.query("PRAGMA integrity_check"), "ok");
        let logged = bench.query("SELECT count(*) FROM query_log WHERE tool = 'destructive_query' AND ok");
        assert_eq!(logged, if left == "0" { "1" } else { "0" });
        if left == "0" {
            break;
        }
    }
    // Half a copy has no snapshot's name, and the next one is whole.
    let mut client = Server::on(&bench).start();
    client.destroy("DELETE FROM notes").ok();
    for path in bench.snapshots().iter().filter(|path| path.extension().is_some_and(|ending| ending == "db"))
    {
        let copy = rusqlite::Connection::open(path).unwrap();
        let check: String = copy.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok", "{path:?}");
    }
}
