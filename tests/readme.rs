//! What README.md, ARCHITECTURE.md and CONTRIBUTING.md say, held against the program and the sources.
//!
//! Tables are compared, examples are run. It does not judge prose.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests may fail loudly as tests do"
)]
#![cfg(unix)]

use indelible::surface::{Surface, SurfaceSettings, built_in_manifest};
use regex::Regex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const README: &str = include_str!("../README.md");
const ARCHITECTURE: &str = include_str!("../ARCHITECTURE.md");
const CONTRIBUTING: &str = include_str!("../CONTRIBUTING.md");

#[test]
fn a_session_in_the_readme_is_what_the_program_says() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap();
    for block in blocks(README, "console") {
        for step in block.split("$ ").skip(1) {
            let (line, expected) = step.split_once('\n').unwrap();
            let output = shell(&home, line);
            let said = String::from_utf8(output.stdout).unwrap();
            let said = said.replace(home.to_str().unwrap(), "/home/me");
            assert_eq!(timeless(&said).trim(), timeless(expected).trim(), "{line}");
        }
    }
    for query in blocks(README, "sql") {
        let output = indelible(&home, &["call", "read_query", "--db", "notes.db", &format!("query={query}")]);
        assert_ran(&query, &output);
    }
    for line in commands(README).iter().filter(|line| line.starts_with("indelible call")) {
        assert_ran(line, &shell(&home, line));
    }
}

#[test]
fn every_command_line_is_one_that_the_program_takes() {
    let folder = tempfile::tempdir().unwrap();
    let lines = [commands(README), commands(CONTRIBUTING)].concat();
    assert!(lines.len() >= 5, "{lines:?}");
    for line in lines {
        assert_ran(&line, &shell(folder.path(), &format!("{line} --help")));
    }
}

#[test]
fn the_table_of_commands_is_what_help_says() {
    let help = help();
    let listed = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let listed: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let table: Vec<String> = table(README, "### Commands").into_iter().map(|row| code(&row[0])).collect();
    let named: Vec<&str> = table.iter().skip(1).filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!((table[0].as_str(), named), ("indelible --db PATH", listed));
}

#[test]
fn the_settings_tables_are_what_help_says() {
    let help = help();
    let settings = help.split("Settings:\n").nth(1).unwrap().split("\nEach setting").next().unwrap();
    let (settings, http) = settings.split_once("Serving over HTTP:\n").unwrap();
    assert_eq!(settings_table("## Settings"), settings_in_help(settings));
    assert_eq!(settings_table("### Over HTTP"), settings_in_help(http));
}

/// Flag, variable and default of each row.
fn settings_table(heading: &str) -> Vec<(String, String, String)> {
    let rows = table(README, heading).into_iter();
    rows.map(|row| (code(&row[0]), code(&row[1]), row[2].clone())).collect()
}

/// Flag, variable and default of each option.
fn settings_in_help(text: &str) -> Vec<(String, String, String)> {
    let (flag, variable) =
        (Regex::new(r"^(?:-v, )?(--[a-z-]+)").unwrap(), Regex::new(r"\[(INDELIBLE_\w+)").unwrap());
    let default = Regex::new(r"\[default: ([^\]]+)\]").unwrap();
    let first = |regex: &Regex, text: &str| regex.captures(text).map(|found| found[1].to_owned());
    text.split("\n\n")
        .map(|option| option.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|option| !option.is_empty())
        .map(|option| {
            (
                first(&flag, &option).expect(&option),
                first(&variable, &option).expect(&option),
                first(&default, &option).unwrap_or_default(),
            )
        })
        .collect()
}

