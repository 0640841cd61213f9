//! What is bounded: open files, answers, paths; what is refused, and with which words.

use super::stdio::Desk;
use super::{Bench, run};
use crate::support::{Server, wait_until};
use indelible::state::catalog::Kind;
use indelible::state::kv::{Value as Kept, Write};
use indelible::state::queue::NewJob;
use indelible::state::store::Store;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// The same command with so many descriptors.
fn with_descriptors(command: &mut Command, most: u32) {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("ulimit -n {most}; exec \"$0\" \"$@\""));
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    *command = shell;
}

/// A small write to a primitive of this type, and what reads it.
fn touch(kind: &str, name: &str) -> [(&'static str, Value); 2] {
    match kind {
        "kv" => [
            ("kv_set", json!({"primitive": name, "key": "a", "value": name})),
            ("kv_get", json!({"primitive": name, "key": "a"})),
        ],
        "queue" => [
            ("queue_send", json!({"primitive": name, "queue": "q", "body": name})),
            ("queue_receive", json!({"primitive": name, "queue": "q"})),
        ],
        "fs" => [
            ("fs_write", json!({"primitive": name, "path": "/a", "content": name})),
            ("fs_read", json!({"primitive": name, "path": "/a"})),
        ],
        "storage" => [
            ("storage_write", json!({"primitive": name, "key": "a", "content": name})),
            ("storage_read", json!({"primitive": name, "key": "a"})),
        ],
        _ => [
            ("memory_remember", json!({"primitive": name, "kind": "semantic", "text": name})),
            ("memory_recall", json!({"primitive": name, "query": name})),
        ],
    }
}

#[test]
fn many_primitives_need_few_descriptors_and_threads() {
    const PRIMITIVES: usize = 80;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let place = ["--profile", "primitives", "--data", data, "--group", "g"];
    let mut desk = Desk::of(Server::bare().flags(&place).changed(|command| with_descriptors(command, 200)));
    let kinds = ["kv", "queue", "fs", "storage", "memory"];
    let all: Vec<(&str, String)> =
        (0..PRIMITIVES).map(|number| (kinds[number % kinds.len()], format!("name{number}"))).collect();
    for (kind, name) in &all {
        desk.ok("primitive_create", json!({"type": kind, "name": name}));
        let [(tool, arguments), _] = touch(kind, name);
        desk.ok(tool, arguments);
    }
    for (kind, name) in &all {
        let [_, (tool, arguments)] = touch(kind, name);
        let found = desk.ok(tool, arguments).to_string();
        assert!(found.contains(name), "{tool} {name}: {found}");
    }
    let of = |what: &str| format!("/proc/{}/{what}", desk.client.pid());
    let descriptors = std::fs::read_dir(of("fd")).unwrap().count();
    assert!(descriptors < 120, "{descriptors}");
    let named = |entry: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(entry.unwrap().path().join("comm")).is_ok_and(|name| name.trim() == "state")
    };
    // Of 200 descriptors, for seven files; and the catalog's.
    let threads =
        std::fs::read_dir(of("task")).unwrap().filter_map(|entry| named(entry).then_some(())).count();
    assert!(threads <= 8, "{threads}");
}

#[test]
fn a_primitive_that_somebody_uses_stays_open_whatever_else_is_opened() {
    run(async {
        let bench = Bench::new(Kind::Queue).await;
        let queue = bench.store.queue(&bench.primitive).await.unwrap();
        let changes = queue.changes();
        let group = bench.store.catalog().group("g", false).await.unwrap();
        for number in 0..70 {
            let other = bench.store.catalog().create(&group, Kind::Kv, &format!("kv{number}")).await.unwrap();
            let value = Kept::Json(number.to_string());
            let write = Write { key: "k".to_owned(), value, expires_at: None, if_version: None };
            bench.store.kv(&other).await.unwrap().apply(vec![write]).await.unwrap();
        }
        let job = NewJob {
            queue: "q".to_owned(),
            body: "1".to_owned(),
            visible_at: 0,
            priority: 0,
            dedupe_key: None,
        };
        bench.store.queue(&bench.primitive).await.unwrap().send(job).await.unwrap();
        assert!(changes.has_changed().unwrap(), "the one that waits hears of the other's job");
        assert_eq!(queue.claim("q".to_owned(), 1, 1_000).await.unwrap().len(), 1);
    });
}

