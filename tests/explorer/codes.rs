//! Every error has its stable code: in front of the explorer's text, and in the memory profile's `_meta`.

use crate::support::{Answer, Bench, Client, Server, children_of, wait_until};
use crate::{Desk, ENDLESS, MUSIC, kill};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{Seek, SeekFrom, Write};

/// How a code comes about: something that is done to the bench, and the statement that meets it.
struct Way {
    code: &'static str,
    sql: &'static str,
    /// In SQLite's words or ours.
    says: &'static str,
    /// What to do next.
    next: &'static str,
}

const WAYS: &[Way] = &[
    Way {
        code: "MULTIPLE_STATEMENTS",
        sql: "SELECT 1; SELECT 2",
        says: "one statement per call",
        next: "send each in a call of its own",
    },
    Way {
        code: "EMPTY_STATEMENT",
        sql: "-- nothing",
        says: "there is no statement",
        next: "send one SQL statement",
    },
    Way {
        code: "SYNTAX_ERROR",
        sql: "SELECT FROM WHERE",
        says: "near \"FROM\": syntax error",
        next: "correct the SQL",
    },
    Way {
        code: "UNKNOWN_TABLE",
        sql: "SELECT * FROM trakcs",
        says: "no such table: trakcs",
        next: "list_tables",
    },
    Way {
        code: "UNKNOWN_COLUMN",
        sql: "SELECT nope FROM tracks",
        says: "no such column: nope",
        next: "describe_table",
    },
    Way { code: "INVALID_PARAMS", sql: "SELECT ?", says: "`params` is missing", next: "give an array" },
    Way { code: "TIMEOUT", sql: ENDLESS, says: "ran longer than 0.3 s", next: "narrow it" },
    Way {
        code: "TOO_BIG",
        sql: "SELECT length(zeroblob(900000000))",
        says: "string or blob too big",
        next: "work on a part of it",
    },
    Way {
        code: "SQL_ERROR",
        sql: "SELECT abs(-9223372036854775808)",
        says: "integer overflow",
        next: "change the statement",
    },
    Way {
        code: "SQL_ERROR",
        sql: "SELECT nope(1)",
        says: "no such function: nope",
        next: "change the statement",
    },
];

const FLAGS: &[&str] = &["--query-timeout", "0.3", "--busy-timeout", "0.1"];

#[test]
fn each_code_stands_in_front_of_its_words_and_the_words_say_what_to_do() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::with(&bench, FLAGS);
    let mut seen = BTreeSet::new();
    for way in WAYS {
        desk.query(way.sql).fails_as(way.code, &[way.says, way.next]).starts(&format!("[{}] ", way.code));
        seen.insert(way.code);
    }
    for (sql, next) in [
        ("DELETE FROM tracks", "no tool of this server changes anything"),
        ("EXPLAIN SELECT 1", "use explain_query for a plan"),
        ("PRAGMA table_info(tracks)", "SELECT * FROM pragma_table_info('t')"),
    ] {
        desk.query(sql).fails_as("NOT_SELECT", &["takes one SELECT", next]);
    }
    desk.call("explain_query", json!({"sql": "EXPLAIN SELECT 1"}))
        .fails_as("NOT_SELECT", &["leave EXPLAIN out"]);
    desk.query(ENDLESS).fails_as("TIMEOUT", &["look at its plan with explain_query"]);
    desk.query("WITH x AS (SELECT 1) DELETE FROM tracks")
        .fails_as("NOT_READ_ONLY", &["no tool of this server does this"]);
    desk.call("run_query", json!({"sql": 7})).fails_as("INVALID_ARGUMENTS", &["`sql`"]);
    // Those that need something to happen have tests of their own below.
    seen.extend(["NOT_SELECT", "NOT_READ_ONLY", "INVALID_ARGUMENTS", "BUSY", "CORRUPT", "WORKER_LOST"]);
    let elsewhere = [
        "REFUSED",
        "CANCELLED",
        "DECLINED",
        "SNAPSHOT_FAILED",
        "FILE_GONE",
        "NOT_FOUND",
        "AMBIGUOUS_PRIMITIVE",
        "WRONG_TYPE",
        "PRECONDITION_FAILED",
        "CONFLICT",
        "LEASE_LOST",
        "TOO_LARGE",
        "PAUSED",
        "FORBIDDEN_TOOL",
        "NOT_GRANTED",
        "UNREACHABLE",
    ];
    let listed = include_str!("../../docs/ERRORS.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let listed: BTreeSet<&str> = listed.filter(|code| !elsewhere.contains(code)).collect();
    assert_eq!(listed, seen, "every code in docs/ERRORS.md is one that comes up here");
}

