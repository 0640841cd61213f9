//! The key that everything in the vaults of a data folder is sealed under: from the environment, or a file of the
//! folder that is made with the first secret.
//!
//! It is read anew each time, so that a file that a person has put back counts at once.

use super::seal::Sealer;
use crate::config::VaultKey;
use crate::error::{ErrorCode, ToolError};
use crate::platform;
use crate::state::Outcome;
use chacha20poly1305::Key;
use chacha20poly1305::aead::Generate;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use zeroize::{Zeroize, Zeroizing};

/// Where the key comes from.
#[derive(Clone, Debug)]
pub(in crate::embedded) enum KeySource {
    /// The environment gave it.
    Given(VaultKey),
    /// This file, readable for its owner alone.
    File(PathBuf),
}

impl KeySource {
    /// The key.
    ///
    /// # Errors
    /// `CORRUPT`: there is none, or it can be no key, or others can read it.
    pub(super) fn load(&self) -> Outcome<Sealer> {
        match self {
            Self::Given(key) => Ok(Sealer::new(key.reveal())),
            Self::File(path) => read(path)?.ok_or_else(|| {
                unusable(path, "is not there; a person must put it back or give it as INDELIBLE_VAULT_KEY, or delete the secrets and set them anew")
            }),
        }
    }

    /// The key, made if there is no file yet.
    ///
    /// # Errors
    /// As [`Self::load`]; also that it cannot be written.
    pub(super) fn load_or_make(&self) -> Outcome<Sealer> {
        if let Self::File(path) = self
            && read(path)?.is_none()
        {
            make(path)?;
        }
        self.load()
    }
}

fn read(path: &Path) -> Outcome<Option<Sealer>> {
    let mut file = match platform::open_no_link(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(path, &format!("cannot be read: {error}"))),
    };
    let found = file.metadata().map_err(|error| unusable(path, &format!("cannot be read: {error}")))?;
    if platform::mode(&found).is_some_and(|mode| mode & 0o077 != 0) {
        return Err(unusable(
            path,
            "can be read by others than its owner; a person should run chmod 600 on it",
        ));
    }
    let mut text = Zeroizing::new(String::with_capacity(128));
    let mut start = Read::by_ref(&mut file).take(100);
    start.read_to_string(&mut text).map_err(|error| unusable(path, &format!("cannot be read: {error}")))?;
    let key = VaultKey::parse(text.trim_end()).ok_or_else(|| {
        unusable(path, "holds no key of 64 hex digits; a person must put the right one back")
    })?;
    Ok(Some(Sealer::new(key.reveal())))
}

/// Writes a new key beside the path and renames it, so that no half of a key is ever there.
fn make(path: &Path) -> Outcome<()> {
    let failed = |error: std::io::Error| unusable(path, &format!("cannot be made: {error}"));
    let mut key = Key::try_generate().map_err(|error| {
        ToolError::new(ErrorCode::Busy, format!("the system gives no random numbers: {error}; try again"))
    })?;
    let mut text = Zeroizing::new(String::with_capacity(65));
    key.iter().for_each(|byte| text.push_str(&format!("{byte:02x}")));
    key.as_mut_slice().zeroize();
    text.push('\n');
    let beside = path.with_extension(format!("key.{}", uuid::Uuid::new_v4().simple()));
    let written =
        write(&beside, text.as_bytes()).and_then(|()| match platform::rename_to_new(&beside, path) {
            // Somebody else was first, and theirs is the key.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => std::fs::remove_file(&beside),
            renamed => renamed,
        });
    if let Err(error) = written {
        let _ = std::fs::remove_file(&beside);
        return Err(failed(error));
    }
    path.parent().map_or(Ok(()), platform::sync_names).map_err(failed)
}

fn write(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut file: File = platform::private(File::options().write(true).create_new(true)).open(path)?;
    file.write_all(text)?;
    file.sync_all()
}

fn unusable(path: &Path, why: &str) -> ToolError {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ToolError::new(ErrorCode::Corrupt, format!("the key of the vaults, `{name}` in the data folder, {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vault.key");
        let source = KeySource::File(path.clone());
        let error = source.load().unwrap_err();
        assert!(error.message.contains("`vault.key` in the data folder, is not there"), "{error}");
        let id = source.load_or_make().unwrap().id().to_vec();
        assert_eq!(source.load_or_make().unwrap().id(), id);
        assert_eq!(source.load().unwrap().id(), id);
        let names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["vault.key"]);
        let found = std::fs::metadata(&path).unwrap();
        assert!(platform::mode(&found).is_none_or(|mode| mode == 0o600));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!((text.len(), text.ends_with('\n')), (65, true));
        let given = KeySource::Given(VaultKey::parse(text.trim()).unwrap());
        assert_eq!(given.load().unwrap().id(), id);
        assert_eq!(format!("{given:?}"), "Given(VaultKey(..))");
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_others_can_read_or_that_is_none_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vault.key");
        let source = KeySource::File(path.clone());
        source.load_or_make().unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(source.load_or_make().unwrap_err().message.contains("chmod 600"));
        for text in ["", "00", &"g".repeat(64), &"a".repeat(65), &"a".repeat(200)] {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            let error = source.load_or_make().unwrap_err();
            assert!(error.message.contains("holds no key of 64 hex digits"), "{error}");
            assert!(text.is_empty() || !error.message.contains(text), "{error}");
        }
    }
}
