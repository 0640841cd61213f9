//! fs_read, fs_write, fs_search, fs_fork.

use super::{Call, Reply, content};
use crate::error::{ErrorCode, ToolError};
use crate::results::{FileForked, FileHit, FileRead, FileWritten, FilesFound, ListedFile};
use crate::state::blobs::MOST_SHOWN;
use crate::state::catalog::Kind;
use crate::state::files::{Files, LONGEST_QUERY, Listed, MOST_LISTED, Node, clean, nothing_at};
use globset::GlobBuilder;
use std::sync::Arc;

/// Arguments of [`read`].
pub struct ReadInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// A file or folder.
    pub path: String,
    /// Whether to list a folder.
    pub list: bool,
    /// Whether to list what is in its folders, too.
    pub recursive: bool,
    /// Where to begin: in bytes, or in entries of a list.
    pub offset: u64,
}

/// Arguments of [`write`].
pub struct WriteInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// "write", "move", "delete" or "mkdir".
    pub action: String,
    /// A file or folder.
    pub path: String,
    /// With write: the whole content.
    pub content: Option<String>,
    /// "utf8" or "base64".
    pub encoding: Option<String>,
    /// With move: the new path.
    pub to: Option<String>,
    /// With delete: whether all in a folder goes, too.
    pub recursive: bool,
}

/// Arguments of [`search`].
pub struct SearchInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// A pattern for paths.
    pub glob: Option<String>,
    /// A text in files.
    pub query: Option<String>,
    /// With query: where to look.
    pub path: Option<String>,
    /// Hits at most.
    pub limit: u64,
}

/// Arguments of [`fork`].
pub struct ForkInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// A file or folder.
    pub from: String,
    /// The copy's path.
    pub to: Option<String>,
}

/// A part of a file, or what a folder has.
///
/// # Errors
/// As the primitive says.
pub async fn read(call: &Call<'_>, input: ReadInput) -> Result<Reply, ToolError> {
    let path = clean("path", &input.path)?;
    call.note("path", path.as_str());
    let files = files(call, input.primitive.as_deref()).await?;
    if input.list || input.recursive {
        // One more shows whether there are more.
        let most = MOST_LISTED + 1;
        let mut entries = files.list(path.clone(), input.recursive, input.offset, most).await?;
        let truncated = entries.len() > MOST_LISTED;
        entries.truncate(MOST_LISTED);
        let end = input.offset.saturating_add(u64::try_from(entries.len()).unwrap_or_default());
        let (data, next_offset) = (Some(entries.into_iter().map(listed).collect()), truncated.then_some(end));
        return Reply::of(&FileRead { path, data, next_offset, truncated, ..FileRead::default() });
    }
    let Some(node) = files.look(path.clone()).await? else { return Err(nothing_at(&path)) };
    let Node::File { size, text } = node else {
        return Err(ToolError::new(
            ErrorCode::WrongType,
            format!("`{path}` is a folder; give `list` to see what it has"),
        ));
    };
    if input.offset > size {
        return Err(ToolError::arguments(format!("`offset` is behind the end: `{path}` has {size} bytes")));
    }
    let bytes = files.read(path.clone(), input.offset, MOST_SHOWN).await?;
    let more = input.offset + u64::try_from(bytes.len()).unwrap_or_default() < size;
    let shown = content::shown(bytes, text, more);
    let truncated = input.offset + shown.bytes < size;
    Reply::of(&FileRead {
        path,
        encoding: Some(shown.encoding.to_owned()),
        content: Some(shown.content),
        size: Some(size),
        next_offset: truncated.then_some(input.offset + shown.bytes),
        truncated,
        data: None,
    })
}

/// Writes, moves, deletes, or makes a folder.
///
/// # Errors
/// As the primitive says.
pub async fn write(call: &Call<'_>, input: WriteInput) -> Result<Reply, ToolError> {
    let path = clean("path", &input.path)?;
    call.note("path", path.as_str());
    call.note("action", input.action.as_str());
    let files = files(call, input.primitive.as_deref()).await?;
    let only = |given: bool, name: &str, action: &str| {
        let wrong = given && input.action != action;
        if wrong {
            Err(ToolError::arguments(format!("`{name}` goes with the action {action} alone")))
        } else {
            Ok(())
        }
    };
    only(input.content.is_some() || input.encoding.is_some(), "content", "write")?;
    only(input.to.is_some(), "to", "move")?;
    only(input.recursive, "recursive", "delete")?;
    let size = match input.action.as_str() {
        "move" => {
            let to = input.to.ok_or_else(|| ToolError::arguments("`to` is missing: the new path"))?;
            let to = clean("to", &to)?;
            files.rename(path, to.clone()).await?;
            return Reply::of(&FileWritten { size: size_of(&*files, &to).await?, path: to });
        }
        "delete" => {
            files.delete(path.clone(), input.recursive).await?;
            0
        }
        "mkdir" => {
            files.make_folder(path.clone()).await?;
            0
        }
        _ => {
            let content =
                input.content.ok_or_else(|| ToolError::arguments("`content` is missing: the whole file"))?;
            let encoding = input.encoding.as_deref().unwrap_or("utf8");
            let bytes = content::taken(content, encoding, "split it into several files")?;
            if path == "/" {
                return Err(ToolError::arguments("`path` is the root, which is a folder; name a file in it"));
            }
            let size = u64::try_from(bytes.len()).unwrap_or_default();
            files.write(path.clone(), bytes).await?;
            size
        }
    };
    Reply::of(&FileWritten { path, size })
}

