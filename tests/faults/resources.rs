//! What runs out or goes away under a running server: room on the disk, descriptors, rights, the file itself. Each is an
//! error that says what to do; reads go on where they can, nothing is half done, and afterwards all goes on.

use crate::chain;
use crate::support::{Answer, Bench, Client, Server, children_of, kill, wait_until};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

/// The tools that write, each with arguments.
fn writers() -> [(&'static str, serde_json::Value); 6] {
    [
        ("write_query", json!({"query": "INSERT INTO notes(title) VALUES ('x')"})),
        ("append_event", json!({"content": "x"})),
        ("checkpoint", json!({"summary": "x"})),
        ("create_view", json!({"name": "v", "select_sql": "SELECT 1 AS one"})),
        ("destructive_query", json!({"query": "DELETE FROM notes WHERE id = 2", "reason": "x"})),
        ("snapshot", json!({"reason": "x"})),
    ]
}

/// A bench whose database two kinds of worker have open.
fn served(bench: &Bench, flags: &[&str]) -> Client {
    let mut client = Server::on(bench).flags(flags).start();
    client.write("INSERT INTO notes(title) VALUES ('first')").ok();
    client.is_alive();
    client
}

fn set_descriptors(pid: u32, most: Option<u64>) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap());
    prlimit(pid, Resource::Nofile, Rlimit { current: most, maximum: Some(4096) }).unwrap();
}

#[test]
fn without_descriptors_reads_go_on_and_errors_say_why() {
    for mode in ["WAL", "DELETE"] {
        let bench = Bench::notes();
        bench.sql(&format!("PRAGMA journal_mode = {mode}"));
        let mut client = served(&bench, &[]);
        let open = std::fs::read_dir(format!("/proc/{}/fd", client.pid())).unwrap().count() as u64;
        set_descriptors(client.pid(), Some(open));
        let answer = client.call("snapshot", json!({"reason": "x"}));
        answer.fails_as("SNAPSHOT_FAILED", &["Too many open files", "raise `ulimit -n`"]);
        let answer = client.destroy("DELETE FROM notes");
        answer.fails_as("SNAPSHOT_FAILED", &["Too many open files", "nothing was run"]);
        for _ in 0..5 {
            client.is_alive();
        }
        let append = client.call("append_event", json!({"content": "x"}));
        assert!(!append.failed || append.text.contains("`ulimit -n`"), "{}", append.text);
        set_descriptors(client.pid(), Some(1024));
        client.destroy("DELETE FROM notes WHERE id = 1").ok();
        client.call("append_event", json!({"content": "afterwards"})).ok();
        let failed = "SELECT count(*) FROM query_errors WHERE error LIKE '%Too many open files%'";
        assert!(wait_until(|| bench.query(failed) == "2"), "{}", bench.query(failed));
        assert_eq!(chain::fault(&bench.open()), None);
    }
}

#[test]
fn without_processes_reads_go_on_and_errors_say_why() {
    let bench = Bench::notes();
    // A user of its own: the limit counts all processes of one.
    let mut client = as_user(&bench, &[], NOBODY - 1);
    // By the same user: for another's processes one needs a right that a container's superuser lacks.
    let set = |most: u64, pid: u32| {
        let mut command = std::process::Command::new("prlimit");
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY - 1).gid(NOBODY - 1);
        }
        command.args(["--pid", &pid.to_string(), &format!("--nproc={most}:1024")]);
        command.status().is_ok_and(|status| status.success())
    };
    if !set(1024, client.pid()) {
        eprintln!("SKIPPED: there is no prlimit(1) of util-linux");
        return;
    }
    assert!(set(1, client.pid()));
    let words = ["raise `ulimit -u`"];
    client.call("snapshot", json!({"reason": "x"})).fails_as("SNAPSHOT_FAILED", &words);
    client.destroy("DELETE FROM notes").fails_as("SNAPSHOT_FAILED", &["nothing was run"]);
    for _ in 0..5 {
        client.is_alive();
    }
    client.write("INSERT INTO notes(title) VALUES ('x')").ok();
    client.call("append_event", json!({"content": "x"})).ok();
    let verified = client.call("verify_chain", json!({}));
    assert!(!verified.failed || verified.text.contains("thread"), "{}", verified.text);
    client.is_alive();
    assert!(set(1024, client.pid()));
    client.destroy("DELETE FROM notes WHERE id = 1").ok();
    assert_eq!(client.call("verify_chain", json!({})).json()["ok"], true);
    client.close();
    assert_eq!(chain::fault(&bench.open()), None);
}

