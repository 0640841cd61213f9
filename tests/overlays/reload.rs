//! Files that change while the server runs.

use super::{Files, names, notes, tool};
use crate::support::{Bench, Client, Server, wait_until};
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;

const CHANGED: &str = "notifications/tools/list_changed";
const SOON: Duration = Duration::from_secs(20);

fn titled(title: &str) -> String {
    format!("tools:\n  - {{tool: read_query, title: {title}}}\n")
}

fn title(client: &mut Client) -> Value {
    tool(client, "read_query")["title"].clone()
}

fn hang_up(client: &Client) {
    assert!(Command::new("kill").args(["-HUP", &client.pid().to_string()]).status().unwrap().success());
}

#[test]
fn a_changed_file_changes_the_tools_and_clients_are_told() {
    let bench = Bench::notes();
    let files = Files::new();
    let file = files.write("a.yaml", &titled("First"));
    let mut client = notes(&bench, &[&file]).start();
    assert_eq!(client.initialized["capabilities"]["tools"], json!({"listChanged": true}));
    assert_eq!(title(&mut client), "First");
    files.write("a.yaml", &titled("Other"));
    assert!(client.is_told(CHANGED, SOON).is_some(), "{}", client.stderr());
    assert_eq!(title(&mut client), "Other");
    files.write("a.yaml", &format!("{}hide: [snapshot]\n", titled("Other")));
    assert!(client.is_told(CHANGED, SOON).is_some());
    assert!(!names(&mut client).contains(&"snapshot".to_owned()));
    client.call("snapshot", json!({"reason": "x"})).fails_as("-32602", &["unknown tool `snapshot`"]);
}

#[test]
fn a_bad_file_changes_nothing_and_stderr_says_why() {
    let bench = Bench::notes();
    let files = Files::new();
    let file = files.write("a.yaml", &titled("First"));
    let mut client = notes(&bench, &[&file]).start();
    files.write("a.yaml", "hide: [nothing]\nonly: [nobody]\n");
    let place = format!("{}:1:8: no tool `nothing`", file.display());
    assert!(wait_until(|| client.stderr().contains("the tools stay as they were")), "{}", client.stderr());
    let said = client.stderr();
    assert!(said.contains(&place) && said.contains(":2:8: no tool `nobody`"), "{said}");
    assert_eq!(title(&mut client), "First");
    files.write(
        "a.yaml",
        "tools:\n  - {name: t, policy: read, words: {purpose: x.}, statement: SELECT x FROM nots}\n",
    );
    assert!(wait_until(|| client.stderr().contains("no such table: nots")), "{}", client.stderr());
    assert_eq!(title(&mut client), "First");
    assert!(client.is_told(CHANGED, Duration::ZERO).is_none());
    std::fs::remove_file(&file).unwrap();
    assert!(wait_until(|| client.stderr().contains("cannot be read")), "{}", client.stderr());
    assert_eq!(title(&mut client), "First");
    files.write("a.yaml", &titled("Mended"));
    assert!(client.is_told(CHANGED, SOON).is_some());
    assert_eq!(title(&mut client), "Mended");
}

#[test]
fn sighup_reads_the_files_at_once_and_without_files_ends_the_server() {
    let bench = Bench::notes();
    let files = Files::new();
    let file = files.write("a.yaml", &titled("First"));
    let mut client = notes(&bench, &[&file]).start();
    hang_up(&client);
    files.write("a.yaml", &titled("Second"));
    hang_up(&client);
    assert!(client.is_told(CHANGED, SOON).is_some());
    assert_eq!(title(&mut client), "Second");
    client.is_alive();
    let without = Server::on(&bench).start();
    hang_up(&without);
    let pid = without.pid();
    assert!(wait_until(|| !crate::support::is_alive(pid)));
}

#[test]
fn calls_under_way_end_with_the_tools_they_began_with() {
    let bench = Bench::notes();
    let files = Files::new();
    let slow = |title: &str| {
        format!(
            "tools:\n  - name: slow\n    title: {title}\n    policy: read\n    words: {{purpose: x.}}\n    statement: |\n      WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 6000000) SELECT count(*) AS n, '{title}' AS t FROM c\n"
        )
    };
    let file = files.write("a.yaml", &slow("Old"));
    let mut client = notes(&bench, &[&file]).flags(&["--query-timeout", "60"]).start();
    let id = client.send_call("slow", json!({}));
    files.write("a.yaml", &slow("New"));
    hang_up(&client);
    assert!(client.is_told(CHANGED, SOON).is_some(), "{}", client.stderr());
    client.answer(id).is("n,t\n6000000,Old\n# 1 rows");
    client.call("slow", json!({})).is("n,t\n6000000,New\n# 1 rows");
}

