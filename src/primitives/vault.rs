//! vault_list.

use super::{Call, Reply};
use crate::error::ToolError;
use crate::results::{VaultEntry, VaultGrant, VaultList};
use crate::state::catalog::Kind;
use crate::state::vault::{Entry, Numbered, Vault};
use std::sync::Arc;

/// Arguments of [`list`].
pub struct ListInput {
    /// Id or name.
    pub primitive: Option<String>,
}

/// Names, versions and grants.
///
/// # Errors
/// As the primitive says.
pub async fn list(call: &Call<'_>, input: ListInput) -> Result<Reply, ToolError> {
    let vault = vault(call, input.primitive.as_deref()).await?;
    Reply::of(&VaultList { data: vault.list().await?.into_iter().map(shown).collect() })
}

/// A secret as it is shown to agents and people.
#[must_use]
pub fn shown(entry: Entry) -> VaultEntry {
    let grant = |Numbered { number, grant }: Numbered| VaultGrant {
        grant: number,
        hosts: grant.hosts.iter().map(ToString::to_string).collect(),
        methods: grant.methods,
        path: grant.path,
        auth: grant.auth.iter().map(ToString::to_string).collect(),
        private: grant.private,
        http: grant.http,
    };
    VaultEntry {
        name: entry.name,
        version: entry.version,
        grants: entry.grants.into_iter().map(grant).collect(),
    }
}

async fn vault(call: &Call<'_>, wanted: Option<&str>) -> Result<Arc<dyn Vault>, ToolError> {
    let primitive = call.primitive(wanted, Some(Kind::Vault)).await?;
    call.server.store.vault(&primitive).await
}
