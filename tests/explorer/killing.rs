//! Statements side by side: one that runs away costs itself and nobody else.

use crate::support::{Bench, children_of, is_alive, wait_until};
use crate::{Desk, ENDLESS, MUSIC};
use serde_json::json;
use std::time::{Duration, Instant};

/// One call of a function that takes many seconds, within which SQLite asks nobody.
const DEAF: &str = "SELECT instr(printf('%.*c', 20000000, 'a'), printf('%.*c', 200000, 'a') || 'b')";

#[test]
fn a_runaway_is_stopped_while_its_neighbours_finish() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::with(&bench, &["--query-timeout", "1"]);
    desk.is_alive();
    let began = Instant::now();
    let slow = desk.send_query(ENDLESS);
    for n in 0..5 {
        assert_eq!(desk.rows(&format!("SELECT {n}")), json!([[n]]));
    }
    assert!(!desk.client.answers_within(slow, Duration::ZERO), "the neighbours had to wait");
    desk.answer(slow).fails_as("TIMEOUT", &["longer than 1 s"]);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    desk.is_alive();
}

#[test]
fn a_statement_that_hears_nobody_is_killed_and_its_worker_replaced() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::with(&bench, &["--query-timeout", "0.5"]);
    desk.is_alive();
    let worker = children_of(desk.client.pid())[0];
    let began = Instant::now();
    let deaf = desk.send_query(DEAF);
    for n in 0..5 {
        assert_eq!(desk.rows(&format!("SELECT {n}")), json!([[n]]));
    }
    desk.answer(deaf).fails_as("TIMEOUT", &["longer than 0.5 s"]);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(wait_until(|| !is_alive(worker)), "the deaf worker is gone");
    for _ in 0..3 {
        desk.is_alive();
    }
}

#[test]
fn statements_run_side_by_side() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::with(&bench, &["--query-timeout", "60"]);
    let slow = desk.send_query(ENDLESS);
    for (tool, arguments) in [
        ("list_tables", json!({})),
        ("describe_table", json!({"table": "tracks"})),
        ("sample_rows", json!({"table": "tracks", "random": true})),
        ("run_query", json!({"sql": "SELECT 1"})),
        ("explain_query", json!({"sql": "SELECT 1"})),
    ] {
        desk.call(tool, arguments).ok();
    }
    assert!(!desk.client.answers_within(slow, Duration::ZERO));
    desk.client.notify("notifications/cancelled", json!({"requestId": slow, "reason": "enough"}));
    desk.is_alive();
}

#[test]
fn a_call_in_the_queue_has_its_whole_time_once_a_worker_takes_it() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::with(&bench, &["--query-timeout", "0.7"]);
    // Two at once: six take three rounds of at least 0.7 s each.
    let began = Instant::now();
    let slow: Vec<i64> = (0..6).map(|_| desk.send_query(ENDLESS)).collect();
    let quick: Vec<i64> = (0..4).map(|n| desk.send_query(&format!("SELECT {n}"))).collect();
    for id in slow {
        desk.answer(id).fails_as("TIMEOUT", &[]);
    }
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(2050), "the clock ran while a call waited: {took:?}");
    for (n, id) in quick.into_iter().enumerate() {
        // They waited two seconds, three times what they may run.
        assert_eq!(desk.answer(id).ok().structured["rows"], json!([[n]]));
    }
}

#[test]
fn memory_is_bounded_and_a_bomb_costs_its_own_call() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::with(&bench, &["--query-timeout", "20"]);
    for sql in [
        "SELECT hex(zeroblob(60000000))",
        "WITH RECURSIVE c(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM c) SELECT max(length(s)) FROM c",
        "SELECT randomblob(2000000000)",
    ] {
        desk.query(sql).fails_as("TOO_BIG", &["work on a part of it"]);
    }
    desk.is_alive();
}
