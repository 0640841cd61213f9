//! What must hold of a database file after any fault, found without the program: pages, the chain, the triggers.
//!
//! It computes the chain's hashes by the documented rule and uses nothing of the crate's own.

use crate::support::query;
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::Duration;

/// A connection from outside.
pub(crate) fn open(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(20)).unwrap();
    connection
}

/// What is wrong with the file; nothing if it is whole.
pub(crate) fn fault(connection: &Connection) -> Option<String> {
    let pages = match connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)) {
        Ok(text) => text,
        Err(error) => return Some(format!("integrity_check: {error}")),
    };
    if pages != "ok" {
        return Some(format!("integrity_check: {pages}"));
    }
    if let Some(text) = broken_link(connection) {
        return Some(text);
    }
    let triggers =
        "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND name LIKE '%\\_no\\_%' ESCAPE '\\'";
    let count = query(connection, triggers);
    (count != "9").then(|| format!("{count} of 9 triggers are there"))
}

/// The first event that does not follow from the one before it.
fn broken_link(connection: &Connection) -> Option<String> {
    let mut statement = connection
        .prepare("SELECT id, ts, session, kind, content, prev_hash, hash FROM memory_events ORDER BY id")
        .unwrap();
    let mut rows = statement.query([]).unwrap();
    let (mut expected, mut head) = (1_i64, "0".repeat(64));
    while let Some(row) = rows.next().unwrap() {
        let id: i64 = row.get(0).unwrap();
        let text = |column: usize| row.get::<_, String>(column).unwrap();
        let (previous, hash) = (text(5), text(6));
        let json =
            serde_json::to_string(&(id, text(1), text(2), text(3), text(4), previous.clone())).unwrap();
        let computed: String =
            Sha256::digest(json.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        if id != expected || previous != head || hash != computed {
            return Some(format!("the chain breaks at event {id}"));
        }
        (expected, head) = (id + 1, hash);
    }
    None
}
