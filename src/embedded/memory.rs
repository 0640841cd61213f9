//! Memories in a table beside a full-text index (FTS5, <https://sqlite.org/fts5.html>) and, where there is a model, a
//! table of vectors.
//!
//! A text is recalled by its words. Words weigh by how rare they are, and a text that holds less than half of the
//! query's weight is left out: a list of texts that share a common word with the query helps nobody. What agents write
//! never reaches FTS5's query language: words are quoted. How meaning comes in is in `memory_vectors`.

use super::file::StateFile;
use super::memory_vectors::{self as vectors, Meaning};
use super::rows::{all, optional, query, run};
use crate::sqlite::state_file::Steps;
use crate::state::clock::Clock;
use crate::state::memory::{
    Change, Embedder, Found, GATE, Memory, MemoryKind, NewMemory, Recalled, Remembered, SAME, Sought,
    essence, normal, query_words,
};
use crate::state::{Outcome, not_found};
use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// `tags` is a sorted JSON array. A memory that is superseded has no words in the index and no vector.
pub(super) const STEPS: Steps = &[
    "
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
",
    vectors::STEP,
];

const MEMORY: &str = "SELECT seq, id, kind, text, tags, metadata FROM memories";

pub(super) struct SqlMemory {
    file: Arc<StateFile>,
    clock: Arc<dyn Clock>,
    embedder: Option<Arc<dyn Embedder>>,
}

impl SqlMemory {
    pub(super) fn new(
        file: Arc<StateFile>,
        clock: Arc<dyn Clock>,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Self {
        Self { file, clock, embedder }
    }
}

#[async_trait]
impl Memory for SqlMemory {
    async fn remember(&self, memory: NewMemory) -> Outcome<Remembered> {
        let now = self.clock.now();
        let meaning = vectors::meaning(self.embedder.as_ref(), &memory.text).await;
        self.file.write(move |connection| insert(connection, &memory, meaning.as_ref(), now)).await
    }

    async fn recall(&self, sought: Sought) -> Outcome<Found> {
        let meaning = match &self.embedder {
            Some(embedder) => {
                vectors::catch_up(&self.file, embedder, vectors::MOST_BEFORE_A_RECALL).await?;
                vectors::meaning(Some(embedder), &sought.query).await
            }
            None => None,
        };
        self.file.read(move |connection| recall(connection, &sought, meaning.as_ref())).await
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
                    unlist(connection, seq, &text)?;
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
        let meaning = vectors::meaning(self.embedder.as_ref(), &text).await;
        self.file
            .write(move |connection| {
                let sql = format!("{MEMORY} WHERE id = ?1 AND superseded_by IS NULL");
                let old = optional(connection, &sql, [&id], stored)?.ok_or_else(|| no_memory(&id))?;
                // Marked first: the new text may be the old one with other spaces.
                run(connection, "UPDATE memories SET superseded_by = '' WHERE seq = ?1", [old.seq])?;
                unlist(connection, old.seq, &old.recalled.text)?;
                let new = NewMemory {
                    kind: old.recalled.kind,
                    text,
                    tags: tags.unwrap_or(old.recalled.tags),
                    metadata: old.recalled.metadata,
                };
                let made = insert(connection, &new, meaning.as_ref(), now)?;
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
        let model = match &self.embedder {
            Some(embedder) => {
                vectors::catch_up(&self.file, embedder, usize::MAX).await?;
                Some(embedder.model().to_owned())
            }
            None => None,
        };
        let same = self.file.read(move |connection| same(connection, model.as_deref())).await?;
        self.file
            .write(move |connection| {
                let mut changes = Vec::new();
                for (old, new) in same {
                    // A text is never rewritten, so all that may have changed meanwhile is whether both are still there.
                    let sql =
                        "UPDATE memories SET superseded_by = ?2 WHERE seq = ?1 AND superseded_by IS NULL
                         AND EXISTS (SELECT 1 FROM memories WHERE id = ?2 AND superseded_by IS NULL)";
                    if run(connection, sql, params![old.seq, new])? == 1 {
                        unlist(connection, old.seq, &old.recalled.text)?;
                        changes.push(Change { id: old.recalled.id, action: "superseded" });
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

/// The memories that say the same as a later one, and the id of the latest of those.
fn same(connection: &Connection, model: Option<&str>) -> Outcome<Vec<(Stored, String)>> {
    type Winners = Vec<(String, String, Option<Vec<f32>>)>;
    let vectors = model.map(|model| vectors::all_of(connection, model)).transpose()?.unwrap_or_default();
    let sql = format!("{MEMORY} WHERE superseded_by IS NULL ORDER BY seq DESC");
    let mut newest: HashMap<(MemoryKind, BTreeSet<String>), Winners> = HashMap::new();
    let mut found = Vec::new();
    for one in all(connection, &sql, [], stored)? {
        let winners = newest.entry((one.recalled.kind, one.recalled.tags.clone())).or_default();
        let (essence, vector) = (essence(&one.recalled.text), vectors.get(&one.seq));
        let winner = winners.iter().find(|(_, said, meant)| {
            *said == essence || vector.zip(meant.as_ref()).is_some_and(|(a, b)| vectors::alike(a, b) >= SAME)
        });
        match winner {
            Some((id, ..)) => found.push((one, id.clone())),
            None => winners.push((one.recalled.id, essence, vector.cloned())),
        }
    }
    Ok(found)
}

fn insert(
    connection: &Connection,
    memory: &NewMemory,
    meaning: Option<&Meaning>,
    now: i64,
) -> Outcome<Remembered> {
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
    if let Some(meaning) = meaning {
        vectors::put(connection, seq, meaning)?;
    }
    Ok(Remembered { id, deduplicated: false })
}

/// Takes a memory out of what is recalled. The index keeps no text of its own: it must be told the text that it forgets.
fn unlist(connection: &Connection, seq: i64, text: &str) -> Outcome<()> {
    run(connection, "INSERT INTO words (words, rowid, text) VALUES ('delete', ?1, ?2)", params![seq, text])?;
    vectors::forget(connection, seq)
}

fn recall(connection: &Connection, sought: &Sought, meaning: Option<&Meaning>) -> Outcome<Found> {
    let words = query_words(&sought.query);
    let live: i64 =
        query(connection, "SELECT count(*) FROM memories WHERE superseded_by IS NULL", [], |row| row.get(0))?;
    let found = by_words(connection, &words, live)?;
    // The index knows whole words; in languages written without spaces a word is a part of one.
    let found = if found.is_empty() { by_parts(connection, &words)? } else { found };
    let found = match meaning {
        Some(meaning) => vectors::fused(&found, &vectors::near(connection, meaning)?),
        None => found,
    };
    let sql = format!("{MEMORY} WHERE seq = ?1");
    let mut memories = Vec::new();
    for (seq, score) in found {
        if memories.len() == sought.limit {
            break;
        }
        let mut memory = query(connection, &sql, [seq], stored)?.recalled;
        let of_kind = sought.kinds.is_empty() || sought.kinds.contains(&memory.kind);
        if of_kind && sought.tags.is_subset(&memory.tags) {
            memory.score = score;
            memories.push(memory);
        }
    }
    Ok(Found { hybrid: meaning.is_some(), memories })
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
