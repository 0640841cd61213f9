//! The server's own tables, by every road: directly, and through what somebody planted in the file from outside.

use crate::support::{Bench, Server};
use serde_json::json;

#[test]
fn no_tool_changes_the_server_s_tables() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client.call("append_event", json!({"content": "one"})).ok();
    client.call("checkpoint", json!({"summary": "s"})).ok();
    let before = bench.content();
    for table in [
        "memory_events",
        "memory_checkpoints",
        "query_log",
        "Memory_Events",
        "\"query_log\"",
        "main.memory_events",
    ] {
        let name = table.trim_matches('"').trim_start_matches("main.").to_owned();
        for sql in [
            format!("INSERT INTO {table} DEFAULT VALUES"),
            format!("INSERT INTO {table}(id) VALUES (9)"),
            format!("REPLACE INTO {table} SELECT * FROM {table}"),
            format!("UPDATE {table} SET id = 9"),
            format!("UPDATE OR IGNORE {table} SET session = 'x' WHERE 0"),
            format!("INSERT INTO {table}(id) VALUES (1) ON CONFLICT DO UPDATE SET session = 'x'"),
        ] {
            client.write(&sql).fails_as("REFUSED", &[&name.to_lowercase(), "belongs to the server"]);
            client.destroy(&sql).fails_as("REFUSED", &[&name.to_lowercase(), "belongs to the server"]);
            client.read(&sql).fails(&[]);
        }
        for sql in [
            format!("DELETE FROM {table}"),
            format!("DELETE FROM {table} WHERE 0"),
            format!("DROP TABLE {table}"),
            format!("ALTER TABLE {table} RENAME TO x"),
            format!("ALTER TABLE {table} ADD COLUMN extra TEXT"),
            format!("ALTER TABLE {table} RENAME COLUMN session TO s"),
            format!("ALTER TABLE {table} DROP COLUMN session"),
            format!("CREATE TRIGGER t2 AFTER INSERT ON {table} BEGIN SELECT 1; END"),
            format!("CREATE INDEX evil ON {table}(session)"),
            format!("CREATE TRIGGER t3 AFTER INSERT ON notes BEGIN DELETE FROM {name}; END"),
            format!("CREATE TRIGGER t4 BEFORE DELETE ON notes BEGIN UPDATE {name} SET session = 'x'; END"),
            format!(
                "CREATE TRIGGER t5 AFTER UPDATE OF title ON notes BEGIN INSERT INTO {name}(id) VALUES (9); END"
            ),
        ] {
            client.destroy(&sql).fails(&[]);
            client.write(&sql).fails(&[]);
            client.read(&sql).fails(&[]);
        }
    }
    for sql in [
        "DROP TRIGGER memory_events_no_delete",
        "DROP TRIGGER query_log_no_update",
        "DROP TRIGGER memory_checkpoints_no_replace",
        "DROP INDEX query_log_ts",
        "DROP VIEW query_errors",
        "CREATE TRIGGER t6 INSTEAD OF DELETE ON query_errors BEGIN SELECT 1; END",
        "ALTER TABLE query_errors RENAME TO q",
    ] {
        client.destroy(sql).fails(&[]);
        client.write(sql).fails(&[]);
    }
    for (name, replace) in [
        ("memory_events", true),
        ("query_errors", true),
        ("QUERY_ERRORS", true),
        ("query_log", false),
        ("memory_checkpoints", false),
        ("query_log_ts", true),
    ] {
        client
            .call("create_view", json!({"name": name, "select_sql": "SELECT 1", "replace": replace}))
            .fails(&[&format!("`{name}`")]);
    }
    assert_eq!(bench.content(), before);
    assert_eq!(client.call("verify_chain", json!({})).json()["ok"], true);
    assert_eq!(bench.snapshots().len(), 0);
}

#[test]
fn triggers_planted_from_outside_are_no_road_to_them() {
    let bench = Bench::notes();
    drop(Server::on(&bench).start());
    bench.sql(
        "CREATE TABLE a(x); CREATE TABLE b(x); CREATE TABLE c(x); CREATE TABLE d(x); INSERT INTO c VALUES (1); INSERT INTO d VALUES (1);
         CREATE TRIGGER ta AFTER INSERT ON a BEGIN INSERT INTO query_log(ts, session, tool, ok, duration_ms) VALUES ('t', 's', 'forged', 1, 0); END;
         CREATE TRIGGER tb AFTER INSERT ON b BEGIN INSERT INTO memory_events VALUES (9, 't', 's', 'k', 'c', 'p', 'h'); END;
         CREATE TRIGGER tc AFTER DELETE ON c BEGIN DELETE FROM memory_checkpoints; END;
         CREATE TRIGGER td AFTER UPDATE ON d BEGIN INSERT INTO a VALUES (1); END;
         CREATE VIEW v AS SELECT id, content FROM memory_events;
         CREATE TRIGGER tv INSTEAD OF INSERT ON v BEGIN INSERT INTO memory_events VALUES (new.id, 't', 's', 'k', new.content, 'p', 'h'); END;
         CREATE TRIGGER tw INSTEAD OF UPDATE ON v BEGIN UPDATE memory_events SET content = new.content; END;
         CREATE TRIGGER tx INSTEAD OF DELETE ON v BEGIN DELETE FROM memory_events; END;",
    );
    let mut client = Server::on(&bench).start();
    client.call("append_event", json!({"content": "one"})).ok();
    let before = bench.content();
    for sql in [
        "INSERT INTO a VALUES (1)",
        "INSERT INTO b VALUES (1)",
        "DELETE FROM c",
        "UPDATE d SET x = 2",
        "INSERT INTO v VALUES (9, 'forged')",
        "UPDATE v SET content = 'forged'",
        "DELETE FROM v",
    ] {
        client.write(sql).fails(&[]);
        client.destroy(sql).fails_as("REFUSED", &["belongs to the server"]);
    }
    assert_eq!(bench.content(), before);
    assert_eq!(bench.query("SELECT count(*) FROM query_log WHERE tool = 'forged'"), "0");
    assert_eq!(client.call("verify_chain", json!({})).json()["ok"], true);
    client.read("SELECT content FROM v").is("content\none\n# 1 rows");
}

