//! The cap counts rows that were there and are lost, all of them and no others.

use crate::client::Server;

const SETUP: &str = "CREATE TABLE r(id INTEGER PRIMARY KEY, u UNIQUE, v);
    CREATE TABLE w(a INTEGER PRIMARY KEY, v) WITHOUT ROWID;
    CREATE TABLE cr(id INTEGER PRIMARY KEY ON CONFLICT REPLACE, u UNIQUE ON CONFLICT REPLACE);
    CREATE TABLE stamped(id INTEGER PRIMARY KEY, v, at);
    CREATE TRIGGER stamp AFTER INSERT ON stamped BEGIN UPDATE stamped SET at = 'now' WHERE id = new.id; END;
    CREATE TABLE tally(n); INSERT INTO tally VALUES (0), (0), (0);
    CREATE TABLE counted(id INTEGER PRIMARY KEY);
    CREATE TRIGGER count AFTER INSERT ON counted BEGIN UPDATE tally SET n = n + 1; END;
    CREATE TABLE docs(id INTEGER PRIMARY KEY, body);
    CREATE VIRTUAL TABLE e USING fts5(body, content=docs, content_rowid=id);
    CREATE TRIGGER d_i AFTER INSERT ON docs BEGIN INSERT INTO e(rowid, body) VALUES (new.id, new.body); END;
    CREATE TRIGGER d_u AFTER UPDATE ON docs BEGIN
        INSERT INTO e(e, rowid, body) VALUES ('delete', old.id, old.body);
        INSERT INTO e(rowid, body) VALUES (new.id, new.body); END;
    CREATE VIRTUAL TABLE f USING fts5(body);
    CREATE TABLE touch(id INTEGER PRIMARY KEY);
    CREATE TRIGGER touches AFTER INSERT ON touch BEGIN UPDATE f SET body = 'gone' WHERE rowid <= 4; END;
    CREATE TABLE places(id INTEGER PRIMARY KEY, x);
    CREATE VIRTUAL TABLE rt USING rtree(id, a, b);
    CREATE TRIGGER p_i AFTER INSERT ON places BEGIN INSERT INTO rt VALUES (new.id, new.x, new.x + 1); END;
    CREATE TABLE parent(id INTEGER PRIMARY KEY, k UNIQUE);
    CREATE TABLE child(id INTEGER PRIMARY KEY, k REFERENCES parent(k) ON UPDATE CASCADE);
    WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 10)
    INSERT INTO r SELECT i, i * 10, 'v' FROM c;
    INSERT INTO w SELECT id, v FROM r; INSERT INTO cr SELECT id, u FROM r; INSERT INTO docs SELECT id, v FROM r;
    INSERT INTO f(rowid, body) SELECT id, v FROM r; INSERT INTO places SELECT id, id FROM r;
    INSERT INTO parent SELECT id, u FROM r; INSERT INTO child SELECT id, u FROM r;";

#[test]
fn every_way_to_lose_a_row_counts() {
    for (query, lost) in [
        ("UPDATE r SET v = 'x' WHERE id <= 3", 3),
        ("INSERT OR REPLACE INTO r VALUES (1, 20, 'x')", 2),
        ("UPDATE OR REPLACE r SET id = 1, u = 20 WHERE id = 3", 3),
        ("INSERT INTO r VALUES (1, 99, 'x'), (2, 98, 'y') ON CONFLICT DO UPDATE SET v = 'z'", 2),
        ("REPLACE INTO w VALUES (1, 'x'), (2, 'y'), (50, 'new')", 2),
        ("INSERT INTO cr VALUES (1, 20), (30, 30)", 3),
        ("INSERT INTO counted VALUES (1)", 3),
        ("UPDATE f SET body = 'x' WHERE rowid < 4", 3),
        ("INSERT OR REPLACE INTO f(rowid, body) VALUES (1, 'x'), (2, 'y'), (90, 'new')", 2),
        ("INSERT INTO touch VALUES (1)", 4),
        ("UPDATE docs SET body = 'x' WHERE id < 4", 3),
        ("UPDATE rt SET b = b + 1 WHERE id < 4", 3),
        ("UPDATE parent SET k = k + 1 WHERE id <= 2", 4),
    ] {
        let cap = |rows: i64| rows.to_string();
        let mut server = Server::over(SETUP, &["--max-update-rows", &cap(lost - 1)]);
        let error = server.write(query).unwrap_err();
        assert!(error.contains(&format!("would overwrite {lost} existing rows")), "{query}: {error}");
        let mut server = Server::over(SETUP, &["--max-update-rows", &cap(lost)]);
        let result = server.write(query);
        assert!(result.is_ok(), "{query}: {result:?}");
    }
}

