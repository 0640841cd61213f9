//! Protected tables, refused actions, functions and pragmas, lower limits, and the record of all that.

use super::support::Bench;
use super::{Policy, server};
use serde_json::json;

#[test]
fn protected_tables_are_read_and_not_changed() {
    let bench = Bench::notes();
    bench.sql("CREATE VIEW good AS SELECT title FROM notes; CREATE TABLE log_1(x REFERENCES notes(id) ON DELETE CASCADE); CREATE TABLE free(x)");
    let policy = Policy::of("protect: [Tags, \"log_?\", good]");
    let mut client = server(&bench, &policy).start();
    let before = bench.content();
    client.read("SELECT count(*) FROM tags").is("count(*)\n0\n# 1 rows");
    for sql in [
        "INSERT INTO tags(tag) VALUES ('x')",
        "UPDATE TAGS SET tag = 'x'",
        "CREATE INDEX t ON tags(tag)",
        "CREATE TABLE log_2(x)",
    ] {
        client.write(sql).fails_as(
            "REFUSED",
            &["is protected by this server's policy and cannot be changed by any tool; read it with SELECT"],
        );
    }
    for sql in [
        "DELETE FROM tags",
        "DROP TABLE tags",
        "ALTER TABLE tags ADD COLUMN y",
        "DROP INDEX tags_note",
        "CREATE TRIGGER t AFTER INSERT ON tags BEGIN SELECT 1; END",
        "CREATE TRIGGER t AFTER INSERT ON free BEGIN DELETE FROM log_1; END",
        "DELETE FROM notes",
        "DROP VIEW good",
    ] {
        client.destroy(sql).fails_as("REFUSED", &["is protected by this server's policy"]);
    }
    client
        .call("create_view", json!({"name": "good", "select_sql": "SELECT 1", "replace": true}))
        .fails_as("REFUSED", &["`good` is protected"]);
    assert_eq!(bench.content(), before);
    client.write("INSERT INTO free VALUES (1)").ok();
    client.write("ANALYZE").ok();
}

#[test]
fn everything_can_be_protected_at_once() {
    let (bench, policy) = (Bench::notes(), Policy::of("protect: ['*']"));
    let mut client = server(&bench, &policy).start();
    client.write("INSERT INTO notes(title) VALUES ('x')").fails_as("REFUSED", &["`notes` is protected"]);
    client.write("ANALYZE").ok();
    client.read("SELECT count(*) FROM notes").ok();
    client.call("append_event", json!({"content": "memory goes on"})).ok();
}

#[test]
fn refused_actions_functions_and_pragmas_are_named() {
    let policy = Policy::of(
        "refuse: {actions: [drop_table, recursive], functions: [Random], pragmas: [user_version]}\npolicies:\n  - id: read\n    refuse: {functions: [upper]}\n  - id: write\n    refuse: {actions: [analyze, delete]}\n".replace("analyze, delete", "analyze").as_str(),
    );
    let bench = Bench::notes();
    let mut client = server(&bench, &policy).start();
    client.destroy("DROP TABLE tags").fails_as(
        "REFUSED",
        &["DROP TABLE is refused in destructive_query by this server's policy; no tool of this server does this"],
    );
    client
        .write("DROP TABLE tags")
        .fails(&["DROP TABLE is not allowed in write_query; no tool of this server does this"]);
    client
        .write("ANALYZE")
        .fails_as("REFUSED", &["ANALYZE is refused in write_query by this server's policy"]);
    client
        .read("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n")
        .fails_as("REFUSED", &["WITH RECURSIVE is refused in read_query by this server's policy"]);
    client.read("SELECT random()").fails_as("REFUSED", &["the function `random` is refused in read_query"]);
    client
        .write("UPDATE notes SET score = random()")
        .fails_as("REFUSED", &["the function `random` is refused"]);
    client.read("SELECT upper('x')").fails_as("REFUSED", &["the function `upper` is refused in read_query"]);
    client.write("UPDATE notes SET title = upper(title)").ok();
    client.read("PRAGMA user_version").fails_as("REFUSED", &["PRAGMA user_version is refused in read_query"]);
    client.read("SELECT * FROM pragma_user_version").fails_as("REFUSED", &["PRAGMA user_version is refused"]);
    client.read("PRAGMA page_count").ok();
    client.destroy("DELETE FROM tags").ok();
}

#[test]
fn a_refused_kind_is_refused_in_any_form() {
    let policy = Policy::of("policies: [{id: read, refuse: {actions: [pragma]}}]");
    let bench = Bench::with("CREATE VIRTUAL TABLE docs USING fts5(t); INSERT INTO docs VALUES ('apple')");
    let mut client = server(&bench, &policy).start();
    for sql in [
        "PRAGMA page_count",
        "PRAGMA data_version",
        "SELECT * FROM pragma_page_count",
        "SELECT name FROM pragma_table_info('docs')",
    ] {
        client.read(sql).fails_as("REFUSED", &["PRAGMA is refused in read_query by this server's policy"]);
    }
    client.read("SELECT t FROM docs('apple')").is("t\napple\n# 1 rows");
}

#[test]
fn limits_are_lowered_for_calls_and_in_the_tools_words() {
    let (bench, policy) = (
        Bench::notes(),
        Policy::of(
            "limits: {max_rows: 2, max_cell_chars: 4, max_update_rows: 1, query_timeout: 0.2, max_result_bytes: 4000}",
        ),
    );
    let mut client = server(&bench, &policy).start();
    client.read("SELECT title FROM notes").ok().has("# 2 rows").lacks("gamma");
    client.call("read_query", json!({"query": "SELECT 1", "limit": 3})).fails_as("INVALID_ARGUMENTS", &["2"]);
    client.read("SELECT 'abcdef'").ok().has("abcd").lacks("abcde\n");
    client.write("UPDATE notes SET score = 1").fails(&["would overwrite 3 existing rows, more than 1"]);
    client
        .read("SELECT count(*) FROM pragma_function_list AS a, pragma_function_list AS b, pragma_function_list AS c, pragma_function_list AS d")
        .fails_as("TIMEOUT", &["longer than 0.2 s"]);
    let tools = client.request("tools/list", json!({}));
    let read = tools["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "read_query")
        .unwrap();
    assert_eq!(read["inputSchema"]["properties"]["limit"]["maximum"], 2, "{read}");
}

#[test]
fn the_log_carries_the_digest_of_the_effective_policy() {
    let digest = |flags: &[&str]| {
        let bench = Bench::notes();
        let mut client = super::support::Server::on(&bench).flags(flags).start();
        client.read("SELECT 1").ok();
        client.close();
        bench.query("SELECT detail ->> 'policy_sha256' FROM query_log WHERE id = 1")
    };
    let (one, other) = (Policy::of("protect: [a]"), Policy::of("protect: [b]"));
    let plain = digest(&[]);
    let narrowed = digest(&["--policy", one.path().to_str().unwrap()]);
    assert_eq!(plain, indelible::generated::POLICY_SHA256);
    assert_eq!(narrowed.len(), 64);
    assert_ne!(narrowed, plain);
    assert_ne!(narrowed, digest(&["--policy", other.path().to_str().unwrap()]));
    let (status, said, _) =
        super::support::Server::bare().flags(&["policy", "--policy", one.path().to_str().unwrap()]).run();
    assert_eq!((status, said.lines().next()), (0, Some(format!("policy sha256 {narrowed}").as_str())));
}
