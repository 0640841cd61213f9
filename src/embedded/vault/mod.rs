//! Secrets in one file: sealed values, and grants with a stamp each.
//!
//! Nothing of it is kept in memory: a person's commands write the same file while a server runs. What the file
//! holds is worth nothing without the key of `key`.
//!
//! # Layout
//!
//! - `key`: the key of the data folder, from its file or the environment
//! - `seal`: values and stamps under that key; pure

mod key;
mod seal;

pub(super) use key::KeySource;

use super::file::StateFile;
use super::rows::{all, optional, query, run};
use crate::error::{ErrorCode, ToolError};
use crate::sqlite::state_file::Steps;
use crate::state::clock::Clock;
use crate::state::vault::grant::Grant;
use crate::state::vault::{Entry, MOST_GRANTS, Numbered, SecretText, Vault, check_secret, no_secret};
use crate::state::{Outcome, not_found};
use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use seal::{Place, Sealed, Sealer};
use std::sync::Arc;

/// The id belongs to the file and goes with its copies, so that what is sealed here can be opened in a fork. Of a
/// deleted secret the version stays: none is given twice, so that nothing sealed before fits into its place.
pub(super) const STEPS: Steps = &["
    CREATE TABLE vault (one INTEGER PRIMARY KEY CHECK (one = 1), id BLOB NOT NULL) STRICT;
    INSERT INTO vault VALUES (1, randomblob(16));
    CREATE TABLE secrets (
        name TEXT PRIMARY KEY NOT NULL,
        version INTEGER NOT NULL,
        last_grant INTEGER NOT NULL DEFAULT 0,
        sealed_by BLOB,
        sealed_key BLOB,
        sealed_value BLOB,
        set_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE grants (
        name TEXT NOT NULL REFERENCES secrets(name),
        number INTEGER NOT NULL,
        rule TEXT NOT NULL,
        stamped_by BLOB NOT NULL,
        stamp BLOB NOT NULL,
        PRIMARY KEY (name, number)
    ) STRICT, WITHOUT ROWID;
"];

const SECRETS: &str = "SELECT name, version FROM secrets WHERE sealed_value IS NOT NULL";

pub(super) struct SqlVault {
    file: Arc<StateFile>,
    clock: Arc<dyn Clock>,
    keys: KeySource,
}

impl SqlVault {
    pub(super) fn new(file: Arc<StateFile>, clock: Arc<dyn Clock>, keys: KeySource) -> Self {
        Self { file, clock, keys }
    }

    /// What seals and stamps from now on: the key that the vault's secrets are sealed under, or, where there are none, any
    /// key, made if need be. A second key would leave the secrets of the first to nobody.
    async fn sealer(&self) -> Outcome<Sealer> {
        let sql = "SELECT sealed_by FROM secrets WHERE sealed_value IS NOT NULL";
        let under = move |connection: &Connection| all(connection, sql, [], |row| row.get::<_, Vec<u8>>(0));
        let under = self.file.read(under).await?;
        if under.is_empty() {
            return self.keys.load_or_make();
        }
        let sealer = self.keys.load()?;
        under.iter().try_for_each(|by| sealer.is_by(by))?;
        Ok(sealer)
    }

    async fn entries(&self, name: Option<String>) -> Outcome<Vec<Entry>> {
        let keys = self.keys.clone();
        self.file
            .read(move |connection| {
                let vault = id(connection)?;
                let sql = format!("{SECRETS} AND (?1 IS NULL OR name = ?1) ORDER BY name");
                let row = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get(1)?));
                let found = all(connection, &sql, [&name], row)?;
                let mut sealer = None;
                let mut entries = Vec::with_capacity(found.len());
                for (name, version) in found {
                    let grants = grants(connection, &vault, &name, &keys, &mut sealer)?;
                    entries.push(Entry { name, version: number(version), grants });
                }
                Ok(entries)
            })
            .await
    }
}

#[async_trait]
impl Vault for SqlVault {
    async fn list(&self) -> Outcome<Vec<Entry>> {
        self.entries(None).await
    }

    async fn entry(&self, name: String) -> Outcome<Option<Entry>> {
        Ok(self.entries(Some(name)).await?.pop())
    }

    async fn value(&self, name: String, version: u64) -> Outcome<SecretText> {
        let keys = self.keys.clone();
        self.file
            .read(move |connection| {
                let vault = id(connection)?;
                let sql = "SELECT version, sealed_by, sealed_key, sealed_value FROM secrets
                           WHERE name = ?1 AND sealed_value IS NOT NULL";
                let found = optional(connection, sql, [&name], |row| {
                    let sealed = Sealed { by: row.get(1)?, key: row.get(2)?, value: row.get(3)? };
                    Ok((row.get(0)?, sealed))
                })?;
                let (now, sealed) = found.ok_or_else(|| no_secret(&name))?;
                if number(now) != version {
                    return Err(not_found(format!("`{name}` has another value by now; call again")));
                }
                keys.load()?.open(&Place { vault: &vault, name: &name, number: version }, &sealed)
            })
            .await
    }

