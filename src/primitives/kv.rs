//! kv_get, kv_list, kv_set, kv_delete.

use super::{Call, Reply, behind_cursor, cursor};
use crate::error::{ErrorCode, ToolError};
use crate::results::{KvDeleted, KvEntry, KvFound, KvPage, KvVersion, KvWritten};
use crate::state::catalog::Kind;
use crate::state::kv::{Entry, Kv, LARGEST_VALUE, MOST_KEYS, Range, Value, Write, Written, check_key};
use crate::state::{clock, duration};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json};
use std::collections::HashSet;
use std::sync::Arc;

/// The shortest time to live, in milliseconds.
const SHORTEST_TTL: i64 = 1;

/// Arguments of [`get`].
pub struct GetInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// One key.
    pub key: Option<String>,
    /// Several keys.
    pub keys: Option<Vec<String>>,
}

/// Arguments of [`list`].
pub struct ListInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// Only keys that start so.
    pub prefix: Option<String>,
    /// Where the page begins.
    pub cursor: Option<String>,
    /// Keys a page.
    pub limit: u64,
    /// Whether values are wanted.
    pub values: bool,
}

/// Arguments of [`set`].
pub struct SetInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// One key.
    pub key: Option<String>,
    /// Its value.
    pub value: Option<Json>,
    /// "json" or "bytes".
    pub encoding: Option<String>,
    /// Time to live.
    pub ttl: Option<String>,
    /// The version that it must have.
    pub if_version: Option<u64>,
    /// What to add instead.
    pub incr: Option<i64>,
    /// Several keys.
    pub items: Option<Vec<Map<String, Json>>>,
}

/// Arguments of [`delete`].
pub struct DeleteInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// One key.
    pub key: Option<String>,
    /// The version that it must have.
    pub if_version: Option<u64>,
    /// Several keys.
    pub keys: Option<Vec<String>>,
}

/// Entries by their keys.
///
/// # Errors
/// As the primitive says.
pub async fn get(call: &Call<'_>, input: GetInput) -> Result<Reply, ToolError> {
    let kv = kv(call, input.primitive.as_deref()).await?;
    let (keys, one) = one_or_several(input.key, input.keys)?;
    call.note("keys", keys.len());
    let mut found = kv.get(keys).await?.into_iter().map(|entry| entry.map(shown).transpose());
    let data = if one {
        serde_json::to_value(found.next().transpose()?.flatten())
    } else {
        serde_json::to_value(found.collect::<Result<Vec<_>, _>>()?)
    };
    Reply::of(&KvFound {
        data: data.map_err(|error| ToolError::new(ErrorCode::SqlError, error.to_string()))?,
    })
}

/// A page of entries.
///
/// # Errors
/// As the primitive says.
pub async fn list(call: &Call<'_>, input: ListInput) -> Result<Reply, ToolError> {
    let kv = kv(call, input.primitive.as_deref()).await?;
    let after = input.cursor.as_deref().map(behind_cursor).transpose()?;
    let prefix = input.prefix.unwrap_or_default();
    call.note("prefix", prefix.as_str());
    let limit = usize::try_from(input.limit).unwrap_or(usize::MAX);
    let (entries, more) = kv.list(Range { prefix, after, limit, values: input.values }).await?;
    let next_cursor = entries.last().filter(|_| more).map(|last| cursor(&last.key));
    let data = entries.into_iter().map(shown).collect::<Result<Vec<_>, _>>()?;
    Reply::of(&KvPage { data, next_cursor })
}

/// Sets or counts.
///
/// # Errors
/// As the primitive says.
pub async fn set(call: &Call<'_>, input: SetInput) -> Result<Reply, ToolError> {
    let kv = kv(call, input.primitive.as_deref()).await?;
    let now = call.now();
    let several = input.items;
    if several.is_some()
        && (input.key.is_some()
            || input.value.is_some()
            || input.incr.is_some()
            || input.ttl.is_some()
            || input.encoding.is_some()
            || input.if_version.is_some())
    {
        return Err(ToolError::arguments(
            "give either `items`, each with its own value, or `key` with `value` or `incr`",
        ));
    }
    if let Some(items) = several {
        call.note("keys", items.len());
        if items.is_empty() || items.len() > MOST_KEYS {
            return Err(ToolError::arguments(format!(
                "`items` must hold 1 to {MOST_KEYS}, got {}",
                items.len()
            )));
        }
        let writes = items
            .into_iter()
            .enumerate()
            .map(|(at, item)| of_item(at, item, now))
            .collect::<Result<Vec<_>, _>>()?;
        unique(writes.iter().map(|write| write.key.as_str()))?;
        return written(kv.apply(writes).await?);
    }
    let key =
        input.key.ok_or_else(|| ToolError::arguments("give `key` with `value` or `incr`, or `items`"))?;
    check_key(&key)?;
    call.note("keys", 1);
    let expires_at = expiry(input.ttl.as_deref(), "ttl", now)?;
    match (input.incr, input.value) {
        (Some(_), Some(_)) => Err(ToolError::arguments("give `value` or `incr`, not both")),
        (None, None) => Err(ToolError::arguments("give `value`, or `incr` to count")),
        (Some(_), None) if input.if_version.is_some() || input.encoding.is_some() => {
            Err(ToolError::arguments(
                "`incr` adds to what is there and takes neither `if_version` nor `encoding`",
            ))
        }
        (Some(by), None) => {
            let (one, sum) = kv.increment(key, by, expires_at).await?;
            let data = vec![KvVersion { key: one.key, version: one.version, value: Some(sum) }];
            Reply::of(&KvWritten { data })
        }
        (None, Some(value)) => {
            let value = to_keep("value", value, input.encoding.as_deref())?;
            written(kv.apply(vec![Write { key, value, expires_at, if_version: input.if_version }]).await?)
        }
    }
}

