//! Which files the server opens, which it refuses and in what words, and what it makes in them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests may")]

use indelible::sqlite::{bootstrap, open};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SOON: Duration = Duration::from_millis(50);

fn start(path: &Path) -> Result<Connection, indelible::error::StartError> {
    let mut connection = open::for_server(path, SOON)?;
    bootstrap::bootstrap(&mut connection, path)?;
    Ok(connection)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn made_with(sql: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = folder();
    let path = folder.path().join("memory.db");
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    (folder, path)
}

fn text(connection: &Connection, sql: &str) -> String {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// The layout of the Python server's files.
const PYTHON: &str = "
    CREATE TABLE memory_events (id INTEGER PRIMARY KEY, ts TEXT NOT NULL, session TEXT NOT NULL,
      kind TEXT NOT NULL DEFAULT 'note', content TEXT NOT NULL, prev_hash TEXT NOT NULL, hash TEXT NOT NULL UNIQUE);
    CREATE TABLE memory_checkpoints (id INTEGER PRIMARY KEY, ts TEXT NOT NULL, session TEXT NOT NULL,
      summary TEXT NOT NULL, last_event_id INTEGER NOT NULL, head_hash TEXT NOT NULL);
    CREATE TRIGGER IF NOT EXISTS memory_events_no_update BEFORE UPDATE ON memory_events
      BEGIN SELECT RAISE(ABORT, 'memory_events is append-only: no update'); END;
    CREATE TRIGGER IF NOT EXISTS memory_events_no_delete BEFORE DELETE ON memory_events
      FOR EACH ROW BEGIN SELECT RAISE(ABORT, 'memory_events is append-only'); END;
    CREATE TRIGGER memory_checkpoints_no_update BEFORE UPDATE ON memory_checkpoints
      BEGIN SELECT RAISE(ABORT, 'memory_checkpoints is append-only'); END;
    CREATE TRIGGER memory_checkpoints_no_delete BEFORE DELETE ON memory_checkpoints
      BEGIN SELECT RAISE(ABORT, 'memory_checkpoints is append-only'); END;
    INSERT INTO memory_checkpoints VALUES
      (1, '2026-01-01T00:00:00Z', 's', 'ž', 0, '0000000000000000000000000000000000000000000000000000000000000000'),
      (2, '2026-01-02T00:00:00Z', 's', 'two', 0, '0000000000000000000000000000000000000000000000000000000000000000');
";

#[test]
fn a_new_file_gets_wal_and_all_objects_and_a_second_start_writes_nothing() {
    let folder = folder();
    let path = folder.path().join("deep/er/file:odd ?name#%41.db");
    let connection = start(&path).unwrap();
    assert_eq!(text(&connection, "PRAGMA journal_mode"), "wal");
    let objects: Vec<String> = connection
        .prepare("SELECT type || ' ' || name FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY 1")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let mut expected = vec!["index query_log_ts".to_owned(), "view query_errors".to_owned()];
    for table in ["memory_events", "memory_checkpoints", "query_log"] {
        expected.push(format!("table {table}"));
        expected.extend(["update", "delete", "replace"].map(|what| format!("trigger {table}_no_{what}")));
    }
    expected.sort();
    assert_eq!(objects, expected);
    assert!(
        text(&connection, "SELECT sql FROM sqlite_schema WHERE name = 'query_errors'")
            .contains("\n-- description: ")
    );
    drop(connection);
    let before = std::fs::read(&path).unwrap();
    drop(start(&path).unwrap());
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let left: Vec<_> =
        std::fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["file:odd ?name#%41.db"]);
}

#[test]
fn an_existing_file_keeps_its_journal_mode_and_its_tables() {
    let (_folder, path) = made_with("CREATE TABLE notes(a); INSERT INTO notes VALUES (1)");
    let connection = start(&path).unwrap();
    assert_eq!(text(&connection, "PRAGMA journal_mode"), "delete");
    assert_eq!(text(&connection, "SELECT count(*) || '' FROM notes"), "1");
}

#[test]
fn the_server_s_tables_are_append_only_by_every_spelling() {
    let folder = folder();
    let path = folder.path().join("memory.db");
    drop(start(&path).unwrap());
    let outside = Connection::open(&path).unwrap();
    outside
        .execute_batch(
            "INSERT INTO memory_events VALUES (1,'t','s','k','c','p','h');
             INSERT INTO memory_checkpoints VALUES (1,'t','s','x',1,'h','y');
             INSERT INTO query_log(ts,session,tool,ok,duration_ms) VALUES ('t','s','x',0,1)",
        )
        .unwrap();
    for (table, sql) in [
        ("memory_events", "UPDATE memory_events SET content = 'x'"),
        ("memory_events", "DELETE FROM memory_events"),
        ("memory_events", "INSERT OR REPLACE INTO memory_events VALUES (1,'t','s','k','x','p','h2')"),
        ("memory_events", "INSERT OR REPLACE INTO memory_events VALUES (2,'t','s','k','x','p','h')"),
        (
            "memory_events",
            "INSERT INTO memory_events VALUES (1,'t','s','k','x','p','h') ON CONFLICT DO UPDATE SET content = 'x'",
        ),
        ("memory_checkpoints", "UPDATE memory_checkpoints SET summary = 'x'"),
        ("memory_checkpoints", "DELETE FROM memory_checkpoints"),
        ("memory_checkpoints", "REPLACE INTO memory_checkpoints VALUES (1,'t','s','z',1,'h','y')"),
        ("query_log", "UPDATE query_log SET ok = 1"),
        ("query_log", "DELETE FROM query_log"),
        ("query_log", "REPLACE INTO query_log(id,ts,session,tool,ok,duration_ms) VALUES (1,'t','s','x',1,1)"),
    ] {
        let error = outside.execute_batch(sql).unwrap_err().to_string();
        assert_eq!(error, format!("{table} is append-only"), "{sql}");
    }
    assert_eq!(
        text(&outside, "SELECT content || (SELECT count(*) FROM query_errors) FROM memory_events"),
        "c1"
    );
}

#[test]
fn a_file_of_the_python_server_is_taken_over_once() {
    let (_folder, path) = made_with(PYTHON);
    let connection = start(&path).unwrap();
    let hash = text(&connection, "SELECT hash FROM memory_checkpoints WHERE id = 2");
    // Python: sha256(json.dumps([...], separators=(",", ":"), ensure_ascii=False).encode()), the second over the first's.
    assert_eq!(hash, "19b2e8a86f0261ae9ac06147bfc241eabd87fc017ab4fbe5ca1edecd258b25ed");
    assert_eq!(
        connection.execute_batch("UPDATE memory_checkpoints SET hash = 'x'").unwrap_err().to_string(),
        "memory_checkpoints is append-only"
    );
    drop(connection);
    // A NULL that appears later is a fault for verification to report, never to be filled.
    Connection::open(&path)
        .unwrap()
        .execute_batch("INSERT INTO memory_checkpoints VALUES (3,'t','s','x',0,'h',NULL)")
        .unwrap();
    let before = std::fs::read(&path).unwrap();
    drop(start(&path).unwrap());
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_trigger_that_was_dropped_is_made_again() {
    let folder = folder();
    let path = folder.path().join("memory.db");
    start(&path).unwrap().execute_batch("DROP TRIGGER query_log_no_delete").unwrap();
    let connection = start(&path).unwrap();
    assert_eq!(
        text(&connection, "SELECT count(*) || '' FROM sqlite_schema WHERE name = 'query_log_no_delete'"),
        "1"
    );
}

#[test]
fn what_is_not_the_server_s_is_refused_by_name_and_left_alone() {
    let full = {
        let folder = folder();
        let path = folder.path().join("memory.db");
        drop(start(&path).unwrap());
        let dump = Connection::open(&path).unwrap();
        let statements: Vec<String> = dump
            .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        statements.join(";\n") + ";\n"
    };
    for (sql, says) in [
        (
            "CREATE TABLE memory_events(a, b)".to_owned(),
            "the table `memory_events` is not the server's: it has the columns (a, b)",
        ),
        (
            "CREATE TABLE Query_Log(id INTEGER PRIMARY KEY)".into(),
            "the table `Query_Log` has a name that belongs to the server",
        ),
        ("CREATE VIEW memory_events AS SELECT 1".into(), "the view `memory_events` has a name"),
        ("CREATE TABLE query_errors(a)".into(), "the table `query_errors` has a name"),
        ("CREATE VIRTUAL TABLE query_log USING fts5(a)".into(), "`query_log` is a virtual table"),
        (
            "CREATE VIEW query_errors AS SELECT 1".into(),
            "the view `query_errors` is not as the server makes it",
        ),
        (
            format!("{full} CREATE TRIGGER spy AFTER INSERT ON query_log BEGIN DELETE FROM notes; END"),
            "the trigger `spy` on `query_log` is not the server's",
        ),
        (
            format!("{full} CREATE TRIGGER spy INSTEAD OF INSERT ON query_errors BEGIN SELECT 1; END"),
            "the trigger `spy` on `query_errors` is not the server's",
        ),
        (
            format!(
                "{full} DROP TRIGGER query_log_no_delete; CREATE TRIGGER query_log_no_delete BEFORE DELETE ON query_log BEGIN SELECT 1; END"
            ),
            "the trigger `query_log_no_delete` is not as the server makes it",
        ),
        (
            format!(
                "{full} DROP TRIGGER query_log_no_delete; CREATE TRIGGER query_log_no_delete BEFORE DELETE ON query_log WHEN 0 BEGIN SELECT RAISE(ABORT, 'x'); END"
            ),
            "the trigger `query_log_no_delete` is not as the server makes it",
        ),
        (
            format!("{full} DROP INDEX query_log_ts; CREATE INDEX query_log_ts ON query_log(tool)"),
            "the index `query_log_ts` is not as the server makes it",
        ),
        (
            format!("{full} CREATE INDEX bomb ON query_log(hex(zeroblob(100)))"),
            "the index `bomb` on `query_log`",
        ),
        (format!("{full} CREATE INDEX part ON query_log(tool) WHERE ok"), "the index `part` on `query_log`"),
        (full.replace("query TEXT", "query TEXT CHECK (length(query) < 9)"), "its definition says CHECK"),
        (
            full.replace("hash TEXT NOT NULL UNIQUE", "hash TEXT NOT NULL UNIQUE ON CONFLICT REPLACE"),
            "its definition says CONFLICT",
        ),
        (
            full.replace("detail TEXT", "detail TEXT GENERATED ALWAYS AS (tool)"),
            "its definition says GENERATED",
        ),
        (
            format!(
                "{PYTHON} CREATE TRIGGER spy AFTER UPDATE ON memory_checkpoints BEGIN DELETE FROM memory_events; END"
            ),
            "the trigger `spy` on `memory_checkpoints`",
        ),
    ] {
        let (folder, path) = made_with(&sql);
        let before = std::fs::read(&path).unwrap();
        let error = start(&path).expect_err(&sql);
        assert_eq!(error.exit, 1);
        assert!(error.message.contains(says), "{says}\n{}", error.message);
        assert!(!error.message.contains('\n'));
        assert_eq!(std::fs::read(&path).unwrap(), before, "{sql}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "{sql}");
    }
    // A plain index of a person's own does no harm.
    let (_folder, path) = made_with(&format!("{full} CREATE INDEX mine ON memory_events(kind)"));
    start(&path).unwrap();
}

#[test]
fn a_file_that_cannot_be_served_is_named_in_one_line_and_untouched() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("folder")).unwrap();
    std::fs::write(at("text"), "not a database, however long it may be\n".repeat(200)).unwrap();
    let mut noise = Vec::new();
    let mut state = 1_u64;
    while noise.len() < 8192 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        noise.push((state >> 56) as u8);
    }
    std::fs::write(at("noise"), &noise).unwrap();
    let holder = Connection::open(at("locked")).unwrap();
    holder.execute_batch("CREATE TABLE t(a); BEGIN EXCLUSIVE").unwrap();
    for (name, says) in [
        ("folder", "is a directory"),
        ("text", "is not a SQLite database; give"),
        ("text/under.db", "lies under something that is a file"),
        ("noise", "looks encrypted"),
        ("locked", "is locked by another process"),
    ] {
        let before = std::fs::read(at(name)).ok();
        let error = start(&at(name)).expect_err(name);
        assert!(error.exit == 1 && error.message.contains(says) && !error.message.contains('\n'), "{error}");
        assert_eq!(std::fs::read(at(name)).ok(), before, "{name}");
    }
    let error = open::for_reading(&at("absent"), SOON).unwrap_err();
    assert!(error.message.contains("does not exist"), "{error}");
    assert!(!at("absent").exists());
}

