//! The end: a signal, what is still under way, and the log.

use super::support::Client;
use super::{Desk, ENDLESS};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::io::Read;
use std::time::{Duration, Instant};

/// A machine under load is given this much beside what the server takes.
const SLACK: Duration = Duration::from_secs(4);

fn signal(server: &Client, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn a_signal_ends_the_server_and_no_row_of_the_log_is_lost() {
    for kind in [Signal::TERM, Signal::INT] {
        let desk = Desk::open(&[]);
        for number in 0..20 {
            desk.call("read_query", json!({"query": format!("SELECT {number}")}));
        }
        signal(&desk.server, kind);
        let (said, ended) = desk.server.close_with_stderr();
        assert_eq!(ended.status.code(), Some(0), "{kind:?}: {said}");
        assert!(ended.took < SLACK, "{kind:?}: {:?}", ended.took);
        assert_eq!(desk.bench.query("SELECT count(*) FROM query_log WHERE ok = 1"), "20", "{kind:?}: {said}");
        assert!(!said.contains("ERROR") && !said.contains("WARN"), "{said}");
    }
}

#[test]
fn an_answer_that_is_nearly_there_still_goes_out() {
    let desk = Desk::open(&["--query-timeout", "1"]);
    let caller = &desk.caller;
    std::thread::scope(|scope| {
        let call = scope.spawn(|| caller.call("read_query", json!({"query": ENDLESS})));
        std::thread::sleep(Duration::from_millis(500));
        signal(&desk.server, Signal::TERM);
        let said = call.join().unwrap();
        assert!(said.contains("1 s") || said.contains("1.0"), "{said}");
    });
}

#[test]
fn a_call_that_goes_on_and_on_is_stopped_and_told_so() {
    let desk = Desk::open(&["--query-timeout", "60"]);
    let started = Instant::now();
    let caller = &desk.caller;
    std::thread::scope(|scope| {
        let call = scope.spawn(|| caller.call("read_query", json!({"query": ENDLESS})));
        std::thread::sleep(Duration::from_millis(500));
        signal(&desk.server, Signal::TERM);
        let said = call.join().unwrap();
        assert!(!said.is_empty());
    });
    assert!(started.elapsed() < Duration::from_secs(20));
    let (said, ended) = desk.server.close_with_stderr();
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert_eq!(desk.bench.query("SELECT tool, ok FROM query_log"), "read_query|0");
}

#[test]
fn a_subscription_ends_with_the_server_and_does_not_hold_it() {
    let desk = Desk::open(&[]);
    let params = json!({"notifications": {"resourcesListChanged": true}});
    let stream = desk.stream(desk.modern("subscriptions/listen", params));
    let mut reader = stream.into_body().into_reader();
    let mut first = [0_u8; 16];
    reader.read_exact(&mut first).unwrap();
    signal(&desk.server, Signal::TERM);
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\"result\""), "{rest}");
    let (said, ended) = desk.server.close_with_stderr();
    assert_eq!(ended.status.code(), Some(0), "{said}");
}
