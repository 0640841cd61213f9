//! What texts mean, as vectors beside the memories.
//!
//! A vector is kept with the name of the model that made it; those of another model are made anew when they are needed.
//! All vectors of a model are compared with the query's, one by one: for the thousands of memories that an agent has,
//! that takes a few milliseconds, finds exactly the nearest, and needs no index that could be wrong.

use super::file::StateFile;
use super::rows::{all, run};
use crate::state::Outcome;
use crate::state::memory::{Embedder, NEAR};
use rusqlite::{Connection, params};
use std::collections::HashMap;
use std::sync::Arc;

pub(super) const STEP: &str = "
    CREATE TABLE vectors (
        seq INTEGER PRIMARY KEY REFERENCES memories(seq),
        model TEXT NOT NULL,
        vector BLOB NOT NULL
    ) STRICT;
";

/// Texts without a vector that a recall waits for; what is left waits for the next one.
pub(super) const MOST_BEFORE_A_RECALL: usize = 32;
/// Texts that are given to the model at once.
const AT_ONCE: usize = 32;
/// What the rank in a list counts less, so that the first places do not decide everything (reciprocal rank fusion).
const RANK_WEIGHT: f64 = 60.0;

/// A text's vector, and whose it is.
pub(super) struct Meaning {
    model: String,
    vector: Vec<f32>,
}

/// The meaning of a text; none without a model, or when it fails: words are still there then.
pub(super) async fn meaning(embedder: Option<&Arc<dyn Embedder>>, text: &str) -> Option<Meaning> {
    let embedder = embedder?;
    let vector = vectors_of(embedder, vec![text.to_owned()]).await?.into_iter().next()?;
    Some(Meaning { model: embedder.model().to_owned(), vector })
}

/// Makes vectors of up to `most` texts that have none of this model.
pub(super) async fn catch_up(
    file: &Arc<StateFile>,
    embedder: &Arc<dyn Embedder>,
    most: usize,
) -> Outcome<()> {
    let mut left = most;
    while left > 0 {
        let (model, limit) = (embedder.model().to_owned(), left.min(AT_ONCE));
        let missing: Vec<(i64, String)> = file
            .read(move |connection| {
                let sql = "SELECT seq, text FROM memories WHERE superseded_by IS NULL
                     AND NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.seq = memories.seq AND model = ?1)
                     ORDER BY seq DESC LIMIT ?2";
                let limit = i64::try_from(limit).unwrap_or(i64::MAX);
                all(connection, sql, params![model, limit], |row| Ok((row.get(0)?, row.get(1)?)))
            })
            .await?;
        if missing.is_empty() {
            return Ok(());
        }
        left -= missing.len().min(left);
        let (seqs, texts): (Vec<i64>, Vec<String>) = missing.into_iter().unzip();
        let Some(vectors) = vectors_of(embedder, texts).await else { return Ok(()) };
        let model = embedder.model().to_owned();
        file.write(move |connection| {
            for (seq, vector) in seqs.into_iter().zip(vectors) {
                let live = "SELECT 1 FROM memories WHERE seq = ?1 AND superseded_by IS NULL";
                if !all(connection, live, [seq], |_| Ok(()))?.is_empty() {
                    put(connection, seq, &Meaning { model: model.clone(), vector })?;
                }
            }
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// Keeps a memory's vector.
pub(super) fn put(connection: &Connection, seq: i64, meaning: &Meaning) -> Outcome<()> {
    let bytes: Vec<u8> = meaning.vector.iter().flat_map(|part| part.to_le_bytes()).collect();
    let sql = "INSERT INTO vectors (seq, model, vector) VALUES (?1, ?2, ?3)
         ON CONFLICT (seq) DO UPDATE SET model = excluded.model, vector = excluded.vector";
    run(connection, sql, params![seq, meaning.model, bytes]).map(|_| ())
}

/// Forgets a memory's vector.
pub(super) fn forget(connection: &Connection, seq: i64) -> Outcome<()> {
    run(connection, "DELETE FROM vectors WHERE seq = ?1", [seq]).map(|_| ())
}

/// The vectors of a model, by memory.
pub(super) fn all_of(connection: &Connection, model: &str) -> Outcome<HashMap<i64, Vec<f32>>> {
    let sql = "SELECT seq, vector FROM vectors WHERE model = ?1";
    let rows = all(connection, sql, [model], |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?)))?;
    Ok(rows.into_iter().map(|(seq, bytes)| (seq, numbers(&bytes).collect())).collect())
}

/// The memories whose vectors are near, the nearest first.
pub(super) fn near(connection: &Connection, meaning: &Meaning) -> Outcome<Vec<i64>> {
    let sql = "SELECT seq, vector FROM vectors WHERE model = ?1";
    let alike_to = |row: &rusqlite::Row<'_>| {
        let bytes = row.get_ref(1)?.as_blob()?;
        let alike: f32 = numbers(bytes).zip(&meaning.vector).map(|(a, b)| a * b).sum();
        Ok((row.get::<_, i64>(0)?, alike))
    };
    let mut found = all(connection, sql, [&meaning.model], alike_to)?;
    found.retain(|(_, alike)| *alike >= NEAR);
    found.sort_by(|(a_seq, a), (b_seq, b)| b.total_cmp(a).then(b_seq.cmp(a_seq)));
    Ok(found.into_iter().map(|(seq, _)| seq).collect())
}

/// Two ranked lists as one: what stands far in front in either, or in both, comes first.
pub(super) fn fused(by_words: &[(i64, f64)], by_meaning: &[i64]) -> Vec<(i64, f64)> {
    let mut scores: HashMap<i64, f64> = HashMap::new();
    let lists = [by_words.iter().map(|(seq, _)| *seq).collect(), by_meaning.to_vec()];
    for list in lists {
        for (rank, seq) in list.into_iter().enumerate() {
            *scores.entry(seq).or_default() += 1.0 / (RANK_WEIGHT + 1.0 + rank as f64);
        }
    }
    let mut fused: Vec<(i64, f64)> = scores.into_iter().collect();
    fused.sort_by(|(a_seq, a), (b_seq, b)| b.total_cmp(a).then(b_seq.cmp(a_seq)));
    fused
}

/// How alike two vectors of length 1 are: their cosine.
pub(super) fn alike(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.as_chunks::<4>().0.iter().map(|part| f32::from_le_bytes(*part))
}

async fn vectors_of(embedder: &Arc<dyn Embedder>, texts: Vec<String>) -> Option<Vec<Vec<f32>>> {
    let (model, count) = (Arc::clone(embedder), texts.len());
    match tokio::task::spawn_blocking(move || model.embed(&texts)).await {
        Ok(Ok(vectors)) if vectors.len() == count => Some(vectors),
        Ok(Ok(_)) => None,
        Ok(Err(error)) => {
            tracing::warn!("{}", error.message);
            None
        }
        Err(_) => None,
    }
}
