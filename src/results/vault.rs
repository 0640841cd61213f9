//! Results of the tools over vaults. None has a field for a secret's value.

use schemars::JsonSchema;
use serde::Serialize;

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
