//! list_tables and describe_table: the schema as data.

use crate::support::Bench;
use crate::{Desk, ENDLESS, MUSIC};
use serde_json::{Value, json};

#[test]
fn tables_and_views_are_listed_with_kind_and_column_count() {
    let bench = Bench::with(MUSIC);
    bench.sql("CREATE VIRTUAL TABLE words USING fts5(word); CREATE TABLE g(a, b AS (a + 1), c)");
    let mut desk = Desk::on(&bench);
    let answer = desk.call("list_tables", json!({}));
    let entry =
        |name: &str, kind: &str, columns: u64| json!({"name": name, "type": kind, "columns": columns});
    let expected = json!([
        entry("albums", "table", 3),
        entry("artists", "table", 2),
        entry("g", "table", 3),
        entry("long_tracks", "view", 2),
        entry("tracks", "table", 6),
        entry("words", "table", 1),
    ]);
    assert_eq!(
        (&answer.ok().structured["tables"], &answer.structured["truncated"]),
        (&expected, &Value::Null)
    );
    answer.has("| tracks | table | 6 |").has("6 tables and views");
}

#[test]
fn an_empty_database_has_no_tables() {
    let bench = Bench::with("PRAGMA user_version = 1");
    let mut desk = Desk::on(&bench);
    assert_eq!(desk.data("list_tables", json!({})), json!({"tables": [], "truncated": null}));
    desk.call("describe_table", json!({"table": "t"})).fails_as("UNKNOWN_TABLE", &["there are none"]);
}

#[test]
fn a_long_list_is_cut_and_says_so() {
    let bench = Bench::empty();
    let tables: String = (0..300).map(|n| format!("CREATE TABLE table_number_{n}(x);")).collect();
    bench.sql(&tables);
    let mut desk = Desk::with(&bench, &["--max-result-bytes", "4000"]);
    let answer = desk.call("list_tables", json!({}));
    answer.ok().ends("; cut at 4000 bytes");
    assert_eq!(answer.structured["truncated"], "max_output_bytes");
    assert!(answer.text.len() < 4100 && answer.structured["tables"].as_array().unwrap().len() > 20);
}

#[test]
fn a_table_is_described_whatever_the_case_of_its_name() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::on(&bench);
    for name in ["tracks", "TRACKS", "Tracks"] {
        let answer = desk.call("describe_table", json!({"table": name}));
        let table = &answer.ok().structured;
        assert_eq!(
            (&table["name"], &table["type"], &table["row_count"]),
            (&json!("tracks"), &json!("table"), &json!(60))
        );
        assert_eq!(table["columns"].as_array().unwrap().len(), 6);
        let id = json!({"name": "id", "type": "INTEGER", "nullable": false, "default": null, "primary_key": true, "generated": false});
        assert_eq!(table["columns"][0], id);
        let key = json!({"from": ["album_id"], "table": "albums", "to": ["id"], "on_update": "NO ACTION", "on_delete": "NO ACTION"});
        assert_eq!(table["foreign_keys"], json!([key]));
        let index =
            json!({"name": "tracks_album", "unique": false, "partial": false, "columns": ["album_id"]});
        assert_eq!(table["indexes"], json!([index]));
        assert!(table["sql"].as_str().unwrap().starts_with("CREATE TABLE tracks("));
        answer.has("| album_id | INTEGER |").has("60 rows").has("```sql\nCREATE TABLE tracks(");
    }
    let view = desk.data("describe_table", json!({"table": "long_tracks"}));
    assert_eq!((&view["type"], &view["row_count"]), (&json!("view"), &Value::Null));
    assert!(view["sql"].as_str().unwrap().starts_with("CREATE VIEW"));
}

