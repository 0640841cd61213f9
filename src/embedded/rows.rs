//! Fixed statements over a file of state, kept prepared, with errors in words for an agent.

use crate::error::ToolError;
use crate::sqlite::state_file;
use crate::state::Outcome;
use rusqlite::{Connection, OptionalExtension, Params, Row};

/// Runs a statement; the number of rows it changed.
pub(super) fn run(connection: &Connection, sql: &str, params: impl Params) -> Outcome<usize> {
    let run = || connection.prepare_cached(sql)?.execute(params);
    run().map_err(wrong)
}

/// The one row of a statement.
pub(super) fn query<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    row: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Outcome<T> {
    let find = || connection.prepare_cached(sql)?.query_row(params, row);
    find().map_err(wrong)
}

/// The first row of a statement, if it has one.
pub(super) fn optional<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    row: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Outcome<Option<T>> {
    let find = || connection.prepare_cached(sql)?.query_row(params, row).optional();
    find().map_err(wrong)
}

/// Every row of a statement.
pub(super) fn all<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Outcome<Vec<T>> {
    let find =
        || connection.prepare_cached(sql)?.query_map(params, row)?.collect::<rusqlite::Result<Vec<T>>>();
    find().map_err(wrong)
}

/// SQLite's error, in words.
pub(super) fn wrong(error: rusqlite::Error) -> ToolError {
    state_file::error(&error)
}

/// An offset as substr() counts: from 1.
pub(super) fn first_byte(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX).saturating_add(1)
}

/// A number of bytes as substr() takes it.
pub(super) fn byte_count(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

/// The hash, and the bytes where they stand in the row. substr() makes NULL of no bytes, so the row says apart
/// whether it has them.
pub(super) fn hash_or_bytes(row: &Row<'_>) -> rusqlite::Result<(String, Option<Vec<u8>>)> {
    let elsewhere: bool = row.get(1)?;
    let bytes: Option<Vec<u8>> = row.get(2)?;
    Ok((row.get(0)?, (!elsewhere).then(|| bytes.unwrap_or_default())))
}
