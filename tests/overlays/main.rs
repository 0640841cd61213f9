//! Overlays over real stdio: what files may change, what they may not, and what happens when they change.
//!
//! The examples of docs/CUSTOMIZING.md have tests of their own in tests/customizing.rs.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]

mod commands;
mod mistakes;
mod reload;
mod statements;
mod words;

#[path = "../support/mod.rs"]
mod support;

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use support::{Bench, Client, Server};

/// Overlay files in a folder of their own.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

/// A server on the notes with these files.
fn notes(bench: &Bench, files: &[&Path]) -> Server {
    let mut server = Server::on(bench);
    for file in files {
        server = server.flags(&["--tools", file.to_str().unwrap()]);
    }
    server
}

fn tools(client: &mut Client) -> Vec<Value> {
    client.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().clone()
}

fn tool(client: &mut Client, name: &str) -> Value {
    tools(client).into_iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no tool {name}"))
}

fn names(client: &mut Client) -> Vec<String> {
    tools(client).iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}
