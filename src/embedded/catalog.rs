//! The catalog in `catalog.db`.
//!
//! Nothing of it is kept in memory: a person's commands write the same file while a server runs.

use super::file::StateFile;
use super::rows::{all, optional, query, run};
use crate::error::{ErrorCode, ToolError};
use crate::sqlite::state_file::Steps;
use crate::state::catalog::{
    Catalog, Group, GroupEntry, Kind, Primitive, check_name, check_primitive_name, new_id,
};
use crate::state::clock::Clock;
use crate::state::keys::Keys;
use crate::state::{Outcome, not_found};
use async_trait::async_trait;
use rusqlite::{Row, params};
use std::path::PathBuf;
use std::sync::Arc;

const STEPS: Steps = &[
    "
    CREATE TABLE groups (
        id TEXT PRIMARY KEY NOT NULL,
        name TEXT NOT NULL UNIQUE,
        created_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE primitives (
        id TEXT PRIMARY KEY NOT NULL,
        group_id TEXT NOT NULL REFERENCES groups(id),
        name TEXT NOT NULL,
        kind TEXT NOT NULL,
        paused INTEGER NOT NULL DEFAULT 0,
        created_at INTEGER NOT NULL,
        UNIQUE (group_id, name)
    ) STRICT, WITHOUT ROWID;
",
    super::keys::STEP,
    super::records::STEP,
    super::keys::SIGNING_STEP,
];

const PRIMITIVE: &str = "SELECT id, group_id, name, kind, paused FROM primitives";

/// The catalog.
pub(super) struct SqlCatalog {
    pub(super) file: Arc<StateFile>,
    pub(super) clock: Arc<dyn Clock>,
}

impl SqlCatalog {
    pub(super) fn open(path: PathBuf, clock: Arc<dyn Clock>) -> Outcome<Self> {
        Ok(Self { file: Arc::new(StateFile::open(path, STEPS)?), clock })
    }

    pub(super) async fn close(&self) {
        self.file.close().await;
    }

    /// A copy of a primitive as it would be, which is not in the catalog yet.
    pub(super) async fn unmade(&self, like: &Primitive, name: &str) -> Outcome<Primitive> {
        check_primitive_name("new_name", name)?;
        let (group, wanted) = (like.group.clone(), name.to_owned());
        let sql = "SELECT 1 FROM primitives WHERE group_id = ?1 AND name = ?2";
        let there = self
            .file
            .read(move |connection| optional(connection, sql, [&group, &wanted], |_| Ok(())))
            .await?;
        match there {
            Some(()) => Err(taken(name)),
            None => Ok(Primitive { id: new_id(), name: name.to_owned(), paused: false, ..like.clone() }),
        }
    }

    /// Adds a primitive.
    pub(super) async fn add(&self, made: Primitive) -> Outcome<()> {
        let (name, now) = (made.name.clone(), self.clock.now());
        let added = self
            .file
            .write(move |connection| {
                run(
                    connection,
                    "INSERT INTO primitives (id, group_id, name, kind, created_at)
                     VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (group_id, name) DO NOTHING",
                    params![made.id, made.group, made.name, made.kind.name(), now],
                )
            })
            .await?;
        if added == 0 { Err(taken(&name)) } else { Ok(()) }
    }
}

#[async_trait]
impl Catalog for SqlCatalog {
    async fn group(&self, name: &str, create: bool) -> Outcome<Group> {
        let (wanted, found) = (name.to_owned(), name.to_owned());
        let found = self
            .file
            .read(move |connection| {
                optional(connection, "SELECT id, name FROM groups WHERE name = ?1", [&found], of_group)
            })
            .await?;
        match found {
            Some(group) => Ok(group),
            None if create => {
                check_name("group", &wanted)?;
                let (id, now) = (new_id(), self.clock.now());
                self.file
                    .write(move |connection| {
                        query(
                            connection,
                            "INSERT INTO groups (id, name, created_at) VALUES (?1, ?2, ?3)
                             ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id, name",
                            params![id, wanted, now],
                            of_group,
                        )
                    })
                    .await
            }
            None => Err(not_found(format!("there is no group `{}`", crate::render::one_line(&wanted, 80)))),
        }
    }

    async fn groups(&self) -> Outcome<Vec<GroupEntry>> {
        self.file
            .read(move |connection| {
                all(
                    connection,
                    "SELECT id, name, created_at, (SELECT count(*) FROM primitives WHERE group_id = groups.id)
                     FROM groups ORDER BY name",
                    [],
                    |row| {
                        let primitives: i64 = row.get(3)?;
                        Ok(GroupEntry {
                            group: of_group(row)?,
                            primitives: u64::try_from(primitives).unwrap_or_default(),
                            created_at: row.get(2)?,
                        })
                    },
                )
            })
            .await
    }

    async fn create_group(&self, name: &str) -> Outcome<Group> {
        check_name("group", name)?;
        let made = Group { id: new_id(), name: name.to_owned() };
        let (row, now) = (made.clone(), self.clock.now());
        let added = self
            .file
            .write(move |connection| {
                run(
                    connection,
                    "INSERT INTO groups (id, name, created_at) VALUES (?1, ?2, ?3) ON CONFLICT (name) DO NOTHING",
                    params![row.id, row.name, now],
                )
            })
            .await?;
        if added == 0 {
            let words = format!("there is a group `{name}` already; choose another name, or use that one");
            return Err(ToolError::new(ErrorCode::Conflict, words));
        }
        Ok(made)
    }

    fn keys(&self) -> &dyn Keys {
        self
    }

    async fn primitives(&self, group: &Group) -> Outcome<Vec<Primitive>> {
        let group = group.id.clone();
        self.file
            .read(move |connection| {
                let sql = format!("{PRIMITIVE} WHERE group_id = ?1 ORDER BY name");
                all(connection, &sql, [&group], primitive)
            })
            .await
    }

    async fn primitive(&self, id: &str) -> Outcome<Option<Primitive>> {
        let id = id.to_owned();
        let sql = format!("{PRIMITIVE} WHERE id = ?1");
        self.file.read(move |connection| optional(connection, &sql, [&id], primitive)).await
    }

    async fn create(&self, group: &Group, kind: Kind, name: &str) -> Outcome<Primitive> {
        check_primitive_name("name", name)?;
        let made =
            Primitive { id: new_id(), group: group.id.clone(), name: name.to_owned(), kind, paused: false };
        self.add(made.clone()).await?;
        Ok(made)
    }

    async fn pause(&self, primitive: &Primitive, paused: bool) -> Outcome<()> {
        let (id, name) = (primitive.id.clone(), primitive.name.clone());
        let sql = "UPDATE primitives SET paused = ?2 WHERE id = ?1";
        let changed = self.file.write(move |connection| run(connection, sql, params![id, paused])).await?;
        if changed == 0 { Err(not_found(format!("there is no primitive `{name}` any more"))) } else { Ok(()) }
    }
}

fn taken(name: &str) -> ToolError {
    ToolError::new(
        ErrorCode::Conflict,
        format!("the group has a primitive `{name}` already; choose another name, or use that one"),
    )
}

fn of_group(row: &Row<'_>) -> rusqlite::Result<Group> {
    Ok(Group { id: row.get(0)?, name: row.get(1)? })
}

fn primitive(row: &Row<'_>) -> rusqlite::Result<Primitive> {
    let kind: String = row.get(3)?;
    let kind = Kind::from_name(&kind).ok_or_else(|| {
        rusqlite::Error::FromSqlConversionFailure(
            3,
            rusqlite::types::Type::Text,
            format!("unknown type of primitive `{kind}`").into(),
        )
    })?;
    Ok(Primitive { id: row.get(0)?, group: row.get(1)?, name: row.get(2)?, kind, paused: row.get(4)? })
}
