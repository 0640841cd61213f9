//! What a client is offered before it calls anything, and what it costs.

use crate::support::{Bench, Server};
use crate::{Desk, MUSIC};
use serde_json::{Value, json};

#[test]
fn five_tools_that_only_read_each_with_an_output_schema() {
    let bench = Bench::with(MUSIC);
    let mut client = Server::on(&bench).flags(&["--profile", "explorer"]).start();
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let tools = tools.as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["list_tables", "describe_table", "sample_rows", "run_query", "explain_query"]);
    for tool in tools {
        let hints = json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false});
        assert_eq!(tool["annotations"], hints, "{tool}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
    }
    let parameters = &tools[3]["inputSchema"]["properties"];
    let names: Vec<&String> = parameters.as_object().unwrap().keys().collect();
    assert_eq!(names, ["sql", "params", "max_rows"]);
    assert_eq!(
        (&parameters["max_rows"]["maximum"], &parameters["max_rows"]["default"]),
        (&json!(500), &json!(50))
    );
    for name in ["read_query", "write_query", "nope"] {
        let params = json!({"name": name, "arguments": {}});
        assert_eq!(client.request("tools/call", params)["error"]["code"], -32602, "{name}");
    }
}

#[test]
fn the_lists_of_tools_stay_within_their_budgets() {
    let bench = Bench::with(MUSIC);
    // As clients put them before the model: every byte is paid for in each session. 12,600 bytes of these words
    // and schemas are a little less than 3,000 tokens (o200k, counted: 4.25 bytes a token).
    for (profile, most) in [("explorer", 6_000), ("memory", 12_600)] {
        let mut client = Server::on(&bench).flags(&["--profile", profile]).start();
        let list = client.request("tools/list", json!({}))["result"]["tools"].to_string();
        assert!(list.len() <= most, "{profile}: {} bytes, more than {most}", list.len());
    }
}

#[test]
fn the_schema_checker_notices_what_does_not_fit() {
    use crate::support::violation;
    let schema = json!({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "array", "items": {"type": "integer"}}, "b": {"enum": [null, "x"]}}});
    for (value, fits) in [
        (json!({"a": []}), true),
        (json!({"a": [1, 2], "b": null, "c": 1}), true),
        (json!({"a": [1, "2"]}), false),
        (json!({"a": [1.5]}), false),
        (json!({"a": [], "b": "y"}), false),
        (json!({"b": "x"}), false),
        (json!([]), false),
    ] {
        assert_eq!(violation(&schema, &value).is_none(), fits, "{value}");
    }
    assert!(violation(&json!({"anyOf": []}), &Value::Null).is_some());
}

#[test]
fn a_call_without_arguments_or_with_wrong_ones_is_named() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::on(&bench);
    for (tool, arguments, words) in [
        ("run_query", json!({}), "`sql`"),
        ("run_query", json!({"query": "SELECT 1"}), "`query`"),
        ("run_query", json!({"sql": 1}), "`sql`"),
        ("run_query", json!({"sql": "SELECT 1", "max_rows": 501}), "`max_rows`"),
        ("run_query", json!({"sql": "SELECT 1", "max_rows": 0}), "`max_rows`"),
        ("run_query", json!({"sql": "SELECT 1", "params": 7}), "`params`"),
        ("sample_rows", json!({"table": "tracks", "limit": 1.5}), "`limit`"),
        ("sample_rows", json!({"table": "tracks", "columns": "title"}), "`columns`"),
        ("sample_rows", json!({"table": "tracks", "random": "perhaps"}), "`random`"),
        ("describe_table", json!({"table": null}), "`table`"),
        ("list_tables", json!({"include_row_counts": true}), "`include_row_counts`"),
    ] {
        desk.call(tool, arguments).fails_as("INVALID_ARGUMENTS", &[words]);
    }
    desk.is_alive();
}