#[test]
fn a_trigger_planted_on_the_server_s_tables_while_it_runs_does_not_run() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client.call("append_event", json!({"content": "one"})).ok();
    client.write("INSERT INTO tags(tag) VALUES ('x')").ok();
    bench.sql("CREATE TRIGGER spy AFTER INSERT ON memory_events BEGIN DELETE FROM tags; END");
    client
        .call("append_event", json!({"content": "two"}))
        .fails(&["attached to the server's tables from outside"]);
    assert_eq!(bench.query("SELECT count(*) FROM tags"), "1");
    bench.sql("DROP TRIGGER spy; CREATE TRIGGER spy AFTER INSERT ON query_log BEGIN DELETE FROM tags; END");
    client.write("INSERT INTO notes(title) VALUES ('no row, no change')").fails(&[]);
    client.destroy("UPDATE notes SET title = 'x'").fails(&[]);
    client.call("append_event", json!({"content": "two"})).fails(&[]);
    client.read("SELECT count(*) AS n FROM notes").is("n\n3\n# 1 rows");
    assert_eq!(bench.query("SELECT count(*) FROM tags"), "1");
    bench.sql("DROP TRIGGER spy");
    client.call("append_event", json!({"content": "two"})).ok();
    assert_eq!(client.call("verify_chain", json!({})).json()["events"], 2);
}

#[test]
fn a_file_with_something_attached_to_the_server_s_tables_is_not_served() {
    let bench = Bench::notes();
    drop(Server::on(&bench).start());
    bench.sql("CREATE TRIGGER spy AFTER INSERT ON query_log BEGIN DELETE FROM notes; END");
    let before = bench.files();
    let (status, line) = Server::on(&bench).refusal();
    assert_eq!(status, 1);
    assert!(line.contains("the trigger `spy` on `query_log` is not the server's"), "{line}");
    assert_eq!(bench.files(), before);
}

#[test]
fn a_broken_virtual_table_costs_only_itself() {
    let bench = Bench::notes();
    bench.sql(
        "CREATE VIRTUAL TABLE f USING fts5(a); INSERT INTO f VALUES ('x');
         PRAGMA writable_schema = ON;
         INSERT INTO sqlite_schema VALUES ('table', 'broken', 'broken', 0, 'CREATE VIRTUAL TABLE broken USING no_such_module(a)');
         UPDATE sqlite_schema SET sql = 'CREATE VIRTUAL TABLE f USING fts5(a, nonsense=1)' WHERE name = 'f';",
    );
    let mut client = Server::on(&bench).start();
    client.call("list_tables", json!({})).ok().has("notes,table,0,3\n").has("broken,table,0,\n");
    client.call("get_schema", json!({})).ok().has("no_such_module").has("CREATE TABLE notes");
    client.call("describe_table", json!({"table": "notes"})).ok().has("title");
    client.call("describe_table", json!({"table": "broken"})).fails(&["no such module: no_such_module"]);
    client.read("SELECT * FROM broken").fails(&["no such module: no_such_module"]);
    client.read("SELECT * FROM f").fails(&["nonsense"]);
    client.read("SELECT count(*) AS n FROM notes").is("n\n3\n# 1 rows");
    client.write("INSERT INTO notes(title) VALUES ('x')").ok();
    client.write("INSERT INTO broken VALUES (1)").fails(&["no such module"]);
    client.write("CREATE TABLE t(a)").ok();
    client.call("create_view", json!({"name": "w", "select_sql": "SELECT 1 AS a"})).ok();
    client.call("search_text", json!({"pattern": "apple", "table": "notes"})).ok().has("1,body,");
    client.call("search_text", json!({"pattern": "x", "table": "broken"})).fails(&["no such module"]);
    client.call("append_event", json!({"content": "one"})).ok();
    client.destroy("DELETE FROM notes WHERE id = 4").ok().has("snapshot: ");
}
