//! `indelible bundle`: the archive, its manifest, and the program that runs out of it.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]
#![cfg(unix)]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn bundle(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_indelible"));
    command.arg("bundle").args(arguments).current_dir(folder);
    // No variable goes into a bundle.
    command.env("INDELIBLE_PROFILE", "explorer").output().unwrap()
}

/// The manifest, and the entries' names and modes.
fn opened(path: &Path) -> (Value, Vec<(String, u32)>, zip::ZipArchive<std::fs::File>) {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    let entries = (0..archive.len())
        .map(|at| {
            let entry = archive.by_index(at).unwrap();
            (entry.name().unwrap().into_owned(), entry.unix_mode().unwrap() & 0o777)
        })
        .collect();
    let mut manifest = String::new();
    archive.by_name("manifest.json").unwrap().read_to_string(&mut manifest).unwrap();
    (serde_json::from_str(&manifest).unwrap(), entries, archive)
}

#[test]
fn a_bundle_holds_the_program_that_serves_the_tools_it_lists() {
    let folder = tempfile::tempdir().unwrap();
    let output = bundle(folder.path(), &[]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = folder.path().join("indelible.mcpb");
    assert!(said.contains(path.to_str().unwrap()), "{said}");
    let (manifest, entries, mut archive) = opened(&path);
    assert_eq!(entries, [("manifest.json".to_owned(), 0o644), ("server/indelible".to_owned(), 0o755)]);
    let platform = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    for (pointer, expected) in [
        ("/manifest_version", json!("0.3")),
        ("/name", json!("indelible")),
        ("/version", json!(env!("CARGO_PKG_VERSION"))),
        ("/server/type", json!("binary")),
        ("/server/entry_point", json!("server/indelible")),
        ("/server/mcp_config/command", json!("${__dirname}/server/indelible")),
        ("/server/mcp_config/args", json!(["--db", "${user_config.database}"])),
        ("/user_config/database/type", json!("string")),
        ("/user_config/database/default", json!("~/indelible.db")),
        ("/user_config/database/required", json!(true)),
        ("/compatibility/platforms", json!([platform])),
    ] {
        assert_eq!(manifest.pointer(pointer), Some(&expected), "{pointer}");
    }

    // As an app does it: unpack, fill in, start, ask.
    let home = folder.path().join("home");
    let program = home.join("server/indelible");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    let mut file = std::fs::File::create(&program).unwrap();
    std::io::copy(&mut archive.by_name("server/indelible").unwrap(), &mut file).unwrap();
    file.set_permissions(std::fs::Permissions::from_mode(0o755)).unwrap();
    drop(file);
    let config = &manifest["server"]["mcp_config"];
    let filled = |word: &Value| {
        let word = word.as_str().unwrap().replace("${__dirname}", home.to_str().unwrap());
        word.replace(
            "${user_config.database}",
            manifest["user_config"]["database"]["default"].as_str().unwrap(),
        )
    };
    let mut child = Command::new(filled(&config["command"]))
        .args(config["args"].as_array().unwrap().iter().map(filled))
        .env("HOME", &home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |request: Value| -> Value {
        writeln!(input, "{request}").unwrap();
        serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap()
    };
    ask(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}));
    let listed = ask(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    let names = |tools: &Value| -> Vec<String> {
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&manifest["tools"]), names(&listed["result"]["tools"]));
    drop(input);
    assert!(child.wait().unwrap().success());
    assert!(home.join("indelible.db").exists());
}

#[test]
fn settings_go_along_and_an_older_bundle_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcpb");
    std::fs::write(&path, "older").unwrap();
    let output = bundle(
        folder.path(),
        &["--out", "a.mcpb", "--profile", "explorer", "--max-rows", "7", "--db", "~/a.db"],
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (manifest, ..) = opened(&path);
    let arguments = json!(["--db", "${user_config.database}", "--profile", "explorer", "--max-rows", "7"]);
    assert_eq!(manifest["server"]["mcp_config"]["args"], arguments);
    assert_eq!(manifest["user_config"]["database"]["default"], "~/a.db");
    assert!(manifest["tools"].as_array().unwrap().iter().all(|tool| tool["name"] != "write_query"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_written_is_one_line_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for (out, exit, expected) in [
        ("a.zip", 2, "--out `a.zip`: must end in `.mcpb`, or no app opens it"),
        ("none/a.mcpb", 1, "cannot write the bundle `none/a.mcpb`: No such file or directory (os error 2)"),
    ] {
        let output = bundle(folder.path(), &["--out", out]);
        assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("indelible: {expected}\n"));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(exit), 0));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
