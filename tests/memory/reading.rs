//! read_query: rows as CSV, their trailer, parameters, and nothing that writes.

use crate::support::{Bench, Server};
use serde_json::json;

/// Rows 1 to N in a column x.
fn numbers(count: u32) -> String {
    format!("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT {count})")
}

#[test]
fn rows_come_as_csv_with_a_trailer() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    for (sql, text) in [
        ("SELECT id, title FROM notes ORDER BY id", "id,title\n1,alpha\n2,beta\n3,gamma\n# 3 rows"),
        (
            "SELECT body, score FROM notes WHERE id = 2",
            "body,score\n\"with \"\"quotes\"\" and, commas\",2.0\n# 1 rows",
        ),
        ("SELECT id FROM notes WHERE id > 99", "id\n# 0 rows"),
        ("VALUES (1, 'x'), (2, 'y')", "column1,column2\n1,x\n2,y\n# 2 rows"),
        ("WITH x AS (SELECT 1 AS a) SELECT a FROM x", "a\n1\n# 1 rows"),
        ("/* c */ -- c\nSELECT 1 AS one", "one\n1\n# 1 rows"),
        ("SELECT 1 AS a;", "a\n1\n# 1 rows"),
        ("SELECT 1 AS a; -- done", "a\n1\n# 1 rows"),
        ("SELECT 1 AS a;;; /* done */ ;", "a\n1\n# 1 rows"),
        ("SELECT NULL AS a, '' AS b UNION ALL SELECT '', NULL", "a,b\n,\"\"\n\"\",\n# 2 rows"),
        ("SELECT '# 9 rows' AS \"#a\"", "\"#a\"\n\"# 9 rows\"\n# 1 rows"),
        ("SELECT 'a' AS x, '# 9 rows' AS y", "x,y\na,# 9 rows\n# 1 rows"),
        ("SELECT count(*) AS n FROM memory_events", "n\n0\n# 1 rows"),
        ("SELECT 1 AS \"two\nlines\", 2 AS \"a,b\"", "\"two\nlines\",\"a,b\"\n1,2\n# 1 rows"),
    ] {
        client.read(sql).is(text);
    }
}

#[test]
fn every_storage_class_is_shown_exactly() {
    let bench = Bench::empty();
    let mut client = Server::on(&bench).start();
    for (sql, text) in [
        (
            "SELECT 9223372036854775807 AS big, -9223372036854775808 AS small",
            "big,small\n9223372036854775807,-9223372036854775808\n",
        ),
        (
            "SELECT 0.1 AS f, 2.0 AS whole, -0.0 AS zero, 1e15 AS big",
            "f,whole,zero,big\n0.1,2.0,-0.0,1000000000000000.0\n",
        ),
        ("SELECT 9e999 AS up, -9e999 AS down", "up,down\nInf,-Inf\n"),
        ("SELECT x'00ff10' AS b, x'' AS e", "b,e\n<blob 3 bytes>,<blob 0 bytes>\n"),
        ("SELECT 'žluťoučký 🐎' AS s", "s\nžluťoučký 🐎\n"),
        ("SELECT 'two' || char(10) || 'lines' AS s, char(13) AS cr", "s,cr\n\"two\nlines\",\"\r\"\n"),
        ("SELECT CAST(x'61ff62' AS TEXT) AS bad", "bad\na\u{fffd}b\n"),
        ("SELECT 'a' || char(0) || 'b' AS nul", "nul\na\u{0}b\n"),
        ("SELECT '007' AS t, '1e5' AS u, 'NULL' AS v", "t,u,v\n007,1e5,NULL\n"),
        ("SELECT typeof(1=1) AS t, 1=1 AS b", "t,b\ninteger,1\n"),
    ] {
        client.read(sql).is(&format!("{text}# 1 rows"));
    }
    let row = client.read("SELECT 1e300 AS huge, 5e-324 AS tiny").text;
    let cells: Vec<f64> = row.lines().nth(1).unwrap().split(',').map(|cell| cell.parse().unwrap()).collect();
    assert_eq!(cells, [1e300, 5e-324], "{row}");
}

#[test]
fn the_trailer_says_what_the_limit_cut_and_how_to_get_more() {
    let bench = Bench::empty();
    let mut client = Server::on(&bench).start();
    let mut read = |count: u32, limit: u32| {
        let sql = format!("{} SELECT x FROM c", numbers(count));
        client.call("read_query", json!({"query": sql, "limit": limit}))
    };
    read(3, 2).is("x\n1\n2\n# 2 rows; more rows exist (limit 2, maximum 1000)");
    read(3, 3).is("x\n1\n2\n3\n# 3 rows");
    read(1001, 1000).ends("# 1000 rows; more rows exist (limit 1000, maximum 1000)");
    let sql = format!("{} SELECT x FROM c", numbers(200));
    client.read(&sql).ends("\n100\n# 100 rows; more rows exist (limit 100, maximum 1000)");
}

