//! What the parts of a call cost, one by one: `cargo bench --bench inside [FILTER]`.
//!
//! It measures no client and no protocol; `benches/outside.py` does.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench that fails stops")]

use divan::{Bencher, black_box, counter::ItemsCount};
use indelible::audit::AuditRow;
use indelible::chain::{ChainVerifier, EventRow, GENESIS, Pins, event_hash};
use indelible::generated::{POLICIES, PROTECTED};
use indelible::policy::{ConnectionKind, Policy};
use indelible::render::{Caps, Cell, CsvSink, RowCut};
use indelible::sqlite::guard::Guarded;
use indelible::sqlite::ledger::Ledger;
use indelible::sqlite::params::Params;
use indelible::sqlite::query::{self, Form, Read};
use indelible::sqlite::readout::{Pace, Readout};
use indelible::sqlite::search_rows::{self, Search};
use indelible::sqlite::toll::Agreed;
use indelible::sqlite::watch::Watch;
use indelible::sqlite::write::{Change, Moments, Writer};
use indelible::worker::pool::{Attend, Pool, Terms};
use indelible::worker::protocol::Work;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const WAIT: Duration = Duration::from_secs(5);
const CAPS: Caps = Caps { max_result_bytes: 1_000_000, max_cell_chars: 2000 };
const EVENTS: i64 = 20_000;

fn main() {
    // The pool starts this program again for its workers.
    if std::env::args().nth(1).as_deref() == Some("worker") {
        indelible::worker::process::run().unwrap();
        return;
    }
    divan::main();
}

/// A database in a folder that goes with it.
struct File {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn file(sql: &str) -> File {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.db");
    drop(Ledger::open(&path, WAIT).unwrap());
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    File { _folder: folder, path }
}

const ORDERS: &str = "
    CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, sku TEXT, status TEXT, amount REAL, note TEXT);
    INSERT INTO orders WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 50000)
    SELECT n, n % 977, 'SKU-' || n, 'paid', n / 8.0, iif(n % 100 = 7, 'timeout after ' || n, 'nothing of interest') FROM c;
";

fn policy(id: &str) -> &'static Policy {
    POLICIES.iter().copied().find(|policy| policy.id == id).unwrap()
}

fn guarded(path: &Path, kind: ConnectionKind) -> Guarded {
    let watch = Watch::alone(WAIT);
    watch.start(Duration::from_secs(3600));
    Guarded::open(path, kind, false, &PROTECTED, watch).unwrap()
}

#[divan::bench]
fn csv_of_1000_rows(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(8000_u32)).bench(|| {
        let columns = ["id", "customer", "sku", "status", "quantity", "amount", "discount", "created"];
        let mut sink = CsvSink::new(&columns, CAPS);
        for id in 0..1000 {
            sink.begin_row();
            let texts = [&b"SKU-123456"[..], b"paid", b"2026-11-30T09:00:00Z"].map(Cell::Text);
            let [sku, status, created] = texts;
            let numbers = [Cell::Integer(id), Cell::Integer(977), Cell::Integer(3), Cell::Real(12.5)];
            let [id, customer, quantity, amount] = numbers;
            for cell in [id, customer, sku, status, quantity, amount, Cell::Null, created] {
                sink.cell(cell);
            }
            sink.end_row();
        }
        sink.finish(RowCut::None).text.len()
    });
}

/// Events with texts of about 250 bytes.
fn chain() -> Vec<(i64, String, String, String)> {
    let mut before = GENESIS.to_owned();
    (1..=EVENTS)
        .map(|id| {
            let content = format!("event {id}: {}", "decided to keep the schema as it is, ".repeat(6));
            let hash = event_hash(id, TS, "bench", "note", &content, &before);
            (id, content, std::mem::replace(&mut before, hash.clone()), hash)
        })
        .collect()
}

const TS: &str = "2026-11-30T09:01:02Z";

#[divan::bench]
fn chain_in_memory(bencher: Bencher<'_, '_>) {
    let chain = chain();
    bencher.counter(ItemsCount::new(EVENTS.unsigned_abs())).bench_local(|| {
        let mut verifier = ChainVerifier::new(Pins::new());
        for (id, content, prev_hash, hash) in &chain {
            verifier.event(&EventRow {
                id: *id,
                ts: TS,
                session: "bench",
                kind: "note",
                content,
                prev_hash,
                hash,
            });
        }
        assert!(verifier.finish().ok);
    });
}

#[divan::bench(args = [1, 2])]
fn chain_in_a_file_by_threads(bencher: Bencher<'_, '_>, threads: usize) {
    let file = file("");
    let mut outside = Connection::open(&file.path).unwrap();
    let transaction = outside.transaction().unwrap();
    for (id, content, prev_hash, hash) in chain() {
        let sql = "INSERT INTO memory_events VALUES (?1, ?2, 'bench', 'note', ?3, ?4, ?5)";
        transaction.prepare_cached(sql).unwrap().execute((id, TS, content, prev_hash, hash)).unwrap();
    }
    transaction.commit().unwrap();
    let open = || Readout::open(&file.path, WAIT).unwrap();
    let (readout, mut beside) = (open(), open());
    bencher.counter(ItemsCount::new(EVENTS.unsigned_abs())).bench_local(|| {
        let deadline = Instant::now() + WAIT;
        let pace = Pace { deadline, limit: WAIT, cancelled: &|| false, progress: &|_, _| {} };
        let beside = (threads > 1).then_some(&mut beside);
        assert!(readout.verify(&pace, beside).unwrap().0.ok);
    });
}

