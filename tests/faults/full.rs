//! The disk is full, or an fsync fails, at each place in turn where the program writes.
//!
//! Each round starts a server, lets one certain system call and those behind it fail, calls every tool, makes room
//! again, and looks at what there is.

use crate::support::{Answer, Bench};
use crate::trace::{Kind, Sabotage, Session, is_allowed};
use crate::{Dice, chain, rounds, side_by_side};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

/// Whether something is in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    There,
    Gone,
    /// The answer said that nobody knows.
    Either,
}

/// What an answer says of its change.
fn said(answer: &Answer) -> Expected {
    let undone = ["nothing was changed", "nothing was written", "was not appended", "nothing was run"];
    if !answer.failed || answer.text.contains(ALL_THE_SAME) {
        Expected::There
    } else if undone.iter().any(|words| answer.text.contains(words)) {
        Expected::Gone
    } else {
        Expected::Either
    }
}

/// A commit whose last sync failed stands; its call is an error that says so, and has two rows in the log.
const ALL_THE_SAME: &str = "stands all the same";

#[derive(Default)]
struct Round {
    events: BTreeMap<String, Expected>,
    rows: BTreeMap<String, Expected>,
    /// What failed calls said.
    failures: Vec<String>,
}

impl Round {
    fn note(&mut self, answer: &Answer) -> Expected {
        if answer.failed {
            self.failures.push(format!("[{}] {}", answer.code, answer.text));
        }
        said(answer)
    }

    /// One of each kind. `base` keeps the numbers of two goes apart.
    fn calls(&mut self, session: &mut Session, base: i64) {
        let read = session.call("read_query", json!({"query": "SELECT count(*) AS n FROM t"}));
        // A reader needs nothing of the disk once it runs, but for what was cut off to be rolled back.
        assert!(!read.failed, "a read failed: {}", read.text);
        let event = format!("event {base}");
        let answer = session.call("append_event", json!({"content": event}));
        let there = self.note(&answer);
        self.events.insert(event, there);
        for (v, content) in [(base, "zeroblob(9000)"), (base + 1, "NULL")] {
            let insert = format!("INSERT INTO t VALUES ({v}, {content})");
            let answer = session.call("write_query", json!({"query": insert}));
            let there = self.note(&answer);
            self.rows.insert(v.to_string(), there);
        }
        let delete = format!("DELETE FROM t WHERE v = {}", base + 1);
        let answer = session.call("destructive_query", json!({"query": delete, "reason": "x"}));
        let deleted = self.note(&answer);
        self.rows.entry((base + 1).to_string()).and_modify(|row| match deleted {
            Expected::There => *row = Expected::Gone,
            Expected::Gone => {}
            Expected::Either => *row = Expected::Either,
        });
        let answer = session.call("snapshot", json!({"reason": "x"}));
        self.note(&answer);
        if !answer.failed {
            let path = answer.snapshot();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let answer = session.call("restore_snapshot", json!({"name": name, "reason": "x"}));
            self.note(&answer);
        }
    }

    fn how_many_said(&self, words: &str) -> usize {
        self.failures.iter().filter(|failure| failure.contains(words)).count()
    }
}

