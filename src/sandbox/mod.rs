//! What a process takes from itself for good, so that a flaw in SQLite or in our own code gains little.
//!
//! It knows no database: the caller says which files and folders are needed. It undoes nothing and fails nothing;
//! what this system cannot do is said in [`Confined`], and the process goes on without.
//!
//! # Layout
//!
//! - `linux`: Landlock for files, networks and signals; seccomp for system calls; limits; pages
//! - `elsewhere`: other systems have none of these
//! - [`attempt`]: tries what must be denied, for tests and `indelible doctor`

pub mod attempt;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
mod system;
#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod system;

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Address space of a worker, in bytes: its largest message (160 MiB, in a buffer that doubles), the same once more as
/// values, SQLite's heap limit and a result, with room to spare.
pub const WORKER_MEMORY: u64 = 1 << 30;

/// The same for processes that copy whole databases, whose largest value SQLite allows to be 1 GB.
pub const COPIER_MEMORY: u64 = 3 << 30;

/// What a process may still reach. What is not there when the sandbox closes cannot be reached later, but for what
/// comes into being in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Files, and folders with all that is in them, to read.
    pub read: Vec<PathBuf>,
    /// Files to read and write.
    pub write: Vec<PathBuf>,
    /// Folders in which files are made, written and removed.
    pub folders: Vec<PathBuf>,
    /// Bytes of address space.
    pub memory: u64,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confined {
    /// The version of Landlock that holds (<https://docs.kernel.org/userspace-api/landlock.html>); 0 for none.
    pub landlock: u8,
    /// Whether system calls are filtered.
    pub seccomp: bool,
    /// What could not be had, in words: `files are not confined: this kernel has no Landlock`.
    pub lacks: Vec<String>,
}

/// Closes what the process inherited beside its three standard streams. Call it before anything is opened.
pub fn close_inherited() {
    system::close_inherited();
}

/// From now on a file that reaches `ulimit -f` is an error of the write, as a full disk is, and not the end of this process
/// or of one that it starts. Elsewhere there is no such limit, or it stays the end.
pub fn survive_file_size_limits() {
    system::survive_file_size_limits();
}

/// Ends this process when the thread that started it ends, also by SIGKILL, where the system can do that. Elsewhere
/// the process ends when it next looks at its closed stdin.
pub fn die_with_the_parent() {
    system::die_with_the_parent();
}

/// Gives back the memory of code that only the start of the process needed, where the system can do that: most of a
/// program is read once, and would count as this process's for as long as it lives.
pub fn give_back_code() {
    system::give_back_code();
}

/// Confines the calling thread, and so every thread that it starts later. There must be no other yet.
#[must_use]
pub fn confine(reach: &Reach) -> Confined {
    system::confine(reach)
}
