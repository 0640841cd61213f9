//! search_text: patterns over the rows of a table or view.

use crate::support::{Bench, Server};
use serde_json::{Value, json};

#[track_caller]
fn bench(sql: &str) -> (Bench, crate::support::Client) {
    let bench = Bench::notes();
    bench.sql(sql);
    let client = Server::on(&bench).start();
    (bench, client)
}

#[test]
fn matches_are_shown_with_key_column_and_snippet() {
    let (_bench, mut client) = bench("");
    for (arguments, text) in [
        (
            json!({"pattern": "apple", "table": "notes"}),
            "key,column,snippet\n1,body,an apple a day\n# 1 of 1 matching values in 1 rows (3 candidate rows x 2 columns scanned)",
        ),
        (
            json!({"pattern": "A.{2}LE", "table": "notes", "ignore_case": true}),
            "key,column,snippet\n1,body,an apple a day\n# 1 of 1 matching values in 1 rows (3 candidate rows x 2 columns scanned)",
        ),
        (
            json!({"pattern": "a.p", "table": "notes", "fixed_strings": true}),
            "key,column,snippet\n# 0 of 0 matching values in 0 rows (3 candidate rows x 2 columns scanned)",
        ),
        (
            json!({"pattern": "a", "table": "notes", "columns": ["title"], "where": "id >= 2"}),
            "key,column,snippet\n2,title,beta\n3,title,gamma\n# 2 of 2 matching values in 2 rows (2 candidate rows x 1 columns scanned)",
        ),
        (
            json!({"pattern": "beta", "table": "notes", "key_column": "title"}),
            "key,column,snippet\nbeta,title,beta\n# 1 of 1 matching values in 1 rows (3 candidate rows x 2 columns scanned)",
        ),
        (
            json!({"pattern": "a", "table": "notes", "limit": 1}),
            "key,column,snippet\n1,title,alpha\n# 1 of 5 matching values in 3 rows (3 candidate rows x 2 columns scanned); more matches exist (limit 1, maximum 1000)",
        ),
        (
            json!({"pattern": "^2$", "table": "notes", "columns": ["id"]}),
            "key,column,snippet\n2,id,2\n# 1 of 1 matching values in 1 rows (3 candidate rows x 1 columns scanned)",
        ),
        (
            json!({"pattern": "a", "table": "NOTES", "columns": ["Title"], "where": "title LIKE 'g%' -- c"}),
            "key,column,snippet\n3,title,gamma\n# 1 of 1 matching values in 1 rows (1 candidate rows x 1 columns scanned)",
        ),
    ] {
        client.call("search_text", arguments).is(text);
    }
}

#[test]
fn every_kind_of_table_has_a_key() {
    let (_bench, mut client) = bench(
        "CREATE TABLE w(a TEXT, b INTEGER, body TEXT, PRIMARY KEY (b, a)) WITHOUT ROWID; INSERT INTO w VALUES ('x|y', 2, 'needle');
         CREATE TABLE shadowed(rowid TEXT, body TEXT); INSERT INTO shadowed VALUES ('not the rowid', 'needle');
         CREATE TABLE hidden(rowid, _rowid_, oid, body TEXT); INSERT INTO hidden VALUES (1, 2, 3, 'needle');
         CREATE VIEW v AS SELECT id AS k, 'needle ' || title AS body FROM notes;
         CREATE VIRTUAL TABLE f USING fts5(body); INSERT INTO f(rowid, body) VALUES (7, 'a needle');
         CREATE TABLE g(a TEXT, b TEXT AS ('needle in ' || a)); INSERT INTO g(a) VALUES ('hay')",
    );
    let search = |table: &str, more: Value| {
        let mut arguments = json!({"pattern": "needle", "table": table});
        for (name, value) in more.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        arguments
    };
    client.call("search_text", search("w", json!({}))).ok().has("\n2|x|y,body,needle\n");
    client.call("search_text", search("shadowed", json!({}))).ok().has("\n1,body,needle\n");
    client.call("search_text", search("hidden", json!({}))).fails(&["`key_column`"]);
    client.call("search_text", search("hidden", json!({"key_column": "oid"}))).ok().has("\n3,body,needle\n");
    client.call("search_text", search("v", json!({}))).fails(&["view", "`key_column`"]);
    client.call("search_text", search("v", json!({"key_column": "k"}))).ok().has("\n3,body,needle gamma\n");
    client.call("search_text", search("f", json!({}))).ok().has("\n7,body,a needle\n");
    client.call("search_text", search("g", json!({}))).ok().has("\n1,b,needle in hay\n");
    client
        .call("search_text", json!({"pattern": "get_resume", "table": "query_log", "columns": ["tool"]}))
        .ok()
        .has("# 0 of 0");
}

#[test]
fn newlines_unicode_and_context_are_shown_on_one_line() {
    let (bench, mut client) = bench("CREATE TABLE d(id INTEGER PRIMARY KEY, body TEXT)");
    bench
        .open()
        .execute(
            "INSERT INTO d VALUES (1, ?1), (2, ?2)",
            [
                "first line\nsecond line with \\nabla",
                "příliš žluťoučký kůň úpěl ďábelské ódy příliš žluťoučký kůň úpěl",
            ],
        )
        .unwrap();
    client
        .call("search_text", json!({"pattern": "second", "table": "d"}))
        .ok()
        .has("1,body,first line⏎second line with \\nabla\n");
    client
        .call("search_text", json!({"pattern": "\\nabla", "table": "d", "fixed_strings": true}))
        .ok()
        .has("# 1 of 1");
    client.call("search_text", json!({"pattern": "(?s)first.+second", "table": "d"})).ok().has("# 1 of 1");
    client.call("search_text", json!({"pattern": "first.+second", "table": "d"})).ok().has("# 0 of 0");
    client
        .call("search_text", json!({"pattern": "kůň", "table": "d", "context_chars": 10}))
        .ok()
        .has("2,body,...žluťoučký kůň úpěl ďábe...\n");
}

