//! Nobody but the server writes the server's tables, and nothing planted runs when it does.

use crate::client::Server;
use serde_json::json;

const USERS: &str = "CREATE TABLE users(id INTEGER PRIMARY KEY, n);
    INSERT INTO users VALUES (1, 1), (2, 2);
    CREATE VIEW v AS SELECT * FROM users;";

#[test]
fn every_spelling_of_the_server_s_objects_is_refused() {
    let mut server = Server::over(USERS, &[]);
    let owned = "belongs to the server";
    for (tool, query, words) in [
        ("write_query", "UPDATE main.[Memory_Events] SET content = 1", owned),
        (
            "write_query",
            "INSERT INTO \"QUERY_LOG\"(ts, session, tool, ok, duration_ms) VALUES ('', '', '', 1, 1)",
            owned,
        ),
        ("write_query", "CREATE TABLE memory_events_no_update(a)", owned),
        ("write_query", "CREATE INDEX mine ON `query_log`(tool)", owned),
        ("write_query", "CREATE INDEX memory_events_no_delete ON users(n)", owned),
        ("destructive_query", "DROP TRIGGER IF EXISTS \"Memory_Events_No_Update\"", owned),
        ("destructive_query", "DROP INDEX query_log_ts", owned),
        ("destructive_query", "ALTER TABLE query_log RENAME COLUMN ts TO t", owned),
        (
            "destructive_query",
            "CREATE TRIGGER t INSTEAD OF INSERT ON v BEGIN DELETE FROM memory_events; END",
            owned,
        ),
        (
            "destructive_query",
            "CREATE TRIGGER t AFTER INSERT ON users BEGIN UPDATE query_log SET ok = 1; END",
            owned,
        ),
        ("destructive_query", "ALTER TABLE users RENAME TO \"Memory_Checkpoints_No_Update\"", owned),
        (
            "destructive_query",
            "CREATE TRIGGER temp.t AFTER INSERT ON main.users BEGIN SELECT 1; END",
            "temporary",
        ),
        ("write_query", "CREATE TABLE temp.t(a)", "temporary"),
        ("write_query", "CREATE VIRTUAL TABLE temp.t USING fts5(a)", "temporary"),
        ("read_query", "VACUUM INTO (SELECT '/nowhere')", "VACUUM"),
        ("read_query", "PRAGMA main.user_version(5)", "with a value is not allowed"),
        ("read_query", "EXPLAIN PRAGMA user_version = 3", "with a value is not allowed"),
        ("read_query", "SELECT 1; PRAGMA user_version = 9", "one statement per call"),
    ] {
        server.refuses(tool, query, words);
    }
    assert_eq!(
        server.number("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'memory%' OR name LIKE 'query%'"),
        14
    );
    assert_eq!(server.number("PRAGMA user_version"), 0);
    // A renamed table under one of those names would have kept the next server from starting.
    server.restart();
    assert_eq!(server.read("SELECT count(*) AS n FROM users").unwrap(), "n\n2\n# 1 rows");
}

#[test]
fn a_trigger_planted_on_the_log_does_not_run_with_the_audit_row() {
    let mut server = Server::over(USERS, &[]);
    server.read("SELECT 1").unwrap();
    server.outside("CREATE TRIGGER planted AFTER INSERT ON query_log BEGIN DELETE FROM users; END");
    let error = server.write("INSERT INTO users(n) VALUES (3)").unwrap_err();
    assert!(
        error.contains("nothing was changed") && error.contains("attached to the server's tables"),
        "{error}"
    );
    assert_eq!(server.number("SELECT count(*) FROM users"), 2);
    server.outside("DROP TRIGGER planted");
    assert!(server.write("INSERT INTO users(n) VALUES (3)").unwrap().contains("1 rows affected"));
}

#[test]
fn triggers_planted_on_user_objects_cannot_write_the_server_s_tables() {
    let mut server = Server::over(USERS, &[]);
    server.call("append_event", json!({"content": "kept"})).unwrap();
    server.outside(
        "CREATE TRIGGER a AFTER INSERT ON users BEGIN INSERT INTO memory_checkpoints(ts, session, summary, last_event_id, head_hash) VALUES ('', '', '', 0, ''); END;
         CREATE TRIGGER b INSTEAD OF UPDATE ON v BEGIN DELETE FROM query_log; END;",
    );
    server.refuses(
        "write_query",
        "INSERT INTO users(n) VALUES (3)",
        "`memory_checkpoints` belongs to the server",
    );
    server.refuses("write_query", "UPDATE v SET n = 1", "`query_log` belongs to the server");
    assert_eq!(server.number("SELECT count(*) FROM memory_checkpoints"), 0);
}

#[test]
fn a_deferred_foreign_key_at_the_log_does_not_stop_the_log() {
    let mut server = Server::over(USERS, &[]);
    let references = "REFERENCES query_log(id) DEFERRABLE INITIALLY DEFERRED";
    server.write(&format!("CREATE TABLE x(a INTEGER {references})")).unwrap();
    server.read("SELECT 1").unwrap();
    server.call("append_event", json!({"content": "still written"})).unwrap();
    server.write("INSERT INTO users(n) VALUES (3)").unwrap();
    let rows = server.read("SELECT group_concat(tool, ' ') AS tools FROM query_log").unwrap();
    assert_eq!(rows, "tools\nwrite_query read_query append_event write_query\n# 1 rows");
}

#[test]
fn tables_named_like_sqlite_s_own_table_functions_change_nothing() {
    let mut server = Server::over(
        "CREATE TABLE pragma_table_list(schema, name, type, ncol, wr, strict);
         CREATE TABLE pragma_table_xinfo(cid, name, hidden);
         CREATE TABLE pragma_index_list(name, \"unique\");
         CREATE TABLE t(a PRIMARY KEY, b) WITHOUT ROWID;
         CREATE VIRTUAL TABLE f USING fts5(body, content='');",
        &[],
    );
    let listed = server.call("list_tables", json!({"include_row_counts": false})).unwrap();
    assert!(listed.contains("\nt,table,0,\n") && listed.contains("# 9 rows"), "{listed}");
    let described = server.call("describe_table", json!({"table": "T"})).unwrap();
    assert!(described.contains("0,a,") && described.contains("sqlite_autoindex_t_1,1,pk,a"), "{described}");
    server.write("INSERT INTO f(rowid, body) VALUES (1, 'kept')").unwrap();
    server.refuses("write_query", "INSERT INTO f(f) VALUES ('delete-all')", "the command 'delete-all'");
    assert_eq!(server.read("SELECT count(*) AS n FROM f WHERE f MATCH 'kept'").unwrap(), "n\n1\n# 1 rows");
}

#[test]
fn analyze_and_reindex_of_the_whole_file_pass_by_the_server_s_tables() {
    let mut server = Server::over(USERS, &[]);
    for (query, expected) in
        [("ANALYZE", "ok: ANALYZE"), ("REINDEX", "ok: REINDEX"), ("ANALYZE users", "ok: ANALYZE users")]
    {
        assert_eq!(server.write(query).unwrap(), expected);
    }
    server.refuses("write_query", "UPDATE sqlite_stat1 SET stat = ''", "kept by ANALYZE");
}
