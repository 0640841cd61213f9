//! Another process holds the lock: what need not wait does not, what must wait does so for its time.

use crate::support::{Bench, Server, wait_until};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn reads_answer_at_once_and_their_rows_land_afterwards_in_order() {
    for mode in ["wal", "delete"] {
        let bench = Bench::notes();
        bench.sql(&format!("PRAGMA journal_mode = {mode}"));
        let mut client = Server::on(&bench).start();
        client.is_alive();
        client.read("SELECT count(*) AS n FROM query_log").is("n\n1\n# 1 rows");
        let holder = bench.open();
        holder.execute_batch("BEGIN IMMEDIATE; UPDATE notes SET score = 9").unwrap();
        let started = Instant::now();
        for n in 0..20 {
            client
                .read(&format!("SELECT {n} AS n, count(*) AS c FROM notes"))
                .is(&format!("n,c\n{n},3\n# 1 rows"));
        }
        client.read("SELECT nope").fails(&["no such column"]);
        client.call("list_tables", json!({})).ok();
        client.call("verify_chain", json!({})).ok();
        assert!(started.elapsed() < Duration::from_secs(3), "{mode}: {:?}", started.elapsed());
        holder.execute_batch("COMMIT").unwrap();
        let logged = || {
            bench.query("SELECT query FROM query_log WHERE query LIKE 'SELECT%AS c FROM notes' ORDER BY id")
        };
        assert!(wait_until(|| logged().lines().count() == 20), "{mode}: {}", logged());
        let expected: Vec<String> =
            (0..20).map(|n| format!("SELECT {n} AS n, count(*) AS c FROM notes")).collect();
        assert_eq!(logged(), expected.join("\n"), "{mode}");
    }
}

#[test]
fn writes_wait_for_the_lock_and_go_on() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--busy-timeout", "30", "--query-timeout", "1"]).start();
    client.write("INSERT INTO notes(title) VALUES ('first')").ok();
    let holder = bench.open();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let calls = [
        client.send_call("write_query", json!({"query": "INSERT INTO notes(title) VALUES ('second')"})),
        client.send_call("append_event", json!({"content": "third"})),
        client.send_call("checkpoint", json!({"summary": "fourth"})),
        client.send_call("destructive_query", json!({"query": "UPDATE notes SET score = 1", "reason": "x"})),
    ];
    // Longer than the statement's own time, which stands still while it waits.
    assert!(!client.answers_within(calls[0], Duration::from_millis(2500)));
    client.is_alive();
    holder.execute_batch("COMMIT").unwrap();
    for call in calls {
        client.answer(call).ok();
    }
    assert_eq!(bench.query("SELECT count(*), sum(score) FROM notes"), "5|5.0");
}

#[test]
fn a_lock_held_for_longer_than_the_busy_timeout_is_an_error_that_says_so() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--busy-timeout", "0.2"]).start();
    client.write("INSERT INTO notes(title) VALUES ('first')").ok();
    let holder = bench.open();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    for (tool, arguments) in [
        ("write_query", json!({"query": "INSERT INTO notes(title) VALUES ('x')"})),
        ("append_event", json!({"content": "x"})),
        ("checkpoint", json!({"summary": "x"})),
        ("create_view", json!({"name": "v", "select_sql": "SELECT 1"})),
    ] {
        let started = Instant::now();
        client.call(tool, arguments).fails_as("BUSY", &["lock"]);
        assert!(started.elapsed() < Duration::from_secs(5), "{tool}: {:?}", started.elapsed());
    }
    client.destroy("DELETE FROM notes").fails(&[]);
    client.is_alive();
    holder.execute_batch("ROLLBACK").unwrap();
    client.write("INSERT INTO notes(title) VALUES ('after')").ok();
    assert_eq!(bench.query("SELECT count(*) FROM notes"), "5");
    assert_eq!(client.call("verify_chain", json!({})).json()["events"], 0);
    client
        .read("SELECT tool FROM query_errors ORDER BY id")
        .is("tool\nwrite_query\nappend_event\ncheckpoint\ncreate_view\ndestructive_query\n# 5 rows");
}

#[test]
fn a_wait_for_the_lock_can_be_cancelled() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--busy-timeout", "60"]).start();
    client.write("INSERT INTO notes(title) VALUES ('first')").ok();
    let holder = bench.open();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waiting =
        client.send_call("write_query", json!({"query": "INSERT INTO notes(title) VALUES ('cancelled')"}));
    assert!(!client.answers_within(waiting, Duration::from_millis(200)));
    client.notify("notifications/cancelled", json!({"requestId": waiting}));
    std::thread::sleep(Duration::from_millis(200));
    holder.execute_batch("COMMIT").unwrap();
    client.write("INSERT INTO notes(title) VALUES ('second')").ok();
    assert_eq!(bench.query("SELECT group_concat(title) FROM notes WHERE id > 3"), "first,second");
}
