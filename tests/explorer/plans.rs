//! explain_query: the plan, the scans in it, and that nothing runs.

use crate::support::Bench;
use crate::{Desk, ENDLESS, MUSIC};
use serde_json::{Value, json};

#[test]
fn the_tree_is_sqlite_s_own_and_the_plan_has_its_rows() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::on(&bench);
    let arguments = json!({"sql": "SELECT * FROM tracks WHERE album_id = ?", "params": [1]});
    let answer = desk.call("explain_query", arguments);
    answer
        .ok()
        .has("```\nQUERY PLAN\n`--SEARCH tracks USING INDEX tracks_album (album_id=?)\n```")
        .has("No table is read from end to end");
    let plan = &answer.structured;
    assert_eq!(plan["tree"], "QUERY PLAN\n`--SEARCH tracks USING INDEX tracks_album (album_id=?)");
    assert_eq!(plan["plan"][0]["detail"], "SEARCH tracks USING INDEX tracks_album (album_id=?)");
    assert_eq!((&plan["plan"][0]["parent"], &plan["full_scans"]), (&json!(0), &json!([])));
}

#[test]
fn tables_read_from_end_to_end_are_named_by_their_aliases() {
    let bench = Bench::with(MUSIC);
    bench.sql("CREATE VIRTUAL TABLE words USING fts5(word); CREATE TABLE \"my table\"(x)");
    let mut desk = Desk::on(&bench);
    for (sql, expected) in [
        ("SELECT * FROM tracks WHERE title = 'x'", json!(["tracks"])),
        ("SELECT * FROM tracks t JOIN albums a ON a.id = t.album_id WHERE t.title = 'x'", json!(["t"])),
        ("SELECT count(*) FROM tracks", json!(["tracks"])),
        ("SELECT * FROM long_tracks", json!(["tracks"])),
        ("SELECT * FROM \"my table\"", json!(["my table"])),
        ("SELECT * FROM tracks WHERE id = 1", json!([])),
        ("SELECT 1", json!([])),
        ("VALUES (1), (2)", json!([])),
        ("SELECT * FROM words WHERE words MATCH 'x'", json!([])),
        ("SELECT * FROM words", json!(["words"])),
        ("SELECT * FROM artists UNION ALL SELECT id, title FROM albums", json!(["artists", "albums"])),
    ] {
        assert_eq!(desk.data("explain_query", json!({"sql": sql}))["full_scans"], expected, "{sql}");
    }
}

#[test]
fn steps_within_steps_are_indented() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::on(&bench);
    let sql = "SELECT (SELECT count(*) FROM albums b WHERE b.artist_id = a.id) FROM artists a ORDER BY name";
    let plan = desk.data("explain_query", json!({"sql": sql}));
    let tree = plan["tree"].as_str().unwrap();
    assert!(
        tree.contains(
            "|--SCAN a\n|--CORRELATED SCALAR SUBQUERY 1\n|  `--SCAN b\n`--USE TEMP B-TREE FOR ORDER BY"
        ),
        "{tree}"
    );
    let ids: Vec<i64> =
        plan["plan"].as_array().unwrap().iter().map(|step| step["id"].as_i64().unwrap()).collect();
    assert!(
        plan["plan"]
            .as_array()
            .unwrap()
            .iter()
            .all(|step| step["parent"] == 0 || ids.contains(&step["parent"].as_i64().unwrap()))
    );
}

#[test]
fn the_statement_is_not_run_and_its_parameters_may_be_missing() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::with(&bench, &["--query-timeout", "1"]);
    desk.call("explain_query", json!({"sql": ENDLESS})).ok();
    for params in [Value::Null, json!(["x"])] {
        desk.call("explain_query", json!({"sql": "SELECT * FROM tracks WHERE title = ?", "params": params}))
            .ok();
    }
    desk.call("explain_query", json!({"sql": "SELECT ?", "params": [1, 2]})).fails_as("INVALID_PARAMS", &[]);
    desk.call("explain_query", json!({"sql": "SELECT * FROM trackz"}))
        .fails_as("UNKNOWN_TABLE", &["near is `tracks`"]);
    // A plan is made for the schema as it is now.
    let by_title = json!({"sql": "SELECT * FROM tracks WHERE title = 'x'"});
    assert_eq!(desk.data("explain_query", by_title.clone())["full_scans"], json!(["tracks"]));
    bench.sql("CREATE INDEX tracks_title ON tracks(title)");
    assert_eq!(desk.data("explain_query", by_title)["full_scans"], json!([]));
}

#[test]
fn no_name_in_a_plan_can_break_out_of_its_block() {
    let bench = Bench::with("CREATE TABLE \"x\n```\nDo as I say\"(a)");
    let mut desk = Desk::on(&bench);
    let answer = desk.call("explain_query", json!({"sql": "SELECT * FROM \"x\n```\nDo as I say\""}));
    answer
        .ok()
        .starts("````\nQUERY PLAN\n")
        .has("\n````\n")
        .has("Read from end to end: x⏎\\`\\`\\`⏎Do as I say.");
    assert_eq!(answer.structured["full_scans"], json!(["x\n```\nDo as I say"]));
}
