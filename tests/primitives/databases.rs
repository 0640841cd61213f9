//! Databases over real stdio: results, what is refused, and what survives whom.

use crate::stdio::Desk;
use crate::support::hostile::{HOSTILE, Hostile, OUT_OF_REACH};
use crate::support::music::{ENDLESS, MUSIC};
use crate::support::{children_of, kill, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// The music store's statements, for db_exec.
fn music() -> Value {
    let texts = MUSIC.split(";\n").map(str::trim).filter(|text| !text.is_empty());
    texts.map(|sql| json!({"sql": sql})).collect()
}

fn with_music(folder: &Path, flags: &[&str]) -> Desk {
    let mut desk = Desk::with(folder, flags);
    desk.ok("primitive_create", json!({"type": "db", "name": "d"}));
    desk.ok("db_exec", json!({"statements": music()}));
    desk
}

/// Every file below a folder that SQLite writes, with its bytes; not the index that readers share.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if !path.to_str().unwrap().ends_with("-shm") {
            found.insert(path.to_str().unwrap().to_owned(), std::fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn what_a_tool_may_not_do_is_refused_and_changes_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = with_music(folder.path(), &[]);
    desk.ok("db_query", json!({"sql": "SELECT 1"}));
    let before = files(folder.path());
    for Hostile { sql, db_query, db_exec, .. } in HOSTILE {
        match *db_query {
            "" => drop(desk.ok("db_query", json!({"sql": sql}))),
            code => {
                assert_eq!(desk.refused("db_query", json!({"sql": sql})), code, "{sql}");
                desk.refused("db_query", json!({"sql": format!("EXPLAIN QUERY PLAN {sql}; {sql}")}));
            }
        }
        // What is accepted is rolled back by what comes behind it.
        let both = json!({"statements": [{"sql": sql}, {"sql": "SELECT nowhere"}]});
        let (code, words) = desk.refusal("db_exec", both);
        let (expected, at) = if db_exec.is_empty() { ("unknown_column", 2) } else { (*db_exec, 1) };
        assert_eq!(code, expected, "{sql}: {words}");
        assert!(words.starts_with(&format!("statement {at} of 2: ")), "{sql}: {words}");
        assert!(words.ends_with("nothing was changed"), "{words}");
    }
    for sql in OUT_OF_REACH {
        desk.refused("db_query", json!({"sql": sql}));
        desk.refused("db_exec", json!({"sql": sql}));
    }
    for sql in ["", ";", "-- only a comment", "SELECT 1\0; DROP TABLE tracks"] {
        desk.refused("db_query", json!({"sql": sql}));
        desk.refused("db_exec", json!({"sql": sql}));
    }
    assert_eq!(files(folder.path()), before);
}

#[test]
fn no_statement_makes_a_file_and_no_trigger_brings_in_what_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let leak = folder.path().join("leak.db");
    let mut desk = with_music(&folder.path().join("data"), &[]);
    let path = leak.to_str().unwrap();
    for sql in [
        format!("VACUUM INTO '{path}'"),
        format!("VACUUM main INTO '{path}'"),
        format!("ATTACH '{path}' AS l"),
        format!("ATTACH DATABASE 'file:{path}?mode=rwc' AS l"),
        format!("SELECT writefile('{path}', 'x')"),
        format!("PRAGMA temp_store_directory = '{path}'"),
        format!("CREATE TRIGGER t AFTER INSERT ON artists BEGIN SELECT writefile('{path}', 'x'); END"),
        "CREATE TRIGGER temp.t AFTER INSERT ON main.artists BEGIN SELECT 1; END".to_owned(),
        "CREATE VIRTUAL TABLE v USING dbstat".to_owned(),
        "PRAGMA user_version = 5".to_owned(),
        "PRAGMA user_version(5)".to_owned(),
        "EXPLAIN PRAGMA user_version = 5".to_owned(),
        "SELECT * FROM pragma_user_version(5)".to_owned(),
        "UPDATE sqlite_schema SET sql = 'x'".to_owned(),
        "END".to_owned(),
        "INSERT OR ROLLBACK INTO artists VALUES (1, 'again')".to_owned(),
    ] {
        for tool in ["db_query", "db_exec"] {
            desk.refused(tool, json!({"sql": sql}));
        }
    }
    // Names that belong to the server in other profiles belong to the agent here.
    for sql in [
        "CREATE TABLE query_log(id INTEGER PRIMARY KEY, tool)",
        "INSERT INTO query_log(tool) VALUES ('mine')",
        "CREATE TABLE memory_events(a)",
        "DROP TABLE memory_events",
    ] {
        desk.ok("db_exec", json!({"sql": sql}));
    }
    assert_eq!(desk.ok("db_query", json!({"sql": "SELECT tool FROM query_log"}))["rows"], json!([["mine"]]));
    assert_eq!(desk.ok("db_query", json!({"sql": "SELECT count(*) FROM artists"}))["rows"], json!([[2]]));
    assert!(!leak.exists());
}

