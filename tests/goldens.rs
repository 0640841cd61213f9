//! The texts that the build makes, as committed: generated Rust, lists and instructions as sent, the readable pages.
//!
//! A change of tools.yaml or policy.yaml shows up here, in review, as plain text. It checks no meaning.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests may fail loudly as tests do"
)]

use indelible::surface::{Surface, SurfaceSettings, built_in_manifest};
use indelible::{policy, spec};
use std::path::{Path, PathBuf};

#[path = "../src/codegen/mod.rs"]
#[allow(unreachable_pub, reason = "shared with build.rs")]
mod codegen;

const TOOLS: &str = include_str!("../tools.yaml");
const POLICY: &str = include_str!("../policy.yaml");
const REFRESH: &str = "INDELIBLE_REFRESH=1 cargo test --test goldens";

fn checked() -> spec::Checked {
    let tools = spec::Source { file: "tools.yaml", text: TOOLS };
    let policy = spec::Source { file: "policy.yaml", text: POLICY };
    spec::check_sources(tools, policy).expect("the build accepted both files")
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Compares `text` with the committed file, or writes the file when asked to.
#[track_caller]
fn hold(path: &str, text: &str) {
    let file = repository(path);
    if std::env::var_os("INDELIBLE_REFRESH").is_some() {
        assert!(std::env::var_os("CI").is_none(), "goldens are not refreshed where CI is set");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    if committed == text {
        return;
    }
    let line = committed.lines().zip(text.lines()).take_while(|(old, new)| old == new).count();
    let (old, new) = (committed.lines().nth(line), text.lines().nth(line));
    panic!(
        "{path}:{}: differs from what tools.yaml and policy.yaml give\n committed: {old:?}\n now: {new:?}\nrefresh with `{REFRESH}` and review the difference",
        line + 1
    );
}

#[test]
fn generated_rust_is_as_committed() {
    let texts = codegen::Texts { tools: TOOLS, policy: POLICY };
    for output in codegen::build_outputs(&checked(), texts).unwrap() {
        // The manifest's content is in tools/list and in the pages, where it can be read.
        if output.name != "manifest.json" {
            hold(&format!("tests/goldens/{}", output.name), &output.text);
        }
    }
}

#[test]
fn readable_pages_are_as_committed() {
    for output in codegen::pages(&checked()).unwrap() {
        hold(&format!("docs/{}", output.name), &output.text);
    }
}

#[test]
fn tools_list_is_as_committed() {
    let manifest = built_in_manifest().unwrap();
    for profile in &manifest.profiles {
        let settings = SurfaceSettings::for_profile(&profile.defaults);
        let surface = Surface::new(&manifest, &profile.id, &settings, false).unwrap();
        let list = serde_json::json!({ "tools": surface.descriptors() });
        let text = format!("{}\n", serde_json::to_string_pretty(&list).unwrap());
        hold(&format!("tests/goldens/tools_list.{}.json", profile.id), &text);
    }
}

#[test]
fn schemas_for_editors_are_as_committed() {
    use indelible::spec::shape::document;
    let schemas = [
        ("tools", document::<spec::raw::RawManifest>("tools.yaml of Indelible")),
        ("policy", document::<spec::raw::RawPolicyFile>("policy.yaml of Indelible")),
        (
            "policy-file",
            document::<spec::raw::RawNarrowing>("A policy file of Indelible (--policy): it can only narrow"),
        ),
        ("overlay", document::<indelible::overlay::raw::RawOverlay>("An overlay for Indelible's tools")),
    ];
    for (name, schema) in schemas {
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        hold(&format!("schemas/{name}.schema.json"), &text);
    }
    assert!(POLICY.starts_with("# yaml-language-server: $schema=schemas/policy.schema.json\n"));
    assert!(TOOLS.starts_with("# yaml-language-server: $schema=schemas/tools.schema.json\n"));
}

#[test]
fn templates_prompts_and_instructions_are_as_committed() {
    let manifest = built_in_manifest().unwrap();
    for profile in &manifest.profiles {
        let settings = SurfaceSettings::for_profile(&profile.defaults);
        let surface = Surface::new(&manifest, &profile.id, &settings, false).unwrap();
        let offers = serde_json::json!({
            "instructions": surface.instructions().lines().collect::<Vec<_>>(),
            "resourceTemplates": surface.template_descriptors(),
            "prompts": surface.prompt_descriptors(),
        });
        let text = format!("{}\n", serde_json::to_string_pretty(&offers).unwrap());
        hold(&format!("tests/goldens/offers.{}.json", profile.id), &text);
    }
}

#[test]
fn the_program_was_built_from_the_committed_files() {
    let texts = codegen::Texts { tools: TOOLS, policy: POLICY };
    let outputs = codegen::build_outputs(&checked(), texts).unwrap();
    let generated = outputs.iter().find(|output| output.name == "generated.rs").unwrap();
    assert!(generated.text.contains(indelible::generated::MANIFEST_SHA256), "stale build of tools.yaml");
    assert!(generated.text.contains(indelible::generated::POLICY_SHA256), "stale build of policy.yaml");
}