#[test]
fn the_exit_statuses_are_those_of_help_and_of_the_sources() {
    let help = help();
    let said: Vec<(String, String)> = help
        .split("Exit statuses:\n")
        .nth(1)
        .unwrap()
        .lines()
        .filter_map(|line| line.trim().split_once("  "))
        .map(|(status, meaning)| (status.to_owned(), meaning.to_owned()))
        .collect();
    let table: Vec<_> =
        table(README, "### Exit statuses").into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    assert_eq!(table, said);
    let constants = Regex::new(r"pub const EXIT_\w+: u8 = (\d+);").unwrap();
    let constants: Vec<String> =
        constants.captures_iter(include_str!("../src/error.rs")).map(|found| found[1].to_owned()).collect();
    assert_eq!(constants, table.into_iter().map(|(status, _)| status).collect::<Vec<_>>());
}

#[test]
fn the_table_of_tools_names_every_tool_and_its_hint() {
    let table: Vec<_> =
        table(README, "## The tools").into_iter().map(|row| (code(&row[0]), row[1].clone())).collect();
    assert_eq!(table, hints());
}

#[test]
fn json_snippets_parse_and_start_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let mut permissions = 0;
    for block in blocks(README, "json") {
        let json: Value = serde_json::from_str(&block).unwrap_or_else(|error| panic!("{error} in\n{block}"));
        if let Some(rules) = json.get("permissions") {
            permissions += 1;
            assert_permissions(rules);
            continue;
        }
        let servers = json.get("mcpServers").or_else(|| json.get("servers")).expect(&block);
        let server = &servers["indelible"];
        if server["type"] == "http" {
            // One that runs already; tests/http has what it answers.
            assert_eq!(server["url"], "http://127.0.0.1:7777/mcp");
            continue;
        }
        assert!(server["command"].as_str().unwrap().ends_with("indelible"), "{block}");
        let arguments = server["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let arguments: Vec<&str> = arguments.chain(["--help"]).collect();
        assert_ran(&block, &indelible(folder.path(), &arguments));
    }
    assert_eq!(permissions, 1);
}

/// What only reads is allowed, what destroys asks.
fn assert_permissions(rules: &Value) {
    let named = |list: &str| -> Vec<String> {
        let words = rules[list].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        words.map(|word| word.strip_prefix("mcp__indelible__").expect(word).to_owned()).collect()
    };
    let with = |wanted: &str| -> Vec<String> {
        hints().into_iter().filter(|(_, hint)| hint == wanted).map(|(name, _)| name).collect()
    };
    assert_eq!((named("allow"), named("ask")), (with("reads"), with("destroys")));
}

#[test]
fn the_toml_snippet_starts_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(README, "toml");
    let [block] = blocks.as_slice() else { panic!("{blocks:?}") };
    let document: toml_edit::DocumentMut = block.parse().unwrap();
    let server = &document["mcp_servers"]["indelible"];
    assert_eq!(server["command"].as_str(), Some("indelible"));
    let arguments = server["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let arguments: Vec<&str> = arguments.chain(["--help"]).collect();
    assert_ran(block, &indelible(folder.path(), &arguments));
}

#[test]
fn a_damaged_file_is_replaced_by_the_lines_of_the_readme() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    for line in [
        "indelible call append_event --db notes.db kind=finding content=kept",
        "indelible call snapshot --db notes.db reason='before the damage'",
    ] {
        assert_ran(line, &shell(home, line));
    }
    let snapshots = std::fs::read_dir(home.join("notes.db.snapshots")).unwrap();
    let [name] = snapshots.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>().try_into().unwrap();
    for file in ["notes.db", "notes.db-wal", "notes.db-journal"] {
        std::fs::write(home.join(file), "damaged").unwrap();
    }
    let blocks = blocks(README, "sh");
    let block = blocks.iter().find(|block| block.starts_with("mkdir before-restore\n")).unwrap();
    let example = Regex::new(r"notes\.db\.\d{8}T\d{6}\.\d{3}Z\.auto\.db").unwrap();
    assert_eq!(example.find_iter(block).count(), 1, "{block}");
    let lines = example.replace(block, name.to_str().unwrap());
    let output = shell(home, &format!("set -e\n{lines}"));
    assert_ran(&lines, &output);
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&verdict["ok"], &verdict["events"]), (&Value::Bool(true), &Value::from(1)));
    for file in ["notes.db", "notes.db-wal", "notes.db-journal"] {
        assert_eq!(std::fs::read(home.join("before-restore").join(file)).unwrap(), b"damaged", "{file}");
    }
}

