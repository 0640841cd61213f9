//! db_query, db_exec: an agent's own SQL.

use super::{Call, Reply};
use crate::error::ToolError;
use crate::generated::PolicyId;
use crate::render::Caps;
use crate::render::{Datum, one_line};
use crate::results::{DatabaseChanged, RowSet, StatementResult, Truncated, json_value};
use crate::state::catalog::Kind;
use crate::state::db::{Db, Executed, MOST_STATEMENTS, Others, Statement, Terms};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Characters of a statement that go into the log.
const MOST_LOGGED: usize = 2_000;

/// Arguments of [`query`].
pub struct QueryInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// The statement.
    pub sql: String,
    /// Array or object of parameters.
    pub params: Option<Value>,
}

/// Arguments of [`exec`].
pub struct ExecInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// One statement.
    pub sql: Option<String>,
    /// Its parameters.
    pub params: Option<Value>,
    /// Several statements.
    pub statements: Option<Vec<Map<String, Value>>>,
}

/// Rows of a statement that only reads.
///
/// # Errors
/// As the primitive says.
pub async fn query(call: &Call<'_>, input: QueryInput) -> Result<Reply, ToolError> {
    let db = db(call, input.primitive.as_deref()).await?;
    call.note("sql", one_line(&input.sql, MOST_LOGGED));
    let statement = Statement { sql: input.sql, params: input.params };
    Reply::of(&RowSet::of(db.query_ro(statement, terms(call, PolicyId::DatabaseRead)).await?))
}

/// Runs statements in one transaction.
///
/// # Errors
/// As the primitive says.
pub async fn exec(call: &Call<'_>, input: ExecInput) -> Result<Reply, ToolError> {
    let db = db(call, input.primitive.as_deref()).await?;
    let statements = match (input.sql, input.statements) {
        (Some(sql), None) => vec![Statement { sql, params: input.params }],
        (None, Some(items)) if input.params.is_none() => {
            if items.is_empty() || items.len() > MOST_STATEMENTS {
                return Err(ToolError::arguments(format!(
                    "`statements` must hold 1 to {MOST_STATEMENTS}, got {}",
                    items.len()
                )));
            }
            items.into_iter().enumerate().map(|(at, item)| of_item(at, item)).collect::<Result<_, _>>()?
        }
        _ => {
            return Err(ToolError::arguments(
                "give either `sql`, with `params` where it has parameters, or `statements`, each with its own",
            ));
        }
    };
    let texts: Vec<String> =
        statements.iter().take(20).map(|statement| one_line(&statement.sql, MOST_LOGGED)).collect();
    call.note("sql", texts);
    call.note("statements", statements.len());
    let done = db.exec_tx(statements, terms(call, PolicyId::DatabaseChange)).await?;
    Reply::of(&DatabaseChanged { results: done.into_iter().map(shown).collect() })
}

async fn db(call: &Call<'_>, wanted: Option<&str>) -> Result<Arc<dyn Db>, ToolError> {
    let primitive = call.primitive(wanted, Some(Kind::Db)).await?;
    call.server.store.db(&primitive).await
}

fn terms(call: &Call<'_>, policy: PolicyId) -> Terms {
    let surface = call.server.surface();
    let tool_of = |policy: PolicyId| {
        surface.tools().iter().find(|tool| tool.policy == policy).map(|tool| tool.spec.name.clone())
    };
    let settings = &call.server.settings;
    let bytes = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Terms {
        timeout: settings.query_timeout,
        max_rows: settings.max_rows,
        caps: Caps {
            max_result_bytes: bytes(settings.max_result_bytes),
            max_cell_chars: bytes(settings.max_cell_chars),
        },
        tool: tool_of(policy).unwrap_or_default(),
        others: Others { reads: tool_of(PolicyId::DatabaseRead), changes: tool_of(PolicyId::DatabaseChange) },
        cancel: call.cancel.clone(),
    }
}

/// One of `statements`.
fn of_item(at: usize, mut item: Map<String, Value>) -> Result<Statement, ToolError> {
    let wrong = |words: String| ToolError::arguments(format!("statement {}: {words}", at + 1));
    let Some(Value::String(sql)) = item.remove("sql") else {
        return Err(wrong("`sql` must be a string".to_owned()));
    };
    let params = item.remove("params").filter(|params| !params.is_null());
    if let Some(name) = item.keys().next() {
        let name = one_line(name, 60);
        return Err(wrong(format!("`{name}` is no part of a statement, which takes sql and params")));
    }
    Ok(Statement { sql, params })
}

fn shown(one: Executed) -> StatementResult {
    let last_insert_rowid = one.last_insert_rowid.map(|rowid| json_value(Datum::Integer(rowid)));
    let result =
        StatementResult { rows_affected: one.rows_affected, last_insert_rowid, ..Default::default() };
    let Some(rows) = one.rows else { return result };
    let truncated = Truncated::of(&rows);
    let RowSet { columns, rows, .. } = RowSet::of(rows);
    StatementResult { columns: Some(columns), rows: Some(rows), truncated, ..result }
}
