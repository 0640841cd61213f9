//! The caps on rows, bytes and characters, and what a result says about what is missing.

use crate::support::Bench;
use crate::{Desk, MUSIC};
use serde_json::{Value, json};

/// Fails unless text and data each have at most `most` bytes, and 500 for what is missing.
#[track_caller]
fn within(answer: &crate::support::Answer, most: usize, what: &str) {
    let (text, data) = (answer.ok().text.len(), answer.structured.to_string().len());
    assert!(text <= most + 500 && data <= most + 500, "{what}: {text} bytes of text, {data} of data");
}

/// Bytes of the table in the text, and of the columns and rows as data.
fn sizes(answer: &crate::support::Answer) -> (usize, usize) {
    let table = answer.text.rsplit_once("\n\n").unwrap().0;
    let data = &answer.structured;
    (table.len(), data["columns"].to_string().len() + data["rows"].to_string().len())
}

#[test]
fn rows_beyond_the_limit_are_counted_as_missing() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::on(&bench);
    for (sql, max_rows, rows, truncated) in [
        ("SELECT id FROM tracks", Value::Null, 50, json!("max_rows")),
        ("SELECT id FROM tracks", json!(59), 59, json!("max_rows")),
        ("SELECT id FROM tracks", json!(60), 60, Value::Null),
        ("SELECT id FROM tracks", json!(500), 60, Value::Null),
        ("SELECT id FROM tracks LIMIT 50", Value::Null, 50, Value::Null),
        ("SELECT id FROM tracks WHERE 0", json!(1), 0, Value::Null),
    ] {
        let answer = desk.call("run_query", json!({"sql": sql, "max_rows": max_rows}));
        assert_eq!(answer.ok().structured["row_count"], rows, "{sql} {max_rows}");
        assert_eq!(answer.structured["truncated"], truncated, "{sql} {max_rows}");
    }
}

#[test]
fn a_long_cell_is_cut_and_says_by_how_much() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::with(&bench, &["--max-cell-chars", "5"]);
    let answer = desk.query("SELECT 'žlutý kůň' AS a, 'short' AS b, x'00112233445566' AS c, 12345678 AS d");
    assert_eq!(
        answer.ok().structured["rows"],
        json!([["žlutý...[+4 chars]", "short", "<blob 7 bytes>", 12345678]])
    );
    assert_eq!(answer.structured["truncated"], "max_cell_chars");
    answer.ends("1 rows; 1 cells cut to 5 chars");
}

#[test]
fn the_byte_cap_holds_for_text_and_data_whatever_the_rows() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::with(&bench, &["--max-result-bytes", "5000", "--max-cell-chars", "200"]);
    let rows =
        "FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 500) SELECT x FROM c)";
    for cell in [
        "printf('%.*c', 100, 'x')",
        "printf('%.*c', 100, '|')",
        "printf('%.*c', 100, '\"')",
        "printf('%.*c', 100, '\\')",
        "printf('%.*c', 100, char(10))",
        "printf('%.*c', 100, char(1))",
        "printf('%.*c', 100, char(127))",
        "replace(printf('%.*c', 100, 'x'), 'x', 'ž')",
        "-9223372036854775808 + x",
        "x / 7.0",
        "NULL",
        "x'00'",
        "''",
    ] {
        let sql = format!("SELECT {cell} AS a, {cell} AS b {rows}");
        let answer = desk.call("run_query", json!({"sql": sql, "max_rows": 500}));
        let (text, data) = sizes(answer.ok());
        assert!(text <= 5000 && data <= 5000, "{cell}: {text} bytes of text, {data} of data");
        assert!(text.max(data) > 2500, "{cell}: much room is left: {text} bytes of text, {data} of data");
        assert_eq!(answer.structured["truncated"], "max_output_bytes", "{cell}");
        answer.has("; cut at 5000 bytes");
    }
}

