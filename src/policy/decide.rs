//! The verdict over one compiled statement: everything the authorizer reported, judged as a whole.
//!
//! Two steps, because SQLite asks while it compiles. [`at_once`] answers for actions that take effect
//! during compilation (pragmas) or are never allowed; [`judge`] looks at the whole set afterwards,
//! before the first step, when it is known whether a write to `sqlite_schema` is the book-keeping of a
//! CREATE or a statement of its own. Nothing here looks at SQL text.

use super::{Action, ActionKind, Bounds, Policy, PragmaForm, Protected, Refusal};
use std::collections::BTreeSet;

/// What kind of object a name stands for, as `PRAGMA table_list` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// An ordinary table.
    Table,
    /// A virtual table.
    Virtual,
    /// A table that a virtual table keeps its data in.
    Shadow,
    /// A view.
    View,
}

/// Answers what a name in `main` stands for; names compare without regard to ASCII case.
pub trait Objects {
    /// The kind of the table or view of this name, if there is one.
    fn kind(&self, name: &str) -> Option<ObjectKind>;
}

/// What an accepted statement does, for those who run it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Tables whose rows it may insert, change or delete, triggers and foreign keys included.
    pub written: BTreeSet<String>,
    /// Those it names itself, not by way of a trigger or view.
    pub direct: BTreeSet<String>,
    /// Tables it inserts into.
    pub inserted: BTreeSet<String>,
    /// Tables it updates.
    pub updated: BTreeSet<String>,
    /// The object of CREATE, ALTER or DROP.
    pub structural: Option<(ActionKind, String)>,
    /// The table of a CREATE TRIGGER.
    pub trigger_on: Option<String>,
    /// It may change or delete rows that are there: UPDATE, upsert or DELETE, directly or by a trigger.
    pub changes_rows: bool,
    /// It is a pragma that the policy lists and nothing more; SQLite does not call every such one read-only.
    pub pragma: bool,
    /// There is nothing for it to do: an IF EXISTS finds nothing, or an IF NOT EXISTS something.
    pub nothing: bool,
    /// It reads the server's log, so gathered audit rows must be written first.
    pub reads_log: bool,
}

/// Whether an action must be stopped while the statement is still being compiled.
///
/// # Errors
/// The refusal: a pragma that the policy does not list in this form, a denied function, or an action
/// that no policy knows; what the user's policy file hides or refuses.
pub fn at_once(policy: &Policy, bounds: &Bounds, action: &Action) -> Result<(), Refusal> {
    bounds.at_once(policy, action)?;
    match action.kind {
        ActionKind::Pragma => pragma(policy, action),
        ActionKind::Function => {
            let name = action.object.to_ascii_lowercase();
            if policy.functions_denied.contains(&name.as_str()) {
                return Err(Refusal::Function { name });
            }
            Ok(())
        }
        ActionKind::Attach
        | ActionKind::Detach
        | ActionKind::Transaction
        | ActionKind::Savepoint
        | ActionKind::Unknown => Err(Refusal::action(action)),
        _ => Ok(()),
    }
}

fn pragma(policy: &Policy, action: &Action) -> Result<(), Refusal> {
    let name = action.object.to_ascii_lowercase();
    let with_value = action.detail.is_some();
    let rule = policy.pragmas.iter().find(|rule| rule.name == name);
    match rule.map(|rule| rule.form) {
        Some(PragmaForm::Introspect) => Ok(()),
        Some(PragmaForm::Read) if !with_value => Ok(()),
        _ => Err(Refusal::Pragma { name, with_value }),
    }
}

/// Judges everything a compiled statement does.
///
/// `readonly` is `sqlite3_stmt_readonly`. The strongest refusal wins: a structural action (DROP TABLE)
/// is named rather than the row operations it brings along.
///
/// # Errors
/// The refusal to show.
pub fn judge(
    policy: &Policy,
    protected: &Protected,
    bounds: &Bounds,
    objects: &dyn Objects,
    actions: &[Action],
    readonly: bool,
) -> Result<Facts, Refusal> {
    if actions.is_empty() {
        return Err(Refusal::Unrecorded);
    }
    for action in actions {
        at_once(policy, bounds, action)?;
        if is_temp(action) {
            return Err(Refusal::action(action));
        }
        protected_verdict(protected, bounds, action)?;
    }
    let structural = main_action(actions);
    // `CREATE TABLE temp.t` is reported as an ordinary one, in the database `temp`.
    if let Some(main) = structural
        && actions.iter().any(is_made_in_temp)
    {
        let kind = temporary_form(main.kind);
        return Err(Refusal::Action { kind, object: main.object.clone(), accessor: None });
    }
    let mut facts = Facts::default();
    if let Some(action) = structural {
        structural_verdict(policy, bounds, objects, action)?;
        facts.structural = Some((action.kind, named_object(actions, action)));
        if action.kind == ActionKind::CreateTrigger {
            facts.trigger_on = action.detail.clone();
        }
    }
    facts.pragma = actions.iter().all(|action| action.kind == ActionKind::Pragma);
    for action in actions {
        if action.kind == ActionKind::Read && is_log(protected, &action.object) {
            facts.reads_log = true;
        }
        if structural.is_some_and(|main| is_bookkeeping(main, action)) {
            continue;
        }
        row_verdict(policy, protected, bounds, objects, action)?;
        note_write(&mut facts, action);
    }
    if !readonly && !facts.pragma && facts.written.is_empty() && facts.structural.is_none() {
        return Err(Refusal::Unrecorded);
    }
    Ok(facts)
}

