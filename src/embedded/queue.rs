//! Jobs in one table.
//!
//! `visible_at` is both when a job can be leased first and when its lease runs out: what is ready is what is visible.
//! A dead job stands in the queue `<queue>/dead` and remembers where it came from.

use super::file::StateFile;
use super::rows::{all, optional, query, run};
use crate::sqlite::state_file::Steps;
use crate::state::Outcome;
use crate::state::clock::Clock;
use crate::state::queue::{
    DEAD, DEDUPE_WINDOW, EXPIRED, LONGEST_LEASE, Leased, MOST_ATTEMPTS, NewJob, Queue, Sent, Settle, Settled,
    State, backoff, lease_lost,
};
use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use std::sync::Arc;
use tokio::sync::watch;

/// `errors` is a JSON array of texts. `dedupe` outlives its job, and keeps the window.
pub(super) const STEPS: Steps = &[
    "
    CREATE TABLE jobs (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        queue TEXT NOT NULL,
        body TEXT NOT NULL,
        priority INTEGER NOT NULL,
        visible_at INTEGER NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        token TEXT,
        leased_at INTEGER,
        lease INTEGER,
        errors TEXT NOT NULL DEFAULT '[]',
        origin TEXT
    ) STRICT;
    CREATE INDEX jobs_order ON jobs (queue, priority DESC, seq, visible_at);
    CREATE INDEX jobs_visible ON jobs (queue, visible_at);
    CREATE TABLE dedupe (
        queue TEXT NOT NULL,
        key TEXT NOT NULL,
        job TEXT NOT NULL,
        until INTEGER NOT NULL,
        PRIMARY KEY (queue, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX dedupe_until ON dedupe (until);
",
    // The jobs of `LAST_LEASE`.
    "CREATE INDEX jobs_last ON jobs (queue, visible_at) WHERE token IS NOT NULL AND attempts >= 5",
];

/// Whether the last lease of a job is on or has run out, of which there is an index.
const LAST_LEASE: &str = "token IS NOT NULL AND attempts >= 5";

/// Keys that a send forgets at most.
const FORGOTTEN_AT_ONCE: i64 = 100;

pub(super) struct SqlQueue {
    file: Arc<StateFile>,
    clock: Arc<dyn Clock>,
}

impl SqlQueue {
    pub(super) fn new(file: Arc<StateFile>, clock: Arc<dyn Clock>) -> Self {
        Self { file, clock }
    }
}

#[async_trait]
impl Queue for SqlQueue {
    async fn send(&self, job: NewJob) -> Outcome<Sent> {
        let now = self.clock.now();
        let id = crate::state::catalog::new_id();
        let sent = self.file.write(move |connection| insert(connection, id, job, now)).await?;
        self.file.changed();
        Ok(sent)
    }

    async fn claim(&self, queue: String, most: u64, lease: i64) -> Outcome<Vec<Leased>> {
        let now = self.clock.now();
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        // Whoever finds nothing must not make everybody else wait for the writer.
        let ready = {
            let queue = queue.clone();
            self.file.read(move |connection| is_ready(connection, &queue, now)).await?
        };
        if !ready {
            return Ok(Vec::new());
        }
        self.file.write(move |connection| lease_some(connection, &queue, most, lease, now)).await
    }

    async fn settle(
        &self,
        queue: String,
        id: String,
        token: String,
        how: Settle,
        error: Option<String>,
    ) -> Outcome<Settled> {
        let now = self.clock.now();
        let settled = self
            .file
            .write(move |connection| {
                let held = held(connection, &queue, &id, &token)?.ok_or_else(|| lease_lost(&id))?;
                if let Some(error) = error {
                    run(
                        connection,
                        "UPDATE jobs SET errors = json_insert(errors, '$[#]', ?2) WHERE seq = ?1",
                        params![held.seq, error],
                    )?;
                }
                let (state, at) = settle(connection, &queue, &held, &how, now)?;
                Ok(Settled { state, at, late: held.expires_at <= now })
            })
            .await?;
        self.file.changed();
        Ok(settled)
    }

    async fn next_visible(&self, queue: String) -> Outcome<Option<i64>> {
        self.file
            .read(move |connection| {
                let earliest = |queue: &str, which: &str| -> Outcome<Option<i64>> {
                    let sql = format!("SELECT min(visible_at) FROM jobs WHERE queue = ?1{which}");
                    query(connection, &sql, params![queue], |row| row.get(0))
                };
                let own = earliest(&queue, "")?;
                let dying = match source(&queue) {
                    Some(source) => earliest(source, &format!(" AND {LAST_LEASE}"))?,
                    None => None,
                };
                Ok(own.into_iter().chain(dying).min())
            })
            .await
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.file.changes()
    }
}

/// In a copy: whoever holds a lease holds it in the original, so the jobs are ready here, as if they had not been leased.
pub(super) fn release(connection: &Connection, now: i64) -> Outcome<()> {
    run(
        connection,
        "UPDATE jobs SET token = NULL, visible_at = ?1, attempts = max(attempts - 1, 0)
         WHERE token IS NOT NULL AND visible_at > ?1",
        params![now],
    )?;
    // What is left with a token has a lease that ran out.
    run(
        connection,
        "UPDATE jobs SET token = NULL, errors = iif(queue GLOB '*/dead', errors, json_insert(errors, '$[#]', ?2))
         WHERE token IS NOT NULL AND attempts < ?1",
        params![MOST_ATTEMPTS, EXPIRED],
    )?;
    Ok(())
}

/// A job whose lease the caller holds.
struct Held {
    seq: i64,
    attempts: u32,
    expires_at: i64,
    leased_at: i64,
    lease: i64,
    origin: Option<String>,
}

fn insert(connection: &Connection, id: String, job: NewJob, now: i64) -> Outcome<Sent> {
    run(
        connection,
        "DELETE FROM dedupe WHERE (queue, key) IN (SELECT queue, key FROM dedupe WHERE until <= ?1
         AND NOT EXISTS (SELECT 1 FROM jobs WHERE id = dedupe.job AND queue = dedupe.queue) LIMIT ?2)",
        params![now, FORGOTTEN_AT_ONCE],
    )?;
    if let Some(key) = &job.dedupe_key {
        let known = optional(
            connection,
            "SELECT job FROM dedupe WHERE queue = ?1 AND key = ?2 AND (until > ?3
             OR EXISTS (SELECT 1 FROM jobs WHERE id = dedupe.job AND queue = dedupe.queue))",
            params![job.queue, key, now],
            |row| row.get(0),
        )?;
        if let Some(id) = known {
            return Ok(Sent { id, deduplicated: true });
        }
        run(
            connection,
            "INSERT OR REPLACE INTO dedupe (queue, key, job, until) VALUES (?1, ?2, ?3, ?4)",
            params![job.queue, key, id, now + DEDUPE_WINDOW],
        )?;
    }
    run(
        connection,
        "INSERT INTO jobs (id, queue, body, priority, visible_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![id, job.queue, job.body, job.priority, job.visible_at],
    )?;
    Ok(Sent { id, deduplicated: false })
}

