//! Makes the server's tables in a file that lacks them, and takes over a file of the Python server.
//!
//! It touches nothing else in the file, and nothing at all in a file that is complete: a second start
//! writes no byte.

use crate::chain;
use crate::error::StartError;
use crate::sqlite::diagnose;
use crate::sqlite::tables::{self, Missing, SchemaFault, TRIGGERS};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::Path;

/// Makes what is missing, in one transaction.
///
/// # Errors
/// Exit status 1: an object under one of the server's names is not the server's, or SQLite cannot
/// write. The file is then as it was.
pub fn bootstrap(connection: &mut Connection, path: &Path) -> Result<(), StartError> {
    let missing = tables::missing(connection).map_err(|fault| start_error(path, fault))?;
    if missing.is_nothing() {
        return Ok(());
    }
    connection.authorizer(Some(only_our_own)).map_err(|error| diagnose::sqlite_error(path, &error))?;
    let made = make(connection);
    let lifted = connection.authorizer(None::<fn(AuthContext<'_>) -> Authorization>);
    let dropped = made.map_err(|fault| start_error(path, fault))?;
    lifted.map_err(|error| diagnose::sqlite_error(path, &error))?;
    for trigger in dropped {
        tracing::warn!("the trigger `{trigger}` was missing and was made again: somebody has dropped it");
    }
    Ok(())
}

fn make(connection: &mut Connection) -> Result<Vec<&'static str>, SchemaFault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another server may have been faster: look again under the lock.
    let missing = tables::missing(&transaction)?;
    if missing.checkpoint_hash {
        take_over_checkpoints(&transaction, &missing)?;
    }
    for object in &missing.objects {
        transaction.execute_batch(object.sql)?;
    }
    transaction.commit()?;
    Ok(missing.dropped)
}

/// Adds `hash` to the Python server's checkpoints and fills it for the rows that are there.
fn take_over_checkpoints(transaction: &Transaction<'_>, missing: &Missing) -> Result<(), SchemaFault> {
    let no_update = TRIGGERS.iter().flatten().find(|trigger| trigger.name == "memory_checkpoints_no_update");
    let no_update = no_update.filter(|trigger| !missing.objects.contains(trigger));
    if no_update.is_some() {
        transaction.execute_batch("DROP TRIGGER memory_checkpoints_no_update")?;
    }
    transaction.execute_batch("ALTER TABLE memory_checkpoints ADD COLUMN hash TEXT")?;
    let mut update = transaction.prepare("UPDATE memory_checkpoints SET hash = ?2 WHERE id = ?1")?;
    for (id, hash) in checkpoint_hashes(transaction)? {
        update.execute((id, hash))?;
    }
    if let Some(trigger) = no_update {
        transaction.execute_batch(trigger.sql)?;
    }
    Ok(())
}

/// The hash of each checkpoint in the file. A row that is no checkpoint (NULL, a blob, invalid UTF-8)
/// gets none, which verification reports.
fn checkpoint_hashes(transaction: &Transaction<'_>) -> rusqlite::Result<Vec<(i64, String)>> {
    let mut statement = transaction.prepare(
        "SELECT id, ts, session, summary, last_event_id, head_hash FROM memory_checkpoints ORDER BY id",
    )?;
    let mut rows = statement.query([])?;
    let mut hashes: Vec<(i64, String)> = Vec::new();
    while let Some(row) = rows.next()? {
        let text = |column: usize| row.get_ref(column).ok().and_then(|value| value.as_str().ok());
        let id = row.get::<_, i64>(0)?;
        let last_event_id = row.get_ref(4)?.as_i64().ok();
        let previous = hashes.last().map_or(chain::GENESIS, |(_, hash)| hash.as_str());
        match (text(1), text(2), text(3), last_event_id, text(5)) {
            (Some(ts), Some(session), Some(summary), Some(last_event_id), Some(head_hash)) => {
                let hash =
                    chain::checkpoint_hash(id, ts, session, summary, last_event_id, head_hash, previous);
                hashes.push((id, hash));
            }
            _ => tracing::warn!("checkpoint {id} is malformed and gets no hash"),
        }
    }
    Ok(hashes)
}

/// What making the tables needs and no more. Nothing may run through a trigger or a view of the file.
pub(super) fn only_our_own(context: AuthContext<'_>) -> Authorization {
    let table =
        |name: &str| tables::TABLES.contains(&name) || matches!(name, "sqlite_master" | "sqlite_schema");
    let allowed = context.accessor.is_none()
        && match context.action {
            AuthAction::Select | AuthAction::Transaction { .. } => true,
            // ALTER TABLE edits the stored text with these.
            AuthAction::Function { function_name } => {
                matches!(function_name, "count" | "printf" | "substr" | "length")
                    || function_name.starts_with("sqlite_")
            }
            AuthAction::Pragma { pragma_name, .. } => matches!(pragma_name, "table_xinfo" | "index_xinfo"),
            AuthAction::Insert { table_name } | AuthAction::Delete { table_name } => {
                matches!(table_name, "sqlite_master" | "sqlite_schema")
            }
            AuthAction::Read { table_name, .. } => table(table_name) || table_name == "query_errors",
            AuthAction::Update { table_name, .. } => table(table_name),
            AuthAction::CreateTable { table_name } | AuthAction::AlterTable { table_name, .. } => {
                table(table_name)
            }
            AuthAction::CreateIndex { table_name, .. }
            | AuthAction::CreateTrigger { table_name, .. }
            | AuthAction::DropTrigger { table_name, .. } => table(table_name),
            AuthAction::CreateView { view_name } => view_name == "query_errors",
            AuthAction::Reindex { .. } => true,
            _ => false,
        };
    if allowed { Authorization::Allow } else { Authorization::Deny }
}

fn start_error(path: &Path, fault: SchemaFault) -> StartError {
    match fault {
        SchemaFault::Sqlite(error) => diagnose::sqlite_error(path, &error),
        SchemaFault::Foreign(what) => StartError::failure(format!(
            "the database `{}` cannot be served: {what}; drop or rename it, or serve another file",
            path.display()
        )),
    }
}
