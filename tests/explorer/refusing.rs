//! What is not one statement that reads is refused, however it is dressed, and changes nothing.

use crate::support::Bench;
use crate::{Desk, MUSIC};
use serde_json::json;

/// Statements that would change the file, the connection or other files, and the code of their refusal.
pub(crate) const HOSTILE: &[(&str, &str)] = &[
    ("DELETE FROM tracks", "NOT_SELECT"),
    ("INSERT INTO artists VALUES (9, 'x')", "NOT_SELECT"),
    ("UPDATE artists SET name = 'x'", "NOT_SELECT"),
    ("REPLACE INTO artists VALUES (1, 'x')", "NOT_SELECT"),
    ("DROP TABLE tracks", "NOT_SELECT"),
    ("CREATE TABLE t(x)", "NOT_SELECT"),
    ("CREATE TEMP TABLE t(x)", "NOT_SELECT"),
    ("CREATE VIEW v AS SELECT 1", "NOT_SELECT"),
    ("CREATE VIRTUAL TABLE f USING fts5(x)", "NOT_SELECT"),
    ("ALTER TABLE tracks ADD COLUMN x", "NOT_SELECT"),
    ("VACUUM", "NOT_SELECT"),
    ("VACUUM INTO 'copy.db'", "NOT_SELECT"),
    ("ANALYZE", "NOT_SELECT"),
    ("REINDEX", "NOT_SELECT"),
    ("BEGIN", "NOT_SELECT"),
    ("BEGIN IMMEDIATE", "NOT_SELECT"),
    ("ROLLBACK", "NOT_SELECT"),
    ("SAVEPOINT s", "NOT_SELECT"),
    ("ATTACH 'other.db' AS other", "NOT_SELECT"),
    ("DETACH main", "NOT_SELECT"),
    ("PRAGMA table_info(tracks)", "NOT_SELECT"),
    ("PRAGMA journal_mode = WAL", "NOT_SELECT"),
    ("PRAGMA writable_schema = ON", "NOT_SELECT"),
    ("PRAGMA query_only = OFF", "NOT_SELECT"),
    ("PRAGMA wal_checkpoint", "NOT_SELECT"),
    ("EXPLAIN SELECT 1", "NOT_SELECT"),
    ("EXPLAIN QUERY PLAN SELECT 1", "NOT_SELECT"),
    ("EXPLAIN DELETE FROM tracks", "NOT_SELECT"),
    ("/* SELECT */ DELETE FROM tracks", "NOT_SELECT"),
    ("-- SELECT\nDELETE FROM tracks", "NOT_SELECT"),
    ("; ; DELETE FROM tracks", "NOT_SELECT"),
    ("DELETE FROM tracks RETURNING *", "NOT_SELECT"),
    ("WITH x AS (SELECT 1) DELETE FROM tracks", "NOT_READ_ONLY"),
    ("WITH x AS (SELECT 1) DELETE FROM tracks RETURNING id", "NOT_READ_ONLY"),
    ("WITH x AS (SELECT 1) INSERT INTO artists SELECT 9, 'x' FROM x", "NOT_READ_ONLY"),
    ("WITH x AS (SELECT 1) UPDATE tracks SET ms = 0", "NOT_READ_ONLY"),
    ("/* c */ WITH x AS (SELECT 1) REPLACE INTO artists SELECT 1, 'x'", "NOT_READ_ONLY"),
    ("SELECT 1; SELECT 2", "MULTIPLE_STATEMENTS"),
    ("SELECT 1; DELETE FROM tracks", "MULTIPLE_STATEMENTS"),
    ("SELECT 1; nonsense", "MULTIPLE_STATEMENTS"),
    ("SELECT load_extension('x')", "REFUSED"),
];

#[test]
fn what_would_change_anything_is_refused_by_its_code() {
    let bench = Bench::with(MUSIC);
    let before = bench.files();
    let mut desk = Desk::on(&bench);
    for (sql, code) in HOSTILE {
        desk.query(sql).fails_as(code, &[]);
        desk.call("explain_query", json!({"sql": sql})).fails_as(code, &[]);
    }
    desk.query("DELETE FROM tracks").fails(&["DELETE", "run_query takes one SELECT"]);
    desk.query("EXPLAIN SELECT 1").fails(&["explain_query"]);
    desk.is_alive();
    assert_eq!(bench.files(), before);
}

#[test]
fn functions_and_virtual_tables_that_write_are_out_of_reach() {
    let bench = Bench::with(MUSIC);
    bench.sql("CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f VALUES ('hello'); CREATE VIRTUAL TABLE r USING rtree(id, a, b)");
    let before = bench.files();
    let mut desk = Desk::on(&bench);
    for sql in [
        "SELECT writefile('x', 'y')",
        "SELECT readfile('/etc/passwd')",
        "SELECT edit('x')",
        "SELECT fts3_tokenizer('simple', x'00')",
        "SELECT * FROM fsdir('/')",
        "SELECT * FROM pragma_journal_mode('wal')",
        "SELECT * FROM pragma_wal_checkpoint",
        "SELECT * FROM sqlite_dbpage",
    ] {
        desk.query(sql).fails(&[]);
    }
    assert_eq!(desk.rows("SELECT x FROM f WHERE f MATCH 'hello'"), json!([["hello"]]));
    assert_eq!(desk.rows("SELECT count(*) FROM r"), json!([[0]]));
    assert_eq!(bench.files(), before);
}

#[test]
fn a_text_without_a_statement_is_named() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::on(&bench);
    for sql in ["", "   ", ";", " ; ; ", "-- only a comment", "/* so */", "/* unclosed"] {
        desk.query(sql).fails_as("EMPTY_STATEMENT", &[]);
    }
    for sql in [
        "SELECT 'unterminated",
        "SELECT",
        "SELEC 1",
        "SELECT 1 FROM",
        "SELECT (1",
        "SELECT 1\0; DROP TABLE tracks",
    ] {
        desk.query(sql).fails_as("SYNTAX_ERROR", &[]);
    }
}
