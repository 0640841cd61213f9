//! Named pieces of state, the primitives: what each can do, as traits without SQL, and the rules that hold
//! wherever the state is kept.
//!
//! `embedded/` keeps it in SQLite files. A second implementation, on other engines, must pass the same tests, so
//! nothing here names a file, a connection or a statement.
//!
//! # Layout
//!
//! - `catalog`: groups and their primitives; `keys`: what opens a group; `signing`: URLs for one object; `store`: from a primitive to its trait
//! - `kv`: keys and values; `queue`: jobs, leased and fenced; `memory`: texts to be recalled;
//!   `snapshots`: states to go back to;
//!   `files`: a tree; `objects`: values with a type, by key; `blobs`: large contents of both; `db`: tables of an agent's own;
//!   `vault`: secrets
//! - `clock`: the time, which tests turn by hand; `duration`: lengths of time as agents write them

pub mod blobs;
pub mod catalog;
pub mod clock;
pub mod db;
pub mod duration;
pub mod files;
pub mod keys;
pub mod kv;
pub mod memory;
pub mod objects;
pub mod queue;
pub mod signing;
pub mod snapshots;
pub mod store;
pub mod vault;

use crate::error::{ErrorCode, ToolError};

/// What every operation gives back: its result, or an error that an agent can act on.
pub type Outcome<T> = Result<T, ToolError>;

/// There is no such thing; the words say what to look at.
pub fn not_found(words: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::NotFound, words)
}
