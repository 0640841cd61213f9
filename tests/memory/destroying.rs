//! destructive_query and snapshot: first the copy, then the statement; no copy, no statement.

use crate::support::{Bench, Server};
use rusqlite::Connection;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn count(path: &Path, table: &str) -> i64 {
    let snapshot = Connection::open(path).unwrap();
    let check: String = snapshot.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    snapshot.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

#[test]
fn a_destructive_call_leaves_a_checked_private_copy_of_what_was_there_before() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let answer = client
        .call("destructive_query", json!({"query": "DELETE FROM notes WHERE id = 3", "reason": "clean up"}));
    answer.ok().starts("ok: 1 rows affected; snapshot: ");
    let snapshot = answer.snapshot();
    assert_eq!(bench.snapshots(), std::slice::from_ref(&snapshot));
    assert_eq!(count(&snapshot, "notes"), 3);
    assert_eq!(std::fs::metadata(&snapshot).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(bench.query("SELECT count(*) FROM notes"), "2");
    let name = snapshot.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("memory.db"), "{name}");
    let log = client.read("SELECT ok, rows, json_extract(detail, '$.reason') AS why, json_extract(detail, '$.snapshot') AS file FROM query_log WHERE tool = 'destructive_query'");
    log.is(&format!("ok,rows,why,file\n1,1,clean up,{}\n# 1 rows", snapshot.display()));
}

#[test]
fn every_destructive_form_runs() {
    let bench = Bench::notes();
    bench.sql("CREATE VIEW v AS SELECT 1; CREATE VIRTUAL TABLE f USING fts5(a)");
    let mut client = Server::on(&bench).flags(&["--snapshots", "20"]).start();
    for (sql, starts) in [
        ("ALTER TABLE notes ADD COLUMN extra TEXT", "ok: ALTER TABLE notes; snapshot: "),
        ("ALTER TABLE notes RENAME COLUMN extra TO more", "ok: ALTER TABLE notes; snapshot: "),
        (
            "CREATE TRIGGER tr AFTER INSERT ON notes BEGIN UPDATE notes SET more = 'seen' WHERE id = new.id; END",
            "ok: CREATE TRIGGER tr; snapshot: ",
        ),
        ("UPDATE notes SET score = 0", "ok: 3 rows affected; snapshot: "),
        ("REPLACE INTO notes(id, title) VALUES (3, 'again')", "ok: 1 rows affected"),
        (
            "INSERT INTO notes(id, title) VALUES (1, 'x') ON CONFLICT DO UPDATE SET title = 'y'",
            "ok: 1 rows affected",
        ),
        ("DELETE FROM notes WHERE id = 2 RETURNING id", "ok: 1 rows affected; snapshot: "),
        ("DROP TRIGGER tr", "ok: DROP TRIGGER tr; snapshot: "),
        ("DROP INDEX tags_note", "ok: DROP INDEX tags_note; snapshot: "),
        ("DROP VIEW v", "ok: DROP VIEW v; snapshot: "),
        ("DROP TABLE tags", "ok: DROP TABLE tags; snapshot: "),
        ("DROP TABLE f", "ok: DROP TABLE"),
        ("ALTER TABLE notes DROP COLUMN more", "ok: ALTER TABLE notes; snapshot: "),
        ("ALTER TABLE notes RENAME TO n", "ok: ALTER TABLE notes; snapshot: "),
        ("DELETE FROM n", "ok: 2 rows affected; snapshot: "),
    ] {
        client.destroy(sql).ok().starts(starts).has("; snapshot: /");
    }
    assert_eq!(bench.snapshots().len(), 15);
    assert_eq!(bench.query("SELECT group_concat(name) FROM (SELECT name FROM sqlite_schema WHERE name IN ('n','notes','tags','tr','v','f','tags_note','f_data') ORDER BY 1)"), "n");
}

#[test]
fn a_refused_statement_costs_no_snapshot() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client.is_alive();
    let before = bench.content();
    for (sql, words) in [
        ("DROP TABLE nope", &["no such table: nope"] as &[&str]),
        ("DELETE FROM notes WHERE nope = 1", &["no such column: nope"]),
        ("DELETE FORM notes", &["syntax error"]),
        ("DROP TABLE query_log", &["`query_log`"]),
        ("DELETE FROM notes; DELETE FROM tags", &["one statement"]),
        ("INSERT INTO notes(title) VALUES ('x')", &["only adds", "write_query"]),
        ("CREATE TABLE t(a)", &["only adds", "write_query"]),
        ("CREATE INDEX i ON notes(title)", &["only adds", "write_query"]),
        ("CREATE VIRTUAL TABLE t USING fts5(a)", &["only adds", "write_query"]),
        ("CREATE VIEW v AS SELECT 1", &["create_view"]),
        ("SELECT 1", &["only reads", "read_query"]),
        ("VACUUM", &["VACUUM"]),
        ("ATTACH ':memory:' AS m", &["ATTACH"]),
        ("PRAGMA user_version = 1", &["PRAGMA user_version"]),
        ("", &["no statement"]),
        ("DELETE FROM notes WHERE id = ?", &["param"]),
    ] {
        client.destroy(sql).fails(words);
    }
    for reason in ["", "   ", "\n\t"] {
        client
            .call("destructive_query", json!({"query": "DELETE FROM notes", "reason": reason}))
            .fails(&["`reason`"]);
        client.call("snapshot", json!({"reason": reason})).fails(&["`reason`"]);
    }
    client.call("destructive_query", json!({"query": "DELETE FROM notes"})).fails(&["`reason` is missing"]);
    assert_eq!(bench.snapshots().len(), 0);
    assert_eq!(bench.content(), before);
}

