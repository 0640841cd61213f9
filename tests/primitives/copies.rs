//! Snapshots, restores and forks of every kind, and what is removed when nothing names it, through the traits.

use super::branches::{numbers, sql, terms};
use super::stdio::Desk;
use super::support::kill;
use super::{Bench, code, run};
use indelible::error::ErrorCode;
use indelible::state::catalog::{Kind, Primitive};
use indelible::state::clock::ManualClock;
use indelible::state::kv::{Value, Write};
use indelible::state::memory::{MemoryKind, NewMemory, Sought};
use indelible::state::objects::Condition;
use indelible::state::queue::{NewJob, Settle};
use indelible::state::store::Store;
use indelible::state::vault::SecretText;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Larger than what stands in an index.
fn large(fill: u8) -> Vec<u8> {
    vec![fill; 100_000]
}

impl Bench {
    /// What the primitive is to hold, whatever its kind.
    async fn put(&self, primitive: &Primitive, number: u8) {
        match primitive.kind {
            Kind::Db => {
                let db = self.store.db(primitive).await.unwrap();
                let table = sql("CREATE TABLE IF NOT EXISTS t(a)");
                let clear = sql("DELETE FROM t");
                let insert = sql(&format!("INSERT INTO t VALUES ({number})"));
                db.exec_tx(None, vec![table, clear, insert], terms()).await.unwrap();
            }
            Kind::Kv => {
                let kv = self.store.kv(primitive).await.unwrap();
                let value = Value::Json(number.to_string());
                let write = Write { key: "k".to_owned(), value, expires_at: None, if_version: None };
                kv.apply(vec![write]).await.unwrap();
            }
            Kind::Fs => {
                let files = self.store.files(primitive).await.unwrap();
                files.write("/f".to_owned(), large(number)).await.unwrap();
            }
            Kind::Storage => {
                let objects = self.store.objects(primitive).await.unwrap();
                let (bytes, condition) = (large(number), Condition::default());
                let (text, none) = ("text/plain".to_owned(), "{}".to_owned());
                objects.put("o".to_owned(), bytes, text, none, condition).await.unwrap();
            }
            Kind::Queue => {
                let queue = self.store.queue(primitive).await.unwrap();
                queue.send(job(number.to_string(), None)).await.unwrap();
            }
            Kind::Memory => {
                let memory = self.store.memory(primitive).await.unwrap();
                memory.remember(text(number)).await.unwrap();
            }
            Kind::Vault => {
                let vault = self.store.vault(primitive).await.unwrap();
                let value = SecretText::new(Zeroizing::new(format!("secret number {number}"))).unwrap();
                vault.set("token".to_owned(), value).await.unwrap();
            }
        }
    }

    /// What it holds, as a sorted list of what was put.
    async fn held(&self, primitive: &Primitive) -> Vec<u8> {
        let first = |bytes: Vec<u8>| {
            assert!(bytes.iter().all(|byte| *byte == bytes[0]));
            vec![bytes[0]]
        };
        match primitive.kind {
            Kind::Db => {
                let db = self.store.db(primitive).await.unwrap();
                numbers(&db, "main")
                    .await
                    .unwrap()
                    .into_iter()
                    .map(|one| u8::try_from(one).unwrap())
                    .collect()
            }
            Kind::Kv => {
                let kv = self.store.kv(primitive).await.unwrap();
                let entry = kv.get(vec!["k".to_owned()]).await.unwrap().remove(0).unwrap();
                let Some(Value::Json(text)) = entry.value else { panic!() };
                vec![text.parse().unwrap()]
            }
            Kind::Fs => {
                let files = self.store.files(primitive).await.unwrap();
                first(files.read("/f".to_owned(), 0, usize::MAX).await.unwrap())
            }
            Kind::Storage => {
                let objects = self.store.objects(primitive).await.unwrap();
                first(objects.read("o".to_owned(), 0, usize::MAX).await.unwrap().unwrap().1)
            }
            Kind::Queue => {
                let queue = self.store.queue(primitive).await.unwrap();
                let jobs = queue.claim("q".to_owned(), 10, 1_000).await.unwrap();
                for job in &jobs {
                    let (id, token) = (job.id.clone(), job.token.clone());
                    queue.settle("q".to_owned(), id, token, Settle::Retry(0), None).await.unwrap();
                }
                jobs.iter().map(|job| job.body.parse().unwrap()).collect()
            }
            Kind::Memory => {
                let memory = self.store.memory(primitive).await.unwrap();
                let (query, kinds, tags) = ("number".to_owned(), Vec::new(), Default::default());
                let sought = Sought { query, kinds, tags, limit: 50 };
                let mut found: Vec<u8> = memory
                    .recall(sought)
                    .await
                    .unwrap()
                    .memories
                    .iter()
                    .map(|one| one.text.rsplit(' ').next().unwrap().parse().unwrap())
                    .collect();
                found.sort_unstable();
                found
            }
            Kind::Vault => {
                let vault = self.store.vault(primitive).await.unwrap();
                let version = vault.entry("token".to_owned()).await.unwrap().unwrap().version;
                let value = vault.value("token".to_owned(), version).await.unwrap();
                vec![value.reveal().rsplit(' ').next().unwrap().parse().unwrap()]
            }
        }
    }

