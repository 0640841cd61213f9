//! Counts the rows that a statement overwrote.
//!
//! overwritten = Δ total_changes − Δ row counts over the ordinary tables it writes: UPDATE, upsert,
//! REPLACE and triggers count, new rows do not (REPLACE's own deletions are not in total_changes,
//! <https://sqlite.org/c3ref/total_changes.html>, but they are missing from the row count). Where the
//! update hook (`seen`) has seen every change, an update of a row that the statement itself put in is
//! left out, too: triggers do that to fill columns. What virtual tables do to their own tables is in total_changes as well; the hook tells
//! it apart, and a virtual table's rows are counted in the one of its tables that has a row for each.
//! The counts from before come from a second connection, which still sees the committed state.

use super::guard::Guarded;
use super::objects::{Catalog, quoted};
use super::seen::Seen;
use crate::policy::decide::{Facts, ObjectKind, Objects};
use rusqlite::{Connection, OpenFlags};
use std::collections::HashMap;
use std::path::Path;

/// Row counts per table name.
pub type Counts = HashMap<String, i64>;

/// The tables to count and how.
pub struct Scope {
    ordinary: Vec<Ordinary>,
    virtuals: Vec<Virtual>,
    unique_indexes: u64,
}

struct Ordinary {
    name: String,
    /// WITHOUT ROWID: the hook does not see it.
    rowless: bool,
}

struct Virtual {
    /// The table of its own that has one row for each of its rows, and which of its kinds it is.
    ledger: Option<(String, Ledger)>,
    /// The statement names it itself; otherwise triggers write it.
    direct: bool,
    /// It is updated, not only inserted into.
    updated: bool,
}

/// Where a virtual table's rows can be counted, and what a write there means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ledger {
    /// FTS: the rows themselves.
    Content,
    /// FTS without content of its own: an index of rows that are elsewhere.
    Sizes,
    /// rtree: rows that move between nodes are written there as well.
    Nodes,
}

impl Virtual {
    fn of(table: &str, facts: &Facts, catalog: &Catalog) -> Self {
        let ledger = [("content", Ledger::Content), ("docsize", Ledger::Sizes), ("rowid", Ledger::Nodes)]
            .into_iter()
            .map(|(ending, kind)| (format!("{table}_{ending}"), kind))
            .find(|(name, _)| catalog.kind(name) == Some(ObjectKind::Shadow));
        Self { ledger, direct: facts.direct.contains(table), updated: facts.updated.contains(table) }
    }
}

/// What one run of a statement came to.
#[derive(Clone, Copy)]
pub struct Ran<'a> {
    /// Δ total_changes.
    pub total: u64,
    /// changes().
    pub changes: u64,
    /// What the hook saw.
    pub seen: &'a Seen,
    /// Whether the program holds a REPLACE into a virtual table.
    pub replaces_virtual: bool,
}

impl Scope {
    /// The scope of an accepted statement.
    ///
    /// # Errors
    /// What SQLite reports while it looks at the indexes.
    pub fn of(guarded: &Guarded, facts: &Facts, catalog: &Catalog) -> rusqlite::Result<Self> {
        let mut scope = Self { ordinary: Vec::new(), virtuals: Vec::new(), unique_indexes: 0 };
        for table in &facts.written {
            match catalog.entry(table) {
                Some(entry) if entry.kind == ObjectKind::Table => {
                    let unique = unique_index_count(guarded.trusted(), table)?;
                    scope.unique_indexes = scope.unique_indexes.max(unique);
                    scope.ordinary.push(Ordinary { name: table.clone(), rowless: entry.without_rowid });
                }
                Some(entry) if entry.kind == ObjectKind::Virtual => {
                    scope.virtuals.push(Virtual::of(table, facts, catalog));
                }
                _ => {}
            }
        }
        Ok(scope)
    }

    /// Whether so many changes can have overwritten more than `cap` rows at all: a row that changes can
    /// take the place of others, one by its rowid and one by each unique index.
    #[must_use]
    pub fn worth_counting(&self, total_changes: u64, cap: u64) -> bool {
        total_changes.saturating_mul(2 + self.unique_indexes) > cap
    }

