//! Files that cannot be read as they are: each is one line, or one error, that says what to do.

use crate::support::{Bench, Server};
use crate::{Desk, MUSIC};
use rusqlite::Connection;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

/// A user who owns nothing here.
const NOBODY: u32 = 65534;

#[track_caller]
fn refused(server: Server, words: &[&str]) {
    let (status, line) = server.flags(&["--profile", "explorer"]).refusal();
    assert_eq!(status, 1, "{line}");
    for word in words {
        assert!(line.contains(word), "no {word} in: {line}");
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// A database with the journal of a writer that was cut off in the middle of a transaction: both files as they
/// stand on the disk while one is under way, which is what a kill leaves of it.
fn with_hot_journal() -> Bench {
    let source = Bench::with(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, x); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 2000) INSERT INTO t SELECT x, printf('%.*c', 500, 'a') FROM c",
    );
    let writer: Connection = source.open();
    // A small cache makes SQLite write pages to the file before the end.
    writer.execute_batch("PRAGMA cache_size = 5; BEGIN; UPDATE t SET x = printf('%.*c', 500, 'b')").unwrap();
    let bench = Bench::empty();
    for ending in ["", "-journal"] {
        std::fs::copy(beside(source.path(), ending), beside(bench.path(), ending)).unwrap();
    }
    let bytes = std::fs::read(bench.path()).unwrap();
    assert!(bytes.windows(100).any(|part| part == [b'b'; 100]), "half a transaction is in the file");
    bench
}

#[test]
fn what_is_not_there_or_no_database_is_refused_and_left_alone() {
    for profile in [&[] as &[&str], &["--immutable"]] {
        let missing = Bench::named("deep/none.db");
        refused(Server::on(&missing).flags(profile), &["does not exist"]);
        assert!(missing.files().is_empty());
        let text = Bench::empty();
        std::fs::write(text.path(), "no database, but a text that is long enough ".repeat(100)).unwrap();
        let before = text.files();
        refused(Server::on(&text).flags(profile), &["is not a SQLite database"]);
        assert_eq!(text.files(), before);
        let folder = Bench::empty();
        std::fs::create_dir(folder.path()).unwrap();
        refused(Server::on(&folder).flags(profile), &["is a directory"]);
    }
    let bench = Bench::with(MUSIC);
    let holder = bench.open();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    refused(Server::on(&bench).flags(&["--busy-timeout", "0.1"]), &["is locked by another process"]);
}

#[test]
fn a_hot_journal_is_refused_at_the_start_with_what_to_do() {
    let bench = with_hot_journal();
    let before = bench.files();
    let words =
        ["was cut off", "rolled back", "open it once with a program that may write to it", "`sqlite3`"];
    refused(Server::on(&bench), &words);
    refused(
        Server::on(&bench).flags(&["--immutable"]),
        &["`-journal`", "--immutable would not see", "`sqlite3`"],
    );
    assert_eq!(bench.files(), before);
    // Doing so helps.
    assert_eq!(bench.query("SELECT count(*) FROM t WHERE x LIKE 'a%'"), "2000");
    assert_eq!(Desk::on(&bench).rows("SELECT count(*) FROM t"), json!([[2000]]));
}

#[test]
fn a_hot_journal_that_comes_up_later_is_an_error_until_it_is_rolled_back() {
    let broken = with_hot_journal();
    let bench = Bench::with("CREATE TABLE t(id INTEGER PRIMARY KEY, x)");
    let mut desk = Desk::on(&bench);
    desk.is_alive();
    assert_eq!(desk.rows("SELECT count(*) FROM t"), json!([[0]]));
    // The same file: a writer's changes, then its end.
    std::fs::write(bench.path(), std::fs::read(broken.path()).unwrap()).unwrap();
    std::fs::copy(beside(broken.path(), "-journal"), beside(bench.path(), "-journal")).unwrap();
    let words = ["cut off in the middle of a change", "a person must open the file once"];
    for (tool, arguments) in [
        ("run_query", json!({"sql": "SELECT count(*) FROM t"})),
        ("list_tables", json!({})),
        ("describe_table", json!({"table": "t"})),
        ("sample_rows", json!({"table": "t"})),
    ] {
        desk.call(tool, arguments).fails_as("SQL_ERROR", &words);
    }
    assert_eq!(bench.query("SELECT count(*) FROM t"), "2000");
    assert_eq!(desk.rows("SELECT count(*) FROM t WHERE x LIKE 'a%'"), json!([[2000]]));
}

#[test]
fn a_wal_with_changes_is_refused_with_immutable() {
    let bench = Bench::with(&format!("PRAGMA journal_mode = WAL;{MUSIC}"));
    let writer = bench.open();
    writer.execute_batch("INSERT INTO artists VALUES (3, 'Cy')").unwrap();
    refused(
        Server::on(&bench).flags(&["--immutable"]),
        &["`-wal`", "--immutable would not see", "leave --immutable out"],
    );
    drop(writer);
    assert_eq!(Desk::with(&bench, &["--immutable"]).rows("SELECT count(*) FROM artists"), json!([[3]]));
}

#[test]
fn a_wal_file_in_a_folder_that_cannot_be_written_says_what_helps() {
    let root = rustix::process::geteuid().is_root();
    if root && !runs_as_nobody() {
        eprintln!(
            "skipped: the superuser may write everywhere, and the program cannot be run as anybody else"
        );
        return;
    }
    let as_somebody = |server: Server| if root { server.under_user(NOBODY) } else { server };
    let mode = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    let bench = Bench::with(&format!("PRAGMA journal_mode = WAL;{MUSIC}"));
    mode(bench.path(), 0o444);
    mode(bench.folder(), 0o555);
    let before = bench.files();
    refused(
        as_somebody(Server::on(&bench)),
        &["WAL mode", "cannot be written", "make the folder writable", "--immutable"],
    );
    let mut desk = Desk::of(as_somebody(Server::on(&bench)).flags(&["--immutable"]));
    assert_eq!(desk.rows("SELECT count(*) FROM tracks"), json!([[60]]));
    desk.client.close();
    assert_eq!(bench.files(), before);
    mode(bench.folder(), 0o755);

    // In rollback mode nothing has to be written.
    let bench = Bench::with(MUSIC);
    mode(bench.path(), 0o444);
    mode(bench.folder(), 0o555);
    assert_eq!(Desk::of(as_somebody(Server::on(&bench))).rows("SELECT count(*) FROM tracks"), json!([[60]]));
    mode(bench.folder(), 0o755);
    mode(bench.path(), 0o000);
    refused(as_somebody(Server::on(&bench)), &["cannot open the database", "ermission denied"]);
}

/// Whether the program can be reached by somebody who is not the superuser.
fn runs_as_nobody() -> bool {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_indelible"));
    command.arg("--version").uid(NOBODY).gid(NOBODY);
    command.output().is_ok_and(|output| output.status.success())
}
