//! Schemas that mean harm, and schemas that nobody can use. Each is served, or refused in one line.

use crate::support::{Bench, Server};
use crate::{Way, bytes, survive};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use serde_json::json;

/// A name, what makes the database, and the tables and views to ask for.
type Case = (&'static str, String, Vec<&'static str>);

/// Definitions that SQLite takes as they are.
fn ordinary() -> Vec<Case> {
    let rows = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 50)";
    let mut doubling = "CREATE TABLE v0(a); INSERT INTO v0 VALUES (1);".to_owned();
    for at in 1..28 {
        doubling.push_str(&format!(
            "CREATE VIEW v{at} AS SELECT a.a FROM (SELECT a FROM v{0} LIMIT 9) a, (SELECT a FROM v{0} LIMIT 9) b;",
            at - 1
        ));
    }
    let columns: Vec<String> = (0..1990).map(|at| format!("c{at}")).collect();
    let case = |name, sql: &str, tables: &[&'static str]| (name, sql.to_owned(), tables.to_vec());
    vec![
        case("a view of itself", "CREATE VIEW v AS SELECT * FROM v", &["v"]),
        case(
            "views of each other",
            "CREATE VIEW a AS SELECT * FROM b; CREATE VIEW b AS SELECT * FROM a",
            &["a", "b"],
        ),
        case("a view of what is not there", "CREATE VIEW v AS SELECT something FROM nowhere", &["v"]),
        case(
            "a view that never ends",
            "CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) AS n FROM c",
            &["v"],
        ),
        case("a view that fills the memory", "CREATE VIEW v AS SELECT hex(zeroblob(900000000)) AS x", &["v"]),
        case(
            "a view that asks for what is refused",
            "CREATE VIEW v AS SELECT load_extension('/tmp/x.so') AS x; CREATE VIEW w AS SELECT fts3_tokenizer('simple') AS y",
            &["v", "w"],
        ),
        ("views that double with each level", doubling, vec!["v3", "v27"]),
        ("a table of many columns", format!("CREATE TABLE t({})", columns.join(",")), vec!["t"]),
        case(
            "generated columns that fail or take all",
            "CREATE TABLE t(a, b AS (abs(-9223372036854775807 - a)), c AS (zeroblob(a * 100000000)), d AS (a / 0)); INSERT INTO t(a) VALUES (0), (9)",
            &["t"],
        ),
        case(
            "an index over an expression that fails",
            "CREATE TABLE t(a); CREATE INDEX i ON t(abs(a)); CREATE INDEX j ON t(json_extract(a, '$.x')) WHERE a LIKE '{%'",
            &["t"],
        ),
        case(
            "triggers that destroy",
            "CREATE TABLE t(a); CREATE TABLE u(a); INSERT INTO t VALUES (1); INSERT INTO u VALUES (1);
             CREATE TRIGGER x AFTER INSERT ON t BEGIN DELETE FROM u; INSERT INTO t VALUES (2); END;
             CREATE VIEW v AS SELECT * FROM t; CREATE TRIGGER y INSTEAD OF INSERT ON v BEGIN DELETE FROM t; END",
            &["t", "u", "v"],
        ),
        case(
            "a trigger that fires itself",
            "PRAGMA recursive_triggers = 1; CREATE TABLE t(a); CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO t VALUES (new.a); END",
            &["t"],
        ),
        case(
            "names that break things",
            "CREATE TABLE \"a\"\"b\nc,d\"(\"x\"\"y\n\", \"--\", \"*/\"); INSERT INTO \"a\"\"b\nc,d\" VALUES (1, 2, 3); CREATE TABLE \"\u{202e}right\"(a); CREATE TABLE \"\"(a)",
            &["a\"b\nc,d", "\u{202e}right", ""],
        ),
        (
            "statistics that lie",
            format!("CREATE TABLE t(a, b); CREATE INDEX i ON t(a); {rows} INSERT INTO t SELECT x, x FROM c; ANALYZE; UPDATE sqlite_stat1 SET stat = '99999999999999999999 -5 sz=0 unordered noskipscan'; INSERT INTO sqlite_stat1 VALUES ('t', 'nothing', NULL), (NULL, NULL, x'00')"),
            vec!["t", "sqlite_stat1"],
        ),
        (
            "a full-text index whose own tables are odd",
            format!("CREATE VIRTUAL TABLE f USING fts5(a); {rows} INSERT INTO f SELECT 'word ' || x FROM c; UPDATE f_data SET block = randomblob(length(block)); DELETE FROM f_docsize WHERE id > 20"),
            vec!["f", "f_data"],
        ),
        (
            "an r-tree whose nodes are noise",
            format!("CREATE VIRTUAL TABLE r USING rtree(id, a, b); {rows} INSERT INTO r SELECT x, x, x + 1 FROM c; UPDATE r_node SET data = randomblob(length(data))"),
            vec!["r", "r_node"],
        ),
        (
            "an fts4 index without its segments",
            format!("CREATE VIRTUAL TABLE f USING fts4(a); {rows} INSERT INTO f SELECT 'word ' || x FROM c; UPDATE f_segdir SET root = randomblob(40), start_block = 77777; DROP TABLE f_segments"),
            vec!["f"],
        ),
    ]
}

