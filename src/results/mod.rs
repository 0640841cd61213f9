//! Results as data: the structs behind `structuredContent` and `outputSchema`.
//!
//! Plain types that schemars turns into plain schemas: no references, no unions, no lists of types. They
//! hold what is shown, after the caps; a value without an exact JSON form is a string. They read nothing
//! and render nothing. A client sees the schema and, of the words here, only those under `note`.

mod databases;
mod primitives;
mod schema;
mod value;
mod vault;

pub use databases::*;
pub use primitives::*;
pub use schema::schema_of;
pub use value::json_value;
pub use vault::*;

use crate::render::{Datum, DatumRows};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Why rows or cells are missing from a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Truncated {
    /// More rows exist than were asked for.
    MaxRows,
    /// The result reached its size limit.
    MaxOutputBytes,
    /// Cells were cut.
    MaxCellChars,
}

/// Of list_tables.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TableList {
    /// Tables and views, by name.
    pub tables: Vec<TableSummary>,
    /// Why some are missing: null, or "max_output_bytes".
    #[schemars(schema_with = "schema::string_or_null")]
    pub truncated: Option<Truncated>,
}

/// A table or view in a list.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TableSummary {
    /// Its name as stored.
    pub name: String,
    /// "table" or "view".
    #[serde(rename = "type")]
    pub kind: String,
    /// How many columns it has.
    pub columns: u64,
}

/// Of describe_table.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TableDetail {
    /// Its name as stored.
    pub name: String,
    /// "table" or "view".
    #[serde(rename = "type")]
    pub kind: String,
    /// Columns in order.
    pub columns: Vec<ColumnDetail>,
    /// Foreign keys.
    pub foreign_keys: Vec<ForeignKeyDetail>,
    /// Indexes.
    pub indexes: Vec<IndexDetail>,
    /// Rows; null for a view and when counting took too long.
    #[schemars(schema_with = "schema::integer_or_null")]
    pub row_count: Option<u64>,
    /// The CREATE statement; null where SQLite keeps none.
    #[schemars(schema_with = "schema::string_or_null")]
    pub sql: Option<String>,
    /// Why something is missing: null, or "max_output_bytes".
    #[schemars(schema_with = "schema::string_or_null")]
    pub truncated: Option<Truncated>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ColumnDetail {
    /// Its name.
    pub name: String,
    /// The declared type, possibly empty.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it may be NULL. An INTEGER PRIMARY KEY that stands for the rowid never is.
    pub nullable: bool,
    /// The default as SQL text; null if there is none.
    #[schemars(schema_with = "schema::string_or_null")]
    pub default: Option<String>,
    /// Whether it is part of the primary key.
    pub primary_key: bool,
    /// Whether it is computed from other columns.
    pub generated: bool,
}

/// A foreign key; a composite one is one entry.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ForeignKeyDetail {
    /// Columns of this table.
    pub from: Vec<String>,
    /// The table referred to.
    pub table: String,
    /// Columns there; empty where the declaration leaves them to its primary key.
    pub to: Vec<String>,
    /// ON UPDATE.
    pub on_update: String,
    /// ON DELETE.
    pub on_delete: String,
}

impl TableDetail {
    /// The detail within `max_bytes` bytes of JSON; what does not fit is left out from the end: of the CREATE
    /// statement first, then indexes, foreign keys, columns.
    #[must_use]
    pub fn within(mut self, max_bytes: usize) -> Self {
        let mut left = max_bytes;
        let whole = (self.columns.len(), self.foreign_keys.len(), self.indexes.len());
        keep(&mut self.columns, &mut left);
        keep(&mut self.foreign_keys, &mut left);
        keep(&mut self.indexes, &mut left);
        let mut cut = whole != (self.columns.len(), self.foreign_keys.len(), self.indexes.len());
        if self.sql.as_ref().is_some_and(|sql| cut || json_bytes(sql) > left) {
            (self.sql, cut) = (None, true);
        }
        if cut {
            self.truncated = Some(Truncated::MaxOutputBytes);
        }
        self
    }
}

/// Keeps the first items whose JSON fits into `left` bytes; once one does not, nothing else does.
fn keep<T: Serialize>(items: &mut Vec<T>, left: &mut usize) {
    let fitting = items.iter().take_while(|item| {
        let rest = left.checked_sub(json_bytes(item) + 1);
        *left = rest.unwrap_or_default();
        rest.is_some()
    });
    let kept = fitting.count();
    items.truncate(kept);
}

/// Bytes of a value as compact JSON.
#[must_use]
pub fn json_bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |json| json.len())
}

/// An index.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct IndexDetail {
    /// Its name.
    pub name: String,
    /// Whether values must be unique.
    pub unique: bool,
    /// Whether it has a WHERE clause.
    pub partial: bool,
    /// Columns in order; "<expr>" for an expression.
    pub columns: Vec<String>,
}

/// Of run_query, sample_rows and db_query.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RowSet {
    /// Column names in order; a name may repeat.
    pub columns: Vec<String>,
    /// Rows; each an array beside `columns`. Integers beyond 2^53-1 and infinities are strings, blobs too, but for
    /// db_query's.
    #[schemars(schema_with = "schema::rows")]
    pub rows: Vec<Vec<Value>>,
    /// Rows in this result.
    pub row_count: u64,
    /// Why something is missing: null, "max_rows", "max_output_bytes" or "max_cell_chars".
    #[schemars(schema_with = "schema::truncated")]
    pub truncated: Option<Truncated>,
}

impl RowSet {
    /// Rows that come capped already.
    #[must_use]
    pub fn of(rows: DatumRows) -> Self {
        let truncated = Truncated::of(&rows);
        let row_count = u64::try_from(rows.rows.len()).unwrap_or(u64::MAX);
        let rows_of = |row: Vec<Datum>| row.into_iter().map(json_value).collect();
        let DatumRows { columns, rows, .. } = rows;
        Self { columns, rows: rows.into_iter().map(rows_of).collect(), row_count, truncated }
    }
}

impl Truncated {
    /// The reason that weighs most, of those there are.
    #[must_use]
    pub fn of(rows: &DatumRows) -> Option<Self> {
        if rows.bytes_cut {
            Some(Self::MaxOutputBytes)
        } else if rows.more_rows {
            Some(Self::MaxRows)
        } else if rows.cells_cut > 0 {
            Some(Self::MaxCellChars)
        } else {
            None
        }
    }
}

/// Of explain_query.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct QueryPlan {
    /// The steps as SQLite gives them.
    pub plan: Vec<PlanStep>,
    /// The same as a tree of text.
    pub tree: String,
    /// Tables (by alias, where they have one) that are read from end to end.
    pub full_scans: Vec<String>,
    /// Why steps are missing: null, or "max_output_bytes".
    #[schemars(schema_with = "schema::string_or_null")]
    pub truncated: Option<Truncated>,
}

/// A step of a query plan (<https://sqlite.org/eqp.html>).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
pub struct PlanStep {
    /// Its number.
    pub id: i64,
    /// The step it belongs to; 0 for the top.
    pub parent: i64,
    /// What it does.
    pub detail: String,
}
