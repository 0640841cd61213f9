//! tools.yaml and policy.yaml as parsed: everything may be missing, nothing is checked.
//!
//! Names that stand for something (a type, a policy, an action) stay text here, so that a wrong one is one
//! more line among the mistakes and does not hide the others.

use super::position::{Path, Step};
use serde::Deserialize;
use serde_json::Value;

macro_rules! raw {
    ($($(#[$doc:meta])* $name:ident $expecting:literal { $($key:literal $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, Deserialize)]
            #[serde(expecting = $expecting)]
            pub struct $name {
                $(
                    #[doc = concat!("`", $key, "`.")]
                    #[serde(default, rename = $key)]
                    pub $field: Option<$type>,
                )*
            }

            impl $name {
                /// The keys, in the order of the declaration.
                pub const KEYS: &'static [&'static str] = &[$($key,)*];
                /// Each key and the name of its type, for the JSON Schema.
                pub const TYPES: &'static [(&'static str, &'static str)] = &[$(($key, stringify!($type)),)*];
            }
        )*
    };
}

raw! {
    /// tools.yaml.
    RawManifest "a map with `profiles`, `tools`, `resources`, `prompts` and `errors`" {
        "profiles" profiles: Vec<RawProfile>,
        "tools" tools: Vec<RawTool>,
        "resources" resources: Vec<RawResource>,
        "prompts" prompts: Vec<RawPrompt>,
        "errors" errors: Vec<RawError>,
    }
    /// A profile.
    RawProfile "a profile (a map)" {
        "id" id: String,
        "title" title: String,
        "format" format: String,
        "errors" errors: String,
        "defaults" defaults: RawDefaults,
        "tools" tools: Vec<String>,
        "resources" resources: Vec<String>,
        "prompts" prompts: Vec<String>,
        "instructions" instructions: String,
    }
    /// A profile's defaults.
    RawDefaults "a map of settings" {
        "query_timeout" query_timeout: f64,
        "default_limit" default_limit: u64,
        "max_rows" max_rows: u64,
        "max_result_bytes" max_result_bytes: u64,
        "max_cell_chars" max_cell_chars: u64,
    }
    /// A tool.
    RawTool "a tool (a map)" {
        "id" id: String,
        "name" name: String,
        "title" title: String,
        "policy" policy: String,
        "handler" handler: String,
        "output" output: String,
        "annotations" annotations: RawAnnotations,
        "words" words: RawWords,
        "params" params: Vec<RawParam>,
        "fixed" fixed: Vec<RawFixed>,
    }
    /// The hints.
    RawAnnotations "a map of hints" {
        "read_only" read_only: bool,
        "destructive" destructive: bool,
        "idempotent" idempotent: bool,
        "open_world" open_world: bool,
    }
    /// The parts of a description.
    RawWords "a map of texts" {
        "purpose" purpose: String,
        "use" usage: String,
        "returns" returns: String,
        "refuses" refuses: String,
        "effects" effects: String,
    }
    /// A parameter.
    RawParam "a parameter (a map)" {
        "name" name: String,
        "field" field: String,
        "type" kind: String,
        "required" required: bool,
        "description" description: String,
        "minimum" minimum: Value,
        "maximum" maximum: Value,
        "default" default: Value,
    }
    /// A constant handler field.
    RawFixed "a fixed field (a map)" {
        "field" field: String,
        "value" value: bool,
    }
    /// A resource.
    RawResource "a resource (a map)" {
        "id" id: String,
        "uri" uri: String,
        "uri_template" uri_template: String,
        "values" values: String,
        "name" name: String,
        "title" title: String,
        "description" description: String,
        "mime_type" mime_type: String,
        "policy" policy: String,
        "handler" handler: String,
    }
    /// A prompt.
    RawPrompt "a prompt (a map)" {
        "id" id: String,
        "name" name: String,
        "title" title: String,
        "description" description: String,
        "policy" policy: String,
        "arguments" arguments: Vec<RawPromptArgument>,
        "text" text: String,
    }
    /// An argument of a prompt.
    RawPromptArgument "an argument (a map)" {
        "name" name: String,
        "description" description: String,
        "required" required: bool,
        "values" values: String,
    }
    /// The words of an error code.
    RawError "an error code (a map)" {
        "code" code: String,
        "meaning" meaning: String,
        "next" next: String,
    }
    /// policy.yaml.
    RawPolicyFile "a map with `policies`, `actions`, `protected` and `exceptions`" {
        "policies" policies: Vec<RawPolicy>,
        "actions" actions: Vec<RawAction>,
        "protected" protected: RawProtected,
        "exceptions" exceptions: Vec<RawException>,
    }
    /// A policy.
    RawPolicy "a policy (a map)" {
        "id" id: String,
        "title" title: String,
        "tool" tool: String,
        "connection" connection: String,
        "server_does" server_does: String,
        "selects_only" selects_only: bool,
        "actions" actions: Vec<String>,
        "pragmas" pragmas: RawPragmas,
        "functions_denied" functions_denied: Vec<String>,
        "modules" modules: Vec<String>,
        "counts_overwrites" counts_overwrites: bool,
        "snapshots_first" snapshots_first: bool,
    }
    /// The pragmas of a policy.
    RawPragmas "a map with `read` and `introspect`" {
        "read" read: Vec<String>,
        "introspect" introspect: Vec<String>,
    }
    /// The words of an action.
    RawAction "an action (a map)" {
        "action" action: String,
        "label" label: String,
        "instead" instead: String,
        "reason" reason: String,
    }
    /// The server's own objects.
    RawProtected "a map with `tables`, `views` and `others`" {
        "tables" tables: Vec<String>,
        "views" views: Vec<String>,
        "others" others: Vec<String>,
    }
    /// A tool that may call itself not destructive although its policy can lose data.
    RawException "an exception (a map)" {
        "tool" tool: String,
        "reason" reason: String,
    }
    /// What a user takes away from the policies.
    RawNarrowing "a map with `protect`, `hide`, `refuse`, `policies` and `limits`" {
        "protect" protect: Vec<String>,
        "hide" hide: Vec<RawHidden>,
        "refuse" refuse: RawRefused,
        "policies" policies: Vec<RawNarrowedPolicy>,
        "limits" limits: RawLimits,
    }
    /// A table to hide, or columns of it.
    RawHidden "a map with `table` and `columns`" {
        "table" table: String,
        "columns" columns: Vec<String>,
    }
    /// What is refused.
    RawRefused "a map with `actions`, `functions` and `pragmas`" {
        "actions" actions: Vec<String>,
        "functions" functions: Vec<String>,
        "pragmas" pragmas: Vec<String>,
    }
    /// What is refused under one policy.
    RawNarrowedPolicy "a map with `id` and `refuse`" {
        "id" id: String,
        "refuse" refuse: RawRefused,
    }
    /// Lower limits: numbers, or strings with variables.
    RawLimits "a map of limits" {
        "max_rows" max_rows: Value,
        "max_result_bytes" max_result_bytes: Value,
        "max_cell_chars" max_cell_chars: Value,
        "max_update_rows" max_update_rows: Value,
        "query_timeout" query_timeout: Value,
    }
}

