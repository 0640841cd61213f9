//! What primitives cost, for one client and for 32 at once: `cargo bench --bench primitives [FILTER]`.
//!
//! It calls the traits over real files: every write is on the disk before its answer. It measures no client and no
//! protocol; `benches/outside.py` does that for the tools over SQL.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench that fails stops")]

use divan::Bencher;
use divan::counter::ItemsCount;
use indelible::embedded::{Embedded, SqlSettings};
use indelible::state::catalog::{Kind, Primitive};
use indelible::state::clock::{Clock, SystemClock};
use indelible::state::kv::{Kv, Value, Write};
use indelible::state::memory::{MemoryKind, NewMemory, Sought};
use indelible::state::objects::Condition;
use indelible::state::queue::{NewJob, Queue, Settle};
use indelible::state::store::Store;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const CLIENTS: &[u64] = &[1, 32];
/// Operations of each client in one sample.
const EACH: u64 = 20;
const MEMORIES: usize = 10_000;

fn main() {
    // The store starts this program again for the processes that copy.
    if std::env::args().nth(1).as_deref() == Some("worker") {
        indelible::worker::process::run().unwrap();
        return;
    }
    divan::main();
}

/// A store with one primitive, and the event loop that the server has: one thread.
struct Bench {
    _folder: TempDir,
    runtime: Runtime,
    store: Embedded,
    primitive: Primitive,
}

fn bench(kind: Kind) -> Bench {
    // Where the program is built, not in a folder that may be memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (store, primitive) = runtime.block_on(async {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = Embedded::open(folder.path(), clock, SqlSettings::default()).unwrap();
        let group = store.catalog().group("g", true).await.unwrap();
        let primitive = store.catalog().create(&group, kind, "p").await.unwrap();
        (store, primitive)
    });
    Bench { _folder: folder, runtime, store, primitive }
}

/// Runs `one` for each client, all at once, [`EACH`] times one after the other.
fn side_by_side<F: Future<Output = ()> + 'static>(
    runtime: &Runtime,
    clients: u64,
    one: impl Fn(u64) -> F + Clone + 'static,
) {
    let tasks = tokio::task::LocalSet::new();
    for client in 0..clients {
        let one = one.clone();
        tasks.spawn_local(async move {
            for number in 0..EACH {
                one(client * EACH + number).await;
            }
        });
    }
    runtime.block_on(tasks);
}

/// What the disk does at the moment: a page is appended and synced, [`EACH`] times. Every write below costs at least one of
/// these, and a send with its receive and its acknowledgement three; a run in which that does not show was not calm.
#[divan::bench]
fn disk_sync(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut file = std::fs::File::create(folder.path().join("pages")).unwrap();
    bencher.counter(ItemsCount::new(EACH)).bench_local(|| {
        for _ in 0..EACH {
            file.write_all(&[0; 4096]).unwrap();
            file.sync_data().unwrap();
        }
    });
}

/// The same behind the others, so that a run shows whether the disk was another one in between.
#[divan::bench]
fn queue_zz_disk_sync(bencher: Bencher<'_, '_>) {
    disk_sync(bencher);
}

#[divan::bench(args = CLIENTS)]
fn kv_set(bencher: Bencher<'_, '_>, clients: u64) {
    let bench = bench(Kind::Kv);
    let kv = bench.runtime.block_on(bench.store.kv(&bench.primitive)).unwrap();
    bencher.counter(ItemsCount::new(clients * EACH)).bench_local(|| {
        let kv = Arc::clone(&kv);
        side_by_side(&bench.runtime, clients, move |number| set(Arc::clone(&kv), number));
    });
}

#[divan::bench(args = CLIENTS)]
fn kv_get(bencher: Bencher<'_, '_>, clients: u64) {
    let bench = bench(Kind::Kv);
    let kv = bench.runtime.block_on(bench.store.kv(&bench.primitive)).unwrap();
    let filled = Arc::clone(&kv);
    side_by_side(&bench.runtime, clients, move |number| set(Arc::clone(&filled), number));
    bencher.counter(ItemsCount::new(clients * EACH)).bench_local(|| {
        let kv = Arc::clone(&kv);
        side_by_side(&bench.runtime, clients, move |number| {
            let kv = Arc::clone(&kv);
            async move { assert!(kv.get(vec![format!("key/{number}")]).await.unwrap()[0].is_some()) }
        });
    });
}