#[test]
fn new_rows_never_count() {
    let mut server = Server::over(SETUP, &["--max-update-rows", "0"]);
    let hundred = "WITH RECURSIVE c(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM c LIMIT 100)";
    for insert in [
        "INSERT INTO r SELECT i, i * 10, i FROM c",
        "INSERT OR REPLACE INTO w SELECT i, i FROM c",
        "INSERT INTO cr SELECT i, i * 10 FROM c",
        // The trigger fills a column of the row that is new.
        "INSERT INTO stamped(v) SELECT i FROM c",
        "INSERT INTO docs(body) SELECT i FROM c",
        "INSERT INTO f(body) SELECT i FROM c",
        "INSERT INTO e(rowid, body) SELECT i + 1000, i FROM c",
        // An rtree moves rows about when it grows.
        "INSERT INTO places SELECT i, i FROM c",
        "INSERT INTO rt SELECT i + 1000, i, i + 1 FROM c",
    ] {
        let result = server.write(&format!("{hundred} {insert}"));
        assert!(result.is_ok(), "{insert}: {result:?}");
    }
    assert_eq!(server.number("SELECT count(*) FROM stamped WHERE at = 'now'"), 100);
}

#[test]
fn a_replace_that_needs_a_snapshot_can_have_one() {
    let mut server = Server::over(SETUP, &["--max-update-rows", "0"]);
    for query in [
        "INSERT OR REPLACE INTO touch VALUES (1)",
        "INSERT OR REPLACE INTO w SELECT a, 'x' FROM w",
        "INSERT OR REPLACE INTO places SELECT id, 0 FROM places WHERE id < 3",
        "INSERT INTO cr VALUES (1, 10)",
        "INSERT INTO r VALUES (1, 1, 1) ON CONFLICT DO UPDATE SET v = 'x'",
    ] {
        let result = server.destroy(query);
        assert!(result.as_ref().is_ok_and(|text| text.contains("snapshot: ")), "{query}: {result:?}");
    }
    for query in [
        "INSERT INTO w VALUES (99, 1)",
        "INSERT OR IGNORE INTO r VALUES (1, 1, 1)",
        "INSERT INTO f VALUES (1)",
    ] {
        server.refuses("destructive_query", query, "only adds");
    }
}

#[test]
fn a_rollback_journal_and_a_full_cache_change_no_count() {
    let setup = "PRAGMA journal_mode = DELETE; CREATE TABLE t(id INTEGER PRIMARY KEY, a UNIQUE, b);
        WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 60000)
        INSERT INTO t SELECT i, i, hex(zeroblob(40)) FROM c;";
    let mut server = Server::over(setup, &["--max-update-rows", "1000"]);
    server.refuses("write_query", "UPDATE t SET b = b || 'x'", "overwrite 60000 existing rows");
    server.refuses(
        "write_query",
        "INSERT OR REPLACE INTO t SELECT id + 30000, a + 30000, b || 'q' FROM t",
        "overwrite 30000 existing rows",
    );
    assert!(server.write("INSERT INTO t(a, b) SELECT a + 100000, b FROM t").unwrap().contains("60000 rows"));
    assert!(server.write("UPDATE t SET b = 'y' WHERE id <= 1000").unwrap().contains("1000 rows"));
}
