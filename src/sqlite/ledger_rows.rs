//! Which log rows are there, asked over the server's own writing connection: one that may write can open a file that
//! a dead process has left half written.
//!
//! It writes nothing itself.

use super::ledger::Ledger;
use super::{diagnose, open};
use crate::error::ToolError;
use rusqlite::OptionalExtension;
use std::time::Duration;

/// Among how many of the newest log rows that of a call is looked for; others write meanwhile.
const NEWEST_ROWS: i64 = 20_000;

impl Ledger {
    /// The newest audit row of a session, 0 if there is none: how one learns whether a write worker
    /// that died had committed.
    ///
    /// # Errors
    /// SQLite's.
    pub fn max_audit_id(&self, session: &str) -> Result<i64, ToolError> {
        self.connection()
            .prepare_cached("SELECT id FROM query_log WHERE session = ?1 ORDER BY id DESC LIMIT 1")
            .and_then(|mut statement| statement.query_row([session], |row| row.get(0)).optional())
            .map(Option::unwrap_or_default)
            .map_err(|error| diagnose::tool_error("the log cannot be read", &error))
    }

    /// Whether a call of a session has its row among the newest: how one learns whether a process that died had
    /// committed. The call's number stands in the row's detail.
    ///
    /// # Errors
    /// SQLite's; then it is not known.
    pub fn has_row_of(&mut self, session: &str, call: u64, wait: Duration) -> Result<bool, ToolError> {
        open::wait_for_locks(self.connection_mut(), wait)
            .and_then(|()| {
                let mut statement = self.connection().prepare_cached(
                    "SELECT detail FROM query_log WHERE id > (SELECT id FROM query_log ORDER BY id DESC LIMIT 1) - ?2 \
                     AND session = ?1 ORDER BY id DESC",
                )?;
                let mut rows = statement.query((session, NEWEST_ROWS))?;
                while let Some(row) = rows.next()? {
                    let detail = row.get_ref(0)?.as_str().unwrap_or_default();
                    let detail: serde_json::Value = serde_json::from_str(detail).unwrap_or_default();
                    if detail.get("call").and_then(serde_json::Value::as_u64) == Some(call) {
                        return Ok(true);
                    }
                }
                Ok(false)
            })
            .map_err(|error| diagnose::tool_error("the log cannot be read", &error))
    }
}
