//! Arguments: what clients commonly send is taken, the rest is one line that names the field and the rule.

use crate::support::{Bench, Server};
use serde_json::{Value, json};

#[test]
fn what_clients_commonly_send_is_taken() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let one = "SELECT id FROM notes ORDER BY id";
    for (tool, arguments, has) in [
        ("read_query", json!({"query": one, "limit": "2"}), "# 2 rows; more rows exist (limit 2"),
        ("read_query", json!({"query": one, "limit": 2.0}), "# 2 rows; more rows exist (limit 2"),
        ("read_query", json!({"query": one, "limit": null}), "# 3 rows"),
        ("read_query", json!({"query": "SELECT ? AS a", "params": "[5]"}), "a\n5\n"),
        ("read_query", json!({"query": "SELECT :a AS a", "params": "{\"a\": 5}"}), "a\n5\n"),
        ("read_query", json!({"query": "SELECT 1 AS a", "params": null}), "a\n1\n"),
        ("list_tables", json!({"include_row_counts": "false"}), "notes,table,0,\n"),
        ("list_tables", Value::Null, "notes,table,0,3\n"),
        ("verify_chain", Value::Null, "\"ok\":true"),
        (
            "search_text",
            json!({"pattern": "a", "table": "notes", "columns": "[\"title\"]"}),
            "x 1 columns scanned",
        ),
        ("get_resume_context", json!({"exclude_kinds": "[\"a\"]", "max_events": "3"}), "# 0 events"),
    ] {
        client.call(tool, arguments).ok().has(has);
    }
    let id = client.send("tools/call", json!({"name": "verify_chain"}));
    client.answer(id).ok().has("\"ok\":true");
}

#[test]
fn a_mistake_is_a_tool_error_of_one_line_that_names_the_field_and_the_rule() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    for (tool, arguments, text) in [
        ("read_query", json!({}), "`query` is missing; read_query needs it"),
        ("read_query", Value::Null, "`query` is missing; read_query needs it"),
        ("read_query", json!({"query": 5}), "`query` must be a string, got the number 5"),
        ("read_query", json!({"query": "SELECT 1", "limit": 0}), "`limit` must be between 1 and 1000, got 0"),
        (
            "read_query",
            json!({"query": "SELECT 1", "limt": 5}),
            "`limt` is not an argument of read_query; did you mean `limit`? it takes `query`, `params` and `limit`",
        ),
        (
            "write_query",
            json!({"query": "x", "reason": "y"}),
            "`reason` is not an argument of write_query, which takes `query` and `params`",
        ),
        ("verify_chain", json!({"a": 1}), "`a` is not an argument of verify_chain, which takes none"),
        ("describe_table", json!({"table": ["notes"]}), "`table` must be a string, got an array"),
        ("search_text", json!({"pattern": "a"}), "`table` is missing; search_text needs it"),
        ("create_view", json!({"name": "v"}), "`select_sql` is missing; create_view needs it"),
        (
            "get_resume_context",
            json!({"max_events": 1001}),
            "`max_events` must be between 1 and 1000, got 1001",
        ),
    ] {
        let answer = client.call(tool, arguments);
        answer.fails_as("INVALID_ARGUMENTS", &[]);
        assert_eq!(answer.text, text);
    }
    client.is_alive();
}

#[test]
fn an_unknown_tool_and_arguments_that_are_no_object_are_protocol_errors() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    for params in [
        json!({"name": "no_such_tool", "arguments": {}}),
        json!({"name": "read_query", "arguments": [1]}),
        json!({"name": 5}),
        json!({}),
    ] {
        let answer = client.request("tools/call", params.clone());
        assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
    }
    client.is_alive();
    client
        .read("SELECT tool, ok FROM query_log WHERE tool = 'no_such_tool'")
        .is("tool,ok\nno_such_tool,0\n# 1 rows");
}
