//! list_snapshots and restore_snapshot: the user's part as it was, the memory as it is, or nothing at all.

use crate::support::{Bench, Client, Server, children_of, is_open_elsewhere, query, wait_until};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The server's own names and what hangs on them.
const OURS: &str = "('memory_events', 'memory_checkpoints', 'query_log', 'query_errors')";

/// One of everything that a copy of rows would get wrong.
const EVERYTHING: &str = "
    PRAGMA foreign_keys = OFF;
    CREATE TABLE plain(a, b);
    INSERT INTO plain(rowid, a, b) VALUES (3, 'x', x'00ff'), (17, NULL, 1.5), (-4, '', -0.0), (9000000000, 7, '7');
    INSERT INTO plain VALUES (CAST(x'ff41' AS TEXT), 1e999);
    CREATE TABLE hidden_rowid(rowid, _rowid_, oid);
    INSERT INTO hidden_rowid VALUES (1, 2, 3), (1, 2, 3), (4, 5, 6);
    DELETE FROM hidden_rowid WHERE rowid = 4;
    CREATE TABLE counted(id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT NOT NULL DEFAULT 'd' COLLATE NOCASE UNIQUE);
    INSERT INTO counted VALUES (5, 'five'), (90, 'ninety');
    DELETE FROM counted WHERE id = 90;
    CREATE TABLE no_rowid(k TEXT, n INTEGER, v, PRIMARY KEY (n DESC, k)) WITHOUT ROWID;
    INSERT INTO no_rowid VALUES ('b', 1, 1), ('a', 1, 2), ('a', 2, 3);
    CREATE TABLE strict_one(i INTEGER, t TEXT, a ANY) STRICT;
    INSERT INTO strict_one VALUES (1, '1', '1'), (2, '2', 2);
    CREATE TABLE made(a INTEGER, b AS (a * 2), c TEXT AS (hex(a)) STORED UNIQUE);
    INSERT INTO made(a) VALUES (1), (2);
    CREATE TABLE parent(id INTEGER PRIMARY KEY, child REFERENCES child(id) DEFERRABLE INITIALLY DEFERRED);
    CREATE TABLE child(id INTEGER PRIMARY KEY, parent REFERENCES parent(id) ON DELETE CASCADE);
    INSERT INTO parent VALUES (1, 1);
    INSERT INTO child VALUES (1, 1), (2, 99);
    CREATE TABLE old_rows(a);
    INSERT INTO old_rows VALUES (1);
    ALTER TABLE old_rows ADD COLUMN late TEXT DEFAULT 'added';
    CREATE TABLE of_events(event REFERENCES memory_events(id), note);
    INSERT INTO of_events VALUES (1, 'about the first');
    CREATE INDEX partial ON plain(b) WHERE a IS NOT NULL;
    CREATE UNIQUE INDEX expression ON made(a + b);
    CREATE VIEW seen AS SELECT a, late FROM old_rows;
    CREATE VIEW broken AS SELECT * FROM gone;
    CREATE TRIGGER never_again BEFORE INSERT ON plain BEGIN SELECT RAISE(ABORT, 'no more'); END;
    CREATE TRIGGER through INSTEAD OF INSERT ON seen BEGIN INSERT INTO old_rows(a) VALUES (new.a); END;
    CREATE VIRTUAL TABLE docs USING fts5(title, body, tokenize = 'porter');
    INSERT INTO docs(rowid, title, body) VALUES (10, 'apples', 'running'), (20, 'pears', 'walking');
    INSERT INTO docs(docs, rank) VALUES ('automerge', 3);
    CREATE VIRTUAL TABLE outside USING fts5(a, content = 'plain', content_rowid = 'rowid');
    INSERT INTO outside(rowid, a) VALUES (3, 'x');
    CREATE VIRTUAL TABLE third USING fts3(t);
    INSERT INTO third VALUES ('fts three');
    CREATE VIRTUAL TABLE fourth USING fts4(t, tokenize=unicode61);
    INSERT INTO fourth VALUES ('fts four');
    CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1, +label);
    INSERT INTO boxes VALUES (1, 0, 10, 'one'), (2, 5, 15, 'two');
    ANALYZE;
    PRAGMA user_version = 77;
    PRAGMA application_id = 1234567;
";