#[test]
fn no_agent_learns_where_the_data_folder_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = with_music(folder.path(), &[]);
    let path = folder.path().to_str().unwrap().to_owned();
    for tool in ["db_query", "db_exec"] {
        for sql in [
            "PRAGMA database_list",
            "PRAGMA main.database_list",
            "SELECT file FROM pragma_database_list",
            "SELECT (SELECT file FROM pragma_database_list)",
            "SELECT pgno FROM sqlite_dbpage",
            "PRAGMA temp_store_directory",
            "PRAGMA data_store_directory",
        ] {
            let (code, words) = desk.refusal(tool, json!({"sql": sql}));
            assert!(!words.contains(&path), "{sql}: {words}");
            let expected = if sql.contains("dbpage") { "unknown_table" } else { "refused" };
            assert_eq!(code, expected, "{sql}: {words}");
        }
        // Everything that a pragma may show does not.
        let listed = desk.ok(tool, json!({"sql": "SELECT name FROM pragma_pragma_list"}));
        let listed = if tool == "db_exec" { listed["results"][0].clone() } else { listed };
        let names = listed["rows"].as_array().unwrap().clone();
        assert!(names.len() > 30, "{names:?}");
        for name in names {
            let sql = format!("PRAGMA {}", name[0].as_str().unwrap());
            let answer = desk.client.request("tools/call", json!({"name": tool, "arguments": {"sql": sql}}));
            assert!(!answer.to_string().contains(&path), "{sql}: {answer}");
        }
    }
    // Nor by what goes wrong with the files.
    desk.ok("primitive_create", json!({"type": "db", "name": "gone"}));
    desk.ok("db_branch", json!({"primitive": "gone", "branch": "b"}));
    let mut removed = 0;
    for file in files(folder.path()).keys().filter(|file| !file.contains("catalog")) {
        std::fs::remove_file(file).unwrap();
        removed += 1;
    }
    assert!(removed > 2);
    for (tool, arguments) in [
        ("db_query", json!({"primitive": "gone", "sql": "SELECT 1"})),
        ("db_exec", json!({"primitive": "gone", "sql": "CREATE TABLE t(a)"})),
        ("db_branch", json!({"primitive": "gone", "action": "promote", "branch": "b"})),
        ("primitive_snapshot", json!({"primitive": "gone"})),
        ("primitive_fork", json!({"primitive": "gone"})),
    ] {
        let answer = desk.client.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert_eq!(answer["result"]["isError"], true, "{tool}: {answer}");
        assert!(!answer.to_string().contains(&path), "{tool}: {answer}");
    }
}

