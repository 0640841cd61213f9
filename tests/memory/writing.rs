//! write_query: adding and correcting, RETURNING, and everything that is sent on.

use crate::support::{Bench, Server};
use serde_json::json;

#[test]
fn additions_and_corrections_say_what_they_did() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    for (sql, text) in [
        ("INSERT INTO notes(title) VALUES ('delta')", "ok: 1 rows affected (last_insert_rowid=4)"),
        ("UPDATE notes SET score = 3 WHERE id = 1", "ok: 1 rows affected"),
        ("UPDATE notes SET score = 3 WHERE id = 99", "ok: 0 rows affected"),
        ("REPLACE INTO notes(id, title) VALUES (2, 'replaced')", "ok: 1 rows affected (last_insert_rowid=2)"),
        ("INSERT OR IGNORE INTO notes(id, title) VALUES (2, 'ignored')", "ok: 0 rows affected"),
        (
            "INSERT INTO notes(title) VALUES ('eps') RETURNING id, title",
            "ok: 1 rows affected (last_insert_rowid=5)\nid,title\n5,eps\n# 1 rows",
        ),
        ("UPDATE notes SET score = 1 WHERE id = 99 RETURNING id", "ok: 0 rows affected\nid\n# 0 rows"),
        (
            "WITH x(t) AS (VALUES ('zeta')) INSERT INTO notes(title) SELECT t FROM x",
            "ok: 1 rows affected (last_insert_rowid=6)",
        ),
        ("CREATE TABLE t3(a)", "ok: CREATE TABLE t3"),
        ("CREATE TABLE IF NOT EXISTS t3(a)", "ok: CREATE TABLE t3"),
        ("CREATE TABLE t4 AS SELECT id FROM notes", "ok: CREATE TABLE t4"),
        ("CREATE TABLE w(k TEXT PRIMARY KEY, v) WITHOUT ROWID", "ok: CREATE TABLE w"),
        ("INSERT INTO w VALUES ('a', 1)", "ok: 1 rows affected"),
        ("CREATE TABLE s(a INTEGER, b INTEGER AS (a * 2) STORED) STRICT", "ok: CREATE TABLE s"),
        ("CREATE INDEX notes_title ON notes(title)", "ok: CREATE INDEX notes_title"),
        (
            "CREATE UNIQUE INDEX notes_lower ON notes(lower(title)) WHERE id > 0",
            "ok: CREATE INDEX notes_lower",
        ),
    ] {
        let answer = client.write(sql);
        answer.ok();
        if !sql.starts_with("CREATE TABLE IF NOT") && !sql.starts_with("REPLACE") {
            answer.is(text);
        }
    }
    for sql in ["ANALYZE", "ANALYZE notes", "REINDEX", "REINDEX notes", "REINDEX notes_title"] {
        client.write(sql).ok().starts("ok: ");
    }
    client
        .write("INSERT INTO notes(id, title) VALUES (1, 'dup') ON CONFLICT(id) DO UPDATE SET title = excluded.title")
        .ok()
        .starts("ok: 1 rows affected");
    assert_eq!(
        bench.query("SELECT id, title, score FROM notes ORDER BY id"),
        "1|dup|3.0\n2|replaced|NULL\n3|gamma|NULL\n4|delta|NULL\n5|eps|NULL\n6|zeta|NULL"
    );
    assert_eq!(bench.query("PRAGMA integrity_check"), "ok");
}

#[test]
fn parameters_bind_in_writes() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let mut write = |sql: &str, params: serde_json::Value| {
        client.call("write_query", json!({"query": sql, "params": params}))
    };
    write("INSERT INTO notes(title) VALUES (?), (?)", json!(["z1", "z2"]))
        .is("ok: 2 rows affected (last_insert_rowid=5)");
    write("UPDATE notes SET title = :t WHERE id = :i", json!({"t": "new", "i": 1})).is("ok: 1 rows affected");
    write("INSERT INTO notes(title, body) VALUES (?, ?)", json!(["a\"'\n", null])).ok();
    write("INSERT INTO notes(title) VALUES (?)", json!([])).fails_as("INVALID_PARAMS", &["1 parameters"]);
    write("INSERT INTO notes(title) VALUES (:t)", json!({"u": 1})).fails_as("INVALID_PARAMS", &["`:t`"]);
    assert_eq!(
        bench.query("SELECT title, body FROM notes WHERE id IN (1, 4, 5, 6) ORDER BY id"),
        "new|an apple a day\nz1|NULL\nz2|NULL\na\"'\n|NULL"
    );
}