/// Whether a verdict may be over a statement that has nothing to do. Of such a one SQLite reports nothing, or what
/// it looked up on the way, which would be refused by itself or looks like a CREATE.
#[must_use]
pub fn may_be_idle(verdict: &Result<Facts, Refusal>) -> bool {
    match verdict {
        Ok(facts) => facts.structural.as_ref().is_some_and(|(kind, _)| is_create(*kind)),
        Err(refusal) => matches!(refusal, Refusal::Unrecorded | Refusal::Internal { .. }),
    }
}

fn is_create(kind: ActionKind) -> bool {
    matches!(
        kind,
        ActionKind::CreateTable
            | ActionKind::CreateIndex
            | ActionKind::CreateView
            | ActionKind::CreateTrigger
            | ActionKind::CreateVtable
    )
}

/// The action that says what the statement is. ANALYZE also creates its tables when they lack.
fn main_action(actions: &[Action]) -> Option<&Action> {
    let analyze = actions.iter().find(|action| action.kind == ActionKind::Analyze);
    analyze.or_else(|| actions.iter().find(|action| is_structural(action.kind)))
}

/// The object of the statement; none for an ANALYZE or REINDEX of everything.
fn named_object(actions: &[Action], main: &Action) -> String {
    let of_many = matches!(main.kind, ActionKind::Analyze | ActionKind::Reindex)
        && actions.iter().any(|other| other.kind == main.kind && other.object != main.object);
    if of_many { String::new() } else { main.object.clone() }
}

/// Nothing makes, alters or drops an object of the server's, or one that the user's policy file protects,
/// or something that hangs on one.
fn protected_verdict(protected: &Protected, bounds: &Bounds, action: &Action) -> Result<(), Refusal> {
    if !is_structural(action.kind) || leaves_all(action.kind) {
        return Ok(());
    }
    let names = [Some(action.object.as_str()), action.detail.as_deref()].into_iter().flatten();
    match names.into_iter().find(|name| protected.owns(name)) {
        Some(name) => Err(Refusal::Protected { object: name.to_owned() }),
        None => bounds.protects(action),
    }
}

/// A bare ANALYZE or REINDEX takes every table along and leaves all rows and definitions as they are.
fn leaves_all(kind: ActionKind) -> bool {
    matches!(kind, ActionKind::Analyze | ActionKind::Reindex)
}

fn structural_verdict(
    policy: &Policy,
    bounds: &Bounds,
    objects: &dyn Objects,
    action: &Action,
) -> Result<(), Refusal> {
    bounds.allows(policy, action)?;
    if action.kind == ActionKind::CreateVtable {
        let module = action.detail.as_deref().unwrap_or_default().to_ascii_lowercase();
        if !policy.modules.contains(&module.as_str()) {
            return Err(Refusal::Module { name: module });
        }
    }
    // SQLite itself lets an index or a trigger onto a shadow table.
    let table = match action.kind {
        ActionKind::CreateIndex | ActionKind::CreateTrigger => action.detail.as_deref().unwrap_or_default(),
        _ => action.object.as_str(),
    };
    if !leaves_all(action.kind) && objects.kind(table) == Some(ObjectKind::Shadow) {
        return Err(Refusal::Internal { object: table.to_owned() });
    }
    Ok(())
}

fn row_verdict(
    policy: &Policy,
    protected: &Protected,
    bounds: &Bounds,
    objects: &dyn Objects,
    action: &Action,
) -> Result<(), Refusal> {
    if is_row_write(action.kind) {
        let table = action.object.as_str();
        if protected.owns(table) {
            return Err(Refusal::Protected { object: table.to_owned() });
        }
        if is_statistics(table) {
            return Err(Refusal::Statistics { object: table.to_owned() });
        }
        if is_schema_table(table) || objects.kind(table) == Some(ObjectKind::Shadow) {
            return Err(Refusal::Internal { object: table.to_owned() });
        }
        bounds.protects(action)?;
    }
    bounds.allows(policy, action)
}

fn note_write(facts: &mut Facts, action: &Action) {
    if is_row_write(action.kind) {
        facts.written.insert(action.object.clone());
        if action.accessor.is_none() {
            facts.direct.insert(action.object.clone());
        }
    }
    if action.kind == ActionKind::Update {
        facts.updated.insert(action.object.clone());
    }
    match action.kind {
        ActionKind::Insert => {
            facts.inserted.insert(action.object.clone());
        }
        ActionKind::Update | ActionKind::Delete => facts.changes_rows = true,
        _ => {}
    }
}