/// Files by a pattern for their paths, or lines that hold a text.
///
/// # Errors
/// As the primitive says.
pub async fn search(call: &Call<'_>, input: SearchInput) -> Result<Reply, ToolError> {
    let limit = usize::try_from(input.limit).unwrap_or(MOST_LISTED);
    let long = |text: &Option<String>| text.as_ref().is_some_and(|text| text.len() > LONGEST_QUERY);
    if long(&input.glob) || long(&input.query) {
        return Err(ToolError::arguments(format!("`glob` and `query` may have {LONGEST_QUERY} bytes")));
    }
    let files = files(call, input.primitive.as_deref()).await?;
    let data = match (input.glob, input.query) {
        (Some(glob), None) if input.path.is_none() => {
            call.note("glob", glob.as_str());
            let pattern = GlobBuilder::new(&glob).literal_separator(true).build();
            let pattern = pattern.map_err(|error| {
                ToolError::arguments(format!(
                    "`glob` is no pattern: {}; `*` stands for a part of a name, `**` for folders",
                    error.kind()
                ))
            })?;
            let matcher = pattern.compile_matcher();
            let paths = files.matching(Box::new(move |path| matcher.is_match(path)), limit).await?;
            paths.into_iter().map(|path| FileHit { path, line: None, snippet: None }).collect()
        }
        (None, Some(query)) => {
            if query.trim().is_empty() || query.contains(['\n', '\r', '\0']) {
                return Err(ToolError::arguments("`query` must be a text of one line, without a NUL"));
            }
            call.note("query", query.as_str());
            let path = clean("path", input.path.as_deref().unwrap_or("/"))?;
            let found = files.search(path, query, limit).await?;
            found
                .into_iter()
                .map(|found| FileHit {
                    path: found.path,
                    line: Some(found.line),
                    snippet: Some(found.snippet),
                })
                .collect()
        }
        (Some(_), None) => {
            return Err(ToolError::arguments(
                "`path` goes with `query`; a glob is a pattern for whole paths, like /notes/**",
            ));
        }
        _ => return Err(ToolError::arguments("give either `glob` or `query`")),
    };
    Reply::of(&FilesFound { data })
}

/// Copies a file or folder, sharing contents.
///
/// # Errors
/// As the primitive says.
pub async fn fork(call: &Call<'_>, input: ForkInput) -> Result<Reply, ToolError> {
    let from = clean("from", &input.from)?;
    let to = match &input.to {
        Some(to) => clean("to", to)?,
        None => clean("to", &format!("{from}-fork-{}", super::short_id())).map_err(|error| {
            ToolError::arguments(format!(
                "{}, and it is `from` with -fork- and 6 characters; give it",
                error.message
            ))
        })?,
    };
    call.note("from", from.as_str());
    call.note("to", to.as_str());
    files(call, input.primitive.as_deref()).await?.copy(from.clone(), to.clone()).await?;
    Reply::of(&FileForked { from, to })
}

async fn files(call: &Call<'_>, wanted: Option<&str>) -> Result<Arc<dyn Files>, ToolError> {
    let primitive = call.primitive(wanted, Some(Kind::Fs)).await?;
    call.server.store.files(&primitive).await
}

async fn size_of(files: &dyn Files, path: &str) -> Result<u64, ToolError> {
    Ok(match files.look(path.to_owned()).await? {
        Some(Node::File { size, .. }) => size,
        _ => 0,
    })
}

fn listed(entry: Listed) -> ListedFile {
    let (kind, size) = match entry.node {
        Node::Folder => ("dir", 0),
        Node::File { size, .. } => ("file", size),
    };
    ListedFile { path: entry.path, kind: kind.to_owned(), size }
}