#[test]
fn links_lead_somewhere() {
    let link = Regex::new(r"\]\(([^)#\s]*)#?([^)\s]*)\)").unwrap();
    let files = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(str::to_owned);
    let pages = std::fs::read_dir(repository("docs")).unwrap();
    let pages = pages.map(|page| format!("docs/{}", page.unwrap().file_name().to_str().unwrap()));
    for file in files.into_iter().chain(pages) {
        let text = std::fs::read_to_string(repository(&file)).unwrap();
        for found in link.captures_iter(&text).filter(|found| !found[1].contains("://")) {
            let target = match &found[1] {
                "" => repository(&file),
                path => repository(&file).parent().unwrap().join(path),
            };
            assert!(target.exists(), "{file}: {}", &found[0]);
            if !found[2].is_empty() {
                let target = std::fs::read_to_string(target).unwrap();
                assert!(anchors(&target).contains(&found[2]), "{file}: {}", &found[0]);
            }
        }
    }
}

/// What links into a page can name: its headings in lower case, without marks, spaces as hyphens.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let text = line.trim_start_matches('#').trim().to_lowercase();
            let kept = text.chars().filter(|one| one.is_alphanumeric() || matches!(one, ' ' | '-' | '_'));
            kept.map(|one| if one == ' ' { '-' } else { one }).collect()
        })
        .collect()
}

#[test]
fn every_dependency_has_its_reason() {
    let mut sections: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut section = "";
    for line in include_str!("../Cargo.toml").lines() {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
        } else if let Some((name, _)) = line.split_once(" = ") {
            sections.entry(section).or_default().insert(name.to_owned());
        }
    }
    for (section, heading) in [
        ("dependencies", "Of the program:"),
        ("target.'cfg(target_os = \"linux\")'.dependencies", "Of the program, on Linux alone:"),
        ("build-dependencies", "Of the build script:"),
        ("dev-dependencies", "Of the tests:"),
    ] {
        let rows = table(ARCHITECTURE, heading);
        assert!(rows.iter().all(|row| !row[1].is_empty()), "{heading}");
        let named: BTreeSet<String> = rows.iter().map(|row| code(&row[0])).collect();
        assert_eq!(named, sections[section], "{heading}");
    }
}

#[test]
fn every_promise_names_code_and_tests_that_exist() {
    let mut tests = String::new();
    for (_, text) in sources("src").into_iter().chain(sources("tests")) {
        tests.push_str(&text);
    }
    let words = Regex::new("`([^`]+)`").unwrap();
    for row in table(ARCHITECTURE, "## Promises") {
        for path in words.captures_iter(&row[1]) {
            assert!(repository(&path[1]).exists(), "{}: no {}", row[0], &path[1]);
        }
        for test in words.captures_iter(&row[2]) {
            assert!(tests.contains(&format!("fn {}(", &test[1])), "{}: no test {}", row[0], &test[1]);
        }
    }
}

