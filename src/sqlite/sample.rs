//! Rows of a table or view to look at: the first ones, or some at random.
//!
//! Random rows are not found by sorting: a rowid table is asked for single rows at random places; of
//! anything else a reservoir is kept over the first rows (Vitter's algorithm R). Names are resolved
//! against the schema, and only real names get into SQL.

use super::fault::Fault;
use super::guard::Guarded;
use super::introspect::{columns, rowid_alias};
use super::names::{find_table, real_name, table_names, unknown_table};
use super::objects::{Catalog, quoted};
use super::query::cell_of;
use super::shown::{rowid_is_hidden, shown, shown_columns};
use crate::policy::Policy;
use crate::policy::decide::{ObjectKind, Objects};
use crate::render::{Caps, DatumRows, DatumSink, Flow};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Rows of a table without a rowid that a random sample is drawn from, at most.
pub const RESERVOIR_ROWS: u64 = 100_000;

/// What to sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The table or view.
    pub table: String,
    /// Columns; empty for all.
    pub columns: Vec<String>,
    /// Rows at most.
    pub limit: u64,
    /// Whether they are drawn at random.
    pub random: bool,
    /// Caps of the result.
    pub caps: Caps,
}

/// Draws the sample.
///
/// # Errors
/// Unknown table or column, stops, SQLite's errors.
pub fn run(
    guarded: &Guarded,
    policy: &'static Policy,
    sample: &Sample,
    before_log: &mut dyn FnMut(),
) -> Result<DatumRows, Fault> {
    let source = Source::of(guarded, sample)?;
    // Judged as agent SQL is: a view may hold anything, and hidden things stay hidden.
    let compiled = guarded.compile(policy, &source.select(""))?;
    if compiled.judged.facts.reads_log {
        before_log();
    }
    let running = guarded.enter(&compiled.judged);
    let mut sink = DatumSink::new(source.columns.clone(), sample.caps);
    let conn = guarded.trusted();
    let drawn = match (&source.rowid, sample.random) {
        (_, false) => source.first(conn, sample.limit, &mut sink),
        (Some(rowid), true) => source.at_random_places(conn, rowid, sample.limit, &mut sink),
        (None, true) => source.reservoir(conn, sample.limit, &mut sink),
    };
    let more_rows = drawn.map_err(|error| guarded.fault(&error))?;
    drop(running);
    Ok(sink.finish(more_rows))
}

struct Source {
    table: String,
    columns: Vec<String>,
    rowid: Option<&'static str>,
}

impl Source {
    fn of(guarded: &Guarded, sample: &Sample) -> Result<Self, Fault> {
        let (found, names, catalog) = guarded.in_read(|conn| {
            let catalog = Catalog::read(conn)?;
            let found = match find_table(&catalog, &sample.table) {
                Some((name, _)) => Some((columns(conn, &name)?, name)),
                None => None,
            };
            let names = if found.is_none() { table_names(&catalog) } else { Vec::new() };
            Ok((found, names, catalog))
        })?;
        let bounds = guarded.bounds()?;
        let hidden = &bounds.hidden;
        let Some((all, table)) = found else {
            return Err(unknown_table(&sample.table, &shown(hidden, names)));
        };
        hidden.must_show(&table)?;
        for name in &sample.columns {
            hidden.must_show_column(&table, name)?;
        }
        let columns = shown_columns(hidden, &table, all.clone());
        let visible: Vec<_> = columns.iter().filter(|column| column.hidden != 1).collect();
        let chosen = if sample.columns.is_empty() {
            visible.iter().map(|column| column.name.clone()).collect()
        } else {
            sample.columns.iter().map(|name| real_name(&visible, &table, name)).collect::<Result<_, _>>()?
        };
        let has_rowid = catalog.kind(&table) == Some(ObjectKind::Table) && !catalog.without_rowid(&table);
        let rowid_shown = has_rowid && !rowid_is_hidden(hidden, &table, &all);
        let rowid = if rowid_shown { rowid_alias(&columns) } else { None };
        Ok(Self { table, columns: chosen, rowid })
    }

    fn select(&self, rest: &str) -> String {
        let columns = self.columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        format!("SELECT {columns} FROM main.{}{rest}", quoted(&self.table))
    }

