//! The overwrite guard: existing rows that one write may change, by every road to them.

use crate::support::{Bench, Client, Server};

/// Thirty rows each by rowid, by a UNIQUE column, by several, and without a rowid; triggers that reach others.
const TABLES: &str = "
    CREATE TABLE n(id INTEGER PRIMARY KEY, v INTEGER);
    CREATE TABLE u(id INTEGER PRIMARY KEY, k TEXT UNIQUE, v INTEGER);
    CREATE TABLE m(id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b INTEGER UNIQUE);
    CREATE TABLE w(k TEXT PRIMARY KEY, v INTEGER) WITHOUT ROWID;
    CREATE TABLE one(id INTEGER PRIMARY KEY);
    CREATE TABLE all_of(id INTEGER PRIMARY KEY);
    CREATE TABLE touched(id INTEGER PRIMARY KEY, v INTEGER);
    WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 30) INSERT INTO n SELECT x, 1 FROM c;
    INSERT INTO u SELECT id, 'k' || id, 1 FROM n;
    INSERT INTO m SELECT id, id, id + 100 FROM n;
    INSERT INTO w SELECT 'k' || id, 1 FROM n;
    INSERT INTO touched SELECT id, 1 FROM n;
    CREATE TRIGGER one_t AFTER INSERT ON one BEGIN UPDATE touched SET v = v + 1 WHERE id = new.id; END;
    CREATE TRIGGER all_t AFTER INSERT ON all_of BEGIN UPDATE touched SET v = v + 1; END;
    CREATE VIEW seen AS SELECT id, v FROM n;
    CREATE TRIGGER seen_t INSTEAD OF UPDATE ON seen BEGIN UPDATE n SET v = new.v WHERE id = old.id; END;
";

/// A statement, and how many rows it would overwrite; none where it is within the cap of five.
const ROWS: &[(&str, Option<u64>)] = &[
    ("UPDATE n SET v = 0", Some(30)),
    ("UPDATE n SET v = 0 WHERE id <= 6", Some(6)),
    ("UPDATE n SET v = 0 WHERE id <= 5", None),
    ("UPDATE w SET v = 0", Some(30)),
    ("UPDATE w SET v = 0 WHERE k IN ('k1', 'k2', 'k3', 'k4', 'k5')", None),
    ("UPDATE n SET id = id + 1000", Some(30)),
    ("REPLACE INTO n SELECT id, 9 FROM n", Some(30)),
    ("REPLACE INTO n SELECT id, 9 FROM n WHERE id <= 5", None),
    ("REPLACE INTO u(k, v) SELECT k, 9 FROM u", Some(30)),
    ("REPLACE INTO u(k, v) SELECT k, 9 FROM u WHERE id <= 6", Some(6)),
    ("REPLACE INTO w SELECT k, 9 FROM w", Some(30)),
    ("REPLACE INTO w SELECT k, 9 FROM w WHERE v = 1 LIMIT 5", None),
    // Each new row meets two old ones.
    ("REPLACE INTO m(a, b) SELECT id, id + 101 FROM n WHERE id IN (1, 3, 5)", Some(6)),
    ("REPLACE INTO m(a, b) SELECT id, id + 101 FROM n WHERE id IN (10, 12)", None),
    ("INSERT INTO n SELECT id, 9 FROM n WHERE true ON CONFLICT(id) DO UPDATE SET v = 9", Some(30)),
    ("INSERT INTO u(k, v) SELECT k, 9 FROM u WHERE true ON CONFLICT(k) DO UPDATE SET v = 9", Some(30)),
    ("INSERT INTO w SELECT k, 9 FROM w WHERE true ON CONFLICT DO UPDATE SET v = 9", Some(30)),
    ("INSERT INTO n SELECT id, 9 FROM n WHERE true ON CONFLICT DO NOTHING", None),
    ("INSERT OR IGNORE INTO n SELECT id, 9 FROM n", None),
    ("INSERT INTO n(v) SELECT 7 FROM n, n", None),
    ("INSERT INTO w SELECT 'new' || id, 7 FROM n", None),
    (
        "REPLACE INTO n SELECT value, 9 FROM json_each('[26,27,28,29,30,2001,2002,2003,2004,2005,2006,2007]')",
        None,
    ),
    (
        "REPLACE INTO n SELECT value, 9 FROM json_each('[25,26,27,28,29,30,3001,3002,3003,3004,3005,3006]')",
        Some(6),
    ),
    // Three updates and two replaced rows; four and three.
    ("UPDATE OR REPLACE u SET k = 'same' WHERE id BETWEEN 11 AND 14", Some(7)),
    ("UPDATE OR REPLACE u SET k = 'same' WHERE id BETWEEN 11 AND 13", None),
    ("INSERT INTO one SELECT id FROM n WHERE id BETWEEN 1 AND 6", Some(6)),
    ("INSERT INTO one SELECT id FROM n WHERE id BETWEEN 1 AND 5", None),
    ("INSERT INTO all_of VALUES (1)", Some(30)),
    ("UPDATE seen SET v = 0 WHERE id <= 6", Some(6)),
    ("UPDATE seen SET v = 0 WHERE id <= 5", None),
];

