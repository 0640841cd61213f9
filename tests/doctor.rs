//! `indelible doctor` on sound, broken, missing and locked files: what it says, how it ends, and that it changes
//! nothing.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]
#![cfg(unix)]

mod support;

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use support::{Bench, Server};

fn indelible(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_indelible"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("INDELIBLE_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).output().unwrap()
}

/// Doctor's report as JSON, and the exit status.
#[track_caller]
fn examine(path: &Path, flags: &[&str]) -> (Value, i32) {
    let arguments = [&["doctor", "--json", "--db", path.to_str().unwrap()], flags].concat();
    let output = indelible(&arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    let json = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{complaint}"));
    (json, output.status.code().unwrap())
}

/// `state: text -> advice` of the findings about a topic.
fn about(report: &Value, topic: &str) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter().filter(|finding| finding["topic"] == topic);
    findings
        .map(|finding| {
            let advice = finding["advice"].as_str().map(|advice| format!(" -> {advice}")).unwrap_or_default();
            format!("{}: {}{advice}", finding["state"].as_str().unwrap(), finding["text"].as_str().unwrap())
        })
        .collect()
}

/// A database as the server leaves it, with an event, a checkpoint and a snapshot.
fn served() -> Bench {
    let bench = Bench::notes();
    let db = bench.path().to_str().unwrap();
    for call in [
        &["append_event", "content=one"][..],
        &["checkpoint", "summary=so far"],
        &["destructive_query", "query=DELETE FROM tags", "reason=test"],
        &["read_query", "query=SELECT nothing"],
    ] {
        indelible(&[&["call", "--db", db], call].concat());
    }
    std::fs::set_permissions(bench.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
    bench
}

#[test]
fn a_sound_file_has_nothing_against_it_and_stays_as_it_is() {
    let bench = served();
    bench.sql("PRAGMA journal_mode=WAL");
    let before = bench.files();
    assert!(before.iter().all(|(name, _)| !name.ends_with("-wal") && !name.ends_with("-shm")));
    let (report, status) = examine(bench.path(), &[]);
    assert_eq!((report["state"].as_str(), status), (Some("ok"), 0), "{report:#}");
    assert_eq!(bench.files(), before);
    // An empty -wal that nobody has open is no reason to make a -shm.
    std::fs::write(bench.folder().join("memory.db-wal"), "").unwrap();
    let before = bench.files();
    assert_eq!(about(&examine(bench.path(), &[]).0, "chain"), ["ok: chain ok (1 events)"]);
    assert_eq!(bench.files(), before);
    let rows = [
        ("permissions", "ok: 0600"),
        ("journal mode", "ok: WAL: readers and writers do not wait for each other"),
        ("encoding", "ok: UTF-8"),
        ("application", "ok: 0: no program has claimed the file"),
        ("integrity", "ok: quick_check finds nothing"),
        ("tables", "ok: all 14 of the server's tables, triggers and views"),
        ("chain", "ok: chain ok (1 events)"),
    ];
    for (topic, expected) in rows {
        assert_eq!(about(&report, topic), [expected]);
    }
    let log = &about(&report, "log")[0];
    assert!(log.starts_with("ok: 4 calls in query_log, 1 of them failed, the newest at 2"), "{log}");
    let snapshots = &about(&report, "snapshots")[0];
    assert!(snapshots.starts_with("ok: 1 (1 automatic, 0 by hand), "), "{snapshots}");
    let folder = tempfile::tempdir().unwrap();
    let place = ["--snapshot-dir", folder.path().to_str().unwrap()];
    let mut client = Server::on(&bench).flags(&place).start();
    client.call("snapshot", json!({"reason": "elsewhere"})).ok();
    client.close();
    let elsewhere = &about(&examine(bench.path(), &place).0, "snapshots")[0];
    assert!(elsewhere.starts_with("ok: 1 (0 automatic, 1 by hand), "), "{elsewhere}");
    for digest in ["manifest_sha256", "policy_sha256"] {
        assert_eq!(report[digest].as_str().unwrap().len(), 64);
    }
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    type Setup = fn(&Bench);
    // what was done to the notes; flags; topic; state and text; exit status
    let rows: &[(Setup, &[&str], &str, &str, i32)] = &[
        (
            |b| std::fs::remove_file(b.path()).unwrap(),
            &[],
            "file",
            "warning: there is no such file -> if that is",
            0,
        ),
        (
            |b| std::fs::remove_file(b.path()).unwrap(),
            &["--read-only"],
            "file",
            "problem: there is no such file -> give the path of a database",
            1,
        ),
        (
            |b| {
                std::fs::remove_file(b.path()).unwrap();
                std::fs::create_dir(b.path()).unwrap();
            },
            &[],
            "file",
            "problem: `",
            1,
        ),
        (|b| std::fs::write(b.path(), "").unwrap(), &[], "database", "note: the file is empty", 0),
        (|b| std::fs::write(b.path(), "some text").unwrap(), &[], "database", "problem: `", 1),
        (
            |_| {},
            &[],
            "journal mode",
            "note: rollback: a writer waits for every reader, and readers for a writer -> end the clients, then sqlite3 ",
            0,
        ),
        (|_| {}, &["--read-only"], "journal mode", "ok: rollback", 0),
        (|_| {}, &[], "tables", "note: none of the server's own; the first start makes them", 0),
        (
            |b| b.sql("CREATE TABLE query_log(a); CREATE VIEW memory_events AS SELECT 1"),
            &[],
            "tables",
            "problem: the ",
            1,
        ),
        (
            |b| {
                b.sql("CREATE TABLE n(a); INSERT INTO n VALUES (NULL); PRAGMA writable_schema=ON");
                b.sql("PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE n(a NOT NULL)' WHERE name = 'n'");
            },
            &[],
            "integrity",
            "warning: NULL value in n.a -> the pages are sound",
            0,
        ),
        (
            |b| {
                let mut bytes = std::fs::read(b.path()).unwrap();
                let second = bytes.len() / 4096 - 1;
                bytes[second * 4096..].fill(0xAB);
                std::fs::write(b.path(), bytes).unwrap();
            },
            &[],
            "integrity",
            "problem: ",
            1,
        ),
        (
            |b| b.sql("PRAGMA application_id=305419896"),
            &[],
            "application",
            "note: 305419896 (0x12345678): another",
            0,
        ),
        (
            |b| b.sql("PRAGMA encoding"),
            &["--snapshots", "0"],
            "snapshots",
            "warning: none, and --snapshots 0",
            0,
        ),
        (
            |b| std::fs::set_permissions(b.path(), std::fs::Permissions::from_mode(0o666)).unwrap(),
            &[],
            "permissions",
            "warning: 0666: anybody on this machine may change it, past the server -> chmod 600 ",
            0,
        ),
    ];
    for (setup, flags, topic, expected, status) in rows {
        let bench = Bench::notes();
        setup(&bench);
        let before = bench.files();
        let (report, exit) = examine(bench.path(), flags);
        let said = about(&report, topic);
        assert!(said.iter().any(|said| said.starts_with(expected)), "{topic}: {said:?}, not {expected}");
        assert_eq!(exit, *status, "{expected}: {report:#}");
        assert_eq!(bench.files(), before, "{expected}");
    }
}

#[test]
fn every_foreign_object_is_named() {
    let bench = served();
    bench.sql("CREATE TRIGGER a AFTER INSERT ON memory_events BEGIN SELECT 1; END");
    bench.sql("CREATE INDEX b ON query_log(tool) WHERE ok = 0");
    let (report, status) = examine(bench.path(), &[]);
    let said = about(&report, "tables");
    assert_eq!(
        said,
        [
            "problem: the trigger `a` on `memory_events` is not the server's -> drop or rename it, or serve another file",
            "problem: the index `b` on `query_log` is not the server's and would run code or refuse rows at each insert -> drop or rename it, or serve another file",
        ]
    );
    assert_eq!(status, 1);
}

#[test]
fn a_dropped_trigger_and_a_changed_event_are_seen() {
    let bench = served();
    bench.sql("DROP TRIGGER memory_events_no_update; UPDATE memory_events SET content = 'two'");
    let (report, status) = examine(bench.path(), &[]);
    let tables = about(&report, "tables");
    assert!(
        tables[0].starts_with("warning: somebody has dropped memory_events_no_update: rows could"),
        "{tables:?}"
    );
    assert_eq!(
        tables[1],
        "note: not there yet: trigger memory_events_no_update -> the next start makes them"
    );
    let chain = &about(&report, "chain")[0];
    assert!(chain.starts_with("problem: chain BROKEN at event 1: "), "{chain}");
    assert_eq!(status, 1);
}

#[test]
fn a_locked_file_is_said_to_be_locked() {
    let bench = Bench::notes();
    let holder = bench.open();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let (report, status) = examine(bench.path(), &["--busy-timeout", "0.1"]);
    let said = &about(&report, "database")[0];
    assert!(said.contains("is locked by another process -> close that program"), "{said}");
    assert_eq!(status, 1);
}

#[test]
fn a_file_in_use_is_looked_at_beside_its_server() {
    let bench = Bench::empty();
    let mut client = Server::on(&bench).start();
    client.call("append_event", json!({"content": "one"}));
    let (report, status) = examine(bench.path(), &[]);
    assert_eq!(about(&report, "chain"), ["ok: chain ok (1 events)"], "{report:#}");
    assert_eq!(status, 0);
    client.call("append_event", json!({"content": "two"}));
    let (report, _) = examine(bench.path(), &[]);
    assert_eq!(about(&report, "chain"), ["ok: chain ok (2 events)"]);
}

#[test]
fn what_stands_in_a_wal_alone_is_read_and_stays_there() {
    let bench = Bench::empty();
    let writer = bench.open();
    writer.execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE a(b); INSERT INTO a VALUES (1)").unwrap();
    let copy = Bench::empty();
    let beside = |bench: &Bench| format!("{}-wal", bench.path().display());
    std::fs::copy(bench.path(), copy.path()).unwrap();
    std::fs::copy(beside(&bench), beside(&copy)).unwrap();
    let of = |ending: &str| -> String {
        copy.files().into_iter().find(|(name, _)| name == &format!("memory.db{ending}")).unwrap().1
    };
    let before = (of(""), of("-wal"));
    let (report, status) = examine(copy.path(), &[]);
    assert_eq!(
        report["findings"].as_array().unwrap().iter().find(|f| f["topic"] == "pages").unwrap()["value"]["pages"],
        2
    );
    assert!(about(&report, "-wal")[0].contains("no program has the file open"), "{report:#}");
    assert_eq!((status, (of(""), of("-wal"))), (0, before));
}

#[test]
fn a_link_is_followed_and_said() {
    let bench = served();
    let link = bench.folder().join("link.db");
    std::os::unix::fs::symlink(bench.path(), &link).unwrap();
    let (report, status) = examine(&link, &[]);
    let said = &about(&report, "link")[0];
    assert!(
        said.starts_with("note: a link to ") && said.contains("memory.db; -wal and -shm lie there"),
        "{said}"
    );
    assert_eq!(status, 0);
}

#[test]
fn settings_are_shown_with_where_they_came_from() {
    let bench = Bench::notes();
    let output = Command::new(env!("CARGO_BIN_EXE_indelible"))
        .args(["doctor", "--max-rows", "7", "--db"])
        .arg(bench.path())
        .env("INDELIBLE_PROFILE", "explorer")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let settings = text.split("\nsettings\n").nth(1).unwrap();
    let line = |name: &str| -> Vec<String> {
        let line = settings.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(line("max-rows"), ["max-rows", "7", "--max-rows"]);
    assert_eq!(line("profile"), ["profile", "explorer", "INDELIBLE_PROFILE"]);
    assert_eq!(line("read-only"), ["read-only", "true", "profile"]);
    assert_eq!(line("busy-timeout"), ["busy-timeout", "5", "default"]);
    assert_eq!(line("audit-log"), ["audit-log", "-", "default"]);
    assert!(text.starts_with("indelible ") && text.contains("\nok       path          /"), "{text}");
    let sum = text.lines().last().unwrap();
    assert!(sum.ends_with(" note") || sum.ends_with(" notes") || sum == "nothing to remark", "{sum}");
}
