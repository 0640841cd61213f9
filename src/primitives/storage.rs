//! storage_list, storage_read, storage_write.

use super::{Call, Reply, behind_cursor, content, cursor};
use crate::error::{ErrorCode, ToolError};
use crate::results::{ObjectEntry, ObjectPage, ObjectRead, ObjectWritten};
use crate::state::blobs::MOST_SHOWN;
use crate::state::catalog::Kind;
use crate::state::files::is_text;
use crate::state::objects::{
    Condition, DEFAULT_TYPE, Head, LARGEST_METADATA, Listing, Objects, check_key, check_type, no_object,
    range,
};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Arguments of [`list`].
pub struct ListInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// Only keys that start so.
    pub prefix: Option<String>,
    /// Keys that go on behind this are one prefix.
    pub delimiter: Option<String>,
    /// Where the page begins.
    pub cursor: Option<String>,
    /// Keys and prefixes at most.
    pub limit: u64,
}

/// Arguments of [`read`].
pub struct ReadInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// The object.
    pub key: String,
    /// Whether only what is known of it is wanted.
    pub head: bool,
    /// Which of its bytes.
    pub range: Option<String>,
}

/// Arguments of [`write`].
pub struct WriteInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// "put", "copy" or "delete".
    pub action: String,
    /// The object.
    pub key: String,
    /// With put: the whole content.
    pub content: Option<String>,
    /// "utf8" or "base64".
    pub encoding: Option<String>,
    /// With put: its media type.
    pub content_type: Option<String>,
    /// With put: whatever else is to be kept with it.
    pub metadata: Option<Map<String, Value>>,
    /// With copy: the new key.
    pub to: Option<String>,
    /// The entity tag that it must have.
    pub if_match: Option<String>,
    /// "*": nothing may stand there.
    pub if_none_match: Option<String>,
}

/// A page of objects and prefixes.
///
/// # Errors
/// As the primitive says.
pub async fn list(call: &Call<'_>, input: ListInput) -> Result<Reply, ToolError> {
    let after = input.cursor.as_deref().map(behind_cursor).transpose()?;
    let listing = Listing {
        prefix: input.prefix.unwrap_or_default(),
        delimiter: input.delimiter,
        after,
        limit: usize::try_from(input.limit).unwrap_or(usize::MAX),
    };
    call.note("prefix", listing.prefix.as_str());
    let page = objects(call, input.primitive.as_deref()).await?.list(listing).await?;
    let entry = |head: Head| ObjectEntry {
        key: head.key,
        size: head.size,
        etag: head.etag,
        content_type: head.content_type,
    };
    Reply::of(&ObjectPage {
        data: page.objects.into_iter().map(entry).collect(),
        prefixes: page.prefixes,
        next_cursor: page.next.as_deref().map(cursor),
    })
}

/// An object, or a part of it.
///
/// # Errors
/// As the primitive says.
pub async fn read(call: &Call<'_>, input: ReadInput) -> Result<Reply, ToolError> {
    check_key("key", &input.key)?;
    call.note("object", input.key.as_str());
    if input.head && input.range.is_some() {
        return Err(ToolError::arguments("give `head` or `range`, not both"));
    }
    let objects = objects(call, input.primitive.as_deref()).await?;
    let head = objects.head(input.key.clone()).await?.ok_or_else(|| no_object(&input.key))?;
    if input.head {
        return Reply::of(&of_head(head)?);
    }
    let (start, end) = match &input.range {
        Some(text) => range(text, head.size)?,
        None => (0, head.size),
    };
    let most = usize::try_from(end - start).unwrap_or(MOST_SHOWN).min(MOST_SHOWN);
    // Read again together with its head: another call may have replaced it meanwhile.
    let found = objects.read(input.key.clone(), start, most).await?;
    let (head, bytes) = found.ok_or_else(|| no_object(&input.key))?;
    let text = is_text(&bytes) || start + u64::try_from(bytes.len()).unwrap_or_default() < head.size;
    let cut = u64::try_from(bytes.len()).unwrap_or_default() < end - start;
    let shown = content::shown(bytes, text, cut);
    let mut result = of_head(head)?;
    result.range = (shown.bytes > 0).then(|| format!("{start}-{}", start + shown.bytes - 1));
    result.truncated = shown.bytes < end - start;
    result.encoding = Some(shown.encoding.to_owned());
    result.content = Some(shown.content);
    Reply::of(&result)
}

