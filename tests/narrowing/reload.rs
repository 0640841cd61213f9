//! A policy file that changes while the server runs.

use super::support::{Bench, Client, wait_until};
use super::{Policy, server};
use serde_json::json;
use std::process::Command;
use std::time::Duration;

const CHANGED: &str = "notifications/tools/list_changed";
const SOON: Duration = Duration::from_secs(20);

fn hang_up(client: &Client) {
    assert!(Command::new("kill").args(["-HUP", &client.pid().to_string()]).status().unwrap().success());
}

fn most_rows(client: &mut Client) -> serde_json::Value {
    let tools = client.request("tools/list", json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    let read = tools.iter().find(|tool| tool["name"] == "read_query").unwrap();
    read["inputSchema"]["properties"]["limit"]["maximum"].clone()
}

#[test]
fn a_changed_file_is_taken_up_and_a_broken_one_is_not() {
    let (bench, policy) = (Bench::notes(), Policy::of("protect: [tags]"));
    let mut client = server(&bench, &policy).start();
    client.read("SELECT title FROM notes WHERE id = 1").ok();
    client.write("INSERT INTO tags(tag) VALUES ('x')").fails(&["`tags` is protected"]);
    std::fs::write(policy.path(), "protect: [notes]\nhide: [{table: notes, columns: [title]}]").unwrap();
    let begun = std::time::Instant::now();
    while !client.read("SELECT title FROM notes").failed {
        assert!(begun.elapsed().as_secs() < 30, "the file is not taken up: {}", client.stderr());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    client.read("SELECT title FROM notes").fails(&["`notes.title` is hidden"]);
    client.write("INSERT INTO notes(title) VALUES ('x')").fails(&["`notes` is protected"]);
    client.write("INSERT INTO tags(tag) VALUES ('x')").ok();
    let before = client.stderr().lines().count();
    std::fs::write(policy.path(), "protekt: [notes]\n").unwrap();
    while client.stderr().lines().count() < before + 2 {
        assert!(begun.elapsed().as_secs() < 60, "nobody says that the file is broken: {}", client.stderr());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    client.read("SELECT title FROM notes").fails(&["`notes.title` is hidden"]);
    let (said, _) = client.close_with_stderr();
    assert!(
        said.contains("policy.yaml:1:1: unknown key `protekt`")
            && said.contains("the policy stays as it was"),
        "{said}"
    );
    let digests = bench.query("SELECT count(DISTINCT detail ->> 'policy_sha256') FROM query_log");
    assert_eq!(digests, "2", "every change of the policy shows in the log");
}

#[test]
fn sighup_reads_the_policy_file_at_once_and_clients_are_told() {
    let (bench, policy) = (Bench::notes(), Policy::of("protect: [tags]"));
    let mut client = server(&bench, &policy).start();
    assert_eq!(client.initialized["capabilities"]["tools"], json!({"listChanged": true}));
    std::fs::write(policy.path(), "protect: [notes]").unwrap();
    hang_up(&client);
    assert!(client.is_told(CHANGED, SOON).is_some(), "{}", client.stderr());
    client.write("INSERT INTO notes(title) VALUES ('x')").fails_as("REFUSED", &["`notes` is protected"]);
    client.write("INSERT INTO tags(tag) VALUES ('x')").ok();
    hang_up(&client);
    client.is_alive();
    assert!(client.is_told(CHANGED, Duration::from_millis(300)).is_none(), "nothing changed");
}

#[test]
fn changed_limits_hold_for_the_next_call_and_in_the_tools_words() {
    let (bench, policy) = (Bench::notes(), Policy::of("limits: {max_rows: 2}"));
    let mut client = server(&bench, &policy).flags(&["--max-rows", "50"]).start();
    assert_eq!(most_rows(&mut client), 2);
    std::fs::write(policy.path(), "limits: {max_rows: 1, query_timeout: 0.2}").unwrap();
    assert!(client.is_told(CHANGED, SOON).is_some(), "{}", client.stderr());
    assert_eq!(most_rows(&mut client), 1);
    client.read("SELECT title FROM notes").ok().has("# 1 rows");
    client.call("read_query", json!({"query": "SELECT 1", "limit": 2})).fails_as("INVALID_ARGUMENTS", &["1"]);
    client
        .read("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
        .fails_as("TIMEOUT", &["longer than 0.2 s"]);
    // Up to what the flags say, and no further.
    std::fs::write(policy.path(), "limits: {max_rows: 50}").unwrap();
    assert!(client.is_told(CHANGED, SOON).is_some(), "{}", client.stderr());
    assert_eq!(most_rows(&mut client), 50);
    std::fs::write(policy.path(), "limits: {max_rows: 51}").unwrap();
    let words = "`max_rows` is 51 and 50 is in force; a policy file can only lower it";
    assert!(wait_until(|| client.stderr().contains(words)), "{}", client.stderr());
    assert_eq!(most_rows(&mut client), 50);
}

#[test]
fn a_policy_from_a_pipe_stays_for_the_life_of_the_server() {
    let (bench, policy) = (Bench::notes(), Policy::of(""));
    let pipe = policy.path().with_file_name("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let other = pipe.clone();
    let writer = std::thread::spawn(move || std::fs::write(other, "protect: [notes]").unwrap());
    let mut client = super::support::Server::on(&bench).flags(&["--policy", pipe.to_str().unwrap()]).start();
    writer.join().unwrap();
    hang_up(&client);
    std::thread::sleep(Duration::from_millis(1200));
    client.write("INSERT INTO notes(title) VALUES ('x')").fails_as("REFUSED", &["`notes` is protected"]);
}