/// Insert, update or delete.
#[must_use]
pub fn is_row_write(kind: ActionKind) -> bool {
    matches!(kind, ActionKind::Insert | ActionKind::Update | ActionKind::Delete)
}

/// CREATE, DROP, ALTER, ANALYZE and REINDEX: actions that name what the statement is.
#[must_use]
pub fn is_structural(kind: ActionKind) -> bool {
    matches!(
        kind,
        ActionKind::CreateTable
            | ActionKind::CreateIndex
            | ActionKind::CreateView
            | ActionKind::CreateTrigger
            | ActionKind::CreateVtable
            | ActionKind::DropTable
            | ActionKind::DropIndex
            | ActionKind::DropView
            | ActionKind::DropTrigger
            | ActionKind::DropVtable
            | ActionKind::AlterTable
            | ActionKind::Analyze
            | ActionKind::Reindex
    )
}

fn is_temp(action: &Action) -> bool {
    let kind = action.kind;
    matches!(
        kind,
        ActionKind::CreateTempTable
            | ActionKind::CreateTempIndex
            | ActionKind::CreateTempView
            | ActionKind::CreateTempTrigger
            | ActionKind::DropTempTable
            | ActionKind::DropTempIndex
            | ActionKind::DropTempView
            | ActionKind::DropTempTrigger
    )
}

/// Whether something is made in the database `temp`. ALTER TABLE of an ordinary table updates the schema
/// table there, too, which makes nothing.
fn is_made_in_temp(action: &Action) -> bool {
    action.database.as_deref() == Some("temp")
        && (is_structural(action.kind) || action.kind == ActionKind::Insert)
}

fn temporary_form(kind: ActionKind) -> ActionKind {
    match kind {
        ActionKind::CreateIndex => ActionKind::CreateTempIndex,
        ActionKind::CreateView => ActionKind::CreateTempView,
        ActionKind::CreateTrigger => ActionKind::CreateTempTrigger,
        ActionKind::DropTable | ActionKind::DropVtable => ActionKind::DropTempTable,
        ActionKind::DropIndex => ActionKind::DropTempIndex,
        ActionKind::DropView => ActionKind::DropTempView,
        ActionKind::DropTrigger => ActionKind::DropTempTrigger,
        _ => ActionKind::CreateTempTable,
    }
}

/// The actions that SQLite performs on its own tables while it carries out a structural statement
/// (<https://sqlite.org/c3ref/c_alter_table.html>; which ones, was found by running each statement).
fn is_bookkeeping(main: &Action, action: &Action) -> bool {
    // What comes through a trigger is the trigger's doing.
    if action.accessor.is_some() {
        return false;
    }
    if is_row_write(action.kind) && (is_schema_table(&action.object) || is_statistics(&action.object)) {
        return true;
    }
    match main.kind {
        ActionKind::Analyze => {
            action.kind == ActionKind::Analyze
                || action.kind == ActionKind::CreateTable && is_statistics(&action.object)
        }
        ActionKind::DropTable | ActionKind::DropVtable | ActionKind::DropView => {
            (action.kind == ActionKind::Delete && same(&action.object, &main.object))
                || (is_row_write(action.kind) && same(&action.object, "sqlite_sequence"))
                || matches!(
                    action.kind,
                    ActionKind::DropTable
                        | ActionKind::DropVtable
                        | ActionKind::DropView
                        | ActionKind::DropTrigger
                        | ActionKind::DropIndex
                ) && (same(&action.object, &main.object)
                    || action.detail.as_deref().is_some_and(|t| same(t, &main.object)))
        }
        ActionKind::CreateIndex => {
            action.kind == ActionKind::Reindex
                || action.kind == ActionKind::CreateIndex && same(&action.object, &main.object)
        }
        ActionKind::AlterTable => {
            action.kind == ActionKind::Update && same(&action.object, "sqlite_sequence")
                || matches!(action.kind, ActionKind::AlterTable | ActionKind::Reindex)
        }
        _ => action.kind == main.kind && !is_row_write(action.kind),
    }
}

fn is_log(protected: &Protected, name: &str) -> bool {
    protected.tables.iter().any(|table| same(table, "query_log") && same(table, name))
        || protected.views.iter().any(|view| same(view, name))
}

/// `sqlite_master` and its other names.
#[must_use]
pub fn is_schema_table(name: &str) -> bool {
    ["sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema"]
        .iter()
        .any(|known| same(known, name))
}

/// The tables that ANALYZE keeps (<https://sqlite.org/fileformat2.html#the_sqlite_stat1_table>).
#[must_use]
pub fn is_statistics(name: &str) -> bool {
    name.get(..11).is_some_and(|start| same(start, "sqlite_stat"))
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

impl Protected {
    /// Whether this table, view, trigger or index belongs to the server.
    #[must_use]
    pub fn owns(&self, name: &str) -> bool {
        [self.tables, self.views, self.others].iter().any(|list| list.iter().any(|known| same(known, name)))
    }
}