#[track_caller]
fn check(bench: &Bench, client: &mut Client) {
    for (sql, overwritten) in ROWS {
        let before = bench.content();
        let answer = client.write(sql);
        match overwritten {
            None => drop(answer.ok()),
            Some(rows) => {
                let says = format!("would overwrite {rows} existing rows, more than 5, and was rolled back");
                answer.fails_as("REFUSED", &[&says, "use destructive_query"]);
                assert_eq!(bench.content(), before, "{sql}");
            }
        }
    }
    client.destroy("UPDATE n SET v = 0").ok().starts("ok: ").has("snapshot: ");
    assert_eq!(bench.query("SELECT sum(v) FROM n"), "0");
    assert_eq!(bench.query("PRAGMA integrity_check"), "ok");
}

#[test]
fn a_write_that_overwrites_more_than_the_cap_is_rolled_back_in_rollback_mode() {
    let bench = Bench::with(TABLES);
    let mut client = Server::on(&bench).flags(&["--max-update-rows", "5"]).start();
    check(&bench, &mut client);
}

#[test]
fn a_write_that_overwrites_more_than_the_cap_is_rolled_back_in_wal_mode() {
    let bench = Bench::with(TABLES);
    bench.sql("PRAGMA journal_mode = WAL");
    let mut client = Server::on(&bench).flags(&["--max-update-rows", "5"]).start();
    check(&bench, &mut client);
}

#[test]
fn a_cap_of_zero_lets_only_additions_through() {
    let bench = Bench::with(TABLES);
    let mut client = Server::on(&bench).flags(&["--max-update-rows", "0"]).start();
    client.write("UPDATE n SET v = 2 WHERE id = 1").fails(&["would overwrite 1 existing rows, more than 0"]);
    client.write("REPLACE INTO n VALUES (1, 2)").fails(&["rolled back"]);
    client.write("INSERT INTO n(v) VALUES (1), (2)").is("ok: 2 rows affected (last_insert_rowid=32)");
    client.write("UPDATE n SET v = 2 WHERE id = 999").is("ok: 0 rows affected");
}

#[test]
fn additions_larger_than_the_page_cache_are_counted_right_in_rollback_mode() {
    let bench = Bench::with(TABLES);
    bench.sql("ALTER TABLE n ADD COLUMN pad TEXT");
    let mut client = Server::on(&bench).flags(&["--max-update-rows", "5"]).start();
    let many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 20000)";
    client
        .write(&format!("{many} INSERT INTO n(v, pad) SELECT x, printf('%.*c', 500, 'x') FROM c"))
        .is("ok: 20000 rows affected (last_insert_rowid=20030)");
    client
        .write(&format!(
            "{many} REPLACE INTO n(id, v, pad) SELECT x + 20024, x, printf('%.*c', 500, 'x') FROM c"
        ))
        .fails(&["would overwrite 6 existing rows"]);
    client
        .write(&format!(
            "{many} REPLACE INTO n(id, v, pad) SELECT x + 20025, x, printf('%.*c', 500, 'x') FROM c"
        ))
        .ok();
    assert_eq!(bench.query("SELECT count(*), max(id) FROM n"), "40025|40025");
}