#[test]
fn the_byte_cap_is_hard_and_named() {
    let bench = Bench::empty();
    let mut client = Server::on(&bench).flags(&["--max-result-bytes", "2000"]).start();
    let rows = format!("{} SELECT x, 'abcdefghijklmnopqrstuvwxyz' AS s FROM c", numbers(500));
    let wide_header = format!(
        "SELECT {}",
        (0..300).map(|n| format!("{n} AS \"a column with number {n}\"")).collect::<Vec<_>>().join(",")
    );
    let wide_row = format!(
        "SELECT {}",
        (0..300).map(|n| format!("'value number {n}' AS c{n}")).collect::<Vec<_>>().join(",")
    );
    let wide_name = format!("SELECT 1 AS \"{}\"", "ž".repeat(3000));
    for sql in
        [rows, wide_header, wide_row, wide_name, "SELECT printf('%.*c', 1900, 'é') AS s, 1 AS b".to_owned()]
    {
        let answer = client.call("read_query", json!({"query": sql, "limit": 500}));
        answer.ok().has("2000 bytes");
        assert!(answer.text.len() <= 2500, "{} bytes: {sql}", answer.text.len());
        assert!(answer.text.len() >= 1000, "{} bytes show too little: {}", answer.text.len(), answer.text);
        assert!(answer.text.lines().last().unwrap().starts_with("# "), "{}", answer.text);
    }
}

#[test]
fn the_byte_cap_holds_for_every_tool_that_lists() {
    let mut sql: String = (0..200).map(|n| format!("CREATE TABLE some_table_{n:03}(a, b, c);")).collect();
    let columns = (0..300).map(|n| format!("column_with_number_{n}")).collect::<Vec<_>>().join(",");
    sql.push_str(&format!("CREATE TABLE wide({columns}); CREATE TABLE t(a TEXT);"));
    let bench = Bench::with(&sql);
    let mut client = Server::on(&bench).flags(&["--max-result-bytes", "1000"]).start();
    let many = "INSERT INTO t SELECT 'a text that is found ' || value FROM json_each('[1,2,3,4,5,6,7,8,9,0]'), (SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5) RETURNING a";
    for (tool, arguments) in [
        ("list_tables", json!({})),
        ("describe_table", json!({"table": "wide"})),
        ("get_schema", json!({})),
        ("write_query", json!({"query": many})),
        ("search_text", json!({"pattern": "found", "table": "t"})),
        ("checkpoint", json!({"summary": "a long summary ".repeat(500)})),
        ("get_resume_context", json!({})),
    ] {
        let answer = client.call(tool, arguments);
        answer.ok();
        if tool != "checkpoint" {
            assert!(answer.text.len() <= 1500, "{tool}: {} bytes", answer.text.len());
            answer.has("1000 bytes");
        }
    }
}

#[test]
fn a_long_cell_is_cut_between_characters_and_counted() {
    let bench = Bench::empty();
    let mut client = Server::on(&bench).flags(&["--max-cell-chars", "40"]).start();
    let cut = "é".repeat(40);
    client
        .read("SELECT printf('%.*c', 100, 'é') AS s")
        .is(&format!("s\n{cut}...[+60 chars]\n# 1 rows; 1 cells cut to 40 chars"));
    client.read("SELECT printf('%.*c', 40, 'é') AS s").is(&format!("s\n{cut}\n# 1 rows"));
    let sql = format!("{} SELECT printf('%.*c', 41, 'x') AS s FROM c", numbers(5));
    client
        .call("read_query", json!({"query": sql, "limit": 2}))
        .ends("# 2 rows; more rows exist (limit 2, maximum 1000); 2 cells cut to 40 chars");
}

