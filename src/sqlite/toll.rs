//! What a statement takes: rows removed, changed and added per table, counted while it runs in a
//! transaction that may be rolled back.
//!
//! removed = rows before + inserts − rows after, where SQLite's update hook tells the inserts: this
//! catches what the hook does not, the rows that REPLACE deletes and DELETE without WHERE
//! (<https://sqlite.org/c3ref/update_hook.html>). The hook does not see WITHOUT ROWID tables; there the
//! row counts from before and after stand, and what `total_changes` has beyond them counts as changed.
//! It runs nothing, begins nothing and rolls nothing back: `write` does.

use super::fault::Fault;
use super::judged::Judged;
use super::objects::{Catalog, quoted};
use super::seen::{Seen, Tally};
use crate::policy::ActionKind;
use crate::policy::decide::{ObjectKind, Objects};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a statement takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toll {
    /// For DROP, ALTER, CREATE TRIGGER and their like: what is done to what.
    pub structural: Option<(ActionKind, String)>,
    /// The tables it touches, by name; the table of a structural statement even if no row is touched.
    pub tables: Vec<TableToll>,
    /// Rows changed in several WITHOUT ROWID tables, where nothing tells in which.
    pub elsewhere: u64,
}

/// What it takes of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableToll {
    /// Its name.
    pub name: String,
    /// Rows before; none where they were not counted.
    pub rows: Option<u64>,
    /// Rows that are gone afterwards; a row that REPLACE replaces is one, and one added.
    pub removed: u64,
    /// Rows updated.
    pub changed: u64,
    /// Rows inserted.
    pub added: u64,
}

impl Toll {
    /// What a consent holds for, as text: equal texts, equal tolls. How many rows a table has besides
    /// counts only where the statement is about the whole table.
    #[must_use]
    pub fn terms(&self) -> String {
        let mut terms = self.clone();
        if terms.structural.is_none() {
            terms.tables.iter_mut().for_each(|table| table.rows = None);
        }
        format!("{terms:?}")
    }
}

impl TableToll {
    fn touches(&self) -> bool {
        self.removed + self.changed + self.added > 0
    }
}

/// What a person has agreed that a change may take.
#[derive(Clone, Copy, Debug)]
pub enum Agreed<'a> {
    /// Anything: nobody was to be asked.
    Anything,
    /// Nothing yet: the change is a trial, and ends with what it would take.
    Nothing,
    /// This.
    To(&'a Toll),
}

impl Agreed<'_> {
    /// The rows before, where they are to be counted.
    ///
    /// # Errors
    /// What SQLite reports, the watch's interrupt among it.
    pub(super) fn before(self, conn: &Connection, judged: &Judged) -> rusqlite::Result<Option<Before>> {
        match self {
            Self::Anything => Ok(None),
            Self::Nothing | Self::To(_) => Before::of(conn, judged).map(Some),
        }
    }

    /// Whether the statement may be committed that took this.
    ///
    /// # Errors
    /// It takes something else than was agreed to.
    pub(super) fn holds_for(self, toll: Toll) -> Result<(), Fault> {
        match self {
            Self::Anything => Ok(()),
            Self::To(agreed) if agreed.terms() == toll.terms() => Ok(()),
            Self::Nothing | Self::To(_) => Err(Fault::OtherToll(Box::new(toll))),
        }
    }
}

/// The rows of the tables that a statement may write, before it does.
pub(super) struct Before {
    tables: BTreeMap<String, Counted>,
    structural: Option<(ActionKind, String)>,
}

struct Counted {
    kind: ObjectKind,
    rowless: bool,
    may_change: bool,
    rows: i64,
}

/// What the connection reports of one run.
pub(super) struct Ran<'a> {
    /// Δ total_changes.
    pub(super) total: u64,
    /// changes().
    pub(super) changes: u64,
    /// What the hook saw.
    pub(super) seen: &'a Seen,
}

impl Before {
    /// Counts the rows.
    ///
    /// # Errors
    /// What SQLite reports, the watch's interrupt among it.
    fn of(conn: &Connection, judged: &Judged) -> rusqlite::Result<Self> {
        let facts = &judged.facts;
        let named = facts.structural.iter().map(|(_, object)| object).chain(&facts.trigger_on);
        let mut tables = BTreeMap::new();
        for name in facts.written.iter().chain(named) {
            let Some((kind, rowless)) = judged.catalog.as_ref().and_then(|catalog| stored(catalog, name))
            else {
                continue;
            };
            let rows = rows_of(conn, name, kind)?.unwrap_or(0);
            tables.insert(name.clone(), Counted { kind, rowless, may_change: judged.may_change(name), rows });
        }
        Ok(Self { tables, structural: facts.structural.clone() })
    }