/// What must be true once the file is not the server's any more.
#[track_caller]
fn nothing_works(client: &mut Client, words: &[&str]) {
    for (tool, arguments) in writers() {
        client.call(tool, arguments).fails_as("FILE_GONE", words);
    }
    client.read("SELECT 1 AS alive").fails_as("FILE_GONE", words);
    for tool in ["verify_chain", "get_resume_context", "list_tables", "list_snapshots"] {
        client.call(tool, json!({})).fails_as("FILE_GONE", words);
    }
}

#[test]
fn nothing_is_written_into_a_file_that_was_deleted_or_replaced() {
    for mode in ["WAL", "DELETE"] {
        let bench = Bench::notes();
        bench.sql(&format!("PRAGMA journal_mode = {mode}"));
        let mut client = served(&bench, &[]);
        client.read("SELECT count(*) AS n FROM query_log").ok();
        let aside = bench.folder().join("aside.db");
        std::fs::rename(bench.path(), &aside).unwrap();
        nothing_works(&mut client, &["is gone: it was deleted or moved", "move it back"]);
        assert!(!bench.path().exists(), "no new file is made");
        // Another file in its place, which nobody touches.
        let other = rusqlite::Connection::open(bench.folder().join("other.db")).unwrap();
        other.execute_batch("CREATE TABLE notes(id, title); INSERT INTO notes VALUES (7, 'theirs')").unwrap();
        drop(other);
        std::fs::rename(bench.folder().join("other.db"), bench.path()).unwrap();
        let theirs = std::fs::read(bench.path()).unwrap();
        nothing_works(&mut client, &["another file is at", "start the server again"]);
        assert_eq!(std::fs::read(bench.path()).unwrap(), theirs);
        let said = client.stderr();
        assert_eq!(said.matches("was deleted or moved while").count(), 1, "said once: {said}");
        // The old one is put back: all goes on, and what was called meanwhile is logged.
        std::fs::rename(&aside, bench.path()).unwrap();
        client.write("INSERT INTO notes(title) VALUES ('after')").ok();
        client.call("append_event", json!({"content": "after"})).ok();
        client
            .read("SELECT count(*) AS n FROM query_log WHERE error LIKE '%while it was served%'")
            .is("n\n22\n# 1 rows");
        let (_, ended) = client.close_with_stderr();
        assert!(ended.status.success());
        assert_eq!(bench.query("SELECT group_concat(title) FROM notes WHERE id > 3"), "first,after");
        assert_eq!(chain::fault(&bench.open()), None);
    }
}

