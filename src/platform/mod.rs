//! What operating systems do each in their own way: private files and folders, who may do what, renaming, names as bytes.
//!
//! It knows no database and decides nothing. Where a system has no such thing, the function says what stands in its place.
//!
//! # Layout
//!
//! - `unix`: by modes, access(2) and flock(2)
//! - `elsewhere`: by what std has on every system

#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
use elsewhere as system;
#[cfg(unix)]
use unix as system;

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::ops::Range;
use std::path::Path;

/// Makes folders with this mode, before the process's mask. Elsewhere they are as private as the folder around them.
#[must_use]
pub fn folders(mode: u32) -> DirBuilder {
    system::folders(mode)
}

/// The same options, and a file that is made is for its owner alone. Elsewhere it is as private as its folder.
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    system::private(options)
}

/// Whether this process may read it.
///
/// # Errors
/// The system's reason why not.
pub fn may_read(path: &Path) -> std::io::Result<()> {
    system::may_read(path)
}

/// Whether this process may write it, without trying. Elsewhere: whether it is not marked as read-only.
#[must_use]
pub fn may_write(path: &Path) -> bool {
    system::may_write(path)
}

/// Whether this process may make files in a folder, without trying. Elsewhere it turns out when it is tried.
#[must_use]
pub fn may_make_files(folder: &Path) -> bool {
    system::may_make_files(folder)
}

/// The permissions of a file, its lowest twelve bits; none where files have none of this kind.
#[must_use]
pub fn mode(found: &Metadata) -> Option<u32> {
    system::mode(found)
}

/// The user a file belongs to and the user of this process, as numbers; none where users have none.
#[must_use]
pub fn owner_and_self(found: &Metadata) -> Option<(u32, u32)> {
    system::owner_and_self(found)
}

/// What tells a file from any other, also after a change of its name: device and inode. None where std has no such thing.
#[must_use]
pub fn identity(found: &Metadata) -> Option<(u64, u64)> {
    system::identity(found)
}

/// Whether the system lets this process, or all together, open no more files.
#[must_use]
pub fn is_lack_of_descriptors(error: &std::io::Error) -> bool {
    system::is_lack_of_descriptors(error)
}

/// Takes as many descriptors as a server can use, where the system lets every process have more than it gives at first.
pub fn raise_descriptors() {
    system::raise_descriptors();
}

/// How many descriptors this process may have at once; none where there is no such limit.
#[must_use]
pub fn most_descriptors() -> Option<u64> {
    system::most_descriptors()
}

/// Whether the system gives this user no more processes, threads or memory.
#[must_use]
pub fn is_lack_of_processes(error: &std::io::Error) -> bool {
    system::is_lack_of_processes(error)
}

/// Opens a file to read, not what a link points to, and without waiting for what is no file.
///
/// # Errors
/// The system's; also that it is a link.
pub fn open_no_link(path: &Path) -> std::io::Result<File> {
    system::open_no_link(path)
}

/// Renames only to a name that is free.
///
/// # Errors
/// The system's; `AlreadyExists` if it is taken.
pub fn rename_to_new(from: &Path, to: &Path) -> std::io::Result<()> {
    system::rename_to_new(from, to)
}

/// How many bytes can still be written in a folder; none where that is not known, or where a copy may share its blocks
/// with the original and so need fewer.
#[must_use]
pub fn room_in(folder: &Path) -> Option<u64> {
    system::room_in(folder)
}

/// Where in the first `length` bytes of a file something is written, in order; between them are holes, which read as zeros.
/// Elsewhere, and on file systems that have no holes or do not tell them, that is all of it. It moves the file's position.
///
/// # Errors
/// The system's.
pub fn data_within(file: &File, length: u64) -> std::io::Result<Vec<Range<u64>>> {
    system::data_within(file, length)
}

/// How many bytes of a file take room on the disk. Elsewhere: its length.
#[must_use]
pub fn stored(found: &Metadata) -> u64 {
    system::stored(found)
}

/// Makes the names in a folder last. Elsewhere, and on file systems that have no such thing, the system does it by itself.
///
/// # Errors
/// The system's.
pub fn sync_names(folder: &Path) -> std::io::Result<()> {
    system::sync_names(folder)
}

/// Runs something while the terminal does not show what is typed.
///
/// # Errors
/// The system's; elsewhere it cannot be done.
pub fn without_echo<T>(terminal: &File, run: impl FnOnce() -> std::io::Result<T>) -> std::io::Result<T> {
    system::without_echo(terminal, run)
}

/// A folder, open so that it can be locked; none where a folder cannot be opened.
#[must_use]
pub fn lockable(folder: &Path) -> Option<File> {
    system::lockable(folder)
}

/// The path of an absolute path for a `file:` URI of SQLite's, not escaped yet (<https://sqlite.org/uri.html#the_uri_path>).
#[must_use]
pub fn uri_path(path: &Path) -> Vec<u8> {
    system::uri_path(path)
}
