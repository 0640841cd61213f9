//! Objects by key, as object stores have them: whole values with a type and metadata, conditions by entity tag.

use super::Outcome;
use crate::error::{ErrorCode, ToolError};
use async_trait::async_trait;

/// The longest key, in bytes.
pub const LONGEST_KEY: usize = 1_024;
/// The largest metadata, in bytes of compact JSON.
pub const LARGEST_METADATA: usize = 8 << 10;
/// The longest content type, in bytes.
pub const LONGEST_TYPE: usize = 255;
/// The type of an object that was given none.
pub const DEFAULT_TYPE: &str = "application/octet-stream";

/// What is known of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its key.
    pub key: String,
    /// Bytes.
    pub size: u64,
    /// Quoted, as HTTP has it; the same for the same bytes.
    pub etag: String,
    /// As it was given.
    pub content_type: String,
    /// Compact JSON of an object.
    pub metadata: String,
}

/// What must hold for a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// The entity tag that the object must have.
    pub if_match: Option<String>,
    /// Nothing may stand at the key.
    pub if_none: bool,
}

/// What to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Only keys that start so.
    pub prefix: String,
    /// Keys that go on behind this are shown as one prefix.
    pub delimiter: Option<String>,
    /// Only what stands behind this key or prefix, in byte order.
    pub after: Option<String>,
    /// Keys and prefixes at most.
    pub limit: usize,
}

/// A page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Objects, by key.
    pub objects: Vec<Head>,
    /// Common prefixes, in byte order.
    pub prefixes: Vec<String>,
    /// What the next page begins behind; none at the end.
    pub next: Option<String>,
}

/// A storage primitive.
#[async_trait]
pub trait Objects: Send + Sync {
    /// What is known of an object.
    async fn head(&self, key: String) -> Outcome<Option<Head>>;

    /// An object and up to `most` of its bytes from `offset` on.
    async fn read(&self, key: String, offset: u64, most: usize) -> Outcome<Option<(Head, Vec<u8>)>>;

    /// Objects and prefixes in byte order.
    async fn list(&self, listing: Listing) -> Outcome<Page>;

    /// Puts a whole object.
    ///
    /// # Errors
    /// `PRECONDITION_FAILED`.
    async fn put(
        &self,
        key: String,
        bytes: Vec<u8>,
        content_type: String,
        metadata: String,
        condition: Condition,
    ) -> Outcome<Head>;

    /// Copies an object; the condition is the target's.
    ///
    /// # Errors
    /// `NOT_FOUND`, `PRECONDITION_FAILED`.
    async fn copy(&self, from: String, to: String, condition: Condition) -> Outcome<Head>;

    /// Deletes an object; whether it was there.
    ///
    /// # Errors
    /// `PRECONDITION_FAILED`.
    async fn delete(&self, key: String, condition: Condition) -> Outcome<bool>;
}

/// A key that may be one: any text, as long as it is one.
///
/// # Errors
/// `INVALID_ARGUMENTS` that names the argument and the rule.
pub fn check_key(argument: &str, key: &str) -> Outcome<()> {
    if key.is_empty() || key.len() > LONGEST_KEY || key.contains('\0') {
        return Err(ToolError::arguments(format!(
            "`{argument}` must have 1 to {LONGEST_KEY} bytes and no NUL, got {} bytes",
            key.len()
        )));
    }
    Ok(())
}

/// A media type as a header can carry it.
///
/// # Errors
/// `INVALID_ARGUMENTS` with the rule.
pub fn check_type(content_type: &str) -> Outcome<()> {
    let good = !content_type.is_empty()
        && content_type.len() <= LONGEST_TYPE
        && content_type.contains('/')
        && content_type.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if good {
        Ok(())
    } else {
        Err(ToolError::arguments("`content_type` must be a media type, such as text/plain"))
    }
}

