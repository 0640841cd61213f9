//! Two servers on one file.

use crate::support::{Bench, Server};
use serde_json::{Value, json};

#[test]
fn servers_that_append_at_once_make_one_unforked_chain() {
    for mode in ["wal", "delete"] {
        let bench = Bench::with(&format!("PRAGMA journal_mode = {mode}; CREATE TABLE t(v)"));
        let mut servers = [0, 1].map(|_| Server::on(&bench).flags(&["--busy-timeout", "60"]).start());
        let mut calls = Vec::new();
        for n in 0..60 {
            for (at, server) in servers.iter_mut().enumerate() {
                calls.push((at, server.send_call("append_event", json!({"content": format!("{at} {n}")}))));
                if n % 20 == 10 {
                    calls.push((at, server.send_call("checkpoint", json!({"summary": "so far"}))));
                    calls.push((
                        at,
                        server.send_call("write_query", json!({"query": "INSERT INTO t VALUES (1)"})),
                    ));
                }
            }
        }
        for (at, call) in calls {
            servers[at].answer(call).ok();
        }
        for server in &mut servers {
            let status = server.call("verify_chain", json!({})).json();
            assert_eq!(
                (&status["ok"], &status["events"], &status["head_id"]),
                (&json!(true), &json!(120), &json!(120)),
                "{mode}: {status}"
            );
        }
        // Each server's events stand in the order in which it was asked.
        for at in [0, 1] {
            let found = bench
                .query(&format!("SELECT content FROM memory_events WHERE content LIKE '{at} %' ORDER BY id"));
            let expected: Vec<String> = (0..60).map(|n| format!("{at} {n}")).collect();
            assert_eq!(found, expected.join("\n"), "{mode}");
        }
        assert_eq!(bench.query("SELECT count(*) FROM memory_checkpoints"), "6");
        assert_eq!(bench.query("SELECT count(*) FROM t"), "6");
        assert_eq!(
            bench.query(
                "SELECT count(*), count(DISTINCT session) FROM query_log WHERE tool = 'append_event' AND ok"
            ),
            "120|2"
        );
    }
}

#[test]
fn servers_that_start_at_once_on_a_new_file_both_serve_it() {
    for _ in 0..5 {
        let bench = Bench::empty();
        let mut clients: Vec<_> = (0..4).map(|_| Server::on(&bench).spawn()).collect();
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
        let ids: Vec<i64> =
            clients.iter_mut().map(|client| client.send("initialize", params.clone())).collect();
        for (client, id) in clients.iter_mut().zip(ids) {
            assert_ne!(client.wait_for(id)["result"], Value::Null);
            client.notify("notifications/initialized", json!({}));
            client.call("append_event", json!({"content": "here"})).ok();
        }
        assert_eq!(clients[0].call("verify_chain", json!({})).json()["events"], 4);
    }
}

#[test]
fn a_server_sees_what_the_other_changed() {
    let bench = Bench::notes();
    let mut one = Server::on(&bench).start();
    let mut other = Server::on(&bench).start();
    for n in 0..10 {
        one.write(&format!("CREATE TABLE t{n}(a)")).ok();
        other.write(&format!("INSERT INTO t{n} VALUES ({n})")).ok();
        one.read(&format!("SELECT a FROM t{n}")).is(&format!("a\n{n}\n# 1 rows"));
        other.destroy(&format!("ALTER TABLE t{n} RENAME COLUMN a TO b")).ok();
        one.read(&format!("SELECT b FROM t{n}")).is(&format!("b\n{n}\n# 1 rows"));
        one.read(&format!("SELECT a FROM t{n}")).fails(&["no such column: a"]);
    }
}