    async fn set(&self, name: String, value: SecretText) -> Outcome<u64> {
        check_secret("name", &name)?;
        let sealer = self.sealer().await?;
        let now = self.clock.now();
        self.file
            .write(move |connection| {
                let vault = id(connection)?;
                let sql = "INSERT INTO secrets (name, version, set_at) VALUES (?1, 1, ?2)
                           ON CONFLICT (name) DO UPDATE SET version = version + 1, set_at = excluded.set_at
                           RETURNING version";
                let version = number(query(connection, sql, params![name, now], |row| row.get(0))?);
                let sealed = sealer.seal(&Place { vault: &vault, name: &name, number: version }, &value)?;
                run(
                    connection,
                    "UPDATE secrets SET sealed_by = ?2, sealed_key = ?3, sealed_value = ?4 WHERE name = ?1",
                    params![name, sealed.by, sealed.key, sealed.value],
                )?;
                Ok(version)
            })
            .await
    }

    async fn grant(&self, name: String, grant: Grant) -> Outcome<u64> {
        grant.check()?;
        let rule = serde_json::to_string(&grant)
            .map_err(|error| ToolError::new(ErrorCode::SqlError, format!("the grant is no JSON: {error}")))?;
        let sealer = self.sealer().await?;
        self.file
            .write(move |connection| {
                let vault = id(connection)?;
                exists(connection, &name)?;
                let count = "SELECT count(*) FROM grants WHERE name = ?1";
                let there: i64 = query(connection, count, [&name], |row| row.get(0))?;
                if there >= MOST_GRANTS {
                    return Err(ToolError::new(
                        ErrorCode::TooLarge,
                        format!("`{name}` has {MOST_GRANTS} grants, which is the most; revoke one first"),
                    ));
                }
                let next =
                    "UPDATE secrets SET last_grant = last_grant + 1 WHERE name = ?1 RETURNING last_grant";
                let next = number(query(connection, next, [&name], |row| row.get(0))?);
                let stamp = sealer.stamp(&Place { vault: &vault, name: &name, number: next }, &rule)?;
                run(
                    connection,
                    "INSERT INTO grants (name, number, rule, stamped_by, stamp) VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![name, signed(next), rule, sealer.id(), stamp],
                )?;
                Ok(next)
            })
            .await
    }

    async fn revoke(&self, name: String, grant: Option<u64>) -> Outcome<u64> {
        self.file
            .write(move |connection| {
                exists(connection, &name)?;
                let sql = "DELETE FROM grants WHERE name = ?1 AND (?2 IS NULL OR number = ?2)";
                let gone = run(connection, sql, params![name, grant.map(signed)])?;
                match grant {
                    Some(grant) if gone == 0 => Err(not_found(format!(
                        "`{name}` has no grant {grant}; `indelible vault list` shows their numbers"
                    ))),
                    _ => Ok(u64::try_from(gone).unwrap_or_default()),
                }
            })
            .await
    }

    async fn delete(&self, name: String) -> Outcome<()> {
        self.file
            .write(move |connection| {
                exists(connection, &name)?;
                run(connection, "DELETE FROM grants WHERE name = ?1", [&name])?;
                let sql = "UPDATE secrets SET sealed_by = NULL, sealed_key = NULL, sealed_value = NULL WHERE name = ?1";
                run(connection, sql, [&name]).map(|_| ())
            })
            .await
    }
}

/// The grants of a secret, each held against its stamp. The key is fetched with the first of them.
fn grants(
    connection: &Connection,
    vault: &[u8],
    name: &str,
    keys: &KeySource,
    sealer: &mut Option<Sealer>,
) -> Outcome<Vec<Numbered>> {
    let sql = "SELECT number, rule, stamped_by, stamp FROM grants WHERE name = ?1 ORDER BY number";
    let rows = all(connection, sql, [name], |row| {
        Ok((row.get(0)?, row.get::<_, String>(1)?, row.get::<_, Vec<u8>>(2)?, row.get::<_, Vec<u8>>(3)?))
    })?;
    let mut found = Vec::with_capacity(rows.len());
    for (grant, rule, by, stamp) in rows {
        let sealer = match sealer {
            Some(sealer) => sealer,
            None => sealer.insert(keys.load()?),
        };
        let number = number(grant);
        sealer.check(&Place { vault, name, number }, &rule, &by, &stamp)?;
        let grant =
            serde_json::from_str(&rule).map_err(|_| seal::changed(&format!("grant {number} of `{name}`")))?;
        found.push(Numbered { number, grant });
    }
    Ok(found)
}

fn exists(connection: &Connection, name: &str) -> Outcome<()> {
    let sql = format!("{SECRETS} AND name = ?1");
    optional(connection, &sql, [name], |_| Ok(()))?.ok_or_else(|| no_secret(name))
}

fn id(connection: &Connection) -> Outcome<Vec<u8>> {
    query(connection, "SELECT id FROM vault", [], |row| row.get(0))
}

fn number(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or_default()
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
