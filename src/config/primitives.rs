//! Where groups of primitives are, as the settings say it.
//!
//! It does not look whether they are there.

use super::vault_key::VaultKey;
use crate::error::StartError;
use std::path::PathBuf;

/// Where primitives are kept, and whose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Primitives {
    /// The data folder, absolute.
    pub data: PathBuf,
    /// The group; none where it was not given.
    pub group: Option<String>,
    /// The folder of the model that recalls memories by meaning, absolute.
    pub embedding_model: Option<PathBuf>,
    /// The key of the vaults; none where the data folder has it.
    pub vault_key: Option<VaultKey>,
}

impl Primitives {
    /// The group, for what is about one.
    ///
    /// # Errors
    /// As [`named_group`].
    pub fn group(&self) -> Result<&str, StartError> {
        named_group(self.group.as_deref())
    }
}

/// The group, where one must be named.
///
/// # Errors
/// None was; exit status 2.
pub fn named_group(group: Option<&str>) -> Result<&str, StartError> {
    group.ok_or_else(|| StartError::usage("no group: give --group NAME, or set INDELIBLE_GROUP"))
}
