//! Keys and values: versions, expiry, conditional writes.
//!
//! A version is a number of the whole primitive that rises with every write and is never given twice, so that a
//! key that was deleted and made again cannot pass for the old one. What has expired is not there, for every
//! operation; removing it is the implementation's housekeeping.

use super::Outcome;
use crate::error::{ErrorCode, ToolError};
use async_trait::async_trait;

/// The longest key, in bytes of UTF-8.
pub const LONGEST_KEY: usize = 512;
/// The largest value, in bytes: of its compact JSON, or of the bytes themselves.
pub const LARGEST_VALUE: usize = 1 << 20;
/// The most keys in one call.
pub const MOST_KEYS: usize = 100;
/// The most bytes of values that one call reads together; a single value always fits.
pub const MOST_READ: usize = LARGEST_VALUE;

/// A value as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Compact JSON.
    Json(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Value {
    /// Its bytes, as [`LARGEST_VALUE`] counts them.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Json(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// A key with what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The value; none where it was not asked for.
    pub value: Option<Value>,
    /// The version of the last write.
    pub version: u64,
    /// When it expires, in milliseconds since 1970.
    pub expires_at: Option<i64>,
}

/// A write to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The key.
    pub key: String,
    /// The new value.
    pub value: Value,
    /// When it expires; none for never.
    pub expires_at: Option<i64>,
    /// The version that the key must have; 0 for a key that must not exist.
    pub if_version: Option<u64>,
}

/// A key after a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The key.
    pub key: String,
    /// Its version from now on.
    pub version: u64,
}

/// Which keys to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Only keys that start so.
    pub prefix: String,
    /// Only keys behind this one, in byte order.
    pub after: Option<String>,
    /// Keys at most.
    pub limit: usize,
    /// Whether their values are wanted.
    pub values: bool,
}

/// A key-value primitive.
#[async_trait]
pub trait Kv: Send + Sync {
    /// The entries of these keys, one each, in the order given.
    ///
    /// # Errors
    /// `TOO_LARGE` where their values have more than [`MOST_READ`] bytes together.
    async fn get(&self, keys: Vec<String>) -> Outcome<Vec<Option<Entry>>>;

    /// Entries in byte order of their keys, and whether there are more. They end before the limit where their values
    /// would have more than [`MOST_READ`] bytes together.
    async fn list(&self, range: Range) -> Outcome<(Vec<Entry>, bool)>;

    /// Writes all of them or none; no key twice.
    ///
    /// # Errors
    /// `PRECONDITION_FAILED` that names the keys and their versions.
    async fn apply(&self, writes: Vec<Write>) -> Outcome<Vec<Written>>;

    /// Adds to an integer; a key that is not there counts as 0. Without `expires_at` its expiry stays.
    ///
    /// # Errors
    /// `WRONG_TYPE` for what is no integer, `TOO_LARGE` beyond 64 bits.
    async fn increment(&self, key: String, by: i64, expires_at: Option<i64>) -> Outcome<(Written, i64)>;

    /// Deletes; how many of the keys were there. `if_version` holds for each of them.
    ///
    /// # Errors
    /// `PRECONDITION_FAILED`; nothing is deleted then.
    async fn delete(&self, keys: Vec<String>, if_version: Option<u64>) -> Outcome<u64>;
}

/// A key that may be one.
///
/// # Errors
/// `INVALID_ARGUMENTS` with the rule.
pub fn check_key(key: &str) -> Outcome<()> {
    if key.is_empty() || key.len() > LONGEST_KEY {
        return Err(ToolError::arguments(format!(
            "a key must have 1 to {LONGEST_KEY} bytes, got {}",
            key.len()
        )));
    }
    Ok(())
}

/// The error for values that are too much at once: those of the first `fitting` keys are not.
#[must_use]
pub fn too_much_at_once(fitting: usize) -> ToolError {
    ToolError::new(
        ErrorCode::TooLarge,
        format!(
            "the values of these keys have more than {MOST_READ} bytes together; get fewer keys at once, such as the first {fitting}"
        ),
    )
}

/// The error for conditions that do not hold: what was not `done`, and each key with the version that it has, 0 for none.
#[must_use]
pub fn version_mismatch(done: &str, mismatches: &[(String, u64)]) -> ToolError {
    let keys: Vec<String> = mismatches
        .iter()
        .map(|(key, version)| {
            let key = crate::render::one_line(key, 80);
            if *version == 0 {
                format!("`{key}` does not exist")
            } else {
                format!("`{key}` has version {version}")
            }
        })
        .collect();
    ToolError::new(
        ErrorCode::PreconditionFailed,
        format!("nothing was {done}: {}; read again with kv_get and decide anew", keys.join(", ")),
    )
}