    fn group_folder(&self) -> PathBuf {
        self.folder.path().join("groups").join(&self.primitive.group)
    }

    /// How many large contents the group has.
    fn blobs(&self) -> usize {
        fn count(folder: PathBuf) -> usize {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
            entries.map(|path| if path.is_dir() { count(path) } else { 1 }).sum()
        }
        count(self.group_folder().join("blobs"))
    }
}

fn job(body: String, dedupe_key: Option<&str>) -> NewJob {
    let dedupe_key = dedupe_key.map(str::to_owned);
    NewJob { queue: "q".to_owned(), body, visible_at: 0, priority: 0, dedupe_key }
}

fn text(number: u8) -> NewMemory {
    let text = format!("number {number}");
    NewMemory { kind: MemoryKind::Semantic, text, tags: Default::default(), metadata: None }
}

const KINDS: [Kind; 7] =
    [Kind::Db, Kind::Kv, Kind::Fs, Kind::Storage, Kind::Queue, Kind::Memory, Kind::Vault];

/// Whether a second put stands beside the first, or in its place.
fn after_both(kind: Kind) -> Vec<u8> {
    if matches!(kind, Kind::Queue | Kind::Memory) { vec![1, 2] } else { vec![2] }
}

#[test]
fn a_fork_holds_what_was_there_and_goes_its_own_way() {
    run(async {
        for kind in KINDS {
            let bench = Bench::new(kind).await;
            bench.put(&bench.primitive, 1).await;
            let blobs = bench.blobs();
            let fork = bench.store.fork(&bench.primitive, "f").await.unwrap();
            assert_eq!((fork.kind, fork.name.as_str()), (kind, "f"));
            assert_eq!(bench.blobs(), blobs, "large contents are shared");
            bench.put(&fork, 2).await;
            assert_eq!(bench.held(&bench.primitive).await, [1], "{kind:?}");
            assert_eq!(bench.held(&fork).await, after_both(kind), "{kind:?}");
            assert_eq!(code(bench.store.fork(&bench.primitive, "f").await), ErrorCode::Conflict);
            assert_eq!(code(bench.store.fork(&bench.primitive, "a/b").await), ErrorCode::InvalidArguments);
            let bench = bench.again().await;
            assert_eq!(bench.held(&fork).await, after_both(kind), "{kind:?}");
            let folders = std::fs::read_dir(bench.group_folder()).unwrap().flatten();
            let primitives = folders.filter(|entry| entry.file_name() != "blobs").count();
            assert_eq!(primitives, 2, "what failed has left nothing");
        }
    });
}

