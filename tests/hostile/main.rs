//! What an agent, or somebody with a SQLite of their own, may try against the server: each of these once
//! got through, or nearly did. Over real stdio, with the program as it is built.
//!
//! It does not test what the tools are for; other tests do.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper of a test fails as the test does"
)]

mod bounds;
mod client;
mod full_text;
mod names;
mod overwrites;
mod reach;
mod stale;