#[test]
fn a_search_that_cannot_be_made_says_why_and_changes_nothing() {
    let (bench, mut client) = bench("");
    client.is_alive();
    let before = bench.content();
    for (arguments, code, words) in [
        (json!({"pattern": "", "table": "notes"}), "INVALID_ARGUMENTS", "`pattern`"),
        (json!({"pattern": "a(", "table": "notes"}), "INVALID_ARGUMENTS", "unclosed group"),
        (json!({"pattern": "a(?=b)", "table": "notes"}), "INVALID_ARGUMENTS", "look-around"),
        (json!({"pattern": "(a)\\1", "table": "notes"}), "INVALID_ARGUMENTS", "back-references"),
        (json!({"pattern": "\\w{5000}", "table": "notes"}), "INVALID_ARGUMENTS", "too large"),
        (json!({"pattern": "((a{1000}){1000}){1000}", "table": "notes"}), "INVALID_ARGUMENTS", "too large"),
        (json!({"pattern": "(".repeat(100_000), "table": "notes"}), "INVALID_ARGUMENTS", "`pattern`"),
        (json!({"pattern": "a", "table": "nope"}), "UNKNOWN_TABLE", "`nope`"),
        (json!({"pattern": "a", "table": "notes", "columns": ["zzz"]}), "UNKNOWN_COLUMN", "`zzz`"),
        (json!({"pattern": "a", "table": "notes", "key_column": "zzz"}), "UNKNOWN_COLUMN", "`zzz`"),
        (json!({"pattern": "a", "table": "notes", "where": ""}), "INVALID_ARGUMENTS", "`where`"),
        (
            json!({"pattern": "a", "table": "notes", "where": "1=1) UNION SELECT 1,2,3 --"}),
            "SYNTAX_ERROR",
            "`where`",
        ),
        (
            json!({"pattern": "a", "table": "notes", "where": "1) FROM notes; DROP TABLE notes; --"}),
            "",
            "one",
        ),
        (json!({"pattern": "a", "table": "notes", "where": "id = 1; DROP TABLE notes"}), "", "`where`"),
        (json!({"pattern": "a", "table": "notes", "where": "id = ?"}), "INVALID_ARGUMENTS", "parameters"),
        (
            json!({"pattern": "a", "table": "notes", "where": "load_extension('x')"}),
            "REFUSED",
            "load_extension",
        ),
        (json!({"pattern": "a", "table": "notes", "where": "nope = 1"}), "UNKNOWN_COLUMN", "nope"),
        (json!({"pattern": "a", "table": "notes", "limit": 1001}), "INVALID_ARGUMENTS", "`limit`"),
        (
            json!({"pattern": "a", "table": "notes", "context_chars": -1}),
            "INVALID_ARGUMENTS",
            "`context_chars`",
        ),
    ] {
        let answer = client.call("search_text", arguments);
        answer.fails(&[words]);
        assert!(code.is_empty() || answer.code == code, "{answer:?}");
    }
    assert_eq!(bench.content(), before);
    client.is_alive();
}

#[test]
fn candidates_are_capped_only_where_asked_and_then_it_is_said() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--search-candidates", "2"]).start();
    client
        .call("search_text", json!({"pattern": "gamma", "table": "notes"}))
        .ok()
        .ends("stopped after 2 candidate rows (--search-candidates), narrow them with `where`");
    client
        .call("search_text", json!({"pattern": "gamma", "table": "notes", "where": "id = 3"}))
        .ok()
        .has("3,title,gamma")
        .ends("scanned)");
}

#[test]
fn a_search_obeys_the_deadline() {
    let bench = Bench::with(
        "CREATE VIEW endless AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS k, 'text ' || x AS t FROM c",
    );
    let mut client = Server::on(&bench).flags(&["--query-timeout", "0.3"]).start();
    client
        .call("search_text", json!({"pattern": "zzz", "table": "endless", "key_column": "k"}))
        .fails_as("TIMEOUT", &["0.3 s"]);
    client.is_alive();
}

#[test]
fn a_large_table_is_searched_by_two_threads_with_the_same_result() {
    let bench = Bench::with(
        "CREATE TABLE lines(id INTEGER PRIMARY KEY, a TEXT, b);
         INSERT INTO lines WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 25000)
         SELECT n * 3, 'line ' || n, CASE n % 3 WHEN 0 THEN n WHEN 1 THEN NULL ELSE 'other ' || n END FROM c",
    );
    let mut client = Server::on(&bench).flags(&["--search-candidates", "0"]).start();
    for (pattern, limit) in
        [("line 24", 1000), ("1$", 50), ("^(line|other) 1?2345$", 10), ("nowhere", 10), ("9", 3)]
    {
        let mut arguments =
            json!({"pattern": pattern, "table": "lines", "columns": ["a", "b"], "limit": limit});
        let two = client.call("search_text", arguments.clone());
        // A condition leaves it to one thread.
        arguments["where"] = json!("1");
        let one = client.call("search_text", arguments);
        assert_eq!(two.ok().text, one.ok().text, "{pattern}");
        two.has("(25000 candidate rows x 2 columns scanned)");
    }
    client
        .call("search_text", json!({"pattern": "^line 2499[89]$", "table": "lines", "columns": ["a"]}))
        .is("key,column,snippet\n74994,a,line 24998\n74997,a,line 24999\n# 2 of 2 matching values in 2 rows (25000 candidate rows x 1 columns scanned)");
}
