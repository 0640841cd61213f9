//! The snapshots of a database that are there, by their names.
//!
//! It opens none of them.

use super::names::Name;
use super::{Place, SnapshotKind};
use std::path::{Path, PathBuf};

/// A snapshot in its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSnapshot {
    /// Its path.
    pub path: PathBuf,
    /// When it was made, `20261130T090102.123Z`.
    pub stamp: String,
    /// Who asked for it.
    pub kind: SnapshotKind,
    /// Its size.
    pub bytes: u64,
    /// Its permissions, the lowest nine bits; where there are none of this kind, as if it were its owner's alone.
    pub mode: u32,
}

/// The snapshots of this database, newest first; none if there is no such folder or no database.
///
/// # Errors
/// The folder cannot be read.
pub fn found(database: &Path, folder: &Path) -> std::io::Result<Vec<FoundSnapshot>> {
    let Ok(place) = Place::of(database, folder) else { return Ok(Vec::new()) };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Some(name) = Name::parse(&place.label, entry.file_name().as_encoded_bytes()) else { continue };
        // Rotation may remove it meanwhile.
        let Ok(file) = entry.metadata() else { continue };
        if file.is_file() {
            let (bytes, mode) = (file.len(), crate::platform::mode(&file).unwrap_or(0o600) & 0o777);
            let snapshot =
                FoundSnapshot { path: entry.path(), stamp: name.stamp.clone(), kind: name.kind, bytes, mode };
            found.push((name, snapshot));
        }
    }
    found.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
    Ok(found.into_iter().map(|(_, snapshot)| snapshot).collect())
}