#[test]
fn returning_rows_are_capped_and_the_statement_runs_to_its_end() {
    let bench = Bench::with("CREATE TABLE t(a INTEGER)");
    let mut client = Server::on(&bench).flags(&["--max-rows", "3"]).start();
    let answer = client.write("INSERT INTO t SELECT value FROM json_each('[1,2,3,4,5]') RETURNING a");
    answer
        .ok()
        .starts("ok: 5 rows affected")
        .ends("\na\n1\n2\n3\n# 3 rows; more rows exist (at most 3 are shown)");
    let answer = client.destroy("DELETE FROM t WHERE a > 1 RETURNING a, 'x' AS x");
    answer
        .ok()
        .starts("ok: 4 rows affected; snapshot: ")
        .ends(".db\na,x\n2,x\n3,x\n4,x\n# 3 rows; more rows exist (at most 3 are shown)");
    assert_eq!(bench.query("SELECT a FROM t"), "1");
}

#[test]
fn destruction_is_sent_to_its_tool() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client.is_alive();
    let before = bench.content();
    for (sql, words) in [
        (
            "DELETE FROM notes WHERE id = 1",
            &["DELETE is not allowed in write_query", "destructive_query"] as &[&str],
        ),
        ("DELETE FROM notes RETURNING id", &["destructive_query"]),
        ("DROP TABLE notes", &["DROP TABLE is not allowed in write_query", "destructive_query"]),
        ("DROP TABLE IF EXISTS notes", &["destructive_query"]),
        ("DROP INDEX tags_note", &["DROP INDEX", "destructive_query"]),
        ("ALTER TABLE notes ADD COLUMN extra TEXT", &["ALTER TABLE", "destructive_query"]),
        ("ALTER TABLE notes DROP COLUMN score", &["destructive_query"]),
        (
            "CREATE TRIGGER tr AFTER INSERT ON notes BEGIN DELETE FROM tags; END",
            &["CREATE TRIGGER", "destructive_query"],
        ),
        ("CREATE VIEW v AS SELECT 1", &["CREATE VIEW", "create_view"]),
        ("SELECT 1", &["only reads", "read_query"]),
        ("PRAGMA table_info(notes)", &["only reads", "read_query"]),
        ("EXPLAIN INSERT INTO notes(title) VALUES ('x')", &["only reads", "read_query"]),
        ("SAVEPOINT sp", &["SAVEPOINT"]),
        ("RELEASE sp", &["SAVEPOINT"]),
        ("END", &["transaction"]),
        ("CREATE VIRTUAL TABLE v USING dbstat", &["`dbstat`", "fts5"]),
        ("CREATE VIRTUAL TABLE v USING fts4aux(notes)", &["`fts4aux`"]),
        ("CREATE VIRTUAL TABLE v USING fts5vocab(notes, row)", &["`fts5vocab`"]),
        ("CREATE VIRTUAL TABLE v USING nope(a)", &["`nope`"]),
    ] {
        client.write(sql).fails(words);
    }
    assert_eq!(bench.content(), before);
}

