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