/// Whatever can be changed about it.
const RUIN: &str = "
    DROP TRIGGER never_again;
    DELETE FROM plain WHERE rowid = 3;
    UPDATE plain SET b = 'overwritten';
    DROP TABLE hidden_rowid;
    INSERT INTO counted(v) VALUES ('ninety-one');
    UPDATE sqlite_sequence SET seq = 5000;
    DROP TABLE no_rowid;
    CREATE TABLE no_rowid(other);
    DROP VIEW broken;
    ALTER TABLE strict_one RENAME COLUMN t TO u;
    DROP INDEX expression;
    DELETE FROM made;
    PRAGMA foreign_keys = OFF;
    DROP TABLE parent;
    ALTER TABLE old_rows RENAME TO new_rows;
    DROP VIEW IF EXISTS seen;
    CREATE TABLE added(x);
    INSERT INTO added VALUES (zeroblob(300000));
    CREATE VIEW more AS SELECT 1;
    DELETE FROM docs WHERE rowid = 10;
    DROP TABLE fourth;
    DROP TABLE boxes;
    CREATE VIRTUAL TABLE boxes USING fts5(not_boxes);
    DELETE FROM sqlite_stat1;
    PRAGMA user_version = 1;
    PRAGMA application_id = 2;
";

/// Everything that is the user's: the schema in its order, every stored row with its rowid where it can be named,
/// answers of the virtual tables, the two numbers of the header.
#[track_caller]
fn users(path: &Path) -> String {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(20)).unwrap();
    let schema = format!(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE tbl_name NOT IN {OURS} ORDER BY rowid"
    );
    let mut content = exact(&connection, &schema).unwrap();
    for pragma in ["user_version", "application_id", "encoding", "page_size", "auto_vacuum"] {
        content.push_str(&exact(&connection, &format!("PRAGMA {pragma}")).unwrap());
    }
    let tables =
        format!("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN {OURS} ORDER BY name");
    for table in query(&connection, &tables).lines() {
        let own =
            if table.starts_with("sqlite_stat") { format!("WHERE tbl NOT IN {OURS}") } else { String::new() };
        let rows = exact(&connection, &format!("SELECT rowid, * FROM \"{table}\" {own}"))
            .or_else(|_| exact(&connection, &format!("SELECT * FROM \"{table}\" {own}")))
            .unwrap_or_else(|error| error.to_string());
        content.push_str(&format!("\n== {table}\n{rows}"));
    }
    for sql in [
        "SELECT rowid FROM docs WHERE docs MATCH 'run'",
        "SELECT rowid FROM outside WHERE outside MATCH 'x'",
        "SELECT * FROM third WHERE third MATCH 'three'",
        "SELECT * FROM fourth WHERE fourth MATCH 'four'",
        "SELECT id, label FROM boxes WHERE x0 < 1",
        "PRAGMA foreign_key_check",
    ] {
        let rows = exact(&connection, sql).unwrap_or_else(|error| error.to_string());
        content.push_str(&format!("\n== {sql}\n{rows}"));
    }
    content
}

/// Rows with the storage class of each value.
fn exact(connection: &Connection, sql: &str) -> rusqlite::Result<String> {
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut text = String::new();
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            match row.get_ref(column)? {
                ValueRef::Text(bytes) => {
                    text.push_str(&format!("text {:?}|", String::from_utf8_lossy(bytes)))
                }
                other => text.push_str(&format!("{other:?}|")),
            }
        }
        text.push('\n');
    }
    Ok(text)
}

/// The server's part: schema and rows, but for the rows behind these ids.
#[track_caller]
fn servers(path: &Path, events: i64, log: i64) -> String {
    let connection = Connection::open(path).unwrap();
    let schema =
        format!("SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE tbl_name IN {OURS} ORDER BY name");
    [
        schema,
        format!("SELECT * FROM memory_events WHERE id <= {events} ORDER BY id"),
        "SELECT * FROM memory_checkpoints ORDER BY id".to_owned(),
        format!("SELECT * FROM query_log WHERE id <= {log} ORDER BY id"),
    ]
    .iter()
    .map(|sql| exact(&connection, sql).unwrap())
    .collect()
}

fn number(bench: &Bench, sql: &str) -> i64 {
    bench.query(sql).parse().unwrap()
}

#[track_caller]
fn restore(client: &mut Client, name: impl AsRef<Path>) -> crate::support::Answer {
    let name = name.as_ref().to_str().unwrap();
    client.call("restore_snapshot", json!({"name": name, "reason": "a test of undo"}))
}

#[track_caller]
fn is_sound(path: &Path, events: i64) {
    let connection = Connection::open(path).unwrap();
    assert_eq!(query(&connection, "PRAGMA integrity_check"), "ok");
    let (status, said, error) = Server::bare().flags(&["verify", "--db", path.to_str().unwrap()]).run();
    assert_eq!(status, 0, "{said}{error}");
    let verdict: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(verdict["events"], events, "{verdict}");
}