async fn set(kv: Arc<dyn Kv>, number: u64) {
    let value = Value::Json(format!("{{\"step\":{number}}}"));
    kv.apply(vec![Write { key: format!("key/{number}"), value, expires_at: None, if_version: None }])
        .await
        .unwrap();
}

#[divan::bench(args = CLIENTS)]
fn queue_send(bencher: Bencher<'_, '_>, clients: u64) {
    let bench = bench(Kind::Queue);
    let queue = bench.runtime.block_on(bench.store.queue(&bench.primitive)).unwrap();
    bencher.counter(ItemsCount::new(clients * EACH)).bench_local(|| {
        let queue = Arc::clone(&queue);
        side_by_side(&bench.runtime, clients, move |number| send(Arc::clone(&queue), number));
    });
}

/// One item is a whole round: three commits, one after the other.
#[divan::bench(args = CLIENTS)]
fn queue_send_receive_ack(bencher: Bencher<'_, '_>, clients: u64) {
    let bench = bench(Kind::Queue);
    let queue = bench.runtime.block_on(bench.store.queue(&bench.primitive)).unwrap();
    bencher.counter(ItemsCount::new(clients * EACH)).bench_local(|| {
        let queue = Arc::clone(&queue);
        side_by_side(&bench.runtime, clients, move |number| {
            let queue = Arc::clone(&queue);
            async move {
                send(Arc::clone(&queue), number).await;
                let job = queue.claim("jobs".to_owned(), 1, 30_000).await.unwrap().remove(0);
                queue.settle("jobs".to_owned(), job.id, job.token, Settle::Ack, None).await.unwrap();
            }
        });
    });
}

async fn send(queue: Arc<dyn Queue>, number: u64) {
    let job = NewJob {
        queue: "jobs".to_owned(),
        body: format!("{{\"n\":{number}}}"),
        visible_at: 0,
        priority: 0,
        dedupe_key: None,
    };
    queue.send(job).await.unwrap();
}

#[divan::bench(sample_count = 50)]
fn recall_of_10_000(bencher: Bencher<'_, '_>) {
    const WORDS: &[&str] = &[
        "deploy", "server", "database", "password", "friday", "rollback", "schema", "index", "queue",
        "token", "release", "branch", "review", "linter", "cache", "timeout", "budget", "customer",
        "invoice", "report",
    ];
    let bench = bench(Kind::Memory);
    let memory = bench.runtime.block_on(bench.store.memory(&bench.primitive)).unwrap();
    bench.runtime.block_on(async {
        let texts: Vec<_> = (0..MEMORIES)
            .map(|number| {
                let word = |step: usize| WORDS[(number / step + number * step) % WORDS.len()];
                let text =
                    format!("Note {number}: {} the {} before {} and {}", word(1), word(3), word(7), word(11));
                memory.remember(NewMemory {
                    kind: MemoryKind::Semantic,
                    text,
                    tags: BTreeSet::new(),
                    metadata: None,
                })
            })
            .collect();
        futures::future::try_join_all(texts).await.unwrap();
    });
    let asked = AtomicU64::new(0);
    bencher.bench_local(|| {
        let number = asked.fetch_add(1, Ordering::Relaxed) as usize;
        let query = format!("the {} of note {}", WORDS[number % WORDS.len()], number * 37 % MEMORIES);
        let sought = Sought { query, kinds: Vec::new(), tags: BTreeSet::new(), limit: 10 };
        let found = bench.runtime.block_on(memory.recall(sought)).unwrap();
        assert!(!found.memories.is_empty());
    });
}

/// A storage of a thousand objects of a megabyte each.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn fork_of_1_gb(bencher: Bencher<'_, '_>) {
    let bench = bench(Kind::Storage);
    let objects = bench.runtime.block_on(bench.store.objects(&bench.primitive)).unwrap();
    bench.runtime.block_on(async {
        for number in 0..1000_u32 {
            let mut bytes = vec![b'x'; 1 << 20];
            bytes[..4].copy_from_slice(&number.to_le_bytes());
            let (kind, metadata) = ("application/octet-stream".to_owned(), "{}".to_owned());
            objects.put(format!("o/{number}"), bytes, kind, metadata, Condition::default()).await.unwrap();
        }
    });
    let made = AtomicU64::new(0);
    bencher.bench_local(|| {
        let name = format!("fork{}", made.fetch_add(1, Ordering::Relaxed));
        bench.runtime.block_on(bench.store.fork(&bench.primitive, &name)).unwrap();
    });
}
