//! The manifest as checked data: profiles, tools, their words and parameters; resources, prompts and error codes.
//!
//! Plain structs shared by the build, the runtime and overlays. It neither reads files nor checks
//! anything: `load.rs` reads, `check.rs` checks.

pub use super::params::{ParamSpec, ParamType};

use crate::error::ErrorCode;
use serde::{Deserialize, Serialize};

/// tools.yaml.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The profiles, in reading order; the first is the default.
    pub profiles: Vec<ProfileSpec>,
    /// The tools of all profiles, in reading order.
    pub tools: Vec<ToolSpec>,
    /// What clients can read by its URI, in the order of resources/list.
    #[serde(default)]
    pub resources: Vec<ResourceSpec>,
    /// The prompts, in the order of prompts/list.
    #[serde(default)]
    pub prompts: Vec<PromptSpec>,
    /// The words of every error code; each code once.
    #[serde(default)]
    pub errors: Vec<ErrorSpec>,
}

/// A set of tools with its own instructions, text format and defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileSpec {
    /// `memory`, `explorer`.
    pub id: String,
    /// One line for people.
    pub title: String,
    /// How results look.
    pub format: Format,
    /// Whether an error's text starts with its code in brackets.
    pub errors: ErrorStyle,
    /// What its tools work on.
    #[serde(default)]
    pub serves: Serves,
    /// Bytes that tools/list may have as compact JSON, output schemas aside; none for the build's own budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_bytes: Option<u64>,
    /// Settings this profile starts from.
    pub defaults: Defaults,
    /// The tools' ids, in the order of tools/list.
    pub tools: Vec<String>,
    /// The ids of the resources it offers.
    #[serde(default)]
    pub resources: Vec<String>,
    /// The ids of the prompts it offers.
    #[serde(default)]
    pub prompts: Vec<String>,
    /// The server's `instructions`: a minijinja template over the active settings.
    pub instructions: String,
}

/// How a profile shows results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// CSV text with a trailer.
    Csv,
    /// Markdown text beside structuredContent.
    Structured,
}

/// How a profile words errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorStyle {
    /// The message alone; the code is in `_meta`.
    Plain,
    /// `[CODE] message`.
    Coded,
    /// `[code] message`, the code in lower case.
    LowerCoded,
}

/// What a profile's tools work on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Serves {
    /// One SQLite file; handlers stand in `crate::handlers`.
    #[default]
    Database,
    /// A group of primitives in a data folder; handlers stand in `crate::primitives`.
    Group,
}

/// A profile's defaults for the settings whose defaults differ between profiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Defaults {
    /// Seconds.
    pub query_timeout: f64,
    /// Rows.
    pub default_limit: u64,
    /// Rows.
    pub max_rows: u64,
    /// Bytes.
    pub max_result_bytes: u64,
    /// Characters.
    pub max_cell_chars: u64,
}

/// One tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Unique over all profiles: `memory.read_query`.
    pub id: String,
    /// The name agents call: `read_query`. Unique within a profile.
    pub name: String,
    /// A short title for people.
    pub title: String,
    /// The policy it runs under, by its id in policy.yaml.
    pub policy: String,
    /// The handler: `query.read` is `crate::handlers::query::read`.
    pub handler: String,
    /// The struct in `crate::results` that its structured result is: `RowSet`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Hints for clients; checked against the policy.
    pub annotations: Annotations,
    /// The parts of the description.
    pub words: Words,
    /// Parameters in reading order.
    #[serde(default)]
    pub params: Vec<ParamSpec>,
    /// Handler fields that this tool sets and does not offer to the agent.
    #[serde(default)]
    pub fixed: Vec<FixedField>,
    /// What the tool runs, if an overlay made it of SQL; the parameters are bound to it by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<StatementSpec>,
}

/// The SQL of a tool that an overlay made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatementSpec {
    /// One statement.
    pub sql: String,
    /// Rows it returns at most; none for the default limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// How its rows look; none for the profile's way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Format>,
}

/// A handler field with a constant value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FixedField {
    /// The field of the handler's input.
    pub field: String,
    /// true or false.
    pub value: bool,
}

