//! Workers are confined by the system, and their work goes on as if they were not.
//!
//! What is denied is tried from inside a worker that is confined as any other; what must go on is done by the real
//! server on files of every kind. Where the kernel lacks a piece, the tests of that piece say that they are skipped.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]

mod denials;
mod missing;
mod work;

#[path = "../support/mod.rs"]
mod support;

use serde_json::Value;
use std::process::Command;

/// The program, without the settings of whoever runs the tests.
fn indelible(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_indelible"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("INDELIBLE_") {
            command.env_remove(name);
        }
    }
    command.args(arguments);
    command
}

/// What `doctor` finds about the sandbox.
#[track_caller]
fn finding(mut doctor: Command) -> Value {
    let output = doctor.output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = report["findings"].as_array().unwrap().iter().find(|finding| finding["topic"] == "sandbox");
    found.unwrap_or_else(|| panic!("{report:#}")).clone()
}

/// Whether this kernel has what this test is about.
fn has(piece: &str) -> bool {
    let value = &finding(indelible(&["doctor", "--json", "--db", "/nonexistent/x.db"]))["value"];
    let has = match piece {
        "seccomp" => value["seccomp"] == true,
        _ => value["landlock"].as_u64().is_some_and(|version| version > 0),
    };
    if !has {
        eprintln!("skipped: no {piece} here: {value}");
    }
    has
}
