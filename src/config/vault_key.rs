//! The key of the vaults, where the environment gives it.
//!
//! It is read from the environment and never from a flag: other users of the machine see command lines.

use crate::error::StartError;
use std::ffi::OsString;
use std::fmt;
use zeroize::Zeroizing;

/// The variable that holds it.
const VARIABLE: &str = "INDELIBLE_VAULT_KEY";

/// A key of 32 bytes. It is overwritten when it is dropped, and `{:?}` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct VaultKey(Zeroizing<[u8; 32]>);

impl VaultKey {
    /// Reads 64 hex digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let mut key = Zeroizing::new([0; 32]);
        for (byte, at) in key.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        }
        Some(Self(key))
    }

    /// The key itself.
    #[must_use]
    pub fn reveal(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for VaultKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VaultKey(..)")
    }
}

/// The key in the environment, if there is one.
///
/// # Errors
/// What is there is no key; the line does not repeat it. Exit status 2.
pub(super) fn given(env: impl Fn(&str) -> Option<OsString>) -> Result<Option<VaultKey>, StartError> {
    let Some(text) = env(VARIABLE).filter(|text| !text.is_empty()) else { return Ok(None) };
    let key = text.to_str().and_then(|text| VaultKey::parse(text.trim()));
    key.map(Some).ok_or_else(|| {
        StartError::usage(format!("{VARIABLE}: must be 64 hex digits, such as openssl rand -hex 32 gives"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_64_hex_digits_and_is_not_repeated() {
        let env = |text: &str| given(|name| (name == VARIABLE).then(|| text.into()));
        let good = "00ff".repeat(16);
        assert_eq!(env(&good).unwrap().unwrap().reveal()[..4], [0, 255, 0, 255]);
        assert_eq!(env(&format!(" {}\n", good.to_uppercase())).unwrap(), env(&good).unwrap());
        assert_eq!(env("").unwrap(), None);
        for bad in ["x", &"0g".repeat(32), &"ab".repeat(33), &"é".repeat(32)] {
            let error = env(bad).unwrap_err();
            assert_eq!(error.exit, 2);
            assert!(error.message.starts_with("INDELIBLE_VAULT_KEY: must be 64 hex digits"), "{error}");
        }
        assert_eq!(format!("{:?}", env(&good).unwrap()), "Some(VaultKey(..))");
    }
}
