//! Which snapshots there are, what is in one, and whether it could be restored.
//!
//! It changes nothing. The list looks at names and at what the server's tables hold; only [`verify`] reads every
//! page.

use super::choose::{self, Chosen};
use super::kinship;
use crate::error::{ErrorCode, ToolError};
use crate::render::one_line;
use crate::sqlite::copy::Place;
use crate::sqlite::objects::quoted;
use crate::sqlite::tables::{self, SchemaFault};
use crate::sqlite::{diagnose, open};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// Whose snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The database file.
    #[serde(with = "crate::os_path")]
    pub database: PathBuf,
    /// The folder of its snapshots.
    #[serde(with = "crate::os_path")]
    pub folder: PathBuf,
    /// How long to wait for another process's lock.
    pub busy_timeout: Duration,
}

/// One snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotEntry {
    /// Its name in the folder.
    pub name: String,
    /// `auto` or `manual`.
    pub kind: String,
    /// When it was made, UTC: `2026-11-30T09:01:02.123Z`.
    pub time: String,
    /// Its size.
    pub bytes: u64,
    /// Events in it; none if they cannot be read.
    pub events: Option<u64>,
    /// Whether it could be restored, as far as was looked.
    pub verdict: Standing,
}

/// What stands in the way of restoring a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// Nothing.
    Sound,
    /// It is of another database; why.
    Foreign(String),
    /// It is damaged or cannot be read; why.
    Damaged(String),
}

impl Standing {
    /// `ok`, `another database: ...`, `damaged: ...`.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Sound => "ok".to_owned(),
            Self::Foreign(why) => format!("another database: {why}"),
            Self::Damaged(why) => format!("damaged: {why}"),
        }
    }
}

/// A snapshot and what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// As in the list.
    pub entry: SnapshotEntry,
    /// Its whole path.
    #[serde(with = "crate::os_path")]
    pub path: PathBuf,
    /// The tables of the user's in the snapshot and in the database, by name.
    pub tables: Vec<TableCount>,
}

/// Rows of a table then and now; none where it is not there, or is a virtual table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableCount {
    /// Its name.
    pub table: String,
    /// Rows in the snapshot.
    pub snapshot: Option<u64>,
    /// Rows in the database.
    pub database: Option<u64>,
}

/// The snapshots of a database, newest first.
///
/// # Errors
/// The database is not there or cannot be read.
pub fn list(listing: &Listing) -> Result<Vec<SnapshotEntry>, ToolError> {
    let (place, live) = both(listing)?;
    Ok(choose::all(&place).iter().map(|chosen| entry(chosen, &live)).collect())
}

/// One snapshot and how many rows its tables have, beside those of the database.
///
/// # Errors
/// As [`list`]; there is no such snapshot.
pub fn show(listing: &Listing, name: &str) -> Result<Shown, ToolError> {
    let (place, live) = both(listing)?;
    let chosen = choose::choose(&place, name)?;
    let entry = entry(&chosen, &live);
    let mut tables = Vec::new();
    if let Ok(snapshot) = opened(&chosen) {
        let (then, now) = (names(&snapshot).unwrap_or_default(), names(&live).unwrap_or_default());
        for table in then.union(&now) {
            let rows =
                |connection: &Connection, there: bool| there.then(|| count(connection, table)).flatten();
            tables.push(TableCount {
                table: one_line(table, 300),
                snapshot: rows(&snapshot, then.contains(table)),
                database: rows(&live, now.contains(table)),
            });
        }
    }
    Ok(Shown { entry, path: chosen.path, tables })
}

/// One snapshot, every page and index of it read as before a restore.
///
/// # Errors
/// As [`show`]; there is no room for the copy that is checked.
pub fn verify(listing: &Listing, name: &str, now: jiff::Timestamp) -> Result<SnapshotEntry, ToolError> {
    let (place, live) = both(listing)?;
    let chosen = choose::choose(&place, name)?;
    let mut entry = entry(&chosen, &live);
    if entry.verdict == Standing::Sound
        && let Err(error) = choose::private_copy(&place, &chosen, now)
    {
        if error.code != ErrorCode::Corrupt {
            return Err(error);
        }
        let why = error.message.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
        entry.verdict = Standing::Damaged(why.map_or(error.message.clone(), |(why, _)| why.to_owned()));
    }
    Ok(entry)
}

fn both(listing: &Listing) -> Result<(Place, Connection), ToolError> {
    let place = Place::of(&listing.database, &listing.folder).map_err(|words| {
        ToolError::new(ErrorCode::SqlError, format!("the database cannot be read: {words}"))
    })?;
    let live = open::beside(&place.real, listing.busy_timeout)
        .and_then(|live| {
            live.query_row("SELECT count(*) FROM main.sqlite_schema", [], |_| Ok(())).map(|()| live)
        })
        .map_err(|error| diagnose::tool_error("the database cannot be read", &error))?;
    Ok((place, live))
}

fn opened(chosen: &Chosen) -> rusqlite::Result<Connection> {
    open::for_checking(&chosen.path)
}

fn entry(chosen: &Chosen, live: &Connection) -> SnapshotEntry {
    let (events, verdict) = match standing(chosen, live) {
        Ok(found) => found,
        Err(SchemaFault::Sqlite(error)) => (None, Standing::Damaged(one_line(&error.to_string(), 200))),
        Err(SchemaFault::Foreign(what)) => (None, Standing::Foreign(one_line(&what, 200))),
    };
    SnapshotEntry {
        name: chosen.name.clone(),
        kind: chosen.says.kind.as_str().to_owned(),
        time: chosen.says.time(),
        bytes: chosen.path.metadata().map_or(0, |found| found.len()),
        events,
        verdict,
    }
}

fn standing(chosen: &Chosen, live: &Connection) -> Result<(Option<u64>, Standing), SchemaFault> {
    let snapshot = opened(chosen)?;
    tables::missing(&snapshot)?;
    let events = if tables::has_table(&snapshot, "memory_events")? {
        snapshot.query_row("SELECT count(*) FROM main.memory_events", [], |row| row.get(0))?
    } else {
        0_i64
    };
    tables::missing(live)?;
    let verdict = kinship::stranger(&snapshot, live)?.map_or(Standing::Sound, Standing::Foreign);
    Ok((u64::try_from(events).ok(), verdict))
}

/// Ordinary and virtual tables that are neither the server's nor SQLite's nor a virtual table's own.
fn names(connection: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let mut statement = connection.prepare("PRAGMA main.table_list")?;
    let mut rows = statement.query([])?;
    let mut names = BTreeSet::new();
    while let Some(row) = rows.next()? {
        let (name, kind): (String, String) = (row.get("name")?, row.get("type")?);
        let own = name.starts_with("sqlite_") || tables::TABLES.contains(&name.as_str());
        if matches!(kind.as_str(), "table" | "virtual") && !own {
            names.insert(name);
        }
    }
    Ok(names)
}

fn count(connection: &Connection, table: &str) -> Option<u64> {
    // A virtual table runs code of its module over what may have been edited; its rows are not counted.
    let is_virtual: bool = connection
        .query_row(
            "SELECT rootpage = 0 FROM main.sqlite_schema WHERE type = 'table' AND name = ?1",
            [table],
            |row| row.get(0),
        )
        .unwrap_or(true);
    if is_virtual {
        return None;
    }
    let rows: i64 = connection
        .query_row(&format!("SELECT count(*) FROM main.{}", quoted(table)), [], |row| row.get(0))
        .ok()?;
    u64::try_from(rows).ok()
}