/// The known keys of the map at `path` in tools.yaml.
#[must_use]
pub fn manifest_keys(path: &Path) -> &'static [&'static str] {
    match shape(path).as_slice() {
        [] => RawManifest::KEYS,
        ["profiles", "*"] => RawProfile::KEYS,
        ["profiles", "*", "defaults"] => RawDefaults::KEYS,
        ["tools", "*"] => RawTool::KEYS,
        ["tools", "*", "annotations"] => RawAnnotations::KEYS,
        ["tools", "*", "words"] => RawWords::KEYS,
        ["tools", "*", "params", "*"] => RawParam::KEYS,
        ["tools", "*", "fixed", "*"] => RawFixed::KEYS,
        ["resources", "*"] => RawResource::KEYS,
        ["prompts", "*"] => RawPrompt::KEYS,
        ["prompts", "*", "arguments", "*"] => RawPromptArgument::KEYS,
        ["errors", "*"] => RawError::KEYS,
        _ => &[],
    }
}

/// The known keys of the map at `path` in policy.yaml.
#[must_use]
pub fn policy_keys(path: &Path) -> &'static [&'static str] {
    match shape(path).as_slice() {
        [] => RawPolicyFile::KEYS,
        ["policies", "*"] => RawPolicy::KEYS,
        ["policies", "*", "pragmas"] => RawPragmas::KEYS,
        ["actions", "*"] => RawAction::KEYS,
        ["protected"] => RawProtected::KEYS,
        ["exceptions", "*"] => RawException::KEYS,
        _ => &[],
    }
}

/// The known keys of the map at `path` in a policy overlay.
#[must_use]
pub fn narrowing_keys(path: &Path) -> &'static [&'static str] {
    match shape(path).as_slice() {
        [] => RawNarrowing::KEYS,
        ["hide", "*"] => RawHidden::KEYS,
        ["refuse"] | ["policies", "*", "refuse"] => RawRefused::KEYS,
        ["policies", "*"] => RawNarrowedPolicy::KEYS,
        ["limits"] => RawLimits::KEYS,
        _ => &[],
    }
}

/// The path with every index as `*`.
fn shape(path: &Path) -> Vec<&str> {
    path.0
        .iter()
        .map(|step| match step {
            Step::Key(key) => key.as_str(),
            Step::Index(_) => "*",
        })
        .collect()
}
