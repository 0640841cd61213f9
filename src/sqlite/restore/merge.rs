//! The server's tables of the database put in the place of those in a private copy of a snapshot.
//!
//! It touches nothing else in the copy. Of what the copy holds under the server's names nothing is used, and
//! nothing of either file runs: definitions are judged first, and an authorizer allows just what each phase needs.

use super::{UNDONE, choose::Chosen};
use crate::error::{ErrorCode, ToolError};
use crate::sqlite::tables::{self, OBJECTS, SchemaFault, Stored};
use crate::sqlite::{bootstrap, ledger_guard, open};
use rusqlite::hooks::{AuthContext, Authorization};
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, params_from_iter};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// What may happen in the private copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Fixed SQL of our own.
    Trusted,
    /// Making the server's objects.
    Making,
    /// Inserting rows into the server's tables.
    Filling,
}

/// The connection to the private copy.
#[derive(Debug)]
pub(super) struct Private {
    connection: Connection,
    phase: Arc<AtomicU8>,
}

/// While it lives, its phase holds.
#[must_use]
pub(super) struct InPhase<'a>(&'a Private);

impl Drop for InPhase<'_> {
    fn drop(&mut self) {
        self.0.phase.store(Phase::Trusted as u8, Ordering::Relaxed);
    }
}

impl Private {
    pub(super) fn open(path: &Path) -> rusqlite::Result<Self> {
        let mut connection = open::for_merging(path)?;
        let phase = Arc::new(AtomicU8::new(Phase::Trusted as u8));
        let heard = Arc::clone(&phase);
        connection.authorizer(Some(move |context: AuthContext<'_>| match heard.load(Ordering::Relaxed) {
            now if now == Phase::Trusted as u8 => Authorization::Allow,
            now if now == Phase::Making as u8 => bootstrap::only_our_own(context),
            _ => ledger_guard::read_and_insert(context),
        }))?;
        Ok(Self { connection, phase })
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn enter(&self, phase: Phase) -> InPhase<'_> {
        self.phase.store(phase as u8, Ordering::Relaxed);
        InPhase(self)
    }
}

/// The server's objects of a database, judged.
#[derive(Debug)]
pub(super) struct Parts {
    /// Definitions of tables, and of all that goes onto them once they are filled.
    tables: Vec<String>,
    others: Vec<String>,
    /// What the copy has that must go.
    drops: Vec<String>,
}

impl Parts {
    /// Looks at both; changes nothing.
    ///
    /// # Errors
    /// Something under the server's names is not the server's, in either.
    pub(super) fn of(live: &Connection, copy: &Connection, chosen: &Chosen) -> Result<Self, ToolError> {
        let foreign = |whose: String| move |fault| of_fault(&whose, fault);
        let missing = tables::missing(live).map_err(foreign("the database".to_owned()))?;
        tables::missing(copy).map_err(foreign(format!("the snapshot `{}`", chosen.name)))?;
        if missing.checkpoint_hash {
            return Err(ToolError::new(
                ErrorCode::Refused,
                format!("{UNDONE}: the database is another server's; serve it once, then restore"),
            ));
        }
        let stored = tables::stored_objects(live).map_err(|error| super::failed(&error))?;
        let is_table = |object: &&Stored| object.kind == "table";
        let definition = |object: &Stored| object.sql.clone();
        let mut tables: Vec<String> = stored.iter().filter(is_table).filter_map(definition).collect();
        let mut others: Vec<String> =
            stored.iter().filter(|object| !is_table(object)).filter_map(definition).collect();
        // Somebody dropped them while the server ran.
        for object in missing.objects {
            let list = if object.kind == "table" { &mut tables } else { &mut others };
            list.push(object.sql.to_owned());
        }
        let theirs = tables::stored_objects(copy).map_err(|error| chosen.unusable(&error))?;
        let drops = OBJECTS
            .iter()
            .filter(|object| matches!(object.kind, "table" | "view"))
            .filter(|object| theirs.iter().any(|their| their.name == object.name))
            .map(|object| format!("DROP {} main.{}", object.kind, object.name))
            .collect();
        Ok(Self { tables, others, drops })
    }

    /// Puts them into the copy with the rows of the database, within the transaction that is open.
    ///
    /// # Errors
    /// SQLite's; the copy is spoilt then.
    pub(super) fn bring(&self, live: &Connection, copy: &Private) -> rusqlite::Result<()> {
        for sql in &self.drops {
            run(copy.connection(), sql)?;
        }
        {
            let _making = copy.enter(Phase::Making);
            self.tables.iter().try_for_each(|sql| run(copy.connection(), sql))?;
        }
        {
            let _filling = copy.enter(Phase::Filling);
            tables::TABLES.iter().try_for_each(|table| copy_rows(live, copy.connection(), table))?;
        }
        let _making = copy.enter(Phase::Making);
        self.others.iter().try_for_each(|sql| run(copy.connection(), sql))
    }
}

/// One statement; what may stand behind it in a stored definition is not looked at.
fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare(sql)?.raw_execute().map(|_| ())
}

fn copy_rows(live: &Connection, copy: &Connection, table: &str) -> rusqlite::Result<()> {
    let mut select = live.prepare(&format!("SELECT * FROM main.{table} ORDER BY id"))?;
    let columns = select.column_count();
    let places = vec!["?"; columns].join(", ");
    let mut insert = copy.prepare(&format!("INSERT INTO main.{table} VALUES ({places})"))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let values = (0..columns).map(|column| row.get_ref(column).map(ToSqlOutput::Borrowed));
        insert.execute(params_from_iter(values.collect::<rusqlite::Result<Vec<_>>>()?))?;
    }
    Ok(())
}

fn of_fault(whose: &str, fault: SchemaFault) -> ToolError {
    match fault {
        SchemaFault::Sqlite(error) => super::failed(&error),
        SchemaFault::Foreign(what) => ToolError::new(
            ErrorCode::Refused,
            format!("{UNDONE}: in {whose}, {what}; a person must look at it"),
        ),
    }
}
