//! `--audit-log` is the explorer's trail: one line of JSON for every call and request; the file has none.

use crate::support::Bench;
use crate::{Desk, ENDLESS, MUSIC};
use serde_json::{Value, json};

#[test]
fn every_call_and_request_is_one_line_and_none_is_in_the_file() {
    let bench = Bench::with(MUSIC);
    let elsewhere = tempfile::tempdir().unwrap();
    let path = elsewhere.path().join("audit.jsonl");
    let before = bench.files();
    let mut desk = Desk::with(&bench, &["--query-timeout", "0.3", "--audit-log", path.to_str().unwrap()]);
    desk.call("list_tables", json!({})).ok();
    desk.call("describe_table", json!({"table": "tracks"})).ok();
    desk.call("sample_rows", json!({"table": "tracks", "columns": ["id"], "limit": 3, "random": true})).ok();
    desk.call(
        "run_query",
        json!({"sql": "SELECT ? AS a", "params": ["two\nlines \u{1b}[0m \u{85}\u{2028}"], "max_rows": 5}),
    )
    .ok();
    desk.query("SELECT 'two\nlines \u{7f}'").ok();
    desk.query("DELETE FROM tracks").fails(&[]);
    desk.query(ENDLESS).fails(&[]);
    desk.call("run_query", json!({"sql": 1})).fails(&[]);
    desk.call("explain_query", json!({"sql": "SELECT 1"})).ok();
    desk.client.call("nope", json!({})).fails(&[]);
    desk.client.request("resources/list", json!({}));
    desk.client.request("resources/read", json!({"uri": "sqlite://table/tracks"}));
    desk.client.request("resources/read", json!({"uri": "sqlite://table/nope"}));
    desk.client.request("prompts/get", json!({"name": "analyse-table", "arguments": {"table": "tracks"}}));
    desk.client.request("prompts/get", json!({"name": "analyse-table", "arguments": {}}));
    desk.client.close();

    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<(&str, bool)> =
        lines.iter().map(|line| (line["tool"].as_str().unwrap(), line["ok"].as_bool().unwrap())).collect();
    let expected = [
        ("list_tables", true),
        ("describe_table", true),
        ("sample_rows", true),
        ("run_query", true),
        ("run_query", true),
        ("run_query", false),
        ("run_query", false),
        ("run_query", false),
        ("explain_query", true),
        ("nope", false),
        ("resources/list", true),
        ("resources/read", true),
        ("resources/read", false),
        ("prompts/get", true),
        ("prompts/get", false),
    ];
    assert_eq!(told, expected);
    assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{2028}'), "{text}");
    assert_eq!(lines[4]["query"], "SELECT 'two\nlines \u{7f}'");
    let detail = lines[3]["detail"].to_string();
    assert!(detail.contains("two") && detail.contains("limit"), "{detail}");
    assert_eq!(
        (&lines[0]["rows"], &lines[2]["rows"], &lines[5]["query"]),
        (&json!(4), &json!(3), &json!("DELETE FROM tracks"))
    );
    assert!(lines[5]["error"].as_str().unwrap().contains("run_query takes one SELECT"), "{}", lines[5]);
    assert_eq!(bench.files(), before);
}
