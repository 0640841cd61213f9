//! query_log, query_errors and the log file: every call leaves its row, whatever becomes of it.

use crate::support::{Answer, Bench, Client, Server};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

const ENDLESS: &str =
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

#[track_caller]
fn logged(client: &mut Client, columns: &str, tool: &str) -> Vec<String> {
    let sql = format!(
        "SELECT {columns} FROM query_log WHERE tool = '{tool}' AND coalesce(query, '') NOT LIKE '%query_log%' ORDER BY id"
    );
    let text = client.read(&sql).ok().text.clone();
    let lines: Vec<&str> = text.lines().collect();
    lines[1..lines.len() - 1].iter().map(|line| (*line).to_owned()).collect()
}

#[test]
fn every_tool_leaves_a_row_for_success_failure_and_bad_arguments() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    for (tool, good, failing) in [
        (
            "write_query",
            json!({"query": "INSERT INTO notes(title) VALUES ('x')"}),
            json!({"query": "INSERT INTO nope VALUES (1)"}),
        ),
        (
            "destructive_query",
            json!({"query": "DELETE FROM tags", "reason": "r"}),
            json!({"query": "DELETE FROM nope", "reason": "r"}),
        ),
        ("list_tables", json!({}), json!({"include_row_counts": "perhaps"})),
        ("describe_table", json!({"table": "notes"}), json!({"table": "nope"})),
        ("get_schema", json!({}), json!({"include_system": 7})),
        (
            "create_view",
            json!({"name": "v", "select_sql": "SELECT 1"}),
            json!({"name": "v", "select_sql": "SELECT 1"}),
        ),
        ("append_event", json!({"content": "e"}), json!({"content": " "})),
        ("snapshot", json!({"reason": "r"}), json!({"reason": ""})),
        ("verify_chain", json!({}), json!({"x": 1})),
        ("checkpoint", json!({"summary": "s"}), json!({"summary": ""})),
        ("get_resume_context", json!({}), json!({"max_events": 0})),
        ("search_text", json!({"pattern": "a", "table": "notes"}), json!({"pattern": "(", "table": "notes"})),
        ("read_query", json!({"query": "SELECT 1"}), json!({"query": "SELECT nope"})),
    ] {
        client.call(tool, good).ok();
        let error = client.call(tool, failing).fails(&[]).text.clone();
        client.call(tool, json!({"wrong_argument": 1})).fails(&["`wrong_argument`"]);
        let rows = logged(&mut client, "ok, error IS NULL", tool);
        assert_eq!(rows[..3], ["1,1", "0,0", "0,0"], "{tool}");
        let first = error.split(['"', '\n', ',']).next().unwrap();
        let errors = logged(&mut client, "error", tool);
        assert!(errors[1].contains(first), "{tool}: {errors:?} lacks {first}");
        assert!(errors[2].contains("wrong_argument"), "{tool}: {errors:?}");
    }
    client
        .read("SELECT count(*) AS bad FROM query_log WHERE session = '' OR ts NOT GLOB '20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z' OR duration_ms IS NULL OR duration_ms < 0 OR NOT json_valid(coalesce(detail, '{}'))")
        .is("bad\n0\n# 1 rows");
    client.read("SELECT count(DISTINCT session) AS n FROM query_log").is("n\n1\n# 1 rows");
    let newest = client.read("SELECT tool FROM query_errors LIMIT 2");
    newest.is("tool\nread_query\nread_query\n# 2 rows");
}

#[test]
fn rows_stand_in_the_order_of_the_calls_with_what_they_asked() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client.read("SELECT 1 AS a").ok();
    client.read("SELECT * FROM nope").fails(&[]);
    client.call("list_tables", json!({})).ok();
    client.write("INSERT INTO notes(title) VALUES ('x'), ('y')").ok();
    client.call("append_event", json!({"content": "e", "kind": "k"})).ok();
    client.call("search_text", json!({"pattern": "(", "table": "notes"})).fails(&[]);
    client.call("read_query", json!({"query": "SELECT ? AS p", "params": [7], "limit": 3})).ok();
    client.read("SELECT tool, ok, rows, query FROM query_log ORDER BY id").is(
        "tool,ok,rows,query\nread_query,1,1,SELECT 1 AS a\nread_query,0,,SELECT * FROM nope\nlist_tables,1,6,\n\
         write_query,1,2,\"INSERT INTO notes(title) VALUES ('x'), ('y')\"\nappend_event,1,1,\nsearch_text,0,,(\nread_query,1,1,SELECT ? AS p\n# 7 rows",
    );
    client.read("SELECT tool, error FROM query_errors").is("tool,error\nsearch_text,\"`pattern` is not a valid regex: unclosed group; to search for the text as it is, set `fixed_strings` to true\"\nread_query,no such table: nope\n# 2 rows");
    for (tool, path, value) in [
        ("append_event", "$.kind", "k"),
        ("append_event", "$.event", "1"),
        ("search_text", "$.table", "notes"),
        ("read_query", "$.params[0]", "7"),
        ("read_query", "$.limit", "3"),
    ] {
        let found = logged(&mut client, &format!("json_extract(detail, '{path}')"), tool);
        assert!(found.contains(&value.to_owned()), "{tool} {path}: {found:?}");
    }
}

