//! The tools over real stdio: each result against its schema, each error with its code in front.

#![cfg(target_os = "linux")]

use crate::support::{Client, Server, violation};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// A client that holds each result against its tool's schema.
pub(crate) struct Desk {
    pub(crate) client: Client,
    schemas: HashMap<String, Value>,
}

impl Desk {
    #[track_caller]
    pub(crate) fn at(data: &Path) -> Self {
        Self::with(data, &[])
    }

    /// Under more flags.
    #[track_caller]
    pub(crate) fn with(data: &Path, flags: &[&str]) -> Self {
        let data = data.to_str().unwrap();
        let place = ["--profile", "primitives", "--data", data, "--group", "g"];
        Self::of(Server::bare().flags(&place).flags(flags))
    }

    /// Of a server that was set up otherwise.
    #[track_caller]
    pub(crate) fn of(server: Server) -> Self {
        let mut client = server.start();
        let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
        let schema = |tool: &Value| (tool["name"].as_str().unwrap().to_owned(), tool["outputSchema"].clone());
        Self { client, schemas: list.as_array().unwrap().iter().map(schema).collect() }
    }

    #[track_caller]
    pub(crate) fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.client.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        assert_ne!(result["isError"], true, "{tool}: {answer}");
        let data = result["structuredContent"].clone();
        assert_eq!(violation(&self.schemas[tool], &data), None, "{tool}: {data}");
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, data, "{tool}");
        data
    }

    /// The error's code.
    #[track_caller]
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> String {
        self.refusal(tool, arguments).0
    }

    /// The error's code and its words.
    #[track_caller]
    pub(crate) fn refusal(&mut self, tool: &str, arguments: Value) -> (String, String) {
        let answer = self.client.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        assert_eq!(result["isError"], true, "{tool}: {answer}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let (code, words) = text.strip_prefix('[').and_then(|text| text.split_once("] ")).unwrap();
        assert!(code.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{text}");
        (code.to_owned(), words.to_owned())
    }
}

#[test]
fn a_read_only_server_makes_neither_folder_nor_group() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let place = ["--profile", "primitives", "--data", data.to_str().unwrap(), "--read-only"];
    let refusal = |flags: &[&str]| Server::bare().flags(&place).flags(flags).refusal();
    let over_http = ["--http", "127.0.0.1:0", "--no-auth"];
    for flags in [&["--group", "g"][..], &over_http, &[&over_http[..], &["--group", "g"]].concat()] {
        let (status, line) = refusal(flags);
        assert_eq!((status, data.exists()), (1, false), "{flags:?}: {line}");
        assert!(line.contains("is no data folder, and with --read-only none is made"), "{flags:?}: {line}");
    }
    let groups = |words: &[&str]| {
        let (status, out, said) =
            Server::bare().flags(&["groups"]).flags(words).flags(&["--data", data.to_str().unwrap()]).run();
        assert_eq!(status, 0, "{said}");
        out
    };
    groups(&["create", "other"]);
    for flags in [&["--group", "g"][..], &[&over_http[..], &["--group", "g"]].concat()] {
        let (status, line) = refusal(flags);
        assert_eq!(status, 1, "{flags:?}: {line}");
        assert!(
            line.contains("there is no group `g`, and with --read-only none is made"),
            "{flags:?}: {line}"
        );
    }
    let listed: Value = serde_json::from_str(&groups(&["list", "--json"])).unwrap();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    groups(&["create", "g"]);
    let mut desk = Desk::with(&data, &["--read-only"]);
    assert_eq!(desk.ok("primitive_list", json!({})), json!({"data": []}));
}

