//! A worker that dies or grows costs one call.

use crate::support::{Bench, Client, Server, children_of, is_alive, wait_until};
use crate::{ENDLESS, ENDLESS_INSERT, kill};
use serde_json::json;

/// The child that comes up for what was just sent.
#[track_caller]
fn new_child(client: &Client, known: &[u32]) -> u32 {
    let mut found = None;
    wait_until(|| {
        found = children_of(client.pid()).into_iter().find(|child| !known.contains(child));
        found.is_some()
    });
    // It is given a moment to get from its start into the statement.
    std::thread::sleep(std::time::Duration::from_millis(150));
    found.unwrap()
}

#[test]
fn a_killed_reader_costs_its_own_call_and_no_other() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--query-timeout", "60"]).start();
    let lost = client.send_call("read_query", json!({"query": ENDLESS}));
    let first = new_child(&client, &[]);
    let bounded = ENDLESS.replace("FROM c) SELECT", "FROM c LIMIT 2000000) SELECT");
    let fine = client.send_call("read_query", json!({"query": bounded}));
    new_child(&client, &[first]);
    let written = client.send_call("write_query", json!({"query": "INSERT INTO notes(title) VALUES ('x')"}));
    kill(first);
    client.answer(lost).fails_as("WORKER_LOST", &["nothing was changed", "try again"]);
    client.answer(fine).ok().has("\n2000000\n");
    client.answer(written).ok();
    for _ in 0..3 {
        client.is_alive();
    }
    client
        .read("SELECT count(*) AS n FROM query_log WHERE NOT ok AND error LIKE '%worker process died%'")
        .is("n\n1\n# 1 rows");
}

#[test]
fn a_killed_writer_leaves_nothing_of_its_statement() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--query-timeout", "60"]).start();
    let lost = client.send_call("write_query", json!({"query": ENDLESS_INSERT}));
    kill(new_child(&client, &[]));
    client.answer(lost).fails_as("WORKER_LOST", &["nothing was changed"]);
    client.write("INSERT INTO notes(title) VALUES ('after')").is("ok: 1 rows affected (last_insert_rowid=4)");
    assert_eq!(bench.query("SELECT count(*) FROM notes"), "4");
    assert_eq!(bench.query("PRAGMA integrity_check"), "ok");
}

#[test]
fn a_worker_that_died_while_idle_is_not_noticed() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client.is_alive();
    client.write("INSERT INTO notes(title) VALUES ('x')").ok();
    let workers = children_of(client.pid());
    // The reader, the writer, and a spare reader where the machine took its time.
    assert!((2..=3).contains(&workers.len()), "{workers:?}");
    for worker in workers {
        kill(worker);
        assert!(wait_until(|| !is_alive(worker)), "the worker is gone");
    }
    client.is_alive();
    client.write("INSERT INTO notes(title) VALUES ('y')").ok();
    client.read("SELECT count(*) AS n FROM query_log WHERE NOT ok").is("n\n0\n# 1 rows");
}

#[test]
fn reads_do_not_wait_for_each_other_nor_for_a_write() {
    let bench = Bench::with("PRAGMA journal_mode = WAL; CREATE TABLE notes(id INTEGER PRIMARY KEY, title)");
    let mut client = Server::on(&bench).flags(&["--query-timeout", "60"]).start();
    client.write("INSERT INTO notes(title) VALUES ('x')").ok();
    let slow = client.send_call("read_query", json!({"query": ENDLESS}));
    let slow_write = client.send_call("write_query", json!({"query": ENDLESS_INSERT}));
    for _ in 0..20 {
        client.read("SELECT count(*) AS n FROM notes").is("n\n1\n# 1 rows");
    }
    assert!(!client.answers_within(slow, std::time::Duration::ZERO));
    assert!(!client.answers_within(slow_write, std::time::Duration::ZERO));
}

#[test]
fn memory_bombs_in_every_worker_stay_under_three_hundred_megabytes_together() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--query-timeout", "60"]).start();
    let bombs = [
        "SELECT length(randomblob(900000000))",
        "SELECT length(hex(zeroblob(400000000)))",
        "WITH RECURSIVE c(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM c) SELECT max(length(s)) FROM c",
        "SELECT length(group_concat(x, printf('%.*c', 1000000, 'x'))) FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 1000) SELECT x FROM c)",
        "SELECT count(*) FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 300) SELECT DISTINCT printf('%.*c', 1000000, char(64 + x)) AS s FROM c ORDER BY s)",
    ];
    let mut calls = Vec::new();
    for sql in bombs {
        calls.push(client.send_call("read_query", json!({"query": sql})));
        let insert = format!("INSERT INTO notes(title) {sql}");
        calls.push(client.send_call("write_query", json!({"query": insert})));
    }
    for call in calls {
        // A sort that goes through a file may well succeed.
        client.answer(call);
        client.is_alive();
    }
    let pids: Vec<u32> = std::iter::once(client.pid()).chain(children_of(client.pid())).collect();
    // The program's own pages are the same memory in each process: they count once.
    let program = pids.iter().filter_map(|pid| kilobytes(*pid, "RssFile:")).max().unwrap();
    let own_peak = |pid: &u32| Some(kilobytes(*pid, "VmHWM:")? - kilobytes(*pid, "RssFile:")?);
    let peaks: Vec<u64> = pids.iter().filter_map(own_peak).collect();
    assert!(peaks.len() >= 4, "the server, two readers and a writer: {peaks:?}");
    assert!(program + peaks.iter().sum::<u64>() < 300_000, "{program} kB and {peaks:?} kB");
}

fn kilobytes(pid: u32, field: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn a_long_read_gets_the_next_call_a_worker_before_it_comes() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--query-timeout", "60"]).start();
    let long = client.send_call("read_query", json!({"query": ENDLESS}));
    assert!(wait_until(|| children_of(client.pid()).len() == 2));
    let ready = children_of(client.pid());
    client.is_alive();
    assert_eq!(children_of(client.pid()), ready);
    client.notify("notifications/cancelled", json!({"requestId": long}));
    client.is_alive();
}
