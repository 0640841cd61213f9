//! Snapshots, restores and forks of primitives of every kind: which file is copied where, and what a copy must not keep.

use super::folder::{discard, finish};
use super::keeper::{new_file, path_of, remove};
use super::records::FIRST_FILE;
use super::{Embedded, StateFile, blocking, files, kv, memory, objects, queue, vault};
use crate::error::{ErrorCode, ToolError};
use crate::sqlite::state_file::{self, Steps};
use crate::state::catalog::{Kind, Primitive};
use crate::state::snapshots::Snapshot;
use crate::state::{Outcome, not_found};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::RwLockWriteGuard;

/// Whoever writes a primitive's file, paused.
enum Paused<'p> {
    Writer { _held: super::file::Held },
    Workers { _alone: RwLockWriteGuard<'p, ()> },
}

/// What a kind's file holds; none where it is an agent's own.
fn steps(kind: Kind) -> Option<Steps> {
    match kind {
        Kind::Db => None,
        Kind::Fs => Some(files::STEPS),
        Kind::Queue => Some(queue::STEPS),
        Kind::Memory => Some(memory::STEPS),
        Kind::Kv => Some(kv::STEPS),
        Kind::Storage => Some(objects::STEPS),
        Kind::Vault => Some(vault::STEPS),
    }
}

impl Embedded {
    pub(super) async fn keep(&self, primitive: &Primitive, label: Option<String>) -> Outcome<Snapshot> {
        let (folder, file) = self.place(primitive).await?;
        let opened = self.opened(primitive).await?;
        let _paused = opened.pause().await?;
        self.keeper.snapshot(primitive, &folder, &file, label, false).await
    }

    pub(super) async fn copy_primitive(&self, primitive: &Primitive, name: &str) -> Outcome<Primitive> {
        let made = self.catalog.unmade(primitive, name).await?;
        let (_, file) = self.place(primitive).await?;
        let opened = self.opened(primitive).await?;
        let paused = opened.pause().await?;
        let _moving = self.keeper.moving().await;
        let folder = self.folder.begin(&made.group, &made.id).map_err(|error| {
            ToolError::new(
                ErrorCode::SnapshotFailed,
                format!("the folder of the copy cannot be written: {error}"),
            )
        })?;
        let copy = folder.join(FIRST_FILE);
        let copied = self.keeper.copy(&file, &copy, false).await;
        drop(paused);
        let (kind, now) = (made.kind, self.clock.now());
        let done = match copied {
            Ok(_) => {
                blocking(move || settled_in(&copy, kind, |connection| of_fork(kind, connection, now))).await
            }
            Err(error) => Err(error),
        };
        let done = match done {
            Ok(()) => self.catalog.add(made.clone()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            discard(&folder);
            return Err(error);
        }
        finish(&folder);
        Ok(made)
    }

    pub(super) async fn go_back(&self, primitive: &Primitive, snapshot: &str) -> Outcome<Snapshot> {
        let rows = self.catalog.snapshot_rows(&primitive.id).await?;
        let (wanted, sha256) = rows.into_iter().find(|(one, _)| one.id == snapshot).ok_or_else(|| {
            let snapshot = crate::render::one_line(snapshot, 80);
            not_found(format!(
                "`{}` has no snapshot `{snapshot}`; list shows which there are",
                primitive.name
            ))
        })?;
        let in_use = self.open.lock().await.contains(&primitive.id)
            || self.databases.lock().await.contains_key(&primitive.id);
        if in_use {
            let words = format!("`{}` is in use; end the server and restore then", primitive.name);
            return Err(ToolError::new(ErrorCode::Busy, words));
        }
        let (folder, file) = self.place(primitive).await?;
        let label = format!("before the restore of {}", wanted.id);
        let kept = self.keeper.snapshot(primitive, &folder, &file, Some(label), true).await?;
        let _moving = self.keeper.moving().await;
        let name = new_file();
        let restored = folder.join(&name);
        self.keeper.copy_of(&path_of(&folder, &wanted.id), &restored, false, Some(sha256)).await?;
        let (kind, now, old) = (primitive.kind, self.clock.now(), file.clone());
        blocking(move || settled_in(&restored, kind, |connection| of_restore(kind, connection, &old, now)))
            .await?;
        self.catalog.set_main_file(&primitive.id, name, None).await?;
        remove(&file);
        Ok(kept)
    }

    /// The folder of a primitive, and its file.
    pub(super) async fn place(&self, primitive: &Primitive) -> Outcome<(PathBuf, PathBuf)> {
        let folder = self.folder.primitive(&primitive.group, &primitive.id)?;
        let file = folder.join(self.catalog.main_file(&primitive.id).await?);
        Ok((folder, file))
    }

    /// The primitive, opened, so that its file is there and its writer can be paused.
    async fn opened(&self, primitive: &Primitive) -> Outcome<Opened> {
        Ok(match steps(primitive.kind) {
            Some(steps) => Opened::State(self.file(primitive, steps).await?),
            None => Opened::Database(self.database(primitive).await?),
        })
    }
}

enum Opened {
    State(Arc<StateFile>),
    Database(Arc<super::databases::SqlDb>),
}

impl Opened {
    async fn pause(&self) -> Outcome<Paused<'_>> {
        Ok(match self {
            Self::State(file) => Paused::Writer { _held: file.hold().await? },
            Self::Database(db) => Paused::Workers { _alone: db.turn.write().await },
        })
    }
}

/// Does what a copy needs before anybody opens it. An agent's own file is left as it is.
fn settled_in(copy: &Path, kind: Kind, work: impl FnOnce(&Connection) -> Outcome<()>) -> Outcome<()> {
    let Some(steps) = steps(kind) else { return Ok(()) };
    work(&state_file::writer(copy, steps)?)
}

fn of_fork(kind: Kind, connection: &Connection, now: i64) -> Outcome<()> {
    if kind == Kind::Queue { queue::release(connection, now) } else { Ok(()) }
}

fn of_restore(kind: Kind, connection: &Connection, old: &Path, now: i64) -> Outcome<()> {
    match kind {
        Kind::Kv => kv::go_on_from(connection, kv::last_version(&state_file::reader(old)?)?),
        kind => of_fork(kind, connection, now),
    }
}