#[test]
fn primitives_are_made_chosen_and_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    assert_eq!(desk.ok("primitive_list", json!({})), json!({"data": []}));
    assert_eq!(desk.refused("kv_get", json!({"key": "a"})), "not_found");
    let made = desk.ok("primitive_create", json!({"type": "kv", "name": "one"}));
    assert_eq!(made["id"].as_str().unwrap().len(), 26);
    desk.ok("kv_set", json!({"key": "a", "value": {"deep": [1, "two", null]}}));
    desk.ok("primitive_create", json!({"type": "kv", "name": "two"}));
    assert_eq!(desk.refused("primitive_create", json!({"type": "kv", "name": "two"})), "conflict");
    assert_eq!(desk.refused("primitive_create", json!({"type": "nosuch", "name": "x"})), "invalid_arguments");
    assert_eq!(desk.refused("primitive_create", json!({"type": "kv", "name": "../x"})), "invalid_arguments");
    assert_eq!(desk.refused("kv_get", json!({"key": "a"})), "ambiguous_primitive");
    assert_eq!(
        desk.refused("queue_send", json!({"primitive": "one", "queue": "q", "body": 1})),
        "wrong_type"
    );
    drop(desk);
    let mut desk = Desk::at(folder.path());
    let found = desk.ok("kv_get", json!({"primitive": made["id"], "key": "a"}));
    assert_eq!(found["data"]["value"], json!({"deep": [1, "two", null]}));
    let entry = json!({"id": made["id"], "name": "one", "type": "kv", "paused": false});
    assert_eq!(desk.ok("primitive_list", json!({}))["data"][0], entry);
}

#[test]
fn arguments_that_do_not_go_together_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    for kind in ["kv", "queue", "memory", "fs", "storage"] {
        desk.ok("primitive_create", json!({"type": kind, "name": kind}));
    }
    desk.ok("fs_write", json!({"path": "/a/b", "content": "x"}));
    let rows = [
        ("kv_get", json!({})),
        ("kv_get", json!({"key": "a", "keys": ["a"]})),
        ("kv_get", json!({"key": ""})),
        ("kv_get", json!({"key": "x".repeat(513)})),
        ("kv_set", json!({"key": "a"})),
        ("kv_set", json!({"key": "a", "value": 1, "incr": 1})),
        ("kv_set", json!({"key": "a", "incr": 1, "if_version": 1})),
        ("kv_set", json!({"items": []})),
        ("kv_set", json!({"items": [{"key": "a", "value": 1}, {"key": "a", "value": 2}]})),
        ("kv_set", json!({"items": [{"key": "a", "value": 1, "extra": 2}]})),
        ("kv_set", json!({"key": "a", "value": "?", "encoding": "bytes"})),
        ("kv_set", json!({"key": "a", "value": 1, "ttl": "soon"})),
        ("kv_list", json!({"cursor": "?"})),
        ("kv_delete", json!({"keys": ["a"], "if_version": 1})),
        ("queue_send", json!({"queue": "q/dead", "body": 1})),
        ("queue_receive", json!({"queue": "q", "wait": "1h"})),
        ("queue_ack", json!({"queue": "q", "id": "x", "lease_token": "x", "in": "1s"})),
        ("memory_remember", json!({"kind": "semantic", "text": " "})),
        ("memory_recall", json!({"query": "x", "kinds": ["other"]})),
        ("memory_forget", json!({})),
        ("memory_forget", json!({"action": "consolidate", "id": "x"})),
        ("fs_read", json!({"path": "/../x"})),
        ("fs_read", json!({"path": "a"})),
        ("fs_read", json!({"path": "/a/b", "offset": 2})),
        ("fs_write", json!({"path": "/", "content": ""})),
        ("fs_write", json!({"path": "/a", "action": "move", "to": "/a/c"})),
        ("fs_search", json!({})),
        ("fs_search", json!({"glob": "/[", "query": "x"})),
        ("storage_read", json!({"key": "k", "head": true, "range": "0-1"})),
        ("storage_write", json!({"key": "k", "content": "x", "if_none_match": "x"})),
        ("storage_write", json!({"key": "k", "content": "x", "content_type": "a\r\nb: c"})),
    ];
    for (tool, arguments) in rows {
        assert_eq!(desk.refused(tool, arguments.clone()), "invalid_arguments", "{tool} {arguments}");
    }
    assert_eq!(desk.refused("fs_write", json!({"path": "/a", "action": "delete"})), "conflict");
    assert_eq!(desk.refused("fs_write", json!({"path": "/a/b/c", "content": ""})), "conflict");
    assert_eq!(desk.refused("fs_read", json!({"path": "/a"})), "wrong_type");
    assert_eq!(desk.refused("kv_set", json!({"key": "a", "value": "x".repeat(1 << 20)})), "too_large");
    assert_eq!(desk.refused("queue_send", json!({"queue": "q", "body": "x".repeat(1 << 18)})), "too_large");
}

