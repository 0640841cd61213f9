//! Results of the profile `primitives`.
//!
//! The tools of one type of primitive stand together, as in tools.yaml.

use super::schema;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

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

/// Of primitive_create and primitive_fork.
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
