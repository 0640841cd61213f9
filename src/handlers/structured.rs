//! The schema as structuredContent and Markdown, for profiles of that format. It is read elsewhere, and nothing of it is
//! run.

use super::rows::structured;
use super::{Call, Reply};
use crate::error::ToolError;
use crate::render::datum::text_width;
use crate::render::{cut_text, markdown};
use crate::results::{
    ColumnDetail, ForeignKeyDetail, IndexDetail, TableDetail, TableList, TableSummary, Truncated,
};
use crate::sqlite::introspect::{TableDescription, TableEntry};
use serde_json::{Value, json};

/// Bytes of an entry of list_tables besides its name.
const ENTRY_BYTES: usize = 60;

/// Tables and views with their column counts.
///
/// # Errors
/// None that an agent can cause.
pub fn tables(call: &Call<'_>, entries: Vec<TableEntry>) -> Result<Reply, ToolError> {
    let most = call.caps().max_result_bytes;
    let mut list = TableList { tables: Vec::new(), truncated: None };
    let mut bytes = 0;
    for entry in entries {
        bytes += text_width(&entry.name) + ENTRY_BYTES;
        if bytes > most {
            list.truncated = Some(Truncated::MaxOutputBytes);
            break;
        }
        let kind = kind(entry.view);
        list.tables.push(TableSummary { name: entry.name, kind, columns: entry.columns });
    }
    let rows: Vec<Vec<Value>> = list
        .tables
        .iter()
        .map(|table| vec![json!(table.name), json!(table.kind), json!(table.columns)])
        .collect();
    let mut text = markdown::table(&["name", "type", "columns"], rows.iter().map(Vec::as_slice));
    text.push_str(&format!("\n{} tables and views", rows.len()));
    if list.truncated.is_some() {
        text.push_str(&format!("; cut at {most} bytes"));
    }
    let count = u64::try_from(rows.len()).ok();
    structured(&list, text, count)
}

/// One table or view.
///
/// # Errors
/// None that an agent can cause.
pub fn description(call: &Call<'_>, table: TableDescription) -> Result<Reply, ToolError> {
    let most = call.caps().max_result_bytes;
    let mut detail = table_detail(table).within(most);
    detail.name = cut_text(&detail.name, call.caps().max_cell_chars);
    let mut text = description_text(&detail);
    if detail.truncated.is_some() {
        text.push_str(&format!("\ncut at {most} bytes"));
    }
    let text = crate::render::cap_block(text, most);
    let count = u64::try_from(detail.columns.len()).ok();
    structured(&detail, text, count)
}

/// A table's description as the result that clients get, whole.
#[must_use]
pub fn table_detail(table: TableDescription) -> TableDetail {
    let rowid = table.key_is_rowid();
    TableDetail {
        name: table.name,
        kind: kind(table.view),
        columns: table
            .columns
            .into_iter()
            .filter(|column| column.hidden != 1)
            .map(|column| ColumnDetail {
                name: column.name,
                kind: column.declared_type,
                nullable: !(column.not_null || rowid && column.primary_key > 0),
                default: column.default,
                primary_key: column.primary_key > 0,
                generated: column.hidden > 1,
            })
            .collect(),
        foreign_keys: table
            .foreign_keys
            .into_iter()
            .map(|key| ForeignKeyDetail {
                from: key.from,
                table: key.table,
                to: key.to.into_iter().flatten().collect(),
                on_update: key.on_update,
                on_delete: key.on_delete,
            })
            .collect(),
        indexes: table
            .indexes
            .into_iter()
            .map(|index| IndexDetail {
                name: index.name,
                unique: index.unique,
                partial: index.partial,
                columns: index
                    .columns
                    .into_iter()
                    .map(|column| column.unwrap_or_else(|| "<expr>".to_owned()))
                    .collect(),
            })
            .collect(),
        row_count: table.rows,
        sql: table.sql,
        truncated: None,
    }
}

fn description_text(table: &TableDetail) -> String {
    let yes = |flag: bool| json!(if flag { "yes" } else { "" });
    let text = |value: &Option<String>| json!(value.as_deref().unwrap_or_default());
    let mut out = format!("{} {}", table.kind, markdown::escaped(&table.name));
    if let Some(rows) = table.row_count {
        out.push_str(&format!(", {rows} rows"));
    }
    out.push_str("\n\n");
    let columns: Vec<Vec<Value>> = table
        .columns
        .iter()
        .map(|c| {
            vec![
                json!(c.name),
                json!(c.kind),
                yes(c.nullable),
                text(&c.default),
                yes(c.primary_key),
                yes(c.generated),
            ]
        })
        .collect();
    let heads = ["column", "type", "nullable", "default", "primary key", "generated"];
    out.push_str(&markdown::table(&heads, columns.iter().map(Vec::as_slice)));
    if !table.foreign_keys.is_empty() {
        let keys: Vec<Vec<Value>> = table
            .foreign_keys
            .iter()
            .map(|key| {
                vec![
                    json!(key.from.join(", ")),
                    json!(key.table),
                    json!(key.to.join(", ")),
                    json!(key.on_update),
                    json!(key.on_delete),
                ]
            })
            .collect();
        out.push_str("\nForeign keys\n\n");
        let heads = ["from", "table", "to", "on update", "on delete"];
        out.push_str(&markdown::table(&heads, keys.iter().map(Vec::as_slice)));
    }
    if !table.indexes.is_empty() {
        let indexes: Vec<Vec<Value>> = table
            .indexes
            .iter()
            .map(|index| {
                vec![
                    json!(index.name),
                    json!(index.columns.join(", ")),
                    yes(index.unique),
                    yes(index.partial),
                ]
            })
            .collect();
        out.push_str("\nIndexes\n\n");
        out.push_str(&markdown::table(
            &["index", "columns", "unique", "partial"],
            indexes.iter().map(Vec::as_slice),
        ));
    }
    if let Some(sql) = &table.sql {
        out.push('\n');
        out.push_str(&markdown::code_block("sql", sql));
    }
    out
}

fn kind(view: bool) -> String {
    if view { "view" } else { "table" }.to_owned()
}
