//! Counts the rows that a statement overwrote.
//!
//! overwritten = Δ total_changes − Δ row counts over the ordinary tables it writes: UPDATE, upsert,
//! REPLACE and triggers count, new rows do not (REPLACE's own deletions are not in total_changes,
//! <https://sqlite.org/c3ref/total_changes.html>, but they are missing from the row count). Where
//! virtual tables are written too, total_changes also counts what they do to their own tables; then
//! SQLite's update hook tells the changes of each ordinary table apart, and a virtual table the
//! statement names counts by changes(). The counts from before come from a second connection, which
//! still sees the committed state.

use super::guard::Guarded;
use super::objects::{Catalog, quoted};
use crate::policy::decide::{Facts, ObjectKind, Objects};
use rusqlite::hooks::Action as Hooked;
use rusqlite::{Connection, OpenFlags};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// What the update hook saw since the last reset: per lower-case table, inserts, updates and deletes.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<HashMap<String, (u64, u64, u64)>>>);

impl Seen {
    /// Sets the hook (<https://sqlite.org/c3ref/update_hook.html>: rowid tables only).
    ///
    /// # Errors
    /// What rusqlite reports for a connection it does not own.
    pub fn install(&self, conn: &mut Connection) -> rusqlite::Result<()> {
        let seen = self.clone();
        conn.update_hook(Some(move |action: Hooked, _: &str, table: &str, _: i64| {
            let mut map = seen.0.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = map.entry(table.to_ascii_lowercase()).or_default();
            match action {
                Hooked::SQLITE_INSERT => entry.0 += 1,
                Hooked::SQLITE_UPDATE => entry.1 += 1,
                _ => entry.2 += 1,
            }
        }))
    }

    /// Forgets everything.
    pub fn reset(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Inserts and updates of a table.
    #[must_use]
    pub fn of(&self, table: &str) -> (u64, u64) {
        let map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (inserts, updates, _) = map.get(&table.to_ascii_lowercase()).copied().unwrap_or_default();
        (inserts, updates)
    }

    /// Inserts, updates and deletes of every table that had any.
    #[must_use]
    pub fn all(&self) -> Vec<(String, (u64, u64, u64))> {
        let map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        map.iter().map(|(table, tally)| (table.clone(), *tally)).collect()
    }
}

/// Row counts per table name.
pub type Counts = HashMap<String, i64>;

/// The tables to count and how.
pub struct Scope {
    ordinary: Vec<String>,
    virtuals: Vec<String>,
    rowless: bool,
    unique_indexes: i64,
}

impl Scope {
    /// The scope of an accepted statement.
    ///
    /// # Errors
    /// What SQLite reports while it looks at the indexes.
    pub fn of(guarded: &Guarded, facts: &Facts, catalog: &Catalog) -> rusqlite::Result<Self> {
        let (mut ordinary, mut virtuals) = (Vec::new(), Vec::new());
        let (mut unique_indexes, mut rowless) = (0, false);
        for table in &facts.written {
            match catalog.kind(table) {
                Some(ObjectKind::Table) => {
                    unique_indexes = unique_indexes.max(unique_index_count(guarded.trusted(), table)?);
                    rowless |= catalog.without_rowid(table);
                    ordinary.push(table.clone());
                }
                Some(ObjectKind::Virtual) => virtuals.push(table.clone()),
                _ => {}
            }
        }
        Ok(Self { ordinary, virtuals, rowless, unique_indexes })
    }

    /// Whether so many changes can have overwritten more than `cap` rows at all.
    #[must_use]
    pub fn worth_counting(&self, total_changes: u64, cap: u64) -> bool {
        let each = 1 + self.unique_indexes.unsigned_abs();
        total_changes.saturating_mul(each) > cap
    }

    /// Rows of each table now.
    ///
    /// # Errors
    /// What SQLite reports; `SQLITE_BUSY` where a rollback-mode writer has spilled its cache.
    pub fn count(&self, conn: &Connection) -> rusqlite::Result<Counts> {
        self.ordinary
            .iter()
            .chain(&self.virtuals)
            .map(|table| {
                let sql = format!("SELECT count(*) FROM main.{}", quoted(table));
                Ok((table.clone(), conn.query_row(&sql, [], |row| row.get(0))?))
            })
            .collect()
    }

    /// Rows that were overwritten.
    #[must_use]
    pub fn overwritten(
        &self,
        before: &Counts,
        after: &Counts,
        total_changes: u64,
        changes: u64,
        seen: &Seen,
    ) -> u64 {
        let delta = |table: &String| {
            let get = |counts: &Counts| counts.get(table).copied().unwrap_or_default();
            get(after) - get(before)
        };
        if self.virtuals.is_empty() {
            let new: i64 = self.ordinary.iter().map(delta).sum();
            return over(total_changes, new);
        }
        let direct: i64 = self.virtuals.iter().map(delta).sum();
        if self.ordinary.is_empty() {
            return over(changes, direct);
        }
        if self.rowless {
            // The hook does not see WITHOUT ROWID tables: count high rather than low.
            return over(total_changes, self.ordinary.iter().map(delta).sum());
        }
        self.ordinary
            .iter()
            .map(|table| {
                let (inserts, updates) = seen.of(table);
                over(inserts + updates, delta(table))
            })
            .sum()
    }
}

/// Changes less new rows; fewer rows than before count as overwritten too.
fn over(changes: u64, new_rows: i64) -> u64 {
    let changes = i64::try_from(changes).unwrap_or(i64::MAX);
    u64::try_from(changes.saturating_sub(new_rows)).unwrap_or(0)
}

fn unique_index_count(conn: &Connection, table: &str) -> rusqlite::Result<i64> {
    conn.query_row("SELECT count(*) FROM pragma_index_list(?1) WHERE \"unique\"", [table], |row| row.get(0))
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
