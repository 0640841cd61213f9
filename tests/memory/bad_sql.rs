//! SQL that no tool takes: each a clear error, nothing changed, the server alive.

use crate::support::{Answer, Bench, Client, Server};
use serde_json::json;

/// The statement by every tool that takes SQL.
fn by_every_tool(client: &mut Client, sql: &str) -> Vec<Answer> {
    vec![
        client.read(sql),
        client.write(sql),
        client.destroy(sql),
        client.call("create_view", json!({"name": "made", "select_sql": sql})),
    ]
}

/// Every tool refuses each statement with these words, and the file stays as it is.
#[track_caller]
fn refused_everywhere(bench: &Bench, rows: &[(&str, &[&str])]) {
    let mut client = Server::on(bench).start();
    client.is_alive();
    let before = bench.content();
    let files = names(bench);
    for (sql, words) in rows {
        for answer in by_every_tool(&mut client, sql) {
            answer.fails(words);
        }
        assert_eq!(bench.content(), before, "{sql}");
    }
    assert_eq!(names(bench), files);
    client.is_alive();
}

fn names(bench: &Bench) -> Vec<String> {
    // The rollback journal comes and goes with the log's rows.
    bench.files().into_iter().map(|(name, _)| name).filter(|name| !name.ends_with("-journal")).collect()
}

#[test]
fn more_than_one_statement_is_refused_however_it_is_hidden() {
    let one: &[&str] = &["one statement"];
    refused_everywhere(
        &Bench::notes(),
        &[
            ("SELECT 1; DROP TABLE notes", one),
            ("SELECT 1;SELECT 2", one),
            ("SELECT 1;;;DELETE FROM notes", one),
            ("SELECT 1; -- comment\nDELETE FROM notes", one),
            ("SELECT 1 /* ; */; /* ; */ DELETE FROM notes", one),
            ("SELECT ';' AS a; DELETE FROM notes", one),
            ("SELECT 1 AS [a]; DELETE FROM notes; --]", one),
            ("SELECT 1 AS `a`; DELETE FROM notes; --`", one),
            ("SELECT 1 AS \"a\"; DELETE FROM notes; --\"", one),
            ("SELECT 1 -- ;\n; DELETE FROM notes", one),
            ("SELECT 1; garbage", one),
            ("SELECT 1; ;\u{feff}DELETE FROM notes", one),
            ("SELECT 1; (", one),
            ("SELECT 1; 'unterminated", one),
            ("SELECT 1; PRAGMA user_version = 7", one),
            ("SELECT 1; ATTACH '/tmp/indelible-never-made.db' AS m", one),
        ],
    );
    assert!(!std::path::Path::new("/tmp/indelible-never-made.db").exists());
}

#[test]
fn no_statement_is_an_error_that_says_so() {
    let none: &[&str] = &["no statement"];
    refused_everywhere(
        &Bench::notes(),
        &[
            ("", none),
            ("  \n\t", none),
            ("-- nothing here", none),
            ("/* nor here */", none),
            (";", none),
            (" ; ; ", none),
            ("/* never closed", none),
        ],
    );
}

#[test]
fn a_nul_is_refused_before_compiling() {
    let nul: &[&str] = &["NUL"];
    refused_everywhere(
        &Bench::notes(),
        &[
            ("SELECT 1\0; DROP TABLE notes", nul),
            ("\0DELETE FROM notes", nul),
            ("SELECT 'a\0b'", nul),
            ("SELECT 1\0", nul),
        ],
    );
}

#[test]
fn sql_of_thirty_megabytes_is_refused_by_its_size() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let mut sql = String::from("INSERT INTO notes(title) VALUES ('x')");
    while sql.len() < 30_000_000 {
        sql.push_str(", ('0123456789012345678901234567890123456789')");
    }
    client.write(&sql).fails_as("TOO_BIG", &["more than 1000000", "`params`"]);
    client.read(&sql).fails_as("TOO_BIG", &["more than 1000000"]);
    client.is_alive();
    assert_eq!(bench.query("SELECT count(*) FROM notes"), "3");
    // The log keeps the beginning.
    client
        .read("SELECT count(*) AS n FROM query_log WHERE NOT ok AND length(query) BETWEEN 1000 AND 110000")
        .is("n\n2\n# 1 rows");
}

