//! `indelible snapshots` with --data, as a person runs it.

use crate::stdio::Desk;
use crate::support::Server;
use serde_json::{Value, json};
use std::path::Path;

fn snapshots(data: &Path, words: &[&str]) -> (i32, String, String) {
    let place = ["--data", data.to_str().unwrap(), "--group", "g"];
    Server::bare().flags(&["snapshots"]).flags(words).flags(&place).run()
}

#[track_caller]
fn done(data: &Path, words: &[&str]) -> String {
    let (status, said, wrong) = snapshots(data, words);
    assert_eq!((status, wrong.as_str()), (0, ""), "{words:?}: {said}");
    said
}

#[track_caller]
fn refused(data: &Path, words: &[&str], status: i32, expected: &str) {
    let (found, said, wrong) = snapshots(data, words);
    assert_eq!((found, said.as_str()), (status, ""), "{words:?}: {wrong}");
    assert!(wrong.contains(expected) && wrong.lines().count() == 1, "{words:?}: {wrong}");
}

#[test]
fn a_person_keeps_lists_and_restores_while_no_server_has_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    refused(&data, &["list"], 1, "no data folder");
    refused(&data, &["create"], 1, "no data folder");
    let mut desk = Desk::at(&data);
    desk.ok("primitive_create", json!({"type": "kv", "name": "state"}));
    desk.ok("primitive_create", json!({"type": "db", "name": "orders"}));
    desk.ok("kv_set", json!({"key": "a", "value": 1}));
    desk.ok("db_exec", json!({"sql": "CREATE TABLE t(a)"}));
    assert_eq!(done(&data, &["list"]), "no snapshots\n");
    assert_eq!(done(&data, &["list", "--json"]), "[]\n");
    let made = desk.ok("primitive_snapshot", json!({"primitive": "state", "label": "before"}));
    let id = made["id"].as_str().unwrap();
    desk.ok("kv_set", json!({"key": "a", "value": 2}));
    // Beside a server they are listed, and nothing else.
    let listed = done(&data, &["list"]);
    let lines: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["primitive", "snapshot", "kind", "made", "bytes", "label"]);
    assert_eq!((lines[1][0], lines[1][1], lines[1][2], lines[1][5]), ("state", id, "manual", "before"));
    refused(&data, &["create", "--primitive", "state"], 1, "another server has the data folder");
    refused(&data, &["restore", id], 1, "another server has the data folder");
    assert_eq!(desk.ok("kv_get", json!({"key": "a"}))["data"]["value"], 2);
    drop(desk);
    refused(&data, &["restore", "nope"], 1, "has no snapshot `nope`");
    refused(&data, &["restore", id, "--primitive", "orders"], 1, "has no snapshot");
    refused(&data, &["create"], 1, "the group has 2 primitives");
    refused(&data, &["create", "--primitive", "orders", "--label", "a\nb"], 1, "`label` must be one line");
    refused(&data, &["show", id], 2, "show and verify are for snapshots of a database");
    let restored = done(&data, &["restore", id]);
    assert!(restored.starts_with(&format!("ok: state restored from {id}; snapshot: ")), "{restored}");
    let made: Value =
        serde_json::from_str(&done(&data, &["create", "--primitive", "orders", "--label", "x", "--json"]))
            .unwrap();
    assert_eq!(
        (&made["primitive"], &made["label"], &made["kind"]),
        (&json!("orders"), &json!("x"), &json!("manual"))
    );
    let listed: Value = serde_json::from_str(&done(&data, &["list", "--json"])).unwrap();
    let kinds: Vec<&Value> = listed.as_array().unwrap().iter().map(|one| &one["kind"]).collect();
    assert_eq!(kinds, ["manual", "auto", "manual"], "{listed}");
    let orders: Value =
        serde_json::from_str(&done(&data, &["list", "--json", "--primitive", "orders"])).unwrap();
    assert_eq!(orders.as_array().unwrap().len(), 1);
    let mut desk = Desk::at(&data);
    assert_eq!(desk.ok("kv_get", json!({"key": "a"}))["data"]["value"], 1);
}

#[test]
fn what_is_for_the_other_kind_of_snapshot_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE t(a)").unwrap();
    let rows: [(&[&str], &str); 4] = [
        (&["create"], "create is for snapshots of primitives: give --data DIR"),
        (&["restore", "x"], "no reason: give --reason TEXT"),
        (&["list", "--primitive", "p"], "--primitive is for snapshots of primitives"),
        (&["restore", "x", "--primitive", "p"], "--primitive is for snapshots of primitives"),
    ];
    for (words, expected) in rows {
        let (status, line) = Server::bare()
            .flags(&["snapshots"])
            .flags(words)
            .flags(&["--db", path.to_str().unwrap()])
            .refusal();
        assert_eq!(status, 2, "{words:?} {line}");
        assert!(line.contains(expected), "{words:?} {line}");
    }
}