#[test]
fn the_log_marks_the_first_row_and_the_first_after_a_change() {
    let bench = Bench::notes();
    let files = Files::new();
    let file = files.write("a.yaml", &titled("First"));
    let mut plain = Server::on(&bench).start();
    plain.is_alive();
    plain.close();
    let mut client = notes(&bench, &[&file]).start();
    client.is_alive();
    client.write("INSERT INTO notes(title) VALUES ('x')").ok();
    files.write("a.yaml", &titled("Second"));
    assert!(client.is_told(CHANGED, SOON).is_some());
    client.write("INSERT INTO notes(title) VALUES ('y')").ok();
    client.is_alive();
    client.close();
    let marks = bench.query(
        "SELECT coalesce(length(json_extract(detail, '$.manifest_sha256')), 0),
                coalesce(length(json_extract(detail, '$.policy_sha256')), 0) FROM query_log ORDER BY id",
    );
    assert_eq!(marks, "64|64\n64|64\n0|0\n64|64\n0|0");
    let sql = "SELECT count(DISTINCT json_extract(detail, '$.manifest_sha256')) FROM query_log";
    assert_eq!(bench.query(sql), "3", "built in, first, second");
}

#[test]
fn a_subscriber_of_the_newest_revision_is_told_too() {
    let bench = Bench::notes();
    let files = Files::new();
    let file = files.write("a.yaml", &titled("First"));
    let mut client = notes(&bench, &[&file]).spawn();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "0"}});
    let listen = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
    client.send("subscriptions/listen", listen);
    assert!(
        client.is_told("notifications/subscriptions/acknowledged", SOON).is_some(),
        "{}",
        client.stderr()
    );
    files.write("a.yaml", &titled("Second"));
    assert!(client.is_told(CHANGED, SOON).is_some(), "{}", client.stderr());
    let list = client.request("tools/list", json!({"_meta": meta}));
    assert!(list["result"]["tools"].to_string().contains("\"title\":\"Second\""), "{list}");
    assert!(list["result"]["ttlMs"].as_u64().unwrap() <= 1000);
}

#[test]
fn changed_defaults_hold_for_the_next_call() {
    let bench = Bench::notes();
    let files = Files::new();
    let team = |rows: u64| {
        format!(
            "profiles:\n  - {{id: team, base: memory, tools: [read_query], defaults: {{max_rows: {rows}}}}}\n"
        )
    };
    let file = files.write("a.yaml", &team(2));
    let policy = files.write("policy.yaml", "limits: {max_rows: 2}");
    let flags = ["--profile", "team", "--policy", policy.to_str().unwrap()];
    let mut client = notes(&bench, &[&file]).flags(&flags).start();
    let most = |client: &mut Client| {
        tool(client, "read_query")["inputSchema"]["properties"]["limit"]["maximum"].clone()
    };
    assert_eq!(most(&mut client), 2);
    files.write("policy.yaml", "limits: {max_cell_chars: 10}");
    assert!(client.is_told(CHANGED, SOON).is_some(), "{}", client.stderr());
    files.write("a.yaml", &team(3));
    assert!(client.is_told(CHANGED, SOON).is_some(), "{}", client.stderr());
    assert_eq!(most(&mut client), 3);
    client.read("SELECT 'abcdefghijkl' AS x").ok().lacks("abcdefghijkl");
    files.write("policy.yaml", "limits: {max_rows: 3}");
    assert!(client.is_told(CHANGED, SOON).is_some(), "{}", client.stderr());
    // What the policy file lowers would no longer be lower.
    files.write("a.yaml", &team(1));
    let words = "`max_rows` is 3 and 1 is in force; a policy file can only lower it";
    assert!(wait_until(|| client.stderr().contains(words)), "{}", client.stderr());
    assert_eq!(most(&mut client), 3);
}

#[test]
fn what_needs_a_restart_is_said() {
    let bench = Bench::notes();
    let files = Files::new();
    let team = |tools: &str| format!("profiles:\n  - {{id: team, base: memory, tools: [{tools}]}}\n");
    let file = files.write("a.yaml", &team("read_query"));
    let mut client = notes(&bench, &[&file]).flags(&["--profile", "team"]).start();
    files.write("a.yaml", &team("read_query, write_query"));
    assert!(wait_until(|| client.stderr().contains("start the server again")), "{}", client.stderr());
    assert_eq!(names(&mut client), ["read_query"]);
    files.write("a.yaml", "profiles:\n  - {id: team, base: memory, tools: [read_query], prompts: []}\n");
    let words = "the `prompts` of profile `team` changed; start the server again for that";
    assert!(wait_until(|| client.stderr().contains(words)), "{}", client.stderr());
}

#[test]
fn a_file_beside_the_database_is_warned_of() {
    let bench = Bench::notes();
    let inside = bench.folder().join("tools.yaml");
    std::fs::write(&inside, titled("x")).unwrap();
    let client = notes(&bench, &[&inside]).start();
    assert!(client.stderr().contains("could change its own tools"), "{}", client.stderr());
    let files = Files::new();
    let client = notes(&bench, &[&files.write("a.yaml", &titled("x"))]).start();
    assert!(!client.stderr().contains("could change"), "{}", client.stderr());
}
