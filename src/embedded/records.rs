//! What the catalog says of files: which one a primitive or a branch is kept in, and which are snapshots.
//!
//! A primitive changes its file by one row of the catalog, so it has the old one or the new one, whatever happens. It
//! opens none of them.

use super::catalog::SqlCatalog;
use super::rows::{all, optional, run};
use crate::state::Outcome;
use crate::state::snapshots::Snapshot;
use rusqlite::{Row, params};

/// The file of a primitive that has not got another one since it was made.
pub(super) const FIRST_FILE: &str = "main.db";

/// For the catalog's steps. `branch` is empty for the primitive itself; `base` is the stamp of main when the branch was
/// made.
pub(super) const STEP: &str = "
    CREATE TABLE files (
        primitive_id TEXT NOT NULL REFERENCES primitives(id),
        branch TEXT NOT NULL,
        file TEXT NOT NULL,
        base INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (primitive_id, branch)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE snapshots (
        id TEXT PRIMARY KEY NOT NULL,
        primitive_id TEXT NOT NULL REFERENCES primitives(id),
        label TEXT,
        automatic INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        created_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX snapshots_primitive ON snapshots (primitive_id, id);
";

/// A branch's row.
#[derive(Clone, Debug)]
pub(super) struct BranchRow {
    pub(super) name: String,
    pub(super) file: String,
    pub(super) base: i32,
    pub(super) created_at: i64,
}

impl SqlCatalog {
    /// The name of the file that a primitive is kept in.
    pub(super) async fn main_file(&self, primitive: &str) -> Outcome<String> {
        let id = primitive.to_owned();
        let sql = "SELECT file FROM files WHERE primitive_id = ?1 AND branch = ''";
        let found =
            self.file.read(move |connection| optional(connection, sql, [&id], |row| row.get(0))).await?;
        Ok(found.unwrap_or_else(|| FIRST_FILE.to_owned()))
    }

    /// From now on the primitive is kept in this file; a branch that it was is none any more.
    pub(super) async fn set_main_file(
        &self,
        primitive: &str,
        file: String,
        promoted: Option<String>,
    ) -> Outcome<()> {
        let (id, now) = (primitive.to_owned(), self.clock.now());
        self.file
            .write(move |connection| {
                run(
                    connection,
                    "INSERT INTO files (primitive_id, branch, file, base, created_at) VALUES (?1, '', ?2, 0, ?3)
                     ON CONFLICT (primitive_id, branch) DO UPDATE SET file = excluded.file",
                    params![id, file, now],
                )?;
                let sql = "DELETE FROM files WHERE primitive_id = ?1 AND branch = ?2";
                promoted.map_or(Ok(()), |branch| run(connection, sql, params![id, branch]).map(drop))
            })
            .await
    }

    /// The branches of a database, by name.
    pub(super) async fn branch_rows(&self, primitive: &str) -> Outcome<Vec<BranchRow>> {
        let id = primitive.to_owned();
        let sql = "SELECT branch, file, base, created_at FROM files WHERE primitive_id = ?1 AND branch <> ''
                   ORDER BY branch";
        self.file.read(move |connection| all(connection, sql, [&id], branch_row)).await
    }

    /// Adds a branch.
    pub(super) async fn add_branch(&self, primitive: &str, row: BranchRow) -> Outcome<()> {
        let id = primitive.to_owned();
        self.file
            .write(move |connection| {
                run(
                    connection,
                    "INSERT INTO files (primitive_id, branch, file, base, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![id, row.name, row.file, row.base, row.created_at],
                )
                .map(drop)
            })
            .await
    }

    /// Removes a branch.
    pub(super) async fn remove_branch(&self, primitive: &str, branch: &str) -> Outcome<()> {
        let (id, branch) = (primitive.to_owned(), branch.to_owned());
        let sql = "DELETE FROM files WHERE primitive_id = ?1 AND branch = ?2";
        self.file.write(move |connection| run(connection, sql, params![id, branch]).map(drop)).await
    }

    /// The snapshots of a primitive, newest first.
    pub(super) async fn snapshot_rows(&self, primitive: &str) -> Outcome<Vec<(Snapshot, String)>> {
        let id = primitive.to_owned();
        let sql =
            "SELECT id, label, automatic, bytes, created_at, sha256 FROM snapshots WHERE primitive_id = ?1
                   ORDER BY id DESC";
        self.file.read(move |connection| all(connection, sql, [&id], snapshot_row)).await
    }

    /// Adds a snapshot, and removes the oldest of its kind beyond `keep`; the ids of those.
    pub(super) async fn add_snapshot(
        &self,
        primitive: &str,
        made: Snapshot,
        sha256: String,
        keep: usize,
    ) -> Outcome<Vec<String>> {
        let (id, keep) = (primitive.to_owned(), i64::try_from(keep).unwrap_or(i64::MAX));
        self.file
            .write(move |connection| {
                let bytes = i64::try_from(made.bytes).unwrap_or(i64::MAX);
                run(
                    connection,
                    "INSERT INTO snapshots (id, primitive_id, label, automatic, bytes, sha256, created_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    params![made.id, id, made.label, made.automatic, bytes, sha256, made.created_at],
                )?;
                all(
                    connection,
                    "DELETE FROM snapshots WHERE id IN (SELECT id FROM snapshots WHERE primitive_id = ?1
                     AND automatic = ?2 ORDER BY id DESC LIMIT -1 OFFSET ?3) RETURNING id",
                    params![id, made.automatic, keep],
                    |row| row.get(0),
                )
            })
            .await
    }

    /// Every primitive's id, group and type; every file of one; every snapshot. For whoever removes the rest.
    pub(super) async fn everything(&self) -> Outcome<Everything> {
        self.file
            .read(|connection| {
                let three = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
                let two = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
                Ok(Everything {
                    primitives: all(connection, "SELECT id, group_id, kind FROM primitives", [], three)?,
                    files: all(connection, "SELECT primitive_id, branch, file FROM files", [], three)?,
                    snapshots: all(connection, "SELECT primitive_id, id FROM snapshots", [], two)?,
                })
            })
            .await
    }
}

/// What [`SqlCatalog::everything`] found, over one state of the catalog.
pub(super) struct Everything {
    /// Id, group, type.
    pub(super) primitives: Vec<(String, String, String)>,
    /// Primitive, branch, file.
    pub(super) files: Vec<(String, String, String)>,
    /// Primitive, snapshot.
    pub(super) snapshots: Vec<(String, String)>,
}

fn branch_row(row: &Row<'_>) -> rusqlite::Result<BranchRow> {
    Ok(BranchRow { name: row.get(0)?, file: row.get(1)?, base: row.get(2)?, created_at: row.get(3)? })
}

fn snapshot_row(row: &Row<'_>) -> rusqlite::Result<(Snapshot, String)> {
    let bytes: i64 = row.get(3)?;
    let snapshot = Snapshot {
        id: row.get(0)?,
        label: row.get(1)?,
        automatic: row.get(2)?,
        bytes: u64::try_from(bytes).unwrap_or_default(),
        created_at: row.get(4)?,
    };
    Ok((snapshot, row.get(5)?))
}
