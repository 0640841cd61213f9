//! What SQLite's update hook saw while a statement ran.
//!
//! It counts and judges nothing. The hook does not see WITHOUT ROWID tables, nor the rows that REPLACE
//! deletes (<https://sqlite.org/c3ref/update_hook.html>).

use rusqlite::Connection;
use rusqlite::hooks::Action;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// Ranges of new rowids kept per table; beyond them an update counts as one of an old row.
const MAX_RANGES: usize = 100_000;

/// Changes of one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows inserted.
    pub inserts: u64,
    /// Rows updated.
    pub updates: u64,
    /// Inserts and updates among them of a rowid that was inserted before, within the same statement.
    pub again: u64,
    /// Rows deleted.
    pub deletes: u64,
}

/// Changes since the last reset.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// Per table, by its stored name.
    tables: HashMap<String, Table>,
    total: u64,
}

#[derive(Default)]
struct Table {
    tally: Tally,
    /// Rowids inserted, as ranges from first to last.
    new: BTreeMap<i64, i64>,
}

impl Tally {
    /// Inserts and updates, each new row counted once.
    #[must_use]
    pub fn first_time(&self) -> u64 {
        (self.inserts + self.updates).saturating_sub(self.again)
    }
}

impl Seen {
    /// Sets the hook.
    ///
    /// # Errors
    /// What rusqlite reports for a connection it does not own.
    pub fn install(&self, conn: &mut Connection) -> rusqlite::Result<()> {
        let seen = self.clone();
        conn.update_hook(Some(move |action: Action, _: &str, table: &str, rowid: i64| {
            seen.0.lock().unwrap_or_else(PoisonError::into_inner).note(action, table, rowid);
        }))
    }

    /// Forgets everything.
    pub fn reset(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Inner::default();
    }

    /// Changes of a table, whose name is matched without regard to ASCII case.
    #[must_use]
    pub fn of(&self, table: &str) -> Tally {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let any_case =
            || inner.tables.iter().find(|(name, _)| name.eq_ignore_ascii_case(table)).map(|(_, t)| t);
        inner.tables.get(table).or_else(any_case).map(|table| table.tally).unwrap_or_default()
    }

    /// Every table that had changes, with them.
    #[must_use]
    pub fn all(&self) -> Vec<(String, Tally)> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.tables.iter().map(|(name, table)| (name.clone(), table.tally)).collect()
    }

    /// Changes of all tables.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).total
    }
}

impl Inner {
    fn note(&mut self, action: Action, table: &str, rowid: i64) {
        self.total += 1;
        let table = match self.tables.get_mut(table) {
            Some(found) => found,
            None => self.tables.entry(table.to_owned()).or_default(),
        };
        match action {
            Action::SQLITE_INSERT => {
                table.tally.inserts += 1;
                table.tally.again += u64::from(!table.add(rowid));
            }
            Action::SQLITE_UPDATE => {
                table.tally.updates += 1;
                table.tally.again += u64::from(table.holds(rowid));
            }
            _ => table.tally.deletes += 1,
        }
    }
}

impl Table {
    fn holds(&self, rowid: i64) -> bool {
        self.new.range(..=rowid).next_back().is_some_and(|(_, last)| rowid <= *last)
    }

    /// Whether it was not in.
    fn add(&mut self, rowid: i64) -> bool {
        if let Some((_, last)) = self.new.range_mut(..=rowid).next_back() {
            if rowid <= *last {
                return false;
            }
            if last.checked_add(1) == Some(rowid) {
                *last = rowid;
                return true;
            }
        }
        if self.new.len() < MAX_RANGES {
            self.new.insert(rowid, rowid);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_of_a_row_that_is_new_is_told_from_one_of_an_old_row() {
        let mut conn = Connection::open_in_memory().unwrap();
        let seen = Seen::default();
        seen.install(&mut conn).unwrap();
        conn.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, n); INSERT INTO t VALUES (1, 0), (5, 0)")
            .unwrap();
        seen.reset();
        conn.execute_batch(
            "INSERT INTO t VALUES (7, 0), (8, 0), (3, 0); REPLACE INTO t VALUES (8, 2); UPDATE t SET n = 1 WHERE id IN (1, 3, 8); DELETE FROM t WHERE id = 5",
        )
        .unwrap();
        let expected = Tally { inserts: 4, updates: 3, again: 3, deletes: 1 };
        assert_eq!(seen.of("T"), expected);
        assert_eq!(seen.total(), 8);
        seen.reset();
        assert_eq!(seen.of("t"), Tally::default());
    }
}