#[test]
fn everything_of_the_user_s_comes_back_and_the_memory_stays_and_goes_on() {
    for mode in ["WAL", "DELETE"] {
        let bench = Bench::with(&format!("PRAGMA journal_mode = {mode}; CREATE TABLE first_of_all(a)"));
        let mut client = Server::on(&bench).start();
        client.call("append_event", json!({"content": "the first"})).ok();
        bench.sql(EVERYTHING);
        let before = users(bench.path());
        let snapshot = client.call("snapshot", json!({"reason": "before"})).ok().snapshot();
        assert_eq!(users(&snapshot), before);
        bench.sql(RUIN);
        let ruined = users(bench.path());
        assert_ne!(ruined, before);
        client.call("append_event", json!({"content": "in between"})).ok();
        client.call("checkpoint", json!({"summary": "pinned in between"})).ok();
        client.read("SELECT nope").fails(&["nope"]);
        let (events, log) = (
            number(&bench, "SELECT max(id) FROM memory_events"),
            number(&bench, "SELECT max(id) FROM query_log"),
        );
        assert_eq!(events, 2);
        let memory = servers(bench.path(), events, log);

        let answer = restore(&mut client, &snapshot);
        let name = snapshot.file_name().unwrap().to_str().unwrap();
        answer.ok().starts(&format!("ok: {name} restored (event 3); snapshot: /"));
        assert_eq!(users(bench.path()), before, "{mode}");
        assert_eq!(servers(bench.path(), events, log), memory, "{mode}");
        assert_eq!(bench.query("PRAGMA journal_mode"), mode.to_lowercase());
        let undo = answer.snapshot();
        assert_eq!(users(&undo), ruined, "{mode}");
        let event = bench.query("SELECT kind, content FROM memory_events WHERE id = 3");
        assert_eq!(
            event,
            format!(
                "restore|snapshot {name} restored; reason: a test of undo; what was there before: {}",
                undo.display()
            )
        );
        let log = "SELECT ok, json_extract(detail, '$.reason'), json_extract(detail, '$.restored'), json_extract(detail, '$.snapshot'), json_extract(detail, '$.event') FROM query_log WHERE tool = 'restore_snapshot'";
        assert_eq!(bench.query(log), format!("1|a test of undo|{name}|{}|3", undo.display()));
        is_sound(bench.path(), 3);

        // The server goes on as before: its own connections, its workers, the triggers that keep its tables.
        client.call("append_event", json!({"content": "after"})).ok().has("event 4");
        client.read("SELECT count(*) AS n FROM plain").is("n\n5\n# 1 rows");
        client
            .write("INSERT INTO counted(v) VALUES ('next')")
            .is("ok: 1 rows affected (last_insert_rowid=91)");
        client.write("INSERT INTO plain VALUES (1, 2)").fails(&["no more"]);
        let outsider = bench.open();
        for sql in [
            "UPDATE memory_events SET content = ''",
            "DELETE FROM query_log",
            "INSERT OR REPLACE INTO memory_checkpoints SELECT * FROM memory_checkpoints",
        ] {
            assert!(outsider.execute_batch(sql).unwrap_err().to_string().contains("is append-only"), "{sql}");
        }
        client.call("verify_chain", json!({})).has("\"ok\":true");
    }
}

#[test]
fn an_undo_can_be_undone_and_that_too() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--snapshots", "0"]).start();
    let full = client.call("snapshot", json!({"reason": "x"})).snapshot();
    client.destroy("DELETE FROM tags").ok();
    client.destroy("DELETE FROM notes").ok();
    let rows = "SELECT count(*) FROM notes";
    let first = restore(&mut client, &full).snapshot();
    assert_eq!(bench.query(rows), "3");
    // By its bare name.
    let second = restore(&mut client, first.file_name().unwrap()).snapshot();
    assert_eq!(bench.query(rows), "0");
    restore(&mut client, &second).ok();
    assert_eq!(bench.query(rows), "3");
    assert_eq!(bench.query("SELECT group_concat(kind) FROM memory_events"), "restore,restore,restore");
    is_sound(bench.path(), 3);
}

#[test]
fn a_destructive_call_is_undone_by_the_name_it_gave_though_rotation_is_tight() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--snapshots", "1"]).start();
    let snapshot = client.destroy("DROP TABLE tags").ok().snapshot();
    let undo = restore(&mut client, &snapshot).ok().snapshot();
    assert_eq!(bench.query("SELECT count(*) FROM tags"), "0");
    assert_eq!(bench.snapshots(), [snapshot, undo]);
}

