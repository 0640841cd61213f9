//! Landlock: which files can be reached, no network, no signals to others.
//!
//! It sees paths and not what they are for. A rule sticks to the file that is there now; one that is made later
//! under the same name is covered by a rule for its folder alone.

use crate::sandbox::Reach;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use std::path::Path;

/// What is asked for; a kernel that knows less does less (<https://landlock.io/rust-landlock/landlock/enum.ABI.html>).
const KNOWN: ABI = ABI::V10;

/// What every process needs: seeds for SQLite's random numbers, and the zone of `'localtime'`.
const ALWAYS_READ: &[&str] = &["/dev/urandom", "/etc/localtime"];

/// Restricts the calling thread; the version that holds.
pub(super) fn restrict(reach: &Reach) -> Result<u8, String> {
    let status = rules(reach).and_then(RulesetCreated::restrict_self).map_err(|error| error.to_string())?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => {
            Err("Landlock is not enabled in this kernel".to_owned())
        }
        (RulesetStatus::NotEnforced, _) => Err("this kernel has no Landlock".to_owned()),
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(effective_abi as u8),
        (_, _) => Ok(1),
    }
}

fn rules(reach: &Reach) -> Result<RulesetCreated, RulesetError> {
    let to_read = BitFlags::from(AccessFs::ReadFile);
    let to_write = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    // ReadDir: SQLite syncs the folder after it has made or removed a journal.
    let to_make = to_write | AccessFs::ReadDir | AccessFs::MakeReg | AccessFs::RemoveFile;
    let mut created = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?;
    let always = ALWAYS_READ.iter().map(|path| (Path::new(path), to_read));
    let listed = |path: &Path| if path.is_dir() { to_read | AccessFs::ReadDir } else { to_read };
    let read = reach.read.iter().map(|path| (path.as_path(), listed(path)));
    let write = reach.write.iter().map(|path| (path.as_path(), to_write));
    let folders = reach.folders.iter().map(|path| (path.as_path(), to_make));
    for (path, access) in always.chain(read).chain(write).chain(folders) {
        // What is not there cannot be opened later either.
        if let Ok(file) = PathFd::new(path) {
            created = created.add_rule(PathBeneath::new(file, access))?;
        }
    }
    Ok(created)
}
