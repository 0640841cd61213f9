//! Keys: what lets an agent into one group, to some of its tools, until some time.
//!
//! A key's text is made once and never kept: only its SHA-256 is. The text begins so that scanners for secrets know it,
//! and names the key, so that one row is looked up and its hash compared in constant time. Who may do what with a key is
//! not decided here.

use super::Outcome;
use super::catalog::{Group, new_id};
use super::signing::SECRET_BYTES;
use crate::error::{ErrorCode, ToolError};
use async_trait::async_trait;
use constant_time_eq::constant_time_eq_32;
use sha2::{Digest, Sha256};

/// What every key begins with.
pub const PREFIX: &str = "indelible_";
/// Random bytes in a key.
const RANDOM_BYTES: usize = 20;
/// The longest name of a key, in characters.
pub const LONGEST_NAME: usize = 64;

/// Which tools a key may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All there are.
    All,
    /// Those that only read.
    ReadOnly,
    /// These, by name.
    Tools(Vec<String>),
}

/// What is known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// 26 characters, lower case (a ULID); no secret.
    pub id: String,
    /// The group that it opens.
    pub group: Group,
    /// What a person calls it.
    pub name: Option<String>,
    /// Which tools it may use.
    pub scope: Scope,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// When it ends by itself.
    pub expires_at: Option<i64>,
    /// When a person took it back.
    pub revoked_at: Option<i64>,
}

impl Key {
    /// Whether it opens anything at this time.
    #[must_use]
    pub fn holds(&self, now: i64) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// A key and the hash of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The key.
    pub key: Key,
    /// SHA-256 of its text.
    pub hash: [u8; 32],
}

/// Where keys are kept.
#[async_trait]
pub trait Keys: Send + Sync {
    /// Keeps a key.
    async fn add(&self, key: Stored) -> Outcome<()>;

    /// The key of this id, also one that is revoked or has expired.
    async fn find(&self, id: &str) -> Outcome<Option<Stored>>;

    /// The keys of a group, or all, in the order they were made in.
    async fn list(&self, group: Option<&Group>) -> Outcome<Vec<Key>>;

    /// Takes a key back, from now on and for good; whether it was not yet.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    async fn revoke(&self, id: &str) -> Outcome<bool>;

    /// What URLs are signed with, made when it is first asked for. It never leaves the server.
    async fn signing_secret(&self) -> Outcome<[u8; SECRET_BYTES]>;
}

/// Makes a key that ends after `lasts` milliseconds, or never by itself; the key, and its text, to be shown once.
///
/// # Errors
/// As [`Keys::add`]; `SQL_ERROR` where the system has no random numbers.
pub async fn make(
    keys: &dyn Keys,
    group: &Group,
    name: Option<String>,
    scope: Scope,
    now: i64,
    lasts: Option<i64>,
) -> Outcome<(Key, String)> {
    let id = new_id();
    let text = text(&id)?;
    let expires_at = lasts.map(|lasts| now.saturating_add(lasts));
    let group = group.clone();
    let key = Key { id, group, name, scope, created_at: now, expires_at, revoked_at: None };
    keys.add(Stored { key: key.clone(), hash: hash(&text) }).await?;
    Ok((key, text))
}

fn text(id: &str) -> Outcome<String> {
    let mut random = [0; RANDOM_BYTES];
    fill(&mut random)?;
    let secret = crate::render::hex(&random);
    Ok(format!("{PREFIX}{id}_{secret}"))
}

/// Random bytes of the system.
///
/// # Errors
/// `SQL_ERROR`: it has none.
pub fn fill(bytes: &mut [u8]) -> Outcome<()> {
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(bytes).map_err(|_| {
        ToolError::new(ErrorCode::SqlError, "the system has no random numbers; a person must look at it")
    })
}

/// The hash that is kept of a key's text.
#[must_use]
pub fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// The id in a key's text; none where it cannot be a key.
#[must_use]
pub fn id(text: &str) -> Option<&str> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
    (id.len() == 26 && secret.len() == 2 * RANDOM_BYTES && plain(id) && plain(secret)).then_some(id)
}

/// The key that a text is the key of, if it opens anything at this time.
///
/// # Errors
/// As [`Keys::find`].
pub async fn judge(keys: &dyn Keys, text: &str, now: i64) -> Outcome<Option<Key>> {
    let Some(id) = id(text) else { return Ok(None) };
    let Some(stored) = keys.find(id).await? else { return Ok(None) };
    let right = constant_time_eq_32(&hash(text), &stored.hash);
    Ok(Some(stored.key).filter(|key| right && key.holds(now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_by_its_beginning_and_names_itself() {
        let id_text = "01kb9mxv7dz8kq3h5r2t4w6y8a";
        let (one, other) = (text(id_text).unwrap(), text(id_text).unwrap());
        assert_ne!(one, other);
        assert_eq!((one.len(), one.starts_with("indelible_01kb")), (77, true), "{one}");
        assert_eq!(id(&one), Some(id_text));
        for wrong in [
            one.replace(PREFIX, "indelible-"),
            one.to_uppercase(),
            format!("{one}0"),
            one[..76].to_owned(),
            one.replace("01kb", "01k"),
            format!("{PREFIX}{id_text}"),
            format!("{PREFIX}{id_text}_{}", "ž".repeat(20)),
            String::new(),
        ] {
            assert_eq!(id(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_key_holds_until_it_expires_or_is_revoked() {
        let key = Key {
            id: "k".to_owned(),
            group: Group { id: "g".to_owned(), name: "g".to_owned() },
            name: None,
            scope: Scope::All,
            created_at: 0,
            expires_at: None,
            revoked_at: None,
        };
        assert!(key.holds(i64::MAX));
        let ends = Key { expires_at: Some(10), ..key.clone() };
        assert!(ends.holds(9) && !ends.holds(10));
        assert!(!Key { revoked_at: Some(1), ..key }.holds(0));
    }
}