#[test]
fn what_cannot_be_opened_says_so_without_a_path_of_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    let mut files = Vec::new();
    for kind in ["kv", "db", "fs"] {
        let made = desk.ok("primitive_create", json!({"type": kind, "name": kind}));
        files.push(made["id"].as_str().unwrap().to_owned());
    }
    desk.ok("kv_set", json!({"key": "a", "value": 1}));
    desk.ok("db_exec", json!({"sql": "CREATE TABLE t(a)"}));
    desk.client.kill();
    for group in std::fs::read_dir(folder.path().join("groups")).unwrap() {
        let [kv, db, fs] = [0, 1, 2].map(|at: usize| group.as_ref().unwrap().path().join(&files[at]));
        for place in [kv, db] {
            for name in ["main.db-wal", "main.db-shm"] {
                let _ = std::fs::remove_file(place.join(name));
            }
            std::fs::write(place.join("main.db"), "damaged beyond repair".repeat(100)).unwrap();
        }
        std::fs::create_dir_all(fs.join("main.db")).unwrap();
    }
    let mut desk = Desk::at(folder.path());
    let host = folder.path().to_str().unwrap();
    let rows = [
        ("kv_get", json!({"key": "a"}), "corrupt"),
        ("db_query", json!({"sql": "SELECT 1"}), "corrupt"),
        ("fs_read", json!({"path": "/a"}), "sql_error"),
        ("primitive_snapshot", json!({"primitive": "db"}), "snapshot_failed"),
        ("primitive_fork", json!({"primitive": "db"}), "snapshot_failed"),
        ("primitive_fork", json!({"primitive": "kv"}), "corrupt"),
    ];
    for (tool, arguments, code) in rows {
        let (found, words) = desk.refusal(tool, arguments);
        assert_eq!(found, code, "{tool}: {words}");
        assert!(!words.contains(host) && words.len() > 20, "{tool}: {words}");
    }
}

#[test]
fn values_of_one_answer_are_a_megabyte_together() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    desk.ok("primitive_create", json!({"type": "kv", "name": "k"}));
    // With its quotes, the largest value that there is.
    desk.ok("kv_set", json!({"key": "big", "value": "x".repeat((1 << 20) - 2)}));
    for number in 0..5 {
        desk.ok("kv_set", json!({"key": format!("part/{number}"), "value": "x".repeat(400_000 - 2)}));
    }
    assert_eq!(desk.ok("kv_get", json!({"keys": ["big"]}))["data"][0]["key"], "big");
    assert_eq!(desk.ok("kv_get", json!({"keys": ["part/0", "nosuch", "part/1"]}))["data"][1], json!(null));
    let rows = [
        (json!(["big", "big"]), "such as the first 1"),
        (json!(vec!["part/1"; 100]), "such as the first 2"),
        (json!(["part/0", "nosuch", "part/1", "part/2"]), "such as the first 3"),
    ];
    for (keys, expected) in rows {
        let (code, words) = desk.refusal("kv_get", json!({"keys": keys}));
        assert_eq!(code, "too_large");
        assert!(words.contains("1048576 bytes") && words.contains(expected), "{words}");
    }
    let (mut pages, mut cursor) = (Vec::new(), json!(null));
    loop {
        let mut arguments = json!({"values": true, "limit": 1000});
        if !cursor.is_null() {
            arguments["cursor"] = cursor.clone();
        }
        let page = desk.ok("kv_list", arguments);
        let keys: Vec<&str> =
            page["data"].as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap()).collect();
        pages.push(keys.join(","));
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(pages, ["big", "part/0,part/1", "part/2,part/3", "part/4"]);
    let names = desk.ok("kv_list", json!({"limit": 1000}));
    assert_eq!((names["data"].as_array().unwrap().len(), &names["next_cursor"]), (6, &json!(null)));
}

