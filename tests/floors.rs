//! The sources hold to the rules that ARCHITECTURE.md and src/lib.rs state: imports go down the floors, one
//! place names the protocol library, one place opens connections, every file says what it is for.
//!
//! It reads text and knows no Rust beyond paths; comments do not count.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The longest a file may be, in lines.
const MAX_LINES: usize = 420;

/// Files that are longer and wait to be split.
const LONGER: &[&str] = &["sqlite/guard.rs"];

/// Paths into a higher floor that need nothing but names from there.
const LOW_ENOUGH: &[(&str, &str)] = &[
    // The vocabulary that policy.yaml is written in, shared with build.rs.
    ("spec", "policy::action"),
    ("spec", "policy::narrowing"),
    ("codegen", "policy::action"),
];

struct Source {
    /// Below src/, with slashes.
    name: String,
    text: String,
}

impl Source {
    /// `sqlite` for src/sqlite/guard.rs, `app` for src/app.rs.
    fn module(&self) -> &str {
        self.name.split_once('/').map_or(self.name.trim_end_matches(".rs"), |(folder, _)| folder)
    }

    /// Line numbers and lines without comments.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines()).filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
                found.push(Source { name, text: std::fs::read_to_string(&path).unwrap() });
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Each module's floor, from the list in src/lib.rs: the first is the lowest.
fn floors() -> BTreeMap<String, usize> {
    let library = include_str!("../src/lib.rs");
    // A point of the list may go on in the next line.
    let layout = library.split("# Layout").nth(1).unwrap().replace("\n//!   ", " ");
    let mut floors = BTreeMap::new();
    let bullets = layout.lines().filter_map(|line| line.strip_prefix("//! - "));
    for (floor, bullet) in bullets.enumerate() {
        let names = bullet.split_once(':').unwrap().0;
        for name in names.split('`').skip(1).step_by(2) {
            floors.insert(name.to_owned(), floor);
        }
    }
    floors
}

/// The paths behind each `crate::` in a line: `policy::action::ActionKind`, one for each name in braces.
fn crate_paths(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for rest in text.split("crate::").skip(1) {
        if let Some(inner) = rest.strip_prefix('{') {
            let inner = inner.split('}').next().unwrap();
            found.extend(inner.split(',').map(|path| path.trim().to_owned()).filter(|path| !path.is_empty()));
        } else {
            let end =
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
            found.extend(rest.get(..end).map(str::to_owned));
        }
    }
    found
}

#[test]
fn every_module_stands_on_a_floor() {
    let floors = floors();
    for source in sources() {
        let module = source.module();
        if !matches!(module, "lib" | "main") {
            assert!(
                floors.contains_key(module),
                "src/{}: `{module}` is not in the layout of src/lib.rs",
                source.name
            );
        }
    }
    for module in floors.keys() {
        let there = |source: &Source| source.module() == module;
        assert!(sources().iter().any(there), "src/lib.rs: there is no module `{module}`");
    }
}

#[test]
fn imports_go_down_the_floors() {
    let floors = floors();
    let mut climbing = Vec::new();
    for source in sources() {
        let module = source.module();
        let Some(floor) = floors.get(module) else { continue };
        for (number, line) in source.code() {
            for path in crate_paths(line) {
                let target = path.split("::").next().unwrap_or_default();
                let allowed = LOW_ENOUGH.iter().any(|(from, to)| *from == module && path.starts_with(to));
                match floors.get(target) {
                    Some(found) if found > floor && !allowed => {
                        climbing.push(format!(
                            "src/{}:{number}: `{module}` names `crate::{path}`, which stands above it",
                            source.name
                        ));
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(climbing.is_empty(), "{}", climbing.join("\n"));
}

#[track_caller]
fn only_in(module: &str, text: &str) {
    let strays: Vec<String> = sources()
        .iter()
        .filter(|source| source.module() != module)
        .flat_map(|source| {
            let lines: Vec<String> = source
                .code()
                .filter(|(_, line)| line.contains(text))
                .map(|(number, line)| format!("src/{}:{number}: {}", source.name, line.trim()))
                .collect();
            lines
        })
        .collect();
    assert!(strays.is_empty(), "only src/{module}/ has `{text}`:\n{}", strays.join("\n"));
    assert!(sources().iter().any(|source| source.module() == module && source.text.contains(text)));
}

#[test]
fn only_the_server_names_the_protocol_library() {
    only_in("server", "rmcp::");
}

#[test]
fn only_sqlite_opens_connections() {
    only_in("sqlite", "Connection::open");
}

#[test]
fn every_file_says_first_what_it_is_for() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut files: Vec<(String, String)> =
        sources().into_iter().map(|source| (format!("src/{}", source.name), source.text)).collect();
    for entry in std::fs::read_dir(tests).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "rs") {
            files.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
        }
    }
    files.push(("build.rs".to_owned(), include_str!("../build.rs").to_owned()));
    for (name, text) in files {
        assert!(text.starts_with("//! "), "{name}:1: does not open with `//!`");
    }
}

#[test]
fn no_file_is_longer_than_what_one_reads_in_one_go() {
    for source in sources() {
        let lines = source.text.lines().count();
        if LONGER.contains(&source.name.as_str()) {
            assert!(lines > MAX_LINES, "src/{} has {lines} lines now: take it off the list", source.name);
        } else {
            assert!(
                lines <= MAX_LINES,
                "src/{} has {lines} lines, more than {MAX_LINES}: split it",
                source.name
            );
        }
    }
}