#[test]
fn the_list_names_every_snapshot_and_whether_it_can_be_restored() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    client.call("list_snapshots", json!({})).is("name,kind,time,bytes,events,verdict\n# 0 rows");
    client.call("append_event", json!({"content": "one"})).ok();
    let first = client.destroy("DELETE FROM notes WHERE id = 3").snapshot();
    client.call("append_event", json!({"content": "two"})).ok();
    let second = client.call("snapshot", json!({"reason": "x"})).snapshot();
    let folder = first.parent().unwrap();
    std::fs::write(folder.join("notes.txt"), "not a snapshot").unwrap();
    std::fs::write(folder.join("memory.db.20200101T000000.000Z.auto.db"), "not a database").unwrap();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let size = |path: &Path| std::fs::metadata(path).unwrap().len();
    let time = |path: &Path| {
        let name = name(path);
        let stamp = name.split('.').skip(2).take(2).collect::<Vec<_>>().join(".");
        format!(
            "{}-{}-{}T{}:{}:{}",
            &stamp[..4],
            &stamp[4..6],
            &stamp[6..8],
            &stamp[9..11],
            &stamp[11..13],
            &stamp[13..]
        )
    };
    client.call("list_snapshots", json!({})).is(&format!(
        "name,kind,time,bytes,events,verdict\n\
         {},manual,{},{},2,ok\n\
         {},auto,{},{},1,ok\n\
         memory.db.20200101T000000.000Z.auto.db,auto,2020-01-01T00:00:00.000Z,14,,damaged: file is not a database\n\
         # 3 rows",
        name(&second), time(&second), size(&second), name(&first), time(&first), size(&first)
    ));
    // Looking leaves nothing beside them.
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 4);
    drop(client);
    let mut reader = Server::on(&bench).flags(&["--read-only"]).start();
    reader.call("list_snapshots", json!({})).ok().ends("# 3 rows");
    reader
        .call("restore_snapshot", json!({"name": name(&first), "reason": "x"}))
        .fails(&["restore_snapshot"]);
}

#[test]
fn a_name_reaches_no_other_file() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let snapshot = client.call("snapshot", json!({"reason": "x"})).snapshot();
    let (folder, name) = (snapshot.parent().unwrap(), snapshot.file_name().unwrap().to_str().unwrap());
    let elsewhere = bench.folder().join(name);
    std::fs::copy(&snapshot, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, folder.join("memory.db.20200101T000000.000Z.auto.db")).unwrap();
    std::fs::create_dir(folder.join("memory.db.20200102T000000.000Z.auto.db")).unwrap();
    std::fs::copy(&snapshot, folder.join("other.db.20200102T000000.000Z.auto.db")).unwrap();
    let before = bench.content();
    let folder_name = folder.file_name().unwrap().to_str().unwrap();
    for given in [
        format!("../{name}"),
        format!("./{name}"),
        format!("{name}/"),
        format!("{name}/."),
        format!("../{folder_name}/{name}"),
        format!("{folder_name}/{name}"),
        format!("{}/../{name}", folder.display()),
        format!("{}/../{folder_name}/{name}", folder.display()),
        elsewhere.display().to_string(),
        "/etc/passwd".to_owned(),
        bench.path().display().to_string(),
        format!("file:{}", snapshot.display()),
        "memory.db".to_owned(),
        "..".to_owned(),
        ".".to_owned(),
        "/".to_owned(),
        name.to_uppercase(),
        format!("{name}\u{0}"),
        format!("{name}\n"),
        "memory.db.20200101T000000.000Z.auto.db".to_owned(),
        "memory.db.20200102T000000.000Z.auto.db".to_owned(),
        "memory.db.20200103T000000.000Z.auto.db".to_owned(),
        "other.db.20200102T000000.000Z.auto.db".to_owned(),
        "x".repeat(100_000),
    ] {
        let answer = client.call("restore_snapshot", json!({"name": given, "reason": "x"}));
        answer.fails_as("INVALID_ARGUMENTS", &[]);
        assert!(answer.text.len() < 1500, "{}", answer.text);
    }
    for (arguments, words) in [
        (json!({"name": name, "reason": " \n"}), "`reason`"),
        (json!({"name": " ", "reason": "x"}), "`name`"),
        (json!({"name": name}), "`reason`"),
        (json!({"reason": "x"}), "`name`"),
    ] {
        client.call("restore_snapshot", arguments).fails_as("INVALID_ARGUMENTS", &[words]);
    }
    assert_eq!(bench.content(), before);
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 4, "no snapshot was made for a refusal");
}

/// A snapshot in the folder of `bench`, made by `make` from a real one of it.
fn planted(bench: &Bench, client: &mut Client, make: impl FnOnce(&Path)) -> PathBuf {
    let real = client.call("snapshot", json!({"reason": "x"})).snapshot();
    let path = real.with_file_name("memory.db.20200101T000000.000Z.auto.db");
    std::fs::copy(&real, &path).unwrap();
    make(&path);
    assert!(bench.path().exists());
    path
}

