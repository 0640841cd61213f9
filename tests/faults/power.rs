//! The power goes: what was synced is there, of the rest any part. Whatever the disk then holds is a whole database
//! with everything in it that was acknowledged.
//!
//! A session is recorded once; the disk is then looked at as it may have been at each of its moments.

use crate::support::{Answer, Bench, Server, query};
use crate::trace::disk::{Disk, Survival};
use crate::trace::{Op, Recording, Session, Step, is_allowed};
use crate::{Dice, chain, rounds, side_by_side};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the log rows of calls that change nothing may be missing, with what a loaded machine adds.
const READ_ROWS_LAG: Duration = Duration::from_millis(1500);

/// What an answer promises.
#[derive(Clone, Debug)]
enum Promise {
    Event(String),
    Checkpoint(String),
    Row(i64),
    /// A row that was deleted; the snapshot from before has it.
    Gone(i64, PathBuf),
    Snapshot(PathBuf),
    /// The snapshot that was restored, and the rows that it brought back.
    Restored(Vec<i64>),
    Read(String),
}

/// A recorded session, and what its answers promised by the id of the request.
struct Scene {
    recording: Recording,
    promises: Vec<(i64, Promise)>,
    database: PathBuf,
}

/// Everything that writes, some of it at once.
fn record(bench: &Bench) -> Scene {
    let mut session = Session::start(bench.path(), &[], None);
    let mut promises = Vec::new();
    let mut last_snapshot = None;
    for n in 0..8_i64 {
        let calls = [
            ("append_event", json!({"content": format!("event {n}")})),
            ("append_event", json!({"content": format!("other {n}")})),
            ("write_query", json!({"query": format!("INSERT INTO t VALUES ({n}, zeroblob({}))", 900 * n)})),
            ("read_query", json!({"query": format!("SELECT {n} AS n FROM t")})),
            ("checkpoint", json!({"summary": format!("point {n}")})),
        ];
        let sent = calls.map(|(tool, arguments)| session.send_call(tool, arguments));
        for id in sent {
            session.answer(id).unwrap().ok();
        }
        promises.push((sent[0], Promise::Event(format!("event {n}"))));
        promises.push((sent[1], Promise::Event(format!("other {n}"))));
        promises.push((sent[2], Promise::Row(n)));
        promises.push((sent[3], Promise::Read(format!("SELECT {n} AS n FROM t"))));
        promises.push((sent[4], Promise::Checkpoint(format!("point {n}"))));
        match n {
            1 | 5 => {
                let (id, answer) = ask(&mut session, "snapshot", json!({"reason": "x"}));
                last_snapshot = Some(answer.snapshot());
                promises.push((id, Promise::Snapshot(answer.snapshot())));
            }
            2 | 6 => {
                let sql = format!("DELETE FROM t WHERE v = {n}");
                let (id, answer) =
                    ask(&mut session, "destructive_query", json!({"query": sql, "reason": "x"}));
                promises.push((id, Promise::Gone(n, answer.snapshot())));
            }
            3 => {
                let path = last_snapshot.clone().unwrap();
                let name = path.file_name().unwrap().to_str().unwrap();
                let (id, answer) =
                    ask(&mut session, "restore_snapshot", json!({"name": name, "reason": "x"}));
                promises.push((id, Promise::Restored(vec![0, 1])));
                promises.push((id, Promise::Snapshot(answer.snapshot())));
            }
            // Nothing but reads, for longer than their rows may wait.
            4 => std::thread::sleep(READ_ROWS_LAG + Duration::from_millis(500)),
            _ => {}
        }
    }
    std::thread::sleep(READ_ROWS_LAG + Duration::from_millis(500));
    let (recording, status, stderr) = session.end();
    assert_eq!(status, 0, "{stderr}");
    Scene { recording, promises, database: bench.path().canonicalize().unwrap() }
}

#[track_caller]
fn ask(session: &mut Session, tool: &str, arguments: serde_json::Value) -> (i64, Answer) {
    let id = session.send_call(tool, arguments);
    let answer = session.answer(id).unwrap();
    answer.ok();
    (id, answer)
}