    /// What the statement that ran in between took.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub(super) fn toll(&self, conn: &Connection, ran: &Ran<'_>) -> rusqlite::Result<Toll> {
        let mut toll = Toll { structural: self.structural.clone(), ..Toll::default() };
        let hooked = ran.seen.all();
        // Of total_changes, what no rowid table explains.
        let mut unseen = to_i64(ran.total);
        let mut rowless = Vec::new();
        for (name, counted) in &self.tables {
            let after = self.rows_after(conn, name, counted)?;
            let delta = after - counted.rows;
            let mut table = TableToll {
                name: name.clone(),
                rows: u64::try_from(counted.rows).ok(),
                ..TableToll::default()
            };
            let tally =
                hooked.iter().find(|(seen, _)| seen.eq_ignore_ascii_case(name)).map(|(_, tally)| *tally);
            let Tally { inserts, updates, deletes, .. } = tally.unwrap_or_default();
            if counted.kind == ObjectKind::Virtual || counted.rowless {
                table.removed = to_u64(-delta);
                table.added = to_u64(delta);
                if counted.rowless {
                    unseen -= delta.abs();
                    if counted.may_change {
                        rowless.push(toll.tables.len());
                    }
                } else if self.tables.len() == 1 {
                    table.changed = ran.changes.saturating_sub(delta.unsigned_abs());
                }
            } else {
                table.removed = to_u64(to_i64(inserts) - delta);
                (table.changed, table.added) = (updates, inserts);
                // DELETE without WHERE: the hook hears nothing, total_changes has it.
                let cleared = inserts + updates + deletes == 0;
                unseen -= if cleared { to_i64(table.removed) } else { to_i64(inserts + updates + deletes) };
            }
            toll.tables.push(table);
        }
        for (name, Tally { inserts, updates, deletes, .. }) in hooked {
            let known = self.tables.keys().any(|known| known.eq_ignore_ascii_case(&name));
            let of_sqlite = name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("sqlite_"));
            if known || of_sqlite || self.keeps(&name) {
                continue;
            }
            unseen -= to_i64(inserts + updates + deletes);
            toll.tables.push(TableToll {
                name,
                rows: None,
                removed: deletes,
                changed: updates,
                added: inserts,
            });
        }
        self.spread(&mut toll, &rowless, unseen);
        let subject = self.structural.as_ref().map(|(_, object)| object.as_str());
        toll.tables.retain(|table| table.touches() || Some(table.name.as_str()) == subject);
        toll.tables.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(toll)
    }

    /// Puts the changes that only total_changes knows where they belong. Virtual tables write tables of
    /// their own, so beside one of them nothing can be said.
    fn spread(&self, toll: &mut Toll, rowless: &[usize], unseen: i64) {
        if self.tables.values().any(|table| table.kind == ObjectKind::Virtual) || self.structural.is_some() {
            return;
        }
        match rowless {
            [] => {}
            [only] => {
                if let Some(table) = toll.tables.get_mut(*only) {
                    table.changed = to_u64(unseen);
                }
            }
            _ => toll.elsewhere = to_u64(unseen),
        }
    }

    fn rows_after(&self, conn: &Connection, name: &str, counted: &Counted) -> rusqlite::Result<i64> {
        match &self.structural {
            Some((ActionKind::DropTable | ActionKind::DropVtable, object)) if object == name => Ok(0),
            // It may bear another name now; its rows are the same.
            Some((_, object)) if object == name => Ok(counted.rows),
            _ => Ok(rows_of(conn, name, counted.kind)?.unwrap_or(counted.rows)),
        }
    }

    /// Whether a virtual table among those written may keep its data in this table.
    fn keeps(&self, name: &str) -> bool {
        let of = |table: &String| {
            name.get(..table.len()).is_some_and(|start| start.eq_ignore_ascii_case(table))
                && name.get(table.len()..).is_some_and(|rest| rest.starts_with('_'))
        };
        self.tables.iter().any(|(table, counted)| counted.kind == ObjectKind::Virtual && of(table))
    }
}

/// The kind of a table with rows of its own, and whether it was made WITHOUT ROWID.
fn stored(catalog: &Catalog, name: &str) -> Option<(ObjectKind, bool)> {
    let kind = catalog.kind(name)?;
    let rows = matches!(kind, ObjectKind::Table | ObjectKind::Virtual);
    rows.then(|| (kind, catalog.without_rowid(name)))
}

/// The rows of a table; none where a virtual table cannot tell.
fn rows_of(conn: &Connection, table: &str, kind: ObjectKind) -> rusqlite::Result<Option<i64>> {
    let count = conn.query_row(&format!("SELECT count(*) FROM main.{}", quoted(table)), [], |row| row.get(0));
    match count {
        Ok(rows) => Ok(Some(rows)),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) => {
            Err(error)
        }
        Err(_) if kind == ObjectKind::Virtual => Ok(None),
        Err(error) => Err(error),
    }
}

fn to_i64(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn to_u64(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
