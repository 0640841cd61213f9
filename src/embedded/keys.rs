//! Keys in the catalog's file.

use super::catalog::SqlCatalog;
use super::rows::{all, optional, query, run, wrong};
use crate::state::catalog::Group;
use crate::state::keys::{Key, Keys, Scope, Stored, fill};
use crate::state::signing::SECRET_BYTES;
use crate::state::{Outcome, not_found};
use async_trait::async_trait;
use rusqlite::types::Type;
use rusqlite::{Row, params};

/// `tools` is NULL for all, `read` for those that read, else a JSON array of names.
pub(super) const STEP: &str = "
    CREATE TABLE keys (
        id TEXT PRIMARY KEY NOT NULL,
        group_id TEXT NOT NULL REFERENCES groups(id),
        name TEXT,
        hash BLOB NOT NULL,
        tools TEXT,
        created_at INTEGER NOT NULL,
        expires_at INTEGER,
        revoked_at INTEGER
    ) STRICT, WITHOUT ROWID;
";

/// One row.
pub(super) const SIGNING_STEP: &str = "
    CREATE TABLE signing (
        one INTEGER PRIMARY KEY NOT NULL CHECK (one = 1),
        secret BLOB NOT NULL
    ) STRICT;
";

const READ: &str = "read";
const KEY: &str =
    "SELECT keys.id, group_id, groups.name, keys.name, tools, keys.created_at, expires_at, revoked_at, hash
    FROM keys JOIN groups ON groups.id = group_id";

#[async_trait]
impl Keys for SqlCatalog {
    async fn add(&self, stored: Stored) -> Outcome<()> {
        let Stored { key, hash } = stored;
        let tools = match key.scope {
            Scope::All => None,
            Scope::ReadOnly => Some(READ.to_owned()),
            Scope::Tools(names) => Some(serde_json::Value::from(names).to_string()),
        };
        self.file
            .write(move |connection| {
                run(
                    connection,
                    "INSERT INTO keys (id, group_id, name, hash, tools, created_at, expires_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    params![key.id, key.group.id, key.name, hash, tools, key.created_at, key.expires_at],
                )
                .map(drop)
            })
            .await
    }

    async fn find(&self, id: &str) -> Outcome<Option<Stored>> {
        let id = id.to_owned();
        let find = move |connection: &_| {
            optional(connection, &format!("{KEY} WHERE keys.id = ?1"), [&id], |row| {
                let hash = row.get(8)?;
                Ok(Stored { key: of_row(row)?, hash })
            })
        };
        self.file.read(find).await
    }

    async fn list(&self, group: Option<&Group>) -> Outcome<Vec<Key>> {
        let group = group.map(|group| group.id.clone());
        let sql = format!("{KEY} WHERE ?1 IS NULL OR group_id = ?1 ORDER BY keys.id");
        self.file.read(move |connection| all(connection, &sql, [&group], of_row)).await
    }

    async fn revoke(&self, id: &str) -> Outcome<bool> {
        let (id, now) = (id.to_owned(), self.clock.now());
        self.file
            .write(move |connection| {
                let revoke = "UPDATE keys SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL";
                let changed = run(connection, revoke, params![id, now])?;
                let there = || connection.prepare_cached("SELECT 1 FROM keys WHERE id = ?1")?.exists([&id]);
                if changed == 0 && !there().map_err(wrong)? {
                    return Err(not_found(format!("there is no key `{id}`")));
                }
                Ok(changed > 0)
            })
            .await
    }

    async fn signing_secret(&self) -> Outcome<[u8; SECRET_BYTES]> {
        const SECRET: &str = "SELECT secret FROM signing";
        let there = self.file.read(|connection| optional(connection, SECRET, [], |row| row.get(0))).await?;
        if let Some(secret) = there {
            return Ok(secret);
        }
        let mut made = [0; SECRET_BYTES];
        fill(&mut made)?;
        self.file
            .write(move |connection| {
                // Another process may have been first.
                run(connection, "INSERT OR IGNORE INTO signing (one, secret) VALUES (1, ?1)", [made])?;
                query(connection, SECRET, [], |row| row.get(0))
            })
            .await
    }
}

fn of_row(row: &Row<'_>) -> rusqlite::Result<Key> {
    let tools: Option<String> = row.get(4)?;
    let scope = match tools.as_deref() {
        None => Scope::All,
        Some(READ) => Scope::ReadOnly,
        // What cannot be read allows nothing.
        Some(names) => Scope::Tools(
            serde_json::from_str(names)
                .map_err(|error| rusqlite::Error::FromSqlConversionFailure(4, Type::Text, error.into()))?,
        ),
    };
    Ok(Key {
        id: row.get(0)?,
        group: Group { id: row.get(1)?, name: row.get(2)? },
        name: row.get(3)?,
        scope,
        created_at: row.get(5)?,
        expires_at: row.get(6)?,
        revoked_at: row.get(7)?,
    })
}
