//! Memories in a table beside a full-text index (FTS5, <https://sqlite.org/fts5.html>).
//!
//! A text is recalled by its words. Words weigh by how rare they are, and a text that holds less than half of the
//! query's weight is left out: a list of texts that share a common word with the query helps nobody. What agents write
//! never reaches FTS5's query language: words are quoted.

use super::file::StateFile;
use super::rows::{all, optional, query, run};
use crate::sqlite::state_file::Steps;
use crate::state::clock::Clock;
use crate::state::memory::{
    Change, GATE, Memory, MemoryKind, NewMemory, Recalled, Remembered, Sought, essence, normal, query_words,
};
use crate::state::{Outcome, not_found};
use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// `tags` is a sorted JSON array. A memory that is superseded has no words in the index.
pub(super) const STEPS: Steps = &["
    CREATE TABLE memories (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        normal TEXT NOT NULL,
        tags TEXT NOT NULL,
        metadata TEXT,
        created_at INTEGER NOT NULL,
        superseded_by TEXT
    ) STRICT;
    CREATE UNIQUE INDEX memories_same ON memories (normal, kind, tags) WHERE superseded_by IS NULL;
    CREATE VIRTUAL TABLE words USING fts5(
        text, content='memories', content_rowid='seq', tokenize='porter unicode61 remove_diacritics 2'
    );
"];

const MEMORY: &str = "SELECT seq, id, kind, text, tags, metadata FROM memories";

pub(super) struct SqlMemory {
    file: Arc<StateFile>,
    clock: Arc<dyn Clock>,
}

impl SqlMemory {
    pub(super) fn new(file: Arc<StateFile>, clock: Arc<dyn Clock>) -> Self {
        Self { file, clock }
    }
}

#[async_trait]
impl Memory for SqlMemory {
    async fn remember(&self, memory: NewMemory) -> Outcome<Remembered> {
        let now = self.clock.now();
        self.file.write(move |connection| insert(connection, &memory, now)).await
    }

    async fn recall(&self, sought: Sought) -> Outcome<Vec<Recalled>> {
        self.file.read(move |connection| recall(connection, &sought)).await
    }

    async fn delete(&self, id: String) -> Outcome<Vec<Change>> {
        self.file
            .write(move |connection| {
                let sql = "SELECT seq, text, superseded_by IS NULL FROM memories WHERE id = ?1";
                let found = optional(connection, sql, [&id], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, bool>(2)?))
                })?;
                let (seq, text, live) = found.ok_or_else(|| no_memory(&id))?;
                if live {
                    forget_words(connection, seq, &text)?;
                }
                run(connection, "DELETE FROM memories WHERE seq = ?1", [seq])?;
                Ok(vec![Change { id, action: "deleted" }])
            })
            .await
    }

    async fn supersede(
        &self,
        id: String,
        text: String,
        tags: Option<BTreeSet<String>>,
    ) -> Outcome<Vec<Change>> {
        let now = self.clock.now();
        self.file
            .write(move |connection| {
                let sql = format!("{MEMORY} WHERE id = ?1 AND superseded_by IS NULL");
                let old = optional(connection, &sql, [&id], stored)?.ok_or_else(|| no_memory(&id))?;
                // Marked first: the new text may be the old one with other spaces.
                run(connection, "UPDATE memories SET superseded_by = '' WHERE seq = ?1", [old.seq])?;
                forget_words(connection, old.seq, &old.recalled.text)?;
                let new = NewMemory {
                    kind: old.recalled.kind,
                    text,
                    tags: tags.unwrap_or(old.recalled.tags),
                    metadata: old.recalled.metadata,
                };
                let made = insert(connection, &new, now)?;
                run(
                    connection,
                    "UPDATE memories SET superseded_by = ?2 WHERE seq = ?1",
                    params![old.seq, made.id],
                )?;
                Ok(vec![Change { id, action: "superseded" }, Change { id: made.id, action: "remembered" }])
            })
            .await
    }

    async fn consolidate(&self) -> Outcome<Vec<Change>> {
        self.file
            .write(move |connection| {
                let sql = format!("{MEMORY} WHERE superseded_by IS NULL ORDER BY seq DESC");
                let mut newest: HashMap<(MemoryKind, BTreeSet<String>, String), String> = HashMap::new();
                let mut changes = Vec::new();
                for one in all(connection, &sql, [], stored)? {
                    let recalled = one.recalled;
                    let same = (recalled.kind, recalled.tags.clone(), essence(&recalled.text));
                    match newest.get(&same) {
                        None => {
                            newest.insert(same, recalled.id);
                        }
                        Some(winner) => {
                            run(
                                connection,
                                "UPDATE memories SET superseded_by = ?2 WHERE seq = ?1",
                                params![one.seq, winner],
                            )?;
                            forget_words(connection, one.seq, &recalled.text)?;
                            changes.push(Change { id: recalled.id, action: "superseded" });
                        }
                    }
                }
                Ok(changes)
            })
            .await
    }
}

struct Stored {
    seq: i64,
    recalled: Recalled,
}

