//! What the program is made of: `unsafe` stands where it may and says why, and every dependency has a licence that
//! deny.toml allows and a line in docs/THIRD-PARTY.md.
//!
//! It asks cargo and reads text; it compiles nothing.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a helper that fails fails its test")]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The parts of src/ that may hold `unsafe`. The lint `unsafe_code` denies it everywhere; it can be allowed for a
/// module, so this test says for which.
const MAY_BE_UNSAFE: &[&str] = &["sandbox/", "sqlite/"];

/// The platform whose dependencies are listed.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Whether a line of code (without its comment) holds the keyword.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let outside_of_strings: String = code.split('"').step_by(2).collect();
    outside_of_strings
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .any(|word| word == "unsafe")
}

#[test]
fn unsafe_stands_where_it_may_and_each_time_with_its_reason() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("unsafe_code = \"deny\""), "what is not allowed here the compiler refuses");
    let source = root().join("src");
    let mut files = vec![root().join("build.rs")];
    rust_files(&source, &mut files);
    let mut faults = Vec::new();
    for path in files {
        let name = path.strip_prefix(&source).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            if line.contains("unsafe_code") && !MAY_BE_UNSAFE.iter().any(|part| name.starts_with(part)) {
                faults.push(format!("{name}:{}: unsafe code is allowed here", at + 1));
            }
            if is_unsafe(line) {
                // The reason may take several lines, directly above.
                let above = lines[..at].iter().rev().take_while(|line| line.trim_start().starts_with("//"));
                if !above.into_iter().any(|line| line.contains("SAFETY:")) {
                    faults.push(format!("{name}:{}: no `// SAFETY:` above", at + 1));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_search_for_unsafe_finds_it() {
    for (line, expected) in [
        ("let a = unsafe { b() };", true),
        ("unsafe impl Send for A {}", true),
        ("// unsafe is not used", false),
        ("#![expect(unsafe_code)]", false),
        ("\"typeof\", \"unsafe\", \"use\"", false),
    ] {
        assert_eq!(is_unsafe(line), expected, "{line}");
    }
}

/// Name, version and licence of everything that goes into the program or builds it.
fn dependencies() -> BTreeSet<(String, String, String)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", PLATFORM])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let nodes: BTreeMap<String, Value> = list(&found["resolve"]["nodes"])
        .into_iter()
        .map(|node| (node["id"].as_str().unwrap().to_owned(), node))
        .collect();
    let start = found["resolve"]["root"].as_str().unwrap().to_owned();
    let (mut reached, mut open) = (BTreeSet::new(), vec![start.clone()]);
    while let Some(id) = open.pop() {
        for dependency in list(&nodes[&id]["deps"]) {
            let only_tests = list(&dependency["dep_kinds"]).iter().all(|kind| kind["kind"] == "dev");
            let next = dependency["pkg"].as_str().unwrap().to_owned();
            if !only_tests && reached.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    let text = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
    list(&found["packages"])
        .iter()
        .filter(|package| reached.contains(package["id"].as_str().unwrap()))
        .map(|package| (text(package, "name"), text(package, "version"), text(package, "license")))
        .collect()
}

/// The allow-list of deny.toml.
fn allowed() -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let list = text.split("allow = [").nth(1).unwrap().split(']').next().unwrap();
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Whether an SPDX expression can be met with these licences; `/` is an old way to write OR.
fn is_met(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let met = any_of(&mut words, allowed);
    met && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut met = all_of(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        met |= all_of(words, allowed);
    }
    met
}

fn all_of(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut met = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, allowed);
    }
    met
}

fn one(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let word = words.next().unwrap_or_default();
    if word == "(" {
        let met = any_of(words, allowed);
        return words.next() == Some(")") && met;
    }
    let mut licence = word.to_owned();
    if words.next_if_eq(&"WITH").is_some() {
        licence = format!("{word} WITH {}", words.next().unwrap_or_default());
    }
    allowed.contains(&licence)
}

#[test]
fn expressions_of_licences_are_read_as_they_are_meant() {
    let allowed: BTreeSet<String> = ["MIT", "Unicode-3.0"].map(str::to_owned).into();
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("Apache-2.0 OR MIT", true),
        ("MIT/Apache-2.0", true),
        ("MIT AND GPL-3.0", false),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("(GPL-3.0 OR Apache-2.0) AND MIT", false),
        ("Apache-2.0 WITH LLVM-exception OR MIT", true),
        ("Apache-2.0 WITH LLVM-exception", false),
        ("", false),
    ] {
        assert_eq!(is_met(expression, &allowed), expected, "{expression}");
    }
}

#[test]
fn every_dependency_has_a_licence_that_is_allowed() {
    let allowed = allowed();
    for (name, version, licence) in dependencies() {
        assert!(
            is_met(&licence, &allowed),
            "{name} {version} has the licence `{licence}`, which deny.toml does not allow"
        );
    }
}

#[test]
fn the_list_of_third_parties_is_as_cargo_resolves_it() {
    let mut text = String::from(
        "<!-- Generated from Cargo.lock; refresh with `INDELIBLE_REFRESH=1 cargo test --test supply_chain`. -->\n\n# Third parties\n\nWhat goes into the program or builds it, on Linux on x86-64, and under which licence. SQLite, which `libsqlite3-sys`\ncontains, is in the public domain.\n\n| crate | version | licence |\n|---|---|---|\n",
    );
    for (name, version, licence) in dependencies() {
        text.push_str(&format!("| `{name}` | {version} | {licence} |\n"));
    }
    let path = root().join("docs/THIRD-PARTY.md");
    if std::env::var_os("INDELIBLE_REFRESH").is_some() {
        assert!(std::env::var_os("CI").is_none(), "CI compares and does not refresh");
        std::fs::write(&path, &text).unwrap();
    }
    let committed =
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(committed, text, "run `INDELIBLE_REFRESH=1 cargo test --test supply_chain`");
}