#[test]
fn whoever_waits_has_the_job_when_it_comes() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    desk.ok("primitive_create", json!({"type": "queue", "name": "q"}));
    let began = Instant::now();
    let arguments = json!({"queue": "q", "wait": "20s"});
    let waiting = desk.client.send("tools/call", json!({"name": "queue_receive", "arguments": arguments}));
    desk.ok("queue_send", json!({"queue": "q", "body": [1]}));
    let answer = desk.client.wait_for(waiting);
    assert_eq!(answer["result"]["structuredContent"]["data"][0]["body"], json!([1]), "{answer}");
    desk.ok("queue_send", json!({"queue": "later", "body": 2, "delay": "1s"}));
    assert_eq!(desk.ok("queue_receive", json!({"queue": "later"})), json!({"data": []}));
    let got = desk.ok("queue_receive", json!({"queue": "later", "wait": 10}));
    assert_eq!(got["data"][0]["body"], 2);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

#[test]
fn contents_come_in_parts_and_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    desk.ok("primitive_create", json!({"type": "fs", "name": "f"}));
    desk.ok("primitive_create", json!({"type": "storage", "name": "s"}));
    // A character of two bytes across the end of the first part.
    let text = format!("x{}", "ž".repeat(200_000));
    desk.ok("fs_write", json!({"path": "/t", "content": text}));
    desk.ok("storage_write", json!({"key": "t", "content": text, "content_type": "text/plain"}));
    let (mut whole, mut offset) = (String::new(), json!(0));
    while !offset.is_null() {
        let part = desk.ok("fs_read", json!({"path": "/t", "offset": offset}));
        assert_eq!((part["encoding"].as_str(), part["size"].as_u64()), (Some("utf8"), Some(400_001)));
        whole.push_str(part["content"].as_str().unwrap());
        offset = part["next_offset"].clone();
    }
    assert_eq!(whole, text);
    let part = desk.ok("storage_read", json!({"key": "t"}));
    assert_eq!((&part["truncated"], &part["encoding"]), (&json!(true), &json!("utf8")));
    assert_eq!(part["range"], "0-262142");
    let rest = desk.ok("storage_read", json!({"key": "t", "range": "262143-"}));
    assert_eq!(rest["truncated"], false);
    let both = [&part, &rest].map(|part| part["content"].as_str().unwrap()).concat();
    assert_eq!(both, text);
    desk.ok("fs_write", json!({"path": "/b", "content": "AP8=", "encoding": "base64"}));
    let read = desk.ok("fs_read", json!({"path": "/b"}));
    assert_eq!((&read["content"], &read["encoding"]), (&json!("AP8="), &json!("base64")));
    let hits = desk.ok("fs_search", json!({"glob": "/*"}));
    assert_eq!(hits, json!({"data": [{"path": "/b"}, {"path": "/t"}]}));
    let forked = desk.ok("fs_fork", json!({"from": "/t"}))["to"].as_str().unwrap().to_owned();
    desk.ok("fs_write", json!({"path": forked, "content": "other"}));
    assert_eq!(desk.ok("fs_read", json!({"path": "/t"}))["size"], 400_001);
}

#[test]
fn primitives_are_kept_and_copied_under_a_name_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    let name = "n".repeat(64);
    desk.ok("primitive_create", json!({"type": "kv", "name": name}));
    desk.ok("kv_set", json!({"key": "a", "value": 1}));
    let made = desk.ok("primitive_snapshot", json!({"label": "before"}));
    assert_eq!((made["id"].as_str().unwrap().len(), &made["label"]), (26, &json!("before")));
    assert_eq!(desk.ok("primitive_snapshot", json!({}))["label"], json!(null));
    assert_eq!(desk.refused("primitive_snapshot", json!({"label": "a\nb"})), "invalid_arguments");
    let fork = desk.ok("primitive_fork", json!({}));
    let (begin, end) = fork["name"].as_str().unwrap().rsplit_once("-fork-").unwrap();
    assert!(name.starts_with(begin) && begin.len() == 52 && end.len() == 6, "{fork}");
    assert!(end.chars().all(|c| c.is_ascii_digit() || c.is_ascii_lowercase()), "{end}");
    assert_eq!(desk.refused("primitive_fork", json!({})), "ambiguous_primitive");
    let named = json!({"primitive": name, "new_name": "copy"});
    assert_eq!(desk.ok("primitive_fork", named.clone())["type"], "kv");
    assert_eq!(desk.refused("primitive_fork", named), "conflict");
    desk.ok("kv_set", json!({"primitive": "copy", "key": "a", "value": 2}));
    let value = |desk: &mut Desk, primitive: &str| {
        desk.ok("kv_get", json!({"primitive": primitive, "key": "a"}))["data"]["value"].clone()
    };
    assert_eq!((value(&mut desk, &name), value(&mut desk, "copy")), (json!(1), json!(2)));
}