#[test]
fn constraint_failures_come_in_sqlite_s_own_words_and_change_nothing() {
    let bench = Bench::notes();
    bench.sql("CREATE TABLE c(a INTEGER PRIMARY KEY, b TEXT UNIQUE, n INT CONSTRAINT small CHECK (n < 10)); INSERT INTO c VALUES (1, 'x', 1);
        CREATE TABLE s(a INTEGER) STRICT; CREATE TABLE g(a, b AS (a + 1));
        CREATE TRIGGER c_guard BEFORE INSERT ON c WHEN new.n = 5 BEGIN SELECT RAISE(ABORT, 'five is taken'); END");
    let mut client = Server::on(&bench).start();
    client.is_alive();
    let before = bench.content();
    for (sql, text) in [
        ("INSERT INTO notes(id, title) VALUES (1, 'x')", "UNIQUE constraint failed: notes.id"),
        ("INSERT INTO notes(title) VALUES (NULL)", "NOT NULL constraint failed: notes.title"),
        ("INSERT INTO c VALUES (2, 'x', 1)", "UNIQUE constraint failed: c.b"),
        ("INSERT INTO c VALUES (2, 'ok', 3), (3, 'y', 10)", "CHECK constraint failed: small"),
        ("INSERT INTO c VALUES (2, 'z', 5)", "five is taken"),
        ("INSERT INTO tags(note_id, tag) VALUES (99, 'x')", "FOREIGN KEY constraint failed"),
        ("INSERT INTO s VALUES ('text')", "cannot store TEXT value in INTEGER column s.a"),
        ("INSERT INTO notes(id, title) VALUES ('x', 'y')", "datatype mismatch"),
        ("INSERT INTO g(b) VALUES (1)", "cannot INSERT into generated column \"b\""),
        ("INSERT INTO notes VALUES (1)", "table notes has 4 columns but 1 values were supplied"),
        ("INSERT INTO nope VALUES (1)", "no such table: nope"),
        ("INSERT INTO notes(nope) VALUES (1)", "table notes has no column named nope"),
        ("UPDATE notes SET nope = 1", "no such column: nope"),
        ("CREATE TABLE notes(a)", "table notes already exists"),
        ("CREATE INDEX tags_note ON tags(tag)", "index tags_note already exists"),
    ] {
        let answer = client.write(sql);
        assert_eq!(answer.fails(&[]).text, text, "{sql}");
    }
    assert_eq!(bench.content(), before);
    client
        .read("SELECT count(*) AS n FROM query_log WHERE NOT ok AND error LIKE '%constraint failed%'")
        .is("n\n5\n# 1 rows");
}

#[test]
fn what_would_delete_through_a_trigger_or_a_foreign_key_is_refused_by_its_name() {
    let bench = Bench::notes();
    bench.sql(
        "CREATE TRIGGER purge AFTER INSERT ON notes WHEN new.title = 'purge' BEGIN DELETE FROM tags; END;
         CREATE TABLE parent(id INTEGER PRIMARY KEY, k TEXT UNIQUE); INSERT INTO parent VALUES (1, 'a');
         CREATE TABLE child(p INTEGER REFERENCES parent(id) ON DELETE CASCADE, k TEXT REFERENCES parent(k) ON UPDATE SET NULL);
         INSERT INTO child VALUES (1, 'a'); INSERT INTO tags VALUES (1, 1, 'kept')",
    );
    let mut client = Server::on(&bench).start();
    client.write("INSERT INTO notes(title) VALUES ('plain')").fails(&[
        "DELETE is not allowed in write_query",
        "`purge`",
        "destructive_query",
    ]);
    client.write("REPLACE INTO parent VALUES (1, 'b')").fails(&["destructive_query"]);
    client.write("UPDATE parent SET k = 'c'").ok();
    assert_eq!(bench.query("SELECT count(*) FROM tags"), "1");
    assert_eq!(bench.query("SELECT p, k FROM child"), "1|NULL");
    client
        .destroy("INSERT INTO notes(title) VALUES ('purge')")
        .ok()
        .starts("ok: 1 rows affected (last_insert_rowid=4); snapshot: ");
    client.destroy("REPLACE INTO parent VALUES (1, 'd')").ok();
    assert_eq!(bench.query("SELECT (SELECT count(*) FROM tags), (SELECT count(*) FROM child)"), "0|0");
}

#[test]
fn the_statistics_of_analyze_are_refreshed_and_never_edited() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client.write("ANALYZE").ok();
    assert_eq!(bench.query("SELECT count(*) > 0 FROM sqlite_stat1"), "1");
    client.write("UPDATE sqlite_stat1 SET stat = '1'").fails(&["`sqlite_stat1`", "ANALYZE"]);
    client.write("INSERT INTO sqlite_stat1 VALUES ('a', 'b', 'c')").fails(&["`sqlite_stat1`", "ANALYZE"]);
    client.destroy("DELETE FROM sqlite_stat1").fails(&["`sqlite_stat1`", "ANALYZE"]);
    client.write("INSERT INTO notes(title) VALUES ('more')").ok();
    client.write("ANALYZE notes").ok();
}

#[test]
fn large_values_stay_editable() {
    let bench = Bench::with("CREATE TABLE big(id INTEGER PRIMARY KEY, body TEXT)");
    let mut client = Server::on(&bench).start();
    let text = "0123456789".repeat(1_000_000);
    client.call("write_query", json!({"query": "INSERT INTO big(body) VALUES (?)", "params": [text]})).ok();
    client.write("UPDATE big SET body = body || 'x' WHERE id = 1").is("ok: 1 rows affected");
    client.read("SELECT length(body) AS n, substr(body, -2) AS t FROM big").is("n,t\n10000001,9x\n# 1 rows");
}

