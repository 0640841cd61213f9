//! Several processes on one file: who holds a lock holds up those who need it and nobody else, and nothing is lost.

use crate::chain;
use crate::support::{Bench, Client, Server, wait_until};
use crate::{rounds, side_by_side};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn eight_servers_on_one_file_lose_nothing_and_make_one_chain() {
    for mode in ["WAL", "DELETE"] {
        let each = rounds(12) as u64;
        let bench = Bench::with(&format!(
            "PRAGMA journal_mode = {mode}; CREATE TABLE t(server, n, PRIMARY KEY(server, n))"
        ));
        let mut servers: Vec<Client> =
            (0..8).map(|_| Server::on(&bench).flags(&["--busy-timeout", "60"]).start()).collect();
        for from in (0..each).step_by(12) {
            let mut calls = Vec::new();
            for n in from..each.min(from + 12) {
                for (at, server) in servers.iter_mut().enumerate() {
                    calls.push((
                        at,
                        server.send_call("append_event", json!({"content": format!("{at} {n}")})),
                    ));
                    let insert = format!("INSERT INTO t VALUES ({at}, {n})");
                    calls.push((at, server.send_call("write_query", json!({"query": insert}))));
                    let read = format!("SELECT count(*) AS c, {n} AS n FROM t");
                    calls.push((at, server.send_call("read_query", json!({"query": read}))));
                }
            }
            for (at, call) in calls {
                // Not one of them is told that the lock was not to be had.
                servers[at].answer(call).ok();
            }
        }
        let total = 8 * each;
        let verdict = servers[3].call("verify_chain", json!({})).json();
        assert_eq!(
            (verdict["ok"].as_bool(), verdict["events"].as_u64()),
            (Some(true), Some(total)),
            "{verdict}"
        );
        for server in servers {
            let (stderr, ended) = server.close_with_stderr();
            assert!(ended.status.success() && !stderr.contains("ERROR"), "{stderr}");
        }
        let connection = bench.open();
        assert_eq!(chain::fault(&connection), None, "{mode}");
        assert_eq!(bench.query("SELECT count(*) FROM t"), total.to_string());
        for tool in ["append_event", "write_query", "read_query"] {
            let sql = format!("SELECT count(*) FROM query_log WHERE ok AND tool = '{tool}'");
            assert_eq!(bench.query(&sql), total.to_string(), "{mode}: {tool}");
        }
        for at in 0..8 {
            // Each server's events stand in the order of its calls.
            let found = bench
                .query(&format!("SELECT content FROM memory_events WHERE content LIKE '{at} %' ORDER BY id"));
            let expected: Vec<String> = (0..each).map(|n| format!("{at} {n}")).collect();
            assert_eq!(found, expected.join("\n"), "{mode}");
        }
    }
}

#[test]
fn what_waits_for_a_lock_goes_on_as_soon_as_it_is_free() {
    side_by_side(&["WAL", "DELETE"], |mode| {
        let bench = Bench::with(&format!("PRAGMA journal_mode = {mode}; CREATE TABLE t(v)"));
        let mut servers: Vec<Client> =
            (0..3).map(|_| Server::on(&bench).flags(&["--busy-timeout", "30"]).start()).collect();
        for server in &mut servers {
            server.is_alive();
            server.write("INSERT INTO t VALUES (0)").ok();
        }
        let holder = bench.open();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut writes = Vec::new();
        for (at, server) in servers.iter_mut().enumerate() {
            for n in 0..10 {
                let started = Instant::now();
                server.read(&format!("SELECT {n} AS waits, count(*) AS c FROM t")).ok();
                assert!(started.elapsed() < Duration::from_secs(4), "{mode}: a read waited for a writer");
            }
            let insert = format!("INSERT INTO t VALUES ({})", at + 1);
            writes.push((at, server.send_call("write_query", json!({"query": insert}))));
            writes.push((at, server.send_call("append_event", json!({"content": format!("{at}")}))));
        }
        std::thread::sleep(Duration::from_secs(3));
        for (at, call) in &writes {
            assert!(!servers[*at].answers_within(*call, Duration::ZERO), "{mode}: written past the lock");
        }
        holder.execute_batch("COMMIT").unwrap();
        let freed = Instant::now();
        for (at, call) in writes {
            servers[at].answer(call).ok();
        }
        let waiting = "SELECT count(*) FROM query_log WHERE query LIKE '%AS waits%'";
        assert!(wait_until(|| bench.query(waiting) == "30"), "{mode}: {}", bench.query(waiting));
        assert!(freed.elapsed() < Duration::from_secs(8), "{mode}: {:?}", freed.elapsed());
        for session in bench.query("SELECT DISTINCT session FROM query_log").lines() {
            // In the order in which they were asked.
            let order = bench.query(&format!(
                "SELECT group_concat(substr(query, 8, 1), '') FROM (SELECT query FROM query_log WHERE session = '{session}' AND query LIKE '%AS waits%' ORDER BY id)"
            ));
            assert_eq!(order, "0123456789", "{mode}");
        }
    });
}

