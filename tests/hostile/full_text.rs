//! Rows of full-text tables pass in every shape, commands that lose something in none.

use crate::client::Server;
use serde_json::json;

const SETUP: &str = "CREATE TABLE docs(id INTEGER PRIMARY KEY, title, body);
    WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 600)
    INSERT INTO docs SELECT i, 'title ' || i, 'body ' || i FROM c;
    CREATE VIRTUAL TABLE f USING fts5(title, body);
    CREATE VIRTUAL TABLE f4 USING fts4(title, body);
    CREATE VIRTUAL TABLE f3 USING fts3(title, body);
    CREATE VIRTUAL TABLE cd USING fts5(title, body, content='', contentless_delete=1);
    CREATE VIRTUAL TABLE e USING fts5(title, body, content=docs, content_rowid=id);
    INSERT INTO e(e) VALUES ('rebuild');";

#[test]
fn rows_are_accepted_in_every_shape() {
    let mut server = Server::over(SETUP, &[]);
    for table in ["f", "f4", "f3", "cd"] {
        for query in [
            "INSERT INTO T VALUES ('a', 'b')",
            "INSERT INTO T(title, body) VALUES ('a', 'b'), ('c', NULL), (1, 2.5)",
            "INSERT INTO T(title) SELECT title FROM docs",
            "INSERT INTO T(rowid, title, body) SELECT id + 100000, title, body FROM docs ORDER BY id LIMIT 50",
            "WITH q(a, b) AS (VALUES ('p', 'q')) INSERT INTO T(title, body) SELECT * FROM q",
            "INSERT INTO T(title) SELECT title FROM docs UNION SELECT 'zz'",
            "INSERT INTO T(title, body) SELECT title, row_number() OVER (ORDER BY id) FROM docs",
            "INSERT INTO T(body, title) VALUES ((SELECT body FROM docs WHERE id = 1), (SELECT max(title) FROM docs))",
            "INSERT INTO T(title) SELECT value FROM json_each('[\"a\",\"b\"]')",
            "INSERT OR REPLACE INTO T(rowid, title) VALUES (1, 'x')",
            "INSERT OR IGNORE INTO T(rowid, title) VALUES (777, 'x')",
            "INSERT INTO T DEFAULT VALUES",
            "INSERT INTO T(title) VALUES ('a') RETURNING rowid",
            ";INSERT INTO T(title) VALUES ('a')",
        ] {
            let query = query.replace(" T", &format!(" {table}"));
            let result = server.write(&query);
            assert!(result.is_ok(), "{query}: {result:?}");
        }
        let query = format!("INSERT INTO {table}(title, body) VALUES (?, ?)");
        server.call("write_query", json!({"query": query, "params": ["x", null]})).unwrap();
    }
    server.write("INSERT INTO e(rowid, title, body) SELECT id + 1000, title, body FROM docs").unwrap();
    for command in ["optimize", "rebuild", "integrity-check"] {
        server.write(&format!("INSERT INTO f(f) VALUES ('{command}')")).unwrap();
    }
    server.write("INSERT INTO e(e) VALUES ('rebuild')").unwrap();
    server.write("INSERT INTO f(f, rank) VALUES ('merge', 16)").unwrap();
}

