//! The disk is full, or an fsync fails, at each place in turn where the program writes.
//!
//! Each round starts a server, lets one certain system call and those behind it fail, calls every tool, makes room
//! again, and looks at what there is.

use crate::support::{Answer, Bench};
use crate::trace::{Kind, Sabotage, Session, is_allowed};
use crate::{chain, rounds};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

struct Round {
    /// Events and rows that were acknowledged.
    events: BTreeSet<String>,
    rows: BTreeSet<i64>,
    /// How many calls failed, and what they said.
    failures: Vec<String>,
}

impl Round {
    fn note(&mut self, answer: &Answer, done: impl FnOnce(&mut Self)) {
        if answer.failed {
            self.failures.push(format!("[{}] {}", answer.code, answer.text));
        } else {
            done(self);
        }
    }

    /// One of each kind. `base` keeps the numbers of two goes apart.
    fn calls(&mut self, session: &mut Session, base: i64) {
        let read = session.call("read_query", json!({"query": "SELECT count(*) AS n FROM t"}));
        // A reader needs nothing of the disk once it runs.
        assert!(!read.failed, "a read failed: {}", read.text);
        let event = format!("event {base}");
        let answer = session.call("append_event", json!({"content": event}));
        self.note(&answer, |round| {
            round.events.insert(event);
        });
        let insert = format!("INSERT INTO t VALUES ({base}, zeroblob(9000))");
        let answer = session.call("write_query", json!({"query": insert}));
        self.note(&answer, |round| {
            round.rows.insert(base);
        });
        let insert = format!("INSERT INTO t VALUES ({}, NULL)", base + 1);
        let answer = session.call("write_query", json!({"query": insert}));
        self.note(&answer, |round| {
            round.rows.insert(base + 1);
        });
        let delete = format!("DELETE FROM t WHERE v = {}", base + 1);
        let answer = session.call("destructive_query", json!({"query": delete, "reason": "x"}));
        self.note(&answer, |round| {
            round.rows.remove(&(base + 1));
        });
        let answer = session.call("snapshot", json!({"reason": "x"}));
        self.note(&answer, |_| {});
        if !answer.failed {
            let path = answer.snapshot();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let answer = session.call("restore_snapshot", json!({"name": name, "reason": "x"}));
            self.note(&answer, |_| {});
        }
    }
}

/// In rollback mode a reader cannot roll back what was cut off; the server's own connection does so when it next
/// writes log rows, which it tries all the time.
fn recovered(session: &mut Session) {
    for _ in 0..100 {
        let read = session.call("read_query", json!({"query": "SELECT count(*) AS n FROM t"}));
        if !read.failed {
            return;
        }
        read.has("must be rolled back");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("reads do not go on");
}

/// A round in which calls of the kind fail from the given one on; how many there were and how many failed.
fn go(mode: &str, kind: Kind, error: i32, from: usize, once: bool, words: &[&str]) -> (usize, usize) {
    let bench =
        Bench::with(&format!("PRAGMA journal_mode = {mode}; CREATE TABLE t(v INTEGER PRIMARY KEY, b)"));
    let sabotage = Sabotage::of(kind, error);
    let mut session = Session::start(bench.path(), &[], Some(sabotage.clone()));
    // Both kinds of worker are there.
    session.call("read_query", json!({"query": "SELECT count(*) AS n FROM t"})).ok();
    session.call("write_query", json!({"query": "INSERT INTO t VALUES (-1, NULL)"})).ok();
    sabotage.seen.store(0, Ordering::Relaxed);
    sabotage.once.store(once, Ordering::Relaxed);
    sabotage.from.store(from, Ordering::Relaxed);
    let mut round = Round { events: BTreeSet::new(), rows: BTreeSet::from([-1]), failures: Vec::new() };
    round.calls(&mut session, 10);
    let seen = sabotage.seen.load(Ordering::Relaxed);
    sabotage.end();
    recovered(&mut session);
    let told = format!("{mode} {kind:?} {error} from {from}");
    for failure in &round.failures {
        assert!(words.iter().any(|word| failure.contains(word)), "{told}: {failure}");
    }
    // There is room again: the same server goes on.
    let failures = round.failures.len();
    round.calls(&mut session, 20);
    assert_eq!(round.failures.len(), failures, "{told}: {:?}", &round.failures[failures..]);
    let (_, status, stderr) = session.end();
    assert_eq!(status, 0, "{told}: {stderr}");
    let connection = chain::open(bench.path());
    assert_eq!(chain::fault(&connection), None, "{told}");
    let events = bench.query("SELECT content FROM memory_events WHERE kind = 'note'");
    let events: BTreeSet<String> = events.lines().map(str::to_owned).collect();
    assert!(events.is_superset(&round.events), "{told}: {events:?} lacks some of {:?}", round.events);
    let rows: BTreeSet<i64> =
        bench.query("SELECT v FROM t").lines().map(|line| line.parse().unwrap()).collect();
    assert!(rows.is_superset(&round.rows), "{told}: {rows:?} lacks some of {:?}", round.rows);
    let logged = bench.query("SELECT count(*) FROM query_log WHERE ok AND tool = 'append_event'");
    assert_eq!(logged, events.len().to_string(), "{told}: events and their log rows");
    let calls =
        bench.query("SELECT count(*) FROM query_log WHERE tool NOT IN ('restore_snapshot', 'read_query')");
    // Where the sync of a folder fails, behind a commit in rollback mode, the commit stands although it is an error,
    // and the call has two rows.
    assert!(
        calls.parse::<usize>().unwrap() >= 11,
        "{told}: {calls} calls are in the log, now that there is room: {stderr}"
    );
    for path in bench.snapshots() {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(!name.starts_with('.'), "{told}: {name} is left");
        if name.ends_with(".db") {
            let check = bench_check(&path);
            assert_eq!(check, "ok", "{told}: {name}");
        }
    }
    (seen, sabotage.failed.load(Ordering::Relaxed))
}

fn bench_check(path: &std::path::Path) -> String {
    let connection = rusqlite::Connection::open(path).unwrap();
    crate::support::query(&connection, "PRAGMA integrity_check")
}

/// Each place in turn, or as many as are wanted.
fn everywhere(kind: Kind, error: i32, once: bool, words: &[&str]) {
    if !is_allowed() {
        return;
    }
    for mode in ["WAL", "DELETE"] {
        let (places, none) = go(mode, kind, error, 0, once, words);
        assert!(places > 10 && none == 0, "{places}");
        let wanted = rounds(12).min(places);
        let mut failed = 0;
        for number in 0..wanted {
            let from = 1 + number * places / wanted;
            failed += usize::from(go(mode, kind, error, from, once, words).1 > 0);
        }
        eprintln!("{mode}: {kind:?} fails with {error} at {failed} of {places} places");
        assert!(failed * 2 > wanted, "{failed} of {wanted}");
    }
}

#[test]
fn a_full_disk_at_any_write_is_an_error_that_says_so_and_nothing_is_half_done() {
    everywhere(
        Kind::Room,
        libc::ENOSPC,
        false,
        &["full", "No space left on device", "the disk reports an error"],
    );
}

#[test]
fn an_error_of_the_disk_at_any_sync_is_an_error_that_says_so_and_nothing_is_half_done() {
    everywhere(
        Kind::Sync,
        libc::EIO,
        true,
        &["disk reports an error", "disk I/O error; see whether", "Input/output error"],
    );
}