#[test]
fn reading_creates_no_table() {
    let (_folder, path) = made_with("CREATE TABLE notes(a)");
    let before = std::fs::read(&path).unwrap();
    let connection = open::for_reading(&path, SOON).unwrap();
    assert!(connection.execute_batch("CREATE TABLE t(a)").is_err());
    drop(connection);
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn servers_that_start_at_once_on_a_new_file_all_start() {
    for _ in 0..10 {
        let folder = folder();
        let path = folder.path().join("memory.db");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let patient = Duration::from_secs(10);
                    let mut connection = open::for_server(&path, patient).unwrap();
                    bootstrap::bootstrap(&mut connection, &path).unwrap();
                });
            }
        });
        assert_eq!(text(&start(&path).unwrap(), "PRAGMA journal_mode"), "wal");
    }
}

/// Root may write anything, so under root there is nothing to see here.
#[test]
fn a_file_or_folder_that_cannot_be_written_is_named_and_may_still_be_read() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        return;
    }
    let permit = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    let (folder, path) = made_with("CREATE TABLE notes(a)");
    permit(&path, 0o444);
    let error = start(&path).unwrap_err();
    assert!(error.message.contains("is read-only and the server keeps its log in it"), "{error}");
    open::for_reading(&path, SOON).unwrap();
    permit(&path, 0o644);
    permit(folder.path(), 0o555);
    let error = start(&path).unwrap_err();
    assert!(error.message.contains("is read-only and SQLite must write its journal there"), "{error}");
    open::for_reading(&path, SOON).unwrap();
    let error = start(&folder.path().join("new.db")).unwrap_err();
    assert!(error.message.contains("cannot create the database"), "{error}");
    let error = start(&folder.path().join("deep/new.db")).unwrap_err();
    assert!(error.message.contains("cannot create the folder"), "{error}");
    permit(folder.path(), 0o755);
    Connection::open(&path).unwrap().execute_batch("PRAGMA journal_mode=WAL").unwrap();
    permit(folder.path(), 0o555);
    let error = open::for_reading(&path, SOON).unwrap_err();
    assert!(error.message.contains("is in WAL mode and its folder"), "{error}");
    permit(folder.path(), 0o755);
    permit(&path, 0o000);
    let error = start(&path).unwrap_err();
    assert!(error.message.contains("ermission"), "{error}");
}