#[test]
fn a_damaged_snapshot_is_refused() {
    let run = |path: &Path, sql: &str| Connection::open(path).unwrap().execute_batch(sql).unwrap();
    type Damage<'a> = Box<dyn Fn(&Path) + 'a>;
    let damages: Vec<(&str, Damage<'_>)> = vec![
        (
            "noise in a page",
            Box::new(|path| {
                let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
                file.write_all_at(&[0xa5; 4096], 4096 * 2).unwrap();
            }),
        ),
        (
            "cut short",
            Box::new(|path| {
                let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
                file.set_len(4096 * 3).unwrap();
            }),
        ),
        ("a text", Box::new(|path| std::fs::write(path, "SELECT 1").unwrap())),
        ("empty", Box::new(|path| std::fs::write(path, "").unwrap())),
        (
            "a lost index entry",
            Box::new(move |path| {
                run(
                    path,
                    "PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = replace(sql, 'note_id', 'tag') WHERE name = 'tags_note'",
                );
            }),
        ),
        (
            "a schema that does not parse",
            Box::new(move |path| {
                run(
                    path,
                    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE (' WHERE name = 'tags'",
                );
            }),
        ),
    ];
    for (what, damage) in damages {
        let bench = Bench::notes();
        bench.sql("INSERT INTO tags(note_id, tag) VALUES (1, 'x'), (2, 'y')");
        let mut client = Server::on(&bench).start();
        client.call("append_event", json!({"content": "x"})).ok();
        let path = planted(&bench, &mut client, |path| damage(path));
        let before = bench.content();
        restore(&mut client, &path).fails_as("CORRUPT", &["nothing was restored", "is damaged ("]);
        assert_eq!(bench.content(), before, "{what}");
        assert_eq!(bench.snapshots().len(), 2, "{what}: nothing else was made or left");
        let (status, said, _) = Server::on(&bench)
            .flags(&["snapshots", "verify", path.file_name().unwrap().to_str().unwrap()])
            .run();
        assert_eq!((status, said.contains(": damaged: ")), (3, true), "{what}: {said}");
    }
}

#[test]
fn a_snapshot_of_another_database_is_refused() {
    let append =
        |client: &mut Client, text: &str| drop(client.call("append_event", json!({"content": text})));
    type Story = fn(&mut Client, &mut Client);
    let stories: &[(&str, Story, &str)] = &[
        (
            "other events",
            |ours, theirs| {
                ours.call("append_event", json!({"content": "a"})).ok();
                theirs.call("append_event", json!({"content": "b"})).ok();
            },
            "event 1 of the snapshot",
        ),
        (
            "more events than ours",
            |_, theirs| {
                theirs.call("append_event", json!({"content": "b"})).ok();
            },
            "event 1 of the snapshot",
        ),
        (
            "no events, other calls",
            |ours, theirs| {
                ours.read("SELECT 1").ok();
                theirs.read("SELECT 2").ok();
            },
            "log row 1 of the snapshot",
        ),
        (
            "only checkpoints",
            |_, theirs| {
                theirs.call("checkpoint", json!({"summary": "b"})).ok();
            },
            "checkpoint 1 of the snapshot",
        ),
    ];
    for (what, story, words) in stories {
        let (ours, theirs) = (Bench::notes(), Bench::notes());
        let (mut client, mut other) = (Server::on(&ours).start(), Server::on(&theirs).start());
        story(&mut client, &mut other);
        let foreign = other.call("snapshot", json!({"reason": "x"})).snapshot();
        let path = planted(&ours, &mut client, |path| {
            std::fs::copy(&foreign, path).unwrap();
        });
        append(&mut client, "later");
        let before = ours.content();
        restore(&mut client, &path).fails_as("REFUSED", &["is of another database", words]);
        assert_eq!(ours.content(), before, "{what}");
        assert_eq!(ours.snapshots().len(), 2, "{what}");
        client.call("list_snapshots", json!({})).has("another database: ");
    }
}

#[test]
fn a_snapshot_newer_than_the_file_is_refused() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let old = client.call("snapshot", json!({"reason": "x"})).snapshot();
    client.call("append_event", json!({"content": "x"})).ok();
    let new = client.call("snapshot", json!({"reason": "x"})).snapshot();
    client.close();
    // Somebody put an older copy in the file's place.
    std::fs::copy(&old, bench.path()).unwrap();
    let mut client = Server::on(&bench).start();
    restore(&mut client, &new).fails_as("REFUSED", &["another database"]);
}