    /// Whether it matters if the statement replaces rows of a virtual table.
    #[must_use]
    pub fn asks_for_replaces(&self) -> bool {
        let nodes = |table: &Virtual| matches!(table.ledger, Some((_, Ledger::Nodes)));
        self.virtuals.iter().any(|table| nodes(table) && !table.direct && !table.updated)
    }

    /// Rows of each table now.
    ///
    /// # Errors
    /// What SQLite reports; `SQLITE_BUSY` where a rollback-mode writer has spilled its cache.
    pub fn count(&self, conn: &Connection) -> rusqlite::Result<Counts> {
        let ordinary = self.ordinary.iter().map(|table| &table.name);
        let ledgers = self.virtuals.iter().filter_map(|table| table.ledger.as_ref().map(|(name, _)| name));
        ordinary
            .chain(ledgers)
            .map(|table| {
                let sql = format!("SELECT count(*) FROM main.{}", quoted(table));
                Ok((table.clone(), conn.query_row(&sql, [], |row| row.get(0))?))
            })
            .collect()
    }

    /// Rows that were overwritten.
    #[must_use]
    pub fn overwritten(&self, before: &Counts, after: &Counts, ran: Ran<'_>) -> u64 {
        let delta = |table: &str| {
            let get = |counts: &Counts| counts.get(table).copied().unwrap_or_default();
            get(after) - get(before)
        };
        let by_hook = |table: &Ordinary| over(ran.seen.of(&table.name).first_time(), delta(&table.name));
        let seen = ran.seen.total();
        if self.virtuals.is_empty() {
            if seen == ran.total {
                return self.ordinary.iter().map(by_hook).sum();
            }
            return over(ran.total, self.ordinary.iter().map(|table| delta(&table.name)).sum());
        }
        let (rowless, rowed): (Vec<_>, Vec<_>) = self.ordinary.iter().partition(|table| table.rowless);
        // What the hook did not see belongs to WITHOUT ROWID tables, a virtual table's own among them:
        // this counts high rather than low.
        let unseen = ran.total.saturating_sub(seen);
        let of_rowless = match rowless.is_empty() {
            true => 0,
            false => over(unseen, rowless.iter().map(|table| delta(&table.name)).sum()),
        };
        let of_rowed: u64 = rowed.into_iter().map(by_hook).sum();
        let of_virtual: u64 = self.virtuals.iter().map(|table| table.overwritten(&delta, ran)).sum();
        of_rowless + of_rowed + of_virtual
    }
}

impl Virtual {
    fn overwritten(&self, delta: &dyn Fn(&str) -> i64, ran: Ran<'_>) -> u64 {
        let Some((ledger, kind)) = &self.ledger else {
            // Nothing tells its rows. What only inserts cannot overwrite one.
            return match (self.updated, self.direct) {
                (false, _) => 0,
                (true, true) => ran.changes,
                (true, false) => ran.total,
            };
        };
        let written = over(ran.seen.of(ledger).first_time(), delta(ledger));
        match (self.direct, kind) {
            // A command may write every row anew: that is one change.
            (true, Ledger::Content | Ledger::Sizes) => written.min(ran.changes),
            (true, Ledger::Nodes) => over(ran.changes, delta(ledger)),
            (false, Ledger::Content) => written,
            (false, Ledger::Sizes) if self.updated => written,
            (false, Ledger::Nodes) if self.updated || ran.replaces_virtual => written,
            // Triggers that keep an index up with rows that are counted where they are.
            (false, Ledger::Sizes | Ledger::Nodes) => 0,
        }
    }
}

/// Changes less new rows; fewer rows than before count as overwritten too.
fn over(changes: u64, new_rows: i64) -> u64 {
    let changes = i64::try_from(changes).unwrap_or(i64::MAX);
    u64::try_from(changes.saturating_sub(new_rows)).unwrap_or(0)
}

fn unique_index_count(conn: &Connection, table: &str) -> rusqlite::Result<u64> {
    let mut statement = conn.prepare_cached(&format!("PRAGMA main.index_list({})", quoted(table)))?;
    let mut rows = statement.query([])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += u64::from(row.get::<_, bool>(2)?);
    }
    Ok(count)
}

/// A connection that reads the committed state beside a writer, without waiting for anybody.
///
/// # Errors
/// What SQLite reports when the file cannot be opened.
pub fn committed_view(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    conn.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    conn.busy_timeout(std::time::Duration::ZERO)?;
    Ok(conn)
}
