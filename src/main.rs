//! The `indelible` program: maps one function's result to an exit status.
//!
//! It decides nothing else; see `cli/`.

fn main() {}