#[test]
fn what_was_edited_into_a_snapshot_under_the_server_s_names_is_refused_or_not_used() {
    let refused = [
        "CREATE TRIGGER spy AFTER INSERT ON memory_events BEGIN DELETE FROM notes; END",
        "DROP TABLE query_log; CREATE VIEW query_log AS SELECT 1",
        "DROP VIEW query_errors; CREATE TABLE query_errors(a)",
        "DROP TABLE memory_events; CREATE VIRTUAL TABLE memory_events USING fts5(id, ts, session, kind, content, prev_hash, hash)",
        "DROP TRIGGER query_log_no_delete; CREATE TRIGGER query_log_no_delete BEFORE DELETE ON query_log BEGIN DELETE FROM notes; END",
        "DROP INDEX query_log_ts; CREATE UNIQUE INDEX query_log_ts ON notes(id)",
    ];
    // What is not there is not needed: ours take its place.
    let taken = [
        "DROP TRIGGER memory_events_no_update; DROP VIEW query_errors; DROP INDEX query_log_ts",
        "DROP TABLE query_log; DROP VIEW query_errors",
        "DROP TABLE query_log; DROP TABLE memory_checkpoints; DROP TABLE memory_events; DROP VIEW query_errors",
        "DROP TRIGGER query_log_no_update; UPDATE query_log SET query = 'forged', error = 'forged'",
    ];
    let all = refused.iter().map(|sql| (*sql, true)).chain(taken.iter().map(|sql| (*sql, false)));
    for (sql, is_refused) in all {
        let bench = Bench::notes();
        let mut client = Server::on(&bench).start();
        client.call("append_event", json!({"content": "x"})).ok();
        client.read("SELECT 1").ok();
        let path = planted(&bench, &mut client, |path| {
            let snapshot = Connection::open(path).unwrap();
            snapshot.execute_batch(sql).unwrap();
            snapshot.execute_batch("UPDATE notes SET title = 'edited'").unwrap();
        });
        let log = number(&bench, "SELECT max(id) FROM query_log");
        let memory = servers(bench.path(), 1, log);
        let answer = restore(&mut client, &path);
        if is_refused {
            answer.fails_as("REFUSED", &["in the snapshot `memory.db.20200101T000000.000Z.auto.db`"]);
            assert_eq!(bench.query("SELECT title FROM notes WHERE id = 1"), "alpha", "{sql}");
        } else {
            answer.ok();
            assert_eq!(bench.query("SELECT title FROM notes WHERE id = 1"), "edited", "{sql}");
            is_sound(bench.path(), 2);
        }
        assert_eq!(servers(bench.path(), 1, log), memory, "{sql}");
        client.call("append_event", json!({"content": "y"})).ok();
        assert_eq!(bench.query("SELECT count(*) FROM notes"), "3", "{sql}");
    }
}

#[test]
fn a_snapshot_that_another_program_has_open_is_refused() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let path = client.call("snapshot", json!({"reason": "x"})).snapshot();
    let person = Connection::open(&path).unwrap();
    person.execute_batch("PRAGMA journal_mode = WAL; UPDATE notes SET title = 'in the WAL'").unwrap();
    restore(&mut client, &path).fails_as("REFUSED", &["`-wal`"]);
    drop(person);
    restore(&mut client, &path).ok();
    assert_eq!(bench.query("SELECT title FROM notes WHERE id = 2"), "in the WAL");
    assert_eq!(bench.query("PRAGMA journal_mode"), "delete");
}

#[test]
fn no_snapshot_of_what_is_there_no_restore() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).start();
    let path = client.call("snapshot", json!({"reason": "x"})).snapshot();
    bench.sql("DELETE FROM tags; DELETE FROM notes");
    let holder = bench.open();
    holder.execute_batch("BEGIN IMMEDIATE; INSERT INTO notes(title) VALUES ('held')").unwrap();
    drop(client);
    let mut client = Server::on(&bench).flags(&["--busy-timeout", "0.3"]).start();
    restore(&mut client, &path).fails_as("BUSY", &["nothing was restored", "lock"]);
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(bench.query("SELECT count(*) FROM notes"), "0");
    assert_eq!(bench.snapshots(), [path]);
}

