//! db_query, db_exec, db_branch: an agent's own SQL, and copies to try it on.

use super::{Call, Reply};
use crate::error::ToolError;
use crate::generated::PolicyId;
use crate::render::Caps;
use crate::render::{Datum, one_line};
use crate::results::{
    BranchEntry, DatabaseBranches, DatabaseChanged, RowSet, StatementResult, Truncated, json_value,
};
use crate::state::catalog::Kind;
use crate::state::clock;
use crate::state::db::{Branch, Db, Executed, MOST_STATEMENTS, Others, Statement, Terms};
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
    /// A branch; none for main.
    pub branch: Option<String>,
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
    /// A branch; none for main.
    pub branch: Option<String>,
}

/// Arguments of [`branch`].
pub struct BranchInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// "create", "promote", "discard" or "list".
    pub action: String,
    /// The branch.
    pub branch: Option<String>,
    /// Whether to do it all the same.
    pub force: bool,
}

/// Rows of a statement that only reads.
///
/// # Errors
/// As the primitive says.
pub async fn query(call: &Call<'_>, input: QueryInput) -> Result<Reply, ToolError> {
    let db = db(call, input.primitive.as_deref()).await?;
    call.note("sql", one_line(&input.sql, MOST_LOGGED));
    let statement = Statement { sql: input.sql, params: input.params };
    let terms = terms(call, PolicyId::DatabaseRead);
    Reply::of(&RowSet::of(db.query_ro(noted(call, input.branch), statement, terms).await?))
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
    let terms = terms(call, PolicyId::DatabaseChange);
    let done = db.exec_tx(noted(call, input.branch), statements, terms).await?;
    Reply::of(&DatabaseChanged { results: done.into_iter().map(shown).collect() })
}

/// Makes, promotes, discards or lists branches.
///
/// # Errors
/// As the primitive says.
pub async fn branch(call: &Call<'_>, input: BranchInput) -> Result<Reply, ToolError> {
    let db = db(call, input.primitive.as_deref()).await?;
    call.note("action", input.action.as_str());
    if input.action == "list" {
        if input.branch.is_some() {
            return Err(ToolError::arguments("`branch` does not go with list, which shows them all"));
        }
        let entry = |branch: Branch| BranchEntry {
            branch: branch.name,
            created_at: clock::shown(branch.created_at),
            changed: branch.changed,
        };
        let data = db.branches().await?.into_iter().map(entry).collect();
        return Reply::of(&DatabaseBranches { data: Some(data), ..DatabaseBranches::default() });
    }
    let branch = noted(call, input.branch).ok_or_else(|| {
        ToolError::arguments("`branch` is missing: which branch to make, promote or discard")
    })?;
    let (action, snapshot) = match input.action.as_str() {
        "create" => {
            db.create_branch(&branch).await?;
            ("created", None)
        }
        "promote" => ("promoted", db.promote_branch(&branch, input.force).await?),
        "discard" => {
            db.discard_branch(&branch, input.force).await?;
            ("discarded", None)
        }
        _ => return Err(ToolError::arguments("`action` must be create, promote, discard or list")),
    };
    let (branch, action) = (Some(branch), Some(action.to_owned()));
    Reply::of(&DatabaseBranches { data: None, branch, action, snapshot })
}

fn noted(call: &Call<'_>, branch: Option<String>) -> Option<String> {
    if let Some(branch) = &branch {
        call.note("branch", one_line(branch, 80));
    }
    branch
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
        owner: call.caller.owner.clone(),
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
