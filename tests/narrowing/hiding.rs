//! Hidden tables and columns: what names one is refused with its name, what does not goes on, lists are silent.

use super::support::Bench;
use super::{CANARY, HIDE, PEOPLE, Policy, server};
use serde_json::json;

#[test]
fn what_names_something_hidden_is_refused_and_says_so() {
    let (bench, policy) = (Bench::with(PEOPLE), Policy::of(HIDE));
    let mut client = server(&bench, &policy).start();
    let before = bench.content();
    for (sql, named) in [
        (
            "SELECT email FROM people",
            "`people.email` is hidden by this server's policy; leave it out, and name the columns you need instead of `*`",
        ),
        ("SELECT EMAIL FROM People", "`people.email` is hidden"),
        ("SELECT * FROM people", "`people.email` is hidden"),
        ("SELECT p.* FROM orders AS o JOIN people AS p ON p.id = o.person", "`people.email` is hidden"),
        ("SELECT id FROM people WHERE email = 'x'", "`people.email` is hidden"),
        ("SELECT id FROM people ORDER BY lower(email)", "`people.email` is hidden"),
        ("SELECT id FROM people WHERE lower(email) = 'x'", "`people.email` is hidden"),
        ("SELECT count(email) FROM people", "`people.email` is hidden"),
        ("SELECT (SELECT max(email) FROM people)", "`people.email` is hidden"),
        ("WITH c AS (SELECT email AS e FROM people) SELECT e FROM c", "`people.email` is hidden"),
        ("EXPLAIN SELECT email FROM people", "`people.email` is hidden"),
        ("EXPLAIN QUERY PLAN SELECT id FROM people WHERE email > 'x'", "`people.email` is hidden"),
        ("SELECT domain FROM people", "because it is made from `people.email`"),
        ("SELECT shout FROM people", "`people.shout` is hidden"),
        ("SELECT name FROM contacts", "(it comes through `contacts`)"),
        ("SELECT * FROM over_contacts", "`people.email` is hidden"),
        (
            "SELECT 1 FROM matched",
            "`matched` is hidden by this server's policy, because it joins `people` by NATURAL or USING",
        ),
        (
            "SELECT word FROM secrets",
            "`secrets` is hidden by this server's policy; leave it out; no tool shows it",
        ),
        ("SELECT count(*) FROM secrets", "`secrets` is hidden"),
        ("SELECT 1 FROM orders, secrets", "`secrets` is hidden"),
        ("SELECT 1 FROM (SELECT 'CANARY' AS word) NATURAL JOIN secrets", "join with ON and name the columns"),
        (
            "SELECT x.email FROM (SELECT 'x' AS email) AS x JOIN people USING (email)",
            "a join by NATURAL or USING with `people`",
        ),
        (
            "SELECT x.email FROM (SELECT 'x' AS email) AS x NATURAL/**/JOIN[people]",
            "a join by NATURAL or USING with `people`",
        ),
        (
            "SELECT email FROM (SELECT 'x' AS email) AS x RIGHT JOIN people USING (email)",
            "a join by NATURAL or USING",
        ),
        (
            "SELECT rowid FROM people_fts WHERE people_fts MATCH 'c*'",
            "`people_fts` is hidden by this server's policy, because it holds `people.email`",
        ),
        ("SELECT count(*) FROM people_fts('c*')", "`people_fts` is hidden"),
        ("SELECT term FROM people_terms", "`people_terms` is hidden"),
        ("SELECT block FROM people_fts_data", "`people_fts_data` is hidden"),
        (
            "SELECT count(*) FROM fed('c*')",
            "`fed` is hidden by this server's policy, because the trigger `feeds` may copy `people.email` into it",
        ),
        ("SELECT sample FROM sqlite_stat4", "`sqlite_stat4.sample` is hidden"),
        ("SELECT * FROM sqlite_stat1", "`sqlite_stat1.stat` is hidden"),
        (
            "SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM people WHERE email LIKE 'C%')",
            "`people.email` is hidden",
        ),
    ] {
        client.read(sql).fails_as("REFUSED", &[named]).lacks("CANARY@");
    }
    for (tool, sql, named) in [
        ("write_query", "CREATE TABLE copy AS SELECT * FROM people", "`people.email` is hidden"),
        ("write_query", "INSERT INTO orders(total) SELECT email FROM people", "`people.email` is hidden"),
        ("write_query", "CREATE INDEX i ON people(email)", "`people.email` is hidden"),
        ("write_query", "CREATE INDEX i ON people(name) WHERE email > 'm'", "`people.email` is hidden"),
        ("write_query", "CREATE INDEX i ON secrets(word)", "`secrets` is hidden"),
        ("write_query", "INSERT INTO people(name) VALUES ('Eve') RETURNING *", "`people.email` is hidden"),
        (
            "write_query",
            "INSERT INTO people(name, email) VALUES ('Eve', 'e') ON CONFLICT(email) DO NOTHING",
            "`people.email` is hidden",
        ),
        ("write_query", "UPDATE people SET name = email", "`people.email` is hidden"),
        (
            "write_query",
            "UPDATE people SET email = 'x'",
            "`people.email` is hidden by this server's policy, so no tool overwrites it",
        ),
        ("write_query", "INSERT INTO secrets VALUES ('x')", "`secrets` is hidden"),
        (
            "write_query",
            "INSERT INTO orders(total) SELECT 1 FROM (SELECT 'x' AS word) NATURAL JOIN secrets",
            "join with ON",
        ),
        ("destructive_query", "DELETE FROM people WHERE email = 'x'", "`people.email` is hidden"),
        ("destructive_query", "DELETE FROM secrets", "`secrets` is hidden"),
        ("destructive_query", "DROP TABLE secrets", "`secrets` is hidden"),
        ("destructive_query", "DROP TABLE people_fts", "`people_fts` is hidden"),
        (
            "destructive_query",
            "ALTER TABLE people RENAME COLUMN email TO mail",
            "ALTER TABLE of `people` is refused: this server's policy hides its column `email`",
        ),
        ("destructive_query", "ALTER TABLE people RENAME TO folk", "ALTER TABLE of `people` is refused"),
        (
            "destructive_query",
            "ALTER TABLE people ADD COLUMN e2 AS (email)",
            "ALTER TABLE of `people` is refused",
        ),
        (
            "destructive_query",
            "CREATE TRIGGER t AFTER INSERT ON people BEGIN SELECT 1; END",
            "CREATE TRIGGER of `people` is refused",
        ),
        (
            "destructive_query",
            "CREATE TRIGGER t AFTER INSERT ON orders BEGIN INSERT INTO old_addresses SELECT id, email FROM people; END",
            "`people.email` is hidden",
        ),
    ] {
        client
            .call(
                tool,
                if tool == "write_query" {
                    json!({"query": sql})
                } else {
                    json!({"query": sql, "reason": "a test"})
                },
            )
            .fails_as("REFUSED", &[named]);
    }
    client
        .call("create_view", json!({"name": "v", "select_sql": "SELECT email FROM people"}))
        .fails_as("REFUSED", &["`people.email` is hidden"]);
    assert_eq!(bench.content(), before);
    assert_eq!(bench.snapshots().len(), 0, "what is refused costs no snapshot");
}

