//! Worker processes: where agent SQL runs, and how the server talks to them.
//!
//! A worker decides nothing about tools and never speaks MCP.
//!
//! # Layout
//!
//! - [`protocol`]: what goes over the pipe
//! - [`process`], `frames`, `confine`: the child's loop, its end of the pipe, and what it gives up before it takes SQL
//! - [`pool`], `clock`, `nursery`, `child`, `unsent`: the server's side: which worker has which job, for how long, how workers
//!   are started, one of them, what it has not taken yet
//! - `narrowed`: what of the user's policy file each worker was told
//! - [`temp_folder`]: where temporary files go
//! - [`selftest`]: whether workers are as confined as they should be

mod child;
mod clock;
mod confine;
mod copies;
mod frames;
mod narrowed;
mod nursery;
pub mod pool;
pub mod process;
pub mod protocol;
pub mod selftest;
pub mod temp_folder;
mod unsent;
