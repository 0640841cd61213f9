//! `indelible config`: what it prints, what it makes of files that are there, and that its hooks run.
//!
//! What each client's file becomes in detail is tested beside `src/clients`.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a helper that fails fails its test")]
#![cfg(unix)]

use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder to work in, with a home folder of its own.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("INDELIBLE_") {
                command.env_remove(name);
            }
        }
        for name in ["XDG_CONFIG_HOME", "CODEX_HOME"] {
            command.env_remove(name);
        }
        command.env("HOME", self.path("home")).current_dir(self.folder.path());
        command
    }

    fn config(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_indelible"));
        command.arg("config").args(arguments).output().unwrap()
    }

    #[track_caller]
    fn said(&self, arguments: &[&str]) -> String {
        let output = self.config(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Runs a line as Claude Code runs a hook, with this on stdin.
    fn hook(&self, line: &str, stdin: &str) -> Output {
        let mut command = self.command("sh");
        let command =
            command.args(["-c", line]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A hook that does not read it may be gone by now.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        child.wait_with_output().unwrap()
    }
}

/// The program and arguments of the entry in a snippet.
fn entry(client: &str, text: &str) -> Vec<String> {
    let entry: Value = if client == "codex" {
        let document: toml_edit::DocumentMut = text.parse().unwrap();
        let entry = &document["mcp_servers"]["indelible"];
        let words = entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        json!({"command": entry["command"].as_str().unwrap(), "args": words.collect::<Vec<_>>()})
    } else {
        let key = match client {
            "vscode" => "servers",
            "zed" => "context_servers",
            _ => "mcpServers",
        };
        serde_json::from_str::<Value>(text).unwrap()[key]["indelible"].clone()
    };
    let words = entry["args"].as_array().unwrap().iter();
    std::iter::once(&entry["command"]).chain(words).map(|word| word.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_snippet_is_all_of_stdout_and_holds_this_program_and_the_settings_given() {
    let desk = Desk::new();
    let db = desk.path("my \"notes\".db");
    let expected = [
        env!("CARGO_BIN_EXE_indelible"),
        "--db",
        db.to_str().unwrap(),
        "--profile",
        "explorer",
        "--max-rows",
        "7",
    ];
    for client in ["claude-desktop", "cursor", "vscode", "codex", "gemini-cli", "zed"] {
        let said =
            desk.said(&[client, "--db", "my \"notes\".db", "--max-rows", "7", "--profile", "explorer"]);
        assert_eq!(entry(client, &said), expected, "{client}");
    }
    let said =
        desk.said(&["claude-code", "--db", "my \"notes\".db", "--max-rows", "7", "--profile", "explorer"]);
    let (line, snippet) = said.split_once("\n\n").unwrap();
    assert_eq!(entry("claude-code", snippet), expected);
    let words = shlex::split(line).unwrap();
    assert_eq!(words[..5], ["claude", "mcp", "add", "indelible", "--"]);
    assert_eq!(words[5..], expected);
}

#[test]
fn a_written_file_starts_the_server() {
    let desk = Desk::new();
    let files = [
        ("claude-code", ".mcp.json"),
        ("claude-desktop", "home/.config/Claude/claude_desktop_config.json"),
        ("cursor", ".cursor/mcp.json"),
        ("vscode", ".vscode/mcp.json"),
        ("codex", "home/.codex/config.toml"),
        ("gemini-cli", "home/.gemini/settings.json"),
        ("zed", "home/.config/zed/settings.json"),
    ];
    for (client, file) in files {
        if cfg!(target_os = "macos") && client == "claude-desktop" {
            continue;
        }
        let said = desk.said(&[client, "--db", "notes.db", "--write"]);
        assert_eq!(said, format!("{} was made\n", desk.path(file).display()));
        let words = entry(client, &desk.read(file));
        let output = desk.command(&words[0]).args(&words[1..]).arg("--help").output().unwrap();
        assert!(output.status.success(), "{client}");
        let before = desk.read(file);
        let said = desk.said(&[client, "--db", "notes.db", "--write"]);
        assert_eq!(said, format!("{} has it already\n", desk.path(file).display()));
        assert_eq!(desk.read(file), before);
        assert!(!desk.path(&format!("{file}.bak")).exists());
    }
}

#[test]
fn a_file_that_is_there_keeps_everything_else_and_its_former_text_beside_it() {
    let desk = Desk::new();
    let before = "// mine\n{\n  \"theme\": \"One\", // this one\n  \"context_servers\": {\n    \"other\": {\"command\": \"x\"}, // that one\n  },\n}\n";
    desk.write("zed.json", before);
    std::fs::set_permissions(desk.path("zed.json"), std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(desk.path("zed.json"), desk.path("link.json")).unwrap();
    let said = desk.said(&["zed", "--db", "a.db", "--write", "--file", "link.json"]);
    assert!(said.ends_with("zed.json.bak\n"), "{said}");
    let after = desk.read("zed.json");
    for words in
        ["// mine\n", "\"theme\": \"One\", // this one\n", "\"other\": {\"command\": \"x\"}", "// that one\n"]
    {
        assert!(after.contains(words), "no {words} in\n{after}");
    }
    assert!(after.contains("/a.db\"]"), "{after}");
    assert!(desk.path("link.json").symlink_metadata().unwrap().is_symlink());
    assert_eq!(desk.path("zed.json").metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(desk.read("zed.json.bak"), before);

    // Another change gets a backup of its own, and nothing of ours is left lying about.
    desk.said(&["zed", "--db", "b.db", "--write", "--file", "zed.json"]);
    assert_eq!((desk.read("zed.json.bak").as_str(), desk.read("zed.json.bak-2")), (before, after));
    let mut names: Vec<String> = std::fs::read_dir(desk.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["link.json", "zed.json", "zed.json.bak", "zed.json.bak-2"]);
}

#[test]
fn a_file_that_cannot_be_read_is_left_alone_and_the_snippet_printed() {
    let desk = Desk::new();
    for (client, name, text, why) in [
        ("cursor", "a.json", "{\"mcpServers\": ", "it is not JSON: "),
        (
            "cursor",
            "b.json",
            "{\"mcpServers\": []}",
            "`mcpServers` is there and is not an object; nothing was changed",
        ),
        ("codex", "c.toml", "a = = 1", "it is not TOML: "),
    ] {
        desk.write(name, text);
        let output = desk.config(&[client, "--db", "notes.db", "--write", "--file", name]);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(complaint.contains(why) && complaint.lines().count() == 1, "{complaint}");
        assert!(complaint.ends_with("nothing was changed; what belongs there is on stdout\n"), "{complaint}");
        assert_eq!((output.status.code(), desk.read(name).as_str()), (Some(1), text));
        assert_eq!(
            entry(client, &String::from_utf8(output.stdout).unwrap())[0],
            env!("CARGO_BIN_EXE_indelible")
        );
        assert!(!desk.path(&format!("{name}.bak")).exists());
    }
}

#[test]
fn what_does_not_go_together_is_one_line() {
    let desk = Desk::new();
    let rows: &[(&[&str], &str)] = &[
        (
            &["emacs", "--db", "a"],
            "<CLIENT> `emacs`: must be one of claude-code, claude-desktop, cursor, vscode, codex, gemini-cli, zed",
        ),
        (&["zed", "--db", "a", "--hooks"], "--hooks is for claude-code; Zed has none that are known"),
        (&["claude-code", "--db", "a", "--log-prompts"], "missing --hooks"),
        (
            &["claude-code", "--db", "a", "--name", "a b"],
            "--name `a b`: must be letters, digits, `-` and `_`",
        ),
        (
            &["claude-code", "--db", "a", "--hooks", "--profile", "explorer"],
            "--hooks needs the tool get_resume_context, which the profile explorer has not",
        ),
        (
            &["claude-code", "--db", "a", "--hooks", "--log-prompts", "--read-only"],
            "--log-prompts writes events, which --read-only does not",
        ),
        (&["zed"], "no database: give --db PATH, or set INDELIBLE_DB"),
    ];
    for (arguments, expected) in rows {
        let output = desk.config(arguments);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(complaint.starts_with(&format!("indelible: {expected}")), "{arguments:?}: {complaint}");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
    }
    let output = desk.config(&["gemini-cli", "--db", "a$b.db"]);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("Gemini CLI takes what follows `$` for a variable"), "{complaint}");
}

#[test]
fn hooks_run_as_they_stand_and_never_block() {
    let desk = Desk::new();
    desk.write(".claude/settings.local.json", "{\n  \"permissions\": {\"allow\": [\"Bash(ls)\"]}\n}\n");
    let db = desk.path("it's $notes.db");
    let db = db.to_str().unwrap();
    desk.said(&["claude-code", "--db", db, "--hooks", "--log-prompts", "--write"]);
    let text = desk.read(".claude/settings.local.json");
    let settings: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(settings["permissions"]["allow"], json!(["Bash(ls)"]));
    let line = |event: &str| settings["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap().to_owned();

    let prompt =
        json!({"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "say \"hi\"\nand $HOME"});
    let output = desk.hook(&line("UserPromptSubmit"), &prompt.to_string());
    assert_eq!(
        (output.status.code(), output.stdout.len(), output.stderr.len()),
        (Some(0), 0, 0),
        "{output:?}"
    );
    let output = desk.hook(&line("PreCompact"), &json!({"trigger": "auto"}).to_string());
    assert_eq!(
        (output.status.code(), output.stdout.len(), output.stderr.len()),
        (Some(0), 0, 0),
        "{output:?}"
    );
    let output = desk.hook(&line("SessionStart"), &json!({"source": "compact"}).to_string());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("chain ok (2 events)"), "{said}");
    assert!(said.contains("Before anything else write a checkpoint"), "{said}");
    assert!(!said.contains("say"), "prompts are for the record: {said}");
    {
        let connection = rusqlite::Connection::open(db).unwrap();
        let stored: String = connection
            .query_row("SELECT content FROM memory_events WHERE kind = 'prompt'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(stored, "say \"hi\"\nand $HOME");
    }

    // What goes wrong is exit status 1, which Claude Code shows and passes over; 2 would block the prompt.
    let output = desk.hook(&line("UserPromptSubmit"), "no JSON");
    assert_eq!(output.status.code(), Some(1));
    for ending in ["-wal", "-shm"] {
        // They are not always there.
        let _ = std::fs::remove_file(format!("{db}{ending}"));
    }
    std::fs::write(db, "no database").unwrap();
    for event in ["SessionStart", "PreCompact", "UserPromptSubmit"] {
        let output = desk.hook(&line(event), &prompt.to_string());
        assert_eq!(output.status.code(), Some(1), "{event}");
    }
    desk.said(&["claude-code", "--db", db, "--hooks", "--log-prompts", "--write"]);
    assert_eq!(desk.read(".claude/settings.local.json"), text);
}

#[test]
fn a_hook_for_prompts_that_is_there_stays_and_they_stay_out_of_the_resume_text() {
    let desk = Desk::new();
    desk.said(&["claude-code", "--db", "a.db", "--hooks", "--log-prompts", "--write"]);
    let text = desk.read(".claude/settings.local.json");
    assert!(text.contains("exclude_kinds"), "{text}");
    desk.said(&["claude-code", "--db", "a.db", "--hooks", "--write"]);
    assert_eq!(desk.read(".claude/settings.local.json"), text);
    // Another database has no part in it.
    desk.said(&["claude-code", "--db", "b.db", "--hooks", "--write"]);
    let both = desk.read(".claude/settings.local.json");
    assert_eq!(
        (both.matches("exclude_kinds").count(), both.matches("kind=prompt").count()),
        (1, 1),
        "{both}"
    );
}

#[test]
fn groups_of_primitives_need_a_name_and_have_no_bundle() {
    let desk = Desk::new();
    let refused = |arguments: &[&str]| {
        let output = desk.command(env!("CARGO_BIN_EXE_indelible")).args(arguments).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let config = ["config", "cursor", "--profile", "primitives", "--data", "state"];
    assert!(refused(&config).contains("no group: give --group NAME"));
    let said = desk.said(&["cursor", "--profile", "primitives", "--data", "state", "--group", "team"]);
    assert!(said.contains("\"team\""), "{said}");
    let bundle =
        ["bundle", "--profile", "primitives", "--data", "state", "--group", "team", "--out", "x.mcpb"];
    let words = refused(&bundle);
    assert!(words.contains("indelible config claude-desktop --profile primitives"), "{words}");
}

#[test]
fn hooks_are_printed_behind_the_server() {
    let desk = Desk::new();
    let said = desk.said(&["claude-code", "--db", "a.db", "--hooks"]);
    let parts: Vec<&str> = said.split("\n\n").collect();
    let [_, server, hooks] = parts[..] else { panic!("{said}") };
    assert_eq!(entry("claude-code", server)[1], "--db");
    let hooks: Value = serde_json::from_str(hooks).unwrap();
    let events: Vec<&str> = hooks["hooks"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(events, ["SessionStart", "PreCompact"]);
    assert!(!Path::new(&desk.path(".mcp.json")).exists());
}
