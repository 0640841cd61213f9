//! `indelible demo` as a person runs it, and the parts it is made of.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use indelible::demo::client::Client;
use indelible::demo::store;
use indelible::sqlite::music_store::{self, Field};
use rusqlite::Connection;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_indelible");

fn command(temporary: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).env("TMPDIR", temporary).stdin(Stdio::null());
    command
}

fn indelible(temporary: &Path, arguments: &[&str]) -> Output {
    command(temporary, arguments).output().unwrap()
}

fn text(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

#[track_caller]
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// What stands at the beginning of each line that shows a call, and what its answer must show.
const SESSION: &[(&str, &str)] = &[
    ("initialize", "indelible "),
    ("tools/list", "15 tools: read_query, "),
    ("get_resume_context", "# no checkpoint yet"),
    ("list_tables", "tracks,table,0,"),
    ("describe_table", "# foreign_keys"),
    ("read_query", "Rock,"),
    ("create_view", "ok: view genre_sales created"),
    ("append_event", "ok: event 1 appended"),
    ("read_query", "error: DELETE is not allowed in read_query; use destructive_query"),
    ("destructive_query", "; snapshot:"),
    ("write_query", "and was rolled back"),
    ("write_query", "rows affected"),
    ("append_event", "ok: event 2 appended"),
    ("destructive_query", "error: `memory_events`"),
    ("checkpoint", "ok: checkpoint 1 written at event 2"),
    ("append_event", "ok: event 3 appended"),
    ("initialize", "indelible "),
    ("get_resume_context", "chain ok (3 events)"),
    ("read_query", "genre,sold,revenue"),
    ("read_query", "destructive_query,"),
    ("verify_chain", "\"ok\": true"),
    ("initialize", "indelible "),
    ("get_resume_context", "BROKEN at event 2"),
    ("verify_chain", "\"break_at_id\": 2"),
];

#[test]
fn the_session_is_shown_call_by_call_and_nothing_is_left_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let output = indelible(temporary.path(), &["demo"]);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(String::from_utf8(output.stderr.clone()).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
    let shown = text(&output);
    assert!(!shown.contains('\u{1b}'), "no colours without a terminal");
    let calls: Vec<&str> = shown.split("\n    -> ").skip(1).collect();
    let names: Vec<&str> = calls.iter().map(|call| call.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, SESSION.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for (call, (name, answer)) in calls.iter().zip(SESSION) {
        let answered = call.split_once("\n    <- ").unwrap().1;
        assert!(answered.contains(answer), "{name}: no {answer} in\n{answered}");
    }
    for words in
        ["scripted", "DROP TRIGGER memory_events_no_update", "claude mcp add indelible -- indelible --db"]
    {
        assert!(shown.contains(words), "no {words}");
    }
    // Only paths may be longer than a terminal is wide.
    for line in shown.lines().filter(|line| !line.contains("/indelible-demo-")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert_eq!(names_in(temporary.path()), Vec::<String>::new());
}

/// The explorer's.
const EXPLORING: &[(&str, &str)] = &[
    ("initialize", "indelible "),
    ("tools/list", "5 tools: list_tables, "),
    ("list_tables", "| tracks | table | 6 |"),
    ("describe_table", "| invoices_customer | customer_id, invoice_date |"),
    ("sample_rows", "| track | artist | genre |"),
    ("run_query", "3 rows; more rows exist (limit 3, maximum 500)"),
    ("run_query", "error: [NOT_SELECT] run_query takes one SELECT"),
    ("run_query", "error: [NOT_READ_ONLY] INSERT is not allowed in run_query"),
    ("explain_query", "Read from end to end: tracks."),
    ("explain_query", "No table is read from end to end."),
    ("resources/read", "\"name\": \"artists\""),
];

#[test]
fn an_explorer_s_session_ends_with_the_file_as_it_was() {
    let temporary = tempfile::tempdir().unwrap();
    let kept = tempfile::tempdir().unwrap();
    let database = kept.path().join("music.db");
    let db = database.to_str().unwrap();
    let output = indelible(temporary.path(), &["demo", "--profile", "explorer", "--db", db]);
    assert_eq!(String::from_utf8(output.stderr.clone()).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
    let shown = text(&output);
    let calls: Vec<&str> = shown.split("\n    -> ").skip(1).collect();
    let names: Vec<&str> = calls.iter().map(|call| call.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, EXPLORING.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for (call, (name, answer)) in calls.iter().zip(EXPLORING) {
        let answered = call.split_once("\n    <- ").unwrap().1;
        assert!(answered.contains(answer), "{name}: no {answer} in\n{answered}");
    }
    let file = std::fs::read(&database).unwrap();
    let digest: String =
        <sha2::Sha256 as sha2::Digest>::digest(&file).iter().map(|byte| format!("{byte:02x}")).collect();
    let measured: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("    == ")).collect();
    assert_eq!(measured, [digest.as_str(), &digest]);
    for line in shown.lines().filter(|line| !line.contains(db)) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // The file is as it was made, in rollback mode and alone in its folder; and what the closing tells works.
    let made = temporary.path().join("made.db");
    music_store::write(&made, &store::contents(false)).unwrap();
    assert!(std::fs::read(&made).unwrap() == file);
    assert_eq!(names_in(kept.path()), ["music.db"]);
    assert!(
        shown.contains("the agent changed nothing") && !shown.contains("only a copy was edited"),
        "{shown}"
    );
    let listed = indelible(temporary.path(), &["call", "list_tables", "--profile", "explorer", "--db", db]);
    assert!(text(&listed).contains("| track_list | view | 7 |"), "{}", text(&listed));
}

#[test]
fn a_kept_database_is_intact_and_is_never_overwritten() {
    let temporary = tempfile::tempdir().unwrap();
    let kept = tempfile::tempdir().unwrap();
    let database = kept.path().join("new folder").join("it's music.db");
    let db = database.to_str().unwrap();
    let output = indelible(temporary.path(), &["demo", "--db", db, "--profile", "memory"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text(&output).contains("only a copy was edited"), "{}", text(&output));
    let quoted = format!("indelible verify --db '{}'", db.replace('\'', r"'\''"));
    assert!(text(&output).contains(&quoted), "no {quoted} in\n{}", text(&output));
    assert_eq!(names_in(temporary.path()), Vec::<String>::new());

    // What the closing tells to do works, for as far as it is about the file.
    let verdict = indelible(temporary.path(), &["verify", "--db", db]);
    assert_eq!((verdict.status.code(), text(&verdict).contains("\"events\":3")), (Some(0), true));
    let sales = ["call", "read_query", "--db", db, "query=SELECT * FROM genre_sales"];
    assert!(text(&indelible(temporary.path(), &sales)).starts_with("year,genre,sold,revenue\n"));

    let before = std::fs::read(&database).unwrap();
    let again = indelible(temporary.path(), &["demo", "--db", db]);
    let expected = format!(
        "indelible: `{db}` exists and the demo overwrites nothing; give --db a path where nothing is yet, or remove it\n"
    );
    assert_eq!(String::from_utf8(again.stderr).unwrap(), expected);
    assert_eq!((again.status.code(), again.stdout.len()), (Some(1), 0));
    assert_eq!(std::fs::read(&database).unwrap(), before);
    assert_eq!(names_in(temporary.path()), Vec::<String>::new());
}

#[test]
fn settings_of_the_environment_do_not_reach_the_demo() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = command(temporary.path(), &["demo"]);
    command.env("INDELIBLE_READ_ONLY", "1").env("INDELIBLE_SNAPSHOTS", "0").env("INDELIBLE_DB", "/nowhere/x");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_reader_that_stops_reading_ends_the_demo_quietly() {
    let temporary = tempfile::tempdir().unwrap();
    let mut demo = command(temporary.path(), &["demo"]);
    let mut demo = demo.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(demo.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let output = demo.wait_with_output().unwrap();
    assert!(first.starts_with("Indelible gives"), "{first}");
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
    assert_eq!(names_in(temporary.path()), Vec::<String>::new());
}

#[test]
fn a_profile_without_a_demo_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let output = indelible(temporary.path(), &["demo", "--profile", "nothing"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with(
            "indelible: --profile `nothing`: it has no demo; there is memory, explorer, primitives"
        ),
        "{stderr}"
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_temporary_folder_that_cannot_be_made_is_an_error() {
    let output = indelible(Path::new("/dev/null/none"), &["demo"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with("indelible: cannot create the folder `/dev/null/none/indelible-demo-"),
        "{stderr}"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_music_store_has_the_same_bytes_every_time_and_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    for wal in [false, true] {
        let paths = ["a", "b"].map(|name| folder.path().join(format!("{name}-{wal}.db")));
        for path in &paths {
            music_store::write(path, &store::contents(wal)).unwrap();
        }
        let bytes = std::fs::read(&paths[0]).unwrap();
        assert!(bytes == std::fs::read(&paths[1]).unwrap(), "wal {wal}");
        // Read and write version: 2 is WAL (https://sqlite.org/fileformat.html, "The Database Header").
        assert_eq!(bytes[18..20], if wal { [2, 2] } else { [1, 1] });
        assert_eq!(names_in(folder.path()).iter().filter(|name| !name.ends_with(".db")).count(), 0);

        let connection = Connection::open(&paths[0]).unwrap();
        let one =
            |sql: &str| connection.query_row(sql, [], |row| row.get::<_, rusqlite::types::Value>(0)).unwrap();
        for (sql, expected) in [
            ("PRAGMA integrity_check", rusqlite::types::Value::from("ok".to_owned())),
            ("SELECT count(*) FROM pragma_foreign_key_check", 0.into()),
            ("SELECT count(*) FROM sqlite_schema WHERE type = 'view'", 1.into()),
            ("SELECT count(*) = (SELECT count(*) FROM tracks) FROM track_list", 1.into()),
            (
                "SELECT count(*) FROM invoices i WHERE total_cents IS NOT \
                 (SELECT sum(price_cents) FROM invoice_lines l WHERE l.invoice_id = i.invoice_id)",
                0.into(),
            ),
            (
                "SELECT count(*) FROM invoices JOIN customers USING (customer_id) WHERE invoice_date < joined",
                0.into(),
            ),
            (
                "SELECT max(invoice_date) <= '2025-12-31' AND min(invoice_date) >= '2023-01-01' FROM invoices",
                1.into(),
            ),
            ("SELECT count(DISTINCT title) > 500 FROM tracks", 1.into()),
        ] {
            assert_eq!(one(sql), expected, "{sql}");
        }
    }
}

#[test]
fn the_music_store_is_a_few_thousand_rows_and_quickly_made() {
    let folder = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let contents = store::contents(true);
    music_store::write(&folder.path().join("a.db"), &contents).unwrap();
    // It takes some 50 ms unoptimized; the bound is for a machine that is busy.
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let tables: Vec<&str> = contents.tables.iter().map(|table| table.table).collect();
    assert_eq!(tables, ["artists", "albums", "tracks", "customers", "invoices", "invoice_lines"]);
    let rows: usize = contents.tables.iter().map(|table| table.rows.len()).sum();
    assert!((3_000..6_000).contains(&rows), "{rows}");
}

#[test]
fn a_store_that_cannot_be_written_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let mut contents = store::contents(true);
    contents.tables[2].rows[0][1] = Field::Integer(-1);
    let error = music_store::write(&path, &contents).unwrap_err();
    assert!(error.message.contains("FOREIGN KEY constraint failed"), "{error}");
    assert_eq!(names_in(folder.path()), Vec::<String>::new());
}

#[test]
fn a_server_that_dies_or_talks_nonsense_is_named_with_what_it_said() {
    let rows = [
        ("echo boom >&2; exit 3", "the demo's server ended at `initialize` (exit status: 3); it said: boom"),
        ("echo hello; cat >/dev/null", "the demo's server wrote a line that is no JSON "),
        (
            r#"echo '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}'; cat >/dev/null"#,
            "the demo's server refused `initialize`: {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":",
        ),
    ];
    for (script, expected) in rows {
        let error = Client::start(Path::new("/bin/sh"), &["-c".into(), script.into()]).unwrap_err();
        assert!(error.message.starts_with(expected), "{script}: {error}");
        assert_eq!(error.exit, 1);
    }
    let error = Client::start(Path::new("/nowhere/indelible"), &[]).unwrap_err();
    assert!(error.message.starts_with("cannot start the server `/nowhere/indelible`: "), "{error}");
}

#[test]
fn the_primitives_are_shown_over_http_and_nothing_stays() {
    let folder = tempfile::tempdir().unwrap();
    let output = indelible(folder.path(), &["demo", "--profile", "primitives"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let shown = text(&output);
    for words in [
        "ok: group team made",
        "[precondition_failed]",
        "\"state\": \"acked\"",
        "[[2, 2000]]",
        "settings-fork-",
        "<- all is well",
        "[forbidden_tool]",
        "HTTP 401",
        "this URL is over",
    ] {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    assert!(names_in(folder.path()).is_empty());
}
