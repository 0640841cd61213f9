//! What the store promises: order, one transaction for a change and its row, no waiting, one chain.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests may")]

use indelible::audit::AuditRow;
use indelible::error::ErrorCode;
use indelible::render::Caps;
use indelible::store::reader::{Reader, Reading, ResumeChoice};
use indelible::store::{Appended, Store, StoreSettings};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

struct Bench {
    _folder: tempfile::TempDir,
    path: PathBuf,
    store: Arc<Store>,
}

fn bench_over(prepare: &str) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.db");
    if !prepare.is_empty() {
        Connection::open(&path).unwrap().execute_batch(prepare).unwrap();
    }
    let store = open(&path);
    Bench { _folder: folder, path, store }
}

fn open(path: &Path) -> Arc<Store> {
    let settings = StoreSettings {
        path: path.to_path_buf(),
        session: "run-1".to_owned(),
        busy_timeout: Duration::from_millis(300),
        keep: None,
    };
    Arc::new(Store::open(settings).unwrap())
}

fn row(tool: &str) -> AuditRow {
    AuditRow {
        ts: "2026-11-30T09:01:02Z".to_owned(),
        session: "run-1".to_owned(),
        tool: tool.to_owned(),
        ok: true,
        ..AuditRow::default()
    }
}

fn audit_of(appended: &Appended) -> AuditRow {
    AuditRow { detail: Some(appended.id.to_string()), ..row("append_event") }
}

fn outside(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    connection
}

fn texts(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

fn reading() -> Reading {
    Reading { limit: Duration::from_secs(10), cancel: CancellationToken::new(), progress: None }
}

fn reader(path: &Path) -> Reader {
    Reader::open(path.to_path_buf(), Duration::from_millis(300)).unwrap()
}

fn choice(max_events: u64, exclude: &[&str]) -> ResumeChoice {
    let caps = Caps { max_result_bytes: 32_768, max_cell_chars: 2000 };
    ResumeChoice { max_events, exclude_kinds: exclude.iter().map(|kind| (*kind).to_owned()).collect(), caps }
}

#[tokio::test]
async fn events_and_checkpoints_make_a_chain_that_verifies_and_resumes() {
    let bench = bench_over("");
    let first = bench.store.append_event(Some("décision"), "a\n\"b\" \u{2028} ž", audit_of).await.unwrap();
    assert_eq!((first.id, first.hash.len()), (1, 64));
    let checkpoint = bench.store.checkpoint(" kept as given ", |_| row("checkpoint")).await.unwrap();
    assert_eq!((checkpoint.id, checkpoint.last_event_id), (1, 1));
    bench.store.append_event(None, "after", audit_of).await.unwrap();
    let reader = reader(&bench.path);
    let verdict = reader.verify(reading()).await.unwrap();
    assert!(verdict.ok, "{verdict:?}");
    assert_eq!((verdict.events, verdict.head_id, verdict.pinned_through), (2, 2, 1));
    let text = reader.resume(choice(50, &[]), reading()).await.unwrap();
    assert!(
        text.contains("| at event 1\n kept as given \n\n# 1 events since checkpoint | chain ok (2 events)\n"),
        "{text}"
    );
    assert!(text.ends_with(",note,after"), "{text}");
    let text = reader.resume(choice(50, &["note"]), reading()).await.unwrap();
    assert!(text.ends_with("# 0 events since checkpoint | chain ok (2 events)"), "{text}");
    let log = texts(&outside(&bench.path), "SELECT tool || ifnull(detail, '') FROM query_log ORDER BY id");
    assert_eq!(log, ["append_event1", "checkpoint", "append_event2"]);
}

#[tokio::test]
async fn blank_and_too_long_texts_are_refused_by_name() {
    let bench = bench_over("");
    let long = "x".repeat((1 << 20) + 1);
    for (kind, content, says) in [
        (None, " \n\t", "`content` is blank"),
        (Some(" "), "x", "`kind` is blank"),
        (None, long.as_str(), "`content` is 1048577 bytes long, but at most 1048576"),
    ] {
        let error = bench.store.append_event(kind, content, audit_of).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments);
        assert!(error.message.contains(says), "{error}");
    }
    let error = bench.store.checkpoint("", |_| row("checkpoint")).await.unwrap_err();
    assert!(error.message.contains("`summary` is blank"), "{error}");
    bench.store.append_event(None, &long[1..], audit_of).await.unwrap();
}

