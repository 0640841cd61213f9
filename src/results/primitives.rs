//! Results of the profile `primitives`.
//!
//! The tools of one type of primitive stand together, as in tools.yaml.

use super::schema;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Of primitive_list.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PrimitiveList {
    /// By name.
    pub data: Vec<PrimitiveEntry>,
}

/// A primitive in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PrimitiveEntry {
    /// Its id, which never changes.
    pub id: String,
    /// Its name.
    pub name: String,
    /// "db", "fs", "queue", "memory", "vault", "kv" or "storage".
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether a person has paused it.
    pub paused: bool,
}

/// Of primitive_create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PrimitiveMade {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
}

/// Of primitive_snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SnapshotMade {
    /// Its id.
    pub id: String,
    /// As it was given, or null.
    #[schemars(schema_with = "schema::string_or_null")]
    pub label: Option<String>,
    /// UTC like 2026-11-30T09:01:02.345Z.
    pub created_at: String,
}

/// Of kv_get.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KvFound {
    /// For `key` the entry or null; for `keys` a list, one each in order.
    pub data: Value,
}

/// An entry of a key-value primitive.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KvEntry {
    /// The key.
    pub key: String,
    /// JSON, or base64 where `encoding` is "bytes"; absent where it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub value: Option<Value>,
    /// "bytes" where the value is bytes; absent where it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::string_or_null")]
    pub encoding: Option<String>,
    /// Rises with every write to the primitive, and is never used again.
    pub version: u64,
    /// UTC like 2026-11-30T09:01:02.345Z; null where it does not expire.
    #[schemars(schema_with = "schema::string_or_null")]
    pub expires_at: Option<String>,
}

/// Of kv_list.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KvPage {
    /// In byte order of the keys.
    pub data: Vec<KvEntry>,
    /// Where the next page begins; null at the end.
    #[schemars(schema_with = "schema::string_or_null")]
    pub next_cursor: Option<String>,
}

/// Of kv_set.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KvWritten {
    /// In the order given.
    pub data: Vec<KvVersion>,
}

/// A key after a write.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KvVersion {
    /// The key.
    pub key: String,
    /// Its version from now on.
    pub version: u64,
    /// The sum, after `incr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::integer_or_null")]
    pub value: Option<i64>,
}

/// Of kv_delete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KvDeleted {
    /// How many of the keys were there.
    pub deleted: u64,
}

/// Of queue_send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QueueSent {
    /// The job.
    pub id: String,
    /// Whether it is one that was sent before under the same key.
    pub deduplicated: bool,
}

/// Of queue_receive.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct QueueReceived {
    /// Highest priority first.
    pub data: Vec<QueueJob>,
}

/// A leased job.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct QueueJob {
    /// Its id.
    pub id: String,
    /// Any JSON.
    pub body: Value,
    /// How often it has been leased.
    pub attempts: u32,
    /// 0 to 9.
    pub priority: u32,
    /// For queue_ack.
    pub lease_token: String,
    /// UTC.
    pub lease_expires_at: String,
    /// What was said of earlier attempts.
    pub errors: Vec<String>,
}

/// Of queue_ack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QueueAcked {
    /// The job.
    pub id: String,
    /// "acked", "ready", "dead" or "leased".
    pub state: String,
    /// After heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::string_or_null")]
    pub lease_expires_at: Option<String>,
    /// When it can be received next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::string_or_null")]
    pub ready_at: Option<String>,
    /// Whether the lease had run out; what was done counts all the same.
    pub lease_expired: bool,
}

/// Of memory_remember.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoryRemembered {
    /// The memory.
    pub id: String,
    /// Whether it was there already.
    pub deduplicated: bool,
}

/// Of memory_recall.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MemoriesRecalled {
    /// "lexical": by words.
    pub mode: String,
    /// The best first.
    pub data: Vec<MemoryEntry>,
}