/// What had been promised in these steps, each with the time that had passed since.
fn promised<'a>(scene: &'a Scene, steps: &[Step], now: Duration) -> Vec<(&'a Promise, Duration)> {
    let mut found = Vec::new();
    for step in steps {
        let Op::Said(line) = &step.op else { continue };
        let id = serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_i64();
        for (_, promise) in scene.promises.iter().filter(|(call, _)| Some(*call) == id) {
            found.push((promise, now - step.at));
        }
    }
    found
}

/// Puts an image of a disk into a folder.
fn lay_out(image: &BTreeMap<PathBuf, Option<Vec<u8>>>, from: &Path, to: &Path) {
    for (path, content) in image {
        let place = to.join(path.strip_prefix(from).unwrap());
        match content {
            // The index of the WAL is made anew by whoever opens the file first.
            Some(_) if path.to_str().unwrap().ends_with("-shm") => {}
            Some(bytes) => std::fs::write(place, bytes).unwrap(),
            None => std::fs::create_dir_all(place).unwrap(),
        }
    }
}

/// What does not hold of the files in `folder`.
fn broken_promise(scene: &Scene, promised: &[(&Promise, Duration)], folder: &Path) -> Option<String> {
    let placed = |path: &Path| folder.join(path.strip_prefix(&scene.recording.root).unwrap());
    let path = placed(&scene.database);
    if !path.exists() {
        return (!promised.is_empty()).then(|| "the database is not there".to_owned());
    }
    let connection = chain::open(&path);
    let has_tables = query(&connection, "SELECT count(*) FROM sqlite_schema WHERE name = 'query_log'") == "1";
    if !has_tables {
        return (!promised.is_empty()).then(|| "the server's tables are not there".to_owned());
    }
    if let Some(fault) = chain::fault(&connection) {
        return Some(fault);
    }
    let all = |sql: &str| -> HashSet<String> { query(&connection, sql).lines().map(str::to_owned).collect() };
    let (events, points) =
        (all("SELECT content FROM memory_events"), all("SELECT summary FROM memory_checkpoints"));
    let logged = all("SELECT query FROM query_log WHERE ok AND query IS NOT NULL");
    let count = |tool: &str| {
        query(&connection, &format!("SELECT count(*) FROM query_log WHERE ok AND tool = '{tool}'"))
            .parse::<usize>()
            .unwrap()
    };
    if count("append_event") != events.iter().filter(|text| !text.starts_with("snapshot ")).count() {
        return Some("an event without its log row, or the other way round".to_owned());
    }
    let mut rows: HashSet<i64> = HashSet::new();
    for (promise, age) in promised {
        let lost = match promise {
            Promise::Event(text) => !events.contains(text),
            Promise::Checkpoint(text) => !points.contains(text),
            Promise::Row(v) => {
                rows.insert(*v);
                !logged.iter().any(|sql| sql.starts_with(&format!("INSERT INTO t VALUES ({v},")))
            }
            Promise::Gone(v, snapshot) => {
                rows.remove(v);
                !logged.contains(&format!("DELETE FROM t WHERE v = {v}")) || !is_whole(&placed(snapshot))
            }
            Promise::Restored(brought) => {
                rows = brought.iter().copied().collect();
                !events.iter().any(|text| text.starts_with("snapshot "))
            }
            Promise::Snapshot(path) => !is_whole(&placed(path)),
            Promise::Read(sql) => *age > READ_ROWS_LAG && !logged.contains(sql),
        };
        if lost {
            return Some(format!("{promise:?} is not kept {age:?} later"));
        }
    }
    if query(&connection, "SELECT count(*) FROM sqlite_schema WHERE name = 't'") == "0" {
        return None;
    }
    // What was under way may have been done as well.
    let found = all("SELECT v FROM t");
    let is_done_more = promised.len() < scene.promises.len();
    let missing = rows.iter().find(|v| !found.contains(&v.to_string()));
    if let (Some(v), false) = (missing, is_done_more) {
        return Some(format!("row {v} is not there"));
    }
    // Whatever has a snapshot's name is one.
    let folder = placed(&PathBuf::from(format!("{}.snapshots", scene.database.display())));
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.starts_with('.') && name.ends_with(".db") && !is_whole(&path) {
            return Some(format!("{} is not whole", path.display()));
        }
    }
    None
}

