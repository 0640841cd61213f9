//! Groups of primitives over HTTP: each at its own path, all behind the same door; and the commands of people beside it.

use super::hall::{Hall, people, person, serving};
use super::{TOKEN, call};
use serde_json::{Value, json};

#[test]
fn every_group_is_served_at_its_own_path_and_a_new_one_at_once() {
    let hall = Hall::open(&["team", "other"]);
    for (path, value) in [("/mcp/team", 1), ("/mcp/other", 2)] {
        hall.ok(path, TOKEN, "primitive_create", json!({"type": "kv", "name": "state"}));
        hall.ok(path, TOKEN, "kv_set", json!({"key": "a", "value": value}));
    }
    for (path, value) in [("/mcp/team", 1), ("/mcp/other", 2)] {
        assert_eq!(hall.ok(path, TOKEN, "kv_get", json!({"key": "a"}))["data"]["value"], value, "{path}");
    }
    let of_other = hall.ok("/mcp/other", TOKEN, "primitive_list", json!({}))["data"][0]["id"].clone();
    let (code, words) =
        hall.refused("/mcp/team", TOKEN, "kv_get", json!({"primitive": of_other, "key": "a"}));
    assert_eq!(code, "not_found", "{words}");

    assert_eq!(hall.status("/mcp/late", Some(TOKEN)), 404);
    assert_eq!(hall.people(&["groups", "create", "late"]), "ok: group late made; it is served at /mcp/late");
    assert_eq!(hall.status("/mcp/late", Some(TOKEN)), 200);
    assert_eq!(hall.ok("/mcp/late", TOKEN, "primitive_list", json!({})), json!({"data": []}));
    let listed: Value = serde_json::from_str(&hall.people(&["groups", "list", "--json"])).unwrap();
    let listed: Vec<(&str, u64)> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|group| (group["name"].as_str().unwrap(), group["primitives"].as_u64().unwrap()))
        .collect();
    assert_eq!(listed, [("late", 0), ("other", 1), ("team", 1)]);
}

#[test]
fn whoever_sends_no_credential_hears_the_same_at_every_path() {
    let hall = Hall::open(&["team"]);
    let heard = |path: &str, credential: Option<&str>| {
        let heard = hall.send(path, credential, "ping", json!({}));
        (heard.status, heard.text.clone(), heard.header("www-authenticate").to_owned())
    };
    for credential in [None, Some("wrong")] {
        let expected = heard("/mcp/team", credential);
        assert_eq!(expected.0, 401);
        for path in
            ["/mcp/nosuch", "/mcp", "/", "/mcp/team/", "/mcp/team?tools=kv_get", "/mcp/team?tools=nosuch"]
        {
            assert_eq!(heard(path, credential), expected, "{path}");
        }
    }
    let rows =
        [("/mcp/team", 200), ("/mcp/nosuch", 404), ("/mcp/TEAM", 404), ("/mcp/team/", 404), ("/mcp", 404)];
    for (path, status) in rows {
        assert_eq!(hall.status(path, Some(TOKEN)), status, "{path}");
    }
    assert!(!hall.server.stderr().contains(TOKEN));
}

#[test]
fn a_server_of_one_group_serves_no_other() {
    let folder = tempfile::tempdir().unwrap();
    people(folder.path(), &["groups", "create", "other"]);
    let hall = Hall::on(folder, &["--group", "team"], &[("INDELIBLE_HTTP_TOKEN", TOKEN)]);
    assert!(hall.caller.url().ends_with("/mcp/team"), "{}", hall.caller.url());
    assert_eq!(hall.status("/mcp/team", Some(TOKEN)), 200);
    assert_eq!(hall.status("/mcp/other", Some(TOKEN)), 404);
    let (status, line) = serving(hall.data().parent().unwrap(), &["--no-auth"]).refusal();
    assert_eq!(status, 1);
    assert!(line.contains("another server has the data folder"), "{line}");
}

#[test]
fn both_families_of_revisions_reach_a_group() {
    let hall = Hall::open(&["team"]);
    let url = format!("http://{}/mcp/team", hall.caller.authority);
    let ask = |message: Value, headers: &[(&str, &str)]| {
        let request = headers
            .iter()
            .fold(hall.caller.post().uri(&url), |request, (name, value)| request.header(*name, *value));
        hall.caller.run(request.body(message.to_string()).unwrap()).answer()["result"].clone()
    };
    let shaken = ask(super::shake("2025-11-25"), &[]);
    assert_eq!(shaken["serverInfo"]["name"], "indelible", "{shaken}");
    let modern = |method: &str, params: Value| {
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let headers =
            [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("mcp-name", name.as_str())];
        let headers = if name.is_empty() { &headers[..2] } else { &headers[..] };
        ask(super::modern(method, params), headers)
    };
    assert_eq!(modern("server/discover", json!({}))["capabilities"], json!({"tools": {}}));
    let listed = modern("tools/list", json!({}));
    // Who asks decides what is listed, so nobody else may be given it.
    assert_eq!((&listed["cacheScope"], &listed["resultType"]), (&json!("private"), &json!("complete")));
    let made = modern("tools/call", call("primitive_create", json!({"type": "kv", "name": "state"})));
    assert_eq!(made["structuredContent"]["name"], "state", "{made}");
}

