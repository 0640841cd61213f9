//! The file, its folder and what lies beside it, by looking at them as any program would.
//!
//! It opens no database.

use super::{Finding, State, bytes};
use crate::clients::quoted_path;
use crate::config::Settings;
use crate::platform;
use crate::sqlite::checkup::companion;
use crate::sqlite::diagnose;
use std::fs::Metadata;
use std::path::Path;

/// A -wal above this size and larger than the database is worth a word.
const LARGE_WAL: u64 = 64 << 20;

/// The findings, and whether SQLite should be asked next.
pub(super) fn look(settings: &Settings) -> (Vec<Finding>, bool) {
    let path = settings.db.as_path();
    let mut findings =
        vec![Finding::ok("path", path.to_string_lossy()).with(path.to_string_lossy().as_ref())];
    findings.extend(link(path));
    // A file that is absent or empty is made; what is no file is said in the server's own words.
    let is_new = match diagnose::regular_file_or_absent(path) {
        Ok(is_new) => is_new,
        Err(error) => {
            findings.push(Finding::from_line(State::Problem, "file", &error.message));
            return (findings, false);
        }
    };
    let Ok(found) = std::fs::metadata(path) else {
        findings.push(absent(settings));
        findings.extend(folder(settings, path, true));
        return (findings, false);
    };
    findings.extend(platform::mode(&found).map(|mode| permissions(path, mode)));
    findings.extend(owner(&found));
    findings.extend(access_to(settings, path));
    findings.extend(folder(settings, path, is_new));
    findings.extend(file_system(path));
    findings.push(Finding::ok("size", bytes(found.len())).with(found.len()));
    findings.extend(beside(path, found.len()));
    if is_new {
        findings.push(Finding::new(
            if settings.read_only { State::Problem } else { State::Note },
            "database",
            "the file is empty; the server makes its tables in it at its first start",
        ));
    }
    let readable = platform::may_read(path).is_ok();
    (findings, readable && !is_new)
}

fn link(path: &Path) -> Option<Finding> {
    let found = std::fs::symlink_metadata(path).ok()?;
    if !found.is_symlink() {
        return None;
    }
    Some(match std::fs::canonicalize(path) {
        Ok(real) => {
            let real = real.to_string_lossy().into_owned();
            let text = format!("a link to {real}; -wal and -shm lie there, snapshots beside the link");
            Finding::new(State::Note, "link", text).with(real)
        }
        Err(error) => Finding::new(State::Problem, "link", format!("a link that leads nowhere: {error}"))
            .advise("make the link anew, or give the path of the file itself"),
    })
}

fn absent(settings: &Settings) -> Finding {
    let text = "there is no such file";
    if settings.read_only {
        return Finding::new(State::Problem, "file", text)
            .advise("give the path of a database, or start once without --read-only to have it made");
    }
    Finding::new(State::Warning, "file", text).advise(
        "if that is not the path you meant, correct it; the server would make the file at its first start",
    )
}

fn permissions(path: &Path, mode: u32) -> Finding {
    let shown = format!("{mode:04o}");
    let private = format!("chmod 600 {}", quoted_path(path));
    let finding = match mode {
        mode if mode & 0o002 != 0 => {
            let text = format!("{shown}: anybody on this machine may change it, past the server");
            Finding::new(State::Warning, "permissions", text).advise(private)
        }
        mode if mode & 0o020 != 0 => {
            let text = format!("{shown}: its group may change it, past the server");
            Finding::new(State::Note, "permissions", text).advise(private)
        }
        mode if mode & 0o044 != 0 => {
            let text = format!("{shown}: others on this machine may read it");
            Finding::new(State::Note, "permissions", text).advise(private)
        }
        _ => Finding::ok("permissions", shown.clone()),
    };
    finding.with(shown)
}

fn owner(found: &Metadata) -> Option<Finding> {
    let (owner, own) = platform::owner_and_self(found)?;
    let text = format!("the file belongs to user {owner}, this is user {own}");
    (owner != own).then(|| Finding::new(State::Note, "owner", text).with(owner))
}

fn access_to(settings: &Settings, path: &Path) -> Option<Finding> {
    if let Err(error) = platform::may_read(path) {
        let finding = Finding::new(State::Problem, "access", format!("the file cannot be read: {error}"));
        return Some(finding.advise(format!("chmod u+rw {}, or ask its owner", quoted_path(path))));
    }
    if settings.read_only || platform::may_write(path) {
        return None;
    }
    Some(Finding::from_line(State::Problem, "access", &diagnose::read_only_file(path).message))
}

