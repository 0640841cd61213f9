//! tools.yaml and policy.yaml as parsed: everything may be missing, nothing is checked.
//!
//! Names that stand for something (a type, a policy, an action) stay text here, so that a wrong one is one
//! more line among the mistakes and does not hide the others.

use super::position::{Path, Step};
use super::shape::raw;
use serde_json::Value;

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
        "id" id: String = "Its name for `--profile`.",
        "title" title: String = "One line for people.",
        "format" format: String = "How results look." ["csv", "structured"],
        "errors" errors: String = "Whether an error's text starts with its code in brackets." ["plain", "coded", "lower_coded"],
        "serves" serves: String = "What its tools work on." ["database", "group"],
        "list_bytes" list_bytes: u64 = "Bytes that tools/list may have, where 16,000 are not enough.",
        "defaults" defaults: RawDefaults = "Settings it starts from.",
        "tools" tools: Vec<String> = "The ids of its tools, in the order of tools/list.",
        "resources" resources: Vec<String> = "The ids of its resources.",
        "prompts" prompts: Vec<String> = "The ids of its prompts.",
        "instructions" instructions: String = "What an agent is told at the start; a template over the settings.",
    }
    /// A profile's defaults.
    RawDefaults "a map of settings" {
        "query_timeout" query_timeout: f64 = "Seconds a statement may run.",
        "default_limit" default_limit: u64 = "Rows a call returns when it names no limit.",
        "max_rows" max_rows: u64 = "Rows a call may ask for.",
        "max_result_bytes" max_result_bytes: u64 = "Bytes of text a result may have.",
        "max_cell_chars" max_cell_chars: u64 = "Characters shown of one cell.",
    }
    /// A tool.
    RawTool "a tool (a map)" {
        "id" id: String = "`profile.name`, unique over all profiles.",
        "name" name: String = "The name that agents call.",
        "title" title: String = "A short title for people.",
        "policy" policy: String = "The policy it runs under, by its id in policy.yaml.",
        "handler" handler: String = "`family.function` in src/handlers.",
        "output" output: String = "The struct of src/results that its structured result is.",
        "annotations" annotations: RawAnnotations = "Hints for clients; held against the policy.",
        "words" words: RawWords = "The parts of its description.",
        "params" params: Vec<RawParam> = "Parameters, in reading order.",
        "fixed" fixed: Vec<RawFixed> = "Fields of the handler that the tool sets itself.",
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
        "purpose" purpose: String = "What it does.",
        "use" usage: String = "When to use it, and when another tool.",
        "returns" returns: String = "What comes back.",
        "refuses" refuses: String = "What it refuses.",
        "effects" effects: String = "What it changes.",
    }
    /// A parameter.
    RawParam "a parameter (a map)" {
        "name" name: String = "The name that agents give.",
        "field" field: String = "The field of the handler's input, where it is another.",
        "type" kind: String = "What it holds."
            ["string", "integer", "signed", "boolean", "string_list", "binding", "any", "object", "object_list", "duration"],
        "required" required: bool = "Whether it must be given.",
        "description" description: String = "Unit, format, bounds and default in words.",
        "minimum" minimum: Value = "The least value; a number or a setting in braces.",
        "maximum" maximum: Value = "The greatest value; a number or a setting in braces.",
        "default" default: Value = "What holds when it is left out.",
        "enum" choices: Vec<Value> = "The only values it may have.",
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
        "protect" protect: Vec<String> = "Tables and views that no statement changes; `*` and `?` stand for other characters",
        "hide" hide: Vec<RawHidden> = "Tables and columns that no statement reads",
        "refuse" refuse: RawRefused = "What no policy allows any more",
        "policies" policies: Vec<RawNarrowedPolicy> = "What single policies do not allow any more",
        "limits" limits: RawLimits = "Limits below those of flags, environment and profile",
    }
    /// A table to hide, or columns of it.
    RawHidden "a map with `table` and `columns`" {
        "table" table: String = "A table or view; `*` and `?` stand for other characters",
        "columns" columns: Vec<String> = "Columns; without this key the whole table is hidden",
    }
    /// What is refused.
    RawRefused "a map with `actions`, `functions` and `pragmas`" {
        "actions" actions: Vec<String> = "Kinds of actions, as `indelible policy` lists them" ["select", "read", "function", "recursive", "pragma", "insert", "update", "delete", "create_table", "create_index", "create_view", "create_trigger", "create_vtable", "drop_table", "drop_index", "drop_view", "drop_trigger", "drop_vtable", "alter_table", "analyze", "reindex", "create_temp_table", "create_temp_index", "create_temp_view", "create_temp_trigger", "drop_temp_table", "drop_temp_index", "drop_temp_view", "drop_temp_trigger", "transaction", "savepoint", "attach", "detach"],
        "functions" functions: Vec<String> = "SQL functions",
        "pragmas" pragmas: Vec<String> = "Pragmas",
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
pub fn shape(path: &Path) -> Vec<&str> {
    path.0
        .iter()
        .map(|step| match step {
            Step::Key(key) => key.as_str(),
            Step::Index(_) => "*",
        })
        .collect()
}