#[test]
fn a_statement_that_fails_behind_its_snapshot_names_the_reason_and_the_snapshot() {
    let bench = Bench::notes();
    bench.sql("INSERT INTO tags(note_id, tag) VALUES (1, 'x')");
    let mut client = Server::on(&bench).start();
    let answer =
        client.call("destructive_query", json!({"query": "DELETE FROM notes", "reason": "all of it"}));
    answer.fails(&["FOREIGN KEY constraint failed", "reason: all of it"]);
    let snapshot = answer.found(r"a snapshot had been made: (\S+\.db)$");
    assert_eq!(count(Path::new(&snapshot), "notes"), 3);
    let log = client.read("SELECT ok, json_extract(detail, '$.reason') AS why, json_extract(detail, '$.snapshot') AS file FROM query_log WHERE tool = 'destructive_query'");
    log.is(&format!("ok,why,file\n0,all of it,{snapshot}\n# 1 rows"));
    assert_eq!(bench.query("SELECT count(*) FROM notes"), "3");
}

#[test]
fn no_snapshot_no_destruction() {
    let bench = Bench::notes();
    let folder = bench.folder().join("memory.db.snapshots");
    std::fs::write(&folder, "a file where the folder should be").unwrap();
    let mut client = Server::on(&bench).start();
    client
        .destroy("DELETE FROM notes")
        .fails_as("SNAPSHOT_FAILED", &["no snapshot could be made, so nothing was run"]);
    client.call("snapshot", json!({"reason": "x"})).fails_as("SNAPSHOT_FAILED", &["snapshot"]);
    assert_eq!(bench.query("SELECT count(*) FROM notes"), "3");
    assert_eq!(std::fs::read_to_string(&folder).unwrap(), "a file where the folder should be");
    client.is_alive();
}

#[test]
fn automatic_and_manual_snapshots_rotate_apart_and_touch_nothing_else() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--snapshots", "2"]).start();
    client.destroy("DELETE FROM tags").ok();
    let folder = bench.folder().join("memory.db.snapshots");
    for name in ["other.db", "memory.db.20200101T000000000Z.txt", "notes.txt"] {
        std::fs::write(folder.join(name), "not a snapshot").unwrap();
    }
    for reason in ["a", "b", "c"] {
        client.destroy("UPDATE notes SET score = 1").ok();
        client.call("snapshot", json!({"reason": reason})).ok().starts("ok: snapshot ");
    }
    let last = client.call("snapshot", json!({"reason": "last"})).snapshot();
    let found = bench.snapshots();
    assert_eq!(found.len(), 3 + 2 + 2, "{found:?}");
    assert!(found.contains(&last));
}

#[test]
fn turned_off_snapshots_are_said_and_manual_ones_stay() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--snapshots", "0"]).start();
    client
        .destroy("DELETE FROM notes WHERE id = 3")
        .is("ok: 1 rows affected; snapshots are disabled (--snapshots 0)");
    assert_eq!(bench.snapshots().len(), 0);
    for _ in 0..6 {
        client.call("snapshot", json!({"reason": "by hand"})).ok().has("automatic snapshots are disabled");
    }
    assert_eq!(bench.snapshots().len(), 5);
}

#[test]
fn a_snapshot_holds_what_is_still_in_the_wal_and_opens_elsewhere() {
    let bench = Bench::empty();
    let mut client = Server::on(&bench)
        .flags(&["--snapshot-dir", &bench.folder().join("a b").display().to_string()])
        .start();
    client.write("CREATE TABLE t(a)").ok();
    client.write("INSERT INTO t VALUES (1), (2)").ok();
    client.call("append_event", json!({"content": "kept"})).ok();
    let path = client.call("snapshot", json!({"reason": "x"})).snapshot();
    assert_eq!(path.parent().unwrap(), bench.folder().join("a b"));
    drop(client);
    let copy = Bench::empty();
    std::fs::copy(&path, copy.path()).unwrap();
    let mut client = Server::on(&copy).start();
    client.read("SELECT count(*) AS n FROM t").is("n\n2\n# 1 rows");
    let status = client.call("verify_chain", json!({})).json();
    assert_eq!((&status["ok"], &status["events"]), (&json!(true), &json!(1)));
}

#[test]
fn a_snapshot_folder_that_cannot_be_made_is_named_with_its_cause() {
    let bench = Bench::notes();
    let plain = bench.folder().join("plain");
    std::fs::write(&plain, "no folder").unwrap();
    let folder = plain.join("below");
    let mut client = Server::on(&bench).flags(&["--snapshot-dir", folder.to_str().unwrap()]).start();
    client.destroy("DELETE FROM notes").fails(&[folder.to_str().unwrap(), "Not a directory"]);
    client.call("snapshot", json!({"reason": "a test"})).fails(&["Not a directory"]);
    client.read("SELECT count(*) > 0 AS there FROM notes").has("1");
}
