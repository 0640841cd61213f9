//! Paths in messages between processes: any file name, also one that is not UTF-8.
//!
//! For `#[serde(with = "crate::os_path")]`; serde's own form of a path refuses such names.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Writes the path as the platform's own string.
///
/// # Errors
/// The serializer's.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_os_str().to_owned().serialize(serializer)
}

/// Reads it back.
///
/// # Errors
/// The deserializer's.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    OsString::deserialize(deserializer).map(PathBuf::from)
}
