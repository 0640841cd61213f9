//! A cancelled call stops at once, and whatever comes next on its worker is not hit.

use crate::support::{Bench, Server, children_of};
use crate::{ENDLESS, ENDLESS_INSERT};
use serde_json::json;
use std::time::{Duration, Instant};

/// If each cancelled call had to be waited for or its worker killed, the rounds would take a minute.
const ALL_ROUNDS: Duration = Duration::from_secs(25);

#[test]
fn a_cancelled_read_frees_its_worker_and_the_next_call_is_not_hit() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--query-timeout", "120"]).start();
    client.is_alive();
    let started = Instant::now();
    for round in 0..50_u64 {
        // Both readers are taken, so that what comes next meets one that was just interrupted.
        let taken = [0, 1].map(|_| client.send_call("read_query", json!({"query": ENDLESS})));
        std::thread::sleep(Duration::from_millis(round % 7));
        for id in taken {
            client.notify("notifications/cancelled", json!({"requestId": id, "reason": "enough"}));
        }
        let next = [0, 1]
            .map(|n| client.send_call("read_query", json!({"query": format!("SELECT {round} + {n} AS a")})));
        for (n, id) in (0..).zip(next) {
            client.answer(id).is(&format!("a\n{}\n# 1 rows", round + n));
        }
        for id in taken {
            assert!(!client.answers_within(id, Duration::ZERO), "a cancelled call was answered");
        }
    }
    assert!(started.elapsed() < ALL_ROUNDS, "{:?}", started.elapsed());
}

#[test]
fn a_read_cancelled_while_it_waits_for_the_log_costs_no_worker() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--query-timeout", "120"]).start();
    client.is_alive();
    let workers = children_of(client.pid());
    // Rows for the log cannot be written now: whoever reads the log waits for them for a moment.
    let lock = bench.open();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let query = format!("SELECT count(*) FROM query_log, ({ENDLESS})");
    for round in 0..10_u64 {
        client.is_alive();
        let taken = client.send_call("read_query", json!({"query": query}));
        std::thread::sleep(Duration::from_millis(20 + 2 * round));
        client.notify("notifications/cancelled", json!({"requestId": taken}));
        std::thread::sleep(Duration::from_millis(150));
    }
    lock.execute_batch("ROLLBACK").unwrap();
    client.is_alive();
    let after = children_of(client.pid());
    assert!(workers.iter().all(|worker| after.contains(worker)), "{workers:?} {after:?}");
}

#[test]
fn a_cancelled_change_is_rolled_back_and_the_next_one_runs() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--query-timeout", "120"]).start();
    let started = Instant::now();
    for round in 0..20_u64 {
        let taken = client.send_call("write_query", json!({"query": ENDLESS_INSERT}));
        std::thread::sleep(Duration::from_millis(5 + round % 7));
        client.notify("notifications/cancelled", json!({"requestId": taken}));
        client.write(&format!("INSERT INTO notes(title) VALUES ('round {round}')")).ok();
    }
    assert!(started.elapsed() < ALL_ROUNDS, "{:?}", started.elapsed());
    assert_eq!(bench.query("SELECT count(*) FROM notes"), "23");
}

#[test]
fn calls_cancelled_while_they_wait_for_their_turn_do_not_run() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--query-timeout", "120"]).start();
    let running = client.send_call("write_query", json!({"query": ENDLESS_INSERT}));
    std::thread::sleep(Duration::from_millis(100));
    let waiting =
        client.send_call("write_query", json!({"query": "INSERT INTO notes(title) VALUES ('cancelled')"}));
    let destroying =
        client.send_call("destructive_query", json!({"query": "DELETE FROM notes", "reason": "x"}));
    for id in [destroying, waiting, running] {
        client.notify("notifications/cancelled", json!({"requestId": id}));
    }
    client.write("INSERT INTO notes(title) VALUES ('kept')").ok();
    assert_eq!(bench.query("SELECT group_concat(title) FROM notes WHERE id > 3"), "kept");
    assert_eq!(bench.query("SELECT count(*) FROM notes"), "4");
    assert_eq!(bench.snapshots().len(), 0);
}

#[test]
fn cancelling_what_is_done_or_was_never_asked_does_nothing() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let done = client.send_call("read_query", json!({"query": "SELECT 1 AS a"}));
    client.answer(done).ok();
    for id in [json!(done), json!(9999), json!("never"), json!(null)] {
        client.notify("notifications/cancelled", json!({"requestId": id}));
    }
    client.notify("notifications/cancelled", json!({}));
    client.is_alive();
}