#[test]
fn in_the_fork_of_a_queue_nothing_is_leased_and_keys_are_known() {
    run(async {
        let bench = Bench::new(Kind::Queue).await;
        let queue = bench.store.queue(&bench.primitive).await.unwrap();
        queue.send(job("1".to_owned(), Some("key"))).await.unwrap();
        let held = queue.claim("q".to_owned(), 1, 60_000).await.unwrap().remove(0);
        let fork = bench.store.fork(&bench.primitive, "f").await.unwrap();
        let other = bench.store.queue(&fork).await.unwrap();
        assert!(other.send(job("2".to_owned(), Some("key"))).await.unwrap().deduplicated);
        let ack = |queue: &std::sync::Arc<dyn indelible::state::queue::Queue>| {
            let queue = std::sync::Arc::clone(queue);
            let (id, token) = (held.id.clone(), held.token.clone());
            async move { queue.settle("q".to_owned(), id, token, Settle::Ack, None).await }
        };
        assert_eq!(code(ack(&other).await), ErrorCode::LeaseLost, "the lease is the original's");
        let again = other.claim("q".to_owned(), 1, 60_000).await.unwrap().remove(0);
        assert_eq!((again.id.as_str(), again.attempts), (held.id.as_str(), 1));
        assert!(queue.claim("q".to_owned(), 1, 60_000).await.unwrap().is_empty(), "there it is leased still");
        ack(&queue).await.unwrap();
    });
}

#[test]
fn a_restore_brings_back_what_was_there_and_keeps_what_stood_there() {
    run(async {
        for kind in KINDS {
            let bench = Bench::new(kind).await;
            bench.put(&bench.primitive, 1).await;
            let made = bench.store.snapshot(&bench.primitive, Some("before".to_owned())).await.unwrap();
            assert_eq!((made.label.as_deref(), made.automatic), (Some("before"), false));
            bench.put(&bench.primitive, 2).await;
            assert_eq!(
                code(bench.store.restore(&bench.primitive, &made.id).await),
                ErrorCode::Busy,
                "not while it is used"
            );
            let bench = bench.again().await;
            assert_eq!(code(bench.store.restore(&bench.primitive, "nope").await), ErrorCode::NotFound);
            let kept = bench.store.restore(&bench.primitive, &made.id).await.unwrap();
            assert!(kept.automatic && kept.label.as_deref().unwrap().contains(&made.id), "{kept:?}");
            assert_eq!(bench.held(&bench.primitive).await, [1], "{kind:?}");
            // And back again.
            let bench = bench.again().await;
            bench.store.restore(&bench.primitive, &kept.id).await.unwrap();
            assert_eq!(bench.held(&bench.primitive).await, after_both(kind), "{kind:?}");
            let all = bench.store.snapshots(&bench.primitive).await.unwrap();
            assert_eq!(all.len(), 3);
            assert_eq!(all.last().unwrap(), &made, "newest first");
        }
    });
}

#[test]
fn versions_are_not_given_twice_after_a_restore() {
    run(async {
        let bench = Bench::new(Kind::Kv).await;
        bench.put(&bench.primitive, 1).await;
        let made = bench.store.snapshot(&bench.primitive, None).await.unwrap();
        for number in 2..9 {
            bench.put(&bench.primitive, number).await;
        }
        let version = async |bench: &Bench| {
            let kv = bench.store.kv(&bench.primitive).await.unwrap();
            kv.get(vec!["k".to_owned()]).await.unwrap()[0].as_ref().unwrap().version
        };
        let last = version(&bench).await;
        let bench = bench.again().await;
        bench.store.restore(&bench.primitive, &made.id).await.unwrap();
        assert!(version(&bench).await < last);
        bench.put(&bench.primitive, 9).await;
        assert!(version(&bench).await > last, "who holds {last} must not be taken at their word");
    });
}

#[test]
fn a_damaged_snapshot_is_refused_and_nothing_changes() {
    run(async {
        let bench = Bench::new(Kind::Db).await;
        bench.put(&bench.primitive, 1).await;
        let made = bench.store.snapshot(&bench.primitive, None).await.unwrap();
        bench.put(&bench.primitive, 2).await;
        let folder = bench.group_folder().join(&bench.primitive.id);
        let path = folder.join("snapshots").join(format!("{}.db", made.id));
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let bench = bench.again().await;
        let error = bench.store.restore(&bench.primitive, &made.id).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::SnapshotFailed);
        assert!(error.message.contains("is not what was written"), "{error}");
        assert_eq!(bench.held(&bench.primitive).await, [2]);
    });
}

