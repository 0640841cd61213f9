//! The files of primitives that are open: each costs a thread, a few descriptors and memory, and a data folder may hold
//! thousands.
//!
//! Those that nobody uses are closed, the one that was used longest ago first, so that a bounded number stays open. One
//! that is in use is never closed. It knows no primitives and opens nothing itself.

use super::StateFile;
use crate::platform;
use std::collections::HashMap;
use std::sync::Arc;

/// The most files that stay open while nobody uses them.
const MOST: usize = 64;
/// And the fewest, however few descriptors there are.
const FEWEST: u64 = 4;
/// Descriptors of a file: those of the database, its WAL and its `-shm` for the writer, two for each reader that is kept.
const DESCRIPTORS_EACH: u64 = 7;
/// Of all descriptors, one in so many is for files of primitives.
const SHARE: u64 = 4;

/// How many files a process may keep open.
pub(super) fn most_open() -> usize {
    platform::most_descriptors().map_or(MOST, fitting)
}

fn fitting(descriptors: u64) -> usize {
    let fitting = (descriptors / SHARE / DESCRIPTORS_EACH).max(FEWEST);
    usize::try_from(fitting).map_or(MOST, |fitting| fitting.min(MOST))
}

/// Open files, by the id of their primitive.
#[derive(Default)]
pub(super) struct OpenFiles {
    files: HashMap<String, Open>,
    uses: u64,
}

struct Open {
    file: Arc<StateFile>,
    used: u64,
}

impl OpenFiles {
    /// A file that is open.
    pub(super) fn get(&mut self, id: &str) -> Option<Arc<StateFile>> {
        self.uses += 1;
        let open = self.files.get_mut(id)?;
        open.used = self.uses;
        Some(Arc::clone(&open.file))
    }

    pub(super) fn insert(&mut self, id: String, file: Arc<StateFile>) {
        self.uses += 1;
        self.files.insert(id, Open { file, used: self.uses });
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.files.contains_key(id)
    }

    /// Takes out those that must be closed so that at most `most` are left; fewer where the others are in use.
    pub(super) fn surplus(&mut self, most: usize) -> Vec<Arc<StateFile>> {
        let count = self.files.len().saturating_sub(most);
        // Whoever uses a file has it from here, under the lock that the caller holds.
        let idle = self.files.iter().filter(|(_, open)| Arc::strong_count(&open.file) == 1);
        let mut idle: Vec<(u64, String)> = idle.map(|(id, open)| (open.used, id.clone())).collect();
        idle.sort_unstable();
        idle.into_iter()
            .take(count)
            .filter_map(|(_, id)| self.files.remove(&id))
            .map(|open| open.file)
            .collect()
    }

    /// Takes out all.
    pub(super) fn drain(&mut self) -> Vec<Arc<StateFile>> {
        self.files.drain().map(|(_, open)| open.file).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_a_share_of_the_descriptors() {
        for (descriptors, expected) in [(0, 4), (100, 4), (256, 9), (1_024, 36), (4_096, 64), (u64::MAX, 64)]
        {
            assert_eq!(fitting(descriptors), expected, "{descriptors}");
        }
    }

    #[test]
    fn what_was_used_longest_ago_is_closed_and_nothing_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let mut open = OpenFiles::default();
        for name in ["a", "b", "c", "d"] {
            let file = StateFile::open(folder.path().join(name), &[]).unwrap();
            open.insert(name.to_owned(), Arc::new(file));
        }
        let in_use = open.get("b").unwrap();
        drop(open.get("a"));
        assert_eq!(open.surplus(4).len(), 0);
        assert_eq!(open.surplus(2).len(), 2);
        let mut left: Vec<&String> = open.files.keys().collect();
        left.sort();
        assert_eq!(left, ["a", "b"]);
        assert_eq!(open.surplus(0).len(), 1);
        assert!(open.contains("b") && !open.contains("a"));
        drop(in_use);
        assert_eq!(open.surplus(0).len(), 1);
    }
}
