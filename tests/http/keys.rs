//! Keys: each opens one group and some of its tools, until it is taken back.

use super::TOKEN;
use super::hall::{Hall, people, person, serving};
use super::metrics::metrics;
use serde_json::{Value, json};

/// Two groups with a kv primitive each, and no token: keys alone open it.
fn hall() -> (Hall, String) {
    let folder = tempfile::tempdir().unwrap();
    for group in ["team", "other"] {
        people(folder.path(), &["groups", "create", group]);
        people(folder.path(), &["primitives", "create", "kv", "state", "--group", group]);
    }
    let key = people(folder.path(), &["keys", "create", "--group", "team"]);
    (Hall::on(folder, &[], &[]), key)
}

#[test]
fn a_key_opens_its_own_group_and_nothing_else() {
    let (hall, key) = hall();
    hall.ok("/mcp/team", &key, "kv_set", json!({"key": "a", "value": 1}));
    let elsewhere = hall.send("/mcp/other", Some(&key), "ping", json!({}));
    assert_eq!(elsewhere.status, 403);
    for path in ["/mcp/nosuch", "/mcp/team/x", "/mcp/TEAM", "/mcp/other?tools=nosuch"] {
        let heard = hall.send(path, Some(&key), "ping", json!({}));
        assert_eq!((heard.status, heard.text), (403, elsewhere.text.clone()), "{path}");
    }
    // No key, one that looks like one, one with a letter wrong: the same at every path.
    let last = key.chars().last().unwrap();
    let wrong = format!("{}{}", &key[..key.len() - 1], if last == '0' { '1' } else { '0' });
    let other = hall.key("other", &[]);
    let mixed = format!("{}{}", &other[..36], &key[36..]);
    for credential in [None, Some(wrong.as_str()), Some(&mixed), Some("nonsense"), Some(&key.to_uppercase())]
    {
        for path in ["/mcp/team", "/mcp/other", "/mcp/nosuch", "/"] {
            assert_eq!(hall.status(path, credential), 401, "{path} {credential:?}");
        }
    }
    let id = hall.ok("/mcp/other", &other, "primitive_list", json!({}))["data"][0]["id"].clone();
    let (code, words) = hall.refused("/mcp/team", &key, "kv_get", json!({"primitive": id, "key": "a"}));
    let (as_missing, other_words) =
        hall.refused("/mcp/team", &key, "kv_get", json!({"primitive": "x", "key": "a"}));
    assert_eq!((code.as_str(), as_missing.as_str()), ("not_found", "not_found"));
    assert_eq!(
        words.replace(id.as_str().unwrap(), "x"),
        other_words,
        "what is another group's is as what is not"
    );
}

