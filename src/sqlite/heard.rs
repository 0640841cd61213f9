//! What SQLite's authorizer says, in the policy's words.
//!
//! It translates and judges nothing.

use crate::policy::{Action, ActionKind};
use rusqlite::hooks::{AuthAction, AuthContext};

/// An authorizer call as an action (<https://sqlite.org/c3ref/c_alter_table.html>). What this program
/// does not know is [`ActionKind::Unknown`], which no policy allows.
pub(super) fn action_of(context: &AuthContext<'_>) -> Action {
    let text = |value: &str| Some(value.to_owned());
    let (kind, object, detail) = match context.action {
        AuthAction::CreateIndex { index_name, table_name } => {
            (ActionKind::CreateIndex, index_name, text(table_name))
        }
        AuthAction::CreateTable { table_name } => (ActionKind::CreateTable, table_name, None),
        AuthAction::CreateTempIndex { index_name, table_name } => {
            (ActionKind::CreateTempIndex, index_name, text(table_name))
        }
        AuthAction::CreateTempTable { table_name } => (ActionKind::CreateTempTable, table_name, None),
        AuthAction::CreateTempTrigger { trigger_name, table_name } => {
            (ActionKind::CreateTempTrigger, trigger_name, text(table_name))
        }
        AuthAction::CreateTempView { view_name } => (ActionKind::CreateTempView, view_name, None),
        AuthAction::CreateTrigger { trigger_name, table_name } => {
            (ActionKind::CreateTrigger, trigger_name, text(table_name))
        }
        AuthAction::CreateView { view_name } => (ActionKind::CreateView, view_name, None),
        AuthAction::Delete { table_name } => (ActionKind::Delete, table_name, None),
        AuthAction::DropIndex { index_name, table_name } => {
            (ActionKind::DropIndex, index_name, text(table_name))
        }
        AuthAction::DropTable { table_name } => (ActionKind::DropTable, table_name, None),
        AuthAction::DropTempIndex { index_name, table_name } => {
            (ActionKind::DropTempIndex, index_name, text(table_name))
        }
        AuthAction::DropTempTable { table_name } => (ActionKind::DropTempTable, table_name, None),
        AuthAction::DropTempTrigger { trigger_name, table_name } => {
            (ActionKind::DropTempTrigger, trigger_name, text(table_name))
        }
        AuthAction::DropTempView { view_name } => (ActionKind::DropTempView, view_name, None),
        AuthAction::DropTrigger { trigger_name, table_name } => {
            (ActionKind::DropTrigger, trigger_name, text(table_name))
        }
        AuthAction::DropView { view_name } => (ActionKind::DropView, view_name, None),
        AuthAction::Insert { table_name } => (ActionKind::Insert, table_name, None),
        AuthAction::Pragma { pragma_name, pragma_value } => {
            (ActionKind::Pragma, pragma_name, pragma_value.map(str::to_owned))
        }
        AuthAction::Read { table_name, column_name } => (ActionKind::Read, table_name, text(column_name)),
        AuthAction::Select => (ActionKind::Select, "", None),
        AuthAction::Transaction { .. } => (ActionKind::Transaction, "", None),
        AuthAction::Update { table_name, column_name } => (ActionKind::Update, table_name, text(column_name)),
        AuthAction::Attach { filename } => (ActionKind::Attach, filename, None),
        AuthAction::Detach { database_name } => (ActionKind::Detach, database_name, None),
        // The fourth argument of ALTER TABLE is the table; it is what policies and messages name.
        AuthAction::AlterTable { database_name, table_name } => {
            (ActionKind::AlterTable, table_name, text(database_name))
        }
        AuthAction::Reindex { index_name } => (ActionKind::Reindex, index_name, None),
        AuthAction::Analyze { table_name } => (ActionKind::Analyze, table_name, None),
        AuthAction::CreateVtable { table_name, module_name } => {
            (ActionKind::CreateVtable, table_name, text(module_name))
        }
        AuthAction::DropVtable { table_name, module_name } => {
            (ActionKind::DropVtable, table_name, text(module_name))
        }
        AuthAction::Function { function_name } => (ActionKind::Function, function_name, None),
        AuthAction::Savepoint { savepoint_name, .. } => (ActionKind::Savepoint, savepoint_name, None),
        AuthAction::Recursive => (ActionKind::Recursive, "", None),
        _ => (ActionKind::Unknown, "", None),
    };
    Action {
        kind,
        object: object.to_owned(),
        detail,
        database: context.database_name.map(str::to_owned),
        accessor: context.accessor.map(str::to_owned),
    }
}
