//! Groups and their primitives.
//!
//! The catalog knows names, types and states, and nothing of what a primitive holds.

use super::Outcome;
use super::keys::Keys;
use crate::error::{ErrorCode, ToolError};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// What a primitive keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Tables, by SQL.
    Db,
    /// A tree of files.
    Fs,
    /// Queues of jobs.
    Queue,
    /// Texts to be recalled.
    Memory,
    /// Secrets to be used and not seen.
    Vault,
    /// Keys and values.
    Kv,
    /// Objects.
    Storage,
}

impl Kind {
    /// Every kind.
    pub const ALL: &'static [Kind] =
        &[Self::Db, Self::Fs, Self::Queue, Self::Memory, Self::Vault, Self::Kv, Self::Storage];

    /// Its name: `kv`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Db => "db",
            Self::Fs => "fs",
            Self::Queue => "queue",
            Self::Memory => "memory",
            Self::Vault => "vault",
            Self::Kv => "kv",
            Self::Storage => "storage",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// A group: what one server or one key can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// 26 characters, lower case (a ULID).
    pub id: String,
    /// Unique in the data folder.
    pub name: String,
}

/// A group in the list of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupEntry {
    /// The group.
    pub group: Group,
    /// How many primitives it has.
    pub primitives: u64,
    /// Milliseconds since 1970.
    pub created_at: i64,
}

/// A primitive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Primitive {
    /// 26 characters, lower case (a ULID); never used again.
    pub id: String,
    /// The group it is in.
    pub group: String,
    /// Unique in its group.
    pub name: String,
    /// What it keeps.
    pub kind: Kind,
    /// Whether a person has paused it.
    pub paused: bool,
}

/// Groups and their primitives.
#[async_trait]
pub trait Catalog: Send + Sync {
    /// The group of this name, made if it is missing and `create` says so.
    ///
    /// # Errors
    /// `NOT_FOUND`; a name that breaks the rule of [`check_name`].
    async fn group(&self, name: &str, create: bool) -> Outcome<Group>;

    /// Every group, by name.
    async fn groups(&self) -> Outcome<Vec<GroupEntry>>;

    /// Makes a group.
    ///
    /// # Errors
    /// `CONFLICT` where there is one of this name; a name that breaks the rule of [`check_name`].
    async fn create_group(&self, name: &str) -> Outcome<Group>;

    /// What lets agents into groups.
    fn keys(&self) -> &dyn Keys;

    /// The group's primitives, by name.
    async fn primitives(&self, group: &Group) -> Outcome<Vec<Primitive>>;

    /// The primitive of this id, in whatever group.
    async fn primitive(&self, id: &str) -> Outcome<Option<Primitive>>;

    /// Makes an empty primitive.
    ///
    /// # Errors
    /// `CONFLICT` where the group has the name.
    async fn create(&self, group: &Group, kind: Kind, name: &str) -> Outcome<Primitive>;

    /// Pauses a primitive, or resumes it. Holds for the next call.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    async fn pause(&self, primitive: &Primitive, paused: bool) -> Outcome<()>;
}

/// A new id: 26 characters, lower case (a ULID); later ones sort behind earlier ones.
#[must_use]
pub fn new_id() -> String {
    ulid::Ulid::generate().to_string().to_ascii_lowercase()
}

/// The longest name of a group or primitive, in characters.
pub const LONGEST_NAME: usize = 64;

/// A name of a group or primitive: letters, digits, `_`, `-` and `.`, first a letter or digit.
///
/// # Errors
/// `INVALID_ARGUMENTS` that names the argument and the rule.
pub fn check_name(argument: &str, name: &str) -> Outcome<()> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let good = name.len() <= LONGEST_NAME
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(allowed);
    if good {
        return Ok(());
    }
    Err(ToolError::arguments(format!(
        "`{argument}` must be 1 to {LONGEST_NAME} letters, digits, `_`, `-` or `.`, first a letter or digit"
    )))
}

/// A name of a primitive: as [`check_name`] says, and none that an id could be.
///
/// # Errors
/// As [`check_name`].
pub fn check_primitive_name(argument: &str, name: &str) -> Outcome<()> {
    check_name(argument, name)?;
    if looks_like_an_id(name) {
        return Err(ToolError::arguments(format!(
            "`{argument}` looks like an id, which nobody could tell from a name; choose another"
        )));
    }
    Ok(())
}

/// Whether it could be an id: 26 characters of Crockford's base 32, the first up to 7 (<https://github.com/ulid/spec>).
#[must_use]
pub fn looks_like_an_id(text: &str) -> bool {
    let digit =
        |c: char| c.is_ascii_alphanumeric() && !matches!(c.to_ascii_lowercase(), 'i' | 'l' | 'o' | 'u');
    text.len() == 26 && text.starts_with(|c: char| matches!(c, '0'..='7')) && text.chars().all(digit)
}