#[tokio::test]
async fn audit_rows_arrive_in_order_within_milliseconds_without_a_flush() {
    let bench = bench_over("");
    for n in 0..100 {
        bench.store.queue_audit(row(&format!("tool{n}")));
    }
    let connection = outside(&bench.path);
    let deadline = Instant::now() + Duration::from_secs(2);
    let expected: Vec<_> = (0..100).map(|n| format!("tool{n}")).collect();
    loop {
        let found = texts(&connection, "SELECT tool FROM query_log ORDER BY id");
        if found == expected {
            break;
        }
        assert!(found.is_empty() && Instant::now() < deadline, "{} rows", found.len());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn rows_that_meet_a_lock_wait_in_order_and_nothing_waits_for_them() {
    let bench = bench_over("");
    let holder = outside(&bench.path);
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    bench.store.queue_audit(row("first"));
    tokio::time::sleep(Duration::from_millis(80)).await;
    bench.store.queue_audit(row("second"));
    let started = Instant::now();
    assert!(!bench.store.flush_audit(Duration::from_millis(20), None).await);
    assert!(started.elapsed() < Duration::from_millis(250), "{:?}", started.elapsed());
    let error = bench.store.append_event(None, "x", audit_of).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Busy, "{error}");
    holder.execute_batch("ROLLBACK").unwrap();
    assert!(bench.store.flush_audit(Duration::from_secs(2), None).await);
    assert_eq!(texts(&holder, "SELECT tool FROM query_log ORDER BY id"), ["first", "second"]);
    assert_eq!(texts(&holder, "SELECT content FROM memory_events"), [""; 0]);
    bench.store.append_event(None, "y", audit_of).await.unwrap();
}

#[tokio::test]
async fn an_append_has_its_own_patience_whatever_is_drained_meanwhile() {
    let bench = bench_over("");
    let holder = outside(&bench.path);
    for _ in 0..5 {
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        bench.store.queue_audit(row("before"));
        let store = Arc::clone(&bench.store);
        let turn = bench.store.turn().await;
        let append = tokio::spawn(async move { store.append_event(None, "x", audit_of).await });
        tokio::time::sleep(Duration::from_millis(20)).await;
        bench.store.queue_audit(row("behind"));
        assert!(!bench.store.flush_audit(Duration::ZERO, Some(&turn)).await);
        drop(turn);
        tokio::time::sleep(Duration::from_millis(100)).await;
        holder.execute_batch("ROLLBACK").unwrap();
        append.await.unwrap().unwrap();
    }
    assert!(bench.store.flush_audit(Duration::from_secs(2), None).await);
    let tools = texts(&holder, "SELECT tool FROM query_log ORDER BY id");
    assert_eq!(tools, ["before", "append_event", "behind"].repeat(5));
}

#[tokio::test]
async fn a_flush_under_a_held_turn_does_not_wait_for_that_turn() {
    let bench = bench_over("");
    let turn = bench.store.turn().await;
    bench.store.queue_audit(row("read_query"));
    assert!(bench.store.flush_audit(Duration::from_millis(100), Some(&turn)).await);
    assert_eq!(bench.store.max_id_of_session("run-1").await.unwrap(), 1);
    assert_eq!(bench.store.max_id_of_session("other").await.unwrap(), 0);
    assert!(!bench.store.flush_audit(Duration::from_millis(20), None).await, "the turn is taken");
}

#[tokio::test]
async fn concurrent_appends_from_two_servers_make_one_chain() {
    let bench = bench_over("");
    let other = open(&bench.path);
    let mut tasks = Vec::new();
    for n in 0..100 {
        let store = Arc::clone(if n % 2 == 0 { &bench.store } else { &other });
        tasks.push(tokio::spawn(async move {
            store.append_event(None, &format!("event {n}"), audit_of).await.unwrap().id
        }));
    }
    let mut ids = Vec::new();
    for task in tasks {
        ids.push(task.await.unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=100).collect::<Vec<i64>>());
    let verdict = reader(&bench.path).verify(reading()).await.unwrap();
    assert!(verdict.ok && verdict.events == 100, "{verdict:?}");
    assert_eq!(texts(&outside(&bench.path), "SELECT count(*) || '' FROM query_log"), ["100"]);
}

#[tokio::test]
async fn a_planted_trigger_makes_the_append_fail_and_leaves_nothing() {
    for (body, code) in [
        ("INSERT INTO notes VALUES (NEW.content)", ErrorCode::Refused),
        ("UPDATE notes SET a = 1", ErrorCode::Refused),
        ("SELECT RAISE(IGNORE)", ErrorCode::SqlError),
        ("SELECT RAISE(ROLLBACK, 'no')", ErrorCode::SqlError),
        ("SELECT hex(zeroblob(1000))", ErrorCode::Refused),
        (
            "INSERT INTO query_log(ts,session,tool,ok,duration_ms) VALUES ('t','s','forged',1,1)",
            ErrorCode::Refused,
        ),
    ] {
        let bench = bench_over("CREATE TABLE notes(a)");
        bench.store.append_event(None, "before", audit_of).await.unwrap();
        let connection = outside(&bench.path);
        connection
            .execute_batch(&format!("CREATE TRIGGER spy BEFORE INSERT ON memory_events BEGIN {body}; END"))
            .unwrap();
        let error = bench.store.append_event(None, "x", audit_of).await.expect_err(body);
        assert_eq!(error.code, code, "{body}: {error}");
        assert!(error.message.starts_with("the event was not appended: "), "{error}");
        connection.execute_batch("DROP TRIGGER spy").unwrap();
        bench.store.append_event(None, "after", audit_of).await.unwrap();
        assert_eq!(
            texts(&connection, "SELECT content FROM memory_events ORDER BY id"),
            ["before", "after"],
            "{body}"
        );
        assert_eq!(
            texts(&connection, "SELECT tool FROM query_log"),
            ["append_event", "append_event"],
            "{body}"
        );
        assert_eq!(texts(&connection, "SELECT a FROM notes"), [""; 0], "{body}");
    }
}

#[tokio::test]
async fn no_audit_row_no_event() {
    let bench = bench_over("");
    let connection = outside(&bench.path);
    connection
        .execute_batch(
            "CREATE TRIGGER spy BEFORE INSERT ON query_log BEGIN SELECT RAISE(ABORT, 'no log'); END",
        )
        .unwrap();
    let error = bench.store.append_event(None, "x", audit_of).await.unwrap_err();
    assert!(error.message.contains("no log"), "{error}");
    assert_eq!(texts(&connection, "SELECT content FROM memory_events"), [""; 0]);
}

#[tokio::test]
async fn verification_names_tampering_and_copes_with_any_row() {
    for (sql, at, says) in [
        ("UPDATE memory_events SET content = 'TWO' WHERE id = 2", Some(2), "altered"),
        ("DELETE FROM memory_events WHERE id = 2", Some(3), "event 2 is missing"),
        ("DELETE FROM memory_events WHERE id = 3", Some(3), "cut off"),
        ("UPDATE memory_events SET content = x'00' WHERE id = 2", Some(2), "`content` is Blob, not a text"),
        ("UPDATE memory_events SET content = CAST(x'ff' AS TEXT) WHERE id = 2", Some(2), "not valid UTF-8"),
        (
            "UPDATE memory_events SET content = CAST(zeroblob(110000000) AS TEXT) WHERE id = 2",
            Some(2),
            "larger than 96 MiB",
        ),
        (
            "INSERT INTO memory_events VALUES (9223372036854775807,'t','s','k','c','p','h')",
            Some(i64::MAX),
            "",
        ),
        ("INSERT INTO memory_events VALUES (-5,'t','s','k','c','p','h')", Some(-5), ""),
        ("UPDATE memory_checkpoints SET hash = NULL", None, "has no hash"),
        ("UPDATE memory_checkpoints SET summary = x'01'", None, "`summary` is Blob"),
        ("UPDATE memory_checkpoints SET last_event_id = 'x'", None, "`last_event_id` is not an integer"),
    ] {
        let bench = bench_over("PRAGMA journal_mode=DELETE; CREATE TABLE notes(a)");
        for content in ["one", "two", "three"] {
            bench.store.append_event(None, content, audit_of).await.unwrap();
        }
        bench.store.checkpoint("state", |_| row("checkpoint")).await.unwrap();
        let connection = outside(&bench.path);
        for table in ["memory_events", "memory_checkpoints"] {
            connection
                .execute_batch(&format!("DROP TRIGGER {table}_no_update; DROP TRIGGER {table}_no_delete"))
                .unwrap();
        }
        connection.execute_batch(sql).unwrap();
        let reader = reader(&bench.path);
        let verdict = reader.verify(reading()).await.unwrap();
        assert!(!verdict.ok, "{sql}");
        assert_eq!(verdict.break_at_id, at, "{sql}: {verdict:?}");
        assert!(verdict.reason.clone().unwrap().contains(says), "{sql}: {verdict:?}");
        let text = reader.resume(choice(50, &[]), reading()).await.unwrap();
        assert!(text.contains("chain BROKEN"), "{sql}: {text}");
    }
}

#[tokio::test]
async fn a_verification_in_wal_sees_one_view_and_blocks_no_append() {
    for mode in ["WAL", "DELETE"] {
        let bench = bench_over(&format!("PRAGMA journal_mode={mode}; CREATE TABLE notes(a)"));
        for n in 0..50 {
            bench.store.append_event(None, &format!("event {n}"), audit_of).await.unwrap();
        }
        // Outside WAL an append keeps readers out for a moment; on a busy machine moments add up.
        let reader = Reader::open(bench.path.clone(), Duration::from_secs(5)).unwrap();
        let (readings, appends) = tokio::join!(
            async {
                for _ in 0..20 {
                    let verdict = reader.verify(reading()).await.unwrap();
                    assert!(verdict.ok, "{mode}: {verdict:?}");
                }
            },
            async {
                for n in 0..50 {
                    bench.store.append_event(None, &format!("more {n}"), audit_of).await.unwrap();
                }
            }
        );
        let ((), ()) = (readings, appends);
        assert_eq!(reader.verify(reading()).await.unwrap().events, 100, "{mode}");
    }
}

#[tokio::test]
async fn a_reading_ends_at_its_limit_and_when_cancelled() {
    let bench = bench_over("");
    bench.store.append_event(None, "x", audit_of).await.unwrap();
    let reader = reader(&bench.path);
    let cancelled = reading();
    cancelled.cancel.cancel();
    assert_eq!(reader.verify(cancelled).await.unwrap_err().code, ErrorCode::Cancelled);
    let short = Reading { limit: Duration::ZERO, ..reading() };
    assert_eq!(reader.verify(short).await.unwrap_err().code, ErrorCode::Timeout);
    assert!(reader.verify(reading()).await.unwrap().ok);
}

#[tokio::test]
async fn a_file_that_may_only_be_read_reports_absent_or_foreign_tables() {
    for (sql, says) in [
        ("CREATE TABLE notes(a)", "the file has no table `memory_events`; open it once without --read-only"),
        (
            "CREATE VIEW memory_events AS SELECT 1 AS id",
            "the view `memory_events` has a name that belongs to the server",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.db");
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let before = std::fs::read(&path).unwrap();
        let error = reader(&path).verify(reading()).await.unwrap_err();
        assert!(error.message.contains(says), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}

#[tokio::test]
async fn shutdown_writes_what_waits_or_gives_up_in_time() {
    let bench = bench_over("");
    let turn = bench.store.turn().await;
    bench.store.queue_audit(row("last"));
    drop(turn);
    bench.store.shutdown(Instant::now() + Duration::from_millis(300)).await;
    assert_eq!(texts(&outside(&bench.path), "SELECT tool FROM query_log"), ["last"]);

    let holder = outside(&bench.path);
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    bench.store.queue_audit(row("lost"));
    let started = Instant::now();
    bench.store.shutdown(started + Duration::from_millis(300)).await;
    assert!(started.elapsed() < Duration::from_millis(450), "{:?}", started.elapsed());
}

/// A chain of so many events written from outside, without a sync for each.
fn write_chain(path: &Path, events: i64) {
    let mut connection = outside(path);
    let transaction = connection.transaction().unwrap();
    let (ts, session) = ("2026-11-30T09:01:02Z", "run-0");
    let mut before = indelible::chain::GENESIS.to_owned();
    for id in 1..=events {
        let content = format!("content of event {id}");
        let hash = indelible::chain::event_hash(id, ts, session, "note", &content, &before);
        let row = (id, ts, session, content, &before, &hash);
        let sql = "INSERT INTO memory_events (id, ts, session, content, prev_hash, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        transaction.prepare_cached(sql).unwrap().execute(row).unwrap();
        before = hash;
    }
    transaction.commit().unwrap();
}

fn without_triggers(connection: &Connection) {
    connection
        .execute_batch("DROP TRIGGER memory_events_no_update; DROP TRIGGER memory_events_no_delete")
        .unwrap();
}

#[tokio::test]
async fn a_long_chain_is_walked_by_two_threads_and_broken_where_it_is_broken() {
    let bench = bench_over("");
    write_chain(&bench.path, 9000);
    let reader = reader(&bench.path);
    let verdict = reader.verify(reading()).await.unwrap();
    assert_eq!((verdict.ok, verdict.events, verdict.head_id), (true, 9000, 9000), "{verdict:?}");
    let tamperer = outside(&bench.path);
    without_triggers(&tamperer);
    // The ends of the parts, which are 562 events long, and a few others.
    for at in [1, 2, 562, 563, 564, 1125, 4499, 4500, 8431, 8432, 9000] {
        let altered =
            format!("SAVEPOINT one; UPDATE memory_events SET content = 'x' WHERE id = {at}; RELEASE one");
        tamperer.execute_batch(&altered).unwrap();
        let verdict = reader.verify(reading()).await.unwrap();
        assert_eq!((verdict.events, verdict.break_at_id), (9000, Some(at)), "{verdict:?}");
        let restored = format!("UPDATE memory_events SET content = 'content of event {at}' WHERE id = {at}");
        tamperer.execute_batch(&restored).unwrap();
    }
    assert!(reader.verify(reading()).await.unwrap().ok);
    tamperer.execute_batch("DELETE FROM memory_events WHERE id BETWEEN 2000 AND 4000").unwrap();
    let verdict = reader.verify(reading()).await.unwrap();
    assert_eq!((verdict.events, verdict.break_at_id), (6999, Some(4001)), "{verdict:?}");
}

#[tokio::test]
async fn a_resume_goes_on_from_what_was_verified_only_while_nobody_else_has_written() {
    let bench = bench_over("");
    write_chain(&bench.path, 300);
    let reader = reader(&bench.path);
    let resume = || async {
        let (few, all) = (choice(3, &["prompt"]), choice(3, &[]));
        let text = bench.store.resume(&reader, few, reading()).await.unwrap();
        // The same as without any knowledge of before.
        assert_eq!(text, reader.resume(choice(3, &["prompt"]), reading()).await.unwrap());
        let whole = bench.store.resume(&reader, all, reading()).await.unwrap();
        assert_eq!(whole, reader.resume(choice(3, &[]), reading()).await.unwrap());
        text
    };
    assert!(resume().await.contains("# 300 events | chain ok (300 events)"));
    bench.store.append_event(Some("prompt"), "not shown", audit_of).await.unwrap();
    bench.store.append_event(None, "appended", audit_of).await.unwrap();
    let text = resume().await;
    assert!(
        text.contains("# 301 events | chain ok (302 events)") && text.ends_with(",note,appended"),
        "{text}"
    );
    bench.store.checkpoint("so far", audit_of).await.unwrap();
    bench.store.append_event(None, "behind it", audit_of).await.unwrap();
    assert!(resume().await.contains("# 1 events since checkpoint | chain ok (303 events)"));
    bench.store.checkpoint("and so on", audit_of).await.unwrap();
    assert!(resume().await.contains("# 0 events since checkpoint | chain ok (303 events)"));

    // Whoever writes through SQLite is noticed, whatever was written and however it is made to look.
    let tamperer = outside(&bench.path);
    without_triggers(&tamperer);
    assert!(resume().await.contains("chain ok (303 events)"));
    for (change, says) in [
        ("UPDATE memory_events SET content = 'x' WHERE id = 7", "chain BROKEN at event 7"),
        ("UPDATE memory_events SET content = 'content of event 7' WHERE id = 7", "chain ok (303 events)"),
        ("UPDATE memory_checkpoints SET summary = 'x' WHERE id = 1", "chain BROKEN: checkpoint 1"),
        ("UPDATE memory_checkpoints SET summary = 'so far' WHERE id = 1", "chain ok (303 events)"),
        ("DELETE FROM memory_events WHERE id = 20", "chain BROKEN at event 21"),
    ] {
        tamperer.execute_batch("DROP TRIGGER IF EXISTS memory_checkpoints_no_update").unwrap();
        tamperer.execute_batch(change).unwrap();
        let text = bench.store.resume(&reader, choice(3, &[]), reading()).await.unwrap();
        assert!(text.contains(says), "{change}: {text}");
        bench.store.append_event(None, "in between", audit_of).await.ok();
        tamperer.execute_batch("DELETE FROM memory_events WHERE id > 303").unwrap();
    }
}

#[tokio::test]
async fn what_goes_past_sqlite_a_resume_may_miss_and_a_verification_never() {
    let bench = bench_over("");
    write_chain(&bench.path, 300);
    outside(&bench.path).execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let reader = reader(&bench.path);
    let verdict = bench.store.verify(&reader, reading()).await.unwrap();
    assert!(verdict.ok, "{verdict:?}");
    let mut bytes = std::fs::read(&bench.path).unwrap();
    let needle = b"content of event 150";
    let at = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    bytes[at] = b'C';
    std::fs::write(&bench.path, bytes).unwrap();
    // It goes on from what was verified before, unless the writing thread was too busy to be asked.
    let text = bench.store.resume(&reader, choice(3, &[]), reading()).await.unwrap();
    assert!(text.contains("chain ok (300 events)") || text.contains("chain BROKEN at event 150"), "{text}");
    let verdict = bench.store.verify(&self::reader(&bench.path), reading()).await.unwrap();
    assert_eq!(verdict.break_at_id, Some(150), "{verdict:?}");
    // And a resume that comes after that trusts nothing.
    let text = bench.store.resume(&self::reader(&bench.path), choice(3, &[]), reading()).await.unwrap();
    assert!(text.contains("chain BROKEN at event 150"), "{text}");
}
