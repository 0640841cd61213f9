//! The memory profile over real stdio: what each tool promises, family by family.
//!
//! Each test starts the program on a database of its own, speaks raw lines to it, and looks at the file from
//! outside. Parts have tests of their own elsewhere.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]

mod arguments;
mod bad_sql;
mod chain;
mod destroying;
mod log;
mod overwrites;
mod planted;
mod reading;
mod schema;
mod search;
mod settings;
mod startup;
mod surface;
mod text_tables;
mod undo;
mod views;
mod writing;

#[path = "../support/mod.rs"]
mod support;