#[test]
fn nesting_and_size_beyond_sqlite_s_limits_are_plain_errors() {
    let nested = |depth: usize| format!("SELECT {}1{}", "(".repeat(depth), ")".repeat(depth));
    let selects = format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(5000));
    let columns = format!("SELECT {}1", "1,".repeat(5000));
    let sum = format!("SELECT 1{}", " + 1".repeat(20_000));
    let subqueries = format!("{}SELECT 1{}", "SELECT * FROM (".repeat(2000), ")".repeat(2000));
    let blob = format!("SELECT x'{}'", "0".repeat(900_001));
    let parameter = "SELECT ?999999999".to_owned();
    let open = format!("SELECT {}", "(".repeat(5000));
    let rows = [
        (nested(5000), "limit"),
        (open, "limit"),
        (selects, "too many terms in compound SELECT"),
        (columns, "too many columns in result set"),
        (sum, "Expression tree is too large"),
        (subqueries, ""),
        (blob, "unrecognized token"),
        (parameter, "variable number must be between ?1 and ?32766"),
    ];
    for (sql, words) in rows {
        let bench = Bench::notes();
        refused_everywhere(&bench, &[(&sql, &[words])]);
    }
}

#[test]
fn unknown_names_and_syntax_errors_come_in_sqlite_s_words() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    for (sql, code, words) in [
        ("SELECT * FROM nope", "UNKNOWN_TABLE", "no such table: nope"),
        ("SELECT nope FROM notes", "UNKNOWN_COLUMN", "no such column: nope"),
        ("SELECT \"nope\" FROM notes", "UNKNOWN_COLUMN", "no such column"),
        ("SELECT nope(1)", "SQL_ERROR", "no such function: nope"),
        ("SELEC 1", "SYNTAX_ERROR", "near \"SELEC\": syntax error"),
        ("SELECT (", "SYNTAX_ERROR", "incomplete input"),
        ("SELECT 'x", "SYNTAX_ERROR", "unrecognized token"),
        ("SELECT * FROM other.notes", "UNKNOWN_TABLE", "no such table: other.notes"),
        ("SELECT abs(-9223372036854775808)", "SQL_ERROR", "integer overflow"),
        ("SELECT json('{')", "SQL_ERROR", "malformed JSON"),
    ] {
        client.read(sql).fails_as(code, &[words]);
    }
    client.is_alive();
}

#[test]
fn other_files_are_out_of_reach() {
    let bench = Bench::notes();
    let target = bench.folder().join("stolen.db");
    let into = format!("VACUUM INTO '{}'", target.display());
    let main_into = format!("VACUUM main INTO '{}'", target.display());
    let attach = format!("ATTACH DATABASE '{}' AS other", target.display());
    let uri = format!("ATTACH 'file:{}?mode=rwc' AS other", target.display());
    refused_everywhere(
        &bench,
        &[
            ("ATTACH DATABASE ':memory:' AS other", &["ATTACH"]),
            (&attach, &["ATTACH"]),
            (&uri, &["ATTACH"]),
            ("ATTACH '' AS other", &["ATTACH"]),
            ("ATTACH (SELECT ':memory:') AS other", &["not allowed"]),
            ("DETACH DATABASE main", &["DETACH"]),
            ("DETACH other", &["DETACH"]),
            ("VACUUM", &["VACUUM"]),
            ("VACUUM main", &["VACUUM"]),
            (&into, &[]),
            (&main_into, &[]),
            ("VACUUM INTO (SELECT 'x')", &[]),
        ],
    );
    assert!(!target.exists());
}