#[test]
fn a_profile_takes_its_own_place_and_says_what_it_misses() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let rows: [(&[&str], &str); 5] = [
        (&["--profile", "primitives"], "no data folder: give --data DIR"),
        (&["--profile", "primitives", "--data", data], "no group: give --group NAME"),
        (
            &["--profile", "primitives", "--data", data, "--group", "a/b"],
            "--group `a/b`: must be 1 to 64 letters",
        ),
        (&["--profile", "primitives", "--db", data], "--db is for profiles that serve one database"),
        (&["--data", data], "are for the profile primitives"),
    ];
    for (flags, expected) in rows {
        let (status, line) = Server::bare().flags(flags).refusal();
        assert_eq!(status, 2, "{flags:?} {line}");
        assert!(line.contains(expected), "{flags:?} {line}");
    }
    let database: [&[&str]; 2] = [&["verify"], &["doctor"]];
    for command in database {
        let flags = [command, &["--profile", "primitives", "--data", data, "--group", "g"]].concat();
        let (status, line) = Server::bare().flags(&flags).refusal();
        assert_eq!(status, 2, "{flags:?} {line}");
        assert!(line.contains("this command works on one database"), "{flags:?} {line}");
    }
}

#[test]
fn tools_and_policy_are_shown_without_a_data_folder() {
    for (command, expected) in [("tools", "state_look"), ("policy", "policy sha256")] {
        let (status, said, wrong) = Server::bare().flags(&[command, "--profile", "primitives"]).run();
        assert_eq!(status, 0, "{command} {wrong}");
        assert!(said.contains(expected), "{command} {said}");
    }
}

#[test]
fn what_was_acknowledged_outlives_kills_whatever_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    for kind in ["kv", "queue", "fs", "storage", "memory"] {
        desk.ok("primitive_create", json!({"type": kind, "name": kind}));
    }
    let mut acknowledged = 0;
    for round in 0..8_u64 {
        let mut sent = HashMap::new();
        for number in 0..12 {
            let text = format!("text {round}-{number}");
            for (tool, arguments) in [
                ("kv_set", json!({"key": text, "value": text})),
                ("queue_send", json!({"queue": format!("q{round}"), "body": text})),
                ("fs_write", json!({"path": format!("/{text}"), "content": text})),
                // Beside the row, a file of its own.
                ("storage_write", json!({"key": text, "content": text.repeat(10_000)})),
                ("memory_remember", json!({"kind": "semantic", "text": text})),
            ] {
                sent.insert(desk.client.send_call(tool, arguments), (tool, text.clone()));
            }
        }
        std::thread::sleep(Duration::from_millis(round * 9));
        let answers = desk.client.kill_and_read();
        desk = Desk::at(folder.path());
        let mut jobs = Vec::new();
        loop {
            let some =
                desk.ok("queue_receive", json!({"queue": format!("q{round}"), "max": 10, "lease": "1h"}));
            let some = some["data"].as_array().unwrap().clone();
            if some.is_empty() {
                break;
            }
            jobs.extend(some.into_iter().map(|job| job["body"].clone()));
        }
        for (id, answer) in answers {
            let Some((tool, text)) = sent.get(&id) else { continue };
            assert!(!answer.failed, "{tool}: {}", answer.text);
            acknowledged += 1;
            let found = match *tool {
                "kv_set" => desk.ok("kv_get", json!({"key": text}))["data"]["value"] == json!(text),
                "queue_send" => jobs.contains(&json!(text)),
                "fs_write" => {
                    desk.ok("fs_read", json!({"path": format!("/{text}")}))["content"] == json!(text)
                }
                "storage_write" => {
                    let read = desk.ok("storage_read", json!({"key": text, "range": "0-9"}));
                    read["size"] == json!(text.len() * 10_000)
                }
                _ => {
                    let again = desk.ok("memory_remember", json!({"kind": "semantic", "text": text}));
                    again["deduplicated"] == json!(true)
                }
            };
            assert!(found, "round {round}: {tool} of `{text}` was acknowledged and is gone");
        }
    }
    assert!(acknowledged > 50, "{acknowledged}: the kills came too early to say anything");
}
