//! What is not one statement that reads is refused, however it is dressed, and changes nothing.

use crate::support::Bench;
use crate::support::hostile::{HOSTILE, Hostile, OUT_OF_REACH};
use crate::{Desk, MUSIC};
use serde_json::json;

#[test]
fn what_would_change_anything_is_refused_by_its_code() {
    let bench = Bench::with(MUSIC);
    let before = bench.files();
    let mut desk = Desk::on(&bench);
    for Hostile { sql, run_query: code, .. } in HOSTILE {
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
    for sql in OUT_OF_REACH {
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
