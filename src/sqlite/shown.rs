//! What lists and descriptions show where a policy file hides something: the rest, without a word.
//!
//! It refuses nothing; naming what is hidden is refused elsewhere.

use super::introspect::{Column, ForeignKey, Index};
use crate::policy::Hidden;

/// The names that are not left out of lists.
pub(super) fn shown(hidden: &Hidden, mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| !hidden.is_left_out(name));
    names
}

/// The columns that are not hidden.
pub(super) fn shown_columns(hidden: &Hidden, table: &str, mut columns: Vec<Column>) -> Vec<Column> {
    columns.retain(|column| hidden.column(table, &column.name).is_none());
    columns
}

pub(super) fn shown_keys(hidden: &Hidden, table: &str, mut keys: Vec<ForeignKey>) -> Vec<ForeignKey> {
    keys.retain(|key| {
        let there = key.to.iter().flatten().any(|column| hidden.column(&key.table, column).is_some());
        let here = key.from.iter().any(|column| hidden.column(table, column).is_some());
        !here && !there && !hidden.is_left_out(&key.table)
    });
    keys
}

pub(super) fn shown_indexes(hidden: &Hidden, table: &str, mut indexes: Vec<Index>) -> Vec<Index> {
    indexes
        .retain(|index| !index.columns.iter().flatten().any(|column| hidden.column(table, column).is_some()));
    indexes
}

/// Whether the rowid is the value of a hidden column.
pub(super) fn rowid_is_hidden(hidden: &Hidden, table: &str, columns: &[Column]) -> bool {
    let keys: Vec<&Column> = columns.iter().filter(|column| column.primary_key > 0).collect();
    matches!(keys.as_slice(), [key] if key.declared_type.eq_ignore_ascii_case("integer")
        && hidden.column(table, &key.name).is_some())
}
