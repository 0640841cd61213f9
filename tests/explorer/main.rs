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
use support::kill;
use support::music::{ENDLESS, MUSIC};
