//! Removes what nothing names any more: large contents that no file, no object and no snapshot of the group has, and
//! files that a killed server has left.
//!
//! Mark and sweep. While names are gathered nothing is copied (`Keeper::moving`), so what a fork or a snapshot names is
//! named by what it was copied from. What is put meanwhile is young, and only what is old goes. In doubt everything
//! stays: where the catalog does not know a folder, the contents of its group are left alone.

use super::blobs::Gate;
use super::folder::{self, Folder};
use super::keeper::Keeper;
use super::records::{Everything, FIRST_FILE};
use super::rows::all;
use crate::sqlite::state_file;
use crate::state::Outcome;
use crate::state::catalog::Kind;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, SystemTime};

/// What was written within this time stays.
const GRACE: Duration = Duration::from_secs(3_600);
/// When a server looks first, and how often then.
const FIRST_LOOK: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_secs(3_600);

/// What sweeps a data folder.
pub(super) struct Sweeper {
    pub(super) folder: Arc<Folder>,
    pub(super) keeper: Arc<Keeper>,
    pub(super) gate: Gate,
}

/// Sweeps now and then as long as the server lives.
pub(super) async fn sweep_for_ever(sweeper: Weak<Sweeper>) {
    let mut pause = FIRST_LOOK;
    loop {
        tokio::time::sleep(pause).await;
        pause = LOOK_EVERY;
        let Some(sweeper) = sweeper.upgrade() else { return };
        match sweeper.sweep(GRACE).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!("{removed} large contents that nothing named were removed"),
            Err(error) => tracing::warn!("what nothing names could not be removed: {}", error.message),
        }
    }
}

impl Sweeper {
    /// Removes what was not written for `grace`; how many large contents that were.
    pub(super) async fn sweep(&self, grace: Duration) -> Outcome<u64> {
        let moving = self.keeper.moving().await;
        let groups = self.folder.groups();
        // Folders first: one that is made now is in the catalog already.
        let found = super::blocking({
            let groups = groups.clone();
            move || Ok(primitives_in(&groups))
        })
        .await?;
        let known = self.keeper.catalog.everything().await?;
        let marked = super::blocking(move || {
            clear_leftovers(&found, &known, grace);
            mark(&found, &known)
        })
        .await?;
        drop(moving);
        let gate = Arc::clone(&self.gate);
        super::blocking(move || {
            Ok(marked
                .iter()
                .map(|(group, names)| sweep_group(&groups.join(group), names, &gate, grace))
                .sum())
        })
        .await
    }
}

/// The folder of a primitive: its group, its id, its path.
type Found = (String, String, PathBuf);

fn primitives_in(groups: &Path) -> Vec<Found> {
    let mut found = Vec::new();
    for group in entries(groups) {
        for one in entries(&group.path()).filter(|one| one.path().is_dir() && one.file_name() != "blobs") {
            let name = |entry: &DirEntry| entry.file_name().to_string_lossy().into_owned();
            found.push((name(&group), name(&one), one.path()));
        }
    }
    found
}

/// Removes what a killed server has left: forks that were not finished, copies that nothing names.
fn clear_leftovers(found: &[Found], known: &Everything, grace: Duration) {
    let primitives: HashSet<&str> = known.primitives.iter().map(|(id, ..)| id.as_str()).collect();
    for (_, id, folder) in found {
        if folder::is_hidden(id) {
            let _ = std::fs::remove_dir_all(folder);
            continue;
        }
        if !primitives.contains(id.as_str()) {
            if folder::is_unfinished(folder) {
                folder::discard(folder);
            }
            continue;
        }
        folder::finish(folder);
        let main = known.files.iter().find(|(of, branch, _)| of == id && branch.is_empty());
        let mut named: Vec<&str> =
            known.files.iter().filter(|(of, ..)| of == id).map(|(_, _, file)| file.as_str()).collect();
        if main.is_none() {
            named.push(FIRST_FILE);
        }
        remove_others(folder, &named, grace);
        let snapshots: Vec<String> =
            known.snapshots.iter().filter(|(of, _)| of == id).map(|(_, one)| format!("{one}.db")).collect();
        let snapshots: Vec<&str> = snapshots.iter().map(String::as_str).collect();
        remove_others(&folder.join("snapshots"), &snapshots, grace);
    }
}

/// Removes databases, and copies of some in the making, that are not named.
fn remove_others(folder: &Path, named: &[&str], grace: Duration) {
    for entry in entries(folder) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let of_named = named.iter().any(|one| name.starts_with(one));
        let ours = name.contains(".db") && (name.starts_with('.') || name.len() >= FIRST_FILE.len());
        if ours && !of_named && is_old(&entry.path(), grace) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The hashes that each group names. A group is left out where something in it is not known.
fn mark(found: &[Found], known: &Everything) -> Outcome<HashMap<String, HashSet<String>>> {
    let mut marked: HashMap<String, HashSet<String>> = HashMap::new();
    let mut doubtful: HashSet<&str> = HashSet::new();
    for (group, id, folder) in
        found.iter().filter(|(_, id, folder)| !folder::is_hidden(id) && folder.exists())
    {
        let names = marked.entry(group.clone()).or_default();
        let kind = known.primitives.iter().find(|(one, ..)| one == id).map(|(.., kind)| kind.as_str());
        let sql = match kind.and_then(Kind::from_name) {
            Some(Kind::Fs) => "SELECT hash FROM contents WHERE bytes IS NULL",
            Some(Kind::Storage) => "SELECT hash FROM objects WHERE bytes IS NULL",
            Some(_) => continue,
            None => {
                tracing::warn!("`{}` is not in the catalog; contents of its group stay", folder.display());
                doubtful.insert(group);
                continue;
            }
        };
        let is_database = |path: &PathBuf| path.extension() == Some(OsStr::new("db"));
        for file in entries(folder).map(|entry| entry.path()).filter(is_database) {
            names.extend(all(&state_file::reader(&file)?, sql, [], |row| row.get::<_, String>(0))?);
        }
        for file in entries(&folder.join("snapshots")).map(|entry| entry.path()).filter(is_database) {
            names.extend(all(&state_file::frozen(&file)?, sql, [], |row| row.get::<_, String>(0))?);
        }
    }
    marked.retain(|group, _| !doubtful.contains(group.as_str()));
    Ok(marked)
}

fn sweep_group(group: &Path, names: &HashSet<String>, gate: &Gate, grace: Duration) -> u64 {
    let mut removed = 0;
    let folders = entries(&group.join("blobs")).flat_map(|outer| entries(&outer.path()));
    for blob in folders.flat_map(|inner| entries(&inner.path())) {
        let path = blob.path();
        if names.contains(&*blob.file_name().to_string_lossy()) || !is_old(&path, grace) {
            continue;
        }
        // Nobody puts it again just now.
        let _alone = gate.write().unwrap_or_else(PoisonError::into_inner);
        if is_old(&path, grace) && std::fs::remove_file(&path).is_ok() {
            removed += 1;
        }
    }
    removed
}

/// Whether it was not written for so long.
fn is_old(path: &Path, grace: Duration) -> bool {
    let written = path.metadata().and_then(|found| found.modified());
    written.is_ok_and(|written| SystemTime::now().duration_since(written).is_ok_and(|age| age >= grace))
}

/// What is in a folder; nothing where it is not there.
fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    std::fs::read_dir(folder).into_iter().flatten().flatten()
}