#[test]
fn nothing_is_written_into_a_folder_that_was_moved_or_replaced() {
    let bench = Bench::notes();
    let (folder, aside) = (bench.folder().join("here"), bench.folder().join("aside"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::rename(bench.path(), folder.join("memory.db")).unwrap();
    let mut client = Server::at(&folder.join("memory.db")).start();
    client.write("INSERT INTO notes(title) VALUES ('first')").ok();
    client.is_alive();
    std::fs::rename(&folder, &aside).unwrap();
    nothing_works(&mut client, &["is gone: it was deleted or moved"]);
    std::fs::create_dir(&folder).unwrap();
    nothing_works(&mut client, &["is gone: it was deleted or moved"]);
    std::fs::copy(aside.join("memory.db"), folder.join("memory.db")).unwrap();
    nothing_works(&mut client, &["another file is at"]);
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["memory.db"], "nothing is made beside it");
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::rename(&aside, &folder).unwrap();
    client.write("INSERT INTO notes(title) VALUES ('after')").ok();
    client.destroy("DELETE FROM notes WHERE id = 1").ok();
    client.call("verify_chain", json!({})).ok();
    client.close();
    assert_eq!(chain::fault(&chain::open(&folder.join("memory.db"))), None);
}

#[test]
fn a_file_that_is_only_read_is_not_read_once_it_is_gone_or_another() {
    let ways: [&[&str]; 3] =
        [&["--profile", "explorer"], &["--profile", "explorer", "--immutable"], &["--read-only"]];
    for flags in ways {
        let bench = Bench::notes();
        bench.sql("PRAGMA journal_mode = DELETE");
        let mut client = Server::on(&bench).flags(flags).start();
        let (query, argument) =
            if flags[0] == "--profile" { ("run_query", "sql") } else { ("read_query", "query") };
        let look =
            |client: &mut Client| client.call(query, json!({argument: "SELECT count(*) AS n FROM notes"}));
        look(&mut client).ok();
        let aside = bench.folder().join("aside.db");
        std::fs::rename(bench.path(), &aside).unwrap();
        look(&mut client).fails_as("FILE_GONE", &["is gone: it was deleted or moved"]);
        client.call("list_tables", json!({})).fails_as("FILE_GONE", &["move it back"]);
        client.call("describe_table", json!({"table": "notes"})).fails_as("FILE_GONE", &["move it back"]);
        std::fs::copy(&aside, bench.path()).unwrap();
        look(&mut client).fails_as("FILE_GONE", &["another file is at"]);
        std::fs::rename(&aside, bench.path()).unwrap();
        look(&mut client).ok();
        let (_, ended) = client.close_with_stderr();
        assert!(ended.status.success(), "{flags:?}");
    }
}

#[test]
fn a_deleted_wal_is_noticed_and_its_changes_are_kept_at_the_end() {
    let bench = Bench::with("PRAGMA journal_mode = WAL; CREATE TABLE notes(id INTEGER PRIMARY KEY, title)");
    let mut client = served(&bench, &[]);
    client.call("append_event", json!({"content": "in the WAL"})).ok();
    std::fs::remove_file(bench.folder().join("memory.db-wal")).unwrap();
    client.call("append_event", json!({"content": "x"})).fails_as("FILE_GONE", &["-wal", "end this server"]);
    client.write("INSERT INTO notes(title) VALUES ('x')").fails_as("FILE_GONE", &["-wal"]);
    let (_, ended) = client.close_with_stderr();
    assert!(ended.status.success());
    assert_eq!(bench.query("SELECT content FROM memory_events"), "in the WAL");
    assert_eq!(bench.query("SELECT title FROM notes"), "first");
    assert_eq!(chain::fault(&bench.open()), None);
}

#[test]
fn a_deleted_database_is_left_alone_by_the_server_s_end() {
    let bench = Bench::notes();
    let client = served(&bench, &[]);
    std::fs::remove_file(bench.path()).unwrap();
    let (_, ended) = client.close_with_stderr();
    assert!(ended.status.success());
    assert!(!bench.path().exists());
}

fn permit(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// An unprivileged user, where the tests run as the superuser, whom rights do not bind.
const NOBODY: u32 = 65534;

fn as_nobody(bench: &Bench, flags: &[&str]) -> Client {
    as_user(bench, flags, NOBODY)
}

fn as_user(bench: &Bench, flags: &[&str], user: u32) -> Client {
    if !rustix::process::geteuid().is_root() {
        return served(bench, flags);
    }
    for path in [bench.folder(), bench.path()] {
        std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
    }
    let mut client = Server::on(bench).flags(flags).under_user(user).start();
    client.write("INSERT INTO notes(title) VALUES ('first')").ok();
    client.is_alive();
    client
}

#[test]
fn a_folder_or_file_made_read_only_is_an_error_that_says_so() {
    for mode in ["WAL", "DELETE"] {
        let bench = Bench::notes();
        bench.sql(&format!("PRAGMA journal_mode = {mode}"));
        let mut client = as_nobody(&bench, &[]);
        // What is in the middle of a commit just now would be cut off, and in rollback mode nobody could read then.
        assert!(wait_until(|| bench.query("SELECT count(*) FROM query_log") == "2"));
        permit(bench.folder(), 0o500);
        client
            .destroy("DELETE FROM notes")
            .fails_as("SNAPSHOT_FAILED", &["Permission denied", "--snapshot-dir"]);
        if mode == "DELETE" {
            // No journal can be made.
            for (tool, arguments) in writers().into_iter().take(3) {
                client.call(tool, arguments).fails(&["writ"]);
            }
        }
        client.is_alive();
        permit(bench.folder(), 0o700);
        permit(bench.path(), 0o400);
        // What is open stays writable; a new worker cannot open the file.
        for child in children_of(client.pid()) {
            kill(child);
        }
        assert!(wait_until(|| children_of(client.pid()).is_empty()));
        client.write("INSERT INTO notes(title) VALUES ('x')").fails(&["writ"]);
        client.is_alive();
        permit(bench.path(), 0o600);
        client.write("INSERT INTO notes(title) VALUES ('after')").ok();
        client.destroy("DELETE FROM notes WHERE id = 1").ok();
        client.close();
        assert_eq!(chain::fault(&bench.open()), None);
    }
}

#[test]
fn without_its_snapshot_folder_nothing_is_destroyed() {
    let bench = Bench::notes();
    let folder = bench.folder().join("elsewhere");
    let mut client = served(&bench, &["--snapshot-dir", folder.to_str().unwrap()]);
    client.destroy("DELETE FROM notes WHERE id = 1").ok();
    std::fs::remove_dir_all(&folder).unwrap();
    // A folder that is gone is made again; a file in its place is not removed.
    client.destroy("DELETE FROM notes WHERE id = 2").ok();
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "mine").unwrap();
    let words = ["is in the way of the snapshot folder", "move it away", "nothing was run"];
    client.destroy("DELETE FROM notes").fails_as("SNAPSHOT_FAILED", &words);
    client.call("snapshot", json!({"reason": "x"})).fails_as("SNAPSHOT_FAILED", &words[..2]);
    assert_eq!(std::fs::read_to_string(&folder).unwrap(), "mine");
    client.is_alive();
    assert_eq!(bench.query("SELECT count(*) FROM notes"), "2");
}

#[test]
fn what_a_file_has_behind_its_last_page_is_not_copied() {
    let bench = Bench::notes();
    bench.sql("PRAGMA journal_mode = DELETE");
    let mut client = served(&bench, &[]);
    let file = std::fs::File::options().write(true).open(bench.path()).unwrap();
    let length = file.metadata().unwrap().len();
    // As a damaged file may be: it takes no room on the disk, and a copy of it would take all there is.
    if file.set_len(8 << 40).is_err() {
        eprintln!("SKIPPED: this file system has no files of such a length");
        return;
    }
    let snapshot = client.destroy("DELETE FROM notes WHERE id = 1").snapshot();
    assert_eq!(std::fs::metadata(&snapshot).unwrap().len(), length);
    file.set_len(length).unwrap();
    client.destroy("DELETE FROM notes WHERE id = 2").ok();
    client.close();
    assert_eq!(chain::fault(&bench.open()), None);
}

#[test]
fn a_statement_that_wants_too_much_memory_is_an_error_and_the_next_one_runs() {
    let bench = Bench::notes();
    let mut client = served(&bench, &["--query-timeout", "60"]);
    for _ in 0..3 {
        client
            .read("SELECT hex(zeroblob(60000000)) || hex(zeroblob(60000000)) AS x")
            .fails_as("TOO_BIG", &["work on a part"]);
        client.is_alive();
        let insert = "INSERT INTO notes(title) SELECT group_concat(hex(zeroblob(20000000))) FROM notes";
        client.write(insert).fails_as("TOO_BIG", &[]);
        client.write("INSERT INTO notes(title) VALUES ('after')").ok();
    }
    assert_eq!(bench.query("PRAGMA integrity_check"), "ok");
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_not_the_end() {
    let bench =
        Bench::with("PRAGMA journal_mode = WAL; CREATE TABLE notes(id INTEGER PRIMARY KEY, title, body)");
    let mut client = served(&bench, &[]);
    let set = |most: Option<u64>| {
        for pid in children_of(client.pid()).into_iter().chain([client.pid()]) {
            let pid = Pid::from_raw(i32::try_from(pid).unwrap());
            prlimit(pid, Resource::Fsize, Rlimit { current: most, maximum: None }).unwrap();
        }
    };
    set(Some(100_000));
    let answer: Answer = client.write("INSERT INTO notes(body) VALUES (zeroblob(400000))");
    // An error of the write, in the worker too, which goes on.
    answer.fails(&["nothing was changed", "a limit on the size of files"]);
    client.is_alive();
    let mut refused = 0;
    for _ in 0..60 {
        let answer = client.call("append_event", json!({"content": "x".repeat(5000)}));
        if answer.failed {
            answer.has("a limit on the size of files");
            refused += 1;
        }
    }
    assert!(refused > 0, "the WAL never reached its limit");
    client.is_alive();
    for pid in children_of(client.pid()).into_iter().chain([client.pid()]) {
        let pid = Pid::from_raw(i32::try_from(pid).unwrap());
        prlimit(pid, Resource::Fsize, Rlimit { current: None, maximum: None }).unwrap();
    }
    client.call("append_event", json!({"content": "after"})).ok();
    client.write("INSERT INTO notes(body) VALUES (zeroblob(400000))").ok();
    client.close();
    let connection = bench.open();
    assert_eq!(chain::fault(&connection), None);
    assert_eq!(bench.query("SELECT count(*) FROM memory_events"), (61 - refused).to_string());
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_of_commands_that_end_at_once() {
    let bench = Bench::empty();
    // In units of 512 bytes: nothing of a new database fits, its file, its tables, an event with its log row.
    for (blocks, fits) in [(1, false), (8, false), (40, false), (4000, true)] {
        let path = bench.folder().join(format!("{blocks}.db"));
        let command = format!("ulimit -f {blocks}; exec \"$0\" call append_event --db \"$1\" content=hello");
        let ended = std::process::Command::new("sh")
            .args(["-c", &command, env!("CARGO_BIN_EXE_indelible")])
            .arg(&path)
            .output()
            .unwrap();
        let stderr = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(i32::from(!fits)), "{blocks}: {:?} {stderr}", ended.status);
        assert!(fits || stderr.contains("a limit on the size of files (`ulimit -f`)"), "{blocks}: {stderr}");
        // What did not fit is nowhere, and without the limit the same file is served.
        let mut client = Server::at(&path).start();
        client.call("append_event", json!({"content": "after"})).ok();
        client.close();
        assert_eq!(chain::fault(&chain::open(&path)), None);
    }
}