/// A memory.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MemoryEntry {
    /// Its id.
    pub id: String,
    /// "episodic", "semantic" or "procedural".
    pub kind: String,
    /// The text.
    pub text: String,
    /// Its tags, sorted.
    pub tags: Vec<String>,
    /// An object, or null.
    #[schemars(schema_with = "schema::anything")]
    pub metadata: Option<Value>,
    /// How well it fits.
    pub score: f64,
}

/// Of memory_forget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoriesChanged {
    /// What happened to which memory.
    pub changed: Vec<MemoryChange>,
}

/// What happened to a memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoryChange {
    /// The memory.
    pub id: String,
    /// "deleted", "superseded" or "remembered".
    pub action: String,
}

/// Of fs_read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileRead {
    /// The file or folder.
    pub path: String,
    /// "utf8" or "base64".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::string_or_null")]
    pub encoding: Option<String>,
    /// The content, from `offset` on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::string_or_null")]
    pub content: Option<String>,
    /// Bytes of the whole file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::integer_or_null")]
    pub size: Option<u64>,
    /// Where the rest of the file or list begins, for `offset`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::integer_or_null")]
    pub next_offset: Option<u64>,
    /// Whether there is more.
    pub truncated: bool,
    /// With `list`: entries by path.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub data: Option<Vec<ListedFile>>,
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedFile {
    /// Its path.
    pub path: String,
    /// "file" or "dir".
    #[serde(rename = "type")]
    pub kind: String,
    /// Bytes; 0 for a folder.
    pub size: u64,
}

/// Of fs_write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileWritten {
    /// The path, after a move the new one.
    pub path: String,
    /// Bytes; 0 for a folder and after delete.
    pub size: u64,
}

/// Of fs_search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FilesFound {
    /// By path.
    pub data: Vec<FileHit>,
}

/// A file, or a line in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileHit {
    /// The file.
    pub path: String,
    /// With `query`: the line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::integer_or_null")]
    pub line: Option<u64>,
    /// With `query`: the line's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::string_or_null")]
    pub snippet: Option<String>,
}

/// Of fs_fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileForked {
    /// What was copied.
    pub from: String,
    /// The copy.
    pub to: String,
}

/// Of storage_list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ObjectPage {
    /// In byte order of the keys.
    pub data: Vec<ObjectEntry>,
    /// With `delimiter`: what keys begin with, in byte order.
    pub prefixes: Vec<String>,
    /// Where the next page begins; null at the end.
    #[schemars(schema_with = "schema::string_or_null")]
    pub next_cursor: Option<String>,
}

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ObjectEntry {
    /// Its key.
    pub key: String,
    /// Bytes.
    pub size: u64,
    /// Quoted.
    pub etag: String,
    /// Its media type.
    pub content_type: String,
}

/// Of storage_read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ObjectRead {
    /// Its key.
    pub key: String,
    /// Its media type.
    pub content_type: String,
    /// Quoted.
    pub etag: String,
    /// As it was put.
    #[schemars(schema_with = "schema::anything")]
    pub metadata: Value,
    /// Bytes of the whole object.
    pub size: u64,
    /// Which bytes are here, as "0-1023"; null for none.
    #[schemars(schema_with = "schema::string_or_null")]
    pub range: Option<String>,
    /// "utf8" or "base64".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::string_or_null")]
    pub encoding: Option<String>,
    /// The content.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::string_or_null")]
    pub content: Option<String>,
    /// Whether less is here than was asked for.
    pub truncated: bool,
}

/// Of storage_write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ObjectWritten {
    /// The object; after copy the copy.
    pub key: String,
    /// Quoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::string_or_null")]
    pub etag: Option<String>,
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::integer_or_null")]
    pub size: Option<u64>,
    /// After delete: whether it was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub deleted: Option<bool>,
}

/// Of storage_sign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ObjectSigned {
    /// The URL; whoever has it can use it.
    pub url: String,
    /// "GET" or "PUT".
    pub method: String,
    /// Headers that must be sent.
    pub headers: BTreeMap<String, String>,
    /// UTC like 2026-11-30T09:01:02Z.
    pub expires_at: String,
}