#[test]
fn keys_indexes_defaults_and_generated_columns_are_told_apart() {
    let bench = Bench::with(
        "CREATE TABLE parent(a INT, b TEXT, PRIMARY KEY (a, b));
        CREATE TABLE child(
            id INTEGER PRIMARY KEY, x INT NOT NULL DEFAULT (1 + 1), y TEXT DEFAULT 'it''s | `so`',
            low TEXT AS (lower(y)) VIRTUAL, len INT AS (length(y)) STORED,
            FOREIGN KEY (x, y) REFERENCES parent(a, b) ON DELETE CASCADE ON UPDATE SET NULL,
            FOREIGN KEY (x, y) REFERENCES parent, UNIQUE (y));
        CREATE UNIQUE INDEX child_part ON child(x) WHERE x > 0;
        CREATE INDEX child_expr ON child(lower(y), x);
        CREATE TABLE plain(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
        CREATE TABLE other(k INTEGER PRIMARY KEY DESC, v); CREATE TABLE text_key(k TEXT PRIMARY KEY, v);
        CREATE VIRTUAL TABLE words USING fts5(word);",
    );
    let mut desk = Desk::on(&bench);
    let child = desk.data("describe_table", json!({"table": "child"}));
    let columns: Vec<_> = child["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["name"].as_str().unwrap(), c["nullable"] == true, &c["default"], c["generated"] == true))
        .collect();
    let (sum, text, none) = (json!("1 + 1"), json!("'it''s | `so`'"), Value::Null);
    assert_eq!(
        columns,
        [
            ("id", false, &none, false),
            ("x", false, &sum, false),
            ("y", true, &text, false),
            ("low", true, &none, true),
            ("len", true, &none, true)
        ]
    );
    // Only a key that is the rowid, or of a table without one, is never NULL.
    for (table, nullable) in [("plain", false), ("other", true), ("text_key", true)] {
        let described = desk.data("describe_table", json!({"table": table}));
        assert_eq!(described["columns"][0]["nullable"], nullable, "{table}");
    }
    let key = |to: Value, update: &str, delete: &str| json!({"from": ["x", "y"], "table": "parent", "to": to, "on_update": update, "on_delete": delete});
    let expected =
        json!([key(json!([]), "NO ACTION", "NO ACTION"), key(json!(["a", "b"]), "SET NULL", "CASCADE")]);
    assert_eq!(child["foreign_keys"], expected);
    let indexes = child["indexes"].as_array().unwrap();
    let named = |name: &str| indexes.iter().find(|index| index["name"] == name).unwrap();
    assert_eq!(
        named("child_part"),
        &json!({"name": "child_part", "unique": true, "partial": true, "columns": ["x"]})
    );
    assert_eq!(
        named("child_expr"),
        &json!({"name": "child_expr", "unique": false, "partial": false, "columns": ["<expr>", "x"]})
    );
    assert_eq!(indexes.len(), 3);
    let parent = desk.data("describe_table", json!({"table": "parent"}));
    assert!(parent["columns"].as_array().unwrap().iter().all(|column| column["primary_key"] == true));
    let words = desk.data("describe_table", json!({"table": "words"}));
    assert_eq!(words["columns"].as_array().unwrap().len(), 1, "hidden columns stay hidden: {words}");
    assert_eq!(desk.data("describe_table", json!({"table": "plain"}))["row_count"], 0);
}

#[test]
fn a_miss_lists_near_names_and_then_known_ones() {
    let bench = Bench::with(MUSIC);
    let mut desk = Desk::on(&bench);
    for tool in ["describe_table", "sample_rows"] {
        desk.call(tool, json!({"table": "track"}))
            .fails_as("UNKNOWN_TABLE", &["near is `tracks`", "`artists`"]);
        desk.call(tool, json!({"table": "zzz"}))
            .fails_as("UNKNOWN_TABLE", &["there are", "`albums`", "`tracks`"]);
        for name in ["tracks; DROP TABLE tracks", "main.tracks", "\"tracks\"", "", "x\ny"] {
            desk.call(tool, json!({"table": name})).fails(&[]);
        }
    }
    desk.query("SELECT * FROM trackz")
        .fails_as("UNKNOWN_TABLE", &["no such table: trackz", "near is `tracks`"]);
    desk.query("SELECT titel FROM tracks").fails_as("UNKNOWN_COLUMN", &["titel", "describe_table"]);
    desk.is_alive();
}

#[test]
fn a_count_that_takes_too_long_is_null() {
    let bench = Bench::with(
        "CREATE TABLE big(x); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 3000000) INSERT INTO big SELECT x FROM c",
    );
    let mut desk = Desk::with(&bench, &["--timeout-ms", "20"]);
    let table = desk.data("describe_table", json!({"table": "big"}));
    assert_eq!(table["row_count"], Value::Null);
    assert_eq!(table["columns"].as_array().unwrap().len(), 1);
}

#[test]
fn awkward_names_are_found_and_quoted() {
    let bench = Bench::with(
        "CREATE TABLE \"a b\"\"c\"(\"x|y\", \"line
break\", \"`t`\"); INSERT INTO \"a b\"\"c\" VALUES (1, 2, 3); CREATE TABLE \"žluť\"(\"ß\")",
    );
    let mut desk = Desk::on(&bench);
    let table = desk.data("describe_table", json!({"table": "A B\"C"}));
    assert_eq!(table["columns"][1]["name"], "line\nbreak");
    let answer =
        desk.call("sample_rows", json!({"table": "a b\"c", "columns": ["X|Y", "LINE\nBREAK", "`T`"]}));
    assert_eq!(answer.ok().structured["columns"], json!(["x|y", "line\nbreak", "`t`"]));
    answer.starts("| x\\|y | line⏎break | \\`t\\` |\n| --- | --- | --- |\n| 1 | 2 | 3 |\n");
    desk.call("describe_table", json!({"table": "žluť"})).ok();
}

#[test]
fn a_view_is_neither_counted_nor_run_when_it_is_described() {
    let bench = Bench::with(&format!("CREATE VIEW endless AS {ENDLESS}"));
    let mut desk = Desk::with(&bench, &["--query-timeout", "1"]);
    let view = desk.data("describe_table", json!({"table": "endless"}));
    assert_eq!(view["row_count"], Value::Null);
    desk.call("sample_rows", json!({"table": "endless"})).fails_as("TIMEOUT", &[]);
    // A view whose table is gone.
    bench.sql("CREATE TABLE t(a); CREATE VIEW broken AS SELECT a FROM t; PRAGMA legacy_alter_table = ON; DROP TABLE t");
    let listed = desk.data("list_tables", json!({}));
    assert_eq!(listed["tables"].as_array().unwrap().len(), 2, "{listed}");
}
