//! What the server starts on, what it refuses with which words, and what it leaves untouched.

use crate::support::{Bench, Server};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

/// The server refuses to start, with exit status 1 and these words, and the folder stays as it is.
#[track_caller]
fn refused(bench: &Bench, words: &[&str]) {
    let before = bench.files();
    let (status, line) = Server::on(bench).flags(&["--busy-timeout", "0.1"]).refusal();
    assert_eq!(status, 1, "{line}");
    for word in words {
        assert!(line.contains(word), "no {word} in: {line}");
    }
    assert!(!line.contains("panicked"), "{line}");
    assert_eq!(bench.files(), before, "{line}");
}

#[test]
fn what_is_no_database_is_refused() {
    let folder = Bench::empty();
    std::fs::create_dir(folder.path()).unwrap();
    refused(&folder, &["is a directory"]);
    let text = Bench::empty();
    std::fs::write(text.path(), "this is a text, long enough to fill the header of a database ".repeat(40))
        .unwrap();
    refused(&text, &["is not a SQLite database"]);
    let noise = Bench::empty();
    let bytes: Vec<u8> = (0_u32..8192).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(noise.path(), bytes).unwrap();
    refused(&noise, &["looks encrypted"]);
    let below = Bench::named("file/memory.db");
    std::fs::write(below.folder().join("file"), "").unwrap();
    refused(&below, &["lies under something that is a file"]);
    let special = Bench::named("pipe");
    std::process::Command::new("mkfifo").arg(special.path()).status().unwrap();
    let (status, line) = Server::on(&special).refusal();
    assert!(status == 1 && line.contains("is not a regular file"), "{line}");
}

#[test]
fn a_damaged_database_is_refused_or_served_and_never_crashes_the_server() {
    let bench = Bench::notes();
    let mut bytes = std::fs::read(bench.path()).unwrap();
    bytes[100..200].fill(0xee);
    std::fs::write(bench.path(), bytes).unwrap();
    refused(&bench, &["damaged"]);
}

#[test]
fn a_locked_database_is_refused_and_left_alone() {
    let bench = Bench::notes();
    let holder = bench.open();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let (status, line) = Server::on(&bench).flags(&["--busy-timeout", "0.1"]).refusal();
    assert!(status == 1 && line.contains("is locked by another process"), "{line}");
    drop(holder);
    Server::on(&bench).start().is_alive();
}

