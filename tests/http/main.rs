//! The server over real HTTP: who may come in, what is answered to what, many clients on one memory or one group, and
//! the end.
//!
//! The client is a plain HTTP client that knows no MCP: what it sends and finds is the wire.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]

mod bodies;
mod calls;
mod desk;
mod door;
mod ending;
mod groups;
mod hall;
mod keys;
mod many;
mod metrics;
mod oauth;
mod shares;
mod signed;
mod starting;
mod streams;

#[path = "../support/mod.rs"]
mod support;

use desk::{Desk, TOKEN, call, modern, shake};

/// A query that ends only when it is made to.
const ENDLESS: &str =
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
