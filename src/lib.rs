//! Indelible: one SQLite file as an AI agent's primary tool, over the Model Context Protocol.
//!
//! # Layout
//!
//! Imports go down this list only (a test reads the sources and holds it to that):
//!
//! - [`error`], [`spec`]: errors and exit statuses; the YAML model, its checks and diagnostics
//! - `codegen`: spec to text, for build.rs and tests
//! - [`policy`], [`render`], [`outcome`]: verdicts over what a statement does; CSV; a call and what it came to
//! - [`server`]: the Model Context Protocol, the only place that names rmcp
//! - [`config`], [`logging`], [`cli`]: settings, stderr, subcommands
//!
//! It is a library for its own binary and tests, not an API with a promise of stability.

pub mod cli;
pub mod config;
pub mod error;
pub mod logging;
pub mod outcome;
pub mod policy;
pub mod render;
pub mod server;
pub mod spec;