#[test]
fn whoever_waits_gets_nothing_of_a_primitive_that_is_paused_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    desk.ok("primitive_create", json!({"type": "queue", "name": "q"}));
    // Late enough to be there after the pause, and early enough for the one that waits.
    desk.ok("queue_send", json!({"queue": "a", "body": 1, "delay": "3s"}));
    let arguments = json!({"queue": "a", "wait": "20s"});
    let waiting = desk.client.send("tools/call", json!({"name": "queue_receive", "arguments": arguments}));
    desk.ok("primitive_list", json!({}));
    let person = |words: &[&str]| {
        let data = folder.path().to_str().unwrap();
        let place = ["--data", data, "--group", "g"];
        let (status, said, wrong) = Server::bare().flags(words).flags(&place).run();
        assert_eq!(status, 0, "{words:?} {wrong}");
        said
    };
    let paused: Value = serde_json::from_str(&person(&["primitives", "pause", "q", "--json"])).unwrap();
    assert_eq!((&paused["name"], &paused["paused"]), (&json!("q"), &json!(true)));
    let answer = desk.client.wait_for(waiting);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("[paused] `q` is paused"), "{answer}");
    let resumed: Value = serde_json::from_str(&person(&["primitives", "resume", "q", "--json"])).unwrap();
    assert_eq!(resumed["paused"], false);
    let got = desk.ok("queue_receive", json!({"queue": "a", "wait": "20s"}));
    assert_eq!(got["data"][0]["attempts"], 1, "nobody has leased it meanwhile: {got}");
}

#[test]
fn no_name_takes_an_id_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    let made = desk.ok("primitive_create", json!({"type": "kv", "name": "one"}));
    let id = made["id"].as_str().unwrap();
    for name in [id.to_owned(), id.to_uppercase(), "0".repeat(26)] {
        let rows = [
            ("primitive_create", json!({"type": "kv", "name": name})),
            ("primitive_fork", json!({"primitive": "one", "new_name": name})),
        ];
        for (tool, arguments) in rows {
            let (code, words) = desk.refusal(tool, arguments);
            assert_eq!(code, "invalid_arguments");
            assert!(words.contains("looks like an id"), "{words}");
        }
    }
    assert_eq!(desk.ok("primitive_list", json!({}))["data"].as_array().unwrap().len(), 1);
}

#[test]
fn no_file_gets_a_path_that_no_tool_can_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    desk.ok("primitive_create", json!({"type": "fs", "name": "f"}));
    let long = |names: usize| format!("/{}", vec!["e".repeat(250); names].join("/"));
    desk.ok("fs_write", json!({"path": format!("/L/{}/f", "d".repeat(250)), "content": "x"}));
    desk.ok("fs_write", json!({"path": format!("/{}", "n".repeat(244)), "content": "x"}));
    let everything = json!({"path": "/", "list": true, "recursive": true});
    let before = desk.ok("fs_read", everything.clone());
    // 16 names have 4,016 bytes, and what is in the folder has 253 more.
    let rows = [
        ("fs_write", json!({"action": "move", "path": "/L", "to": long(16)})),
        ("fs_fork", json!({"from": "/L", "to": long(16)})),
        ("fs_fork", json!({"from": format!("/{}", "n".repeat(244))})),
    ];
    for (tool, arguments) in rows {
        let (code, words) = desk.refusal(tool, arguments);
        assert_eq!((code.as_str(), words.contains("`to`")), ("invalid_arguments", true), "{tool} {words}");
        assert_eq!(desk.ok("fs_read", everything.clone()), before, "nothing of it is done");
    }
    desk.ok("fs_write", json!({"action": "move", "path": "/L", "to": long(15)}));
    let path = format!("{}/{}/f", long(15), "d".repeat(250));
    assert_eq!(desk.ok("fs_read", json!({"path": path}))["content"], "x");
}

#[test]
fn a_folder_is_listed_page_by_page() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    desk.ok("primitive_create", json!({"type": "fs", "name": "f"}));
    let sent: Vec<i64> = (0..1_050)
        .map(|number| {
            desk.client.send_call("fs_write", json!({"path": format!("/a/{number:04}"), "content": ""}))
        })
        .collect();
    for id in sent {
        desk.client.answer(id).ok();
    }
    for (path, recursive, entries) in [("/a", false, 1_050), ("/", true, 1_051)] {
        let page = |desk: &mut Desk, offset: Value| {
            let page = desk
                .ok("fs_read", json!({"path": path, "list": true, "recursive": recursive, "offset": offset}));
            let paths: Vec<String> = page["data"]
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| entry["path"].as_str().unwrap().to_owned())
                .collect();
            (paths, page["truncated"].clone(), page["next_offset"].clone())
        };
        let (mut paths, truncated, next) = page(&mut desk, json!(0));
        assert_eq!((paths.len(), truncated, next.clone()), (1_000, json!(true), json!(1_000)));
        let (rest, truncated, end) = page(&mut desk, next);
        assert_eq!((truncated, end), (json!(false), json!(null)));
        paths.extend(rest);
        assert_eq!(paths.len(), entries);
        assert!(paths.is_sorted() && paths.last().unwrap() == "/a/1049", "{paths:?}");
        assert_eq!(page(&mut desk, json!(5_000)).0, Vec::<String>::new());
    }
}

