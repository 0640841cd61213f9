//! Secrets that agents use and never see: names, versions, grants, and the rules that hold wherever they are kept.
//!
//! A person sets values and grants from the command line; no tool does. It neither seals a value nor sends a
//! request: an implementation seals, `outbound/` sends.
//!
//! # Layout
//!
//! - `grant`: where a secret may go, and whether a request is one of those; `host`: names of hosts in grants
//! - `path`: every way in which a server may read a path
//! - `target`: the URL that an agent gives

pub mod grant;
mod host;
mod path;
pub mod target;

pub use host::HostRule;

use super::Outcome;
use super::catalog::check_name;
use crate::error::ToolError;
use async_trait::async_trait;
use grant::Grant;
use std::fmt;
use zeroize::Zeroizing;

/// A value of fewer characters would be found by accident in answers, and by trying.
pub const SHORTEST_VALUE: usize = 8;
/// The longest value, in bytes.
pub const LONGEST_VALUE: usize = 8 << 10;
/// The most grants of one secret.
pub const MOST_GRANTS: i64 = 50;

/// A secret's value. It is overwritten when it is dropped, and `{:?}` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// A value that may be one: 8 characters to 8 KiB, without control characters, which no header can carry.
    ///
    /// # Errors
    /// `INVALID_ARGUMENTS` with the rule; never with the value.
    pub fn new(text: Zeroizing<String>) -> Outcome<Self> {
        let chars = text.chars().count();
        if chars < SHORTEST_VALUE || text.len() > LONGEST_VALUE {
            return Err(ToolError::arguments(format!(
                "a secret has {SHORTEST_VALUE} characters to {LONGEST_VALUE} bytes, and this value has {chars} characters; a shorter one cannot be told from other text in an answer"
            )));
        }
        if text.chars().any(char::is_control) {
            return Err(ToolError::arguments(
                "a secret has no control characters, and this value has; a line break at its end is left out by itself",
            ));
        }
        if text.trim() != text.as_str() {
            return Err(ToolError::arguments(
                "a secret neither begins nor ends with a space, and this value does",
            ));
        }
        Ok(Self(text))
    }

    /// The value itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(..)")
    }
}

/// What may be told of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// From 1, and one more with each new value, also after it was deleted.
    pub version: u64,
    /// Where it may go, by number.
    pub grants: Vec<Numbered>,
}

/// A grant and its number among those of its secret, which is never given twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// From 1.
    pub number: u64,
    /// The grant.
    pub grant: Grant,
}

/// A vault primitive.
///
/// Grants come back only as they were given: an implementation notices when somebody has changed one past it.
#[async_trait]
pub trait Vault: Send + Sync {
    /// Every secret, by name.
    async fn list(&self) -> Outcome<Vec<Entry>>;

    /// One secret.
    async fn entry(&self, name: String) -> Outcome<Option<Entry>>;

    /// The value of this version.
    ///
    /// # Errors
    /// `NOT_FOUND` where it has another version by now; `CORRUPT` where it cannot be opened.
    async fn value(&self, name: String, version: u64) -> Outcome<SecretText>;

    /// Sets a value, of a new secret or in the place of the former one, which is gone; the version. Grants stay.
    async fn set(&self, name: String, value: SecretText) -> Outcome<u64>;

    /// Adds a grant; its number.
    ///
    /// # Errors
    /// `NOT_FOUND`; `TOO_LARGE` beyond [`MOST_GRANTS`].
    async fn grant(&self, name: String, grant: Grant) -> Outcome<u64>;

    /// Takes back one grant, or all; how many.
    ///
    /// # Errors
    /// `NOT_FOUND`: the secret, or the grant.
    async fn revoke(&self, name: String, number: Option<u64>) -> Outcome<u64>;

    /// Deletes a secret with its grants.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    async fn delete(&self, name: String) -> Outcome<()>;
}

/// A name of a secret: as of primitives.
///
/// # Errors
/// `INVALID_ARGUMENTS` that names the argument and the rule.
pub fn check_secret(argument: &str, name: &str) -> Outcome<()> {
    check_name(argument, name)
}

/// There is no secret of this name.
#[must_use]
pub fn no_secret(name: &str) -> ToolError {
    super::not_found(format!(
        "there is no secret `{}`; vault_list shows which there are, and a person sets one with `indelible vault set`",
        crate::render::one_line(name, 80)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_long_enough_and_fits_into_a_header() {
        let rows = [
            ("12345678", true),
            ("žžžžžžžž", true),
            ("1234567", false),
            ("žžžž", false),
            ("", false),
            ("1234\n5678", false),
            ("1234\u{0}5678", false),
            (" 12345678", false),
            ("12345678\u{a0}", false),
            ("1234 5678", true),
        ];
        for (text, good) in rows {
            let value = SecretText::new(Zeroizing::new(text.to_owned()));
            assert_eq!(value.is_ok(), good, "{text:?}");
            if let Err(error) = value {
                assert!(text.is_empty() || !error.message.contains(text), "{error}");
            }
        }
        assert!(SecretText::new(Zeroizing::new("x".repeat(LONGEST_VALUE))).is_ok());
        assert!(SecretText::new(Zeroizing::new("x".repeat(LONGEST_VALUE + 1))).is_err());
    }

    #[test]
    fn a_value_is_not_shown() {
        let value = SecretText::new(Zeroizing::new("hunter2hunter2".to_owned())).unwrap();
        assert_eq!(format!("{value:?} {:#?}", Some(&value)), "SecretText(..) Some(\n    SecretText(..),\n)");
    }
}