#[test]
fn what_does_not_touch_the_hidden_goes_on() {
    let (bench, policy) = (Bench::with(PEOPLE), Policy::of(HIDE));
    let mut client = server(&bench, &policy).start();
    for (sql, text) in [
        (
            "SELECT id, name, city, hello FROM people",
            "id,name,city,hello\n1,Ada,London,hello Ada\n2,Bob,Paris,hello Bob\n# 2 rows",
        ),
        ("SELECT count(*) FROM people", "count(*)\n2\n# 1 rows"),
        ("SELECT rowid FROM people ORDER BY rowid", "id\n1\n2\n# 2 rows"),
        ("SELECT name FROM names", "name\nAda\nBob\n# 2 rows"),
        (
            "SELECT p.name FROM people AS p JOIN orders AS o ON o.person = p.id ORDER BY 1",
            "name\nAda\nBob\n# 2 rows",
        ),
        ("SELECT rowid FROM name_fts('ada')", "rowid\n1\n# 1 rows"),
        ("SELECT name FROM name_fts('bob')", "name\nBob\n# 1 rows"),
        ("WITH secrets AS (SELECT 1 AS word) SELECT word FROM (SELECT 2 AS word)", "word\n2\n# 1 rows"),
        ("SELECT 'email of secrets'", "'email of secrets'\nemail of secrets\n# 1 rows"),
        ("PRAGMA integrity_check", "integrity_check\nok\n# 1 rows"),
        ("SELECT count(*) > 0 AS known FROM sqlite_schema WHERE sql LIKE '%email%'", "known\n1\n# 1 rows"),
        ("SELECT o.id FROM orders AS o JOIN orders AS p USING (id)", "id\n1\n2\n# 2 rows"),
    ] {
        client.read(sql).is(text);
    }
    client.write("INSERT INTO people(name, email) VALUES ('Eve', 'eCANARY')").starts("ok: 1 rows affected");
    client.write("UPDATE people SET city = 'Rome' WHERE name = 'Eve' RETURNING id, city").ok().has("3,Rome");
    client.write("CREATE INDEX people_name ON people(name)").ok();
    client.write("ANALYZE").ok();
    client.write("REINDEX").ok();
    client.destroy("DELETE FROM people WHERE name = 'Eve'").ok();
    client.destroy("ALTER TABLE orders ADD COLUMN note TEXT").ok();
    client.destroy("DROP TABLE orders").ok();
    client.read("SELECT count(*) FROM sqlite_stat1").ok();
}

