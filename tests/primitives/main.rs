//! Primitives: each family against a plain model in memory, under a clock that the test turns; and the tools over real
//! stdio.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]

#[cfg(target_os = "linux")]
mod bounds;
#[cfg(target_os = "linux")]
mod branches;
#[cfg(target_os = "linux")]
mod copies;
#[cfg(target_os = "linux")]
mod databases;
mod echo;
mod files;
#[cfg(target_os = "linux")]
mod kept;
mod kv;
mod meaning;
mod memory;
mod objects;
mod queue;
mod rebinding;
mod stdio;
#[cfg(target_os = "linux")]
#[path = "../support/mod.rs"]
mod support;
mod vault;
mod vault_commands;
#[cfg(target_os = "linux")]
mod vault_tls;
#[cfg(target_os = "linux")]
mod vault_use;

use indelible::embedded::{Embedded, SqlSettings};
use indelible::error::{ErrorCode, ToolError};
use indelible::state::catalog::{Kind, Primitive};
use indelible::state::clock::{Clock, ManualClock};
use indelible::state::store::Store;
use std::sync::Arc;
use tempfile::TempDir;

/// A store with one primitive, in a folder of its own.
struct Bench {
    folder: TempDir,
    clock: Arc<ManualClock>,
    store: Embedded,
    primitive: Primitive,
}

impl Bench {
    async fn new(kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(1_800_000_000_000));
        let store = open(&folder, &clock);
        let group = store.catalog().group("g", true).await.unwrap();
        let primitive = store.catalog().create(&group, kind, "p").await.unwrap();
        Self { folder, clock, store, primitive }
    }

    /// The same folder after the server has ended and begun anew.
    async fn again(self) -> Self {
        let Self { folder, clock, store, primitive } = self;
        store.close().await;
        drop(store);
        let store = open(&folder, &clock);
        Self { folder, clock, store, primitive }
    }
}

/// The program of a worker is the one that is tested, not the test.
fn open(folder: &TempDir, clock: &Arc<ManualClock>) -> Embedded {
    for _ in 0..500 {
        let program = Some(env!("CARGO_BIN_EXE_indelible").into());
        let sql = SqlSettings { program, ..SqlSettings::default() };
        match Embedded::open(folder.path(), Arc::clone(clock) as Arc<dyn Clock>, sql) {
            Ok(store) => return store,
            // A worker that another test starts just now has this test's files for a moment, the lock among them.
            Err(error) => assert!(error.message.contains("another server"), "{error:?}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the data folder stays locked");
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn code<T: std::fmt::Debug>(result: Result<T, ToolError>) -> ErrorCode {
    result.unwrap_err().code
}

#[test]
fn a_data_folder_has_one_server() {
    run(async {
        let bench = Bench::new(Kind::Kv).await;
        let clock = Arc::new(ManualClock::at(0));
        let error = Embedded::open(bench.folder.path(), clock, SqlSettings::default()).err().unwrap();
        assert!(error.message.contains("another server has the data folder"), "{error}");
        let bench = bench.again().await;
        let group = bench.store.catalog().group("g", false).await.unwrap();
        assert_eq!(bench.store.catalog().primitives(&group).await.unwrap(), [bench.primitive]);
        assert_eq!(code(bench.store.catalog().group("other", false).await), ErrorCode::NotFound);
        assert_eq!(code(bench.store.catalog().create(&group, Kind::Fs, "p").await), ErrorCode::Conflict);
    });
}

#[cfg(unix)]
#[test]
fn what_is_made_is_for_its_owner_alone_also_in_a_folder_that_others_can_read() {
    use std::os::unix::fs::PermissionsExt;
    run(async {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let store = open(&folder, &Arc::new(ManualClock::at(1_800_000_000_000)));
        store.catalog().group("g", true).await.unwrap();
        for name in ["catalog.db", "catalog.db-wal", "catalog.db-shm"] {
            let mode = std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{name} {mode:o}");
        }
        store.close().await;
    });
}