#[divan::bench]
fn compile_and_judge_what_is_new(bencher: Bencher<'_, '_>) {
    let file = file(ORDERS);
    let (guarded, mut id) = (guarded(&file.path, ConnectionKind::ReadOnly), 0);
    bencher.bench_local(|| {
        id += 1;
        let sql = format!("SELECT id, sku, amount FROM orders WHERE id = {id}");
        black_box(guarded.compile(policy("read"), &sql).unwrap().judged.readonly)
    });
}

#[divan::bench]
fn compile_what_is_known(bencher: Bencher<'_, '_>) {
    let file = file(ORDERS);
    let guarded = guarded(&file.path, ConnectionKind::ReadOnly);
    bencher.bench_local(|| {
        let sql = "SELECT id, sku, amount FROM orders WHERE id = ?1";
        black_box(guarded.compile(policy("read"), sql).unwrap().judged.readonly)
    });
}

#[divan::bench(args = [1, 1000])]
fn read_rows(bencher: Bencher<'_, '_>, rows: u64) {
    let file = file(ORDERS);
    let (guarded, mut id) = (guarded(&file.path, ConnectionKind::ReadOnly), 0);
    bencher.bench_local(|| {
        id = (id + 77) % 48_000 + 1;
        let sql = format!("SELECT * FROM orders WHERE id BETWEEN {id} AND {id} + {}", rows - 1);
        let read = Read {
            sql: &sql,
            params: &Params::None,
            limit: 1000,
            max_rows: 1000,
            caps: CAPS,
            form: Form::Csv,
        };
        query::run(&guarded, policy("read"), read, &mut || {}).unwrap()
    });
}

#[divan::bench]
fn search_50000_rows(bencher: Bencher<'_, '_>) {
    let file = file(ORDERS);
    let guarded = guarded(&file.path, ConnectionKind::ReadOnly);
    let search = Search {
        pattern: "timeout after \\d+7$".to_owned(),
        fixed_strings: false,
        ignore_case: false,
        table: "orders".to_owned(),
        columns: vec!["sku".to_owned(), "note".to_owned()],
        filter: None,
        key_column: None,
        limit: 100,
        max_rows: 1000,
        context_chars: 80,
        max_candidates: 0,
        caps: CAPS,
    };
    bencher
        .counter(ItemsCount::new(100_000_u32))
        .bench_local(|| search_rows::run(&guarded, policy("read"), &search, &mut || {}).unwrap());
}

struct Silent;

impl Moments for Silent {
    fn before_log(&mut self) {}
    fn before_commit(&mut self) {}
}

/// Inserts with their rows in the log, so many to a commit.
#[divan::bench(args = [1, 8])]
fn insert(bencher: Bencher<'_, '_>, together: usize) {
    let file = file(ORDERS);
    let guarded = guarded(&file.path, ConnectionKind::ReadWrite);
    let mut writer = Writer::new(guarded, file.path.clone()).unwrap();
    let audit = AuditRow { tool: "write_query".to_owned(), ok: true, ..AuditRow::default() };
    let mut n = 0;
    bencher.counter(ItemsCount::new(together)).bench_local(|| {
        let statements: Vec<String> = (0..together)
            .map(|_| {
                n += 1;
                format!("INSERT INTO orders(customer, sku, status) VALUES ({n}, 'new-{n}', 'new')")
            })
            .collect();
        let change = |sql| Change {
            sql,
            params: &Params::None,
            max_rows: 1000,
            caps: CAPS,
            max_overwrites: Some(1000),
            agreed: Agreed::Anything,
            audit: &audit,
        };
        let changes: Vec<Change<'_>> = statements.iter().map(|sql| change(sql)).collect();
        if let [alone] = &changes[..] {
            writer.guarded().watch().start(WAIT);
            writer.run(policy("write"), alone, &mut Silent).unwrap();
        } else {
            let outcomes = writer.run_group(policy("write"), &changes, &mut Silent).unwrap();
            assert!(outcomes.iter().all(|outcome| matches!(outcome, Some(Ok(_)))));
        }
    });
}

struct Nobody;

impl Attend for Nobody {
    async fn write_log(&self) {}
}

#[divan::bench]
fn round_trip_to_a_worker(bencher: Bencher<'_, '_>) {
    let file = file(ORDERS);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let pool = runtime.block_on(async { Pool::new(file.path.clone(), WAIT, false) });
    let mut id = 0;
    bencher.bench_local(|| {
        id = (id + 77) % 48_000 + 1;
        let sql = format!("SELECT * FROM orders WHERE id = {id}");
        let (params, form) = (Params::None, Form::Csv);
        let work = Work::Read { sql, params, limit: 10, max_rows: 1000, caps: CAPS, form };
        let terms = Terms {
            policy: "read",
            timeout: WAIT,
            cancel: CancellationToken::new(),
            owner: Default::default(),
        };
        runtime.block_on(pool.read(work, &terms, &Nobody)).unwrap()
    });
    runtime.block_on(pool.close());
}
