//! Snapshots: whole, private, never in another's place, or an error and nothing left behind.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests may")]

use indelible::error::{ErrorCode, ToolError};
use indelible::sqlite::copy::{
    CopyMethod, SnapshotDone, SnapshotKind, SnapshotRequest, default_folder, snapshot, sweep,
};
use rusqlite::Connection;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

const NOW: &str = "2026-11-30T09:01:02.123Z";
const ROWS: &str = "CREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT NOT NULL);
    WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 2000)
    INSERT INTO notes SELECT x, hex(randomblob(50)) FROM c;";

fn database(name: &str, mode: &str) -> (tempfile::TempDir, PathBuf, Connection) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(&format!("PRAGMA journal_mode={mode}; {ROWS}")).unwrap();
    (folder, path, connection)
}

fn request(path: &Path) -> SnapshotRequest {
    SnapshotRequest {
        database: path.to_path_buf(),
        folder: default_folder(path),
        kind: SnapshotKind::Auto,
        keep: 5,
        busy_timeout: Duration::from_millis(200),
    }
}

fn take(path: &Path) -> Result<SnapshotDone, ToolError> {
    snapshot(&request(path), NOW.parse().unwrap())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// What anyone sees who opens the file as usual.
fn count(path: &Path) -> i64 {
    Connection::open(path).unwrap().query_row("SELECT count(*) FROM notes", [], |row| row.get(0)).unwrap()
}

#[track_caller]
fn mode_of(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_snapshot_is_whole_private_and_alone_in_its_folder() {
    for (name, mode) in [
        ("memory.db", "WAL"),
        ("memory.db", "DELETE"),
        ("memory.db", "PERSIST"),
        ("file:ž 1?mode=ro#%41.db", "WAL"),
        ("file:ž 1?mode=ro#%41.db", "DELETE"),
        ("no-ending", "WAL"),
    ] {
        let (_folder, path, source) = database(name, mode);
        let done = take(&path).unwrap();
        assert_eq!(done.method, CopyMethod::File, "{name} {mode}");
        let folder = default_folder(&path);
        assert_eq!(names(&folder), [format!("{name}.20261130T090102.123Z.auto.db")]);
        assert_eq!((mode_of(&folder), mode_of(&done.path)), (0o700, 0o600));
        assert_eq!(done.bytes, std::fs::metadata(&done.path).unwrap().len());
        source.execute_batch("DELETE FROM notes").unwrap();
        assert_eq!(count(&done.path), 2000);
    }
}

#[test]
fn a_reader_or_a_writer_in_the_way_costs_speed_and_not_the_snapshot() {
    for (mode, prepare, begin) in [
        // A reader that still needs the WAL.
        ("WAL", "BEGIN; SELECT count(*) FROM notes", "INSERT INTO notes(body) VALUES ('later')"),
        ("WAL", "BEGIN IMMEDIATE; INSERT INTO notes(body) VALUES ('not committed')", ""),
        ("DELETE", "BEGIN IMMEDIATE; INSERT INTO notes(body) VALUES ('not committed')", ""),
    ] {
        let (_folder, path, source) = database("memory.db", mode);
        let holder = Connection::open(&path).unwrap();
        for statement in prepare.split("; ") {
            let mut statement = holder.prepare(statement).unwrap();
            let mut rows = statement.query([]).unwrap();
            while rows.next().unwrap().is_some() {}
        }
        source.execute_batch(begin).unwrap();
        let done = take(&path).unwrap();
        assert_eq!(done.method, CopyMethod::Backup, "{mode} {prepare}");
        assert_eq!(names(&default_folder(&path)).len(), 1);
        assert_eq!(count(&done.path), 2000 + i64::from(!begin.is_empty()), "{mode} {prepare}");
        assert_eq!(mode_of(&done.path), 0o600);
        // The holder's transaction is none the worse.
        holder.execute_batch("COMMIT").unwrap();
    }
}

#[test]
fn a_failure_names_its_cause_and_leaves_nothing() {
    let damage: fn(&Path) = |path| {
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&[0xa5; 4096], 4096 * 3).unwrap();
    };
    for (what, prepare, says) in [
        ("locked", None, "another process holds the lock"),
        ("in the way", None, "in the way of the snapshot folder"),
        ("absent", None, "No such file"),
        ("damaged", Some(damage), "damaged"),
    ] {
        let (folder, path, source) = database("memory.db", "DELETE");
        let target = default_folder(&path);
        match what {
            "locked" => source.execute_batch("BEGIN EXCLUSIVE").unwrap(),
            "in the way" => std::fs::write(&target, "a file").unwrap(),
            "absent" => {
                drop(source);
                std::fs::remove_file(&path).unwrap();
            }
            _ => drop(source),
        }
        if let Some(prepare) = prepare {
            prepare(&path);
        }
        let error = take(&path).expect_err(what);
        assert_eq!(error.code, ErrorCode::SnapshotFailed);
        assert!(error.message.contains(says) && error.message.contains("memory.db"), "{what}: {error}");
        assert!(!target.is_dir() || names(&target).is_empty(), "{what}: {:?}", names(&target));
        assert!(what != "absent" || names(folder.path()).is_empty(), "{:?}", names(folder.path()));
    }
}

#[test]
fn what_is_wrong_with_the_content_does_not_stand_in_the_way() {
    for sql in [
        "CREATE VIRTUAL TABLE broken USING fts5(a); DROP TABLE broken_data",
        "CREATE TABLE checked(a CHECK (a > 0)); PRAGMA ignore_check_constraints=ON; INSERT INTO checked VALUES (-1)",
        "CREATE TABLE t(a); INSERT INTO t VALUES (NULL); PRAGMA writable_schema=ON;
         UPDATE sqlite_schema SET sql = 'CREATE TABLE t(a NOT NULL)' WHERE name = 't'",
    ] {
        let (_folder, path, source) = database("memory.db", "WAL");
        source.execute_batch(sql).unwrap();
        drop(source);
        assert_eq!(count(&take(&path).expect(sql).path), 2000, "{sql}");
    }
}

#[test]
fn snapshots_of_one_millisecond_and_files_in_the_way_keep_apart() {
    let (_folder, path, source) = database("memory.db", "WAL");
    let folder = default_folder(&path);
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink("/nowhere", folder.join("memory.db.20261130T090102.123Z-2.auto.db")).unwrap();
    take(&path).unwrap();
    source.execute_batch("DELETE FROM notes").unwrap();
    assert_eq!(count(&take(&path).unwrap().path), 0);
    assert_eq!(
        names(&folder),
        ["-2", "-3", ""].map(|counter| format!("memory.db.20261130T090102.123Z{counter}.auto.db"))
    );
    assert_eq!(count(&folder.join("memory.db.20261130T090102.123Z.auto.db")), 2000);
}

#[test]
fn rotation_touches_only_this_database_s_old_files_of_the_kind() {
    let (_folder, path, _source) = database("memory.db", "WAL");
    let folder = default_folder(&path);
    std::fs::create_dir(&folder).unwrap();
    let kept = [
        "memory.db.20200101T000000.000Z.manual.db",
        "memory.db.bak.20200101T000000.000Z.auto.db",
        "other.db.20200101T000000.000Z.auto.db",
        "notes.txt",
        ".memory.db.20200101T000000.000Z.auto.db.tmp-00000000000000000000000000000000",
    ];
    let gone = ["memory.db.20200101T000000.000Z.auto.db", "memory.db.20200102T000000.000Z.auto.db"];
    for name in kept.iter().chain(&gone).chain(&["memory.db.20200101T000000.000Z.auto.db-wal"]) {
        std::fs::write(folder.join(name), "").unwrap();
    }
    let leftover =
        folder.join(".memory.db.20200101T000000.000Z.auto.db.tmp-ffffffffffffffffffffffffffffffff");
    std::fs::write(&leftover, "").unwrap();
    let old = std::time::SystemTime::now() - Duration::from_secs(4000);
    std::fs::File::options().write(true).open(&leftover).unwrap().set_modified(old).unwrap();
    // Somebody else is making a snapshot, so the young one may be theirs.
    let busy = std::fs::File::open(&folder).unwrap();
    rustix::fs::flock(&busy, rustix::fs::FlockOperation::LockShared).unwrap();
    let done = snapshot(&SnapshotRequest { keep: 1, ..request(&path) }, NOW.parse().unwrap()).unwrap();
    let mut expected: Vec<_> = kept.iter().map(|name| (*name).to_owned()).collect();
    expected.push("memory.db.20261130T090102.123Z.auto.db".to_owned());
    expected.sort();
    assert_eq!(names(&folder), expected);
    assert_eq!(done.removed.len(), 2);
    assert_eq!(done.warnings, [""; 0]);
    drop(busy);
    sweep(&path, &folder);
    expected.retain(|name| !name.starts_with('.'));
    assert_eq!(names(&folder), expected, "nobody writes there any more");
}

#[test]
fn a_linked_database_is_copied_with_what_its_wal_holds() {
    let (folder, path, source) = database("memory.db", "WAL");
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    source.execute_batch("INSERT INTO notes(body) VALUES ('in the WAL')").unwrap();
    let done = take(&link).unwrap();
    assert_eq!(done.path.file_name().unwrap(), "link.db.20261130T090102.123Z.auto.db");
    assert_eq!(count(&done.path), 2001);
}

#[test]
fn a_copy_has_the_holes_of_its_original_and_every_byte_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.db");
    let source = Connection::open(&path).unwrap();
    // Of a page that is part of a long value, only the first bytes are not zero.
    source
        .execute_batch("PRAGMA page_size=65536; CREATE TABLE large(v); INSERT INTO large VALUES (zeroblob(20000000)); CREATE TABLE last AS SELECT 1")
        .unwrap();
    drop(source);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    for (number, block) in
        bytes.chunks(4096).enumerate().filter(|(_, block)| block.iter().any(|byte| *byte != 0))
    {
        file.write_all_at(block, number as u64 * 4096).unwrap();
    }
    file.sync_all().unwrap();
    let done = take(&path).unwrap();
    assert_eq!((done.method, done.bytes), (CopyMethod::File, bytes.len() as u64));
    assert!(std::fs::read(&done.path).unwrap() == bytes);
    let stored = |path: &Path| std::fs::metadata(path).unwrap().blocks() * 512;
    let (original, copy) = (stored(&path), stored(&done.path));
    assert!(copy <= original + original / 4, "{copy} bytes of {original}");
}

#[test]
fn pages_that_were_never_written_are_not_copied_one_by_one() {
    let (_folder, path, source) = database("memory.db", "DELETE");
    // Half a GiB, says the header; the rest of it is as SQLite leaves it when it takes a wrong number for a page's.
    let pages: u32 = 1 << 17;
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&pages.to_be_bytes(), 28).unwrap();
    file.set_len(u64::from(pages) * 4096).unwrap();
    let mut damaged = take(&path).unwrap_err();
    assert!(damaged.message.contains("failed its check"), "{damaged:?}");
    // With a writer in the way it would be SQLite that copies.
    let writer = Connection::open(&path).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    damaged = take(&path).unwrap_err();
    assert_eq!(damaged.code, ErrorCode::SnapshotFailed);
    let words = ["is 536870912 bytes long, and ", " of them are all that is in it", "sqlite3 .recover"];
    assert!(words.iter().all(|words| damaged.message.contains(words)), "{damaged:?}");
    assert_eq!(names(&default_folder(&path)), Vec::<String>::new());
    drop(source);
}
