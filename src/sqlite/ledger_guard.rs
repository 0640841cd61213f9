//! What the server's own writing connection may do, as its authorizer sees it: read and insert in the three tables,
//! and, while a trim says so and no longer, take rows out of one of them.
//!
//! It runs nothing.

use super::tables;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// What the connection is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Events, checkpoints, log rows.
    Usual,
    /// The trigger against deleting from the log is dropped, or made again.
    Trigger,
    /// Rows of the log are deleted.
    Rows,
}

/// The authorizer; clones share the phase.
#[derive(Clone, Debug)]
pub(super) struct Gate(Arc<AtomicU8>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(AtomicU8::new(Phase::Usual as u8)))
    }
}

impl Gate {
    /// Runs something in a phase. Afterwards it is as usual again, whatever happens.
    pub(super) fn during<T>(&self, phase: Phase, work: impl FnOnce() -> T) -> T {
        struct Back<'a>(&'a AtomicU8);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                self.0.store(Phase::Usual as u8, Ordering::Relaxed);
            }
        }
        self.0.store(phase as u8, Ordering::Relaxed);
        let _back = Back(&self.0);
        work()
    }

    pub(super) fn answer(&self, context: AuthContext<'_>) -> Authorization {
        let allowed = match self.0.load(Ordering::Relaxed) {
            phase if phase == Phase::Trigger as u8 => is_of_the_trigger(&context),
            phase if phase == Phase::Rows as u8 => is_of_the_rows(&context),
            _ => return read_and_insert(context),
        };
        if allowed { Authorization::Allow } else { Authorization::Deny }
    }
}

/// Dropping and making `query_log_no_delete`, which edits the schema's table, and nothing else.
fn is_of_the_trigger(context: &AuthContext<'_>) -> bool {
    let schema = |table: &str| matches!(table, "sqlite_master" | "sqlite_schema");
    context.accessor.is_none()
        && match context.action {
            AuthAction::Select => true,
            AuthAction::DropTrigger { trigger_name, table_name }
            | AuthAction::CreateTrigger { trigger_name, table_name } => {
                trigger_name == "query_log_no_delete" && table_name == "query_log"
            }
            AuthAction::Read { table_name, .. }
            | AuthAction::Insert { table_name }
            | AuthAction::Delete { table_name } => schema(table_name),
            _ => false,
        }
}

/// Deleting from the log, through no trigger.
fn is_of_the_rows(context: &AuthContext<'_>) -> bool {
    context.accessor.is_none()
        && match context.action {
            AuthAction::Select => true,
            AuthAction::Read { table_name, .. } | AuthAction::Delete { table_name } => {
                table_name == "query_log"
            }
            _ => false,
        }
}

/// What a write worker may do while it inserts the audit row: the same, and look through a table whose
/// deferred foreign key points at the log; the worker enforces foreign keys.
pub(super) fn may_write_audit(context: &AuthContext<'_>) -> Authorization {
    match (context.accessor, context.action) {
        (None, AuthAction::Read { .. }) => Authorization::Allow,
        _ => read_and_insert(*context),
    }
}

/// Reading and inserting, in the server's tables. Through a trigger only reading, and only through the
/// server's own.
pub(super) fn read_and_insert(context: AuthContext<'_>) -> Authorization {
    let ours = |table: &str| tables::TABLES.iter().any(|name| name.eq_ignore_ascii_case(table));
    let allowed = match (context.accessor, context.action) {
        (_, AuthAction::Select) => true,
        (None, AuthAction::Read { table_name, .. } | AuthAction::Insert { table_name }) => ours(table_name),
        (None, AuthAction::Transaction { .. } | AuthAction::Savepoint { .. }) => true,
        (None, AuthAction::Pragma { pragma_name, .. }) => {
            matches!(pragma_name, "synchronous" | "data_version")
        }
        (Some(trigger), AuthAction::Read { table_name, .. }) => {
            ours(table_name) && tables::TRIGGERS.iter().flatten().any(|object| object.name == trigger)
        }
        _ => false,
    };
    if allowed { Authorization::Allow } else { Authorization::Deny }
}