#[test]
fn the_memory_profile_has_the_same_codes_beside_its_text() {
    let bench = Bench::with(MUSIC);
    let mut client = Server::on(&bench).flags(FLAGS).start();
    for way in WAYS {
        let answer = client.read(way.sql);
        answer.fails_as(way.code, &[way.says]).lacks("[");
    }
    client.read("SELECT * FROM trakcs").fails(&[]).ends("no such table: trakcs");
    client.read("DELETE FROM tracks").fails_as("NOT_READ_ONLY", &["use destructive_query"]);
    client.read("ATTACH 'x' AS y").fails_as("REFUSED", &[]);
    client.call("read_query", json!({})).fails_as("INVALID_ARGUMENTS", &[]);
    client.call("create_view", json!({"name": "v", "select_sql": "PRAGMA table_list"})).fails(&[]);
}

#[test]
fn a_lock_of_another_process_is_busy_and_passes() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::with(&bench, FLAGS);
    let holder = bench.open();
    // Once before any worker has the file open, and once after.
    for _ in 0..2 {
        holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
        desk.query("SELECT count(*) FROM tracks").fails_as("BUSY", &["locked", "try again"]);
        desk.call("list_tables", json!({})).fails_as("BUSY", &["try again"]);
        desk.call("sample_rows", json!({"table": "tracks"})).fails_as("BUSY", &["try again"]);
        holder.execute_batch("ROLLBACK").unwrap();
        desk.is_alive();
        assert_eq!(desk.rows("SELECT count(*) FROM tracks"), json!([[60]]));
    }
}

#[test]
fn a_damaged_page_is_corrupt_and_the_rest_is_served() {
    let bench = Bench::with(MUSIC);
    let root =
        bench.query("SELECT rootpage FROM sqlite_schema WHERE name = 'tracks'").parse::<u64>().unwrap();
    let size = bench.query("PRAGMA page_size").parse::<u64>().unwrap();
    let mut file = std::fs::OpenOptions::new().write(true).open(bench.path()).unwrap();
    file.seek(SeekFrom::Start((root - 1) * size)).unwrap();
    file.write_all(&vec![0xee; usize::try_from(size).unwrap()]).unwrap();
    let mut desk = Desk::on(&bench);
    for (tool, arguments) in [
        ("run_query", json!({"sql": "SELECT * FROM tracks"})),
        ("sample_rows", json!({"table": "tracks"})),
        ("sample_rows", json!({"table": "tracks", "random": true})),
    ] {
        desk.call(tool, arguments).fails_as("CORRUPT", &["malformed", "damaged", "a person"]);
    }
    assert_eq!(desk.rows("SELECT count(*) FROM artists"), json!([[2]]));
    desk.call("describe_table", json!({"table": "tracks"})).ok();
}

#[test]
fn a_worker_that_is_killed_is_lost_for_its_own_call_alone() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::with(&bench, &["--query-timeout", "60"]);
    let lost = desk.send_query(ENDLESS);
    assert!(wait_until(|| !children_of(desk.client.pid()).is_empty()));
    let first = children_of(desk.client.pid())[0];
    std::thread::sleep(std::time::Duration::from_millis(200));
    let fine = desk.send_query(&ENDLESS.replace("FROM c) SELECT", "FROM c LIMIT 1000000) SELECT"));
    assert!(wait_until(|| children_of(desk.client.pid()).len() == 2));
    kill(first);
    desk.answer(lost).fails_as("WORKER_LOST", &["the worker process died", "try again"]);
    let answer: Answer = desk.answer(fine);
    assert_eq!(answer.ok().structured["rows"], json!([[1_000_000]]));
    desk.is_alive();
    // One that dies while it is idle costs nothing.
    for worker in children_of(desk.client.pid()) {
        kill(worker);
    }
    assert!(wait_until(|| children_of(desk.client.pid()).is_empty()));
    desk.is_alive();
}

#[test]
fn requests_carry_the_codes_in_their_data() {
    let bench = Bench::with(MUSIC);
    let mut client: Client = Server::on(&bench).flags(&["--profile", "explorer"]).start();
    let answer = client.request("resources/read", json!({"uri": "sqlite://table/nope"}));
    assert!(answer["error"]["message"].as_str().unwrap().contains("`nope`"), "{answer}");
}