#[test]
fn a_nul_is_text_or_refused_and_never_sqlite_s_trouble() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    for kind in ["kv", "queue", "memory", "fs", "storage"] {
        desk.ok("primitive_create", json!({"type": kind, "name": kind}));
    }
    let nul = "abc\0def";
    desk.ok("memory_remember", json!({"kind": "semantic", "text": nul, "tags": [nul]}));
    assert_eq!(desk.ok("memory_recall", json!({"query": nul}))["data"][0]["text"], nul);
    desk.ok("kv_set", json!({"key": nul, "value": nul}));
    assert_eq!(desk.ok("kv_get", json!({"key": nul}))["data"]["value"], nul);
    assert_eq!(desk.ok("kv_list", json!({"prefix": "abc\0"}))["data"][0]["key"], nul);
    desk.ok("fs_write", json!({"path": "/a", "content": nul}));
    desk.ok("queue_send", json!({"queue": "q", "body": nul, "dedupe_key": nul}));
    desk.ok("storage_list", json!({"prefix": nul, "delimiter": "\0"}));
    let rows = [
        ("fs_search", json!({"query": nul})),
        ("fs_search", json!({"query": "x", "path": "/\0"})),
        ("fs_write", json!({"path": "/\0", "content": ""})),
        ("storage_write", json!({"key": nul, "content": ""})),
        ("queue_send", json!({"queue": nul, "body": 1})),
        ("primitive_create", json!({"type": "kv", "name": nul})),
        ("primitive_snapshot", json!({"primitive": "kv", "label": nul})),
    ];
    for (tool, arguments) in rows {
        assert_eq!(desk.refused(tool, arguments.clone()), "invalid_arguments", "{tool} {arguments}");
    }
    desk.ok("fs_search", json!({"glob": "/\0*"}));
}

#[test]
fn what_is_too_large_is_called_so_by_every_tool() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    for kind in ["storage", "memory", "db", "kv"] {
        desk.ok("primitive_create", json!({"type": kind, "name": kind}));
    }
    let metadata = json!({"a": "x".repeat(8 << 10)});
    let rows = [
        ("storage_write", json!({"key": "k", "content": "x", "metadata": metadata})),
        ("memory_remember", json!({"kind": "semantic", "text": "x", "metadata": metadata})),
        ("db_query", json!({"sql": "SELECT zeroblob(2000000000)"})),
        ("db_exec", json!({"sql": "CREATE TABLE t AS SELECT zeroblob(2000000000)"})),
        ("kv_set", json!({"key": "k", "value": "x".repeat(1 << 20)})),
    ];
    for (tool, arguments) in rows {
        assert_eq!(desk.refused(tool, arguments), "too_large", "{tool}");
    }
}

#[test]
fn a_condition_that_does_not_hold_names_what_was_not_done_and_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    desk.ok("primitive_create", json!({"type": "kv", "name": "k"}));
    desk.ok("primitive_create", json!({"type": "storage", "name": "s"}));
    let version = |answer: Value| answer["data"][0]["version"].as_u64().unwrap();
    let (a, b) = (
        version(desk.ok("kv_set", json!({"key": "a", "value": 1}))),
        version(desk.ok("kv_set", json!({"key": "b", "value": 1}))),
    );
    let etag = desk.ok("storage_write", json!({"key": "o", "content": "x"}))["etag"].clone();
    let set = |key: &str, version: u64| json!({"key": key, "value": 2, "if_version": version});
    let rows = [
        ("kv_set", set("a", a + 9), format!("nothing was written: `a` has version {a};")),
        ("kv_set", set("nosuch", 4), "nothing was written: `nosuch` does not exist;".to_owned()),
        (
            "kv_set",
            json!({"items": [set("a", a), set("b", 0), set("c", 7)]}),
            format!("nothing was written: `b` has version {b}, `c` does not exist;"),
        ),
        (
            "kv_delete",
            json!({"key": "a", "if_version": a + 9}),
            format!("nothing was deleted: `a` has version {a};"),
        ),
        (
            "storage_write",
            json!({"key": "o", "content": "y", "if_none_match": "*"}),
            format!("its etag is {}", etag.as_str().unwrap()),
        ),
        (
            "storage_write",
            json!({"key": "nosuch", "content": "y", "if_match": etag}),
            "there is no object".to_owned(),
        ),
    ];
    for (tool, arguments, expected) in rows {
        let (code, words) = desk.refusal(tool, arguments.clone());
        assert_eq!(code, "precondition_failed");
        assert!(words.contains(&expected), "{tool} {arguments}: {words}");
    }
    assert_eq!(desk.ok("kv_get", json!({"key": "a"}))["data"]["version"], a);
}

