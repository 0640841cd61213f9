//! From what a worker reads to the result structs of `results/`.
//!
//! It cuts nothing and renders nothing.

use crate::results::{ColumnDetail, ForeignKeyDetail, IndexDetail, TableDetail, TableSummary};
use crate::sqlite::introspect::{Column, ForeignKey, Index, TableDescription, TableEntry};

/// A table or view in a list.
#[must_use]
pub fn table_summary(entry: &TableEntry) -> TableSummary {
    TableSummary { name: entry.name.clone(), kind: kind(entry.view).to_owned(), columns: entry.columns }
}

/// Everything about one table or view.
#[must_use]
pub fn table_detail(table: TableDescription) -> TableDetail {
    TableDetail {
        name: table.name,
        kind: kind(table.view).to_owned(),
        columns: table.columns.into_iter().map(column).collect(),
        foreign_keys: table.foreign_keys.into_iter().map(foreign_key).collect(),
        indexes: table.indexes.into_iter().map(index).collect(),
        row_count: table.rows,
        sql: table.sql,
    }
}

fn kind(view: bool) -> &'static str {
    if view { "view" } else { "table" }
}

fn column(column: Column) -> ColumnDetail {
    ColumnDetail {
        name: column.name,
        kind: column.declared_type,
        nullable: !column.not_null,
        default: column.default,
        primary_key: column.primary_key > 0,
        generated: column.hidden >= 2,
    }
}

/// Where the declaration leaves the columns to the other table's primary key, `to` is empty.
fn foreign_key(key: ForeignKey) -> ForeignKeyDetail {
    ForeignKeyDetail {
        from: key.from,
        table: key.table,
        to: key.to.into_iter().flatten().collect(),
        on_update: key.on_update,
        on_delete: key.on_delete,
    }
}

fn index(index: Index) -> IndexDetail {
    let columns = index.columns.into_iter().map(|column| column.unwrap_or_else(|| "<expr>".to_owned()));
    IndexDetail { name: index.name, unique: index.unique, partial: index.partial, columns: columns.collect() }
}