fn is_ready(connection: &Connection, queue: &str, now: i64) -> Outcome<bool> {
    let is_there = |queue: &str, which: &str| -> Outcome<bool> {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM jobs WHERE queue = ?1 AND visible_at <= ?2{which})");
        query(connection, &sql, params![queue, now], |row| row.get(0))
    };
    let dying = || source(queue).map_or(Ok(false), |source| is_there(source, &format!(" AND {LAST_LEASE}")));
    Ok(is_there(queue, "")? || dying()?)
}

/// The queue that a queue of dead letters gets them from; none for another one. The dead do not die again.
fn source(queue: &str) -> Option<&str> {
    queue.strip_suffix(DEAD).filter(|source| !source.ends_with(DEAD))
}

fn lease_some(connection: &Connection, queue: &str, most: i64, lease: i64, now: i64) -> Outcome<Vec<Leased>> {
    let is_dead = queue.ends_with(DEAD);
    if let Some(dying) = if is_dead { source(queue) } else { Some(queue) } {
        bury_the_worn_out(connection, dying, now)?;
    }
    let found = all(
        connection,
        "SELECT seq FROM jobs WHERE queue = ?1 AND visible_at <= ?2 ORDER BY priority DESC, seq LIMIT ?3",
        params![queue, now, most],
        |row| row.get(0),
    )?;
    let one = |seq: i64| {
        query(
            connection,
            // Whoever had it before let the lease run out. Of a dead letter that is no failure.
            "UPDATE jobs SET token = ?2, attempts = attempts + 1, visible_at = ?3, leased_at = ?4, lease = ?5,
             errors = iif(token IS NULL OR ?6, errors, json_insert(errors, '$[#]', ?7))
             WHERE seq = ?1 RETURNING id, body, attempts, priority, token, visible_at, errors",
            params![seq, uuid::Uuid::new_v4().simple().to_string(), now + lease, now, lease, is_dead, EXPIRED],
            leased,
        )
    };
    found.into_iter().map(one).collect()
}

