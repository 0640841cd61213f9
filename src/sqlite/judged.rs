//! An accepted statement: what is remembered of it, and what may turn up while it runs.
//!
//! It holds no connection. That nothing was accepted that should not be is `policy::decide`'s to see to.

use super::objects::Catalog;
use crate::policy::decide::{self, Facts, ObjectKind, Objects};
use crate::policy::{Action, ActionKind, Bounds, ConnectionKind, Policy, Refusal};
use std::collections::HashSet;
use std::sync::Arc;

/// An accepted statement, as remembered for the next time.
#[derive(Debug)]
pub struct Judged {
    /// What it does.
    pub facts: Facts,
    /// `sqlite3_stmt_readonly`.
    pub readonly: bool,
    /// EXPLAIN or EXPLAIN QUERY PLAN: nothing of it is carried out.
    pub explain: bool,
    /// Names in `main` at the time; none when nobody had to know them.
    pub catalog: Option<Arc<Catalog>>,
    pub(super) policy: &'static Policy,
    /// All that the authorizer reported; nothing else may turn up while it runs.
    pub(super) approved: HashSet<Action>,
}

impl Judged {
    /// Whether an action that turns up while the statement runs is part of what was accepted: the
    /// statement compiled again, or SQL of a virtual table about its own tables. Agent SQL cannot get
    /// here; SQLite's defensive mode keeps it off shadow tables in any case.
    pub(super) fn while_running(&self, bounds: &Bounds, action: &Action) -> Result<(), Refusal> {
        // After ANALYZE, CREATE and their like SQLite reads the statistics anew for itself; for PRAGMA
        // integrity_check virtual tables read all of theirs, and show nothing of it.
        let statistics = self.facts.structural.is_some() && decide::is_statistics(&action.object);
        let checked =
            self.checks_integrity() && !matches!(action.kind, ActionKind::Pragma | ActionKind::Function);
        if !(statistics || checked) {
            decide::at_once(self.policy, bounds, action)?;
        }
        let reads = matches!(
            action.kind,
            ActionKind::Select
                | ActionKind::Read
                | ActionKind::Function
                | ActionKind::Recursive
                | ActionKind::Pragma
        );
        if reads || self.approved.contains(action) {
            return Ok(());
        }
        let row_write = decide::is_row_write(action.kind);
        if self.policy.connection == ConnectionKind::ReadOnly && row_write {
            // rtree prepares its writes when it connects; the connection cannot carry them out.
            return Ok(());
        }
        // A module's own SQL comes through no trigger.
        if action.accessor.is_none() && (self.is_own_shadow(action) || self.is_bookkeeping(action)) {
            return Ok(());
        }
        Err(Refusal::action(action))
    }

    /// Whether it is PRAGMA integrity_check or quick_check. As table-valued functions they are heard of only
    /// while a statement runs.
    fn checks_integrity(&self) -> bool {
        let checks =
            |name: &str| ["integrity_check", "quick_check"].iter().any(|c| c.eq_ignore_ascii_case(name));
        self.approved.iter().any(|action| action.kind == ActionKind::Pragma && checks(&action.object))
    }

    /// Whether an action that turns up while the audit row is written is a virtual table's own: what it
    /// gathered goes into its tables.
    pub(super) fn while_logging(&self, bounds: &Bounds, action: &Action) -> bool {
        action.accessor.is_none()
            && match action.kind {
                ActionKind::Select | ActionKind::Read | ActionKind::Function | ActionKind::Pragma => {
                    decide::at_once(self.policy, bounds, action).is_ok()
                }
                _ => self.is_own_shadow(action),
            }
    }

    /// Whether rows of this table may be changed or replaced, and not only deleted.
    pub(super) fn may_change(&self, table: &str) -> bool {
        let changes = |action: &Action| {
            matches!(action.kind, ActionKind::Insert | ActionKind::Update)
                && action.object.eq_ignore_ascii_case(table)
        };
        self.approved.iter().any(changes)
    }

    /// SQL of a virtual table about a table it keeps its data in: one that is there, or one that a
    /// CREATE, DROP or ALTER of the virtual table makes, drops or renames.
    fn is_own_shadow(&self, action: &Action) -> bool {
        let kind = |name: &str| self.catalog.as_ref().and_then(|catalog| catalog.kind(name));
        if decide::is_row_write(action.kind) && kind(&action.object) == Some(ObjectKind::Shadow) {
            return true;
        }
        // FTS3 and FTS4 send themselves a command, `flush`, when a savepoint begins.
        if action.kind == ActionKind::Insert
            && kind(&action.object) == Some(ObjectKind::Virtual)
            && self.facts.written.contains(&action.object)
        {
            return true;
        }
        let Some((done, table)) = &self.facts.structural else { return false };
        let on_virtual = match done {
            ActionKind::CreateVtable | ActionKind::DropVtable => true,
            ActionKind::AlterTable => kind(table) == Some(ObjectKind::Virtual),
            _ => false,
        };
        // For an index and a trigger the table stands in the detail; ALTER TABLE has the database there.
        let name = match action.kind {
            ActionKind::CreateIndex | ActionKind::DropIndex => action.detail.as_deref().unwrap_or_default(),
            ActionKind::CreateTrigger | ActionKind::DropTrigger => return false,
            _ => &action.object,
        };
        on_virtual && is_shadow_name(name, table)
    }

    /// The schema table's and ANALYZE's rows while a structural statement runs.
    fn is_bookkeeping(&self, action: &Action) -> bool {
        self.facts.structural.is_some()
            && decide::is_row_write(action.kind)
            && (decide::is_schema_table(&action.object)
                || decide::is_statistics(&action.object)
                || action.object.eq_ignore_ascii_case("sqlite_sequence"))
    }
}

/// Whether `name` is one of the tables that a virtual table `table` of a module that a policy can name
/// may keep (<https://sqlite.org/fts5.html#fts5_data_structures>, <https://sqlite.org/fts3.html#data_structures>,
/// <https://sqlite.org/rtree.html>): `docs_data` for `docs`, never `query_log` for `query`.
fn is_shadow_name(name: &str, table: &str) -> bool {
    const ENDINGS: &[&str] = &[
        "config", "content", "data", "docsize", "idx", "node", "parent", "rowid", "segdir", "segments",
        "stat",
    ];
    let start = name.get(..table.len()).is_some_and(|start| start.eq_ignore_ascii_case(table));
    let ending = name.get(table.len()..).and_then(|rest| rest.strip_prefix('_')).unwrap_or_default();
    start && ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending))
}
