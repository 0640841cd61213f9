//! Turns tools.yaml and policy.yaml into Rust: loads and checks both, and writes what `src/codegen`
//! renders into OUT_DIR.
//!
//! Thin on purpose: it decides nothing, and every mistake comes out as `cargo::error=file:line:col: ...`.

// Shared with the library, which uses more of it than a build needs.
#[allow(dead_code, unreachable_pub, reason = "shared with the library, which uses all of it")]
#[path = "src/spec/mod.rs"]
mod spec;

#[allow(dead_code, unreachable_pub, reason = "shared with the tests, which also use the pages")]
#[path = "src/codegen/mod.rs"]
mod codegen;

#[allow(dead_code, unreachable_pub, reason = "shared with the library, which uses all of it")]
#[path = "src/error.rs"]
mod error;

#[allow(dead_code, unreachable_pub, reason = "shared with the library, which uses all of it")]
#[path = "src/policy"]
mod policy {
    pub mod action;
    pub mod narrowing;
}

use std::path::Path;

const TOOLS: &str = "tools.yaml";
const POLICY: &str = "policy.yaml";

fn main() {
    let inputs = [
        TOOLS,
        POLICY,
        "templates/build",
        "src/spec",
        "src/codegen",
        "src/error.rs",
        "src/policy/action.rs",
        "src/policy/narrowing.rs",
        "build.rs",
    ];
    for input in inputs {
        build_helper::rerun_if_changed(input);
    }
    if let Err(lines) = generate(&build_helper::cargo::manifest::dir(), &build_helper::out_dir()) {
        for line in lines {
            say(&format!("cargo::error={line}"));
        }
    }
}

fn generate(root: &Path, out: &Path) -> Result<(), Vec<String>> {
    let tools = read(&root.join(TOOLS))?;
    let policy = read(&root.join(POLICY))?;
    let checked = spec::check_sources(
        spec::Source { file: TOOLS, text: &tools },
        spec::Source { file: POLICY, text: &policy },
    )
    .map_err(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let texts = codegen::Texts { tools: &tools, policy: &policy };
    for output in codegen::build_outputs(&checked, texts).map_err(|line| vec![line])? {
        let path = out.join(output.name);
        std::fs::write(&path, output.text)
            .map_err(|error| vec![format!("cannot write {}: {error}", path.display())])?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, Vec<String>> {
    std::fs::read_to_string(path).map_err(|error| vec![format!("cannot read {}: {error}", path.display())])
}

/// One directive; cargo reads them from stdout.
fn say(line: &str) {
    println!("{line}");
}