#[test]
fn what_others_commit_during_restores_is_in_the_database_or_in_a_snapshot() {
    for mode in ["WAL", "DELETE"] {
        let bench = Bench::with(&format!(
            "PRAGMA journal_mode = {mode}; CREATE TABLE base(x); CREATE TABLE w(n INTEGER PRIMARY KEY)"
        ));
        bench.sql("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 2000) INSERT INTO base SELECT hex(randomblob(300)) FROM c");
        let mut client = Server::on(&bench).flags(&["--busy-timeout", "30", "--snapshots", "50"]).start();
        let base = client.call("snapshot", json!({"reason": "base"})).snapshot();
        let stop = Arc::new(AtomicBool::new(false));
        let (path, stopped) = (bench.path().to_path_buf(), Arc::clone(&stop));
        let outsider = std::thread::spawn(move || {
            let connection = Connection::open(path).unwrap();
            connection.busy_timeout(Duration::from_secs(30)).unwrap();
            let mut done = 0;
            while !stopped.load(Ordering::Relaxed) {
                done += 1;
                connection.execute("INSERT INTO w VALUES (?1)", [done]).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
            done
        });
        let stopped = Arc::clone(&stop);
        let mut second = Server::on(&bench).flags(&["--busy-timeout", "30"]).start();
        let appender = std::thread::spawn(move || {
            let mut appended = 0;
            while !stopped.load(Ordering::Relaxed) {
                {
                    let a = second.call("append_event", json!({"content": format!("event {appended}")}));
                    if a.failed {
                        panic!("{} {}", a.text, second.stderr())
                    }
                }
                second.read("SELECT count(*) FROM base").ok().starts("count(*)\n2000\n");
                appended += 1;
            }
            appended
        });
        let mut undos = Vec::new();
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(60));
            undos.push(restore(&mut client, &base).ok().snapshot());
        }
        stop.store(true, Ordering::Relaxed);
        let (written, appended) = (outsider.join().unwrap(), appender.join().unwrap());
        assert!(written > 4 && appended > 0, "{mode}: {written} {appended}");
        let mut found: Vec<i64> = Vec::new();
        for path in undos.iter().map(PathBuf::as_path).chain([bench.path()]) {
            let connection = Connection::open(path).unwrap();
            let numbers = query(&connection, "SELECT n FROM w");
            found.extend(numbers.lines().map(|line| line.parse::<i64>().unwrap()));
        }
        found.sort_unstable();
        assert_eq!(found, (1..=written).collect::<Vec<i64>>(), "{mode}: each is in one place");
        assert_eq!(number(&bench, "SELECT count(*) FROM memory_events WHERE kind = 'note'"), appended);
        is_sound(bench.path(), appended + 5);
    }
}

#[test]
fn a_kill_at_any_moment_leaves_the_old_or_the_new_state_and_a_whole_chain() {
    for mode in ["WAL", "DELETE"] {
        let bench =
            Bench::with(&format!("PRAGMA journal_mode = {mode}; CREATE TABLE t(a); CREATE INDEX i ON t(a)"));
        let fill = |rows: u32| {
            format!(
                "DELETE FROM t; WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT {rows}) INSERT INTO t SELECT {rows} || hex(randomblob(200)) FROM c"
            )
        };
        bench.sql(&fill(3000));
        let mut client = Server::on(&bench).start();
        client.call("append_event", json!({"content": "x"})).ok();
        let mut there = client.call("snapshot", json!({"reason": "x"})).snapshot();
        bench.sql(&fill(2000));
        drop(client);
        let state = || {
            bench
                .query("SELECT count(*) || '/' || min(substr(a, 1, 4)) || '/' || max(substr(a, 1, 4)) FROM t")
        };
        let (states, mut killed, mut seed) = (["3000/3000/3000", "2000/2000/2000"], 0, 88172645463325252_u64);
        for round in 0..14 {
            let before = state();
            let mut client = Server::on(&bench).flags(&["--snapshots", "40"]).start();
            client.is_alive();
            let workers = children_of(client.pid());
            let name = there.file_name().unwrap().to_str().unwrap().to_owned();
            let events = number(&bench, "SELECT count(*) FROM memory_events");
            client.send_call("restore_snapshot", json!({"name": name, "reason": "to be killed"}));
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            std::thread::sleep(Duration::from_millis(seed % 120));
            if round % 2 == 0 {
                // The whole server; its workers end with it.
                client.kill();
            } else {
                // The process that restores.
                for child in children_of(client.pid()).into_iter().filter(|child| !workers.contains(child)) {
                    let pid = Pid::from_raw(i32::try_from(child).unwrap()).unwrap();
                    killed += u32::from(kill_process(pid, Signal::KILL).is_ok());
                }
                client.close();
            }
            // Who is killed while it writes ends when the write is through.
            assert!(wait_until(|| !is_open_elsewhere(bench.path())));
            let after = state();
            assert!(states.contains(&after.as_str()), "{mode} {round}: {after}");
            let now = number(&bench, "SELECT count(*) FROM memory_events");
            let restored =
                number(&bench, "SELECT count(*) FROM query_log WHERE tool = 'restore_snapshot' AND ok");
            assert_eq!(now, 1 + restored, "{mode} {round}: the event and the log row come together");
            assert_eq!(
                after != before,
                now == events + 1,
                "{mode} {round}: with the state that they speak of"
            );
            is_sound(bench.path(), now);
            if after != before {
                // Go back and forth.
                there = bench.query("SELECT json_extract(detail, '$.snapshot') FROM query_log WHERE tool = 'restore_snapshot' AND ok ORDER BY id DESC LIMIT 1").into();
            }
        }
        assert!(killed > 0, "{mode}: no restore was hit");
    }
}

