//! tools/list and the instructions as a client gets them.

use crate::support::{Bench, Server};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn tools(list: &Value) -> &Vec<Value> {
    list["result"]["tools"].as_array().unwrap()
}

#[test]
fn fifteen_tools_with_truthful_hints_and_described_arguments() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let list = client.request("tools/list", json!({}));
    let names: BTreeSet<&str> = tools(&list).iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let reads = [
        "read_query",
        "list_snapshots",
        "list_tables",
        "describe_table",
        "get_schema",
        "verify_chain",
        "get_resume_context",
        "search_text",
    ];
    let destroys = ["destructive_query", "restore_snapshot"];
    let writes = ["write_query", "create_view", "append_event", "snapshot", "checkpoint"];
    assert_eq!(names, reads.iter().chain(&writes).chain(&destroys).copied().collect());
    for tool in tools(&list) {
        let name = tool["name"].as_str().unwrap();
        for text in ["title", "description"] {
            assert!(tool[text].as_str().is_some_and(|text| !text.is_empty()), "{name}.{text}");
        }
        assert!(tool["description"].as_str().unwrap().chars().count() <= 1024, "{name}");
        let hints = &tool["annotations"];
        assert_eq!(hints["readOnlyHint"], reads.contains(&name), "{name}");
        assert_eq!(hints["destructiveHint"], destroys.contains(&name), "{name}");
        assert_eq!(hints["openWorldHint"], false, "{name}");
        assert!(hints["idempotentHint"].is_boolean(), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
    }
    assert!(list["result"].to_string().len() <= 16_000);
}

#[test]
fn tools_list_is_the_same_in_every_run_and_on_every_file() {
    let lists: Vec<Value> = [Bench::notes(), Bench::empty()]
        .iter()
        .flat_map(|bench| {
            [0, 1].map(|_| Server::on(bench).start().request("tools/list", json!({}))["result"].clone())
        })
        .collect();
    let texts: BTreeSet<String> = lists.iter().map(Value::to_string).collect();
    assert_eq!(texts.len(), 1);
}

#[test]
fn the_schema_and_the_checks_follow_the_settings() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--max-rows", "50", "--default-limit", "20"]).start();
    let list = client.request("tools/list", json!({}));
    let read = tools(&list).iter().find(|tool| tool["name"] == "read_query").unwrap();
    let limit = &read["inputSchema"]["properties"]["limit"];
    assert_eq!(
        (&limit["minimum"], &limit["maximum"], &limit["default"]),
        (&json!(1), &json!(50), &json!(20))
    );
    client
        .call("read_query", json!({"query": "SELECT 1", "limit": 51}))
        .fails_as("INVALID_ARGUMENTS", &["`limit` must be between 1 and 50, got 51"]);
    client
        .read("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 60) SELECT x FROM c")
        .ends("# 20 rows; more rows exist (limit 20, maximum 50)");
}

#[test]
fn the_instructions_tell_an_agent_how_to_begin_and_that_rows_are_data() {
    let bench = Bench::notes();
    let client = Server::on(&bench).start();
    let text = client.initialized["instructions"].as_str().unwrap();
    for words in [
        "get_resume_context",
        "append_event",
        "checkpoint",
        "destructive_query",
        "query_errors",
        "never instructions",
    ] {
        assert!(text.contains(words), "no {words} in {text}");
    }
    assert!(client.initialized["capabilities"]["tools"].is_object());
    assert_eq!(client.initialized["serverInfo"]["name"], "indelible");
}

#[test]
fn socket_pairs_serve_as_pipes_do() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).over_sockets().start();
    client.write("INSERT INTO notes(title) VALUES ('x')").is("ok: 1 rows affected (last_insert_rowid=4)");
    let long = "ž".repeat(1_000_000);
    client
        .call("read_query", json!({"query": "SELECT length(?) AS n", "params": [long]}))
        .is("n\n1000000\n# 1 rows");
    let ended = client.close();
    assert!(ended.status.success() && ended.said.is_empty(), "{ended:?}");
}
