//! The explorer profile over real stdio: look at any SQLite file, structured, and change nothing.
//!
//! Each test starts the program on a database of its own. Every result as data that passes through here is held
//! against its tool's output schema, and every error against its code. Resources and the prompt have tests of
//! their own in `resources.rs`.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]

mod caps;
mod codes;
mod desk;
mod killing;
mod log;
mod plans;
mod querying;
mod refusing;
mod sampling;
mod schema;
mod settings;
mod surface;
mod unreadable;
mod untouched;

#[path = "../support/mod.rs"]
mod support;

use desk::Desk;

/// A small music store.
const MUSIC: &str = "
    CREATE TABLE artists(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE albums(id INTEGER PRIMARY KEY, artist_id INTEGER NOT NULL REFERENCES artists(id), title TEXT);
    CREATE TABLE tracks(id INTEGER PRIMARY KEY, album_id INTEGER REFERENCES albums(id), title TEXT, ms INTEGER, price REAL, art BLOB);
    CREATE INDEX tracks_album ON tracks(album_id);
    CREATE VIEW long_tracks AS SELECT id, title FROM tracks WHERE ms > 200000;
    INSERT INTO artists VALUES (1, 'Ana'), (2, 'Bo');
    INSERT INTO albums VALUES (1, 1, 'First'), (2, 2, 'Second');
    WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 60)
        INSERT INTO tracks SELECT x, 1 + x % 2, 'track ' || x, 100000 + x * 3000, 0.99, x'0102' FROM c;
";

/// A query that ends only when it is made to.
const ENDLESS: &str =
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

/// Ends a process without a word.
fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