#[test]
fn rows_that_waited_for_a_lock_are_written_at_the_end_in_order() {
    side_by_side(&["WAL", "DELETE"], |mode| {
        let bench = Bench::with(&format!("PRAGMA journal_mode = {mode}; CREATE TABLE t(v)"));
        let mut client = Server::on(&bench).start();
        client.is_alive();
        client.read("SELECT count(*) AS n FROM query_log").is("n\n1\n# 1 rows");
        assert!(wait_until(|| bench.query("SELECT count(*) FROM query_log") == "2"));
        let holder = bench.open();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        for n in 0..8 {
            client.read(&format!("SELECT {n} AS n")).ok();
        }
        assert_eq!(holder.query_row("SELECT count(*) FROM query_log", [], |row| row.get(0)), Ok(2), "{mode}");
        // The end comes before the next try of the background would.
        holder.execute_batch("COMMIT").unwrap();
        let (stderr, ended) = client.close_with_stderr();
        assert!(ended.status.success() && !stderr.contains("not written"), "{mode}: {stderr}");
        let order = "SELECT group_concat(substr(query, 8, 1), '') FROM (SELECT query FROM query_log WHERE query LIKE '%AS n' ORDER BY id)";
        assert_eq!(bench.query(order), "01234567", "{mode}");
    });
}

#[test]
fn rows_that_cannot_be_written_at_the_end_go_to_stderr_in_order() {
    let bench = Bench::with("CREATE TABLE t(v)");
    let mut client = Server::on(&bench).start();
    client.is_alive();
    client.read("SELECT count(*) AS n FROM query_log").is("n\n1\n# 1 rows");
    assert!(wait_until(|| bench.query("SELECT count(*) FROM query_log") == "2"));
    let holder = bench.open();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    for n in 0..5 {
        client.read(&format!("SELECT {n} AS n")).ok();
    }
    let (stderr, ended) = client.close_with_stderr();
    assert!(ended.status.success(), "{stderr}");
    let lines: Vec<&str> = stderr.lines().filter(|line| line.contains("not written to query_log")).collect();
    let found: Vec<String> = lines
        .iter()
        .map(|line| {
            let row: serde_json::Value = serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap();
            row["query"].as_str().unwrap().to_owned()
        })
        .collect();
    let expected: Vec<String> = (0..5).map(|n| format!("SELECT {n} AS n")).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_wal_that_a_long_reader_held_up_is_small_again_afterwards() {
    let bench = Bench::with("PRAGMA journal_mode = WAL; CREATE TABLE t(b)");
    let mut client = Server::on(&bench).start();
    let reader = bench.open();
    reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
    for _ in 0..8 {
        client.write("INSERT INTO t SELECT randomblob(1000000) FROM (VALUES (1), (2), (3), (4))").ok();
    }
    let wal = bench.folder().join("memory.db-wal");
    let size = || std::fs::metadata(&wal).unwrap().len();
    assert!(size() > 30_000_000, "the reader holds the WAL up: {}", size());
    drop(reader);
    // Nobody does anything for it: calls that only read are enough.
    for n in 0..4 {
        client.read(&format!("SELECT {n} AS n, count(*) AS c FROM t")).ok();
        std::thread::sleep(Duration::from_millis(30));
    }
    assert!(wait_until(|| size() <= 16 << 20), "{}", size());
    assert_eq!(bench.query("SELECT count(*) FROM t"), "32");
    client.is_alive();
}