/// A lease that ran out is a failure; the last one ends a job.
fn bury_the_worn_out(connection: &Connection, queue: &str, now: i64) -> Outcome<()> {
    let sql = format!(
        "UPDATE jobs SET queue = queue || ?3, origin = queue, token = NULL,
         errors = json_insert(errors, '$[#]', ?4) WHERE queue = ?1 AND visible_at <= ?2 AND {LAST_LEASE}"
    );
    run(connection, &sql, params![queue, now, DEAD, EXPIRED])?;
    Ok(())
}

fn held(connection: &Connection, queue: &str, id: &str, token: &str) -> Outcome<Option<Held>> {
    let sql = "SELECT seq, attempts, visible_at, leased_at, lease, origin FROM jobs
               WHERE id = ?1 AND queue = ?2 AND token = ?3";
    optional(connection, sql, params![id, queue, token], |row| {
        Ok(Held {
            seq: row.get(0)?,
            attempts: row.get(1)?,
            expires_at: row.get(2)?,
            leased_at: row.get(3)?,
            lease: row.get(4)?,
            origin: row.get(5)?,
        })
    })
}

fn settle(
    connection: &Connection,
    queue: &str,
    held: &Held,
    how: &Settle,
    now: i64,
) -> Outcome<(State, Option<i64>)> {
    let again = |at: i64| {
        run(
            connection,
            "UPDATE jobs SET token = NULL, visible_at = ?2 WHERE seq = ?1",
            params![held.seq, at],
        )?;
        Ok((State::Ready, Some(at)))
    };
    let is_dead = queue.ends_with(DEAD);
    let last = held.attempts >= MOST_ATTEMPTS && !is_dead;
    match how {
        Settle::Ack => {
            run(connection, "DELETE FROM jobs WHERE seq = ?1", params![held.seq])?;
            Ok((State::Acked, None))
        }
        Settle::Heartbeat => {
            let until = (now + held.lease).min(held.leased_at + LONGEST_LEASE);
            run(connection, "UPDATE jobs SET visible_at = ?2 WHERE seq = ?1", params![held.seq, until])?;
            Ok((State::Leased, Some(until)))
        }
        Settle::Retry(pause) if is_dead => {
            let origin = held.origin.as_deref().unwrap_or_else(|| queue.trim_end_matches(DEAD));
            run(
                connection,
                "UPDATE jobs SET queue = ?2, origin = NULL, token = NULL, attempts = 0, visible_at = ?3 WHERE seq = ?1",
                params![held.seq, origin, now + pause],
            )?;
            Ok((State::Ready, Some(now + pause)))
        }
        Settle::Retry(pause) if !last => again(now + pause),
        Settle::Fail if is_dead => again(now),
        Settle::Fail if !last => again(now + backoff(held.attempts, jitter())),
        Settle::Dead if is_dead => again(now).map(|(_, at)| (State::Dead, at)),
        Settle::Retry(_) | Settle::Fail | Settle::Dead => {
            run(
                connection,
                "UPDATE jobs SET queue = queue || ?2, origin = queue, token = NULL, visible_at = ?3 WHERE seq = ?1",
                params![held.seq, DEAD, now],
            )?;
            Ok((State::Dead, None))
        }
    }
}

/// 0 to 1, at random.
fn jitter() -> f64 {
    f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX)
}

fn leased(row: &Row<'_>) -> rusqlite::Result<Leased> {
    let errors: String = row.get(6)?;
    Ok(Leased {
        id: row.get(0)?,
        body: row.get(1)?,
        attempts: row.get(2)?,
        priority: row.get(3)?,
        token: row.get(4)?,
        expires_at: row.get(5)?,
        errors: serde_json::from_str(&errors).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lease_is_that_of_the_last_attempt() {
        assert!(LAST_LEASE.ends_with(&format!(">= {MOST_ATTEMPTS}")));
        assert!(STEPS.concat().contains(LAST_LEASE), "else the index is of no use");
        let rows = [("q", None), ("q/dead", Some("q")), ("q/dead/dead", None), ("/dead", Some(""))];
        for (queue, expected) in rows {
            assert_eq!(source(queue), expected, "{queue}");
        }
    }
}