#[test]
fn a_file_or_folder_that_may_not_be_written_is_refused() {
    // The superuser may write everything.
    if rustix::process::geteuid().is_root() {
        return;
    }
    let bench = Bench::notes();
    std::fs::set_permissions(bench.path(), PermissionsExt::from_mode(0o400)).unwrap();
    refused(&bench, &["read-only", "--read-only"]);
    std::fs::set_permissions(bench.path(), PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::set_permissions(bench.folder(), PermissionsExt::from_mode(0o500)).unwrap();
    refused(&bench, &["read-only", "journal"]);
    std::fs::set_permissions(bench.folder(), PermissionsExt::from_mode(0o700)).unwrap();
}

#[test]
fn tables_of_the_server_s_names_that_are_not_its_own_are_refused_by_name() {
    for (sql, words) in [
        ("CREATE TABLE memory_events(a, b)", "the table `memory_events` is not the server's"),
        ("CREATE VIEW query_log AS SELECT 1", "the view `query_log` has a name"),
        ("CREATE TABLE query_errors(a)", "the table `query_errors` has a name"),
        ("CREATE TABLE t(a); CREATE INDEX query_log_ts ON t(a)", "the index `query_log_ts` has a name"),
        (
            "CREATE TABLE t(a); CREATE TRIGGER memory_events_no_update AFTER INSERT ON t BEGIN SELECT 1; END",
            "the trigger `memory_events_no_update` has a name",
        ),
    ] {
        refused(&Bench::with(sql), &[words]);
    }
}

#[test]
fn no_database_and_a_read_only_start_on_nothing_are_refused() {
    let (status, line) = Server::bare().refusal();
    assert_eq!((status, line.as_str()), (2, "no database: give --db PATH, or set INDELIBLE_DB"));
    let bench = Bench::named("deep/memory.db");
    let (status, line) = Server::on(&bench).flags(&["--read-only"]).refusal();
    assert!(status == 1 && line.contains("does not exist"), "{line}");
    assert!(bench.files().is_empty());
}

#[test]
fn any_file_name_works_with_its_folders_created() {
    for name in [
        "deep/er/new.db",
        "a name with spaces.db",
        "what?.db",
        "a#b.db",
        "100%41.db",
        "file:odd?mode=ro",
        ":memory:",
        "žluťoučký 🐎.db",
        "it's \"quoted\".db",
        "-dash.db",
        "new\nline.db",
        "no_extension",
    ] {
        let bench = Bench::named(name);
        let mut client = Server::on(&bench).start();
        client.call("append_event", json!({"content": "hello"})).ok().starts("ok: event 1 appended");
        client.write("CREATE TABLE t(a)").ok();
        client.read("SELECT count(*) AS n FROM t").is("n\n0\n# 1 rows");
        let snapshot = client.destroy("DROP TABLE t");
        snapshot.ok();
        client.close();
        assert!(bench.path().is_file(), "{name:?}");
        assert_eq!(bench.query("SELECT content FROM memory_events"), "hello", "{name:?}");
        assert_eq!(bench.snapshots().len(), 1, "{name:?}");
        let base = bench.path().file_name().unwrap().to_str().unwrap();
        let copy = bench.snapshots().pop().unwrap();
        assert!(copy.file_name().unwrap().to_str().unwrap().starts_with(base), "{copy:?}");
    }
}

#[test]
fn a_relative_path_is_said_absolute_on_stderr() {
    let bench = Bench::named("x/memory.db");
    let mut client = Server::bare().in_folder(bench.folder()).flags(&["--db", "x/memory.db"]).start();
    client.is_alive();
    let expected = format!(
        "serving {}/x/memory.db on stdin and stdout, profile memory",
        bench.folder().canonicalize().unwrap().display()
    );
    assert!(client.stderr().contains(&expected), "{}", client.stderr());
}

#[test]
fn a_new_file_gets_wal_and_an_existing_one_keeps_its_mode() {
    let bench = Bench::empty();
    Server::on(&bench).start().read("PRAGMA journal_mode").is("journal_mode\nwal\n# 1 rows");
    for mode in ["delete", "wal", "truncate", "persist"] {
        let bench = Bench::notes();
        let kept = if mode == "wal" { "wal" } else { "delete" };
        bench.sql(&format!("PRAGMA journal_mode = {mode}"));
        let mut client = Server::on(&bench).start();
        client.read("PRAGMA journal_mode").is(&format!("journal_mode\n{kept}\n# 1 rows"));
        client.write("INSERT INTO notes(title) VALUES ('x')").ok();
        client.call("append_event", json!({"content": "x"})).ok();
        client.destroy("UPDATE notes SET score = 1").ok();
        client.close();
        assert_eq!(bench.query("PRAGMA journal_mode"), kept);
    }
}

#[test]
fn a_second_start_changes_no_byte_of_the_file() {
    let bench = Bench::notes();
    Server::on(&bench).start().close();
    let before = bench.files();
    Server::on(&bench).start().close();
    assert_eq!(bench.files(), before);
}

#[test]
fn an_empty_file_is_a_new_database() {
    let bench = Bench::empty();
    std::fs::write(bench.path(), "").unwrap();
    let mut client = Server::on(&bench).start();
    client.read("PRAGMA journal_mode").is("journal_mode\nwal\n# 1 rows");
    client.call("append_event", json!({"content": "x"})).ok();
}