/// MCP's tool annotations (<https://modelcontextprotocol.io/specification/2025-11-25/schema#toolannotations>).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotations {
    /// `readOnlyHint`.
    pub read_only: bool,
    /// `destructiveHint`.
    pub destructive: bool,
    /// `idempotentHint`.
    pub idempotent: bool,
    /// `openWorldHint`.
    pub open_world: bool,
}

/// The parts a description is composed of, by `templates/build/description.j2`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Words {
    /// What it does: verb and object.
    pub purpose: String,
    /// When to use it, and when another tool is right (by name).
    #[serde(rename = "use")]
    pub usage: String,
    /// The shape of what comes back.
    pub returns: String,
    /// What it refuses and what happens then.
    pub refuses: String,
    /// What it changes or leaves.
    pub effects: String,
}

/// A resource, or a template of resources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourceSpec {
    /// `schema`; names the generated variant.
    pub id: String,
    /// What clients ask for.
    pub address: Address,
    /// A short name for programs.
    pub name: String,
    /// A short title for people.
    pub title: String,
    /// What it holds.
    pub description: String,
    /// `application/json`.
    pub mime_type: String,
    /// The policy it is read under, by its id in policy.yaml.
    pub policy: String,
    /// The handler: `resources.schema` is `crate::handlers::resources::schema`.
    pub handler: String,
}

/// A URI, or a template of URIs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// One resource: `sqlite://schema`.
    Uri(String),
    /// One resource per value of the variable, which ends the template: `sqlite://table/{name}`
    /// (RFC 6570, level 1).
    Template {
        /// What stands before the variable: `sqlite://table/`.
        prefix: String,
        /// The variable: `name`.
        variable: String,
        /// What it stands for.
        values: ValueSource,
    },
}

/// Where the values of a template's variable or a prompt's argument come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueSource {
    /// The names of tables and views.
    Table,
}

/// A prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptSpec {
    /// `analyse_table`.
    pub id: String,
    /// The name clients give: `analyse-table`.
    pub name: String,
    /// A short title for people.
    pub title: String,
    /// What it is good for.
    pub description: String,
    /// The policy the database is looked at under, by its id in policy.yaml.
    pub policy: String,
    /// Arguments in reading order.
    #[serde(default)]
    pub arguments: Vec<PromptArgument>,
    /// The message: a minijinja template over the settings, the arguments and [`STRUCTURE`].
    pub text: String,
}

/// The name under which a prompt's text finds the structure of the table that an argument names.
pub const STRUCTURE: &str = "structure";

/// An argument of a prompt; always a string.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
    /// Where its values come from; none for free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<ValueSource>,
}

/// The words of an error code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorSpec {
    /// The code.
    pub code: ErrorCode,
    /// What happened.
    pub meaning: String,
    /// What to do next.
    pub next: String,
}

impl Address {
    /// The URI, or the template with its variable in braces.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Uri(uri) => uri.clone(),
            Self::Template { prefix, variable, .. } => format!("{prefix}{{{variable}}}"),
        }
    }
}

impl PromptSpec {
    /// The argument that names a table.
    #[must_use]
    pub fn table_argument(&self) -> Option<&PromptArgument> {
        self.arguments.iter().find(|argument| argument.values == Some(ValueSource::Table))
    }
}

impl Manifest {
    /// The profile of this id.
    #[must_use]
    pub fn profile(&self, id: &str) -> Option<&ProfileSpec> {
        self.profiles.iter().find(|p| p.id == id)
    }

    /// The resource of this id.
    #[must_use]
    pub fn resource(&self, id: &str) -> Option<&ResourceSpec> {
        self.resources.iter().find(|resource| resource.id == id)
    }

    /// The prompt of this id.
    #[must_use]
    pub fn prompt(&self, id: &str) -> Option<&PromptSpec> {
        self.prompts.iter().find(|prompt| prompt.id == id)
    }

    /// What the tool of this id works on: what the profile that lists it serves.
    #[must_use]
    pub fn serves(&self, tool: &str) -> Serves {
        let listing = self.profiles.iter().find(|profile| profile.tools.iter().any(|id| id == tool));
        listing.map_or(Serves::Database, |profile| profile.serves)
    }

    /// The tool of this id.
    #[must_use]
    pub fn tool(&self, id: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|t| t.id == id)
    }
}
