//! create_view: one SELECT kept under a name with what it is for.

use crate::support::{Bench, Server};
use serde_json::json;

#[test]
fn a_view_keeps_its_select_and_a_description_of_one_line() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client
        .call("create_view", json!({"name": "recent", "select_sql": "SELECT id, title FROM notes ORDER BY id DESC;", "description": "newest  notes\nfirst"}))
        .is("ok: view recent created with columns id, title");
    client.call("get_schema", json!({})).ok().has("CREATE VIEW recent AS\n-- description: newest notes first\nSELECT id, title FROM notes ORDER BY id DESC;");
    client.read("SELECT * FROM recent").is("id,title\n3,gamma\n2,beta\n1,alpha\n# 3 rows");
    client
        .call("create_view", json!({"name": "recent", "select_sql": "SELECT id FROM notes"}))
        .fails(&["a view `recent` exists already", "`replace`"]);
    client
        .call("create_view", json!({"name": "RECENT", "select_sql": "SELECT id FROM notes", "replace": true}))
        .ok()
        .starts("ok: view RECENT replaced with columns id");
    let log = client.read("SELECT json_extract(detail, '$.replaced') LIKE '%ORDER BY id DESC%' AS kept, json_extract(detail, '$.name') AS name FROM query_log WHERE tool = 'create_view' AND ok ORDER BY id DESC LIMIT 1");
    log.is("kept,name\n1,RECENT\n# 1 rows");
    client.destroy("DROP VIEW recent").ok().starts("ok: DROP VIEW RECENT; snapshot: ");
    assert_eq!(bench.query("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'recent'"), "0");
}

#[test]
fn every_kind_of_select_makes_a_view() {
    let bench = Bench::notes();
    bench.sql("CREATE VIRTUAL TABLE f USING fts5(body); INSERT INTO f VALUES ('an apple')");
    let mut client = Server::on(&bench).start();
    for (name, select, sample) in [
        (
            "v1",
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 3) SELECT x FROM c",
            "x\n1\n2\n3\n",
        ),
        ("v2", "VALUES (1, 2)", "column1,column2\n1,2\n"),
        ("v3", "SELECT count(*) AS n FROM memory_events", "n\n0\n"),
        ("v4", "SELECT tool, count(*) AS n FROM query_log WHERE tool = 'nope' GROUP BY tool", "tool,n\n# 0"),
        ("v5", "SELECT 'a;b' AS a -- with a ; comment", "a\na;b\n"),
        ("v6", "SELECT rowid AS id FROM f('apple')", "id\n1\n"),
        ("v7", "SELECT x * 2 AS y FROM v1", "y\n2\n4\n6\n"),
        ("_under_1", " \n SELECT 1 AS a ; ; ", "a\n1\n"),
    ] {
        client.call("create_view", json!({"name": name, "select_sql": select, "description": "d"})).ok();
        client.read(&format!("SELECT * FROM {name}")).ok().starts(sample);
    }
    drop(client);
    let mut client = Server::on(&bench).start();
    client.read("SELECT * FROM v6").is("id\n1\n# 1 rows");
}

#[test]
fn what_is_no_plain_select_is_refused_and_leaves_nothing() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client.is_alive();
    let before = bench.content();
    for (name, select, words) in [
        ("bad name", "SELECT 1", "`name`"),
        ("1st", "SELECT 1", "`name`"),
        ("", "SELECT 1", "`name`"),
        ("a\"b", "SELECT 1", "`name`"),
        ("a;b", "SELECT 1", "`name`"),
        ("žluť", "SELECT 1", "`name`"),
        ("sqlite_x", "SELECT 1", "`sqlite_`"),
        ("memory_events", "SELECT 1", "`memory_events`"),
        ("v", "DELETE FROM notes", "DELETE"),
        ("v", "INSERT INTO notes(title) VALUES ('x') RETURNING id", "INSERT"),
        ("v", "SELECT 1; DROP TABLE notes", "one statement"),
        ("v", "SELECT * FROM nope", "no such table: nope"),
        ("v", "SELECT nope FROM notes", "no such column: nope"),
        ("v", "", "no statement"),
        ("v", "-- only a comment", "no statement"),
        ("v", "PRAGMA table_info(notes)", "create_view takes one SELECT"),
        ("v", "EXPLAIN SELECT 1", "SELECT"),
        ("v", "SELECT name FROM pragma_table_info('notes')", "unsafe use of virtual table"),
        ("v", "SELECT ? AS a", "parameters"),
        ("v", "SELECT :a AS a", "parameters"),
        ("v", "SELECT load_extension('x')", "load_extension"),
        ("v", "SELECT * FROM v", "no such table: v"),
        ("notes", "SELECT 1", "a table `notes` exists already"),
        ("NOTES", "SELECT 1", "a table `NOTES` exists already"),
        ("tags_note", "SELECT 1", "there is already an index named tags_note"),
    ] {
        client.call("create_view", json!({"name": name, "select_sql": select})).fails(&[words]);
        client
            .call("create_view", json!({"name": name, "select_sql": select, "replace": true}))
            .fails(&[words]);
    }
    assert_eq!(bench.content(), before);
    client.call("create_view", json!({"name": "a", "select_sql": "SELECT 1 AS x"})).ok();
    client.call("create_view", json!({"name": "b", "select_sql": "SELECT x FROM a"})).ok();
    client
        .call("create_view", json!({"name": "a", "select_sql": "SELECT x FROM b", "replace": true}))
        .fails(&["circular"]);
    client.read("SELECT * FROM b").is("x\n1\n# 1 rows");
}

#[test]
fn a_description_cannot_leave_its_comment() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    for (at, description) in
        ["x\n*/ DROP TABLE notes; --", "a\rSELECT 2", "b\u{2028}c\u{85}d", "c\0d", "--", "'\"`]"]
            .iter()
            .enumerate()
    {
        let name = format!("v{at}");
        client
            .call(
                "create_view",
                json!({"name": name, "select_sql": "SELECT 1 AS a", "description": description}),
            )
            .ok();
        client.read(&format!("SELECT * FROM {name}")).is("a\n1\n# 1 rows");
        let stored = bench.query(&format!("SELECT sql FROM sqlite_schema WHERE name = '{name}'"));
        let lines: Vec<&str> = stored.split(['\n', '\r', '\u{2028}', '\u{85}']).collect();
        assert_eq!((lines.len(), lines[2]), (3, "SELECT 1 AS a"), "{stored}");
    }
    client
        .call("create_view", json!({"name": "w", "select_sql": "SELECT 1", "description": "x".repeat(2001)}))
        .fails_as("INVALID_ARGUMENTS", &["`description`", "2000"]);
    assert_eq!(bench.query("SELECT count(*) FROM notes"), "3");
}
