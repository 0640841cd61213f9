//! What a structural statement left behind, looked at before it is committed: the authorizer does not
//! tell everything beforehand.
//!
//! It takes back nothing; an error here rolls the transaction back in `write.rs`.

use super::fault::Fault;
use super::objects::{quoted, text, writable_columns};
use super::schema_size;
use super::write::Writer;
use crate::error::ErrorCode;
use crate::policy::{Policy, Refusal};

/// An object of the schema: type, name, table, SQL.
pub(super) type Stored = [String; 4];

impl Writer {
    /// A trigger's body is invisible to the authorizer when it is created, so the statements that would
    /// fire it are compiled now, and what the body does is judged as if an agent had sent it.
    pub(super) fn judge_trigger(&self, policy: &'static Policy, table: &str) -> Result<(), Fault> {
        let conn = self.guarded().trusted();
        let columns = writable_columns(conn, table).map_err(|e| self.guarded().fault(&e))?;
        let name = quoted(table);
        let list = columns.iter().map(|c| quoted(c)).collect::<Vec<_>>().join(", ");
        let sets = columns.iter().map(|c| format!("{0} = {0}", quoted(c))).collect::<Vec<_>>().join(", ");
        for sql in [
            format!("INSERT INTO main.{name} ({list}) SELECT {list} FROM main.{name}"),
            format!("UPDATE main.{name} SET {sets}"),
            format!("DELETE FROM main.{name}"),
        ] {
            match self.guarded().judge_afresh(policy, &sql) {
                // A view without a trigger for this statement cannot be the target of it.
                Err(Fault::Error(error)) if error.message.starts_with("cannot modify") => {}
                Err(fault) => return Err(fault),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Everything in the schema that has one of the server's names or hangs on one of its tables.
    pub(super) fn server_objects(&self) -> Result<Vec<Stored>, Fault> {
        let read = || -> rusqlite::Result<Vec<Stored>> {
            let sql = "SELECT type, name, tbl_name, sql FROM main.sqlite_schema";
            let mut statement = self.guarded().trusted().prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let (name, table) = (text(row, 1)?, text(row, 2)?);
                if self.guarded().protected().owns(&name) || self.guarded().protected().owns(&table) {
                    found.push([text(row, 0)?, name, table, text(row, 3)?]);
                }
            }
            found.sort();
            Ok(found)
        };
        read().map_err(|error| self.guarded().fault(&error))
    }

    /// The authorizer does not tell the new name of ALTER TABLE ... RENAME TO, for one: whatever the
    /// statement was, nothing of the server's may be different afterwards, and nothing may bear its names.
    pub(super) fn check_server_objects(&self, before: &[Stored]) -> Result<(), Fault> {
        let after = self.server_objects()?;
        let differs = |one: &[Stored], other: &[Stored]| {
            one.iter().find(|object| !other.contains(object)).map(|[_, name, ..]| name.clone())
        };
        match differs(&after, before).or_else(|| differs(before, &after)) {
            Some(object) => Err(Refusal::Protected { object }.into()),
            None => Ok(()),
        }
    }

    /// How many bytes the schema takes in memory, for [`Self::check_schema_size`].
    pub(super) fn schema_bytes(&self) -> Result<u64, Fault> {
        schema_size::of_schema(self.guarded().trusted()).map_err(|error| self.guarded().fault(&error))
    }

    /// A schema must not grow beyond what every worker can read.
    pub(super) fn check_schema_size(&self, before: u64) -> Result<(), Fault> {
        let after = self.schema_bytes()?;
        if after <= before.max(schema_size::MOST) {
            return Ok(());
        }
        Err(Fault::error(
            ErrorCode::TooBig,
            format!(
                "the definitions of all tables, views, indexes and triggers together would take about {} MB of memory in each process that opens the file, more than {}; shorten this one, or keep long texts in rows",
                after >> 20,
                schema_size::MOST >> 20
            ),
        ))
    }

    /// `CREATE TRIGGER temp.t AFTER INSERT ON main.x` is reported as a trigger in `main`.
    pub(super) fn check_no_temporary(&self) -> Result<(), Fault> {
        let found = self
            .guarded()
            .trusted()
            .prepare_cached("SELECT name FROM temp.sqlite_schema")
            .and_then(|mut statement| statement.query_map([], |row| text(row, 0))?.next().transpose())
            .map_err(|error| self.guarded().fault(&error))?;
        found.map_or(Ok(()), |object| Err(Refusal::temporary(&object).into()))
    }
}