fn is_whole(snapshot: &Path) -> bool {
    if !snapshot.exists() {
        return false;
    }
    let connection = chain::open(snapshot);
    let check = connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    check.is_ok_and(|text| text == "ok")
}

/// Looks at the disk at many moments; how many different disks were looked at.
fn examine(scene: &Scene, name: &str, wanted: usize, dice: &mut Dice) -> usize {
    let steps = &scene.recording.steps;
    let mut disk = Disk::before(&scene.recording);
    let mut seen = HashSet::new();
    let mut started = 0;
    // Each step is looked at in the long run; else as many as are wanted, at different ones each time.
    let stride = (steps.len() * 3).div_ceil(wanted).max(1) as u64;
    for at in 0..steps.len() {
        disk.apply(&steps[at].op);
        // After what a sync or an answer has promised, always.
        let matters = matches!(steps[at].op, Op::Said(_) | Op::Sync(_) | Op::Rename(..));
        if !dice.one_in(if matters { stride.div_ceil(3) } else { stride }) {
            continue;
        }
        // The power may stay until just before the next step.
        let now = steps.get(at + 1).unwrap_or(&steps[at]).at;
        let promised = promised(scene, &steps[..=at], now);
        for survival in [Survival::Nothing, Survival::Everything, Survival::Some, Survival::Some] {
            let image = disk.image(survival, dice);
            let mut hasher = DefaultHasher::new();
            (&image, promised.len()).hash(&mut hasher);
            if !seen.insert(hasher.finish()) {
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            lay_out(&image, &scene.recording.root, folder.path());
            // The program itself starts on some of them, before anybody else has recovered anything.
            if dice.one_in(15) {
                started += 1;
                start_on(&folder.path().join(scene.database.file_name().unwrap()), &dice.told(name));
            }
            if let Some(broken) = broken_promise(scene, &promised, folder.path()) {
                let kept = folder.keep();
                panic!(
                    "{}: {survival:?} of what was not synced survives step {at} of {} ({:.60?}): {broken}; see {}",
                    dice.told(name),
                    steps.len(),
                    steps[at].op,
                    kept.display()
                );
            }
        }
    }
    eprintln!("{name}: {} steps, {} disks, {started} starts", steps.len(), seen.len());
    seen.len()
}

fn start_on(path: &Path, told: &str) {
    let mut client = Server::at(path).start();
    let before = client.call("verify_chain", json!({})).json();
    assert_eq!(before["ok"], true, "{told}: {before}");
    client.call("append_event", json!({"content": "after the cut"})).ok();
    let (stderr, ended) = client.close_with_stderr();
    assert!(ended.status.success() && !stderr.contains("ERROR"), "{told}: {stderr}");
    // So that what was promised before is looked at as if it had not been.
    let connection = chain::open(path);
    assert_eq!(chain::fault(&connection), None, "{told}");
}

#[test]
fn what_was_acknowledged_outlives_a_power_cut_at_any_moment() {
    if !is_allowed() {
        return;
    }
    let short = rounds(12);
    let modes = ["WAL", "DELETE", "TRUNCATE", "PERSIST"];
    side_by_side(&modes[..if short > 12 { 4 } else { 2 }], |mode| {
        let mut dice = Dice::new();
        let bench = Bench::with(&format!(
            "PRAGMA journal_mode = {mode}; CREATE TABLE t(v INTEGER PRIMARY KEY, b BLOB)"
        ));
        let scene = record(&bench);
        let looked = examine(&scene, mode, short * 10, &mut dice);
        assert!(looked > 40, "{looked}");
    });
}

#[test]
fn a_new_database_outlives_a_power_cut_once_something_was_acknowledged() {
    if !is_allowed() {
        return;
    }
    let mut dice = Dice::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.db");
    let mut session = Session::start(&path, &[], None);
    let (id, _) = ask(&mut session, "append_event", json!({"content": "the first"}));
    let (recording, status, stderr) = session.end();
    assert_eq!(status, 0, "{stderr}");
    let promises = vec![(id, Promise::Event("the first".to_owned()))];
    let scene = Scene { recording, promises, database: path.canonicalize().unwrap() };
    examine(&scene, "new", rounds(12) * 10, &mut dice);
}

/// Every row of the log is in the table or in an archive that an event of the chain names, and that is as the event says.
fn lost_row(original: &Path, folder: &Path, promised: bool) -> Option<String> {
    let placed = |path: &Path| folder.join(path.strip_prefix(original).unwrap());
    let connection = chain::open(&folder.join("memory.db"));
    if let Some(fault) = chain::fault(&connection) {
        return Some(fault);
    }
    let numbers = |sql: &str| -> Vec<i64> {
        query(&connection, sql).lines().map(|line| line.parse().unwrap()).collect()
    };
    let mut ids: BTreeSet<i64> = numbers("SELECT id FROM query_log").into_iter().collect();
    let events = query(&connection, "SELECT content FROM memory_events WHERE kind = 'indelible.trim'");
    for event in events.lines() {
        let said: serde_json::Value = serde_json::from_str(event).unwrap();
        let path = placed(Path::new(said["archive"].as_str().unwrap()));
        let Ok(bytes) = std::fs::read(&path) else { return Some(format!("{path:?} is not there")) };
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        if said["sha256"] != digest {
            return Some(format!("{path:?} is not as its event says"));
        }
        ids.extend(said["first_id"].as_i64().unwrap()..=said["last_id"].as_i64().unwrap());
    }
    let whole = ids == (1..=ids.last().copied().unwrap_or(0)).collect();
    if !whole || ids.len() < 400 {
        return Some(format!("of {} rows some are missing", ids.len()));
    }
    (promised && events.is_empty()).then(|| "the trim that was logged is taken back".to_owned())
}

#[test]
fn a_trim_of_the_log_outlives_a_power_cut_at_any_moment() {
    if !is_allowed() {
        return;
    }
    let wanted = rounds(12) * 4;
    side_by_side(&["WAL", "DELETE"], |mode| {
        let mut dice = Dice::new();
        let bench = Bench::with(&format!("PRAGMA journal_mode = {mode}; CREATE TABLE t(v)"));
        Server::on(&bench).start().close();
        bench.sql(
            "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 400) \
             INSERT INTO query_log(ts, session, tool, query, ok, duration_ms) \
             SELECT '2026-01-01T00:00:00Z', 'old', 'read_query', 'SELECT ' || i, 1, 0 FROM c",
        );
        let mut session = Session::start(bench.path(), &["--audit-keep", "100"], None);
        let trimmed = "SELECT count(*) AS n FROM memory_events WHERE kind = 'indelible.trim'";
        let told = (0..100).find_map(|_| {
            std::thread::sleep(Duration::from_millis(100));
            let id = session.send_call("read_query", json!({"query": trimmed}));
            session.answer(id).unwrap().text.starts_with("n\n1\n").then_some(id)
        });
        let told = told.unwrap_or_else(|| panic!("nothing was trimmed: {}", session.stderr()));
        let (recording, status, stderr) = session.end();
        assert_eq!(status, 0, "{stderr}");
        let mut disk = Disk::before(&recording);
        let (mut promised, mut looked) = (false, 0);
        let stride = recording.steps.len().div_ceil(wanted) as u64;
        for (at, step) in recording.steps.iter().enumerate() {
            disk.apply(&step.op);
            // An answer that shows the event shows a commit that is on the disk.
            if let Op::Said(line) = &step.op {
                promised |= serde_json::from_str::<serde_json::Value>(line).unwrap()["id"] == told;
            }
            if !dice.one_in(stride) {
                continue;
            }
            for survival in [Survival::Nothing, Survival::Everything, Survival::Some] {
                let folder = tempfile::tempdir().unwrap();
                lay_out(&disk.image(survival, &mut dice), &recording.root, folder.path());
                looked += 1;
                if let Some(broken) = lost_row(&recording.root, folder.path(), promised) {
                    let (told, kept) = (dice.told(mode), folder.keep());
                    panic!(
                        "{told}: {survival:?} survives step {at} ({:.60?}): {broken}; see {kept:?}",
                        step.op
                    );
                }
            }
        }
        eprintln!("{mode}: {} steps, {looked} disks", recording.steps.len());
        assert!(looked > 20, "{looked}");
    });
}