#[test]
fn a_cancelled_restore_restores_nothing() {
    let bench = Bench::notes();
    let mut client = Server::on(&bench).flags(&["--busy-timeout", "20"]).start();
    let path = client.call("snapshot", json!({"reason": "x"})).snapshot();
    bench.sql("DELETE FROM tags; DELETE FROM notes");
    let holder = bench.open();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let id = client.send_call("restore_snapshot", json!({"name": path.to_str().unwrap(), "reason": "x"}));
    std::thread::sleep(Duration::from_millis(300));
    client.notify("notifications/cancelled", json!({"requestId": id}));
    std::thread::sleep(Duration::from_millis(300));
    holder.execute_batch("ROLLBACK").unwrap();
    client.is_alive();
    client.write("INSERT INTO notes(title) VALUES ('after')").ok();
    assert_eq!(bench.query("SELECT count(*) FROM notes"), "1");
    assert_eq!(bench.query("SELECT count(*) FROM memory_events"), "0");
}

#[test]
fn the_command_line_lists_shows_verifies_and_restores() {
    let bench = Bench::notes();
    let flags = |words: &[&str]| -> (i32, String, String) {
        Server::on(&bench).flags(&["snapshots"]).flags(words).run()
    };
    let empty = flags(&["list"]);
    assert_eq!((empty.0, empty.1.starts_with("no snapshots in /")), (0, true), "{empty:?}");
    let mut client = Server::on(&bench).start();
    client.call("append_event", json!({"content": "x"})).ok();
    let path = client.destroy("DELETE FROM notes WHERE id = 1").snapshot();
    let name = path.file_name().unwrap().to_str().unwrap();
    client.close();
    let (status, said, _) = flags(&["list"]);
    assert_eq!(status, 0);
    assert_eq!(said.lines().count(), 2);
    assert!(
        said.lines().nth(1).unwrap().starts_with(&format!("{name}  auto  20"))
            && said.ends_with("  1       ok\n"),
        "{said}"
    );
    let list: Value = serde_json::from_str(&flags(&["list", "--json"]).1).unwrap();
    assert_eq!(
        (&list[0]["name"], &list[0]["verdict"], &list[0]["events"]),
        (&json!(name), &json!("ok"), &json!(1))
    );
    let (status, said, _) = flags(&["show", name]);
    assert!(status == 0 && said.contains("notes  3           2"), "{said}");
    let shown: Value = serde_json::from_str(&flags(&["show", "--json", path.to_str().unwrap()]).1).unwrap();
    assert_eq!(shown["tables"][0], json!({"table": "notes", "snapshot": 3, "database": 2}));
    assert_eq!(flags(&["verify", name]), (0, format!("{name}: ok\n"), String::new()));
    let (status, said, _) = flags(&["restore", name, "--reason", "by hand", "--json"]);
    let restored: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((status, &restored["restored"], &restored["event"]), (0, &json!(name), &json!(2)));
    assert_eq!(bench.query("SELECT count(*) FROM notes"), "3");
    assert_eq!(bench.query("SELECT tool, ok FROM query_log ORDER BY id DESC LIMIT 1"), "restore_snapshot|1");
    is_sound(bench.path(), 2);
    for (words, status, says) in [
        (vec!["restore", "../x", "--reason", "y"], 1, "is not in the snapshot folder"),
        (vec!["restore", name, "--reason", " "], 1, "`reason` must not be blank"),
        (vec!["restore", name], 2, "no reason: give --reason TEXT"),
        (vec!["show", "nope"], 1, "is not the name of a snapshot of this database; list the snapshots"),
        (vec!["verify", "nope"], 1, "is not the name of a snapshot"),
        (vec![], 2, ""),
    ] {
        let (code, out, error) = flags(&words);
        assert_eq!((code, out.as_str()), (status, ""), "{words:?} {error}");
        assert!(error.contains(says) && error.lines().count() == 1, "{words:?} {error}");
    }
    let absent = Bench::empty();
    for words in [vec!["list"], vec!["restore", name, "--reason", "x"]] {
        let (status, _, error) = Server::on(&absent).flags(&["snapshots"]).flags(&words).run();
        assert!(status == 1 && error.contains("memory.db"), "{error}");
        assert!(!absent.path().exists(), "nothing is created");
    }
}