    /// The first rows; true if more exist.
    fn first(&self, conn: &Connection, limit: u64, sink: &mut DatumSink) -> rusqlite::Result<bool> {
        let mut statement = conn.prepare_cached(&self.select(""))?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            if sink.rows() >= limit {
                return Ok(true);
            }
            if push(row, self.columns.len(), sink)? == Flow::Full {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Rows at or behind random rowids, each once. A row behind a gap is likelier than others.
    fn at_random_places(
        &self,
        conn: &Connection,
        rowid: &str,
        limit: u64,
        sink: &mut DatumSink,
    ) -> rusqlite::Result<bool> {
        let table = quoted(&self.table);
        let range = format!("SELECT min({rowid}), max({rowid}) FROM main.{table}");
        let (least, greatest): (Option<i64>, Option<i64>) =
            conn.prepare_cached(&range)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (Some(least), Some(greatest)) = (least, greatest) else { return Ok(false) };
        let near = format!("SELECT {rowid} FROM main.{table} WHERE {rowid} >= ?1 ORDER BY {rowid} LIMIT 1");
        let mut near = conn.prepare_cached(&near)?;
        let mut row_at = conn.prepare_cached(&self.select(&format!(" WHERE {rowid} = ?1")))?;
        let span = u128::from(greatest.abs_diff(least)) + 1;
        let mut drawn = BTreeSet::new();
        for _ in 0..limit.saturating_mul(4) {
            if u64::try_from(drawn.len()).unwrap_or(u64::MAX) >= limit {
                break;
            }
            let offset = u128::from(random(conn)?) % span;
            let place = i128::from(least) + i128::try_from(offset).unwrap_or(0);
            let place = i64::try_from(place).unwrap_or(greatest);
            drawn.insert(near.query_row([place], |row| row.get::<_, i64>(0))?);
        }
        // A small table: what is missing is filled up from its start.
        if u64::try_from(drawn.len()).unwrap_or(u64::MAX) < limit {
            let fill = format!(
                "SELECT {rowid} FROM main.{table} ORDER BY {rowid} LIMIT {}",
                limit.saturating_mul(5)
            );
            let mut fill = conn.prepare(&fill)?;
            let mut rows = fill.query([])?;
            while let Some(row) = rows.next()? {
                if u64::try_from(drawn.len()).unwrap_or(u64::MAX) >= limit {
                    break;
                }
                drawn.insert(row.get(0)?);
            }
        }
        for rowid in drawn {
            let mut rows = row_at.query([rowid])?;
            if let Some(row) = rows.next()?
                && push(row, self.columns.len(), sink)? == Flow::Full
            {
                break;
            }
        }
        Ok(false)
    }

    /// A reservoir over the first rows, by their place.
    fn reservoir(&self, conn: &Connection, limit: u64, sink: &mut DatumSink) -> rusqlite::Result<bool> {
        let mut chosen: Vec<u64> = Vec::new();
        let count = format!(
            "SELECT count(*) FROM (SELECT 1 FROM main.{} LIMIT {RESERVOIR_ROWS})",
            quoted(&self.table)
        );
        let count = conn.prepare(&count)?.query_row([], |row| row.get::<_, i64>(0))?.unsigned_abs();
        for place in 0..count {
            if place < limit {
                chosen.push(place);
                continue;
            }
            let at = random(conn)? % (place + 1);
            if let Some(slot) = usize::try_from(at).ok().and_then(|at| chosen.get_mut(at)) {
                *slot = place;
            }
        }
        let chosen: BTreeSet<u64> = chosen.into_iter().collect();
        let mut statement = conn.prepare_cached(&self.select(""))?;
        let mut rows = statement.raw_query();
        let mut place = 0;
        while let Some(row) = rows.next()? {
            if place >= count {
                break;
            }
            if chosen.contains(&place) && push(row, self.columns.len(), sink)? == Flow::Full {
                break;
            }
            place += 1;
        }
        Ok(false)
    }
}

fn push(row: &rusqlite::Row<'_>, columns: usize, sink: &mut DatumSink) -> rusqlite::Result<Flow> {
    for at in 0..columns {
        sink.cell(cell_of(row.get_ref(at)?));
    }
    Ok(sink.end_row())
}

/// A random number from SQLite's generator.
fn random(conn: &Connection) -> rusqlite::Result<u64> {
    let number: i64 = conn.prepare_cached("SELECT random()")?.query_row([], |row| row.get(0))?;
    Ok(u64::from_ne_bytes(number.to_ne_bytes()))
}