fn insert(connection: &Connection, memory: &NewMemory, now: i64) -> Outcome<Remembered> {
    let tags = serde_json::json!(memory.tags).to_string();
    let normal = normal(&memory.text);
    let known = optional(
        connection,
        "SELECT id FROM memories WHERE normal = ?1 AND kind = ?2 AND tags = ?3 AND superseded_by IS NULL",
        params![normal, memory.kind.name(), tags],
        |row| row.get(0),
    )?;
    if let Some(id) = known {
        return Ok(Remembered { id, deduplicated: true });
    }
    let id = crate::state::catalog::new_id();
    let seq: i64 = query(
        connection,
        "INSERT INTO memories (id, kind, text, normal, tags, metadata, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING seq",
        params![id, memory.kind.name(), memory.text, normal, tags, memory.metadata, now],
        |row| row.get(0),
    )?;
    run(connection, "INSERT INTO words (rowid, text) VALUES (?1, ?2)", params![seq, memory.text])?;
    Ok(Remembered { id, deduplicated: false })
}

/// The index keeps no text of its own: it must be told the text that it forgets.
fn forget_words(connection: &Connection, seq: i64, text: &str) -> Outcome<()> {
    run(connection, "INSERT INTO words (words, rowid, text) VALUES ('delete', ?1, ?2)", params![seq, text])?;
    Ok(())
}

fn recall(connection: &Connection, sought: &Sought) -> Outcome<Vec<Recalled>> {
    let words = query_words(&sought.query);
    let live: i64 =
        query(connection, "SELECT count(*) FROM memories WHERE superseded_by IS NULL", [], |row| row.get(0))?;
    let found = by_words(connection, &words, live)?;
    // The index knows whole words; in languages written without spaces a word is a part of one.
    let found = if found.is_empty() { by_parts(connection, &words)? } else { found };
    let sql = format!("{MEMORY} WHERE seq = ?1");
    let mut recalled = Vec::new();
    for (seq, score) in found {
        if recalled.len() == sought.limit {
            break;
        }
        let mut memory = query(connection, &sql, [seq], stored)?.recalled;
        let of_kind = sought.kinds.is_empty() || sought.kinds.contains(&memory.kind);
        if of_kind && sought.tags.is_subset(&memory.tags) {
            memory.score = score;
            recalled.push(memory);
        }
    }
    Ok(recalled)
}

/// Memories by the weight of the query's words in them, as BM25 ranks them.
fn by_words(connection: &Connection, words: &[String], live: i64) -> Outcome<Vec<(i64, f64)>> {
    let mut weights = Vec::new();
    let mut holders: Vec<HashSet<i64>> = Vec::new();
    for word in words {
        let rows = all(connection, "SELECT rowid FROM words WHERE words MATCH ?1", [quoted(word)], |row| {
            row.get(0)
        })?;
        let holder: HashSet<i64> = rows.into_iter().collect();
        let (n, df) = (live as f64, holder.len() as f64);
        weights.push((1.0 + (n - df + 0.5).max(0.0) / (df + 0.5)).ln());
        holders.push(holder);
    }
    let whole: f64 = weights.iter().sum();
    if words.is_empty() || holders.iter().all(HashSet::is_empty) {
        return Ok(Vec::new());
    }
    let any = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" OR ");
    let ranked = all(
        connection,
        "SELECT rowid, rank FROM words WHERE words MATCH ?1 ORDER BY rank, rowid DESC",
        [any],
        |row| Ok((row.get::<_, i64>(0)?, row.get::<_, f64>(1)?)),
    )?;
    let held = |seq: &i64| -> f64 {
        holders
            .iter()
            .zip(&weights)
            .filter(|(holder, _)| holder.contains(seq))
            .map(|(_, weight)| weight)
            .sum()
    };
    // FTS5's rank is below zero, the best the lowest.
    Ok(ranked
        .into_iter()
        .filter(|(seq, _)| held(seq) >= whole * GATE)
        .map(|(seq, rank)| (seq, -rank))
        .collect())
}

/// Memories that hold every word as a part of their text, newest first.
fn by_parts(connection: &Connection, words: &[String]) -> Outcome<Vec<(i64, f64)>> {
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    let sql = "SELECT seq, text FROM memories WHERE superseded_by IS NULL ORDER BY seq DESC";
    for (seq, text) in all(connection, sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?
    {
        let text = text.to_lowercase();
        if words.iter().all(|word| text.contains(word.as_str())) {
            found.push((seq, 0.0));
        }
    }
    Ok(found)
}

/// A word as FTS5 takes it literally.
fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}

fn no_memory(id: &str) -> crate::error::ToolError {
    not_found(format!(
        "there is no memory `{}` that is still recalled; memory_recall gives ids",
        crate::render::one_line(id, 40)
    ))
}

fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    let damaged = |column, what: &str| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, what.into())
    };
    let kind: String = row.get(2)?;
    let tags: String = row.get(4)?;
    Ok(Stored {
        seq: row.get(0)?,
        recalled: Recalled {
            id: row.get(1)?,
            kind: MemoryKind::from_name(&kind).ok_or_else(|| damaged(2, "unknown kind of memory"))?,
            text: row.get(3)?,
            tags: serde_json::from_str(&tags).map_err(|_| damaged(4, "damaged tags"))?,
            metadata: row.get(5)?,
            score: 0.0,
        },
    })
}
