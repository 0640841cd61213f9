//! Worker processes: where agent SQL runs, and how the server talks to them.
//!
//! `protocol` is what goes over the pipe, `process` the child's loop, `pool` the parent's side. A worker
//! decides nothing about tools and never speaks MCP.

mod child;
mod clock;
mod narrowed;
pub mod pool;
pub mod process;
pub mod protocol;
