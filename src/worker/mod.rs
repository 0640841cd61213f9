//! Worker processes: where agent SQL runs, and how the server talks to them.
//!
//! `protocol` is what goes over the pipe (`unsent` what has not gone yet), `process` the child's loop, `confine` what it gives up before, `pool` the
//! parent's side, `nursery` how it starts them, `temp_folder` where its temporary files go, `selftest` whether it is as confined as it should be. A
//! worker decides nothing about tools and never speaks MCP.

mod child;
mod confine;
mod narrowed;
mod nursery;
pub mod pool;
pub mod process;
pub mod protocol;
pub mod selftest;
pub mod temp_folder;
mod unsent;