#[test]
fn what_has_nothing_to_do_says_so_and_costs_no_snapshot() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client.write("CREATE VIRTUAL TABLE words USING fts5(word)").ok();
    client.destroy("CREATE TRIGGER keep AFTER INSERT ON notes BEGIN SELECT 1; END").ok();
    let before = (bench.content(), bench.snapshots());
    for sql in [
        "CREATE TABLE IF NOT EXISTS notes(other)",
        "CREATE INDEX IF NOT EXISTS tags_note ON tags(tag)",
        "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(other)",
        "CREATE VIRTUAL TABLE IF NOT EXISTS notes USING fts5(other)",
        "DROP TABLE IF EXISTS nope",
    ] {
        client.write(sql).starts("ok: nothing was to be done");
    }
    for sql in [
        "DROP TABLE IF EXISTS nope",
        "DROP INDEX IF EXISTS nope",
        "DROP VIEW IF EXISTS nope",
        "DROP TRIGGER IF EXISTS nope",
        "CREATE TRIGGER IF NOT EXISTS keep AFTER INSERT ON notes BEGIN DELETE FROM tags; END",
    ] {
        client.destroy(sql).starts("ok: nothing was to be done");
    }
    assert_eq!((bench.content(), bench.snapshots()), before);
    // Each has its row all the same, and the same text does what it says once there is something to do.
    client
        .read("SELECT count(*) AS n FROM query_log WHERE ok AND rows = 0 AND query LIKE '%IF %EXISTS%'")
        .has("10");
    bench.sql("CREATE TABLE nope(x)");
    client.write("DROP TABLE IF EXISTS nope").fails(&["DROP TABLE is not allowed in write_query"]);
    client.destroy("DROP TABLE IF EXISTS nope").starts("ok: DROP TABLE nope; snapshot:");
    client.destroy("DROP TABLE IF EXISTS nope").starts("ok: nothing was to be done");
    // It is no way around anything.
    client.write("CREATE TABLE IF NOT EXISTS memory_events(x)").fails(&["belongs to the server"]);
    client.destroy("VACUUM").fails(&["not allowed in destructive_query"]);
    for sql in ["DROP TABLE IF EXISTS nope", "CREATE TABLE IF NOT EXISTS notes(x)"] {
        client.read(sql).fails(&[]);
        client.call("create_view", json!({"name": "v", "select_sql": sql})).fails(&[]);
    }
}

#[test]
fn writes_that_come_together_are_all_done_and_logged_once_in_order() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let ids: Vec<i64> = (0..100)
        .map(|n| match n {
            30 => client.send_call(
                "write_query",
                json!({"query": "INSERT INTO notes(id, title) VALUES (1, 'again')"}),
            ),
            60 => client.send_call("write_query", json!({"query": "CREATE TABLE other(x)"})),
            n => client.send_call(
                "write_query",
                json!({"query": format!("INSERT INTO notes(title) VALUES ('n{n}')")}),
            ),
        })
        .collect();
    for (n, id) in ids.into_iter().enumerate() {
        let answer = client.answer(id);
        match n {
            30 => answer.fails_as("SQL_ERROR", &["UNIQUE"]),
            60 => answer.ok(),
            _ => answer.ok().starts("ok: 1 rows affected (last_insert_rowid="),
        };
    }
    client.close();
    assert_eq!(
        bench.query("SELECT count(*), count(DISTINCT title) FROM notes WHERE title LIKE 'n%'"),
        "98|98"
    );
    let sql =
        "SELECT count(*), count(DISTINCT json_extract(detail, '$.call')), sum(ok), sum(rows) FROM query_log";
    assert_eq!(bench.query(sql), "100|100|99|98");
    // The log has the rows in the order in which they were inserted.
    let sql = "SELECT count(*) FROM notes JOIN query_log ON query LIKE '%''' || title || '''%'
               WHERE title LIKE 'n%' AND query_log.id < (SELECT max(l.id) FROM notes n JOIN query_log l
               ON l.query LIKE '%''' || n.title || '''%' WHERE n.id < notes.id AND n.title LIKE 'n%')";
    assert_eq!(bench.query(sql), "0");
}
