//! What the user's policy file says of a restore: no way round it.
//!
//! A restore can do whatever a statement can: bring rows back and take rows away, drop a table, bring a column back
//! under a name that nobody hides. So what the file protects or hides must be in the snapshot as it is in the
//! database, and a kind of change that it refuses must not come about. It changes nothing, and knows no reason to
//! allow anything; a person at the command line is bound by no file.

use super::{UNDONE, choose::Chosen, failed};
use crate::error::{ErrorCode, ToolError};
use crate::generated::{ACTION_WORDS, POLICIES, PolicyId};
use crate::policy::decide::{ObjectKind, Objects};
use crate::policy::narrowing::HiddenPattern;
use crate::policy::{ActionKind, Narrowing};
use crate::sqlite::introspect::{columns, rowid_alias};
use crate::sqlite::objects::{Catalog, quoted};
use crate::sqlite::{stored_sql, tables};
use rusqlite::Connection;
use std::collections::BTreeMap;

/// Whether the snapshot may be restored under the file.
///
/// # Errors
/// `REFUSED`, with what stands in the way; SQLite's.
pub(super) fn check(
    narrowing: &Narrowing,
    live: &Connection,
    copy: &Connection,
    chosen: &Chosen,
) -> Result<(), ToolError> {
    if *narrowing == Narrowing::default() {
        return Ok(());
    }
    let live = Side::read(live).map_err(|error| failed(&error))?;
    let copy = Side::read(copy).map_err(|error| chosen.unusable(&error))?;
    let why = changes_rows(narrowing)
        .or_else(|| structure(narrowing, &live, &copy))
        .or_else(|| protected(narrowing, &live, &copy))
        .or_else(|| narrowing.hidden.iter().find_map(|pattern| hidden(pattern, &live, &copy)));
    why.map_or(Ok(()), |why| {
        Err(ToolError::new(
            ErrorCode::Refused,
            format!(
                "{UNDONE}: {why}; a person can restore `{}` with `indelible snapshots restore`",
                chosen.name
            ),
        ))
    })
}

/// Which rows a restore changes is known only when it is done.
fn changes_rows(narrowing: &Narrowing) -> Option<String> {
    let kinds = [ActionKind::Insert, ActionKind::Update, ActionKind::Delete];
    kinds
        .into_iter()
        .find(|kind| refuses(narrowing, *kind))
        .map(|kind| refused(kind, "a restore may do that"))
}

fn structure(narrowing: &Narrowing, live: &Side<'_>, copy: &Side<'_>) -> Option<String> {
    live.objects.iter().chain(&copy.objects).find_map(|(key, object)| {
        let kinds = match (live.objects.get(key), copy.objects.get(key)) {
            (Some(here), None) => vec![here.dropped()],
            (None, Some(there)) => vec![there.made()],
            (Some(here), Some(there)) if here.sql == there.sql => Vec::new(),
            (Some(here), Some(there)) if here.kind == "table" && there.kind == "table" => {
                vec![ActionKind::AlterTable, here.dropped(), there.made()]
            }
            (Some(here), Some(there)) => vec![here.dropped(), there.made()],
            (None, None) => Vec::new(),
        };
        let kind = kinds.into_iter().find(|kind| refuses(narrowing, *kind))?;
        Some(refused(kind, &format!("restoring would do that to `{}`", shown(&object.name))))
    })
}

fn protected(narrowing: &Narrowing, live: &Side<'_>, copy: &Side<'_>) -> Option<String> {
    let is_protected =
        |object: &&Object| narrowing.protects(&object.name) || narrowing.protects(&object.table);
    let differs = live.differing(copy, is_protected)?;
    Some(format!("`{differs}` is protected by this server's policy, and is not the same in the snapshot"))
}

fn hidden(pattern: &HiddenPattern, live: &Side<'_>, copy: &Side<'_>) -> Option<String> {
    let matches = |object: &&Object| object.is_table() && pattern.table.matches(&object.name);
    if pattern.columns.is_empty() {
        let differs = live.differing(copy, matches)?;
        return Some(format!(
            "`{differs}` is hidden by this server's policy, and is not the same in the snapshot"
        ));
    }
    for object in live.objects.values().filter(matches) {
        let names = live.columns(&object.name);
        let holds = names.iter().any(|name| pattern.columns.iter().any(|column| column.matches(name)));
        let same = copy.objects.get(&object.key()).is_some_and(|there| there.sql == object.sql);
        if holds && !same {
            let name = shown(&object.name);
            return Some(format!(
                "this server's policy hides columns of `{name}`, and that table has another definition in the snapshot"
            ));
        }
    }
    // Under another name it would come back for everybody to see.
    let there: Vec<String> =
        copy.objects.values().filter(matches).flat_map(|object| copy.columns(&object.name)).collect();
    let lost = pattern.columns.iter().find(|column| !there.iter().any(|name| column.matches(name)))?;
    Some(format!(
        "this server's policy hides `{}.{}`, and the snapshot has no such column, so it may have it under another name",
        pattern.table.as_str(),
        lost.as_str()
    ))
}

/// Whether a statement behind a snapshot may not do this, or none at all.
fn refuses(narrowing: &Narrowing, kind: ActionKind) -> bool {
    let allowing: Vec<_> = POLICIES.iter().filter(|policy| policy.actions.contains(&kind)).collect();
    let nowhere = !allowing.is_empty() && allowing.iter().all(|policy| narrowing.refuses(policy.id, kind));
    nowhere || narrowing.refuses(PolicyId::Destroy.id(), kind)
}

fn refused(kind: ActionKind, why: &str) -> String {
    let label =
        ACTION_WORDS.iter().find(|words| words.kind == kind).map_or("this change", |words| words.label);
    format!("{label} is refused by this server's policy, and {why}")
}

