//! Files that are far longer than what is in them: SQLite makes a damaged one so, and writes nothing in between.

use crate::laid;
use crate::support::{Bench, Server};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// A database whose fourth page points at a page far behind the end. In a file with auto_vacuum, a new table wants the
/// place of that page; SQLite moves it, and notes its new place with the page that it points at.
fn pointing_at(far: u32) -> Vec<u8> {
    let bench = Bench::with(
        "PRAGMA page_size = 512; PRAGMA auto_vacuum = 1; PRAGMA journal_mode = DELETE; CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT);
         WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 40) INSERT INTO t SELECT x, printf('%.*c', 300, 'a') FROM c;
         UPDATE t SET a = printf('%.*c', 900, 'a')",
    );
    let mut bytes = std::fs::read(bench.path()).unwrap();
    let page = &mut bytes[3 * 512..4 * 512];
    assert_eq!(
        (page[0], &page[500..508]),
        (13, &b"aaaaaaaa"[..]),
        "a leaf whose last cell goes on elsewhere"
    );
    page[508..].copy_from_slice(&far.to_be_bytes());
    bytes
}

#[test]
fn a_damaged_file_that_sqlite_makes_huge_is_refused_a_snapshot_at_once_and_takes_no_room() {
    // 3 GB, 25 GB, half a TB.
    for far in [6_000_000, 50_000_000, 1_000_000_000] {
        let bench = laid(&pointing_at(far), None);
        let mut client = Server::on(&bench).start();
        let found = std::fs::metadata(bench.path()).unwrap();
        assert!(found.len() > u64::from(far) * 500, "SQLite makes it {} bytes long", found.len());
        assert!(found.blocks() < 2048, "{} blocks", found.blocks());
        let began = Instant::now();
        let answer = client.destroy("DELETE FROM t WHERE id = 40");
        let took = began.elapsed();
        answer.fails_as("SNAPSHOT_FAILED", &["most likely damaged", "nothing was run"]);
        assert!(took < Duration::from_secs(15), "{far}: {took:?}");
        assert_eq!(bench.snapshots(), Vec::<std::path::PathBuf>::new());
        client.is_alive();
        client.close();
    }
}
