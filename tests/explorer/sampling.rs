//! sample_rows: the first rows and random ones, of every kind of table.

use crate::support::Bench;
use crate::{Desk, MUSIC};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Numbers in the first column of a random sample.
#[track_caller]
fn drawn(desk: &mut Desk, table: &str, limit: u64) -> Vec<i64> {
    let sample = desk.data("sample_rows", json!({"table": table, "limit": limit, "random": true}));
    assert_eq!(sample["truncated"], Value::Null);
    sample["rows"].as_array().unwrap().iter().map(|row| row[0].as_i64().unwrap()).collect()
}

#[track_caller]
fn distinct(numbers: &[i64]) -> BTreeSet<i64> {
    let set: BTreeSet<i64> = numbers.iter().copied().collect();
    assert_eq!(set.len(), numbers.len(), "a row was drawn twice: {numbers:?}");
    set
}

#[test]
fn the_first_rows_come_with_the_columns_asked_for() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::on(&bench);
    let sample = desk.data("sample_rows", json!({"table": "Tracks", "columns": ["TITLE", "ms"], "limit": 2}));
    let expected = json!({"columns": ["title", "ms"], "rows": [["track 1", 103000], ["track 2", 106000]], "row_count": 2, "truncated": "max_rows"});
    assert_eq!(sample, expected);
    let sample = desk.data("sample_rows", json!({"table": "tracks"}));
    assert_eq!((&sample["row_count"], sample["columns"].as_array().unwrap().len()), (&json!(10), 6));
    let sample = desk.data("sample_rows", json!({"table": "artists", "limit": 500}));
    assert_eq!((&sample["row_count"], &sample["truncated"]), (&json!(2), &Value::Null));
    let sample = desk.data("sample_rows", json!({"table": "long_tracks", "limit": 1}));
    assert_eq!(sample["rows"], json!([[34, "track 34"]]));
    let sample = desk.data("sample_rows", json!({"table": "artists", "columns": ["id", "ID"]}));
    assert_eq!(sample["columns"], json!(["id", "id"]));
    desk.call("sample_rows", json!({"table": "tracks", "columns": ["titel"]}))
        .fails_as("UNKNOWN_COLUMN", &["`tracks` has no column `titel`", "near is `title`", "`price`"]);
    desk.call("sample_rows", json!({"table": "tracks", "columns": ["1; DROP TABLE tracks"]}))
        .fails_as("UNKNOWN_COLUMN", &[]);
}

#[test]
fn random_rows_are_distinct_and_differ_from_draw_to_draw() {
    let many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 5000)";
    let bench = Bench::with(&format!(
        "CREATE TABLE plain(n, t); {many} INSERT INTO plain SELECT x, 'x' FROM c;
        CREATE TABLE keyed(k INTEGER, t, PRIMARY KEY (k)) WITHOUT ROWID; {many} INSERT INTO keyed SELECT x, 'x' FROM c;
        CREATE VIEW seen AS SELECT n FROM plain WHERE n % 2;
        CREATE TABLE hidden(n, rowid, _rowid_, oid); {many} INSERT INTO hidden SELECT x, 1, 2, 3 FROM c;
        CREATE TABLE half(rowid TEXT, n); {many} INSERT INTO half SELECT 'r' || x, x FROM c;
        CREATE VIRTUAL TABLE words USING fts5(n, t); {many} INSERT INTO words SELECT x, 'x' FROM c;
        CREATE VIRTUAL TABLE boxes USING rtree(id, a, b); {many} INSERT INTO boxes SELECT x, x, x FROM c;",
    ));
    let mut desk = Desk::on(&bench);
    for table in ["plain", "keyed", "seen", "hidden", "boxes"] {
        let (first, second) = (drawn(&mut desk, table, 20), drawn(&mut desk, table, 20));
        assert_eq!((distinct(&first).len(), distinct(&second).len()), (20, 20), "{table}");
        assert_ne!(first, second, "{table}: five thousand rows, and twice the same twenty");
        assert!(first.iter().any(|n| *n > 100), "{table}: only from the start: {first:?}");
    }
    for (table, column) in [("half", "n"), ("words", "n")] {
        let arguments = json!({"table": table, "columns": [column], "limit": 20, "random": true});
        let sample = desk.data("sample_rows", arguments);
        let values: BTreeSet<String> =
            sample["rows"].as_array().unwrap().iter().map(|row| row[0].to_string()).collect();
        assert_eq!(values.len(), 20, "{table}");
    }
}

#[test]
fn a_table_smaller_than_the_sample_is_given_whole() {
    let bench = Bench::with(
        "CREATE TABLE empty(n); CREATE TABLE empty_keyed(n PRIMARY KEY) WITHOUT ROWID; CREATE VIEW empty_view AS SELECT n FROM empty;
        CREATE TABLE ends(n INTEGER PRIMARY KEY); INSERT INTO ends VALUES (-9223372036854775808), (0), (9223372036854775807);
        CREATE TABLE negative(n INTEGER PRIMARY KEY); INSERT INTO negative VALUES (-50), (-40), (-30), (-3);
        CREATE TABLE sparse(n INTEGER PRIMARY KEY);
        WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM c LIMIT 40) INSERT INTO sparse SELECT x * x * x * 1000003 FROM c;
        CREATE TABLE three(n PRIMARY KEY) WITHOUT ROWID; INSERT INTO three VALUES (1), (2), (3);",
    );
    let mut desk = Desk::on(&bench);
    for table in ["empty", "empty_keyed", "empty_view"] {
        assert_eq!(drawn(&mut desk, table, 5), [] as [i64; 0], "{table}");
        assert_eq!(desk.data("sample_rows", json!({"table": table}))["columns"], json!(["n"]));
    }
    let ends = desk.data("sample_rows", json!({"table": "ends", "random": true}));
    assert_eq!(ends["rows"], json!([["-9223372036854775808"], [0], ["9223372036854775807"]]));
    assert_eq!(distinct(&drawn(&mut desk, "negative", 10)), BTreeSet::from([-50, -40, -30, -3]));
    assert_eq!(distinct(&drawn(&mut desk, "sparse", 100)).len(), 40);
    assert_eq!(distinct(&drawn(&mut desk, "sparse", 30)).len(), 30);
    assert_eq!(distinct(&drawn(&mut desk, "three", 3)), BTreeSet::from([1, 2, 3]));
}

#[test]
fn a_million_rows_are_sampled_without_sorting_them() {
    let bench = Bench::with(
        "CREATE TABLE big(id INTEGER PRIMARY KEY, t); CREATE TABLE keyed(id PRIMARY KEY, t) WITHOUT ROWID;
        WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 1000000) INSERT INTO big SELECT x, 'row ' || x FROM c;
        INSERT INTO keyed SELECT id, t FROM big LIMIT 200000;",
    );
    let mut desk = Desk::on(&bench);
    desk.is_alive();
    let began = Instant::now();
    let far = drawn(&mut desk, "big", 500);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    // With rows drawn evenly, none of 500 in the upper half has one chance in 2^500.
    assert!(distinct(&far).len() == 500 && far.iter().any(|id| *id > 500_000));
    assert_eq!(distinct(&drawn(&mut desk, "keyed", 100)).len(), 100);
}