#[test]
fn a_first_row_that_is_too_wide_is_cut_and_not_lost() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::with(&bench, &["--max-result-bytes", "2000", "--max-cell-chars", "1000"]);
    let answer = desk.query("SELECT printf('%.*c', 5000, 'x') AS a, printf('%.*c', 900, '|') AS b, 7 AS c");
    let (text, data) = sizes(answer.ok());
    assert!(text <= 2000 && data <= 2000, "{text} {data}");
    let row = &answer.structured["rows"][0];
    let kept = row[0].as_str().unwrap().bytes().take_while(|byte| *byte == b'x').count();
    assert!(kept > 300, "{row}");
    assert_eq!(row[0], json!(format!("{}...[+{} chars]", "x".repeat(kept), 5000 - kept)));
    assert_eq!((&row[2], &answer.structured["truncated"]), (&json!(7), &json!("max_output_bytes")));
}

#[test]
fn two_thousand_columns_are_shown() {
    let bench = Bench::with(MUSIC);
    let columns: Vec<String> = (0..2000).map(|n| format!("c{n}")).collect();
    bench.sql(&format!("CREATE TABLE wide({}); INSERT INTO wide(c1999) VALUES ('end')", columns.join(", ")));
    let mut desk = Desk::on(&bench);
    for (tool, arguments) in [
        ("run_query", json!({"sql": "SELECT * FROM wide"})),
        ("sample_rows", json!({"table": "wide"})),
        ("sample_rows", json!({"table": "wide", "random": true})),
    ] {
        let data = desk.data(tool, arguments);
        assert_eq!(data["columns"].as_array().unwrap().len(), 2000, "{tool}");
        assert_eq!(
            (&data["columns"][1999], &data["rows"][0][1999]),
            (&json!("c1999"), &json!("end")),
            "{tool}"
        );
        assert_eq!(data["truncated"], Value::Null, "{tool}");
    }
    let mut roomy = Desk::with(&bench, &["--max-result-bytes", "300000"]);
    let table = roomy.data("describe_table", json!({"table": "wide"}));
    assert_eq!((table["columns"].as_array().unwrap().len(), &table["truncated"]), (2000, &Value::Null));
    let too_many: Vec<String> = (0..2001).map(|n| format!("{n}")).collect();
    desk.query(&format!("SELECT {}", too_many.join(", ")))
        .fails_as("SQL_ERROR", &["too many columns in result set"]);
}

#[test]
fn many_long_names_are_shown_as_far_as_there_is_room() {
    let bench = Bench::with(MUSIC);
    for most in [300, 2000, 65536] {
        let mut desk = Desk::with(&bench, &["--max-result-bytes", &most.to_string()]);
        for (what, name, value) in [
            ("long names", "n".repeat(300), "1"),
            ("names that grow when they are escaped", "\u{1}|\n`".repeat(30), "1"),
            ("long reals", "n".to_owned(), "-1.2345678901234567e-300"),
            ("long texts", "n".to_owned(), "hex(zeroblob(400))"),
        ] {
            let columns: Vec<String> = (0..1900).map(|n| format!("{value} AS \"{name}{n}\"")).collect();
            let answer = desk.query(&format!("SELECT {}", columns.join(", ")));
            within(&answer, most, what);
            let (columns, row) = (&answer.structured["columns"], &answer.structured["rows"][0]);
            let shown = columns.as_array().unwrap().len();
            assert_eq!(shown, row.as_array().unwrap().len(), "{what}");
            assert!(shown > 0 && shown < 1900, "{what}: {shown}");
            answer.has(&format!("; {} more columns not shown; cut at {most} bytes", 1900 - shown));
            assert_eq!(answer.structured["truncated"], "max_output_bytes", "{what}");
        }
    }
}