/// What is there and should not be, or should be and is not.
#[track_caller]
fn agree(expected: &BTreeMap<String, Expected>, found: &str, told: &str) {
    let found: BTreeSet<&str> = found.lines().collect();
    for (name, state) in expected {
        let wrong = match state {
            Expected::There => !found.contains(name.as_str()),
            Expected::Gone => found.contains(name.as_str()),
            Expected::Either => false,
        };
        assert!(!wrong, "{told}: `{name}` is said to be {state:?}, and there is {found:?}");
    }
    let strange = found.iter().find(|name| !expected.contains_key(**name));
    assert_eq!(strange, None, "{told}");
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
    let mut round = Round::default();
    round.rows.insert("-1".to_owned(), Expected::There);
    sabotage.begin(from, once);
    round.calls(&mut session, 10);
    let seen = sabotage.seen.load(Ordering::Relaxed);
    sabotage.end();
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
    let told = format!("{told}: {:#?}", round.failures);
    let events = bench.query("SELECT content FROM memory_events WHERE kind = 'note'");
    agree(&round.events, &events, &told);
    agree(&round.rows, &bench.query("SELECT v FROM t"), &told);
    let logged = bench.query("SELECT count(*) FROM query_log WHERE ok AND tool = 'append_event'");
    assert_eq!(logged, events.lines().count().to_string(), "{told}: events and their log rows");
    // Every call has its row now that there is room, and one whose commit stands all the same has two.
    let calls =
        bench.query("SELECT count(*) FROM query_log WHERE tool NOT IN ('restore_snapshot', 'read_query')");
    let twice = round
        .failures
        .iter()
        .filter(|failure| failure.contains(ALL_THE_SAME) && !failure.contains("the snapshot is restored"));
    let (calls, twice) = (calls.parse::<usize>().unwrap(), twice.count());
    let unknown = round.how_many_said("before you repeat it");
    assert!((11 + twice..=11 + twice + unknown).contains(&calls), "{told}: {calls} rows: {stderr}");
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
    side_by_side(&["WAL", "DELETE"], |mode| {
        let (places, none) = go(mode, kind, error, 0, once, words);
        assert!(places > 10 && none == 0, "{places}");
        let wanted = rounds(4).min(places);
        // Other places each time, as far apart as they can be.
        let first = Dice::new().below(places.div_ceil(wanted) as u64) as usize;
        let mut failed = 0;
        for number in 0..wanted {
            let from = 1 + first + number * places / wanted;
            failed += usize::from(go(mode, kind, error, from, once, words).1 > 0);
        }
        eprintln!("{mode}: {kind:?} fails with {error} at {failed} of {places} places");
        assert!(failed * 2 > wanted, "{failed} of {wanted}");
    });
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

/// In rollback mode the sync behind the removal of the journal may fail: then what was written stands.
#[test]
fn what_shares_a_commit_is_done_once_whichever_of_its_syncs_fails() {
    if !is_allowed() {
        return;
    }
    let modes: &[&str] = if rounds(4) > 4 { &["WAL", "TRUNCATE", "PERSIST", "DELETE"] } else { &["DELETE"] };
    let update = json!({"query": "UPDATE t SET n = n + 1 WHERE k = 1"});
    let ways = [
        ("write_query", update, "SELECT n FROM t"),
        ("append_event", json!({"content": "x"}), "SELECT count(*) AS n FROM memory_events"),
    ];
    for mode in modes {
        let bench = Bench::with(&format!(
            "PRAGMA journal_mode = {mode}; CREATE TABLE t(k INTEGER PRIMARY KEY, n); INSERT INTO t VALUES (1, 0)"
        ));
        let sabotage = Sabotage::of(Kind::Sync, libc::EIO);
        let mut session = Session::start(bench.path(), &[], Some(sabotage.clone()));
        for (tool, arguments, count) in &ways {
            session.call(tool, arguments.clone()).ok();
            let (mut counted, mut stood) = (1, 0);
            // A commit has five syncs, and rows of reads have commits of their own, now before those of the calls and now
            // behind them: each sync in turn, again until the last one of a commit with calls was hit.
            for from in (1..=15).cycle().take(if *mode == "WAL" { 15 } else { 150 }) {
                if from == 1 && stood > 0 {
                    break;
                }
                sabotage.begin(from, true);
                let sent: Vec<i64> = (0..5).map(|_| session.send_call(tool, arguments.clone())).collect();
                for id in sent {
                    let answer = session.answer(id).unwrap();
                    let told = format!("{mode}, {tool}, sync {from}: {}", answer.text);
                    assert_ne!(said(&answer), Expected::Either, "{told}");
                    counted += usize::from(said(&answer) == Expected::There);
                    stood += usize::from(answer.failed && said(&answer) == Expected::There);
                }
                sabotage.end();
                session.call("read_query", json!({"query": count})).is(&format!("n\n{counted}\n# 1 rows"));
            }
            assert_eq!(
                stood > 0,
                *mode != "WAL",
                "{mode}, {tool}: {stood} stood although their commit failed"
            );
            let rows = format!("SELECT count(*) FROM query_log WHERE ok AND tool = '{tool}'");
            assert_eq!(bench.query(&rows), counted.to_string(), "{mode}: each has one row");
        }
        let (_, status, stderr) = session.end();
        assert_eq!(status, 0, "{stderr}");
        assert_eq!(chain::fault(&chain::open(bench.path())), None, "{mode}");
    }
}

#[test]
fn a_disk_that_is_slow_to_sync_has_the_last_rows_before_the_server_ends() {
    if !is_allowed() {
        return;
    }
    // Four or five syncs for a commit in rollback mode, and again when the connection closes.
    for (mode, held_ms) in [("WAL", 150), ("DELETE", 100)] {
        let bench = Bench::with(&format!("PRAGMA journal_mode = {mode}"));
        let sabotage = Sabotage::of(Kind::Sync, 0);
        let mut session = Session::start(bench.path(), &[], Some(sabotage.clone()));
        session.call("read_query", json!({"query": "SELECT 1 AS one"})).ok();
        sabotage.held_ms.store(held_ms, Ordering::Relaxed);
        sabotage.begin(1, false);
        session.call("read_query", json!({"query": "SELECT 2 AS two"})).ok();
        let closed = std::time::Instant::now();
        let (_, status, stderr) = session.end();
        assert_eq!(status, 0, "{mode}: {stderr}");
        assert!(closed.elapsed() < std::time::Duration::from_secs(2), "{mode}: {:?}", closed.elapsed());
        assert!(!stderr.contains("WARN") && !stderr.contains("ERROR"), "{mode}: {stderr}");
        let held = sabotage.failed.load(Ordering::Relaxed);
        assert!(held >= 3, "{mode}: only {held} syncs were slow");
        assert_eq!(bench.query("SELECT count(*) FROM query_log"), "2", "{mode}: {stderr}");
        assert!(!bench.folder().join("memory.db-journal").exists(), "{mode}");
    }
}

#[test]
fn what_a_disk_has_not_synced_when_the_server_must_end_is_said_on_stderr() {
    if !is_allowed() {
        return;
    }
    let bench = Bench::with("PRAGMA journal_mode = DELETE");
    let sabotage = Sabotage::of(Kind::Sync, 0);
    let mut session = Session::start(bench.path(), &[], Some(sabotage.clone()));
    session.call("read_query", json!({"query": "SELECT 1 AS one"})).ok();
    sabotage.held_ms.store(900, Ordering::Relaxed);
    sabotage.begin(1, false);
    session.call("read_query", json!({"query": "SELECT 'the last' AS two"})).ok();
    let (_, status, stderr) = session.end();
    assert_eq!(status, 0, "{stderr}");
    let rows = bench.query("SELECT count(*) FROM query_log WHERE query LIKE '%the last%'");
    let said =
        stderr.lines().filter(|line| line.contains("written to query_log") && line.contains("the last"));
    assert!(rows == "1" || said.count() == 1, "{rows} rows: {stderr}");
}