#[test]
fn lists_leave_out_what_is_hidden_and_naming_it_is_an_error() {
    let (bench, policy) = (Bench::with(PEOPLE), Policy::of(HIDE));
    let mut client = server(&bench, &policy).start();
    let tables = client.call("list_tables", json!({"include_row_counts": true})).ok().text.clone();
    let names: Vec<&str> = tables
        .lines()
        .filter(|line| line.ends_with(['0', '1', '2', ',']))
        .filter_map(|line| line.split(',').next())
        .collect();
    for shown in ["people", "orders", "names", "name_fts", "old_addresses"] {
        assert!(names.contains(&shown), "{shown}: {tables}");
    }
    for hidden in ["secrets", "contacts", "over_contacts", "matched", "people_fts", "people_terms", "fed"] {
        assert!(!names.contains(&hidden), "{hidden}: {tables}");
        client
            .call("describe_table", json!({"table": hidden}))
            .fails_as("REFUSED", &[&format!("`{hidden}` is hidden")]);
        client
            .call("search_text", json!({"table": hidden, "pattern": "x"}))
            .fails_as("REFUSED", &["is hidden"]);
    }
    client
        .call("describe_table", json!({"table": "People"}))
        .ok()
        .lacks("email")
        .lacks("domain")
        .lacks("shout")
        .has("hello")
        .has("people_city");
    let schema = client.call("get_schema", json!({})).ok().text.clone();
    assert!(
        !schema.contains("secrets") && !schema.contains("contacts") && schema.contains("CREATE TABLE people"),
        "{schema}"
    );
    client
        .call("describe_table", json!({"table": "secretz"}))
        .fails_as("UNKNOWN_TABLE", &["`people`"])
        .lacks("`secrets`");
    client
        .call("search_text", json!({"table": "people", "pattern": "CANARY|Ada"}))
        .ok()
        .has("Ada")
        .lacks(CANARY);
    client
        .call("search_text", json!({"table": "people", "columns": ["Email"], "pattern": "x"}))
        .fails_as("REFUSED", &["`people.email` is hidden"]);
    client
        .call("search_text", json!({"table": "people", "pattern": "Ada", "where": "email > 'a'"}))
        .fails_as("REFUSED", &["`people.email` is hidden"]);
    client
        .call("search_text", json!({"table": "people", "pattern": "Ada", "key_column": "email"}))
        .fails_as("REFUSED", &["`people.email` is hidden"]);
    drop(client);
    let mut explorer = server(&bench, &policy).flags(&["--profile", "explorer"]).start();
    for random in [false, true] {
        let sample = json!({"table": "people", "limit": 5, "random": random});
        let answer =
            explorer.request("tools/call", json!({"name": "sample_rows", "arguments": sample})).to_string();
        assert!(answer.contains("Ada") && !answer.contains(CANARY), "{answer}");
    }
    let sample = json!({"table": "people", "columns": ["email"], "limit": 5});
    let answer =
        explorer.request("tools/call", json!({"name": "sample_rows", "arguments": sample})).to_string();
    assert!(answer.contains("`people.email` is hidden"), "{answer}");
    let schema = explorer.request("resources/read", json!({"uri": "sqlite://schema"})).to_string();
    assert!(!schema.contains("secrets") && schema.contains("orders"), "{schema}");
    let table = explorer.request("resources/read", json!({"uri": "sqlite://table/secrets"})).to_string();
    assert!(table.contains("`secrets` is hidden"), "{table}");
}

