//! run_query: what is bound, what comes back, and that it is exact.

use crate::support::Bench;
use crate::{Desk, MUSIC};
use serde_json::{Value, json};

#[test]
fn parameters_are_bound_by_place_and_by_name() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::on(&bench);
    for (sql, params, expected) in [
        ("SELECT title FROM tracks WHERE id = ?", json!([7]), json!([["track 7"]])),
        ("SELECT title FROM tracks WHERE id = :id", json!({"id": 7}), json!([["track 7"]])),
        ("SELECT $a, @b, :c", json!({"$a": 1, "b": "x", ":c": null}), json!([[1, "x", null]])),
        (
            "SELECT ?, ?2, typeof(?3)",
            json!([true, "'; DROP TABLE tracks", 1.5]),
            json!([[1, "'; DROP TABLE tracks", "real"]]),
        ),
        ("SELECT 1", json!([]), json!([[1]])),
        ("SELECT 1", json!({}), json!([[1]])),
        ("SELECT 1", Value::Null, json!([[1]])),
    ] {
        let answer = desk.call("run_query", json!({"sql": sql, "params": params}));
        assert_eq!(answer.ok().structured["rows"], expected, "{sql}");
    }
    for (sql, params, words) in [
        ("SELECT ?", Value::Null, "`params` is missing"),
        ("SELECT ?", json!([1, 2]), "has 2 values"),
        ("SELECT ?", json!({"a": 1}), "give `params` as an array"),
        ("SELECT :a", json!({"b": 1}), "`:a` is missing"),
        ("SELECT :a", json!({"a": 1, "b": 1}), "`b`, which is not a parameter"),
        ("SELECT ?", json!([[1]]), "an array or object"),
        ("SELECT ?", json!([18_446_744_073_709_551_615_u64]), "beyond 64 bits"),
    ] {
        desk.call("run_query", json!({"sql": sql, "params": params})).fails_as("INVALID_PARAMS", &[words]);
    }
}

#[test]
fn every_value_comes_back_exactly() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::on(&bench);
    for (sql, expected) in [
        ("9007199254740991", json!(9_007_199_254_740_991_i64)),
        ("-9007199254740991", json!(-9_007_199_254_740_991_i64)),
        ("9007199254740992", json!("9007199254740992")),
        ("9007199254740993", json!("9007199254740993")),
        ("-9223372036854775808", json!("-9223372036854775808")),
        ("1e999", json!("Inf")),
        ("-1e999", json!("-Inf")),
        ("1e999 - 1e999", Value::Null),
        ("1.5", json!(1.5)),
        ("0.1 + 0.2", json!(0.1 + 0.2)),
        ("1e300", json!(1e300)),
        ("-0.0", json!(-0.0)),
        ("2.0", json!(2.0)),
        ("x'00ff'", json!("<blob 2 bytes>")),
        ("x''", json!("<blob 0 bytes>")),
        ("NULL", Value::Null),
        ("''", json!("")),
        ("'NULL'", json!("NULL")),
        ("'žluť 日本 🐎'", json!("žluť 日本 🐎")),
        ("'a' || char(0) || 'b'", json!("a\0b")),
        ("CAST(x'61ff62' AS TEXT)", json!("a\u{fffd}b")),
    ] {
        let answer = desk.query(&format!("SELECT {sql} AS v"));
        assert_eq!(answer.ok().structured["rows"][0][0], expected, "{sql}");
        assert_eq!(answer.structured["truncated"], Value::Null, "{sql}");
    }
}

#[test]
fn columns_of_one_name_lose_nothing() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::on(&bench);
    let answer = desk.query("SELECT a.id, b.id, a.title AS \"id\", 1 AS \"\" FROM albums a JOIN albums b ON b.id = 3 - a.id ORDER BY 1");
    assert_eq!(answer.ok().structured["columns"], json!(["id", "id", "id", ""]));
    assert_eq!(answer.structured["rows"], json!([[1, 2, "First", 1], [2, 1, "Second", 1]]));
}