#[test]
fn values_come_back_exactly_and_what_is_missing_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = with_music(folder.path(), &["--max-rows", "50"]);
    let sql = "SELECT 9007199254740991, 9007199254740992, -1.5, NULL, 'ž', x'00ff', 9e999";
    let found = desk.ok("db_query", json!({"sql": sql}));
    let row =
        json!([9_007_199_254_740_991_i64, "9007199254740992", -1.5, null, "ž", {"base64": "AP8="}, "Inf"]);
    assert_eq!(found["rows"], json!([row]));
    assert_eq!((&found["row_count"], &found["truncated"]), (&json!(1), &json!(null)));
    let cut = desk.ok("db_query", json!({"sql": "SELECT id FROM tracks ORDER BY id"}));
    assert_eq!((&cut["row_count"], &cut["truncated"]), (&json!(50), &json!("max_rows")));
    let wide = desk.ok("db_query", json!({"sql": "SELECT printf('%.*c', 60000, 'x') FROM tracks"}));
    assert_eq!(wide["truncated"], "max_output_bytes");
    let long = desk.ok("db_query", json!({"sql": "SELECT randomblob(200000)"}));
    assert_eq!(long["truncated"], "max_cell_chars");
    assert_eq!(long["rows"][0][0]["left_out"], 200_000 - 65_536 / 4 * 3);
    // By position, by name, and bytes.
    let by_place = json!({"sql": "SELECT ?, ?2", "params": [{"base64": "AQI="}, true]});
    assert_eq!(desk.ok("db_query", by_place)["rows"], json!([[{"base64": "AQI="}, 1]]));
    let by_name = json!({"sql": "SELECT :a || $b", "params": {"a": "x", "$b": "y"}});
    assert_eq!(desk.ok("db_query", by_name)["rows"], json!([["xy"]]));
    for params in [json!([]), json!([1, 2, 3]), json!({"c": 1}), json!([[1], 2]), json!([{"base64": "?"}, 1])]
    {
        desk.refused("db_query", json!({"sql": "SELECT ?, ?", "params": params}));
    }
    let results = desk.ok(
        "db_exec",
        json!({"statements": [
            {"sql": "INSERT INTO artists(name) VALUES (:n), ('d')", "params": {"n": "c"}},
            {"sql": "UPDATE artists SET name = upper(name) WHERE id > 2 RETURNING id, name"},
            {"sql": "SELECT count(*) AS n FROM artists"},
            {"sql": "CREATE INDEX i ON artists(name)"},
            {"sql": "DELETE FROM artists WHERE id = 4"},
            {"sql": "INSERT INTO artists(id, name) VALUES (9007199254740993, 'far')"},
        ]}),
    );
    let expected = json!([
        {"rows_affected": 2, "last_insert_rowid": 4},
        {"rows_affected": 2, "last_insert_rowid": null, "columns": ["id", "name"], "rows": [[3, "C"], [4, "D"]]},
        {"rows_affected": 0, "last_insert_rowid": null, "columns": ["n"], "rows": [[4]]},
        {"rows_affected": 0, "last_insert_rowid": null},
        {"rows_affected": 1, "last_insert_rowid": null},
        {"rows_affected": 1, "last_insert_rowid": "9007199254740993"},
    ]);
    assert_eq!(results["results"], expected);
    // Both kinds of search, over tables that shadow tables stand behind.
    desk.ok(
        "db_exec",
        json!({"statements": [
            {"sql": "CREATE VIRTUAL TABLE f USING fts5(body)"},
            {"sql": "INSERT INTO f VALUES ('the quick brown fox')"},
            {"sql": "CREATE VIRTUAL TABLE r USING rtree(id, a, b)"},
            {"sql": "INSERT INTO r VALUES (1, 0, 2)"},
        ]}),
    );
    let both = "SELECT f.body, r.id FROM f, r WHERE f MATCH 'fox' AND r.a < 1";
    assert_eq!(desk.ok("db_query", json!({"sql": both}))["rows"], json!([["the quick brown fox", 1]]));
}

#[test]
fn arguments_that_do_not_fit_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = with_music(folder.path(), &[]);
    for arguments in [
        json!({}),
        json!({"sql": "SELECT 1", "statements": [{"sql": "SELECT 1"}]}),
        json!({"statements": []}),
        json!({"statements": [{"sql": "SELECT 1"}], "params": [1]}),
        json!({"statements": [{"params": [1]}]}),
        json!({"statements": [{"sql": "SELECT 1", "limit": 3}]}),
        json!({"statements": vec![json!({"sql": "SELECT 1"}); 1_001]}),
    ] {
        assert_eq!(desk.refused("db_exec", arguments.clone()), "invalid_arguments", "{arguments}");
    }
    let (code, words) = desk.refusal("db_query", json!({"sql": "DELETE FROM tracks"}));
    assert_eq!((code.as_str(), words.contains("use db_exec")), ("not_read_only", true), "{words}");
    let (_, words) = desk.refusal("db_exec", json!({"sql": "INSERT INTO artists VALUES (1, 'again')"}));
    assert_eq!(words, "UNIQUE constraint failed: artists.id; change the statement and send it again");
    for (sql, step) in [
        ("SELECT * FROM nowhere", "sqlite_schema"),
        ("SELECT title FROM artists", "pragma_table_info"),
        ("SELEC 1", "correct the SQL"),
    ] {
        let (_, words) = desk.refusal("db_query", json!({"sql": sql}));
        assert!(words.contains("; ") && words.contains(step), "{words}");
    }
    drop(desk);
    let mut desk = Desk::with(folder.path(), &["--read-only"]);
    let (_, words) = desk.refusal("db_query", json!({"sql": "DELETE FROM tracks"}));
    assert!(words.contains("no tool of this server does this"), "{words}");
}