#[test]
fn the_first_row_of_a_session_carries_the_digests_of_manifest_and_policy() {
    let bench = Bench::notes();
    let first_calls: [fn(&mut Client) -> Answer; 4] = [
        |client| client.read("SELECT 1"),
        |client| client.write("INSERT INTO notes(title) VALUES ('x')"),
        |client| client.call("append_event", json!({"content": "x"})),
        |client| client.call("read_query", json!({})),
    ];
    for call in first_calls {
        let mut client = Server::on(&bench).start();
        call(&mut client);
        client.read("SELECT 2").ok();
        let session = client.read("SELECT session FROM query_log ORDER BY id DESC LIMIT 1").found("\n(.+)\n");
        client
            .read(&format!(
                "SELECT length(json_extract(detail, '$.manifest_sha256')) AS m, length(json_extract(detail, '$.policy_sha256')) AS p FROM query_log WHERE session = '{session}' ORDER BY id LIMIT 2"
            ))
            .is("m,p\n64,64\n,\n# 2 rows");
    }
}

#[test]
fn stopped_and_cancelled_calls_leave_rows_too() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--query-timeout", "0.3"]).start();
    client.read(ENDLESS).fails_as("TIMEOUT", &[]);
    assert_eq!(logged(&mut client, "ok, error LIKE '%0.3 s%', duration_ms >= 300", "read_query")[0], "0,1,1");
    drop(client);
    let mut client = Server::on(&bench).start();
    let id = client.send_call("read_query", json!({"query": ENDLESS}));
    std::thread::sleep(std::time::Duration::from_millis(100));
    client.notify("notifications/cancelled", json!({"requestId": id, "reason": "enough"}));
    client.is_alive();
    let found = crate::support::wait_until(|| {
        client
            .read("SELECT count(*) AS n FROM query_log WHERE error LIKE '%cancelled%' AND NOT ok")
            .text
            .starts_with("n\n1\n")
    });
    assert!(found, "no row of the cancelled call");
}

#[test]
fn a_very_long_statement_is_kept_shortened() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client.read(&format!("SELECT '{}' AS s", "ž".repeat(200_000))).ok();
    client
        .call("read_query", json!({"query": "SELECT length(?) AS n", "params": ["y".repeat(100_000)]}))
        .ok();
    let rows = logged(
        &mut client,
        "length(query) < 100100, query LIKE '%bytes]', length(detail) < 3000",
        "read_query",
    );
    assert_eq!(rows[..2], ["1,1,1", "1,0,1"]);
}

#[test]
fn no_argument_is_logged_longer_than_a_statement() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let long = "x".repeat(2_000_000);
    for (tool, arguments) in [
        ("describe_table", json!({"table": long})),
        ("search_text", json!({"pattern": "a", "table": "notes", "columns": [long]})),
        ("get_resume_context", json!({"exclude_kinds": [long]})),
        ("append_event", json!({"content": "x", "kind": long})),
        ("create_view", json!({"name": long, "select_sql": "SELECT 1"})),
        ("snapshot", json!({"reason": long})),
        ("destructive_query", json!({"query": "DELETE FROM tags", "reason": long})),
    ] {
        let answer = client.call(tool, arguments);
        assert!(answer.text.len() < 5000, "{tool}: {} bytes", answer.text.len());
    }
    // A reason that is too long is refused before it is noted.
    client
        .read("SELECT count(*) AS n, max(length(detail)) < 101000 AS kept FROM query_log WHERE detail LIKE '%[2000000 bytes]%' OR detail LIKE '%[2000004 bytes]%'")
        .is("n,kept\n5,1\n# 1 rows");
}

#[test]
fn a_search_and_a_view_are_logged_with_what_makes_them() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let search = json!({"pattern": "A", "table": "notes", "ignore_case": true, "fixed_strings": true, "key_column": "title", "limit": 3});
    client.call("search_text", search).ok();
    client
        .call("create_view", json!({"name": "v", "select_sql": "SELECT nope", "description": "d"}))
        .fails(&[]);
    let details =
        client.read("SELECT detail FROM query_log WHERE tool IN ('search_text', 'create_view') ORDER BY id");
    details.has(r#"""table"":""notes"",""key_column"":""title"",""ignore_case"":true,""fixed_strings"":true,""limit"":3"#);
    details.has(r#"""name"":""v"",""replace"":false,""description"":""d"""#);
}

#[test]
fn the_log_file_has_one_line_of_json_for_each_call() {
    let bench = Bench::notes();
    let path = bench.folder().join("audit log.jsonl");
    let mut client = Server::on(&bench).flags(&["--audit-log", path.to_str().unwrap()]).start();
    client.read("SELECT 'two\nlines \u{7f}\u{85}\u{2028}' AS s").ok();
    client.read("SELECT nope").fails(&[]);
    client.write("INSERT INTO notes(title) VALUES ('x')").ok();
    client.call("append_event", json!({"content": "e"})).ok();
    client.call("read_query", json!({})).fails(&[]);
    client.close();
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let tools: Vec<(&str, bool)> =
        lines.iter().map(|line| (line["tool"].as_str().unwrap(), line["ok"].as_bool().unwrap())).collect();
    assert_eq!(
        tools,
        [
            ("read_query", true),
            ("read_query", false),
            ("write_query", true),
            ("append_event", true),
            ("read_query", false)
        ]
    );
    assert_eq!(lines[0]["query"], "SELECT 'two\nlines \u{7f}\u{85}\u{2028}' AS s");
    assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{2028}'), "{text}");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(bench.query("SELECT count(*) FROM query_log"), "5");
}

#[test]
fn the_count_of_the_log_has_the_rows_of_all_calls_before() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    for n in 0..20 {
        client.call("read_query", json!({"query": "SELECT 1"})).ok();
        client.call("list_tables", json!({})).has(&format!("query_log,table,1,{}\n", 2 * n + 1));
    }
}