#[test]
fn what_comes_to_hold_a_hidden_column_later_is_hidden_too() {
    let (bench, policy) = (Bench::with(PEOPLE), Policy::of(HIDE));
    let mut client = server(&bench, &policy).start();
    client.read("SELECT name FROM names").ok();
    bench.sql("ALTER TABLE people ADD COLUMN late TEXT AS ('x' || email) VIRTUAL");
    client.read("SELECT late FROM people").fails_as("REFUSED", &["`people.late` is hidden"]);
    bench.sql("CREATE VIRTUAL TABLE late_fts USING fts5(email, content='people', content_rowid='id'); INSERT INTO late_fts(late_fts) VALUES ('rebuild')");
    client.read("SELECT count(*) FROM late_fts('c*')").fails_as("REFUSED", &["`late_fts` is hidden"]);
    // An agent that makes one itself gets nothing out of it.
    client
        .write("CREATE VIRTUAL TABLE own USING fts5(name, email, content='people', content_rowid='id')")
        .ok();
    client.write("INSERT INTO own(own) VALUES ('rebuild')").fails_as("REFUSED", &["`own` is hidden"]);
    client.read("SELECT email FROM own").fails_as("REFUSED", &["`own` is hidden"]);
}

#[test]
fn a_foreign_key_to_a_hidden_column_tells_nothing() {
    let (bench, policy) = (Bench::with(PEOPLE), Policy::of(HIDE));
    bench.sql("CREATE TABLE letters(id INTEGER PRIMARY KEY, address REFERENCES people(email))");
    let mut client = server(&bench, &policy).start();
    client.write("CREATE TABLE guess(address REFERENCES people(email))").ok();
    for sql in [
        "INSERT INTO letters(address) VALUES ('CANARY@x')",
        "INSERT INTO letters(address) VALUES ('nobody')",
        "UPDATE letters SET address = 'CANARY@x'",
        "INSERT INTO guess(address) VALUES ('CANARY@x')",
        "INSERT OR IGNORE INTO guess(address) VALUES ('CANARY@x')",
    ] {
        client.write(sql).fails_as("REFUSED", &["`people.email` is hidden"]);
    }
}

#[test]
fn a_hidden_key_hides_the_rowid() {
    let bench =
        Bench::with("CREATE TABLE t(ssn INTEGER PRIMARY KEY, name TEXT); INSERT INTO t VALUES (4711, 'Ada')");
    let policy = Policy::of("hide: [{table: t, columns: [s*]}]");
    let mut client = server(&bench, &policy).start();
    for sql in [
        "SELECT rowid FROM t",
        "SELECT _rowid_ FROM t",
        "SELECT oid FROM t",
        "SELECT name FROM t WHERE rowid > 1",
    ] {
        client.read(sql).fails_as("REFUSED", &["`t.ssn` is hidden"]);
    }
    client
        .call("search_text", json!({"table": "t", "pattern": "Ada"}))
        .fails(&["name the column that identifies a row in `key_column`"]);
    client
        .call("search_text", json!({"table": "t", "pattern": "Ada", "key_column": "name"}))
        .ok()
        .lacks("4711");
}

#[test]
fn the_log_can_be_hidden_from_agents_and_goes_on() {
    let (bench, policy) = (Bench::notes(), Policy::of("hide: [{table: query_*}]"));
    let mut client = server(&bench, &policy).start();
    client.read("SELECT * FROM query_log").fails_as("REFUSED", &["`query_log` is hidden"]);
    client.read("SELECT * FROM query_errors").fails_as("REFUSED", &["is hidden"]);
    client.write("INSERT INTO notes(title) VALUES ('x')").ok();
    client.close();
    assert_eq!(bench.query("SELECT count(*) FROM query_log"), "3");
}