/// The primitive of this id, or else of this name, whatever its state.
#[must_use]
pub fn find(mut primitives: Vec<Primitive>, wanted: &str) -> Option<Primitive> {
    let by_id = primitives.iter().position(|one| one.id == wanted);
    let at = by_id.or_else(|| primitives.iter().position(|one| one.name == wanted))?;
    Some(primitives.swap_remove(at))
}

/// The primitive that a call means: by id or name, or else the only one of the kind.
///
/// # Errors
/// `NOT_FOUND`, `AMBIGUOUS_PRIMITIVE`, `WRONG_TYPE`, `PAUSED`; each says what to do.
pub fn choose(primitives: Vec<Primitive>, wanted: Option<&str>, kind: Option<Kind>) -> Outcome<Primitive> {
    let of_kind = kind.map_or_else(String::new, |kind| format!(" of type {}", kind.name()));
    let chosen = match wanted {
        Some(wanted) => find(primitives, wanted).ok_or_else(|| {
            super::not_found(format!(
                "the group has no primitive `{}`; call primitive_list for what it has",
                crate::render::one_line(wanted, 80)
            ))
        })?,
        None => {
            let mut fitting: Vec<Primitive> =
                primitives.into_iter().filter(|one| kind.is_none_or(|kind| one.kind == kind)).collect();
            match (fitting.pop(), fitting.len()) {
                (Some(only), 0) => only,
                (Some(_), others) => {
                    return Err(ToolError::new(
                        ErrorCode::AmbiguousPrimitive,
                        format!(
                            "the group has {} primitives{of_kind}; give `primitive`, an id or name from primitive_list",
                            others + 1
                        ),
                    ));
                }
                (None, _) => {
                    return Err(super::not_found(format!(
                        "the group has no primitive{of_kind}; call primitive_list for what it has, primitive_create makes one"
                    )));
                }
            }
        }
    };
    if let Some(kind) = kind.filter(|kind| *kind != chosen.kind) {
        return Err(ToolError::new(
            ErrorCode::WrongType,
            format!(
                "`{}` is of type {}, and this tool works on {}; call primitive_list for types",
                chosen.name,
                chosen.kind.name(),
                kind.name()
            ),
        ));
    }
    if chosen.paused {
        return Err(ToolError::new(
            ErrorCode::Paused,
            format!(
                "`{}` is paused; ask a person about it, primitive_list shows whether it still is",
                chosen.name
            ),
        ));
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_finds_its_primitive_or_says_what_to_do() {
        let one = |id: &str, name: &str, kind, paused| Primitive {
            id: id.to_owned(),
            group: "g".to_owned(),
            name: name.to_owned(),
            kind,
            paused,
        };
        let all = vec![
            one("1", "a", Kind::Kv, false),
            one("2", "b", Kind::Kv, false),
            one("3", "q", Kind::Queue, false),
            one("4", "d", Kind::Storage, true),
            one("0", "5", Kind::Memory, false),
            one("5", "m", Kind::Memory, false),
        ];
        let rows = [
            (Some("a"), Some(Kind::Kv), Ok("1")),
            (Some("2"), Some(Kind::Kv), Ok("2")),
            // Its own id, which is also another's name.
            (Some("5"), Some(Kind::Memory), Ok("5")),
            (None, Some(Kind::Queue), Ok("3")),
            (Some("q"), None, Ok("3")),
            (None, Some(Kind::Kv), Err(ErrorCode::AmbiguousPrimitive)),
            (None, None, Err(ErrorCode::AmbiguousPrimitive)),
            (None, Some(Kind::Fs), Err(ErrorCode::NotFound)),
            (Some("x"), Some(Kind::Kv), Err(ErrorCode::NotFound)),
            (Some("q"), Some(Kind::Kv), Err(ErrorCode::WrongType)),
            (None, Some(Kind::Storage), Err(ErrorCode::Paused)),
        ];
        for (wanted, kind, expected) in rows {
            let chosen = choose(all.clone(), wanted, kind);
            if let Err(error) = &chosen {
                assert!(error.message.contains("primitive_list"), "{error}");
            }
            let chosen = chosen.map(|chosen| chosen.id).map_err(|error| error.code);
            assert_eq!(chosen, expected.map(str::to_owned), "{wanted:?} {kind:?}");
        }
    }

    #[test]
    fn names_are_plain() {
        for name in ["a", "A-1_b.c", &"x".repeat(64)] {
            assert_eq!(check_name("name", name), Ok(()), "{name}");
        }
        for name in ["", ".a", "-a", "a b", "a/b", "ü", &"x".repeat(65), "a\n"] {
            assert!(check_name("name", name).is_err(), "{name}");
        }
        let id = new_id();
        for name in [id.as_str(), &id.to_ascii_uppercase(), "01kb4w0q2v8x5c3m7n9p1r6t4z"] {
            assert!(check_primitive_name("name", name).is_err() && looks_like_an_id(name), "{name}");
        }
        for name in ["a", "orders-2026", "abcdefghijklmnopqrstuvwxyz", &format!("{id}0"), &id[1..]] {
            assert_eq!(check_primitive_name("name", name), Ok(()), "{name}");
        }
    }
}