/// Deletes.
///
/// # Errors
/// As the primitive says.
pub async fn delete(call: &Call<'_>, input: DeleteInput) -> Result<Reply, ToolError> {
    let kv = kv(call, input.primitive.as_deref()).await?;
    if input.keys.is_some() && input.if_version.is_some() {
        return Err(ToolError::arguments("`if_version` goes with `key`, not with `keys`"));
    }
    let (keys, _) = one_or_several(input.key, input.keys)?;
    call.note("keys", keys.len());
    Reply::of(&KvDeleted { deleted: kv.delete(keys, input.if_version).await? })
}

async fn kv(call: &Call<'_>, wanted: Option<&str>) -> Result<Arc<dyn Kv>, ToolError> {
    let primitive = call.primitive(wanted, Some(Kind::Kv)).await?;
    call.server.store.kv(&primitive).await
}

/// The keys, and whether it was just one.
fn one_or_several(key: Option<String>, keys: Option<Vec<String>>) -> Result<(Vec<String>, bool), ToolError> {
    let (keys, one) = match (key, keys) {
        (Some(key), None) => (vec![key], true),
        (None, Some(keys)) => (keys, false),
        _ => return Err(ToolError::arguments("give either `key` or `keys`")),
    };
    if keys.is_empty() || keys.len() > MOST_KEYS {
        return Err(ToolError::arguments(format!("`keys` must hold 1 to {MOST_KEYS}, got {}", keys.len())));
    }
    keys.iter().try_for_each(|key| check_key(key))?;
    Ok((keys, one))
}

fn unique<'k>(keys: impl Iterator<Item = &'k str>) -> Result<(), ToolError> {
    let mut seen = HashSet::new();
    for key in keys {
        if !seen.insert(key) {
            let key = crate::render::one_line(key, 80);
            return Err(ToolError::arguments(format!("`items` has the key `{key}` twice; keep one")));
        }
    }
    Ok(())
}

/// One of `items`.
fn of_item(at: usize, mut item: Map<String, Json>, now: i64) -> Result<Write, ToolError> {
    let what = format!("item {}", at + 1);
    let wrong = |words: &str| ToolError::arguments(format!("{what}: {words}"));
    let mut text = |name: &str| match item.remove(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(Json::Number(number)) if name == "ttl" => Ok(Some(number.to_string())),
        Some(_) => Err(wrong(&format!("`{name}` must be a string"))),
    };
    let (key, encoding, ttl) = (text("key")?, text("encoding")?, text("ttl")?);
    let key = key.ok_or_else(|| wrong("`key` is missing"))?;
    check_key(&key).map_err(|error| wrong(&error.message))?;
    let value =
        item.remove("value").filter(|value| !value.is_null()).ok_or_else(|| wrong("`value` is missing"))?;
    let if_version = match item.remove("if_version") {
        None | Some(Json::Null) => None,
        Some(version) => {
            Some(version.as_u64().ok_or_else(|| wrong("`if_version` must be a whole number, 0 or more"))?)
        }
    };
    if let Some(name) = item.keys().next() {
        let name = crate::render::one_line(name, 60);
        return Err(wrong(&format!(
            "`{name}` is no part of an item, which takes key, value, encoding, ttl, if_version"
        )));
    }
    Ok(Write {
        value: to_keep(&format!("`value` of {what}"), value, encoding.as_deref())?,
        expires_at: expiry(ttl.as_deref(), &format!("ttl of {what}"), now)?,
        key,
        if_version,
    })
}

fn expiry(ttl: Option<&str>, name: &str, now: i64) -> Result<Option<i64>, ToolError> {
    ttl.map(|ttl| Ok(now + duration::milliseconds(name, ttl, SHORTEST_TTL, None)?)).transpose()
}

fn to_keep(what: &str, value: Json, encoding: Option<&str>) -> Result<Value, ToolError> {
    let value = match encoding {
        None | Some("json") => Value::Json(value.to_string()),
        Some("bytes") => {
            let bytes = value.as_str().and_then(|text| STANDARD.decode(text).ok());
            Value::Bytes(bytes.ok_or_else(|| {
                ToolError::arguments(format!("{what} must be base64 text, since `encoding` is bytes"))
            })?)
        }
        Some(_) => return Err(ToolError::arguments("`encoding` must be json or bytes")),
    };
    let size = value.size();
    if size > LARGEST_VALUE {
        return Err(ToolError::new(
            ErrorCode::TooLarge,
            format!(
                "{what} has {size} bytes, and a value at most {LARGEST_VALUE}; split it, or use a storage primitive"
            ),
        ));
    }
    Ok(value)
}

fn written(written: Vec<Written>) -> Result<Reply, ToolError> {
    let version = |one: Written| KvVersion { key: one.key, version: one.version, value: None };
    Reply::of(&KvWritten { data: written.into_iter().map(version).collect() })
}

fn shown(entry: Entry) -> Result<KvEntry, ToolError> {
    let (value, encoding) = match entry.value {
        None => (None, None),
        Some(Value::Json(text)) => {
            let value = serde_json::from_str(&text).map_err(|error| {
                ToolError::new(
                    ErrorCode::Corrupt,
                    format!("the value of `{}` is damaged: {error}", entry.key),
                )
            })?;
            (Some(value), None)
        }
        Some(Value::Bytes(bytes)) => (Some(STANDARD.encode(bytes).into()), Some("bytes".to_owned())),
    };
    Ok(KvEntry {
        key: entry.key,
        value,
        encoding,
        version: entry.version,
        expires_at: entry.expires_at.map(clock::shown),
    })
}