/// Whether two media types are the same (RFC 9110, 8.3.1): type, subtype, names of parameters and the charset whatever
/// their case, other values as they are.
#[must_use]
pub fn same_type(one: &str, other: &str) -> bool {
    fn parts(text: &str) -> impl Iterator<Item = (String, String)> {
        text.split(';').map(str::trim).filter(|part| !part.is_empty()).enumerate().map(|(at, part)| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let name = name.trim().to_ascii_lowercase();
            let value = value.trim().trim_matches('"');
            let any_case = at > 0 && name == "charset";
            (name, if any_case { value.to_ascii_lowercase() } else { value.to_owned() })
        })
    }
    parts(one).eq(parts(other))
}

/// There is no object of this key.
#[must_use]
pub fn no_object(key: &str) -> ToolError {
    super::not_found(format!(
        "there is no object `{}`; storage_list shows which there are",
        crate::render::one_line(key, 200)
    ))
}

/// Whether the condition holds for what stands at the key.
///
/// # Errors
/// `PRECONDITION_FAILED` that says what stands there.
pub fn check_condition(key: &str, condition: &Condition, there: Option<&str>) -> Outcome<()> {
    let shown = crate::render::one_line(key, 200);
    let now = there.map_or_else(|| "there is no object".to_owned(), |etag| format!("its etag is {etag}"));
    let holds = match &condition.if_match {
        Some(wanted) => there == Some(wanted.as_str()),
        None => !condition.if_none || there.is_none(),
    };
    if holds {
        return Ok(());
    }
    Err(ToolError::new(
        ErrorCode::PreconditionFailed,
        format!("nothing was changed at `{shown}`: {now}; read it with storage_read head and decide anew"),
    ))
}

/// The bytes that a range means of an object of `size` bytes: `0-1023`, `5-`, `bytes=-4096`.
///
/// # Errors
/// `INVALID_ARGUMENTS` with the rule, or the size where the range lies behind it.
pub fn range(text: &str, size: u64) -> Outcome<(u64, u64)> {
    let bare = text.trim().strip_prefix("bytes=").unwrap_or(text.trim());
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    let wrong = || ToolError::arguments("`range` must be like 0-1023, 5- or bytes=-4096");
    let (first, last) = bare.split_once('-').ok_or_else(wrong)?;
    let (start, end) = match (first, last) {
        ("", last) => (size.saturating_sub(number(last).filter(|n| *n > 0).ok_or_else(wrong)?), size),
        (first, "") => (number(first).ok_or_else(wrong)?, size),
        (first, last) => {
            let (first, last) = (number(first).ok_or_else(wrong)?, number(last).ok_or_else(wrong)?);
            if last < first {
                return Err(wrong());
            }
            (first, last.saturating_add(1).min(size))
        }
    };
    if start >= size {
        return Err(ToolError::arguments(format!(
            "`range` begins behind the end: the object has {size} bytes"
        )));
    }
    Ok((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_http() {
        let rows = [
            ("0-3", Some((0, 4))),
            ("2-4", Some((2, 5))),
            ("bytes=-3", Some((7, 10))),
            ("-30", Some((0, 10))),
            ("5-", Some((5, 10))),
            ("5-100", Some((5, 10))),
            ("10-", None),
            ("4-2", None),
            ("-0", None),
            ("", None),
            ("a-b", None),
            ("+1-2", None),
            ("1-2,4-5", None),
        ];
        for (text, expected) in rows {
            assert_eq!(range(text, 10).ok(), expected, "{text}");
        }
        assert!(range("0-", 0).is_err());
    }

    #[test]
    fn conditions_are_strict() {
        let with =
            |if_match: Option<&str>, if_none| Condition { if_match: if_match.map(str::to_owned), if_none };
        let rows = [
            (with(None, false), None, true),
            (with(None, false), Some("\"a\""), true),
            (with(None, true), None, true),
            (with(None, true), Some("\"a\""), false),
            (with(Some("\"a\""), false), Some("\"a\""), true),
            (with(Some("\"a\""), false), Some("\"b\""), false),
            (with(Some("\"a\""), false), None, false),
            (with(Some("a"), false), Some("\"a\""), false),
        ];
        for (condition, there, holds) in rows {
            assert_eq!(check_condition("k", &condition, there).is_ok(), holds, "{condition:?} {there:?}");
        }
    }
}
