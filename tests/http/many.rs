//! Several clients at once, one memory.

use super::Desk;
use serde_json::json;
use std::time::Instant;

#[test]
fn several_clients_share_one_memory_and_lose_nothing() {
    const CLIENTS: usize = 6;
    const EVENTS: usize = 12;
    let desk = Desk::open(&[]);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let desk = &desk.caller;
            scope.spawn(move || {
                for event in 0..EVENTS {
                    let content = format!("{event} of client {client}");
                    let appended = if client % 2 == 0 {
                        desk.call("append_event", json!({"kind": "note", "content": content}))
                    } else {
                        desk.call_modern("append_event", json!({"kind": "note", "content": content}))
                    };
                    assert!(appended.contains("event"), "{appended}");
                    desk.call("read_query", json!({"query": "SELECT count(*) FROM memory_events"}));
                }
            });
        }
    });
    let verdict = desk.call("verify_chain", json!({}));
    assert!(verdict.contains(&format!("{}", CLIENTS * EVENTS)), "{verdict}");
    assert_eq!(
        desk.bench.query("SELECT count(*), count(DISTINCT content) FROM memory_events"),
        format!("{0}|{0}", CLIENTS * EVENTS)
    );
    let log = desk.log(CLIENTS * EVENTS * 2 + 1);
    assert_eq!(log.len(), CLIENTS * EVENTS * 2 + 1);
    assert!(log.iter().all(|row| row.ends_with(" 1")), "{log:?}");
}

#[test]
fn a_slow_call_of_one_client_keeps_no_other_waiting() {
    let desk = Desk::open(&["--query-timeout", "5"]);
    let desk = &desk.caller;
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| {
            let started = Instant::now();
            (desk.call("read_query", json!({"query": super::ENDLESS})), started.elapsed())
        });
        std::thread::sleep(std::time::Duration::from_millis(300));
        let started = Instant::now();
        assert_eq!(desk.call("read_query", json!({"query": "SELECT 1 AS quick"})), "quick\n1\n# 1 rows");
        let quick = started.elapsed();
        let (said, slow) = slow.join().unwrap();
        assert!(said.contains("5"), "{said}");
        assert!(quick < slow / 2, "{quick:?} beside {slow:?}");
    });
}
