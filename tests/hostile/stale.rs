//! What was judged once is judged again when the schema is another.

use crate::client::Server;

const DOCS: &str = "CREATE TABLE docs(id INTEGER PRIMARY KEY, body);
    CREATE VIRTUAL TABLE f USING fts5(body, content=docs, content_rowid=id);
    CREATE TRIGGER t AFTER INSERT ON docs BEGIN INSERT INTO f(rowid, body) VALUES (new.id, new.body); END;";

#[test]
fn a_trigger_that_was_exchanged_is_looked_into_again() {
    for inside in [false, true] {
        let mut server = Server::over(DOCS, &[]);
        let query = "INSERT INTO docs(body) VALUES ('word')";
        server.write(query).unwrap();
        server.write(query).unwrap();
        // To the authorizer this trigger does the same as the other.
        let drop = "DROP TRIGGER t";
        let create =
            "CREATE TRIGGER t AFTER INSERT ON docs BEGIN INSERT INTO f(f) VALUES ('delete-all'); END";
        if inside {
            server.destroy(drop).unwrap();
            server.destroy(create).unwrap();
        } else {
            server.outside(&format!("{drop}; {create}"));
        }
        server.refuses("write_query", query, "the command 'delete-all' to `f`");
        assert_eq!(server.read("SELECT count(*) AS n FROM f('word')").unwrap(), "n\n2\n# 1 rows");
    }
}

#[test]
fn a_table_made_again_as_another_kind_is_judged_as_that() {
    let mut server = Server::over("CREATE TABLE t(t, x)", &[]);
    let query = "INSERT INTO t(t) VALUES ('delete-all')";
    server.write(query).unwrap();
    server.destroy("DROP TABLE t").unwrap();
    server.write("CREATE VIRTUAL TABLE t USING fts5(x, content='')").unwrap();
    server.write("INSERT INTO t(rowid, x) VALUES (1, 'word')").unwrap();
    server.refuses("write_query", query, "the command 'delete-all' to `t`");
    assert_eq!(server.read("SELECT count(*) AS n FROM t('word')").unwrap(), "n\n1\n# 1 rows");
}

#[test]
fn a_statement_that_is_new_meets_the_tables_of_today() {
    for inside in [false, true] {
        let mut server = Server::over("CREATE TABLE t(t, x)", &[]);
        server.write("INSERT INTO t(t) VALUES ('delete-all')").unwrap();
        let (drop, create) = ("DROP TABLE t", "CREATE VIRTUAL TABLE t USING fts5(x, content='')");
        if inside {
            server.destroy(drop).unwrap();
            server.write(create).unwrap();
        } else {
            server.outside(&format!("{drop}; {create}"));
        }
        server.refuses("write_query", "INSERT INTO t(t) VALUES ('DELETE-all')", "to `t`");
        assert!(server.write("INSERT INTO t(rowid, x) VALUES (1, 'word')").is_ok());
    }
}

#[test]
fn what_was_known_within_a_change_that_is_undone_is_forgotten() {
    let mut server = Server::over(DOCS, &["--max-update-rows", "1"]);
    server.write("INSERT INTO docs(body) VALUES ('word')").unwrap();
    // Judged within its own transaction, under a number of the schema that somebody else's change is given next.
    let refused = "CREATE TRIGGER u AFTER INSERT ON docs BEGIN DELETE FROM memory_events; END";
    server.refuses("destructive_query", refused, "memory_events");
    server
        .outside("CREATE TABLE g(id INTEGER PRIMARY KEY, x); INSERT INTO g VALUES (1, 'kept'), (2, 'kept')");
    let replace = "INSERT OR REPLACE INTO g VALUES (1, 'new'), (2, 'new')";
    server.refuses("write_query", replace, "would overwrite 2");
}

#[test]
fn a_plan_is_the_plan_of_the_schema_as_it_is() {
    let mut server = Server::over("CREATE TABLE t(a, b)", &[]);
    let query = "EXPLAIN QUERY PLAN SELECT * FROM t WHERE b = 1";
    assert!(server.read(query).unwrap().contains("SCAN t"));
    server.write("CREATE INDEX tb ON t(b)").unwrap();
    assert!(server.read(query).unwrap().contains("USING INDEX tb"));
    server.outside("DROP INDEX tb");
    assert!(server.read(query).unwrap().contains("SCAN t"));
}

#[test]
fn what_compiles_for_the_schema_of_today_is_not_refused_for_that_of_before() {
    for inside in [false, true] {
        let mut server =
            Server::over("CREATE TABLE a(x); CREATE TABLE b(x, y); CREATE VIEW v AS SELECT 1 AS x", &[]);
        let change = |server: &mut Server, sql: &str| match inside {
            true => drop(server.destroy(sql).or_else(|_| server.write(sql)).unwrap()),
            false => server.outside(sql),
        };
        server.read("SELECT * FROM a").unwrap();
        server.write("INSERT INTO a VALUES (1)").unwrap();
        change(&mut server, "ALTER TABLE a ADD COLUMN y DEFAULT 5");
        assert_eq!(
            server.read("SELECT * FROM a UNION ALL SELECT * FROM b").unwrap(),
            "x,y\n1,5\n# 1 rows",
            "{inside}"
        );
        server.write("INSERT INTO a VALUES (2, 3)").unwrap();
        change(&mut server, "CREATE UNIQUE INDEX ax ON a(x)");
        server.write("INSERT INTO a VALUES (2, 4) ON CONFLICT (x) DO UPDATE SET y = 4").unwrap();
        change(&mut server, "DROP INDEX ax");
        server.write("CREATE INDEX ax ON a(y)").unwrap();
        change(&mut server, "DROP VIEW v");
        change(&mut server, "CREATE TABLE v(x)");
        server.write("INSERT INTO v VALUES (1)").unwrap();
        // What does not compile at all says so as before.
        assert!(
            server.read("SELECT * FROM a UNION ALL SELECT 1").unwrap_err().contains("UNION ALL"),
            "{inside}"
        );
    }
}

#[test]
fn what_is_only_explained_changes_nothing() {
    let mut server = Server::over("CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2)", &[]);
    for query in ["EXPLAIN DELETE FROM t", "EXPLAIN QUERY PLAN UPDATE t SET a = 2", "EXPLAIN DROP TABLE t"] {
        assert!(server.read(query).unwrap().contains(" rows"), "{query}");
        server.refuses("write_query", query, "use read_query");
    }
    assert_eq!(server.number("SELECT sum(a) FROM t"), 1);
}