/// Puts, copies or deletes an object.
///
/// # Errors
/// As the primitive says.
pub async fn write(call: &Call<'_>, input: WriteInput) -> Result<Reply, ToolError> {
    check_key("key", &input.key)?;
    call.note("object", input.key.as_str());
    call.note("action", input.action.as_str());
    let putting = input.action == "put";
    let puts = [
        ("content", input.content.is_some()),
        ("encoding", input.encoding.is_some()),
        ("content_type", input.content_type.is_some()),
        ("metadata", input.metadata.is_some()),
    ];
    if let Some((name, _)) = puts.iter().find(|(_, given)| *given && !putting) {
        return Err(ToolError::arguments(format!("`{name}` goes with the action put alone")));
    }
    if input.to.is_some() && input.action != "copy" {
        return Err(ToolError::arguments("`to` goes with the action copy alone"));
    }
    let condition = condition(input.if_match, input.if_none_match)?;
    let objects = objects(call, input.primitive.as_deref()).await?;
    let head = match input.action.as_str() {
        "delete" => {
            let deleted = objects.delete(input.key.clone(), condition).await?;
            return Reply::of(&ObjectWritten {
                key: input.key,
                deleted: Some(deleted),
                ..ObjectWritten::default()
            });
        }
        "copy" => {
            let to = input.to.ok_or_else(|| ToolError::arguments("`to` is missing: the key of the copy"))?;
            check_key("to", &to)?;
            objects.copy(input.key, to, condition).await?
        }
        _ => {
            let content = input
                .content
                .ok_or_else(|| ToolError::arguments("`content` is missing: the whole object"))?;
            let encoding = input.encoding.as_deref().unwrap_or("utf8");
            let bytes = content::taken(content, encoding, "split it into several objects")?;
            let content_type = input.content_type.unwrap_or_else(|| DEFAULT_TYPE.to_owned());
            check_type(&content_type)?;
            let metadata = Value::Object(input.metadata.unwrap_or_default()).to_string();
            if metadata.len() > LARGEST_METADATA {
                return Err(ToolError::new(
                    ErrorCode::TooLarge,
                    format!(
                        "`metadata` has {} bytes, and may have {LARGEST_METADATA}; keep the rest in the object, or in a kv primitive",
                        metadata.len()
                    ),
                ));
            }
            objects.put(input.key, bytes, content_type, metadata, condition).await?
        }
    };
    Reply::of(&ObjectWritten { key: head.key, etag: Some(head.etag), size: Some(head.size), deleted: None })
}

async fn objects(call: &Call<'_>, wanted: Option<&str>) -> Result<Arc<dyn Objects>, ToolError> {
    let primitive = call.primitive(wanted, Some(Kind::Storage)).await?;
    call.server.store.objects(&primitive).await
}

fn condition(if_match: Option<String>, if_none_match: Option<String>) -> Result<Condition, ToolError> {
    if if_none_match.as_deref().is_some_and(|value| value != "*") {
        return Err(ToolError::arguments("`if_none_match` must be \"*\": nothing may stand at the key"));
    }
    if if_match.is_some() && if_none_match.is_some() {
        return Err(ToolError::arguments("give `if_match` or `if_none_match`, not both"));
    }
    Ok(Condition { if_match, if_none: if_none_match.is_some() })
}

fn of_head(head: Head) -> Result<ObjectRead, ToolError> {
    let metadata = serde_json::from_str(&head.metadata).map_err(|error| {
        ToolError::new(
            ErrorCode::Corrupt,
            format!("the metadata of `{}` is damaged: {error}", crate::render::one_line(&head.key, 200)),
        )
    })?;
    Ok(ObjectRead {
        key: head.key,
        content_type: head.content_type,
        etag: head.etag,
        metadata,
        size: head.size,
        range: None,
        encoding: None,
        content: None,
        truncated: false,
    })
}