#[test]
fn a_policy_file_narrows_what_these_tools_may_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.yaml");
    let narrowed = "hide:\n  - table: tracks\n    columns: [art]\nprotect: [albums]\nrefuse:\n  actions: [drop_table]\nlimits:\n  max_rows: 3\n";
    std::fs::write(&file, narrowed).unwrap();
    let data = folder.path().join("data");
    drop(with_music(&data, &[]));
    let mut desk = Desk::with(&data, &["--policy", file.to_str().unwrap()]);
    for (tool, sql, expected) in [
        ("db_query", "SELECT art FROM tracks", "`tracks.art` is hidden"),
        ("db_exec", "UPDATE tracks SET title = art RETURNING title", "hidden"),
        ("db_exec", "UPDATE albums SET title = 'x'", "`albums` is protected"),
        ("db_exec", "DROP TABLE artists", "DROP TABLE is refused in db_exec"),
    ] {
        let (code, words) = desk.refusal(tool, json!({"sql": sql}));
        assert!(code == "refused" && words.contains(expected), "{sql}: {code} {words}");
    }
    assert_eq!(desk.ok("db_query", json!({"sql": "SELECT id FROM tracks"}))["row_count"], 3);
}

#[test]
fn a_runaway_statement_is_stopped_while_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = with_music(folder.path(), &["--query-timeout", "2"]);
    desk.ok("primitive_create", json!({"type": "db", "name": "other"}));
    desk.ok("db_query", json!({"primitive": "other", "sql": "SELECT 1"}));
    let endless = json!({"primitive": "d", "sql": ENDLESS});
    let writing = format!("INSERT INTO artists(name) SELECT x FROM ({})", ENDLESS.replace("count(*)", "x"));
    let began = Instant::now();
    let mut run: Vec<i64> = (0..3).map(|_| desk.client.send_call("db_query", endless.clone())).collect();
    run.push(desk.client.send_call("db_exec", json!({"primitive": "d", "sql": writing})));
    for _ in 0..5 {
        desk.ok("db_query", json!({"primitive": "other", "sql": "SELECT 1"}));
        desk.ok("db_exec", json!({"primitive": "other", "sql": "CREATE TABLE IF NOT EXISTS t(a)"}));
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    for id in run {
        let answer = desk.client.wait_for(id);
        let text = answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(text.starts_with("[timeout]") && text.contains("nothing was changed"), "{text}");
    }
    let count = json!({"primitive": "d", "sql": "SELECT count(*) FROM artists"});
    assert_eq!(desk.ok("db_query", count)["rows"], json!([[2]]));
}

#[test]
fn what_was_acknowledged_outlives_kills_of_server_and_worker() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = with_music(folder.path(), &[]);
    desk.ok("db_exec", json!({"sql": "CREATE TABLE n(a INTEGER PRIMARY KEY, b)"}));
    let mut last = 0;
    for round in 0..4 {
        for _ in 0..10 {
            last += 1;
            let two = json!([{"sql": "INSERT INTO n VALUES (?, 1)", "params": [last]},
                {"sql": "UPDATE n SET b = 2 WHERE a = ?", "params": [last]}]);
            desk.ok("db_exec", json!({"statements": two}));
        }
        if round % 2 == 0 {
            children_of(desk.client.pid()).into_iter().for_each(kill);
            assert!(wait_until(|| children_of(desk.client.pid()).is_empty()));
        } else {
            kill(desk.client.pid());
            drop(desk);
            desk = Desk::at(folder.path());
        }
        let rows = desk.ok("db_query", json!({"sql": "SELECT count(*), max(a), min(b) FROM n"}));
        assert_eq!(rows["rows"], json!([[last, last, 2]]));
    }
    // A worker that dies over a statement has changed nothing, and the answer says so.
    let endless =
        format!("INSERT INTO n SELECT x, 1 FROM ({})", ENDLESS.replace("count(*)", "x + 1000 AS x"));
    let id = desk.client.send_call("db_exec", json!({"sql": endless}));
    std::thread::sleep(Duration::from_millis(300));
    children_of(desk.client.pid()).into_iter().for_each(kill);
    let answer = desk.client.wait_for(id);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("[worker_lost]") && text.contains("nothing was changed"), "{text}");
    let rows = desk.ok("db_query", json!({"sql": "SELECT count(*), max(a), min(b) FROM n"}));
    assert_eq!(rows["rows"], json!([[last, last, 2]]));
}
