//! The YAML files: any text gives a manifest or mistakes that name a place, and never a panic.
//!
//! The first byte chooses which of the files the text is.

use indelible::overlay::{OverlayFile, merge};
use indelible::spec::check_narrowing::{Ground, check_narrowing};
use indelible::spec::{Source, check_sources};
use indelible::surface::built_in_manifest;

const TOOLS: &str = include_str!("../../tools.yaml");
const POLICY: &str = include_str!("../../policy.yaml");

pub(crate) fn run(data: &[u8]) {
    let Some((which, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let mistakes = match which % 4 {
        0 => check_sources(Source { file: "t", text }, Source { file: "p", text: POLICY }).err(),
        1 => check_sources(Source { file: "t", text: TOOLS }, Source { file: "p", text }).err(),
        2 => {
            let built_in = built_in_manifest().expect("the manifest is built in");
            let file = OverlayFile { name: "o".to_owned(), text: text.to_owned() };
            merge(&built_in, &[file], None, &|_| None).err()
        }
        _ => check_narrowing("n", text, &Ground::default(), &|_| None).err(),
    };
    for mistake in mistakes.into_iter().flatten() {
        assert!(mistake.position.line > 0 && !mistake.message.is_empty(), "{mistake:?}");
    }
}