#[test]
fn what_a_key_or_a_url_leaves_out_is_neither_listed_nor_called() {
    let (hall, all) = hall();
    let some = hall.key("team", &["--tools", "kv_get,kv_list"]);
    let reads = hall.key("team", &["--read-only"]);
    let every = hall.tools("/mcp/team", &all);
    assert!(every.len() >= 20, "{every:?}");
    let hints = hall.send("/mcp/team", Some(&all), "tools/list", json!({})).answer();
    let reading: Vec<String> = hints["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|tool| tool["annotations"]["readOnlyHint"] == true)
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    let every: Vec<&str> = every.iter().map(String::as_str).collect();
    let reading: Vec<&str> = reading.iter().map(String::as_str).collect();
    // key, query, tools
    let rows: [(&str, &str, &[&str]); 9] = [
        (&all, "", &every),
        (&some, "", &["primitive_list", "kv_get", "kv_list"]),
        (&reads, "", &reading),
        (&all, "?tools=kv_set", &["primitive_list", "kv_set"]),
        (&all, "?tools=kv_set,%20kv_get,", &["primitive_list", "kv_get", "kv_set"]),
        (&all, "?tools=primitive_list", &["primitive_list"]),
        // A URL takes away and never adds.
        (&some, "?tools=kv_get,kv_set", &["primitive_list", "kv_get"]),
        (&some, "?tools=kv_set", &["primitive_list"]),
        (&reads, "?tools=kv_set,kv_get", &["primitive_list", "kv_get"]),
    ];
    for (key, query, expected) in rows {
        let path = format!("/mcp/team{query}");
        assert_eq!(hall.tools(&path, key), expected, "{query}");
        for tool in &every {
            let result = hall.call(&path, key, tool, json!({}));
            let text = result["content"][0]["text"].as_str().unwrap();
            let forbidden = text.starts_with("[forbidden_tool] ");
            assert_eq!(forbidden, !expected.contains(tool), "{query} {tool}: {text}");
            if forbidden {
                assert_eq!(result["_meta"]["indelible/code"], "FORBIDDEN_TOOL");
                assert!(text.contains(&format!("`{tool}`")) && text.contains("ask a person"), "{text}");
                assert!(expected.iter().all(|tool| text.contains(tool)), "{text}");
            }
        }
    }
    let unknown =
        hall.send("/mcp/team", Some(&some), "tools/call", super::call("nosuch", json!({}))).answer();
    let words = unknown["error"]["message"].as_str().unwrap();
    assert!(words.contains("`kv_get`") && !words.contains("kv_set"), "{words}");
}

#[test]
fn what_is_wrong_in_a_url_is_refused_and_named() {
    let (hall, key) = hall();
    let rows = [
        ("?tools=kv_gett", "unknown tool `kv_gett`; did you mean `kv_get`?"),
        ("?tools=kv_get,KV_SET", "unknown tool `KV_SET`; did you mean `kv_set`?"),
        ("?tools=", "`tools` in this URL is empty"),
        ("?tools=,", "`tools` in this URL is empty"),
        ("?tools=kv_get&tools=kv_set", "`tools` stands twice"),
        ("?tool=kv_get", "`tool` is no parameter of this URL"),
    ];
    for (query, words) in rows {
        let heard = hall.send(&format!("/mcp/team{query}"), Some(&key), "tools/list", json!({}));
        assert_eq!(heard.status, 400, "{query}");
        assert!(heard.text.contains(words), "{query}: {}", heard.text);
    }
}

#[test]
fn a_key_that_is_taken_back_or_expires_opens_nothing_from_then_on() {
    let (hall, key) = hall();
    let named = hall.key("team", &["--name", "ci"]);
    let short = hall.key("team", &["--expires", "2s"]);
    assert_eq!(hall.status("/mcp/team", Some(&short)), 200);
    assert_eq!(hall.status("/mcp/team", Some(&named)), 200);
    let id = named.split('_').nth(1).unwrap();
    assert_eq!(hall.people(&["keys", "revoke", "ci"]), format!("ok: key {id} revoked"));
    assert_eq!(hall.status("/mcp/team", Some(&named)), 401);
    assert_eq!(hall.people(&["keys", "revoke", id]), format!("ok: key {id} was revoked already"));
    assert!(super::support::wait_until(|| hall.status("/mcp/team", Some(&short)) == 401));
    assert_eq!(hall.status("/mcp/team", Some(&key)), 200);
    let listed: Value = serde_json::from_str(&hall.people(&["keys", "list", "--json"])).unwrap();
    let states: Vec<&str> =
        listed.as_array().unwrap().iter().map(|key| key["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["ok", "revoked", "expired"]);
    assert_eq!(listed[1]["name"], "ci");
}

#[test]
fn whoever_waits_under_a_key_that_is_taken_back_gets_no_job() {
    let hall = Hall::open(&["team"]);
    hall.ok("/mcp/team", TOKEN, "primitive_create", json!({"type": "queue", "name": "waiting"}));
    let gone = hall.key("team", &["--name", "gone"]);
    let asked = json!({"queue": "jobs", "wait": "20s"});
    std::thread::scope(|scope| {
        let visitor = &hall.visitor;
        let (key, arguments) = (gone.as_str(), asked.clone());
        let waits = scope.spawn(move || visitor.refused("/mcp/team", key, "queue_receive", arguments));
        assert!(super::support::wait_until(|| {
            metrics(&hall.caller, Some(TOKEN)).1.contains("indelible_calls_in_flight 1")
        }));
        hall.people(&["keys", "revoke", "gone"]);
        hall.ok("/mcp/team", TOKEN, "queue_send", json!({"queue": "jobs", "body": "not for everybody"}));
        let (code, words) = waits.join().unwrap();
        assert_eq!(code, "forbidden_tool");
        assert!(words.contains("was taken back or has ended"), "{words}");
    });
    let got = hall.ok("/mcp/team", TOKEN, "queue_receive", asked);
    assert_eq!(
        (&got["data"][0]["attempts"], &got["data"][0]["body"]),
        (&json!(1), &json!("not for everybody"))
    );
}

#[test]
fn every_row_of_the_log_says_who_called_and_what_for() {
    let (hall, key, log) = Hall::logged();
    let rows = [
        ("storage_write", json!({"key": "object", "content": "x"})),
        ("storage_read", json!({"key": "object"})),
        ("storage_sign", json!({"key": "object"})),
        ("storage_write", json!({"key": "object", "action": "delete"})),
    ];
    for (tool, arguments) in &rows {
        hall.ok("/mcp/team", &key, tool, arguments.clone());
    }
    let log = std::fs::read_to_string(log).unwrap();
    let details: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|row| serde_json::from_str(row["detail"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(details.len(), rows.len());
    for detail in details {
        let id = key.split('_').nth(1).unwrap();
        assert_eq!((&detail["credential"], &detail["object"]), (&json!(id), &json!("object")), "{detail}");
    }
}

#[test]
fn a_key_is_shown_once_and_kept_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    people(folder.path(), &["groups", "create", "team"]);
    let words =
        ["keys", "create", "--group", "team", "--tools", "kv_set,kv_get", "--expires", "30d", "--name", "ci"];
    let (status, out, said) = person(folder.path(), &words);
    assert_eq!((status, out.lines().count()), (0, 1), "{out}");
    let key = out.trim();
    assert!(key.starts_with("indelible_") && key.len() == 77, "{key}");
    assert!(said.contains("opens /mcp/team for kv_get,kv_set, until 20") && !said.contains(key), "{said}");
    let log = folder.path().join("audit.jsonl");
    let hall = Hall::on(folder, &["-vv", "--audit-log", log.to_str().unwrap()], &[]);
    hall.ok("/mcp/team", key, "primitive_list", json!({}));
    hall.refused("/mcp/team", key, "kv_delete", json!({"key": "a"}));
    let secret = key.rsplit('_').next().unwrap();
    assert!(!hall.people(&["keys", "list"]).contains(secret));
    assert!(!hall.people(&["keys", "list", "--json"]).contains(secret));
    assert!(!hall.server.stderr().contains(secret), "{}", hall.server.stderr());
    let log = std::fs::read_to_string(log).unwrap();
    let rows: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let id = key.split('_').nth(1).unwrap();
    assert!(rows.iter().all(|row| row["detail"].as_str().unwrap().contains(id)), "{log}");
    assert!(rows[1]["error"].as_str().unwrap().ends_with("(FORBIDDEN_TOOL)"), "{log}");
    for entry in std::fs::read_dir(hall.data()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{}", path.display());
        }
    }
    assert!(!log.contains(secret));
}

#[test]
fn without_keys_it_starts_on_loopback_alone_and_only_when_told_so() {
    let folder = tempfile::tempdir().unwrap();
    people(folder.path(), &["groups", "create", "team"]);
    people(folder.path(), &["groups", "create", "other"]);
    let refusal = |flags: &[&str]| serving(folder.path(), flags).refusal();
    let (status, line) = refusal(&[]);
    assert_eq!(status, 2);
    assert!(line.starts_with("no key: `indelible keys create --data DIR --group NAME`"), "{line}");
    let (status, line) = refusal(&["--no-auth", "--http", "0.0.0.0:0"]);
    assert_eq!(status, 2, "{line}");
    people(folder.path(), &["keys", "create", "--group", "team", "--name", "only"]);
    let (status, line) = refusal(&["--no-auth"]);
    assert_eq!((status, line.contains("there are keys")), (2, true), "{line}");
    let (status, line) = refusal(&["--group", "other"]);
    assert_eq!((status, line.starts_with("no key:")), (2, true), "the key is another group's: {line}");
    people(folder.path(), &["keys", "revoke", "only"]);
    assert_eq!(refusal(&[]).0, 2);

    let hall = Hall::on(folder, &["--no-auth"], &[]);
    assert_eq!(hall.status("/mcp/team", None), 200);
    assert_eq!(hall.status("/mcp/team", Some("whatever a client sends")), 200);
    assert_eq!(hall.status("/mcp/nosuch", None), 404);
    // Whoever sends a key is held to it.
    let key = hall.key("team", &["--tools", "kv_get"]);
    assert_eq!(hall.tools("/mcp/team", &key), ["primitive_list", "kv_get"]);
    assert_eq!(hall.status("/mcp/other", Some(&key)), 403);
    hall.people(&["keys", "revoke", key.split('_').nth(1).unwrap()]);
    assert_eq!(hall.status("/mcp/team", Some(&key)), 401);
}

#[test]
fn the_operator_s_token_opens_every_group_beside_keys() {
    let hall = Hall::open(&["team", "other"]);
    let key = hall.key("team", &[]);
    for (path, of_key) in [("/mcp/team", 200), ("/mcp/other", 403)] {
        assert_eq!(hall.status(path, Some(TOKEN)), 200, "{path}");
        assert_eq!(hall.status(path, Some(&key)), of_key, "{path}");
    }
}

#[test]
fn what_people_get_wrong_with_keys_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    people(folder.path(), &["groups", "create", "team"]);
    for _ in 0..2 {
        people(folder.path(), &["keys", "create", "--group", "team", "--name", "twin"]);
    }
    let rows: &[(&[&str], i32, &str)] = &[
        (&["create"], 2, "no group: give --group NAME"),
        (&["create", "--group", "tean"], 1, "did you mean `team`?"),
        (
            &["create", "--group", "team", "--tools", "kv_gte"],
            2,
            "--tools: unknown tool `kv_gte`; did you mean `kv_get`?",
        ),
        (&["create", "--group", "team", "--tools", ","], 2, "--tools: name tools"),
        (&["create", "--group", "team", "--tools", "kv_get", "--read-only"], 2, "exclude each other"),
        (&["create", "--group", "team", "--expires", "soon"], 2, "`--expires` must be a length of time"),
        (&["create", "--group", "team", "--name", ""], 2, "--name: must be 1 to 64 characters"),
        (&["revoke", "nosuch"], 1, "there is no key `nosuch`"),
        (&["revoke", "twin"], 1, "there are several keys `twin`"),
    ];
    for (words, expected, line) in rows {
        let (status, out, said) = person(folder.path(), &[&["keys"], *words].concat());
        assert_eq!((status, out.as_str(), said.lines().count()), (*expected, "", 1), "{words:?}: {said}");
        assert!(said.contains(line), "{words:?}: {said}");
    }
}
