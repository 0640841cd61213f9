//! Memory and time are bounded whatever the SQL does, and whatever happens to a worker.

use crate::client::Server;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

fn signal(pids: &[u32], signal: rustix::process::Signal) {
    for pid in pids {
        let pid = rustix::process::Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

#[test]
fn memory_bombs_end_as_errors_and_stay_small() {
    let mut server = Server::over("CREATE TABLE big(x)", &["--query-timeout", "2"]);
    let pid = server.pid();
    let (over, peak) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let watcher = std::thread::spawn({
        let (over, peak) = (Arc::clone(&over), Arc::clone(&peak));
        move || {
            while !over.load(Ordering::Relaxed) {
                let all = resident_kib(pid) + children(pid).into_iter().map(resident_kib).sum::<u64>();
                peak.fetch_max(all, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    });
    for bomb in [
        "SELECT randomblob(900000000)",
        "SELECT hex(zeroblob(400000000))",
        "SELECT hex(randomblob(30000000)) || hex(randomblob(30000000))",
        "WITH RECURSIVE d(s) AS (SELECT 'xxxxxxxxxx' UNION ALL SELECT s || s FROM d) SELECT max(length(s)) FROM d",
        "SELECT printf('%.*c', 900000000, 'x')",
        "SELECT replace(hex(zeroblob(1000000)), '00', hex(zeroblob(1000000)))",
        "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 100) SELECT randomblob(60000000) FROM c ORDER BY 1",
        "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT group_concat(hex(zeroblob(500000))) FROM c",
    ] {
        for (tool, query) in
            [("read_query", bomb.to_owned()), ("write_query", format!("INSERT INTO big {bomb}"))]
        {
            let error = server.call(tool, json!({"query": query})).unwrap_err();
            assert!(
                ["too big", "out of memory", "longer than 2 s"].iter().any(|words| error.contains(words)),
                "{query}: {error}"
            );
        }
    }
    over.store(true, Ordering::Relaxed);
    watcher.join().unwrap();
    let peak = peak.load(Ordering::Relaxed) / 1024;
    assert!(peak < 300, "{peak} MiB");
    assert_eq!(server.read("SELECT count(*) AS n FROM big").unwrap(), "n\n0\n# 1 rows");
}

#[test]
fn a_large_row_can_be_written_read_and_edited() {
    let mut server = Server::over("CREATE TABLE t(id INTEGER PRIMARY KEY, n, a)", &[]);
    server.write("INSERT INTO t VALUES (1, 0, zeroblob(50000000))").unwrap();
    server.write("UPDATE t SET n = 1 WHERE id = 1").unwrap();
    server.write("INSERT INTO t VALUES (2, 0, zeroblob(20000000))").unwrap();
    server.write("UPDATE t SET a = CAST(a || x'00' AS BLOB) WHERE id = 2").unwrap();
    let found = server.read("SELECT n, length(a) AS l, a FROM t").unwrap();
    assert!(found.starts_with("n,l,a\n1,50000000,<blob 50000000 bytes>\n0,"), "{found}");
}

#[test]
fn a_worker_that_is_killed_costs_nothing_and_one_that_is_stopped_costs_one_call() {
    let mut server = Server::over("CREATE TABLE t(a)", &["--query-timeout", "1"]);
    server.read("SELECT 1").unwrap();
    server.write("INSERT INTO t VALUES (1)").unwrap();
    signal(&children(server.pid()), rustix::process::Signal::KILL);
    std::thread::sleep(Duration::from_millis(50));
    server.read("SELECT 1").unwrap();
    server.write("INSERT INTO t VALUES (2)").unwrap();
    // What does not fit the pipe must not wait for ever either.
    for size in [1, 1_000_000] {
        let text = "x".repeat(size);
        signal(&children(server.pid()), rustix::process::Signal::STOP);
        for (tool, query) in [("read_query", "SELECT length(?)"), ("write_query", "INSERT INTO t VALUES (?)")]
        {
            let arguments = json!({"query": query, "params": [text]});
            let began = Instant::now();
            let error = server.call(tool, arguments.clone()).unwrap_err();
            assert!(error.contains("longer than 1 s"), "{error}");
            assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
            assert!(server.call(tool, arguments).is_ok());
        }
    }
    assert_eq!(server.number("SELECT count(*) FROM t"), 4);
}

#[test]
fn large_arguments_are_named_and_neither_compared_nor_kept() {
    let mut server = Server::over("CREATE TABLE t(id INTEGER PRIMARY KEY, a)", &["--query-timeout", "2"]);
    let large = "\\w".repeat(1_000_000);
    let many = vec!["x"; 50_000];
    for (tool, arguments, words) in [
        (
            "destructive_query",
            json!({"query": "DELETE FROM t", "reason": large}),
            "`reason` must have at most 2000",
        ),
        ("snapshot", json!({"reason": large}), "`reason` must have at most 2000"),
        ("search_text", json!({"table": "t", "pattern": large}), "`pattern` is 2000000 bytes long"),
        (
            "search_text",
            json!({"table": "t", "pattern": large, "fixed_strings": true}),
            "`pattern` is 2000000 bytes",
        ),
        ("search_text", json!({"table": large, "pattern": "x"}), "there is no table or view"),
        ("search_text", json!({"table": "t", "pattern": "x", "key_column": large}), "`t` has no column"),
        ("search_text", json!({"table": "t", "pattern": "x", "columns": many}), "`t` has no column `x`"),
        ("search_text", json!({"table": "t", "pattern": "x", "where": large}), "more than 1000000"),
        ("describe_table", json!({"table": large}), "there is no table or view"),
        ("create_view", json!({"name": large, "select_sql": "SELECT 1"}), "`name` must be a plain name"),
        ("create_view", json!({"name": "v", "select_sql": large}), "more than 1000000"),
        ("append_event", json!({"content": large}), "`content` is 2000000 bytes long"),
        ("append_event", json!({"content": "x", "kind": large}), "`kind` is 2000000 bytes long"),
        ("checkpoint", json!({"summary": large}), "`summary` is 2000000 bytes long"),
        ("restore_snapshot", json!({"name": large, "reason": "x"}), "is not the name of a snapshot"),
        ("read_query", json!({"query": large}), "more than 1000000"),
        ("read_query", json!({"query": "SELECT 1", large.as_str(): 1}), "is not an argument of read_query"),
    ] {
        let began = Instant::now();
        let error = server.call(tool, arguments).unwrap_err();
        assert!(error.contains(words) && error.len() < 2000, "{tool}, {} bytes: {error}", error.len());
        assert!(began.elapsed() < Duration::from_secs(10), "{tool}: {:?}", began.elapsed());
    }
    let unknown: serde_json::Map<_, _> = (0..50_000).map(|n| (format!("unknown_{n}"), json!(1))).collect();
    let error = server.call("list_tables", unknown.into()).unwrap_err();
    assert!(error.contains("49995 more arguments are unknown") && error.len() < 2000, "{error}");
    server.read("SELECT 1").unwrap();
    let kept = "SELECT max(length(coalesce(detail, '')) + length(coalesce(error, ''))) FROM query_log";
    assert!(server.number(kept) < 6000, "{}", server.number(kept));
    assert!(server.number("SELECT max(length(query)) FROM query_log") < 101_000);
}

#[test]
fn a_schema_grows_only_as_far_as_every_worker_can_read_it() {
    let mut server = Server::over("CREATE TABLE t(a); CREATE VIEW big AS SELECT 1", &[]);
    let rows = format!("VALUES(1){}", ",(1)".repeat(100_000));
    let arguments = json!({"name": "v", "select_sql": rows});
    let too_large = "the definitions of all tables, views, indexes and triggers together";
    let error = server.call("create_view", arguments).unwrap_err();
    assert!(error.contains(too_large), "{error}");
    let terms = format!("1{}", ",1".repeat(250_000));
    server.refuses("write_query", &format!("CREATE TABLE c(a CHECK (a IN ({terms})))"), too_large);
    server.refuses(
        "destructive_query",
        &format!("CREATE TRIGGER g AFTER INSERT ON t WHEN 1 IN ({terms}) BEGIN SELECT 1; END"),
        too_large,
    );
    server.refuses(
        "destructive_query",
        &format!("ALTER TABLE t ADD COLUMN b CHECK (b IN ({terms}))"),
        too_large,
    );
    let text = "n".repeat(900_000);
    let made = (0..60)
        .take_while(|n| server.write(&format!("CREATE TABLE d{n}(a DEFAULT '{text}')")).is_ok())
        .count();
    assert!((10..30).contains(&made), "{made}");
    server.refuses("write_query", &format!("CREATE TABLE d(a DEFAULT '{text}')"), too_large);
    server.write("INSERT INTO d0 VALUES (1)").unwrap();
    server.destroy("DROP TABLE d0").unwrap();
    server.restart();
    assert_eq!(server.read("SELECT count(*) AS n FROM t").unwrap(), "n\n0\n# 1 rows");
    assert!(server.call("list_tables", json!({})).unwrap().contains("\nd1,table,0,0\n"));
}

#[test]
fn large_requests_come_in_one_after_the_other() {
    let mut server = Server::over("CREATE TABLE t(a)", &["--query-timeout", "60"]);
    server.read("SELECT 1").unwrap();
    let (over, peak) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let watcher = std::thread::spawn({
        let (over, peak, pid) = (Arc::clone(&over), Arc::clone(&peak), server.pid());
        move || {
            while !over.load(Ordering::Relaxed) {
                peak.fetch_max(resident_kib(pid), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    });
    let text = "x".repeat(12_000_000);
    let calls: Vec<_> = (0..10)
        .map(|n| ("read_query", json!({"query": format!("SELECT length(?) + {n} AS n"), "params": [text]})))
        .collect();
    for (n, answer) in server.calls(calls).into_iter().enumerate() {
        assert_eq!(answer.unwrap(), format!("n\n{}\n# 1 rows", 12_000_000 + n));
    }
    over.store(true, Ordering::Relaxed);
    watcher.join().unwrap();
    // All of them at once would take more than 200 MiB.
    let peak = peak.load(Ordering::Relaxed) / 1024;
    assert!(peak < 110, "{peak} MiB");
}

#[test]
fn many_small_values_in_one_line_are_refused_before_they_are_read() {
    let mut server = Server::over("CREATE TABLE t(a)", &[]);
    let zeros = vec![0; 32_766];
    assert_eq!(
        server.call("read_query", json!({"query": "SELECT ?32766 AS n", "params": zeros})).unwrap(),
        "n\n0\n# 1 rows"
    );
    let before = resident_kib(server.pid());
    let answer = server.request(
        "tools/call",
        json!({"name": "read_query", "arguments": {"query": "SELECT 1", "params": vec![0; 3_000_000]}}),
    );
    assert_eq!(answer["error"]["code"], -32600);
    let words = "a line may hold 100000 values";
    assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
    // The same as JSON text within a text.
    let text = json!(vec![0; 3_000_000]).to_string();
    let error = server.call("read_query", json!({"query": "SELECT 1", "params": text})).unwrap_err();
    assert!(error.contains("`params` must be an array"), "{error}");
    let grown = resident_kib(server.pid()).saturating_sub(before) / 1024;
    assert!(grown < 60, "{grown} MiB");
}