#[test]
fn a_command_that_loses_something_is_refused_however_it_is_hidden() {
    let mut server = Server::over(SETUP, &[]);
    for query in [
        "INSERT INTO e(e) VALUES ('delete-all')",
        "INSERT INTO e(E) VALUES ('DELETE-ALL')",
        "INSERT INTO e(e, rowid, title, body) VALUES ('delete', 1, 'title 1', 'body 1')",
        "INSERT INTO e(e) SELECT 'delete-all'",
        "WITH q(a) AS (VALUES ('delete-all')) INSERT INTO e(e) SELECT a FROM q",
        "INSERT INTO e(e) VALUES ('delete' || '-all')",
        "INSERT INTO e(e) VALUES (lower('DELETE-ALL'))",
        "INSERT INTO e(e) VALUES (NULL), ('delete-all')",
        "INSERT INTO e(e) VALUES ('optimize'), ('delete-all')",
        "INSERT INTO e(e) SELECT CASE id WHEN 1 THEN NULL ELSE 'delete-all' END FROM docs LIMIT 2",
        "INSERT INTO e(e) VALUES (CAST('delete-all' AS BLOB))",
        "INSERT INTO e(e) VALUES (x'64656c6574652d616c6c')",
        "INSERT OR REPLACE INTO e(e) VALUES ('delete-all')",
        "INSERT INTO e(e) VALUES ((SELECT 'delete-all'))",
        ";INSERT INTO e(e) VALUES ('delete-all')",
    ] {
        server.refuses("write_query", query, " command");
    }
    let query = json!({"query": "INSERT INTO e(e) VALUES (?)", "params": ["delete-all"]});
    assert!(
        server.call("write_query", query).unwrap_err().contains("a command to `e` that is not a constant")
    );
    assert_eq!(server.read("SELECT count(*) AS n FROM e('title')").unwrap(), "n\n600\n# 1 rows");
    assert!(server.destroy("INSERT INTO e(e) VALUES ('delete-all')").unwrap().contains("snapshot"));
    assert_eq!(server.read("SELECT count(*) AS n FROM e('title')").unwrap(), "n\n0\n# 1 rows");
}

#[test]
fn a_trigger_s_command_is_looked_at_too() {
    let mut server = Server::over(SETUP, &[]);
    for (body, words) in [
        ("INSERT INTO e(e) VALUES ('delete-all');", "the command 'delete-all'"),
        (
            "UPDATE log SET a = 1; INSERT INTO e(e, rowid, title) VALUES ('delete', 1, 'title 1');",
            "the command 'delete'",
        ),
        ("INSERT INTO e(e) VALUES (new.a);", "not a constant"),
    ] {
        server.outside("CREATE TABLE IF NOT EXISTS log(a); DROP TRIGGER IF EXISTS t");
        server.outside(&format!("CREATE TRIGGER t AFTER INSERT ON log BEGIN {body} END"));
        server.refuses("write_query", "INSERT INTO log VALUES ('delete-all')", words);
    }
    // An UPDATE takes the old text out of an external index; that is what the command is for.
    server.outside(
        "DROP TRIGGER t; CREATE TRIGGER u AFTER UPDATE ON docs BEGIN
             INSERT INTO e(e, rowid, title, body) VALUES ('delete', old.id, old.title, old.body);
             INSERT INTO e(rowid, title, body) VALUES (new.id, new.title, new.body); END;",
    );
    server.write("UPDATE docs SET title = 'other' WHERE id <= 300").unwrap();
    assert_eq!(server.read("SELECT count(*) AS n FROM e('other')").unwrap(), "n\n300\n# 1 rows");
    server.refuses("write_query", "UPDATE docs SET title = 'other'", "overwrite 600 existing rows");
}

#[test]
fn full_text_and_rtree_tables_are_renamed_and_dropped_with_their_own_tables_only() {
    let mut server = Server::over(
        "CREATE TABLE docs_old(a); INSERT INTO docs_old VALUES (1); CREATE TABLE query_more(a);",
        &[],
    );
    for (module, columns) in [("fts5", "a"), ("fts4", "a"), ("fts3", "a"), ("rtree", "a, b, c")] {
        for name in ["query", "memory", "docs"] {
            server.write(&format!("CREATE VIRTUAL TABLE {name} USING {module}({columns})")).unwrap();
            server.destroy(&format!("ALTER TABLE {name} RENAME TO {name}_events_no")).unwrap();
        }
        server.restart();
        for name in ["query", "memory", "docs"] {
            server.read(&format!("SELECT count(*) FROM {name}_events_no")).unwrap();
            server.destroy(&format!("DROP TABLE {name}_events_no")).unwrap();
        }
    }
    let left =
        server.number("SELECT count(*) FROM sqlite_schema WHERE tbl_name LIKE '%_no%' AND type = 'table'");
    assert_eq!(left, 0);
    assert_eq!(server.number("SELECT count(*) FROM docs_old"), 1);
    assert!(server.call("verify_chain", json!({})).unwrap().contains("\"ok\":true"));
}