#[test]
fn pragmas_that_set_something_are_refused_in_any_spelling() {
    let mut rows: Vec<String> = Vec::new();
    for (name, value) in [
        ("journal_mode", "DELETE"),
        ("writable_schema", "1"),
        ("user_version", "7"),
        ("application_id", "7"),
        ("foreign_keys", "0"),
        ("query_only", "0"),
        ("trusted_schema", "1"),
        ("recursive_triggers", "1"),
        ("synchronous", "0"),
        ("secure_delete", "1"),
        ("max_page_count", "1"),
        ("temp_store", "2"),
        ("temp_store_directory", "'/tmp'"),
        ("hard_heap_limit", "1"),
        ("soft_heap_limit", "1"),
        ("case_sensitive_like", "1"),
        ("ignore_check_constraints", "1"),
        ("defer_foreign_keys", "1"),
        ("schema_version", "9"),
        ("mmap_size", "1000000"),
        ("cache_size", "1"),
        ("busy_timeout", "0"),
        ("wal_autocheckpoint", "0"),
        ("locking_mode", "EXCLUSIVE"),
        ("encoding", "'UTF-16'"),
        ("auto_vacuum", "1"),
        ("page_size", "512"),
        ("legacy_alter_table", "1"),
        ("reset_database", "1"),
    ] {
        rows.extend([
            format!("PRAGMA {name} = {value}"),
            format!("PRAGMA {name}({value})"),
            format!("pragma main.{name}={value}"),
            format!("PRAGMA \"{name}\" = {value}"),
            format!("PRAGMA [main].[{}] = {value}", name.to_uppercase()),
            format!("/**/PRAGMA/**/`{name}`/**/({value})"),
            format!("PRAGMA temp.{name} = {value}"),
        ]);
        rows.push(format!("SELECT * FROM pragma_{name}({value})"));
    }
    for bare in [
        "wal_checkpoint",
        "wal_checkpoint(TRUNCATE)",
        "optimize",
        "optimize(0xfffe)",
        "incremental_vacuum",
        "incremental_vacuum(9)",
        "shrink_memory",
        "data_store_directory",
        "locking_mode",
        "writable_schema",
    ] {
        rows.push(format!("PRAGMA {bare}"));
        rows.push(format!("EXPLAIN PRAGMA {bare}"));
    }
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let settings = "SELECT * FROM pragma_foreign_keys, pragma_query_only, pragma_trusted_schema, pragma_temp_store, pragma_busy_timeout";
    let before = (bench.content(), client.read(settings).ok().text.clone());
    for sql in &rows {
        for answer in by_every_tool(&mut client, sql) {
            answer.fails(&[]);
        }
    }
    client
        .read("PRAGMA journal_mode = WAL")
        .fails_as("REFUSED", &["PRAGMA journal_mode with a value", "read, not set"]);
    client.write("PRAGMA optimize").fails_as("REFUSED", &["PRAGMA optimize is not allowed in write_query"]);
    assert_eq!((bench.content(), client.read(settings).ok().text.clone()), before);
    // The connection that writes kept its settings, too.
    client.write("INSERT INTO tags(note_id, tag) VALUES (99, 'x')").fails(&["FOREIGN KEY"]);
}

#[test]
fn temporary_objects_are_refused() {
    let temporary: &[&str] = &["emp"];
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client.is_alive();
    let before = bench.content();
    for sql in [
        "CREATE TEMP TABLE tt(a)",
        "CREATE TEMPORARY TABLE tt AS SELECT 1",
        "CREATE TABLE temp.tt(a)",
        "CREATE TEMP VIEW tv AS SELECT 1",
        "CREATE TEMP TRIGGER tr AFTER INSERT ON notes BEGIN DELETE FROM tags; END",
        "CREATE VIEW temp.tv AS SELECT 1",
        "CREATE TRIGGER temp.tr AFTER INSERT ON main.notes BEGIN DELETE FROM tags; END",
        "CREATE VIRTUAL TABLE temp.f USING fts5(a)",
        "ANALYZE temp",
    ] {
        client.read(sql).fails(&[]);
        client.write(sql).fails(temporary);
        client.destroy(sql).fails(temporary);
    }
    client.write("DROP TABLE temp.tt").fails(&[]);
    client.write("INSERT INTO sqlite_temp_schema DEFAULT VALUES").fails(&[]);
    client.read("SELECT count(*) AS n FROM sqlite_temp_schema").is("n\n0\n# 1 rows");
    assert_eq!(bench.content(), before);
}

