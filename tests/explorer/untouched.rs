//! The file is never changed: its bytes and its folder's are the same before and after, whatever is tried.

use crate::support::hostile::{HOSTILE, Hostile};
use crate::support::{Bench, Server};
use crate::{Desk, ENDLESS, MUSIC};
use serde_json::{Value, json};

/// Everything that the explorer can be asked, and all that it should not be.
fn try_everything(desk: &mut Desk) {
    for Hostile { sql, .. } in HOSTILE {
        desk.query(sql).fails(&[]);
        desk.call("explain_query", json!({"sql": sql})).fails(&[]);
        for tool in ["describe_table", "sample_rows"] {
            desk.call(tool, json!({"table": sql})).fails(&[]);
        }
    }
    desk.call("list_tables", json!({})).ok();
    for table in ["artists", "albums", "tracks", "long_tracks"] {
        desk.call("describe_table", json!({"table": table})).ok();
        for random in [false, true] {
            desk.call("sample_rows", json!({"table": table, "random": random})).ok();
        }
    }
    desk.query("SELECT t.*, random() FROM tracks t ORDER BY title DESC, random()").ok();
    // A sort and a distinct that go through temporary files, and one that is cut off.
    desk.query("SELECT DISTINCT randomblob(100) AS r FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 50000) SELECT x FROM c) ORDER BY r").ok();
    desk.query(ENDLESS).fails_as("TIMEOUT", &[]);
    for (method, params) in [
        ("resources/list", json!({})),
        ("resources/read", json!({"uri": "sqlite://schema"})),
        ("resources/read", json!({"uri": "sqlite://table/tracks"})),
        (
            "prompts/get",
            json!({"name": "analyse-table", "arguments": {"table": "tracks", "focus": "DROP TABLE tracks"}}),
        ),
    ] {
        assert!(desk.client.request(method, params)["result"].is_object(), "{method}");
    }
}

#[test]
fn a_file_in_rollback_mode_and_its_folder_stay_byte_for_byte() {
    for mode in ["delete", "persist", "truncate"] {
        let bench = Bench::with(&format!("PRAGMA journal_mode = {mode};{MUSIC}"));
        let before = bench.files();
        let mut desk = Desk::with(&bench, &["--query-timeout", "1"]);
        try_everything(&mut desk);
        assert_eq!(bench.files(), before, "{mode}, while it is served");
        desk.client.close();
        assert_eq!(bench.files(), before, "{mode}");
        if mode == "delete" {
            // Killed instead of ended.
            let mut desk = Desk::on(&bench);
            desk.is_alive();
            desk.send_query(ENDLESS);
            desk.client.kill();
            assert_eq!(bench.files(), before);
        }
    }
}

#[test]
fn a_file_in_wal_mode_stays_byte_for_byte_with_immutable() {
    let bench = Bench::with(&format!("PRAGMA journal_mode = WAL;{MUSIC}"));
    let before = bench.files();
    assert_eq!(before.len(), 1, "{before:?}");
    let mut desk = Desk::with(&bench, &["--query-timeout", "2", "--immutable"]);
    try_everything(&mut desk);
    assert_eq!(bench.files(), before, "while it is served");
    desk.client.close();
    assert_eq!(bench.files(), before);
}

#[test]
fn a_file_in_wal_mode_keeps_its_own_bytes_without_immutable() {
    let bench = Bench::with(&format!("PRAGMA journal_mode = WAL;{MUSIC}"));
    // Somebody works on it, and has changes in the WAL.
    let writer = bench.open();
    writer.execute_batch("INSERT INTO artists VALUES (3, 'Cy')").unwrap();
    let bytes = std::fs::read(bench.path()).unwrap();
    let mut desk = Desk::with(&bench, &["--query-timeout", "1"]);
    try_everything(&mut desk);
    assert_eq!(desk.rows("SELECT count(*) FROM artists"), json!([[3]]));
    writer.execute_batch("INSERT INTO artists VALUES (4, 'Di')").unwrap();
    assert_eq!(desk.rows("SELECT count(*) FROM artists"), json!([[4]]), "what others write is seen");
    desk.client.close();
    assert_eq!(std::fs::read(bench.path()).unwrap(), bytes, "nothing was moved from the WAL into the file");
    drop(writer);
    assert_eq!(bench.query("SELECT count(*) FROM artists"), "4");
    assert_eq!(bench.query("PRAGMA integrity_check"), "ok");
}

#[test]
fn no_table_of_the_server_s_own_is_made_and_none_is_hidden() {
    let bench = Bench::with(MUSIC);
    Server::on(&bench).start().call("append_event", json!({"content": "hello"})).ok();
    let mut desk = Desk::on(&bench);
    let listed = desk.data("list_tables", json!({}));
    let names: Vec<&Value> =
        listed["tables"].as_array().unwrap().iter().map(|table| &table["name"]).collect();
    for name in ["memory_events", "memory_checkpoints", "query_log", "query_errors"] {
        assert!(names.contains(&&json!(name)), "{name}: {names:?}");
    }
    assert_eq!(desk.rows("SELECT content FROM memory_events"), json!([["hello"]]));
    let rows = desk.rows("SELECT count(*) FROM query_log");
    assert_eq!(desk.rows("SELECT count(*) FROM query_log"), rows, "reading leaves no row");
}