fn shown(name: &str) -> String {
    crate::render::one_line(name, 100)
}

/// A table, index, view or trigger of the user's.
#[derive(Debug)]
struct Object {
    kind: String,
    name: String,
    /// The table that it belongs to.
    table: String,
    sql: Option<String>,
}

impl Object {
    fn key(&self) -> Key {
        (self.kind == "trigger", self.name.to_ascii_lowercase())
    }

    fn is_table(&self) -> bool {
        matches!(self.kind.as_str(), "table" | "view")
    }

    fn is_virtual(&self) -> bool {
        let words = stored_sql::words(self.sql.as_deref().unwrap_or_default());
        words.get(1).is_some_and(|word| word == "virtual")
    }

    fn made(&self) -> ActionKind {
        match self.kind.as_str() {
            "index" => ActionKind::CreateIndex,
            "view" => ActionKind::CreateView,
            "trigger" => ActionKind::CreateTrigger,
            _ if self.is_virtual() => ActionKind::CreateVtable,
            _ => ActionKind::CreateTable,
        }
    }

    fn dropped(&self) -> ActionKind {
        match self.kind.as_str() {
            "index" => ActionKind::DropIndex,
            "view" => ActionKind::DropView,
            "trigger" => ActionKind::DropTrigger,
            _ if self.is_virtual() => ActionKind::DropVtable,
            _ => ActionKind::DropTable,
        }
    }
}

/// Whether it is a trigger, and the name in lower case: triggers have a space of names to themselves.
type Key = (bool, String);

/// The user's part of the database or of the snapshot.
#[derive(Debug)]
struct Side<'c> {
    connection: &'c Connection,
    objects: BTreeMap<Key, Object>,
    catalog: Catalog,
}

impl<'c> Side<'c> {
    fn read(connection: &'c Connection) -> rusqlite::Result<Self> {
        let sql = "SELECT type, name, tbl_name, sql FROM main.sqlite_schema
                   WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut objects = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let text = |column| crate::sqlite::objects::text(row, column);
            let sql = Some(text(3)?).filter(|sql| !sql.is_empty());
            let object = Object { kind: text(0)?, name: text(1)?, table: text(2)?, sql };
            if tables::ours(&object.name).is_none() && !tables::is_our_table_or_view(&object.table) {
                objects.insert(object.key(), object);
            }
        }
        Ok(Self { connection, objects, catalog: Catalog::read(connection)? })
    }

    fn columns(&self, table: &str) -> Vec<String> {
        // A view that does not compile and a module that is not there have none to show.
        let found = columns(self.connection, table).unwrap_or_default();
        found.into_iter().map(|column| column.name).collect()
    }

    /// Of the objects of both sides that are chosen, one that differs, in its definition or its rows.
    fn differing(&self, copy: &Side<'_>, is_chosen: impl Fn(&&Object) -> bool) -> Option<String> {
        let both = self.objects.values().chain(copy.objects.values());
        both.filter(|object| is_chosen(object)).find_map(|object| {
            let sides = (self.objects.get(&object.key()), copy.objects.get(&object.key()));
            let (Some(here), Some(there)) = sides else { return Some(shown(&object.name)) };
            let same = here.kind == there.kind && here.sql == there.sql && self.same_rows(copy, here);
            (!same).then(|| shown(&object.name))
        })
    }

    /// Whether a table has the same rows on both sides; what cannot be compared differs.
    fn same_rows(&self, copy: &Side<'_>, object: &Object) -> bool {
        match self.catalog.kind(&object.name) {
            _ if object.kind != "table" => true,
            Some(ObjectKind::Virtual) => {
                let mut names = self.shadows(&object.name);
                names.extend(copy.shadows(&object.name));
                names.iter().all(|name| {
                    let kind = |side: &Side<'_>| side.catalog.kind(name) == Some(ObjectKind::Shadow);
                    kind(self) && kind(copy) && self.same_rows_of(copy, name).unwrap_or(false)
                })
            }
            Some(_) => self.same_rows_of(copy, &object.name).unwrap_or(false),
            None => false,
        }
    }

    /// The tables that a virtual table keeps its data in.
    fn shadows(&self, name: &str) -> Vec<String> {
        let start = format!("{}_", name.to_ascii_lowercase());
        let is_shadow = |name: &&String| self.catalog.kind(name) == Some(ObjectKind::Shadow);
        let names = self.objects.keys().filter(|(trigger, _)| !trigger).map(|(_, name)| name);
        names.filter(|name| name.starts_with(&start)).filter(is_shadow).cloned().collect()
    }

    /// In the order of the table itself, which both have, with the rowid and without what is computed.
    fn same_rows_of(&self, copy: &Side<'_>, name: &str) -> rusqlite::Result<bool> {
        let found = columns(self.connection, name)?;
        let rowid = if self.catalog.without_rowid(name) { None } else { rowid_alias(&found) };
        let stored = found.iter().filter(|column| column.hidden == 0).map(|column| quoted(&column.name));
        let names: Vec<String> = rowid.map(str::to_owned).into_iter().chain(stored).collect();
        let sql = format!("SELECT {} FROM main.{} NOT INDEXED", names.join(", "), quoted(name));
        let (mut here, mut there) = (self.connection.prepare(&sql)?, copy.connection.prepare(&sql)?);
        let (mut here, mut there) = (here.query([])?, there.query([])?);
        loop {
            match (here.next()?, there.next()?) {
                (None, None) => return Ok(true),
                (Some(one), Some(other)) => {
                    for column in 0..names.len() {
                        if one.get_ref(column)? != other.get_ref(column)? {
                            return Ok(false);
                        }
                    }
                }
                _ => return Ok(false),
            }
        }
    }
}
