//! What survives when something ends: a worker, the server, its input, a call, another process's lock.
//!
//! Each test starts the program on a database of its own. What the tools answer otherwise is in `memory/`.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]

mod cancellation;
mod end_of_input;
mod locks;
mod server_killed;
mod two_servers;
mod workers;

#[path = "../support/mod.rs"]
mod support;

/// A query that ends only when it is made to.
const ENDLESS: &str =
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

/// A change that ends only when it is made to.
const ENDLESS_INSERT: &str = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) INSERT INTO notes(title) SELECT 't' FROM c";

/// Ends a process without a word.
fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