#[test]
fn eight_clients_at_once_lose_nothing_and_see_one_order() {
    const CLIENTS: usize = 8;
    const ROUNDS: usize = 15;
    let hall = Hall::open(&["team"]);
    for kind in ["kv", "queue", "storage"] {
        hall.ok("/mcp/team", TOKEN, "primitive_create", json!({"type": kind, "name": kind}));
    }
    let visitor = &hall.visitor;
    let ok = move |tool: &str, arguments: Value| visitor.ok("/mcp/team", TOKEN, tool, arguments);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    ok("kv_set", json!({"key": "count", "incr": 1}));
                    ok("queue_send", json!({"queue": "jobs", "body": [client, round]}));
                    let put = json!({"key": format!("{client}/{round}"), "content": format!("{round}")});
                    ok("storage_write", put);
                    for job in ok("queue_receive", json!({"queue": "jobs"}))["data"].as_array().unwrap() {
                        let ack =
                            json!({"queue": "jobs", "id": job["id"], "lease_token": job["lease_token"]});
                        ok("queue_ack", ack);
                        ok("kv_set", json!({"key": job["body"].to_string(), "value": true, "if_version": 0}));
                    }
                }
            });
        }
    });
    while let Some(job) = ok("queue_receive", json!({"queue": "jobs"}))["data"].as_array().unwrap().first() {
        ok("kv_set", json!({"key": job["body"].to_string(), "value": true, "if_version": 0}));
        ok("queue_ack", json!({"queue": "jobs", "id": job["id"], "lease_token": job["lease_token"]}));
    }
    let total = CLIENTS * ROUNDS;
    assert_eq!(ok("kv_get", json!({"key": "count"}))["data"]["value"], total);
    let done = ok("kv_list", json!({"prefix": "[", "limit": 1000}));
    assert_eq!(done["data"].as_array().unwrap().len(), total, "each job was given to one client alone");
    let objects = ok("storage_list", json!({"limit": 1000}));
    assert_eq!(objects["data"].as_array().unwrap().len(), total);
}

#[test]
fn people_make_pause_and_resume_primitives_beside_a_server() {
    let hall = Hall::open(&["team"]);
    let group = ["--group", "team"];
    let made = hall.people(&[&["primitives", "create", "kv", "state"], &group[..]].concat());
    assert_eq!(made, "ok: kv state made in group team");
    hall.ok("/mcp/team", TOKEN, "kv_set", json!({"key": "a", "value": 1}));
    let paused = hall.people(&[&["primitives", "pause", "state"], &group[..]].concat());
    assert_eq!(paused, "ok: state paused; its calls fail with `paused`");
    let (code, _) = hall.refused("/mcp/team", TOKEN, "kv_get", json!({"key": "a"}));
    assert_eq!(code, "paused");
    let table = hall.people(&["primitives", "list"]);
    let words: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["group", "name", "type", "state", "id"]);
    assert_eq!(words[1][..4], ["team", "state", "kv", "paused"]);
    let listed: Value = serde_json::from_str(&hall.people(&["primitives", "list", "--json"])).unwrap();
    assert_eq!(listed[0]["paused"], true, "{listed}");
    // By id, too.
    hall.people(&[&["primitives", "resume", listed[0]["id"].as_str().unwrap()], &group[..]].concat());
    assert_eq!(hall.ok("/mcp/team", TOKEN, "kv_get", json!({"key": "a"}))["data"]["value"], 1);
}

#[test]
fn what_people_get_wrong_is_one_line_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let (status, _, said) = person(folder.path(), &["groups", "list"]);
    assert_eq!(status, 1);
    assert!(said.contains("is no data folder; `indelible groups create` makes one"), "{said}");
    people(folder.path(), &["groups", "create", "team"]);
    people(folder.path(), &["primitives", "create", "kv", "state", "--group", "team"]);
    let rows: &[(&[&str], i32, &str)] = &[
        (&["groups", "create", "team"], 1, "there is a group `team` already"),
        (&["groups", "create", "a b"], 1, "`group` must be 1 to 64 letters"),
        (&["primitives", "create", "kv", "x"], 2, "no group: give --group NAME"),
        (&["primitives", "create", "kv", "x", "--group", "taem"], 1, "did you mean `team`?"),
        (&["primitives", "create", "kv", "state", "--group", "team"], 1, "has a primitive `state` already"),
        (&["primitives", "create", "kw", "x", "--group", "team"], 2, "`kw`: must be one of"),
        (&["primitives", "pause", "stat", "--group", "team"], 1, "did you mean `state`?"),
        (&["primitives", "list", "--db", "x"], 2, "this command works on a data folder: give --data DIR"),
    ];
    for (words, expected, line) in rows {
        let (status, out, said) = person(folder.path(), words);
        assert_eq!((status, out.as_str(), said.lines().count()), (*expected, "", 1), "{words:?}: {said}");
        assert!(said.contains(line), "{words:?}: {said}");
    }
}
