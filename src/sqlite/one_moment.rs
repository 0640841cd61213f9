//! Two connections with one view of the file, and a number that tells whether somebody else has written.
//!
//! It reads nothing of the file but that number.

use rusqlite::Connection;

/// How often somebody may commit between the beginnings of two views that are to be one.
const TRIES: usize = 3;

/// Begins a read transaction on each connection so that both see the file as it was at one moment. False: the
/// first has begun, the second has not, because others kept committing in between.
pub(super) fn begin_both(first: &Connection, second: &Connection) -> rusqlite::Result<bool> {
    for _ in 0..TRIES {
        run(first, "BEGIN")?;
        let version = data_version(first)?;
        run(second, "BEGIN")?;
        data_version(second)?;
        // If nobody has committed since the first began, then not since the second began either.
        run(first, "COMMIT")?;
        run(first, "BEGIN")?;
        if data_version(first)? == version {
            return Ok(true);
        }
        run(second, "COMMIT")?;
        run(first, "COMMIT")?;
    }
    run(first, "BEGIN").map(|()| false)
}

/// A number that is another one as soon as another connection, of whatever process, has committed
/// (<https://sqlite.org/pragma.html#pragma_data_version>). Asking begins the view of a transaction.
pub(super) fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA main.data_version")?.query_row([], |row| row.get(0))
}

pub(super) fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn two_views_are_of_one_moment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let open = || Connection::open(&path).unwrap();
        let (first, second, writer) = (open(), open(), open());
        writer.execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t(x); INSERT INTO t VALUES (1)").unwrap();
        let count = |connection: &Connection| -> i64 {
            connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
        };
        assert!(begin_both(&first, &second).unwrap());
        writer.execute_batch("INSERT INTO t VALUES (2)").unwrap();
        assert_eq!((count(&first), count(&second), count(&writer)), (1, 1, 2));
        for connection in [&first, &second] {
            connection.execute_batch("COMMIT").unwrap();
        }
        // With a writer that never rests, either both see the same or the second has not begun.
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    writer.execute_batch("INSERT INTO t VALUES (3)").unwrap();
                }
            });
            for _ in 0..200 {
                if begin_both(&first, &second).unwrap() {
                    assert_eq!(count(&first), count(&second));
                    second.execute_batch("COMMIT").unwrap();
                } else {
                    assert!(second.is_autocommit());
                }
                first.execute_batch("COMMIT").unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
