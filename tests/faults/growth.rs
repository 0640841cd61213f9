//! `--audit-keep`: the log does not grow without bound, and nothing of it is lost.

use crate::chain;
use crate::support::{Bench, Client, Server, wait_until};
use crate::{Dice, rounds, side_by_side};
use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A served file with this many old log rows, one an hour, the newest of them an hour old.
fn with_old_rows(rows: u32) -> Bench {
    let bench = Bench::with("PRAGMA journal_mode = WAL; CREATE TABLE t(v)");
    Server::on(&bench).start().close();
    bench.sql(&format!(
        "WITH RECURSIVE c(i) AS (SELECT {rows} UNION ALL SELECT i - 1 FROM c WHERE i > 1) \
         INSERT INTO query_log(ts, session, tool, query, ok, rows, duration_ms, detail) \
         SELECT strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-' || i || ' hours'), 'old', 'read_query', 'SELECT ' || i || ' -- \"ž\"', 1, 1, 0, NULL FROM c"
    ));
    bench
}

fn archives(bench: &Bench) -> Vec<PathBuf> {
    let folder = bench.folder().join("memory.db.log-archive");
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// What the chain says of archives, by their paths.
fn events(connection: &Connection) -> BTreeMap<PathBuf, Value> {
    let mut statement =
        connection.prepare("SELECT content FROM memory_events WHERE kind = 'indelible.trim'").unwrap();
    let contents = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    contents
        .map(|content| {
            let said: Value = serde_json::from_str(&content.unwrap()).unwrap();
            (PathBuf::from(said["archive"].as_str().unwrap()), said)
        })
        .collect()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every id of the log is in the table or in an archive that an event names, and that archive is as the event says.
#[track_caller]
fn nothing_is_lost(bench: &Bench, told: &str) -> BTreeSet<i64> {
    let connection = bench.open();
    assert_eq!(chain::fault(&connection), None, "{told}");
    let mut ids: BTreeSet<i64> =
        bench.query("SELECT id FROM query_log").lines().map(|line| line.parse().unwrap()).collect();
    for (path, said) in events(&connection) {
        let bytes = std::fs::read(&path).unwrap();
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(said["sha256"], digest, "{told}");
        assert_eq!(said["bytes"], bytes.len(), "{told}");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let rows = lines(&path);
        assert_eq!(
            (&rows[0]["id"], &rows[rows.len() - 1]["id"]),
            (&said["first_id"], &said["last_id"]),
            "{told}"
        );
        assert_eq!(said["rows"], rows.len(), "{told}");
        for row in rows {
            assert!(ids.insert(row["id"].as_i64().unwrap()), "{told}: {row} is in two places");
        }
    }
    let newest = ids.last().copied().unwrap_or(0);
    assert_eq!(ids, (1..=newest).collect(), "{told}: no id is missing");
    ids
}

fn trimmed(client: &mut Client, bench: &Bench) {
    let done = || bench.query("SELECT count(*) FROM memory_events WHERE kind = 'indelible.trim'") != "0";
    assert!(wait_until(done), "nothing was trimmed: {}", client.stderr());
    // A second one may follow at once.
    std::thread::sleep(Duration::from_millis(300));
    client.is_alive();
}

#[test]
fn rows_above_the_number_kept_go_into_a_file_that_the_chain_vouches_for() {
    let bench = with_old_rows(500);
    bench.sql("UPDATE t SET v = 1");
    let mut client = Server::on(&bench).flags(&["--audit-keep", "100"]).start();
    trimmed(&mut client, &bench);
    let left: i64 = bench.query("SELECT count(*) FROM query_log").parse().unwrap();
    assert!((90..=110).contains(&left), "{left}");
    let [archive] = &archives(&bench)[..] else { panic!("{:?}", archives(&bench)) };
    let rows = lines(archive);
    assert_eq!(
        rows[1],
        json!({"id": 2, "ts": rows[1]["ts"], "session": "old", "tool": "read_query", "query": "SELECT 499 -- \"ž\"",
               "ok": 1, "rows": 1, "error": null, "duration_ms": 0, "detail": null})
    );
    let ids = nothing_is_lost(&bench, "rows");
    // Ids go on rising, the table is append-only again, and the log knows of it.
    client.write("INSERT INTO t VALUES (1)").ok();
    let newest: i64 = bench.query("SELECT max(id) FROM query_log").parse().unwrap();
    assert!(newest > *ids.last().unwrap(), "{newest}");
    for sql in ["DELETE FROM query_log", "UPDATE query_log SET ok = 0"] {
        let error = bench.open().execute_batch(sql).unwrap_err().to_string();
        assert!(error.contains("query_log is append-only"), "{error}");
    }
    let logged =
        bench.query("SELECT rows, detail ->> 'archive' FROM query_log WHERE tool = 'audit_keep' AND ok");
    assert_eq!(logged, format!("{}|{}", rows.len(), archive.display()));
    assert_eq!(client.call("verify_chain", json!({})).json()["ok"], true);
    client.close();
    // A second start has nothing to do.
    let mut client = Server::on(&bench).flags(&["--audit-keep", "100"]).start();
    std::thread::sleep(Duration::from_millis(1500));
    client.is_alive();
    client.close();
    assert_eq!(archives(&bench).len(), 1);
}

#[test]
fn rows_older_than_the_days_kept_go_and_the_newest_row_stays() {
    let bench = with_old_rows(24 * 9);
    let mut client = Server::on(&bench).flags(&["--audit-keep", "7d"]).start();
    trimmed(&mut client, &bench);
    client.close();
    let [archive] = &archives(&bench)[..] else { panic!("{:?}", archives(&bench)) };
    let gone = lines(archive).len();
    assert!((24 * 2 - 1..=24 * 2 + 1).contains(&gone), "{gone}");
    nothing_is_lost(&bench, "days");
    // All rows are old: one stays, so that no id is given twice.
    let bench = with_old_rows(24 * 9);
    bench.sql("DROP TRIGGER query_log_no_update; UPDATE query_log SET ts = '2020-01-01T00:00:00Z'; CREATE TRIGGER query_log_no_update BEFORE UPDATE ON query_log BEGIN SELECT RAISE(ABORT, 'query_log is append-only'); END");
    let mut client = Server::on(&bench).flags(&["--audit-keep", "1d"]).start();
    trimmed(&mut client, &bench);
    client.close();
    let ids = nothing_is_lost(&bench, "all are old");
    assert!(ids.len() > 24 * 9);
}

#[test]
fn without_the_setting_and_within_it_nothing_is_trimmed() {
    let settings: [&[&str]; 3] = [&[], &["--audit-keep", "480"], &["--audit-keep", "21d"]];
    side_by_side(&settings, |flags| {
        let bench = with_old_rows(500);
        let mut client = Server::on(&bench).flags(flags).start();
        std::thread::sleep(Duration::from_millis(1600));
        client.is_alive();
        client.close();
        assert!(archives(&bench).is_empty(), "{flags:?}");
        assert_eq!(bench.query("SELECT count(*) FROM query_log WHERE session = 'old'"), "500");
    });
}

#[test]
fn a_trim_is_no_reason_for_the_next_one() {
    let bench = with_old_rows(500);
    let mut client = Server::on(&bench).flags(&["--audit-keep", "1"]).start();
    trimmed(&mut client, &bench);
    std::thread::sleep(Duration::from_millis(1500));
    client.close();
    let trims = bench.query("SELECT count(*) FROM memory_events WHERE kind = 'indelible.trim'");
    assert!(["1", "2"].contains(&trims.as_str()), "{trims}: what else came in meanwhile may go, and no more");
}

#[test]
fn an_agent_can_neither_trim_nor_say_that_something_was_trimmed() {
    let bench = with_old_rows(10);
    let mut client = Server::on(&bench).flags(&["--audit-keep", "1000"]).start();
    client
        .call("append_event", json!({"content": "{}", "kind": "indelible.trim"}))
        .fails_as("INVALID_ARGUMENTS", &["`kind`", "indelible."]);
    client.destroy("DELETE FROM query_log WHERE id = 1").fails_as("REFUSED", &[]);
    client.destroy("DROP TRIGGER query_log_no_delete").fails_as("REFUSED", &[]);
    client.close();
    nothing_is_lost(&bench, "refused");
}

#[test]
fn a_planted_trigger_on_the_log_keeps_it_from_being_trimmed_and_does_not_run() {
    let bench = with_old_rows(500);
    let mut client = Server::on(&bench).flags(&["--audit-keep", "100"]).start();
    bench.sql("CREATE TRIGGER planted AFTER DELETE ON query_log BEGIN INSERT INTO t VALUES ('planted'); END");
    assert!(wait_until(|| client.stderr().contains("the log was not trimmed")), "{}", client.stderr());
    client.is_alive();
    client.close();
    assert_eq!(bench.query("SELECT count(*) FROM t"), "0");
    assert_eq!(archives(&bench), [""; 0].map(PathBuf::from), "no file without an event");
    nothing_is_lost(&bench, "planted");
}

#[test]
fn two_servers_trim_one_log_and_snapshots_from_before_can_be_restored() {
    let bench = with_old_rows(500);
    let mut first = Server::on(&bench).start();
    let snapshot = first.call("snapshot", json!({"reason": "x"})).snapshot();
    first.write("INSERT INTO t VALUES (1)").ok();
    first.close();
    let mut servers = [0, 1].map(|_| Server::on(&bench).flags(&["--audit-keep", "100"]).start());
    for server in &mut servers {
        trimmed(server, &bench);
    }
    let name = snapshot.file_name().unwrap().to_str().unwrap();
    servers[0].call("restore_snapshot", json!({"name": name, "reason": "x"})).ok();
    assert_eq!(bench.query("SELECT count(*) FROM t"), "0");
    for server in servers {
        server.close();
    }
    nothing_is_lost(&bench, "two servers");
}

#[test]
fn a_trim_cut_off_at_any_moment_loses_nothing() {
    let (lanes, done) = ([0, 1, 2, 3], AtomicUsize::new(0));
    side_by_side(&lanes, |lane| {
        let mut dice = Dice::new().lane(*lane);
        for round in (0..rounds(12)).filter(|round| round % lanes.len() == *lane) {
            let bench = with_old_rows(3000);
            let mut client = Server::on(&bench).flags(&["--audit-keep", "100"]).start();
            for n in 0..4 {
                client.send_call("append_event", json!({"content": format!("{n}")}));
            }
            // It begins a second after the start.
            std::thread::sleep(Duration::from_millis(900) + Duration::from_micros(dice.below(500_000)));
            client.kill();
            done.fetch_add(usize::from(!events(&bench.open()).is_empty()), Ordering::Relaxed);
            nothing_is_lost(&bench, &dice.told(round));
            // The next one does it, and clears away what was left.
            let mut client = Server::on(&bench).flags(&["--audit-keep", "100"]).start();
            trimmed(&mut client, &bench);
            client.close();
            nothing_is_lost(&bench, &dice.told(round));
            for path in archives(&bench) {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                assert!(!name.starts_with('.'), "{}", dice.told(name));
            }
        }
    });
    let done = done.into_inner();
    eprintln!("{done} of {} trims were done when the server was killed", rounds(12));
}

#[test]
fn doctor_holds_archives_against_the_chain() {
    let bench = with_old_rows(500);
    let mut client = Server::on(&bench).flags(&["--audit-keep", "100"]).start();
    trimmed(&mut client, &bench);
    client.close();
    let look = || {
        let (_, text, _) = Server::on(&bench).flags(&["doctor", "--json"]).run();
        let report: Value = serde_json::from_str(&text).unwrap();
        let findings = report["findings"].as_array().unwrap().clone();
        let found: Vec<(String, String)> = findings
            .iter()
            .filter(|finding| finding["topic"] == "log archive")
            .map(|finding| {
                (finding["state"].as_str().unwrap().to_owned(), finding["text"].as_str().unwrap().to_owned())
            })
            .collect();
        found
    };
    let archive = archives(&bench).remove(0);
    let found = look();
    assert_eq!((found.len(), found[0].0.as_str()), (1, "ok"), "{found:?}");
    std::fs::write(archive.with_file_name("memory.db.20200101T000000.000Z.jsonl"), "").unwrap();
    let found = look();
    assert!(
        found.iter().any(|(state, text)| state == "note" && text.contains("no event names")),
        "{found:?}"
    );
    let text = std::fs::read_to_string(&archive).unwrap();
    std::fs::write(&archive, text.replacen("SELECT", "DELETE", 1)).unwrap();
    let found = look();
    assert!(
        found.iter().any(|(state, text)| state == "problem" && text.contains("not as it was")),
        "{found:?}"
    );
    std::fs::remove_file(&archive).unwrap();
    let found = look();
    assert!(found.iter().any(|(state, text)| state == "note" && text.contains("is not there")), "{found:?}");
}
