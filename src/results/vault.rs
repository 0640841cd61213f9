//! Results of the tools over vaults. None has a field for a secret's value.

use super::schema;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// Of vault_list.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VaultList {
    /// By name.
    pub data: Vec<VaultEntry>,
}

/// A secret, without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VaultEntry {
    /// Its name.
    pub name: String,
    /// One more with each new value.
    pub version: u64,
    /// Where it may go.
    pub grants: Vec<VaultGrant>,
}

/// Where a secret may go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VaultGrant {
    /// Its number among the secret's.
    pub grant: u64,
    /// "api.example.com", or ".example.com" for all below; with a port where it is not the usual one.
    pub hosts: Vec<String>,
    /// In upper case.
    pub methods: Vec<String>,
    /// What paths must lie under.
    pub path: String,
    /// "bearer", "basic", "header", "header:NAME", "query" or "query:PARAM".
    pub auth: Vec<String>,
    /// Whether addresses may be private ones.
    pub private: bool,
    /// Whether it may be sent without TLS.
    pub http: bool,
}

/// Of vault_use.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VaultAnswer {
    /// The status of HTTP.
    pub status: u64,
    /// Values by name in lower case; cookies are left out.
    #[schemars(schema_with = "schema::object")]
    pub headers: Map<String, Value>,
    /// The body, in which the secret is replaced.
    pub body: String,
    /// "utf8" or "base64".
    pub encoding: String,
    /// Whether less is here than came back.
    pub truncated: bool,
    /// Why the body is not here.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::string_or_null")]
    pub note: Option<String>,
}
