//! An overlay file as parsed: everything may be missing, nothing is checked.
//!
//! It has no shape in common with tools.yaml but the words of a description: an overlay says what is to be
//! different, not what there is.

use crate::spec::position::Path;
use crate::spec::raw::{RawDefaults, RawWords, shape};
use crate::spec::shape::{Shape, raw};
use serde_json::Value;

/// A statement. It is no text that variables are filled into.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(transparent)]
pub struct Sql(pub String);

impl Shape for Sql {
    fn schema() -> Value {
        String::schema()
    }
}

raw! {
    /// An overlay file.
    RawOverlay "a map with `instructions`, `only`, `hide`, `tools` and `profiles`" {
        "instructions" instructions: RawInstructions = "The instructions of the served profile.",
        "only" only: Vec<String> = "The only tools of the served profile to offer, by name or id.",
        "hide" hide: Vec<String> = "Tools of the served profile not to offer, by name or id.",
        "tools" tools: Vec<RawToolEntry> = "Tools to change (with `tool`) and new tools made of SQL (with `statement`).",
        "profiles" profiles: Vec<RawProfileEntry> = "New profiles, and profiles to change; `--profile` chooses one.",
    }
    /// What to do with instructions.
    RawInstructions "a map with `replace` or `append`" {
        "replace" replace: String = "The whole instructions; a template over the settings, such as {{ max_rows }}.",
        "append" append: String = "What is added at the end; a template over the settings.",
    }
    /// A tool to change or to make.
    RawToolEntry "a tool (a map)" {
        "tool" tool: String = "The tool to change, by name or id. Left out for a new tool.",
        "name" name: String = "The name that agents call: lower-case letters, digits and _.",
        "title" title: String = "A short title for people.",
        "words" words: RawWords = "The parts of the description; a new tool needs `purpose`.",
        "statement" statement: Sql = "One SQL statement; parameters as :name, each declared under `params`.",
        "policy" policy: String = "What the statement may do." ["read", "write"],
        "limit" limit: u64 = "Rows to return at most; left out, the default limit.",
        "output" output: String = "How rows look: CSV text, or data with Markdown. Left out, as the profile does." ["csv", "rows"],
        "params" params: Vec<RawParamEntry> = "Parameters, in reading order.",
    }
    /// A parameter to change or to make.
    RawParamEntry "a parameter (a map)" {
        "name" name: String = "Its name, as in the statement without the colon.",
        "type" kind: String = "What it holds; an array is bound as JSON text, for json_each." ["string", "integer", "number", "boolean", "array"],
        "items" items: String = "What an array's items are." ["string", "integer", "number", "boolean"],
        "required" required: bool = "Whether it must be given; left out and without default it is NULL.",
        "description" description: String = "Unit, format, bounds and default in words.",
        "enum" choices: Vec<Value> = "The only values it may have.",
        "pattern" pattern: String = "A regular expression that strings must match somewhere.",
        "minimum" minimum: Value = "The least value.",
        "maximum" maximum: Value = "The greatest value.",
        "default" default: Value = "What holds when it is left out.",
    }
    /// A profile to change or to make.
    RawProfileEntry "a profile (a map)" {
        "id" id: String = "Its name for `--profile`.",
        "base" base: String = "For a new profile: the one it starts from.",
        "title" title: String = "One line for people.",
        "tools" tools: Vec<String> = "Its tools, in the order to list them, by name or id.",
        "resources" resources: Vec<String> = "The ids of its resources.",
        "prompts" prompts: Vec<String> = "The ids of its prompts.",
        "defaults" defaults: RawDefaults = "Settings it starts from, none above those of its base.",
        "instructions" instructions: RawInstructions = "Its instructions.",
    }
}

/// The known keys of the map at `path`.
#[must_use]
pub fn keys(path: &Path) -> &'static [&'static str] {
    match shape(path).as_slice() {
        [] => RawOverlay::KEYS,
        ["instructions"] | ["profiles", "*", "instructions"] => RawInstructions::KEYS,
        ["tools", "*"] => RawToolEntry::KEYS,
        ["tools", "*", "words"] => RawWords::KEYS,
        ["tools", "*", "params", "*"] => RawParamEntry::KEYS,
        ["profiles", "*"] => RawProfileEntry::KEYS,
        ["profiles", "*", "defaults"] => RawDefaults::KEYS,
        _ => &[],
    }
}