#[test]
fn text_is_a_table_with_what_is_missing_below() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::on(&bench);
    let sql = "SELECT id, name, NULL AS n FROM artists ORDER BY id";
    desk.query(sql)
        .is("| id | name | n |\n| --- | --- | --- |\n| 1 | Ana | NULL |\n| 2 | Bo | NULL |\n\n2 rows");
    desk.call("run_query", json!({"sql": sql, "max_rows": 1}))
        .is("| id | name | n |\n| --- | --- | --- |\n| 1 | Ana | NULL |\n\n1 rows; more rows exist (limit 1, maximum 500)");
    desk.query("SELECT 1 AS a WHERE 0").is("| a |\n| --- |\n\n0 rows");
}

#[test]
fn no_cell_and_no_name_can_break_a_row() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::on(&bench);
    let nasty = [
        "a | b",
        "a\nb",
        "a\r\nb",
        "a\rb",
        "| 1 | 2 |\n| --- | --- |",
        "`code`",
        "```\nfence\n```",
        "\\| \\",
        "a\u{85}b\u{2028}c\u{2029}d",
        "\u{1b}[31mred\u{1b}[0m",
        "a\tb",
        "\n\n1 rows",
        "<b>|</b>",
    ];
    for text in nasty {
        let answer = desk.call("run_query", json!({"sql": "SELECT ? AS a, 'next' AS b", "params": [text]}));
        assert_eq!(answer.ok().structured["rows"], json!([[text, "next"]]), "{text:?}");
        let lines: Vec<&str> = answer.text.split('\n').collect();
        assert_eq!((lines.len(), lines[3], lines[4]), (5, "", "1 rows"), "{text:?}: {}", answer.text);
        assert!(lines[2].starts_with("| ") && lines[2].ends_with(" | next |"), "{text:?}: {}", lines[2]);
        let bars = lines[2].match_indices('|').filter(|(at, _)| !escaped(lines[2], *at)).count();
        assert_eq!(bars, 3, "{text:?}: {}", lines[2]);
        assert!(!answer.text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{2028}'), "{text:?}");
        let named = format!("SELECT 1 AS \"{}\"", text.replace('"', "\"\""));
        assert_eq!(desk.query(&named).ok().structured["columns"], json!([text]), "{text:?}");
    }
}

/// Whether an odd number of backslashes stands before this place.
fn escaped(line: &str, at: usize) -> bool {
    line[..at].bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

#[test]
fn what_reads_is_taken_however_it_is_written() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::on(&bench);
    for (sql, expected) in [
        ("VALUES (1, 2), (3, 4)", json!([[1, 2], [3, 4]])),
        ("WITH x(a) AS (SELECT 5) SELECT a FROM x", json!([[5]])),
        ("SELECT ';' AS a -- ; DROP TABLE tracks", json!([[";"]])),
        ("/* ; */ SELECT \"title\" FROM [tracks] WHERE id = 1;", json!([["track 1"]])),
        ("SELECT 1;;; -- end", json!([[1]])),
        ("  \n\tselect 'DELETE FROM tracks'", json!([["DELETE FROM tracks"]])),
        ("SELECT count(*) FROM pragma_table_info('tracks')", json!([[6]])),
        ("SELECT count(*) FROM sqlite_schema WHERE type = 'view'", json!([[1]])),
        ("SELECT value FROM json_each('[1,2]')", json!([[1], [2]])),
        ("SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 3", json!([[1], [2]])),
    ] {
        assert_eq!(desk.rows(sql), expected, "{sql}");
    }
    // An endless row source ends where no more rows are wanted.
    let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c";
    let answer = desk.call("run_query", json!({"sql": endless, "max_rows": 3}));
    assert_eq!(
        (&answer.ok().structured["rows"], &answer.structured["truncated"]),
        (&json!([[1], [2], [3]]), &json!("max_rows"))
    );
}

#[test]
fn changes_of_other_programs_are_seen_at_once() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::on(&bench);
    assert_eq!(desk.rows("SELECT count(*) FROM artists"), json!([[2]]));
    bench.sql("INSERT INTO artists VALUES (3, 'Cy'); ALTER TABLE artists ADD COLUMN born");
    assert_eq!(desk.rows("SELECT * FROM artists WHERE id = 3"), json!([[3, "Cy", null]]));
    bench.sql("PRAGMA foreign_keys = OFF; DROP TABLE albums");
    desk.query("SELECT * FROM albums").fails_as("UNKNOWN_TABLE", &["`artists`"]);
}
