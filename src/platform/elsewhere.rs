//! Systems that are not Unix, Windows first of all: what std has on all of them.
//!
//! What is said of each function stands in `mod.rs`.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::Path;

pub(super) fn folders(_mode: u32) -> DirBuilder {
    DirBuilder::new()
}

pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

pub(super) fn may_read(path: &Path) -> io::Result<()> {
    // Nobody's SQLite locks hang on a descriptor here, so opening it does no harm.
    File::open(path).map(|_| ())
}

pub(super) fn may_write(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.permissions().readonly())
}

pub(super) fn may_make_files(folder: &Path) -> bool {
    folder.is_dir()
}

pub(super) fn mode(_found: &Metadata) -> Option<u32> {
    None
}

pub(super) fn owner_and_self(_found: &Metadata) -> Option<(u32, u32)> {
    None
}

pub(super) fn identity(_found: &Metadata) -> Option<(u64, u64)> {
    None
}

pub(super) fn is_lack_of_descriptors(_error: &io::Error) -> bool {
    false
}

pub(super) fn raise_descriptors() {}

pub(super) fn most_descriptors() -> Option<u64> {
    None
}

pub(super) fn is_lack_of_processes(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory
}

pub(super) fn open_no_link(path: &Path) -> io::Result<File> {
    if path.symlink_metadata()?.is_symlink() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a link"));
    }
    File::open(path)
}

pub(super) fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    // A hard link never replaces.
    std::fs::hard_link(from, to)?;
    std::fs::remove_file(from)
}

pub(super) fn room_in(_folder: &Path) -> Option<u64> {
    None
}

#[expect(clippy::unnecessary_wraps, reason = "other systems have errors here")]
pub(super) fn data_within(_file: &File, length: u64) -> io::Result<Vec<Range<u64>>> {
    Ok(std::iter::once(0..length).collect())
}

pub(super) fn stored(found: &Metadata) -> u64 {
    found.len()
}

pub(super) fn sync_names(_folder: &Path) -> io::Result<()> {
    Ok(())
}

pub(super) fn without_echo<T>(_terminal: &File, _run: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn lockable(_folder: &Path) -> Option<File> {
    None
}

pub(super) fn uri_path(path: &Path) -> Vec<u8> {
    let text = path.to_string_lossy();
    // What std::fs::canonicalize puts in front.
    let text = text.strip_prefix(r"\\?\").unwrap_or(&text).replace('\\', "/");
    if text.starts_with('/') { text.into_bytes() } else { format!("/{text}").into_bytes() }
}