#[test]
fn so_many_snapshots_are_kept_and_no_more() {
    run(async {
        let bench = Bench::new(Kind::Kv).await;
        bench.put(&bench.primitive, 1).await;
        for number in 0..7 {
            bench.store.snapshot(&bench.primitive, Some(number.to_string())).await.unwrap();
        }
        let labels = bench.store.snapshots(&bench.primitive).await.unwrap();
        let labels: Vec<String> = labels.into_iter().filter_map(|one| one.label).collect();
        assert_eq!(labels, ["6", "5", "4", "3", "2"]);
        let folder = bench.group_folder().join(&bench.primitive.id).join("snapshots");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 5);
    });
}

#[test]
fn what_nothing_names_is_removed_and_what_a_fork_or_a_snapshot_names_stays() {
    run(async {
        for kind in [Kind::Fs, Kind::Storage] {
            let bench = Bench::new(kind).await;
            let (now, hour) = (Duration::ZERO, Duration::from_secs(3_600));
            bench.put(&bench.primitive, 1).await;
            let fork = bench.store.fork(&bench.primitive, "f").await.unwrap();
            bench.put(&bench.primitive, 2).await;
            let made = bench.store.snapshot(&bench.primitive, None).await.unwrap();
            bench.put(&bench.primitive, 3).await;
            assert_eq!(bench.store.remove_unnamed(now).await.unwrap(), 0, "all three are named");
            bench.put(&bench.primitive, 4).await;
            assert_eq!(bench.store.remove_unnamed(hour).await.unwrap(), 0, "what is young stays");
            assert_eq!((bench.store.remove_unnamed(now).await.unwrap(), bench.blobs()), (1, 3));
            assert_eq!(bench.held(&fork).await, [1]);
            let bench = bench.again().await;
            bench.store.restore(&bench.primitive, &made.id).await.unwrap();
            assert_eq!(bench.store.remove_unnamed(now).await.unwrap(), 0, "the state before is kept");
            assert_eq!(bench.held(&bench.primitive).await, [2]);
            bench.put(&fork, 5).await;
            assert_eq!((bench.store.remove_unnamed(now).await.unwrap(), bench.blobs()), (1, 3));
        }
    });
}

#[test]
fn what_is_put_again_is_young_again() {
    run(async {
        let bench = Bench::new(Kind::Storage).await;
        bench.put(&bench.primitive, 1).await;
        bench.put(&bench.primitive, 2).await;
        let old = std::time::SystemTime::now() - Duration::from_secs(7_200);
        let mut folders = vec![bench.group_folder().join("blobs")];
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                } else {
                    std::fs::File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
                }
            }
        }
        bench.put(&bench.primitive, 1).await;
        let objects = bench.store.objects(&bench.primitive).await.unwrap();
        objects.delete("o".to_owned(), Condition::default()).await.unwrap();
        let hour = Duration::from_secs(3_600);
        assert_eq!((bench.store.remove_unnamed(hour).await.unwrap(), bench.blobs()), (1, 1));
    });
}

#[test]
fn what_a_killed_server_has_left_goes_and_what_is_not_known_keeps_its_contents() {
    run(async {
        let bench = Bench::new(Kind::Fs).await;
        bench.put(&bench.primitive, 1).await;
        bench.put(&bench.primitive, 2).await;
        let folder = bench.group_folder().join(&bench.primitive.id);
        let leftovers =
            ["01m0000000000000000000000x.db", ".01m0000000000000000000000x.db.tmp-0a", "other.txt"];
        for name in leftovers {
            std::fs::write(folder.join(name), "").unwrap();
        }
        let unfinished = bench.group_folder().join("01m00000000000000000000000");
        std::fs::create_dir(&unfinished).unwrap();
        std::fs::write(unfinished.join("main.db"), "").unwrap();
        // In the making, or on its way out, when the server was killed: a name of its own says so, whatever is in it.
        let hidden = [(1, None), (2, Some("unfinished")), (3, Some("main.db"))].map(|(number, inside)| {
            let folder = bench.group_folder().join(format!(".01m0000000000000000000000{number}"));
            std::fs::create_dir(&folder).unwrap();
            if let Some(inside) = inside {
                std::fs::write(folder.join(inside), "").unwrap();
            }
            folder
        });
        // Without its mark it may be anything.
        assert_eq!(bench.store.remove_unnamed(Duration::ZERO).await.unwrap(), 0);
        assert!(unfinished.exists());
        assert!(hidden.iter().all(|folder| !folder.exists()));
        std::fs::write(unfinished.join("unfinished"), "").unwrap();
        assert_eq!(bench.store.remove_unnamed(Duration::ZERO).await.unwrap(), 1);
        assert!(!unfinished.exists());
        let left: Vec<bool> = leftovers.iter().map(|name| folder.join(name).exists()).collect();
        assert_eq!(left, [false, false, true]);
        assert_eq!(bench.held(&bench.primitive).await, [2]);
    });
}