#[test]
fn inspecting_statements_are_reads() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    for (sql, has) in [
        ("EXPLAIN QUERY PLAN SELECT * FROM notes WHERE id = 1", "notes"),
        ("EXPLAIN SELECT * FROM notes", "OpenRead"),
        ("EXPLAIN DELETE FROM notes", "opcode"),
        ("PRAGMA table_info(notes)", "title"),
        ("PRAGMA table_info = notes", "title"),
        ("PRAGMA main.table_xinfo('notes')", "title"),
        ("pragma \"foreign_key_list\"(tags)", "notes"),
        ("PRAGMA index_list(tags)", "tags_note"),
        ("PRAGMA integrity_check", "ok"),
        ("PRAGMA quick_check(5)", "ok"),
        ("PRAGMA foreign_key_check", "# 0 rows"),
        ("PRAGMA journal_mode", "delete"),
        ("PRAGMA user_version", "user_version\n0\n"),
        ("PRAGMA page_count", "page_count"),
        ("PRAGMA foreign_keys", "foreign_keys\n1\n"),
        ("PRAGMA query_only", "query_only\n1\n"),
        ("SELECT name FROM pragma_table_info('notes')", "title"),
        ("SELECT * FROM pragma_user_version", "user_version\n0\n"),
        ("SELECT m.name, i.name FROM sqlite_schema m, pragma_index_list(m.name) i", "tags_note"),
    ] {
        client.read(sql).ok().has(has);
    }
    client.read("SELECT count(*) AS n FROM notes").is("n\n3\n# 1 rows");
}

#[test]
fn parameters_bind_by_position_and_by_name() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    for (sql, params, text) in [
        (
            "SELECT title FROM notes WHERE id = ? OR title = ?",
            json!([1, "beta"]),
            "title\nalpha\nbeta\n# 2 rows",
        ),
        ("SELECT title FROM notes WHERE id = :id", json!({"id": 3}), "title\ngamma\n# 1 rows"),
        ("SELECT title FROM notes WHERE id = :id", json!({":id": 3}), "title\ngamma\n# 1 rows"),
        ("SELECT @a AS a, $b AS b, :a AS c", json!({"@a": 1, "$b": 2, ":a": 3}), "a,b,c\n1,2,3\n# 1 rows"),
        ("SELECT ?2 AS a, ?1 AS b, ?2 AS c", json!([1, "x"]), "a,b,c\nx,1,x\n# 1 rows"),
        ("SELECT ? AS t, ? AS f, typeof(?) AS k", json!([true, false, true]), "t,f,k\n1,0,integer\n# 1 rows"),
        ("SELECT ? AS n, ? AS e, typeof(?) AS r", json!([null, "", 1.0]), "n,e,r\n,\"\",real\n# 1 rows"),
        ("SELECT ? AS i", json!([i64::MAX]), "i\n9223372036854775807\n# 1 rows"),
        ("SELECT value AS v FROM json_each(?)", json!(["[1,2]"]), "v\n1\n2\n# 2 rows"),
        ("SELECT 1 AS a", json!([]), "a\n1\n# 1 rows"),
        ("SELECT 1 AS a", json!({}), "a\n1\n# 1 rows"),
        ("SELECT ? AS q", json!(["'; DROP TABLE notes; --"]), "q\n'; DROP TABLE notes; --\n# 1 rows"),
    ] {
        client.call("read_query", json!({"query": sql, "params": params})).is(text);
    }
}

#[test]
fn parameters_that_do_not_fit_are_named() {
    let bench = Bench::empty();
    let mut client = Server::on(&bench).start();
    for (sql, params, words) in [
        ("SELECT ?", json!([1, 2]), &["1 parameters", "2 values"] as &[&str]),
        ("SELECT ?, ?", json!([1]), &["2 parameters", "1 values"]),
        ("SELECT :a, :b", json!({"a": 1}), &["`:b`", "missing"]),
        ("SELECT :a, :b, :c", json!({"b": 1}), &["parameters `:a` and `:c` are missing"]),
        ("SELECT :a", json!({"a": 1, "c": 2}), &["`c`", ":a"]),
        ("SELECT :a", json!({"b": 1, "c": 2}), &["`:a` is missing", "`b` and `c`, which are not parameters"]),
        ("SELECT ?", json!({"a": 1}), &["array"]),
        ("SELECT ?", json!([[1]]), &["parameter `1`", "JSON text"]),
        ("SELECT :a", json!({"a": {"b": 1}}), &["parameter `a`", "JSON text"]),
        ("SELECT ?", json!([18446744073709551615_u64]), &["parameter `1`", "64 bits"]),
    ] {
        client.call("read_query", json!({"query": sql, "params": params})).fails_as("INVALID_PARAMS", words);
    }
    client.read("SELECT ? AS unbound").fails_as("INVALID_PARAMS", &["`params` is missing; give an array"]);
    client.is_alive();
}

