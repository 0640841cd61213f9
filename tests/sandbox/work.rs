//! What a worker must go on doing.

use crate::support::{Bench, Server, children_of};
use serde_json::json;
use std::path::Path;

/// More than the page cache and the sorter keep in memory.
const SPILLS: &str = "SELECT count(*) AS n FROM (SELECT DISTINCT printf('%.*c', 400, char(65 + x % 26)) || x AS s FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 60000) SELECT x FROM c) ORDER BY s DESC)";

/// Journal modes that files come in.
const MODES: [&str; 4] = ["wal", "delete", "persist", "truncate"];

#[test]
fn statements_that_spill_search_and_index_work_in_every_journal_mode() {
    for mode in MODES {
        let bench = Bench::with(&format!(
            "PRAGMA journal_mode = {mode}; CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT);
             CREATE VIRTUAL TABLE words USING fts5(body); CREATE VIRTUAL TABLE boxes USING rtree(id, a, b)"
        ));
        let temporary = tempfile::tempdir().unwrap();
        let mut client = Server::on(&bench).env("TMPDIR", temporary.path()).start();
        client.read(SPILLS).is("n\n60000\n# 1 rows");
        client.write("INSERT INTO words VALUES ('an apple a day')").ok();
        client.write("INSERT INTO boxes VALUES (1, 2.0, 3.0)").ok();
        client.write(&format!("INSERT INTO notes(title) {}", SPILLS.replace("AS n", ""))).ok();
        client.read("SELECT body FROM words WHERE words MATCH 'apple'").is("body\nan apple a day\n# 1 rows");
        client.read("SELECT id FROM boxes WHERE a > 1").is("id\n1\n# 1 rows");
        let large = "x".repeat(20_000_000);
        client
            .call("write_query", json!({"query": "INSERT INTO notes(title) VALUES (?)", "params": [large]}))
            .ok();
        client.read("SELECT length(title) AS n FROM notes WHERE id = 2").is("n\n20000000\n# 1 rows");
        client.write("CREATE INDEX by_title ON notes(title)").ok();
        client.call("destructive_query", json!({"query": "DELETE FROM notes", "reason": "test"})).ok();
        let name = bench.snapshots().last().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        client.call("restore_snapshot", json!({"name": name, "reason": "test"})).ok();
        client.read("SELECT count(*) AS n FROM notes").is("n\n2\n# 1 rows");
        assert_eq!(bench.query("PRAGMA integrity_check"), "ok", "{mode}");
    }
}

#[test]
fn temporary_files_have_a_private_folder_that_goes_with_the_server() {
    use std::os::unix::fs::MetadataExt;
    let bench = Bench::notes();
    let temporary = tempfile::tempdir().unwrap();
    let names = || -> Vec<_> {
        std::fs::read_dir(temporary.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let mut client = Server::on(&bench).env("SQLITE_TMPDIR", temporary.path()).start();
    assert!(names().is_empty(), "no worker yet");
    client.read(SPILLS).ok();
    let [folder] = names().try_into().unwrap_or_else(|found| panic!("{found:?}"));
    assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);
    client.kill();
    assert!(folder.is_dir(), "a killed server leaves it");
    let mut client = Server::on(&bench).env("SQLITE_TMPDIR", temporary.path()).start();
    client.read(SPILLS).ok();
    client.close();
    assert!(names().is_empty(), "its own is gone, and the one that was left: {:?}", names());
}

#[test]
fn a_database_behind_links_is_read_and_written() {
    for mode in MODES {
        let bench = Bench::named("real.db");
        bench.sql(&format!("PRAGMA journal_mode = {mode}; CREATE TABLE t(a)"));
        let links = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(bench.folder(), links.path().join("folder")).unwrap();
        std::os::unix::fs::symlink(links.path().join("folder/real.db"), links.path().join("link.db"))
            .unwrap();
        let mut client = Server::at(&links.path().join("link.db")).start();
        client.write("INSERT INTO t VALUES (1)").ok();
        client.read("SELECT a FROM t").is("a\n1\n# 1 rows");
        client.call("destructive_query", json!({"query": "DROP TABLE t", "reason": "test"})).ok();
        client.close();
        assert_eq!(bench.query("SELECT count(*) FROM sqlite_schema WHERE name = 't'"), "0", "{mode}");
    }
}

#[test]
fn other_files_of_the_folder_come_and_go() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let neighbour = bench.folder().join("neighbour");
    for round in 0..5 {
        std::fs::write(bench.folder().join("new"), round.to_string()).unwrap();
        std::fs::rename(bench.folder().join("new"), &neighbour).unwrap();
        client.write("INSERT INTO notes(title) VALUES ('x')").ok();
        client.read("SELECT count(*) AS n FROM notes").is(&format!("n\n{}\n# 1 rows", 4 + round));
        std::fs::remove_file(&neighbour).unwrap();
    }
}

#[test]
fn a_database_that_becomes_a_wal_under_a_reader_costs_one_call_at_most() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--profile", "explorer"]).start();
    let rows = |client: &mut crate::support::Client| {
        client.call("run_query", json!({"sql": "SELECT count(*) FROM notes"})).structured["rows"].clone()
    };
    assert_eq!(rows(&mut client), json!([[3]]));
    // Another program switches it, writes and goes: -wal and -shm go with it.
    bench.sql("PRAGMA journal_mode = wal; INSERT INTO notes(title) VALUES ('x')");
    if rows(&mut client) != json!([[4]]) {
        assert_eq!(rows(&mut client), json!([[4]]), "a new worker reads it");
    }
    // And one that stays.
    let other = bench.open();
    other.execute_batch("INSERT INTO notes(title) VALUES ('y')").unwrap();
    assert_eq!(rows(&mut client), json!([[5]]));
    drop(other);
    assert_eq!(rows(&mut client), json!([[5]]));
}

#[test]
fn a_reader_sees_what_others_write_to_a_wal_and_checkpoint() {
    let bench = Bench::with("PRAGMA journal_mode = wal; CREATE TABLE t(a); INSERT INTO t VALUES (0)");
    let mut client = Server::on(&bench).flags(&["--profile", "explorer"]).start();
    for round in 1..20 {
        bench.sql(&format!("INSERT INTO t VALUES ({round})"));
        if round % 5 == 0 {
            bench.sql("PRAGMA wal_checkpoint(TRUNCATE)");
        }
        let answer = client.call("run_query", json!({"sql": "SELECT max(a) FROM t"}));
        assert_eq!(answer.structured["rows"], json!([[round]]));
    }
    let worker = children_of(client.pid());
    assert_eq!(worker.len(), 1, "no worker had to be replaced");
}

#[test]
fn the_zone_of_this_machine_is_known_to_workers() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let sql = "SELECT datetime(1700000000, 'unixepoch', 'localtime')";
    // The environment does not reach workers, so neither may a TZ of this test's.
    if std::env::var_os("TZ").is_none() {
        let here = bench.query(sql);
        client.read(&format!("{sql} AS t")).is(&format!("t\n{here}\n# 1 rows"));
    }
}

#[test]
fn a_worker_has_no_descriptor_but_its_own() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client.read("SELECT 1").ok();
    let [worker] = children_of(client.pid()).try_into().unwrap();
    // As the superuser only: others may not look into a worker.
    let Ok(entries) = std::fs::read_dir(format!("/proc/{worker}/fd")) else { return };
    let open: Vec<_> = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()).collect();
    let is_own = |path: &Path| {
        path.starts_with(bench.folder()) || !path.is_absolute() || path == Path::new("/dev/null")
    };
    assert!(open.iter().all(|path| is_own(path)), "{open:?}");
}
