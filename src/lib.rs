//! Indelible: one SQLite file as an AI agent's primary tool, over the Model Context Protocol.
//!
//! # Layout
//!
//! Imports go down this list only (a test reads the sources and holds it to that):
//!
//! - [`error`], [`spec`]: errors and exit statuses; the YAML model, its checks and diagnostics
//! - `codegen`: spec to text, for build.rs and tests
//! - [`policy`], [`render`], [`chain`], [`search`]: verdicts over what a statement does; CSV; the memory's hashes
//!   and their check; patterns and snippets
//!
//! It is a library for its own binary and tests, not an API with a promise of stability.

pub mod audit;
pub mod chain;
pub mod error;
pub mod policy;
pub mod render;
pub mod search;
pub mod spec;
pub mod sqlite;
pub mod store;
