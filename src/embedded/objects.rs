//! Objects in one table, in the byte order of their keys; what is large among the blobs.

use super::blobs::FolderBlobs;
use super::file::StateFile;
use super::rows::{byte_count, first_byte, hash_or_bytes, optional, query, run, wrong};
use crate::sqlite::state_file::Steps;
use crate::state::Outcome;
use crate::state::blobs::{self, Blobs, INLINE};
use crate::state::clock::Clock;
use crate::state::objects::{Condition, Head, Listing, Objects, Page, check_condition, no_object};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::sync::Arc;

/// `bytes` is NULL where they stand among the blobs.
pub(super) const STEPS: Steps = &["
    CREATE TABLE objects (
        key TEXT PRIMARY KEY NOT NULL,
        size INTEGER NOT NULL,
        etag TEXT NOT NULL,
        content_type TEXT NOT NULL,
        metadata TEXT NOT NULL,
        hash TEXT NOT NULL,
        bytes BLOB,
        modified_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
"];

const HEAD: &str = "SELECT key, size, etag, content_type, metadata FROM objects";
/// Characters of a hash that make an entity tag.
const ETAG_CHARS: usize = 32;

pub(super) struct SqlObjects {
    file: Arc<StateFile>,
    blobs: FolderBlobs,
    clock: Arc<dyn Clock>,
}

impl SqlObjects {
    pub(super) fn new(file: Arc<StateFile>, blobs: FolderBlobs, clock: Arc<dyn Clock>) -> Self {
        Self { file, blobs, clock }
    }
}

#[async_trait]
impl Objects for SqlObjects {
    async fn head(&self, key: String) -> Outcome<Option<Head>> {
        self.file.read(move |connection| head(connection, &key)).await
    }

    async fn read(&self, key: String, offset: u64, most: usize) -> Outcome<Option<(Head, Vec<u8>)>> {
        let blobs = self.blobs.clone();
        self.file
            .read(move |connection| {
                let Some(found) = head(connection, &key)? else { return Ok(None) };
                let (hash, bytes) = query(
                    connection,
                    "SELECT hash, bytes IS NULL, substr(bytes, ?2, ?3) FROM objects WHERE key = ?1",
                    params![key, first_byte(offset), byte_count(most)],
                    hash_or_bytes,
                )?;
                let bytes = bytes.map_or_else(|| blobs.read_now(&hash, offset, most), Ok)?;
                Ok(Some((found, bytes)))
            })
            .await
    }

    async fn list(&self, listing: Listing) -> Outcome<Page> {
        self.file.read(move |connection| list(connection, &listing).map_err(wrong)).await
    }

    async fn put(
        &self,
        key: String,
        bytes: Vec<u8>,
        content_type: String,
        metadata: String,
        condition: Condition,
    ) -> Outcome<Head> {
        let (now, hash) = (self.clock.now(), blobs::hash(&bytes));
        if bytes.len() > INLINE {
            // On the disk before anything names it.
            self.blobs.put(hash.clone(), bytes.clone()).await?;
        }
        self.file
            .write(move |connection| {
                check(connection, &key, &condition)?;
                let etag = format!("\"{}\"", hash.get(..ETAG_CHARS).unwrap_or(&hash));
                let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
                let inline = (bytes.len() <= INLINE).then_some(bytes);
                run(
                    connection,
                    "INSERT OR REPLACE INTO objects (key, size, etag, content_type, metadata, hash, bytes, modified_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                    params![key, size, etag, content_type, metadata, hash, inline, now],
                )?;
                Ok(Head { key, size: u64::try_from(size).unwrap_or_default(), etag, content_type, metadata })
            })
            .await
    }

    async fn copy(&self, from: String, to: String, condition: Condition) -> Outcome<Head> {
        let now = self.clock.now();
        self.file
            .write(move |connection| {
                let source = head(connection, &from)?.ok_or_else(|| no_object(&from))?;
                check(connection, &to, &condition)?;
                run(
                    connection,
                    "INSERT OR REPLACE INTO objects (key, size, etag, content_type, metadata, hash, bytes, modified_at)
                     SELECT ?2, size, etag, content_type, metadata, hash, bytes, ?3 FROM objects WHERE key = ?1",
                    params![from, to, now],
                )?;
                Ok(Head { key: to, ..source })
            })
            .await
    }

    async fn delete(&self, key: String, condition: Condition) -> Outcome<bool> {
        self.file
            .write(move |connection| {
                check(connection, &key, &condition)?;
                Ok(run(connection, "DELETE FROM objects WHERE key = ?1", [&key])? > 0)
            })
            .await
    }
}

fn check(connection: &Connection, key: &str, condition: &Condition) -> Outcome<()> {
    let there = head(connection, key)?;
    check_condition(key, condition, there.as_ref().map(|head| head.etag.as_str()))
}

fn head(connection: &Connection, key: &str) -> Outcome<Option<Head>> {
    let sql = format!("{HEAD} WHERE key = ?1");
    optional(connection, &sql, [key], of_row)
}

/// Steps from key to key, and over all that a prefix stands for.
fn list(connection: &Connection, listing: &Listing) -> rusqlite::Result<Page> {
    let mut page = Page::default();
    let delimiter = listing.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty());
    // The next key is at least this one.
    let mut from = match &listing.after {
        Some(after) if delimiter.is_some_and(|delimiter| after.ends_with(delimiter)) => behind(after),
        // No key is a key with a NUL behind it.
        Some(after) => Some(format!("{after}\0")),
        None => Some(listing.prefix.clone()),
    };
    let sql = format!("{HEAD} WHERE key >= ?1 ORDER BY key LIMIT 1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut last = None;
    while let Some(next) = from.take() {
        let next = if next.as_str() < listing.prefix.as_str() { listing.prefix.clone() } else { next };
        let Some(head) = statement.query_row([&next], of_row).optional()? else { break };
        let Some(rest) = head.key.strip_prefix(&listing.prefix) else { break };
        if page.objects.len() + page.prefixes.len() == listing.limit {
            page.next = last;
            break;
        }
        match delimiter.and_then(|delimiter| Some(rest.find(delimiter)? + delimiter.len())) {
            Some(end) => {
                let prefix = format!("{}{}", listing.prefix, rest.get(..end).unwrap_or(rest));
                from = behind(&prefix);
                last = Some(prefix.clone());
                page.prefixes.push(prefix);
            }
            None => {
                from = Some(format!("{}\0", head.key));
                last = Some(head.key.clone());
                page.objects.push(head);
            }
        }
    }
    Ok(page)
}

/// The first text behind all that start with this one; none where there is none.
fn behind(prefix: &str) -> Option<String> {
    let mut characters: Vec<char> = prefix.chars().collect();
    while let Some(last) = characters.pop() {
        let next = match u32::from(last) {
            0xD7FF => char::from_u32(0xE000),
            code => char::from_u32(code + 1),
        };
        if let Some(next) = next {
            characters.push(next);
            return Some(characters.into_iter().collect());
        }
    }
    None
}

fn of_row(row: &Row<'_>) -> rusqlite::Result<Head> {
    let size: i64 = row.get(1)?;
    Ok(Head {
        key: row.get(0)?,
        size: u64::try_from(size).unwrap_or_default(),
        etag: row.get(2)?,
        content_type: row.get(3)?,
        metadata: row.get(4)?,
    })
}