/// The folder that SQLite writes its journal into, or the nearest one that is there.
fn folder(settings: &Settings, path: &Path, is_new: bool) -> Option<Finding> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = real.ancestors().skip(1).find(|folder| folder.exists())?;
    let shown = folder.to_string_lossy();
    if platform::may_make_files(folder) {
        return None;
    }
    let finding = match (settings.read_only, is_new) {
        (true, _) => Finding::new(
            State::Note,
            "folder",
            format!(
                "{shown} cannot be written: without -wal and -shm beside it a file in WAL mode needs --immutable"
            ),
        ),
        (false, true) => Finding::new(State::Problem, "folder", format!("{shown} cannot be written"))
            .advise("make the folder writable, or choose another path"),
        (false, false) => {
            let text = format!("{shown} cannot be written, and SQLite must write its journal there");
            Finding::new(State::Problem, "folder", text).advise("make it writable, or start with --read-only")
        }
    };
    Some(finding.with(shown.as_ref()))
}

fn beside(path: &Path, database: u64) -> Vec<Finding> {
    let size = |ending: &str| std::fs::metadata(companion(path, ending)).ok().map(|found| found.len());
    let mut findings = Vec::new();
    if let Some(wal) = size("-wal") {
        let text = format!("{} beside it, a part of the database", bytes(wal));
        let finding = if wal > LARGE_WAL && wal > database {
            Finding::new(State::Note, "-wal", format!("{text}; it is large"))
                .advise("some program keeps a read open, or none has closed the file in an orderly way for long: end them, then start and end the server once")
        } else if size("-shm").is_none() && wal > 0 {
            Finding::new(State::Note, "-wal", format!("{text}, and no -shm: no program has the file open"))
                .advise("keep both files together; the next start takes the changes in")
        } else {
            Finding::ok("-wal", text)
        };
        findings.push(finding.with(wal));
    }
    if let Some(journal) = size("-journal").filter(|journal| *journal > 0) {
        let text = format!("{} beside it: a transaction is under way, or was cut off", bytes(journal));
        let finding = Finding::new(State::Note, "-journal", text)
            .advise("if no program writes, start the server once without --read-only: SQLite rolls it back");
        findings.push(finding.with(journal));
    }
    findings
}

/// Network file systems, by the numbers of statfs(2) and linux/magic.h.
#[cfg(target_os = "linux")]
fn file_system(path: &Path) -> Option<Finding> {
    const NETWORK: [(u32, &str); 11] = [
        (0x6969, "NFS"),
        (0x517B, "SMB"),
        (0xFF53_4D42, "CIFS"),
        (0xFE53_4D42, "SMB"),
        (0x7375_7245, "Coda"),
        (0x5346_414F, "AFS"),
        (0x0102_1997, "9P"),
        (0x00C3_6400, "Ceph"),
        (0x0BD0_0BD0, "Lustre"),
        (0x4750_4653, "GPFS"),
        (0x786F_4256, "a shared folder of VirtualBox"),
    ];
    const FUSE: u32 = 0x6573_5546;
    // The numbers have 32 bits; the width of the field differs.
    let number = rustix::fs::statfs(path).ok()?.f_type as u32;
    if let Some((_, name)) = NETWORK.iter().find(|(magic, _)| *magic == number) {
        let text = format!(
            "{name}: SQLite's locks are not to be relied on there, and WAL does not work between machines"
        );
        return Some(
            Finding::new(State::Warning, "file system", text)
                .advise("move the file to a local disk")
                .with(*name),
        );
    }
    (number == FUSE).then(|| {
        Finding::new(
            State::Note,
            "file system",
            "FUSE: if another machine is behind it, locks are not to be relied on",
        )
        .advise("if so, move the file to a local disk")
        .with("FUSE")
    })
}

/// It cannot be told here.
#[cfg(not(target_os = "linux"))]
fn file_system(_path: &Path) -> Option<Finding> {
    None
}

/// For tests of the words.
#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_judged_by_who_else_may_do_what() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b.db");
        std::fs::write(&path, "x").unwrap();
        let rows = [
            (0o600, State::Ok, "0600"),
            (0o640, State::Note, "0640: others on this machine may read it"),
            (0o660, State::Note, "0660: its group may change it, past the server"),
            (0o666, State::Warning, "0666: anybody on this machine may change it, past the server"),
        ];
        for (mode, state, text) in rows {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(&path, mode).unwrap();
            let finding = permissions(&path, platform::mode(&path.metadata().unwrap()).unwrap());
            assert_eq!((finding.state, finding.text.as_str()), (state, text));
            assert_eq!(finding.advice.is_some(), state != State::Ok);
            let advice = finding.advice.unwrap_or_default();
            assert!(advice.is_empty() || advice == format!("chmod 600 '{}'", path.display()), "{advice}");
            assert_eq!(finding.value, text[..4]);
        }
    }
}
