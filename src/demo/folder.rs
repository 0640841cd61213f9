//! A private folder for what the demo needs only while it runs.
//!
//! It is gone with its value, also when the demo fails.

use crate::error::StartError;
use std::path::{Path, PathBuf};

/// The folder; removed with all that is in it when dropped.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes a folder of a name of its own where temporary files go.
    pub(super) fn new() -> Result<Self, StartError> {
        let unique = uuid::Uuid::new_v4().simple().to_string();
        let name = format!("indelible-demo-{}", unique.get(..8).unwrap_or(&unique));
        let path = std::env::temp_dir().join(name);
        let made = crate::platform::folders(0o700).create(&path);
        made.map_err(|error| {
            StartError::failure(format!("cannot create the folder `{}`: {error}", path.display()))
        })?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Temporary files that cannot be removed are the system's to clean.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
