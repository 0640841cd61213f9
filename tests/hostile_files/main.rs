//! Files from anywhere: damaged ones, schemas that mean harm, unusual formats. The server serves what can be served,
//! says what cannot, and neither crashes, hangs nor writes where nothing is to be written.
//!
//! `cargo test` tries a few dozen damaged files; `INDELIBLE_HOSTILE_ROUNDS=500` tries as many, and
//! `INDELIBLE_HOSTILE_SEED=...` repeats the run whose seed a failure names.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]

mod corpus;
mod damage;
#[path = "../support/dice.rs"]
mod dice;
mod formats;
mod long;
mod schemas;

#[path = "../support/mod.rs"]
mod support;

use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use support::{Bench, Server};

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// How a file is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Explorer,
    ReadOnly,
    Memory,
}

impl Way {
    const ALL: [Self; 3] = [Self::Explorer, Self::ReadOnly, Self::Memory];

    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Explorer => &["--profile", "explorer", "--query-timeout", "1"],
            Self::ReadOnly => &["--read-only", "--query-timeout", "1"],
            Self::Memory => &["--query-timeout", "1"],
        }
    }

    /// What an agent may ask about a file, `tables` by their names.
    fn calls(self, tables: &[&str]) -> Vec<(&'static str, Value)> {
        let (query, argument) =
            if self == Self::Explorer { ("run_query", "sql") } else { ("read_query", "query") };
        let mut calls = vec![("list_tables", json!({}))];
        for table in tables {
            let quoted = table.replace('"', "\"\"");
            calls.push(("describe_table", json!({"table": table})));
            calls.push((query, json!({argument: format!("SELECT * FROM \"{quoted}\"")})));
            calls.push((
                query,
                json!({argument: format!("SELECT count(*) FROM \"{quoted}\" WHERE rowid > 3")}),
            ));
            if self == Self::Explorer {
                calls.push(("sample_rows", json!({"table": table, "random": true})));
            }
        }
        if self == Self::Explorer {
            calls.push((query, json!({argument: "SELECT * FROM pragma_integrity_check LIMIT 5"})));
            return calls;
        }
        calls.push(("get_schema", json!({})));
        calls.push(("search_text", json!({"pattern": "a"})));
        calls.push((query, json!({argument: "PRAGMA integrity_check"})));
        if self == Self::Memory {
            for table in tables {
                let quoted = table.replace('"', "\"\"");
                let insert = format!("INSERT INTO \"{quoted}\" DEFAULT VALUES");
                calls.push(("write_query", json!({"query": insert})));
                let delete = format!("DELETE FROM \"{quoted}\" WHERE rowid = 2");
                calls.push(("destructive_query", json!({"query": delete, "reason": "a test"})));
            }
            calls.push(("append_event", json!({"content": "seen"})));
            calls.push(("verify_chain", json!({})));
            calls.push(("get_resume_context", json!({})));
        }
        calls
    }
}

/// What one run of the server over a file came to.
#[derive(Debug, Default)]
struct Ran {
    /// It served the file.
    served: bool,
    answered: usize,
    failed: usize,
    /// The call whose answer took longest.
    slowest: (Duration, String),
}

/// Serves the file, asks everything, and holds what must hold whatever the file is: the server starts or says in one
/// line why it does not, answers every call, loses no worker, says nothing twice about itself, and ends in time.
#[track_caller]
fn survive(path: &Path, way: Way, tables: &[&str], told: &str) -> Ran {
    let (status, stdout, stderr) = Server::at(path).flags(way.flags()).run();
    assert_eq!(stdout, "", "{told}");
    if status != 0 {
        assert!(status == 1 && stderr.lines().count() == 1, "{told}: {status} {stderr}");
        return Ran::default();
    }
    let mut client = Server::at(path).flags(way.flags()).start();
    let mut ran = Ran { served: true, ..Ran::default() };
    for (tool, arguments) in way.calls(tables) {
        let asked = format!("{told}: {tool} {arguments}");
        let began = Instant::now();
        let answer = client.call(tool, arguments);
        ran.slowest = ran.slowest.max((began.elapsed(), asked.clone()));
        assert!(answer.code != "WORKER_LOST" && answer.code != "INTERNAL", "{asked}: {}", answer.text);
        ran.answered += 1;
        ran.failed += usize::from(answer.failed);
    }
    let (said, ended) = client.close_with_stderr();
    assert!(ended.status.success(), "{told}: {ended:?} {said}");
    assert!(!said.contains("panicked"), "{told}: {said}");
    ran
}

/// The file and its -wal, which no reader may change; the -shm it may.
fn bytes(path: &Path) -> Vec<Option<Vec<u8>>> {
    ["", "-wal", "-journal"]
        .map(|ending| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            std::fs::read(name).ok().filter(|bytes| !bytes.is_empty())
        })
        .to_vec()
}

/// A database of this name in a folder of its own, with these bytes.
fn laid(database: &[u8], wal: Option<&[u8]>) -> Bench {
    let bench = Bench::empty();
    std::fs::write(bench.path(), database).unwrap();
    if let Some(wal) = wal {
        std::fs::write(bench.folder().join("memory.db-wal"), wal).unwrap();
    }
    bench
}