#[test]
fn forks_and_snapshots_are_whole_or_not_there_through_kills_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let mut desk = Desk::at(folder.path());
    for kind in ["kv", "db"] {
        desk.ok("primitive_create", json!({"type": kind, "name": kind}));
    }
    desk.ok("db_exec", json!({"primitive": "db", "sql": "CREATE TABLE t(a)"}));
    for round in 0..10_u64 {
        let kind = if round % 2 == 0 { "kv" } else { "db" };
        desk.ok("kv_set", json!({"primitive": "kv", "key": "k", "value": round}));
        desk.ok("db_exec", json!({"primitive": "db", "sql": "INSERT INTO t VALUES (1)"}));
        desk.client.send_call("primitive_snapshot", json!({"primitive": kind, "label": round.to_string()}));
        let name = format!("{kind}{round}");
        desk.client.send_call("primitive_fork", json!({"primitive": kind, "new_name": name}));
        std::thread::sleep(Duration::from_millis(round * 7));
        kill(desk.client.pid());
        drop(desk);
        desk = Desk::at(folder.path());
        let all = desk.ok("primitive_list", json!({"type": kind}));
        if all["data"].as_array().unwrap().iter().any(|one| one["name"] == name.as_str()) {
            let rows = json!({"primitive": name, "sql": "SELECT count(*) FROM t"});
            let (found, expected) = match kind {
                "kv" => (
                    desk.ok("kv_get", json!({"primitive": name, "key": "k"}))["data"]["value"].clone(),
                    round,
                ),
                _ => (desk.ok("db_query", rows)["rows"][0][0].clone(), round + 1),
            };
            assert_eq!(found, json!(expected), "{name}");
        }
    }
    drop(desk);
    run(async {
        // Every snapshot that is listed can be restored, and nothing of the rest is in the way.
        let clock: Arc<ManualClock> = Arc::new(ManualClock::at(1_800_000_000_000));
        let store = super::open(&folder, &clock);
        let group = store.catalog().group("g", false).await.unwrap();
        assert_eq!(store.remove_unnamed(Duration::ZERO).await.unwrap(), 0);
        for primitive in store.catalog().primitives(&group).await.unwrap() {
            for snapshot in store.snapshots(&primitive).await.unwrap() {
                store.restore(&primitive, &snapshot.id).await.unwrap();
            }
        }
        let names: Vec<String> =
            store.catalog().primitives(&group).await.unwrap().into_iter().map(|one| one.id).collect();
        let folders = std::fs::read_dir(folder.path().join("groups").join(&group.id)).unwrap();
        let left: Vec<String> = folders
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|folder| !names.contains(folder))
            .collect();
        assert!(left.is_empty(), "unfinished forks are gone: {left:?}");
    });
}

#[test]
#[ignore = "writes a gigabyte"]
fn a_fork_of_a_gigabyte_takes_less_than_a_second() {
    run(async {
        let bench = Bench::new(Kind::Storage).await;
        let objects = bench.store.objects(&bench.primitive).await.unwrap();
        for number in 0..64_u8 {
            let (text, none) = ("application/octet-stream".to_owned(), "{}".to_owned());
            let bytes = vec![number; 16 << 20];
            objects.put(number.to_string(), bytes, text, none, Condition::default()).await.unwrap();
        }
        let began = Instant::now();
        let fork = bench.store.fork(&bench.primitive, "f").await.unwrap();
        let took = began.elapsed();
        assert!(took < Duration::from_secs(1), "{took:?}");
        let copy = bench.store.objects(&fork).await.unwrap();
        assert_eq!(copy.read("63".to_owned(), 5, 3).await.unwrap().unwrap().1, [63, 63, 63]);
    });
}