#[test]
fn everything_that_writes_is_sent_to_its_tool() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client.is_alive();
    let before = bench.content();
    for (sql, words) in [
        (
            "INSERT INTO notes(title) VALUES ('x')",
            &["INSERT is not allowed in read_query", "write_query"] as &[&str],
        ),
        ("INSERT INTO notes(title) VALUES ('x') RETURNING id", &["write_query"]),
        ("WITH d AS (SELECT 1) INSERT INTO notes(title) SELECT 'x' FROM d", &["write_query"]),
        ("UPDATE notes SET title = 'x'", &["write_query"]),
        ("REPLACE INTO notes(id, title) VALUES (1, 'x')", &["write_query"]),
        ("DELETE FROM notes", &["DELETE is not allowed in read_query", "destructive_query"]),
        ("WITH d AS (SELECT 1) DELETE FROM notes", &["destructive_query"]),
        ("DROP TABLE notes", &["DROP TABLE is not allowed in read_query", "destructive_query"]),
        ("DROP INDEX tags_note", &["destructive_query"]),
        ("ALTER TABLE notes RENAME TO n", &["destructive_query"]),
        ("CREATE TABLE t(a)", &["write_query"]),
        ("CREATE INDEX i ON notes(title)", &["write_query"]),
        ("CREATE VIRTUAL TABLE f USING fts5(a)", &["write_query"]),
        ("CREATE VIEW v AS SELECT 1", &["create_view"]),
        ("CREATE TRIGGER tr AFTER INSERT ON notes BEGIN SELECT 1; END", &["destructive_query"]),
        ("ANALYZE", &["write_query"]),
        ("REINDEX", &["write_query"]),
        ("BEGIN", &["transaction"]),
        ("COMMIT", &["transaction"]),
        ("ROLLBACK", &["transaction"]),
        ("SAVEPOINT s", &["SAVEPOINT"]),
    ] {
        client.read(sql).fails(words);
    }
    // A pragma that looks has a tool, too; one that no tool runs is not sent from one to the next.
    client.write("PRAGMA journal_mode").fails_as("REFUSED", &["not allowed in write_query; use read_query"]);
    client.write("PRAGMA optimize").fails_as("REFUSED", &["table_info(t)"]).lacks("read_query");
    client
        .read("PRAGMA optimize")
        .fails_as("REFUSED", &["PRAGMA optimize is not allowed in read_query", "table_info(t)"]);
    assert_eq!(bench.content(), before);
}

#[test]
fn a_runaway_query_is_stopped_on_time_and_the_next_one_runs() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--query-timeout", "0.5"]).start();
    for sql in [
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c WHERE x < 0",
    ] {
        let started = std::time::Instant::now();
        client.read(sql).fails_as("TIMEOUT", &["0.5 s", "nothing was changed"]);
        assert!(started.elapsed().as_secs_f64() < 5.0, "{:?}", started.elapsed());
        client.is_alive();
    }
    let update = "UPDATE notes SET title = (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c)";
    client.write(update).fails_as("TIMEOUT", &["0.5 s", "nothing was changed"]);
    client.read("SELECT title FROM notes ORDER BY id").is("title\nalpha\nbeta\ngamma\n# 3 rows");
}

#[test]
fn memory_bombs_end_as_tool_errors() {
    let bench = Bench::empty();
    let mut client = Server::on(&bench).start();
    for sql in [
        "SELECT length(randomblob(900000000))",
        "SELECT length(hex(zeroblob(400000000)))",
        "WITH RECURSIVE c(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM c) SELECT max(length(s)) FROM c",
        "SELECT length(printf('%.*c', 800000000, 'x'))",
        "SELECT length(group_concat(x, printf('%.*c', 1000000, 'x'))) FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 1000) SELECT x FROM c)",
    ] {
        client.read(sql).fails_as("TOO_BIG", &["work on a part of it"]);
        client.is_alive();
    }
}

#[test]
fn a_column_that_another_program_added_is_in_the_first_answer_after_it() {
    let bench = Bench::with("CREATE TABLE t(a); INSERT INTO t VALUES (1)");
    let mut client = Server::on(&bench).start();
    client.read("SELECT * FROM t").is("a\n1\n# 1 rows");
    bench.sql("ALTER TABLE t ADD COLUMN b DEFAULT 2");
    // Not the statement from before: that one would be compiled anew in any case.
    client.read("SELECT * FROM t WHERE a = 1").is("a,b\n1,2\n# 1 rows");
    bench.sql("ALTER TABLE t RENAME COLUMN b TO c");
    client.read("SELECT * FROM t").is("a,c\n1,2\n# 1 rows");
    bench.sql("ALTER TABLE t DROP COLUMN c");
    client.read("SELECT * FROM t WHERE a = 1").is("a\n1\n# 1 rows");
    client.read("SELECT * FROM t WHERE a = 2").is("a\n# 0 rows");
}