#[test]
fn imports_go_down_the_floors() {
    let floors: BTreeMap<String, u8> = table(ARCHITECTURE, "## Floors")
        .into_iter()
        .map(|row| (code(&row[1]), row[0].parse().unwrap()))
        .collect();
    let module = Regex::new(r"(?m)^pub mod (\w+);").unwrap();
    let modules = module.captures_iter(include_str!("../src/lib.rs")).map(|found| found[1].to_owned());
    let modules: BTreeSet<String> = modules.chain(["codegen".to_owned()]).collect();
    assert_eq!(floors.keys().cloned().collect::<BTreeSet<_>>(), modules);
    let import = Regex::new(r"crate::(\w+)").unwrap();
    let mut wrong = Vec::new();
    for (path, text) in sources("src") {
        let own = path.strip_prefix("src/").unwrap();
        let own = own.split('/').next().unwrap().trim_end_matches(".rs");
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().starts_with("//")) {
            let at = format!("{path}:{}", number + 1);
            for found in import.captures_iter(line) {
                if floors.get(own) < floors.get(&found[1]) {
                    wrong.push(format!("{at}: `{own}` imports `{}`, which is above it", &found[1]));
                }
            }
            if own != "server" && line.contains("rmcp::") {
                wrong.push(format!("{at}: only `server` names rmcp"));
            }
            if own != "sqlite" && line.contains("Connection::open") {
                wrong.push(format!("{at}: only `sqlite` opens a connection"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each tool and what its hints say, in the order clients see them.
fn hints() -> Vec<(String, String)> {
    let manifest = built_in_manifest().unwrap();
    let settings = SurfaceSettings::for_profile(&manifest.profiles[0].defaults);
    let surface = Surface::new(&manifest, &manifest.profiles[0].id, &settings, false).unwrap();
    let hint = |tool: &Value| match (
        tool["annotations"]["readOnlyHint"].as_bool(),
        tool["annotations"]["destructiveHint"].as_bool(),
    ) {
        (Some(true), _) => "reads",
        (_, Some(false)) => "writes",
        _ => "destroys",
    };
    let named = |tool: &Value| (tool["name"].as_str().unwrap().to_owned(), hint(tool).to_owned());
    surface.descriptors().iter().map(named).collect()
}

fn help() -> String {
    let output = indelible(Path::new("."), &["--help"]);
    String::from_utf8(output.stdout).unwrap()
}

fn indelible(folder: &Path, arguments: &[&str]) -> Output {
    without_settings(Command::new(env!("CARGO_BIN_EXE_indelible")))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// Runs a line as a person would type it, with the program just built in front of the path.
fn shell(folder: &Path, line: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_indelible")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = without_settings(Command::new("sh"));
    command.args(["-c", line]).env("PATH", path).current_dir(folder).output().unwrap()
}

fn without_settings(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("INDELIBLE_") {
            command.env_remove(name);
        }
    }
    command
}

#[track_caller]
fn assert_ran(what: &str, output: &Output) {
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && !said.is_empty(), "{what}\n{said}{complained}");
}

/// The text with moments and hashes made alike.
fn timeless(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, name) in [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "MOMENT"),
        (r"\d{8}T\d{6}\.\d{3}Z", "STAMP"),
        (r"\b[0-9a-f]{64}\b", "HASH"),
        (r"hash [0-9a-f]{12}\.\.\.", "hash HASH"),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, name).into_owned();
    }
    text
}

/// The command lines of `indelible` in shell blocks.
fn commands(text: &str) -> Vec<String> {
    let blocks = blocks(text, "sh");
    let lines = blocks.iter().flat_map(|block| block.lines());
    lines.filter(|line| line.starts_with("indelible ")).map(str::to_owned).collect()
}

/// The code blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let opening = format!("\n```{language}\n");
    let blocks = text.split(&opening).skip(1);
    let blocks: Vec<String> = blocks.map(|rest| rest.split("```").next().unwrap().to_owned()).collect();
    assert!(!blocks.is_empty(), "no {language} block");
    blocks
}

/// The rows of the first table behind a line.
#[track_caller]
fn table(text: &str, heading: &str) -> Vec<Vec<String>> {
    let rest = text.split(&format!("\n{heading}\n")).nth(1).unwrap_or_else(|| panic!("no `{heading}`"));
    let lines =
        rest.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let rows: Vec<Vec<String>> = lines.skip(2).map(cells).collect();
    assert!(!rows.is_empty(), "no table behind `{heading}`");
    rows
}

fn code(cell: &str) -> String {
    cell.trim_matches('`').to_owned()
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Every Rust source below a folder, with its path in the repository.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(repository(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(sources(&path));
        } else if path.ends_with(".rs") {
            found.push((path, std::fs::read_to_string(entry.path()).unwrap()));
        }
    }
    found
}