#[test]
fn the_byte_cap_holds_for_descriptions_lists_and_plans() {
    let bench = Bench::with(MUSIC);
    let name = |n: usize| format!("\"{}{n}\"", "c|\u{1}\u{17e}".repeat(60));
    let columns: Vec<String> =
        (0..1900).map(|n| format!("{} TEXT DEFAULT '{}'", name(n), "d".repeat(40))).collect();
    bench.sql(&format!("CREATE TABLE wide({})", columns.join(", ")));
    let indexes: String =
        (0..300).map(|n| format!("CREATE INDEX \"i|{}{n}\" ON tags2(a);", "i".repeat(50))).collect();
    let keys: Vec<String> =
        (0..300).map(|n| format!("FOREIGN KEY(a) REFERENCES \"{}{n}\"(b)", "p".repeat(50))).collect();
    bench.sql(&format!("CREATE TABLE tags2(a, {}); {indexes}", keys.join(", ")));
    bench.sql(&format!("CREATE TABLE said(a DEFAULT '{}')", "|".repeat(100_000)));
    let tables: String =
        (0..300).map(|n| format!("CREATE TABLE \"{}{n}\"(x);", "\u{1}".repeat(200))).collect();
    bench.sql(&tables);
    let union: Vec<String> =
        (0..400).map(|n| format!("SELECT 1 FROM tracks AS \"{}{n}\"", "a|".repeat(200))).collect();
    for most in [2000, 20_000, 65536] {
        let mut desk = Desk::with(&bench, &["--max-result-bytes", &most.to_string()]);
        for (tool, arguments) in [
            ("describe_table", json!({"table": "wide"})),
            ("describe_table", json!({"table": "tags2"})),
            ("describe_table", json!({"table": "said"})),
            ("list_tables", json!({})),
            ("explain_query", json!({"sql": union.join(" UNION ALL ")})),
        ] {
            let answer = desk.call(tool, arguments.clone());
            within(&answer, most, &format!("{tool} {most}"));
            assert_eq!(answer.structured["truncated"], "max_output_bytes", "{tool} {most}");
            answer.has(&format!("cut at {most} bytes"));
        }
        let table = desk.data("describe_table", json!({"table": "tracks"}));
        assert_eq!((&table["columns"][0]["name"], &table["truncated"]), (&json!("id"), &Value::Null));
    }
}

#[test]
fn an_error_does_not_repeat_a_name_of_a_megabyte() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::with(&bench, &["--max-result-bytes", "1000"]);
    let name = "n".repeat(900_000);
    for (tool, arguments) in [
        ("run_query", json!({"sql": format!("SELECT 1 FROM {name}")})),
        ("run_query", json!({"sql": format!("SELECT {name} FROM tracks")})),
        ("describe_table", json!({"table": name})),
        ("sample_rows", json!({"table": "tracks", "columns": [name]})),
        ("sample_rows", json!({"table": "tracks", name: 1})),
    ] {
        let answer = desk.call(tool, arguments);
        assert!(answer.failed && answer.text.len() <= 1600, "{tool}: {} bytes", answer.text.len());
    }
}

#[test]
fn descriptions_and_plans_are_capped_as_rows_are() {
    let bench = Bench::with(MUSIC);
    let columns: Vec<String> = (0..500).map(|n| format!("column_number_{n} TEXT DEFAULT 'x'")).collect();
    bench.sql(&format!("CREATE TABLE wide({})", columns.join(", ")));
    bench.sql(&format!("CREATE VIEW talkative AS SELECT 1 AS one /* {} */", "word ".repeat(20_000)));
    let mut desk = Desk::with(&bench, &["--max-result-bytes", "4000"]);
    let scans = format!("SELECT 1 {}", " UNION ALL SELECT id FROM tracks".repeat(100));
    for (tool, arguments, kept) in [
        ("describe_table", json!({"table": "wide"}), "columns"),
        ("describe_table", json!({"table": "talkative"}), "columns"),
        ("explain_query", json!({"sql": scans}), "plan"),
    ] {
        let answer = desk.call(tool, arguments.clone());
        let data = &answer.ok().structured;
        assert_eq!(data["truncated"], "max_output_bytes", "{arguments}");
        assert!(!data[kept].as_array().unwrap().is_empty(), "{arguments}");
        assert!(data.to_string().len() < 4500, "{arguments}: {} bytes of data", data.to_string().len());
        assert!(answer.text.len() < 4500, "{arguments}: {} bytes of text", answer.text.len());
        answer.ends("cut at 4000 bytes");
    }
    let small = desk.data("describe_table", json!({"table": "tracks"}));
    assert_eq!(small["truncated"], Value::Null);
    assert!(small["sql"].as_str().is_some());
}
