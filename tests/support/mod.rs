//! What the tests over a real server share: a database in a folder of its own, a client that speaks raw
//! lines, and a look at the server's processes.
//!
//! It knows the wire and the file, and nothing of the crate's own types: what it finds is what a client finds.

#![allow(dead_code, unused_imports, reason = "each test program uses its own part")]

mod bench;
mod client;
pub(crate) mod hostile;
pub(crate) mod music;
mod process;
mod schema;

pub(crate) use bench::{Bench, query};
pub(crate) use client::{Answer, Client, Server};
pub(crate) use process::{children_of, is_alive, is_open_elsewhere, kill, wait_until};
pub(crate) use schema::violation;