#[test]
fn functions_that_reach_outside_are_refused() {
    refused_everywhere(
        &Bench::notes(),
        &[
            ("SELECT load_extension('x')", &["load_extension"]),
            ("SELECT LOAD_EXTENSION('x', 'y')", &["load_extension"]),
            ("SELECT \"load_extension\"('x')", &["load_extension"]),
            ("SELECT fts3_tokenizer('simple')", &["fts3_tokenizer"]),
            ("SELECT fts3_tokenizer('simple', x'00')", &["fts3_tokenizer"]),
            ("SELECT hex(fts3_tokenizer('porter'))", &["fts3_tokenizer"]),
            ("SELECT readfile('/etc/passwd')", &["readfile"]),
            ("SELECT writefile('/tmp/x', 'y')", &["writefile"]),
            ("SELECT edit('x')", &["edit"]),
            ("SELECT sqlite_log(1, 'x')", &["sqlite_log"]),
            ("SELECT 1 WHERE load_extension('x')", &["load_extension"]),
            ("INSERT INTO notes(title) VALUES (load_extension('x'))", &["load_extension"]),
            ("DELETE FROM notes WHERE fts3_tokenizer('simple') IS NULL", &["fts3_tokenizer"]),
            ("CREATE INDEX i ON notes(load_extension(title))", &[]),
        ],
    );
}

#[test]
fn the_schema_table_is_read_and_never_written() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client.read("SELECT count(*) > 0 AS some FROM sqlite_master").is("some\n1\n# 1 rows");
    let before = bench.content();
    for table in
        ["sqlite_schema", "sqlite_master", "main.sqlite_schema", "\"sqlite_master\"", "sqlite_sequence"]
    {
        for sql in [
            format!("UPDATE {table} SET name = 'x'"),
            format!("INSERT INTO {table} DEFAULT VALUES"),
            format!("DELETE FROM {table}"),
            format!("REPLACE INTO {table} SELECT * FROM {table}"),
            format!("DROP TABLE {table}"),
            format!("ALTER TABLE {table} RENAME TO x"),
            format!("CREATE INDEX i ON {table}(name)"),
            format!("CREATE TRIGGER t AFTER INSERT ON {table} BEGIN SELECT 1; END"),
        ] {
            if table == "sqlite_sequence" && !sql.starts_with("DROP") && !sql.starts_with("ALTER") {
                continue;
            }
            for answer in by_every_tool(&mut client, &sql) {
                answer.fails(&[]);
            }
        }
    }
    assert_eq!(bench.content(), before);
    client.is_alive();
}

#[test]
fn an_error_is_never_longer_than_its_reader_can_bear() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let long = "x".repeat(50_000);
    let answer = client.write(&format!("CREATE TABLE \"{long}y\"(a UNIQUE)"));
    assert!(answer.ok().text.len() < 300, "{}", answer.text.len());
    for sql in [
        format!("SELECT \"{long}\""),
        format!("SELECT * FROM \"{long}\""),
        format!("SELECT {long}(1)"),
        format!("PRAGMA {long}"),
        format!("SELECT json_extract('{{}}', '{long}')"),
        format!("SELECT 1 AS a FROM notes AS \"{long}\" JOIN notes AS \"{long}\" WHERE \"{long}\".nope"),
    ] {
        let answer = client.read(&sql);
        answer.fails(&["...[+"]).lacks("panicked");
        assert!(answer.text.chars().count() < 4100, "{} chars", answer.text.chars().count());
    }
    let unknown: serde_json::Map<String, _> = (0..10_000).map(|n| (format!("key{n}"), json!(n))).collect();
    let answer = client.call("verify_chain", json!(unknown));
    answer.fails_as("INVALID_ARGUMENTS", &["`key0` is not an argument", "9995 more"]);
    assert!(answer.text.len() < 500, "{}", answer.text.len());
    let params = json!({long.clone(): 1, "also": 2});
    let answer = client.call("read_query", json!({"query": "SELECT :a", "params": params}));
    answer.fails_as("INVALID_PARAMS", &["parameter `:a` is missing", "`also`"]);
    assert!(answer.text.len() < 400, "{}", answer.text);
    let answer = client.call(
        "destructive_query",
        json!({"query": "UPDATE notes SET id = 1", "reason": "because ".repeat(249)}),
    );
    answer.fails(&["UNIQUE constraint failed: notes.id; reason: because", "a snapshot had been made"]);
    assert!(answer.text.len() < 4100, "{}", answer.text.len());
}
