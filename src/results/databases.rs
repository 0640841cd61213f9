//! Results of the databases of the profile `primitives`; of db_query it is the rows of every profile.

use super::{Truncated, schema};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Of db_exec.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DatabaseChanged {
    /// One each, in the order of the statements.
    pub results: Vec<StatementResult>,
}

/// What one statement came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct StatementResult {
    /// Rows that it changed.
    pub rows_affected: u64,
    /// Of the last row that it inserted; null for none.
    #[schemars(schema_with = "schema::anything")]
    pub last_insert_rowid: Option<Value>,
    /// With rows: column names in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub columns: Option<Vec<String>>,
    /// With rows: each an array beside `columns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub rows: Option<Vec<Vec<Value>>>,
    /// Why rows are missing: as of db_query; absent where none are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub truncated: Option<Truncated>,
}

/// Of db_branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DatabaseBranches {
    /// With list: by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub data: Option<Vec<BranchEntry>>,
    /// The branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub branch: Option<String>,
    /// "created", "promoted" or "discarded".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub action: Option<String>,
    /// Of main as it was before a promotion by force.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub snapshot: Option<String>,
}

/// A branch in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BranchEntry {
    /// Its name.
    pub branch: String,
    /// UTC like 2026-11-30T09:01:02.345Z.
    pub created_at: String,
    /// Whether it has changed since.
    pub changed: bool,
}
