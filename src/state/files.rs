//! A tree of files.
//!
//! Paths are absolute and compared byte by byte; folders come into being with the files in them. A file is replaced as
//! a whole.

use super::Outcome;
use crate::error::{ErrorCode, ToolError};
use async_trait::async_trait;

/// The longest name of a file or folder, in bytes.
pub const LONGEST_NAME: usize = 255;
/// The longest path, in bytes.
pub const LONGEST_PATH: usize = 4_096;
/// The most entries of one answer.
pub const MOST_LISTED: usize = 1_000;
/// The longest query, in bytes.
pub const LONGEST_QUERY: usize = 1_000;

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A folder.
    Folder,
    /// A file of this size in bytes, and whether it is text (UTF-8 without NUL).
    File {
        /// Bytes.
        size: u64,
        /// Whether it is text.
        text: bool,
    },
}

/// An entry of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its absolute path.
    pub path: String,
    /// What it is.
    pub node: Node,
}

/// Where a text was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: u64,
    /// The line's text, shortened.
    pub snippet: String,
}

/// Whether a path is wanted.
pub type PathTest = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// An fs primitive.
#[async_trait]
pub trait Files: Send + Sync {
    /// What stands at a path; none for nothing. The root is a folder.
    async fn look(&self, path: String) -> Outcome<Option<Node>>;

    /// Up to `most` bytes of a file from `offset` on.
    ///
    /// # Errors
    /// `NOT_FOUND`, `WRONG_TYPE` for a folder.
    async fn read(&self, path: String, offset: u64, most: usize) -> Outcome<Vec<u8>>;

    /// Entries of a folder by path, at most `most` behind the first `offset`; with `deep`, of those in it, too.
    ///
    /// # Errors
    /// `NOT_FOUND`, `WRONG_TYPE` for a file.
    async fn list(&self, path: String, deep: bool, offset: u64, most: usize) -> Outcome<Vec<Listed>>;

    /// Writes a whole file, with the folders above it.
    ///
    /// # Errors
    /// `CONFLICT` where a folder stands, or a file stands above.
    async fn write(&self, path: String, bytes: Vec<u8>) -> Outcome<()>;

    /// Makes a folder, with those above it. One that is there is left.
    ///
    /// # Errors
    /// `CONFLICT` where a file stands.
    async fn make_folder(&self, path: String) -> Outcome<()>;

    /// Moves a file or a folder with all in it. A file that is there is replaced.
    ///
    /// # Errors
    /// `NOT_FOUND`; `CONFLICT` for a folder that is not empty, or of the other kind; `INVALID_ARGUMENTS` where a path
    /// would become longer than [`LONGEST_PATH`].
    async fn rename(&self, from: String, to: String) -> Outcome<()>;

    /// Deletes a file or an empty folder; with `deep`, a folder with all in it. How many entries went.
    ///
    /// # Errors
    /// `NOT_FOUND`; `CONFLICT` for a folder that is not empty.
    async fn delete(&self, path: String, deep: bool) -> Outcome<u64>;

    /// Copies a file or a folder with all in it, sharing contents.
    ///
    /// # Errors
    /// `NOT_FOUND`; `CONFLICT` where something stands; `INVALID_ARGUMENTS` as in [`Self::rename`].
    async fn copy(&self, from: String, to: String) -> Outcome<()>;

    /// Lines of text files under `path` that hold the text, whatever its case; at most `most`, by path.
    async fn search(&self, path: String, text: String, most: usize) -> Outcome<Vec<Found>>;

    /// Paths of files that `fits` accepts, at most `most`, by path.
    async fn matching(&self, fits: PathTest, most: usize) -> Outcome<Vec<String>>;
}

/// A path without `.`, `..` and double slashes.
///
/// # Errors
/// `INVALID_ARGUMENTS` that names the argument and the rule.
pub fn clean(argument: &str, path: &str) -> Outcome<String> {
    let wrong = |rule: &str| Err(ToolError::arguments(format!("`{argument}` {rule}")));
    if !path.starts_with('/') {
        return wrong("must be an absolute path, such as /notes/plan.md");
    }
    if path.len() > LONGEST_PATH {
        return wrong("must have at most 4,096 bytes");
    }
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                if names.pop().is_none() {
                    return wrong("leads above the root");
                }
            }
            name if name.len() > LONGEST_NAME => return wrong("has a name of more than 255 bytes"),
            name if name.contains('\0') => return wrong("has a NUL in it"),
            name => names.push(name),
        }
    }
    Ok(format!("/{}", names.join("/")))
}

/// A path that something in a folder would get.
///
/// # Errors
/// `INVALID_ARGUMENTS`: no tool could name it.
pub fn check_length(path: &str) -> Outcome<()> {
    if path.len() <= LONGEST_PATH {
        return Ok(());
    }
    Err(ToolError::arguments(format!(
        "`to` would give what is in the folder paths of up to {} bytes and more, and they may have 4,096; nothing was changed, choose a shorter one",
        path.len()
    )))
}

/// The folder that a cleaned path stands in; none for the root.
#[must_use]
pub fn parent(path: &str) -> Option<&str> {
    if path == "/" {
        return None;
    }
    path.rsplit_once('/').map(|(parent, _)| if parent.is_empty() { "/" } else { parent })
}

/// Whether `path` stands in the folder `above`, at any depth.
#[must_use]
pub fn is_below(path: &str, above: &str) -> bool {
    above == "/" && path != "/" || path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether bytes are text.
#[must_use]
pub fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

/// There is nothing at the path.
#[must_use]
pub fn nothing_at(path: &str) -> ToolError {
    super::not_found(format!(
        "there is nothing at `{}`; fs_read with `list` shows what a folder has",
        crate::render::one_line(path, 200)
    ))
}

/// Something else stands at the path.
#[must_use]
pub fn in_the_way(path: &str, what: &str) -> ToolError {
    ToolError::new(
        ErrorCode::Conflict,
        format!(
            "{what} stands at `{}`; choose another path, or delete it first",
            crate::render::one_line(path, 200)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_and_none_leads_out() {
        let rows = [
            ("/a/b", Some("/a/b")),
            ("/a//./b/", Some("/a/b")),
            ("/a/../b", Some("/b")),
            ("/", Some("/")),
            ("/..", None),
            ("/../../etc/passwd", None),
            ("/a/../../b", None),
            ("a", None),
            ("", None),
            ("/a\0b", None),
        ];
        for (path, expected) in rows {
            assert_eq!(clean("path", path).ok().as_deref(), expected, "{path:?}");
        }
        assert!(clean("path", &format!("/{}", "x".repeat(256))).is_err());
    }

    #[test]
    fn a_path_knows_what_is_above_it() {
        assert_eq!(parent("/a/b"), Some("/a"));
        assert_eq!(parent("/a"), Some("/"));
        assert_eq!(parent("/"), None);
        assert!(is_below("/a/b/c", "/a"));
        assert!(is_below("/a", "/"));
        assert!(!is_below("/ab", "/a"));
        assert!(!is_below("/a", "/a"));
        assert!(!is_below("/", "/"));
    }
}
