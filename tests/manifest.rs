//! Broken YAML gets its mistakes named, all of them, each where it stands.
//!
//! Every file in tests/fixtures/manifest opens with the diagnostics it must give, one `# expect: LINE:COLUMN:
//! MESSAGE` a line and nothing besides. It does not hold the real tools.yaml to more than the build does.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests may fail loudly as tests do"
)]

use indelible::spec::{Source, check_sources};
use std::path::{Path, PathBuf};

const TOOLS: Source<'_> = Source { file: "tools.yaml", text: include_str!("../tools.yaml") };
const POLICY: Source<'_> = Source { file: "policy.yaml", text: include_str!("../policy.yaml") };

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/manifest");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// What `file` is told, where the other file is the real one. Names the fixture's own lines only.
fn told(file: &str, text: &str) -> Vec<String> {
    let source = Source { file, text };
    let checked =
        if file.starts_with("tools_") { check_sources(source, POLICY) } else { check_sources(TOOLS, source) };
    let prefix = format!("{file}:");
    checked
        .err()
        .unwrap_or_default()
        .iter()
        .filter_map(|diagnostic| diagnostic.to_string().strip_prefix(&prefix).map(str::to_owned))
        .collect()
}

#[test]
fn every_mistake_is_named_where_it_stands() {
    let files = fixtures();
    assert!(files.len() >= 20, "the fixtures are gone");
    let mut wrong = Vec::new();
    for path in files {
        let file = path.file_name().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let expected: Vec<String> =
            text.lines().map_while(|line| line.strip_prefix("# expect: ")).map(str::to_owned).collect();
        let mut given = told(file, &text);
        // A fixture need not repeat the words of all actions and error codes, unless missing words are its point.
        let about_missing_words = |line: &String| line.contains("has no words; add it under ");
        if !expected.iter().any(about_missing_words) {
            given.retain(|line| !about_missing_words(line));
        }
        if given != expected || expected.is_empty() {
            wrong.push(format!(
                "{file}\n expected:\n  {}\n given:\n  {}",
                expected.join("\n  "),
                given.join("\n  ")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn mistakes_of_both_files_come_out_together() {
    let tools = Source { file: "tools.yaml", text: "profiles: []\ntools: []\ntool: 1\n" };
    let policy = Source { file: "policy.yaml", text: "policies: []\n" };
    let lines: Vec<String> =
        check_sources(tools, policy).unwrap_err().iter().map(ToString::to_string).collect();
    assert!(lines.iter().any(|line| line.starts_with("policy.yaml:1:1: ")), "{lines:#?}");
    assert!(
        lines.contains(&"tools.yaml:3:1: unknown key `tool`; did you mean `tools`?".to_owned()),
        "{lines:#?}"
    );
}

#[test]
fn a_file_that_cannot_be_parsed_does_not_hide_the_mistakes_of_the_other() {
    let policy = Source { file: "policy.yaml", text: "policies: [\n" };
    let tools =
        Source { file: "tools.yaml", text: &TOOLS.text.replacen("handler: query.read", "handler: read", 1) };
    let lines: Vec<String> =
        check_sources(tools, policy).unwrap_err().iter().map(ToString::to_string).collect();
    assert!(lines.iter().any(|line| line.starts_with("policy.yaml:")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("needs a handler like `family.function`")), "{lines:#?}");
}

#[test]
fn every_text_ends_in_diagnostics_or_a_manifest_and_never_in_a_panic() {
    let texts = [
        "",
        "---\n",
        "\u{feff}",
        "- 1\n",
        "a: &x [*x]\n",
        "? {a: 1}\n: 2\n",
        "!!binary x",
        "\t",
        "{",
        "tools: {a: 1}",
        "a: 1\n---\nb: 2\n",
        "tools:\n  - null\n",
        "<<: *x\n",
    ];
    for text in texts {
        for (tools, policy) in [(text, POLICY.text), (TOOLS.text, text)] {
            let checked = check_sources(
                Source { file: "tools.yaml", text: tools },
                Source { file: "policy.yaml", text: policy },
            );
            assert!(checked.is_err_and(|found| !found.is_empty()), "{text:?}");
        }
    }
}

#[test]
fn a_changed_description_changes_what_the_client_sees_and_nothing_else() {
    let checked = check_sources(TOOLS, POLICY).unwrap();
    let text =
        TOOLS.text.replacen("purpose: List the tables and views.", "purpose: Name the tables and views.", 1);
    let mut changed = check_sources(Source { file: "tools.yaml", text: &text }, POLICY).unwrap();
    let tool = changed.manifest.tools.iter_mut().find(|tool| tool.name == "list_tables").unwrap();
    assert_eq!(tool.words.purpose, "Name the tables and views.");
    tool.words.purpose = "List the tables and views.".to_owned();
    assert_eq!(changed, checked);
}
