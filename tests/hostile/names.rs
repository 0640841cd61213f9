//! Odd names and texts: in views, searches, the schema, and beside the database.

use crate::client::Server;
use serde_json::json;
use std::path::Path;

#[test]
fn a_view_s_text_cannot_leave_its_place() {
    let mut server = Server::over("CREATE TABLE t(a)", &[]);
    for (select, stored) in [
        (
            "SELECT 1 AS a -- tail",
            "CREATE VIEW v AS\n-- description: one two */ ; three\nSELECT 1 AS a -- tail",
        ),
        (";; SELECT ';' AS a; ;", "CREATE VIEW v AS\n-- description: one two */ ; three\nSELECT ';' AS a"),
    ] {
        let arguments = json!({"name": "v", "select_sql": select, "replace": true, "description": "one\r\ntwo */ ;\u{2028}three"});
        server.call("create_view", arguments).unwrap();
        let schema = server.call("get_schema", json!({})).unwrap();
        assert!(schema.contains(stored), "{schema}");
    }
    for (select, words) in [
        ("SELECT 1 AS a /* open", "ends in a comment that is not closed"),
        ("SELECT 1; DROP TABLE t", "one statement per call"),
        ("PRAGMA table_info(t)", "takes one SELECT"),
        ("EXPLAIN SELECT 1", "takes one SELECT"),
        ("SELECT :a", "cannot have parameters"),
        ("SELECT a FROM v", "circularly"),
    ] {
        let error = server
            .call("create_view", json!({"name": "v", "select_sql": select, "replace": true}))
            .unwrap_err();
        assert!(error.contains(words), "{select}: {error}");
    }
    assert_eq!(server.read("SELECT * FROM v").unwrap(), "a\n;\n# 1 rows");
}

#[test]
fn replacing_a_view_loses_no_trigger() {
    let mut server = Server::over(
        "CREATE TABLE t(a); CREATE VIEW v AS SELECT a FROM t;
         CREATE TRIGGER vi INSTEAD OF INSERT ON v BEGIN INSERT INTO t VALUES (new.a); END;",
        &[],
    );
    let replace = json!({"name": "V", "select_sql": "SELECT 2 AS a", "replace": true});
    let error = server.call("create_view", replace).unwrap_err();
    assert!(error.contains("has the trigger `vi`"), "{error}");
    // Only the trigger inserts: the id of the row it put in is not the statement's.
    assert_eq!(server.write("INSERT INTO v VALUES (5)").unwrap(), "ok: 0 rows affected");
    assert_eq!(server.number("SELECT a FROM t"), 5);
}

#[test]
fn a_search_condition_is_one_expression() {
    let mut server = Server::over(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t(a) VALUES ('hello'), ('hallo')",
        &[],
    );
    let search = |condition: &str| json!({"pattern": "h.llo", "table": "t", "where": condition});
    for condition in [
        "1) UNION SELECT (2",
        "1) LIMIT (1",
        "1) ORDER BY (1",
        "1) GROUP BY (a",
        "1) WINDOW w AS (PARTITION BY a",
        "1; DROP TABLE t",
        "1 /*",
        "1) THEN 2 WHEN (3",
        "1 THEN 2 WHEN 3",
        "1) OR (1",
        "id = 1) OR (a = 'hallo'",
        "id = ?",
        "1, 2",
    ] {
        assert!(server.call("search_text", search(condition)).is_err(), "{condition}");
    }
    for (condition, matches) in
        [("id = 1 -- first", 1), ("1 /* all */", 2), ("a IN (SELECT a FROM t WHERE id > 1)", 1)]
    {
        let found = server.call("search_text", search(condition)).unwrap();
        assert!(found.contains(&format!("# {matches} of {matches} matching values")), "{condition}: {found}");
    }
}

/// A schema holds names that are no UTF-8, and tables of modules that nobody has.
#[test]
fn a_name_that_is_no_text_costs_itself_only() {
    let mut server = Server::over(
        "CREATE TABLE t(a); INSERT INTO t VALUES (1); CREATE TABLE spare(x); PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET name = CAST(x'ff6162' AS TEXT), tbl_name = CAST(x'ff6162' AS TEXT),
             sql = CAST('CREATE TABLE \"' || CAST(x'ff6162' AS TEXT) || '\"(x)' AS TEXT) WHERE name = 'spare';
         INSERT INTO sqlite_schema VALUES ('table', 'broken', 'broken', 0, 'CREATE VIRTUAL TABLE broken USING nosuch(a)');",
        &["--max-update-rows", "0"],
    );
    let listed = server.call("list_tables", json!({"include_row_counts": true})).unwrap();
    assert!(listed.contains("\nt,table,0,1\n") && listed.contains("\nbroken,table,0,\n"), "{listed}");
    assert!(server.call("get_schema", json!({})).unwrap().contains("CREATE TABLE t(a);"));
    server.refuses("write_query", "UPDATE t SET a = 2", "overwrite 1 existing rows");
    server.destroy("UPDATE t SET a = 2").unwrap();
    assert_eq!(server.number("SELECT a FROM t"), 2);
}

#[test]
fn databases_of_one_name_do_not_rotate_each_other_s_snapshots() {
    let folder = tempfile::tempdir().unwrap();
    let shared = folder.path().join("all");
    let flags = ["--snapshots", "2", "--snapshot-dir", shared.to_str().unwrap()];
    let mut servers = [Server::over("CREATE TABLE t(a)", &flags), Server::over("CREATE TABLE t(a)", &flags)];
    for _ in 0..4 {
        for server in &mut servers {
            server.destroy("DELETE FROM t").unwrap();
        }
    }
    let of = |server: &mut Server| {
        let text = server.destroy("DELETE FROM t").unwrap();
        let path = Path::new(text.split("snapshot: ").nth(1).unwrap()).to_path_buf();
        assert_eq!(path.parent(), Some(shared.as_path()));
        path.file_name().unwrap().to_str().unwrap().split(".20").next().unwrap().to_owned()
    };
    let labels = servers.each_mut().map(of);
    assert_ne!(labels[0], labels[1]);
    let names: Vec<String> = std::fs::read_dir(&shared)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for label in &labels {
        assert!(label.starts_with("m.db."));
        assert_eq!(names.iter().filter(|name| name.starts_with(label.as_str())).count(), 2, "{names:?}");
    }
    // In the folder beside the database nobody else is.
    let mut alone = Server::over("CREATE TABLE t(a)", &[]);
    let text = alone.destroy("DELETE FROM t").unwrap();
    assert!(text.contains(&format!("{}/m.db.snapshots/m.db.20", alone.folder().display())), "{text}");
}
