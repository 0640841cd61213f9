//! Tools that an overlay made of SQL: one statement, whose parameters are the tool's arguments.
//!
//! They go the way of read_query and write_query: the same policies, caps and log rows. The statement is the
//! overlay's and never changes; arguments are bound to it by name.

use super::{Call, LogKeeper, Reply, query};
use crate::error::ToolError;
use crate::spec::model::{StatementSpec, ToolSpec};
use crate::worker::protocol::{Answer, Work};
use serde_json::{Map, Value};

/// Runs the statement with checked and completed arguments; a parameter that was left out is NULL, a list is
/// its JSON text.
///
/// # Errors
/// As the worker says.
pub async fn run(
    call: &Call<'_>,
    spec: &ToolSpec,
    statement: &StatementSpec,
    mut arguments: Map<String, Value>,
) -> Result<Reply, ToolError> {
    let mut bound = Map::new();
    for param in &spec.params {
        let value = match arguments.remove(&param.name) {
            Some(list @ Value::Array(_)) => Value::String(list.to_string()),
            given => given.unwrap_or(Value::Null),
        };
        bound.insert(param.name.clone(), value);
    }
    let (query, params) = (statement.sql.clone(), (!bound.is_empty()).then_some(Value::Object(bound)));
    if call.policy.policy().writes {
        return query::write(call, query::WriteInput { query, params }).await;
    }
    let settings = call.limits();
    let limit = statement.limit.map_or(settings.default_limit, |limit| limit.min(settings.max_rows));
    query::read_up_to(call, query::ReadInput { query, params, limit }, limit).await
}

impl Call<'_> {
    /// Has a statement compiled under the call's policy; nothing runs.
    ///
    /// # Errors
    /// Whatever is wrong with it, in words.
    pub async fn compile(&self, sql: String) -> Result<Answer, ToolError> {
        if !self.policy.policy().writes {
            return self.read(Work::Compile { sql }).await;
        }
        let turn = match &self.core.store {
            Some(_) => Some(self.turn().await?),
            None => None,
        };
        let attend = LogKeeper { core: self.core, turn: turn.as_ref() };
        let work = Work::Compile { sql };
        self.core.pool.write(work, &self.terms(), &attend).await.map_err(|error| self.explain(error))
    }
}
