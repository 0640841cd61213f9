//! What a disk may hold after the power went at some moment of a recording.
//!
//! The rules are those of POSIX and no file system's: of what was written to a file since its last sync, any part may
//! be there and any other not, in any order, down to pieces of a sector; of what was done to the names in a folder
//! since its last sync, any beginning. What was synced is there.

use super::session::Recording;
use super::{FileId, Op};
use crate::Dice;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// What a sector is: a write survives in pieces of this size.
const SECTOR: usize = 512;

/// How much of what was not synced survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Survival {
    Nothing,
    Everything,
    Some,
}

#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

#[derive(Clone, Debug, Default)]
struct File {
    durable: Vec<u8>,
    since: Vec<Change>,
}

/// A name in a folder and what it stands for.
#[derive(Clone, Debug)]
enum Naming {
    File(PathBuf, FileId),
    Folder(PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

/// The disk at one moment of a recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    files: HashMap<FileId, File>,
    /// Files and folders whose names are on the disk.
    names: BTreeMap<PathBuf, Option<FileId>>,
    /// By folder, what was done to names since its last sync.
    since: HashMap<PathBuf, Vec<Naming>>,
}

impl Disk {
    /// Before the first step.
    pub(crate) fn before(recording: &Recording) -> Self {
        let mut disk = Self::default();
        for (path, content, file) in &recording.before {
            disk.names.insert(path.clone(), content.as_ref().map(|_| *file));
            if let Some(content) = content {
                disk.files.insert(*file, File { durable: content.clone(), since: Vec::new() });
            }
        }
        disk
    }

    /// The next step.
    pub(crate) fn apply(&mut self, op: &Op) {
        match op {
            Op::Create(path, file) => {
                self.files.entry(*file).or_default();
                self.name(path, Naming::File(path.clone(), *file));
            }
            Op::Write { file, offset, data } => {
                self.files.entry(*file).or_default().since.push(Change::Write(*offset, data.clone()));
            }
            Op::Truncate(file, length) => {
                self.files.entry(*file).or_default().since.push(Change::Truncate(*length));
            }
            Op::Sync(file) => {
                let file = self.files.entry(*file).or_default();
                for change in std::mem::take(&mut file.since) {
                    change.to(&mut file.durable);
                }
            }
            Op::MakeFolder(path) => self.name(path, Naming::Folder(path.clone())),
            Op::SyncFolder(path) => {
                for naming in self.since.remove(path).unwrap_or_default() {
                    naming.to(&mut self.names);
                }
            }
            Op::Rename(from, to) => self.name(to, Naming::Rename(from.clone(), to.clone())),
            Op::Remove(path) => self.name(path, Naming::Remove(path.clone())),
            Op::Said(_) => {}
        }
    }

    fn name(&mut self, path: &Path, naming: Naming) {
        self.since.entry(path.parent().unwrap().to_path_buf()).or_default().push(naming);
    }

    /// Files and folders as they may be found, by path.
    pub(crate) fn image(&self, survival: Survival, dice: &mut Dice) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut names = self.names.clone();
        for namings in self.since.values() {
            let kept = match survival {
                Survival::Nothing => 0,
                Survival::Everything => namings.len(),
                Survival::Some => usize::try_from(dice.below(namings.len() as u64 + 1)).unwrap(),
            };
            namings.iter().take(kept).for_each(|naming| naming.to(&mut names));
        }
        // What lies in a folder that is not there is not there.
        let is_there = |path: &Path| {
            let folder = path.parent().unwrap();
            !self.is_new_folder(folder) || names.contains_key(folder)
        };
        let kept: Vec<(PathBuf, Option<FileId>)> =
            names.iter().filter(|(path, _)| is_there(path)).map(|(p, f)| (p.clone(), *f)).collect();
        kept.into_iter().map(|(path, file)| (path, file.map(|id| self.content(id, survival, dice)))).collect()
    }

    /// Whether the folder was made in the recording.
    fn is_new_folder(&self, folder: &Path) -> bool {
        self.names.get(folder).is_some_and(Option::is_none)
            || self
                .since
                .values()
                .flatten()
                .any(|naming| matches!(naming, Naming::Folder(path) if path == folder))
    }

    fn content(&self, file: FileId, survival: Survival, dice: &mut Dice) -> Vec<u8> {
        let file = &self.files[&file];
        let mut bytes = file.durable.clone();
        for change in &file.since {
            match survival {
                Survival::Nothing => {}
                Survival::Everything => change.to(&mut bytes),
                Survival::Some => change.partly_to(&mut bytes, dice),
            }
        }
        bytes
    }
}

impl Change {
    fn to(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(offset, data) => put(bytes, *offset, data),
            Self::Truncate(length) => bytes.resize(usize::try_from(*length).unwrap(), 0),
        }
    }

    /// Whole, not at all, or in some of its sectors.
    fn partly_to(&self, bytes: &mut Vec<u8>, dice: &mut Dice) {
        match (self, dice.below(4)) {
            (_, 0) => {}
            (Self::Write(offset, data), 1) => {
                for (at, sector) in data.chunks(SECTOR).enumerate() {
                    if dice.one_in(2) {
                        put(bytes, offset + (at * SECTOR) as u64, sector);
                    }
                }
            }
            _ => self.to(bytes),
        }
    }
}

impl Naming {
    fn to(&self, names: &mut BTreeMap<PathBuf, Option<FileId>>) {
        match self {
            Self::File(path, file) => drop(names.insert(path.clone(), Some(*file))),
            Self::Folder(path) => drop(names.insert(path.clone(), None)),
            Self::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            Self::Remove(path) => drop(names.remove(path)),
        }
    }
}

fn put(bytes: &mut Vec<u8>, offset: u64, data: &[u8]) {
    let start = usize::try_from(offset).unwrap();
    if bytes.len() < start + data.len() {
        bytes.resize(start + data.len(), 0);
    }
    bytes[start..start + data.len()].copy_from_slice(data);
}
