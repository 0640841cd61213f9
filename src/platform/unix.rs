//! Unix: modes, access(2), flock(2).
//!
//! What is said of each function stands in `mod.rs`.

use rustix::fs::{Access, CWD, Mode, OFlags, RenameFlags, access, renameat_with};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

pub(super) fn folders(mode: u32) -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(mode);
    builder
}

pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

pub(super) fn may_read(path: &Path) -> io::Result<()> {
    access(path, Access::READ_OK).map_err(Into::into)
}

pub(super) fn may_write(path: &Path) -> bool {
    access(path, Access::WRITE_OK).is_ok()
}

pub(super) fn may_make_files(folder: &Path) -> bool {
    access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

pub(super) fn mode(found: &Metadata) -> Option<u32> {
    Some(found.mode() & 0o7777)
}

pub(super) fn owner_and_self(found: &Metadata) -> Option<(u32, u32)> {
    Some((found.uid(), rustix::process::geteuid().as_raw()))
}

pub(super) fn identity(found: &Metadata) -> Option<(u64, u64)> {
    Some((found.dev(), found.ino()))
}

pub(super) fn is_lack_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// As many as 512 connections and some hundred files of primitives need.
const DESCRIPTORS: u64 = 8_192;

pub(super) fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(DESCRIPTORS).min(DESCRIPTORS);
    if current.is_some_and(|current| current < wanted) {
        // Some systems have a limit of their own below that; then it stays as it is.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

pub(super) fn most_descriptors() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

pub(super) fn is_lack_of_processes(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::AGAIN | Errno::NOMEM))
}

pub(super) fn open_no_link(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

pub(super) fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system knows NOREPLACE; a hard link never replaces either.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        other => other.map_err(Into::into),
    }
}

#[cfg(target_os = "linux")]
pub(super) fn room_in(folder: &Path) -> Option<u64> {
    /// Btrfs, XFS, bcachefs, ZFS, OverlayFS, which may lie on one of them (statfs(2)).
    const SHARING: [u32; 5] = [0x9123_683e, 0x5846_5342, 0xca45_1a4e, 0x2fc1_2fc1, 0x794c_7630];
    let found = rustix::fs::statfs(folder).ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "magic numbers have 32 bits")]
    let shares = SHARING.contains(&(found.f_type as u32));
    let block = u64::try_from(found.f_bsize).ok()?;
    (!shares).then(|| found.f_bavail.saturating_mul(block))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn room_in(_folder: &Path) -> Option<u64> {
    None
}

pub(super) fn data_within(file: &File, length: u64) -> io::Result<Vec<Range<u64>>> {
    use rustix::fs::{SeekFrom, seek};
    let (mut parts, mut at) = (Vec::new(), 0);
    while at < length {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            // Nothing but a hole up to the end (lseek(2)).
            Err(Errno::NXIO) => break,
            // A file system that knows none.
            Err(Errno::INVAL | Errno::NOTSUP) if parts.is_empty() => {
                return Ok(std::iter::once(0..length).collect());
            }
            Err(error) => return Err(error.into()),
        };
        if start >= length {
            break;
        }
        at = seek(file, SeekFrom::Hole(start))?.min(length);
        parts.push(start..at);
    }
    Ok(parts)
}

pub(super) fn stored(found: &Metadata) -> u64 {
    // In units of 512 bytes, whatever the file system's (stat(3type)).
    found.blocks().saturating_mul(512)
}

pub(super) fn sync_names(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some file systems have no such thing as syncing a folder.
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn without_echo<T>(terminal: &File, run: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let shown = tcgetattr(terminal)?;
    let mut silent = shown.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(terminal, OptionalActions::Flush, &silent)?;
    let result = run();
    tcsetattr(terminal, OptionalActions::Flush, &shown)?;
    result
}

pub(super) fn lockable(folder: &Path) -> Option<File> {
    File::open(folder).ok()
}

pub(super) fn uri_path(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}