/// Rows of sqlite_schema that nobody but a hand in the file could have written.
fn planted() -> Vec<Case> {
    let row = |kind: &str, name: &str, root: &str, sql: &str| {
        format!(
            "INSERT INTO sqlite_schema(type, name, tbl_name, rootpage, sql) VALUES ({kind}, {name}, {name}, {root}, {sql});"
        )
    };
    let case = |name, sql: String, tables: &[&'static str]| (name, sql, tables.to_vec());
    let depth = "(".repeat(3000);
    vec![
        case(
            "a module that is missing",
            row("'table'", "'m'", "0", "'CREATE VIRTUAL TABLE m USING nonesuch(a, b)'"),
            &["m", "t"],
        ),
        case(
            "a module with nonsense for arguments",
            row(
                "'table'",
                "'m'",
                "0",
                "'CREATE VIRTUAL TABLE m USING fts5(a, tokenize=''nothing x'', content=''m'')'",
            ),
            &["m", "t"],
        ),
        case(
            "a definition that does not parse",
            row("'table'", "'m'", "2", "'CREATE TABLE m(((('"),
            &["m", "t"],
        ),
        case("a definition of something else", row("'table'", "'m'", "2", "'DROP TABLE t'"), &["m", "t"]),
        case("a definition that is a number", row("'table'", "'m'", "2", "17"), &["m", "t"]),
        case("a definition that is bytes", row("'view'", "'m'", "0", "x'00ff00ff'"), &["m", "t"]),
        case("a definition without a name", row("'table'", "NULL", "2", "'CREATE TABLE m(a)'"), &["t"]),
        case(
            "a table whose name is no UTF-8",
            row(
                "'table'",
                "CAST(x'6dff' AS TEXT)",
                "2",
                "CAST('CREATE TABLE m' || x'ff' || '(a, b)' AS TEXT)",
            ),
            &["t"],
        ),
        case(
            "a column whose name is no UTF-8",
            row("'table'", "'m'", "2", "CAST('CREATE TABLE m(a' || x'ff' || ', b)' AS TEXT)"),
            &["m", "t"],
        ),
        case(
            "a table at a page that is not there",
            row("'table'", "'m'", "99999", "'CREATE TABLE m(a)'"),
            &["m", "t"],
        ),
        case("two tables at one page", row("'table'", "'m'", "2", "'CREATE TABLE m(a, b, c)'"), &["m", "t"]),
        case(
            "a table at the schema's page",
            row("'table'", "'m'", "1", "'CREATE TABLE m(a, b, c, d, e)'"),
            &["m", "t"],
        ),
        case(
            "an index of another table's shape",
            row("'index'", "'m'", "2", "'CREATE INDEX m ON t(a)'"),
            &["t"],
        ),
        case(
            "a view too deep to parse",
            row("'view'", "'m'", "0", &format!("'CREATE VIEW m AS SELECT {depth}1{}'", ")".repeat(3000))),
            &["m", "t"],
        ),
        case(
            "a name of the server's",
            row("'view'", "'memory_events'", "0", "'CREATE VIEW memory_events AS SELECT 1 AS id'"),
            &["t", "memory_events"],
        ),
        case(
            "a trigger on the log",
            format!(
                "CREATE TABLE query_log(id); {}",
                row(
                    "'trigger'",
                    "'m'",
                    "0",
                    "'CREATE TRIGGER m AFTER INSERT ON query_log BEGIN DELETE FROM t; END'"
                )
            ),
            &["t"],
        ),
    ]
}

/// Makes the file with a connection that lets everything pass.
fn made(case: &Case) -> Bench {
    let bench = Bench::with("CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2)");
    let connection = Connection::open(bench.path()).unwrap();
    for option in [DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER] {
        connection.set_db_config(option, true).unwrap();
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false).unwrap();
    connection.execute_batch(&case.1).unwrap_or_else(|error| panic!("{}: {error}", case.0));
    bench
}

#[test]
fn schemas_that_mean_harm_do_none() {
    for mut case in ordinary() {
        if case.1.contains("CREATE TABLE t(") || case.1.contains("CREATE VIEW t ") {
            case.1 = format!("DROP TABLE t; {}", case.1);
        }
        for way in Way::ALL {
            let bench = made(&case);
            let (before, content) = (bytes(bench.path()), bench.query("SELECT group_concat(name || ifnull(sql, '')) FROM sqlite_schema WHERE tbl_name NOT LIKE 'memory%' AND tbl_name NOT LIKE 'query%'"));
            let ran = survive(bench.path(), way, &case.2, &format!("{}, {way:?}", case.0));
            assert!(ran.served, "{}, {way:?}: nothing is wrong with the file itself", case.0);
            if way == Way::Memory {
                let after = bench.query("SELECT group_concat(name || ifnull(sql, '')) FROM sqlite_schema WHERE tbl_name NOT LIKE 'memory%' AND tbl_name NOT LIKE 'query%'");
                assert_eq!(after, content, "{}: no definition came or went", case.0);
                assert_eq!(
                    bench.query("SELECT count(*) FROM memory_events"),
                    "1",
                    "{}: the memory works",
                    case.0
                );
            } else {
                assert!(bytes(bench.path()) == before, "{}, {way:?}: somebody wrote", case.0);
            }
        }
    }
}

#[test]
fn definitions_that_nobody_could_have_made_are_served_around_or_refused() {
    for case in planted() {
        for way in Way::ALL {
            let bench = made(&case);
            let before = bytes(bench.path());
            let ran = survive(bench.path(), way, &case.2, &format!("{}, {way:?}", case.0));
            if way != Way::Memory || !ran.served {
                assert!(bytes(bench.path()) == before, "{}, {way:?}: somebody wrote", case.0);
            }
        }
    }
}

#[test]
fn a_column_whose_name_is_no_utf8_is_refused_with_words_and_the_others_are_read() {
    let case = planted().into_iter().find(|case| case.0 == "a column whose name is no UTF-8").unwrap();
    let bench = made(&case);
    let mut client = Server::on(&bench).flags(&["--profile", "explorer"]).start();
    let mut ask = |sql: &str| client.call("run_query", json!({"sql": sql}));
    ask("SELECT * FROM m").fails_as("REFUSED", &["access to m.a", "is not UTF-8", "leave it out"]);
    assert_eq!(ask("SELECT b FROM m").ok().structured["rows"], json!([[2]]));
    let (stderr, _) = client.close_with_stderr();
    assert!(!stderr.contains("panicked"), "{stderr}");
}
