//! A tree of files: entries by path, contents by hash, texts in an index of three-letter parts
//! (<https://sqlite.org/fts5.html#the_trigram_tokenizer>).

use super::blobs::FolderBlobs;
use super::file::StateFile;
use super::file_search;
use super::rows::{all, byte_count, first_byte, hash_or_bytes, optional, query, run, wrong};
use crate::error::{ErrorCode, ToolError};
use crate::sqlite::state_file::Steps;
use crate::state::Outcome;
use crate::state::blobs::{self, Blobs, INLINE, MOST_SHOWN};
use crate::state::clock::Clock;
use crate::state::files::{
    Files, Found, Listed, Node, PathTest, check_length, in_the_way, is_below, is_text, nothing_at, parent,
};
use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use std::sync::Arc;

/// A folder has no content. `bytes` is NULL where they stand among the blobs. Every entry but those in the root has
/// its folder.
pub(super) const STEPS: Steps = &["
    CREATE TABLE contents (
        id INTEGER PRIMARY KEY,
        hash TEXT NOT NULL UNIQUE,
        size INTEGER NOT NULL,
        is_text INTEGER NOT NULL,
        bytes BLOB
    ) STRICT;
    CREATE TABLE entries (
        path TEXT PRIMARY KEY NOT NULL,
        parent TEXT NOT NULL,
        content INTEGER REFERENCES contents(id),
        modified_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX entries_parent ON entries (parent, path);
    CREATE INDEX entries_content ON entries (content) WHERE content IS NOT NULL;
    CREATE VIRTUAL TABLE texts USING fts5(text, content='', contentless_delete=1, tokenize='trigram');
"];

const ENTRY: &str = "SELECT entries.path, contents.size, contents.is_text
    FROM entries LEFT JOIN contents ON contents.id = entries.content";

pub(super) struct SqlFiles {
    file: Arc<StateFile>,
    blobs: FolderBlobs,
    clock: Arc<dyn Clock>,
}

impl SqlFiles {
    pub(super) fn new(file: Arc<StateFile>, blobs: FolderBlobs, clock: Arc<dyn Clock>) -> Self {
        Self { file, blobs, clock }
    }
}

#[async_trait]
impl Files for SqlFiles {
    async fn look(&self, path: String) -> Outcome<Option<Node>> {
        self.file.read(move |connection| look(connection, &path)).await
    }

    async fn read(&self, path: String, offset: u64, most: usize) -> Outcome<Vec<u8>> {
        let blobs = self.blobs.clone();
        self.file
            .read(move |connection| match look(connection, &path)? {
                None => Err(nothing_at(&path)),
                Some(Node::Folder) => Err(ToolError::new(
                    ErrorCode::WrongType,
                    format!("`{path}` is a folder; fs_read with `list` shows what it has"),
                )),
                Some(Node::File { .. }) => {
                    let content = content_of(connection, &path)?;
                    content.map_or_else(
                        || Err(nothing_at(&path)),
                        |id| bytes_of(connection, &blobs, id, offset, most),
                    )
                }
            })
            .await
    }

    async fn list(&self, path: String, deep: bool, offset: u64, most: usize) -> Outcome<Vec<Listed>> {
        self.file
            .read(move |connection| {
                match look(connection, &path)? {
                    None => return Err(nothing_at(&path)),
                    Some(Node::File { .. }) => {
                        return Err(ToolError::new(
                            ErrorCode::WrongType,
                            format!("`{path}` is a file; fs_read without `list` reads it"),
                        ));
                    }
                    Some(Node::Folder) => {}
                }
                let most = i64::try_from(most).unwrap_or(i64::MAX);
                let offset = i64::try_from(offset).unwrap_or(i64::MAX);
                if deep {
                    let (from, to) = below(&path);
                    let sql =
                        format!("{ENTRY} WHERE path >= ?1 AND path < ?2 ORDER BY path LIMIT ?3 OFFSET ?4");
                    return all(connection, &sql, params![from, to, most, offset], listed);
                }
                let sql = format!("{ENTRY} WHERE parent = ?1 ORDER BY path LIMIT ?2 OFFSET ?3");
                all(connection, &sql, params![path, most, offset], listed)
            })
            .await
    }

    async fn write(&self, path: String, bytes: Vec<u8>) -> Outcome<()> {
        let (now, hash) = (self.clock.now(), blobs::hash(&bytes));
        if bytes.len() > INLINE {
            // On the disk before anything names it.
            self.blobs.put(hash.clone(), bytes.clone()).await?;
        }
        self.file
            .write(move |connection| {
                if look(connection, &path)? == Some(Node::Folder) {
                    return Err(in_the_way(&path, "a folder"));
                }
                make_parents(connection, &path, now)?;
                let old = content_of(connection, &path)?;
                let content = keep(connection, &hash, &bytes)?;
                put_entry(connection, &path, Some(content), now)?;
                drop_content(connection, old.filter(|old| *old != content))
            })
            .await
    }

    async fn make_folder(&self, path: String) -> Outcome<()> {
        let now = self.clock.now();
        self.file
            .write(move |connection| match look(connection, &path)? {
                Some(Node::Folder) => Ok(()),
                Some(Node::File { .. }) => Err(in_the_way(&path, "a file")),
                None => {
                    make_parents(connection, &path, now)?;
                    put_entry(connection, &path, None, now)
                }
            })
            .await
    }

    async fn rename(&self, from: String, to: String) -> Outcome<()> {
        let now = self.clock.now();
        self.file
            .write(move |connection| {
                let moved = look(connection, &from)?.ok_or_else(|| nothing_at(&from))?;
                check_move(&from, &to)?;
                if from == to {
                    return Ok(());
                }
                match (&moved, look(connection, &to)?) {
                    (_, None) => {}
                    (Node::File { .. }, Some(Node::File { .. })) => {
                        remove(connection, &to)?;
                    }
                    (Node::Folder, Some(Node::Folder)) if is_empty(connection, &to)? => {
                        remove(connection, &to)?;
                    }
                    (_, Some(Node::Folder)) => return Err(in_the_way(&to, "a folder")),
                    (_, Some(Node::File { .. })) => return Err(in_the_way(&to, "a file")),
                }
                make_parents(connection, &to, now)?;
                copy_or_move(connection, &from, &to, true, now)
            })
            .await
    }

    async fn delete(&self, path: String, deep: bool) -> Outcome<u64> {
        self.file
            .write(move |connection| {
                let node = look(connection, &path)?.ok_or_else(|| nothing_at(&path))?;
                if path == "/" {
                    return Err(ToolError::arguments("the root cannot be deleted; delete what is in it"));
                }
                if node == Node::Folder && !deep && !is_empty(connection, &path)? {
                    return Err(ToolError::new(
                        ErrorCode::Conflict,
                        format!(
                            "the folder `{path}` is not empty; give `recursive` to delete it with all in it"
                        ),
                    ));
                }
                let (from, to) = below(&path);
                let sql = "SELECT path FROM entries WHERE path = ?1 OR (path >= ?2 AND path < ?3)";
                let paths: Vec<String> = all(connection, sql, params![path, from, to], |row| row.get(0))?;
                paths.iter().try_for_each(|path| remove(connection, path))?;
                Ok(u64::try_from(paths.len()).unwrap_or_default())
            })
            .await
    }

    async fn copy(&self, from: String, to: String) -> Outcome<()> {
        let now = self.clock.now();
        self.file
            .write(move |connection| {
                look(connection, &from)?.ok_or_else(|| nothing_at(&from))?;
                check_move(&from, &to)?;
                if look(connection, &to)?.is_some() {
                    return Err(in_the_way(&to, "something"));
                }
                make_parents(connection, &to, now)?;
                copy_or_move(connection, &from, &to, false, now)
            })
            .await
    }

    async fn search(&self, path: String, text: String, most: usize) -> Outcome<Vec<Found>> {
        let blobs = self.blobs.clone();
        self.file.read(move |connection| file_search::search(connection, &blobs, &path, &text, most)).await
    }

    async fn matching(&self, fits: PathTest, most: usize) -> Outcome<Vec<String>> {
        self.file
            .read(move |connection| {
                let find = || {
                    let mut statement = connection
                        .prepare_cached("SELECT path FROM entries WHERE content IS NOT NULL ORDER BY path")?;
                    let mut rows = statement.query([])?;
                    let mut found = Vec::new();
                    while let Some(row) = rows.next()? {
                        let path: String = row.get(0)?;
                        if fits(&path) {
                            found.push(path);
                            if found.len() == most {
                                break;
                            }
                        }
                    }
                    Ok(found)
                };
                find().map_err(wrong)
            })
            .await
    }
}

/// The first path below a folder, and the first behind all of them: `0` comes after `/`.
pub(super) fn below(path: &str) -> (String, String) {
    let stem = path.trim_end_matches('/');
    (format!("{stem}/"), format!("{stem}0"))
}

fn look(connection: &Connection, path: &str) -> Outcome<Option<Node>> {
    if path == "/" {
        return Ok(Some(Node::Folder));
    }
    let sql = format!("{ENTRY} WHERE path = ?1");
    Ok(optional(connection, &sql, [path], listed)?.map(|listed| listed.node))
}

fn content_of(connection: &Connection, path: &str) -> Outcome<Option<i64>> {
    let sql = "SELECT content FROM entries WHERE path = ?1";
    Ok(optional(connection, sql, [path], |row| row.get(0))?.flatten())
}

pub(super) fn bytes_of(
    connection: &Connection,
    blobs: &FolderBlobs,
    id: i64,
    offset: u64,
    most: usize,
) -> Outcome<Vec<u8>> {
    let (hash, bytes) = query(
        connection,
        "SELECT hash, bytes IS NULL, substr(bytes, ?2, ?3) FROM contents WHERE id = ?1",
        params![id, first_byte(offset), byte_count(most)],
        hash_or_bytes,
    )?;
    bytes.map_or_else(|| blobs.read_now(&hash, offset, most), Ok)
}

fn make_parents(connection: &Connection, path: &str, now: i64) -> Outcome<()> {
    let mut missing = Vec::new();
    let mut above = parent(path);
    while let Some(folder) = above.filter(|folder| *folder != "/") {
        match look(connection, folder)? {
            Some(Node::Folder) => break,
            Some(Node::File { .. }) => return Err(in_the_way(folder, "a file")),
            None => missing.push(folder),
        }
        above = parent(folder);
    }
    missing.into_iter().rev().try_for_each(|folder| put_entry(connection, folder, None, now))
}

fn put_entry(connection: &Connection, path: &str, content: Option<i64>, now: i64) -> Outcome<()> {
    run(
        connection,
        "INSERT INTO entries (path, parent, content, modified_at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (path) DO UPDATE SET content = excluded.content, modified_at = excluded.modified_at",
        params![path, parent(path).unwrap_or("/"), content, now],
    )?;
    Ok(())
}

/// The content with these bytes, made if it is missing.
fn keep(connection: &Connection, hash: &str, bytes: &[u8]) -> Outcome<i64> {
    let sql = "SELECT id FROM contents WHERE hash = ?1";
    if let Some(id) = optional(connection, sql, [hash], |row| row.get(0))? {
        return Ok(id);
    }
    let inline = (bytes.len() <= INLINE).then_some(bytes);
    let text = is_text(bytes);
    let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    let id = query(
        connection,
        "INSERT INTO contents (hash, size, is_text, bytes) VALUES (?1, ?2, ?3, ?4) RETURNING id",
        params![hash, size, text, inline],
        |row| row.get(0),
    )?;
    // What cannot be shown whole is searched by reading it.
    if let Some(text) = std::str::from_utf8(bytes).ok().filter(|_| text && bytes.len() <= MOST_SHOWN) {
        run(connection, "INSERT INTO texts (rowid, text) VALUES (?1, ?2)", params![id, text])?;
    }
    Ok(id)
}

/// Drops a content that no entry names.
fn drop_content(connection: &Connection, content: Option<i64>) -> Outcome<()> {
    let Some(id) = content else { return Ok(()) };
    let gone = run(
        connection,
        "DELETE FROM contents WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM entries WHERE content = ?1)",
        [id],
    )?;
    if gone > 0 {
        run(connection, "DELETE FROM texts WHERE rowid = ?1", [id])?;
    }
    Ok(())
}

fn remove(connection: &Connection, path: &str) -> Outcome<()> {
    let content = content_of(connection, path)?;
    run(connection, "DELETE FROM entries WHERE path = ?1", [path])?;
    drop_content(connection, content)
}

fn is_empty(connection: &Connection, path: &str) -> Outcome<bool> {
    query(connection, "SELECT NOT EXISTS (SELECT 1 FROM entries WHERE parent = ?1)", [path], |row| row.get(0))
}

fn check_move(from: &str, to: &str) -> Outcome<()> {
    if from == "/" || to == "/" {
        return Err(ToolError::arguments("the root can neither be moved nor copied; name a folder in it"));
    }
    if is_below(to, from) {
        return Err(ToolError::arguments(format!(
            "`to` stands in `{from}` itself; choose a path outside of it"
        )));
    }
    Ok(())
}

/// Entries get their new paths, or copies under them; contents are shared.
fn copy_or_move(connection: &Connection, from: &str, to: &str, moving: bool, now: i64) -> Outcome<()> {
    let (first, behind) = below(from);
    let sql = "SELECT path, content FROM entries WHERE path = ?1 OR (path >= ?2 AND path < ?3)";
    let entries: Vec<(String, Option<i64>)> =
        all(connection, sql, params![from, first, behind], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (path, content) in entries {
        let new = format!("{to}{}", path.strip_prefix(from).unwrap_or_default());
        check_length(&new)?;
        if moving {
            run(connection, "DELETE FROM entries WHERE path = ?1", [&path])?;
        }
        put_entry(connection, &new, content, now)?;
    }
    Ok(())
}

fn listed(row: &Row<'_>) -> rusqlite::Result<Listed> {
    let size: Option<i64> = row.get(1)?;
    let node = match size {
        None => Node::Folder,
        Some(size) => Node::File {
            size: u64::try_from(size).unwrap_or_default(),
            text: row.get::<_, Option<bool>>(2)?.unwrap_or_default(),
        },
    };
    Ok(Listed { path: row.get(0)?, node })
}