#[test]
fn the_server_says_what_it_is_of_this_profile() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::at(folder.path());
    assert_eq!(
        desk.client.initialized["serverInfo"]["description"],
        "Named pieces of state that agents share"
    );
}

#[test]
fn a_length_of_time_is_a_text_or_a_number_of_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    desk.ok("primitive_create", json!({"type": "queue", "name": "q"}));
    desk.ok("primitive_create", json!({"type": "kv", "name": "k"}));
    for length in [json!("30s"), json!("30"), json!(30)] {
        desk.ok("kv_set", json!({"key": "a", "value": 1, "ttl": length}));
        assert!(desk.ok("kv_get", json!({"key": "a"}))["data"]["expires_at"].is_string(), "{length}");
        desk.ok("kv_set", json!({"items": [{"key": "a", "value": 1, "ttl": length}]}));
        desk.ok("queue_send", json!({"queue": "q", "body": 1, "delay": length}));
        desk.ok("queue_send", json!({"queue": "now", "body": 1}));
        let got = desk.ok("queue_receive", json!({"queue": "now", "lease": length, "wait": 0}));
        let (id, token) = (&got["data"][0]["id"], &got["data"][0]["lease_token"]);
        desk.ok(
            "queue_ack",
            json!({"queue": "now", "id": id, "lease_token": token, "action": "retry", "in": length}),
        );
    }
    // Each says both, since the schema's type is a text alone.
    let tools = desk.client.request("tools/list", json!({}))["result"]["tools"].clone();
    let places = [
        ("kv_set", "ttl"),
        ("queue_send", "delay"),
        ("queue_receive", "lease"),
        ("queue_receive", "wait"),
        ("queue_ack", "in"),
        ("storage_sign", "expires_in"),
    ];
    for (tool, parameter) in places {
        let tool = tools.as_array().unwrap().iter().find(|one| one["name"] == tool).unwrap();
        let schema = &tool["inputSchema"]["properties"][parameter];
        assert_eq!(schema["type"], "string");
        let words = schema["description"].as_str().unwrap();
        assert!(words.contains("or seconds"), "{parameter}: {words}");
    }
}

#[test]
fn what_people_do_is_json_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let data: &Path = folder.path();
    let person = |words: &[&str]| {
        let place = ["--data", data.to_str().unwrap()];
        let (status, said, wrong) = Server::bare().flags(words).flags(&place).run();
        assert_eq!(status, 0, "{words:?} {wrong}");
        serde_json::from_str::<Value>(&said).unwrap()
    };
    person(&["groups", "create", "g", "--json"]);
    let made = person(&["primitives", "create", "kv", "k", "--group", "g", "--json"]);
    let mut expected = made.clone();
    expected["paused"] = json!(true);
    assert_eq!(person(&["primitives", "pause", "k", "--group", "g", "--json"]), expected);
    assert_eq!(person(&["primitives", "resume", "k", "--group", "g", "--json"]), made);
    let key = person(&["keys", "create", "--group", "g", "--name", "n", "--json"]);
    for _ in 0..2 {
        let revoked = person(&["keys", "revoke", "n", "--json"].map(|word| {
            // The name is free again once its key is revoked; the id stays.
            if word == "n" { key["id"].as_str().unwrap() } else { word }
        }));
        assert_eq!((&revoked["id"], &revoked["state"]), (&key["id"], &json!("revoked")));
        assert!(revoked["revoked_at"].is_string() && revoked.get("key").is_none(), "{revoked}");
    }
    assert!(wait_until(|| person(&["keys", "list", "--json"])[0]["state"] == "revoked"));
}
