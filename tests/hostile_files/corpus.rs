//! SQLite's own fuzzing corpus: files and scripts that once broke it, or that were made to.
//!
//! The corpus is not part of this repository. `INDELIBLE_HOSTILE_CORPUS` names its files, separated by colons: the
//! `test/fuzzdata*.db` of SQLite's sources, which Debian's source package ships. docs/RELIABILITY.md says how to get it.

use crate::support::{Answer, Bench, Server};
use crate::{Way, bytes, from_environment, laid, survive};
use rusqlite::{Connection, OpenFlags};
use serde_json::json;

/// The corpus, opened to read; nothing where none is named.
fn corpus() -> Vec<Connection> {
    let Ok(named) = std::env::var("INDELIBLE_HOSTILE_CORPUS") else {
        eprintln!("SKIPPED: INDELIBLE_HOSTILE_CORPUS names no corpus");
        return Vec::new();
    };
    let open = |path| Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    named.split(':').map(open).collect()
}

/// As many as are wanted, spread over all of them.
fn some(connection: &Connection, count: &str, one: &str, wanted: i64) -> Vec<Vec<u8>> {
    let total: i64 = connection.query_row(count, [], |row| row.get(0)).unwrap();
    let wanted = wanted.min(total);
    let mut statement = connection.prepare(one).unwrap();
    (0..wanted)
        .map(|number| {
            statement
                .query_row([number * total / wanted], |row| Ok(row.get_ref(0)?.as_bytes()?.to_vec()))
                .unwrap()
        })
        .collect()
}

/// The tables of a file, as far as they can be had from it.
fn tables(bench: &Bench) -> Vec<String> {
    let uri = format!("file:{}?immutable=1", bench.path().display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let names = || {
        let connection = Connection::open_with_flags(&uri, flags)?;
        let mut statement =
            connection.prepare("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') LIMIT 6")?;
        statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()
    };
    names().unwrap_or_default()
}

#[test]
fn the_files_of_sqlite_s_own_corpus_cost_errors_and_neither_the_server_nor_a_byte() {
    let wanted = from_environment("INDELIBLE_HOSTILE_ROUNDS").unwrap_or(100) as i64;
    for connection in corpus() {
        let files = some(
            &connection,
            "SELECT count(*) FROM db",
            "SELECT dbcontent FROM db ORDER BY dbid LIMIT 1 OFFSET ?1",
            wanted,
        );
        let (mut served, mut failed, mut answered, mut slowest) = (0, 0, 0, Default::default());
        for (number, file) in files.iter().enumerate() {
            let way = Way::ALL[number % 3];
            let bench = laid(file, None);
            let names = tables(&bench);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let before = bytes(bench.path());
            let told = format!("{:?}, file {number} of {wanted}, {way:?}", connection.path());
            let ran = survive(bench.path(), way, &names, &told);
            if way != Way::Memory {
                assert!(bytes(bench.path()) == before, "{told}: somebody wrote");
            }
            served += usize::from(ran.served);
            failed += ran.failed;
            answered += ran.answered;
            slowest = ran.slowest.max(slowest);
        }
        eprintln!(
            "{:?}: {served} of {} files were served, with {failed} errors in {answered} answers; the slowest: {slowest:?}",
            connection.path(),
            files.len()
        );
    }
}

#[test]
fn the_scripts_of_sqlite_s_own_corpus_reach_nothing_of_the_server_s() {
    let wanted = from_environment("INDELIBLE_HOSTILE_ROUNDS").unwrap_or(100) as i64;
    for connection in corpus() {
        let scripts = some(
            &connection,
            "SELECT count(*) FROM xsql",
            "SELECT sqltext FROM xsql ORDER BY sqlid LIMIT 1 OFFSET ?1",
            wanted,
        );
        let bench = Bench::with("CREATE TABLE t1(a, b, c); INSERT INTO t1 VALUES (1, 2, 3), (4, 5, 6)");
        let flags = ["--query-timeout", "1", "--snapshots", "1"];
        let mut client = Server::on(&bench).flags(&flags).start();
        let (mut asked, mut ran) = (0, 0);
        for (number, script) in scripts.iter().enumerate() {
            let script = String::from_utf8_lossy(script);
            // Cut without regard for quotes: what comes of it is as good as what they were made of.
            for sql in script.split_inclusive(';').take(12) {
                let calls = [
                    ("read_query", json!({"query": sql})),
                    ("write_query", json!({"query": sql})),
                    ("destructive_query", json!({"query": sql, "reason": "a test"})),
                ];
                for (tool, arguments) in calls {
                    let answer: Answer = client.call(tool, arguments);
                    let told = format!("{:?}, script {number}, {tool} {sql:?}", connection.path());
                    assert!(
                        answer.code != "WORKER_LOST" && answer.code != "INTERNAL",
                        "{told}: {}",
                        answer.text
                    );
                    asked += 1;
                    ran += usize::from(!answer.failed);
                }
            }
            if number % 50 == 0 {
                client.call("append_event", json!({"content": format!("script {number}")})).ok();
            }
        }
        assert_eq!(client.call("verify_chain", json!({})).json()["ok"], true);
        let (said, ended) = client.close_with_stderr();
        assert!(ended.status.success() && !said.contains("panicked"), "{said}");
        assert_eq!(bench.query("SELECT count(*) FROM memory_events"), scripts.len().div_ceil(50).to_string());
        // Every call is in the log, and no other.
        let logged =
            "SELECT count(*) FROM query_log WHERE tool IN ('read_query', 'write_query', 'destructive_query')";
        assert_eq!(bench.query(logged), asked.to_string());
        eprintln!("{:?}: {ran} of {asked} statements of {} scripts ran", connection.path(), scripts.len());
    }
}
