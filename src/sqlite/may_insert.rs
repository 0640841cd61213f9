//! What SQLite may do while the server's own rows are written: whatever somebody hung on their tables makes the insert
//! fail instead of running.
//!
//! It decides per action that the authorizer reports and remembers nothing.

use crate::sqlite::tables;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

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
