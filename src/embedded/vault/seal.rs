//! Values and grants under the key of the data folder: XChaCha20-Poly1305 throughout.
//!
//! A value is sealed under a random key of its own, and that key under the folder's. Both are bound to the vault,
//! the secret's name and the version, so that neither fits into another place. A grant is in plain text, and its
//! stamp shows whether it is as it was given. It reads and writes no file.

use crate::error::{ErrorCode, ToolError};
use crate::state::Outcome;
use crate::state::vault::SecretText;
use chacha20poly1305::aead::{Aead, Generate, Payload};
use chacha20poly1305::{Key, KeyInit, XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

/// Bytes of a nonce (<https://datatracker.ietf.org/doc/html/draft-irtf-cfrg-xchacha>).
const NONCE: usize = 24;

/// Where something sealed stands, and nowhere else.
pub(super) struct Place<'a> {
    /// The id in the vault's file.
    pub(super) vault: &'a [u8],
    /// The secret's name.
    pub(super) name: &'a str,
    /// Its version, or the number of a grant.
    pub(super) number: u64,
}

/// A sealed value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sealed {
    /// The id of the key it is sealed under.
    pub(super) by: Vec<u8>,
    /// The value's own key: nonce and ciphertext.
    pub(super) key: Vec<u8>,
    /// The value: nonce and ciphertext.
    pub(super) value: Vec<u8>,
}

/// The data folder's key, ready for use. `{:?}` does not show it; it is overwritten when it is dropped.
pub(super) struct Sealer {
    cipher: XChaCha20Poly1305,
    id: Vec<u8>,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(..)")
    }
}

impl Sealer {
    /// With this key.
    pub(super) fn new(key: &[u8; 32]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"indelible vault key id\0");
        hash.update(key);
        // It tells keys apart and says nothing about a random one.
        let id = hash.finalize().iter().take(8).copied().collect();
        Self { cipher: XChaCha20Poly1305::new(&Key::from(*key)), id }
    }

    /// What tells this key from others.
    pub(super) fn id(&self) -> &[u8] {
        &self.id
    }

    /// Seals a value.
    ///
    /// # Errors
    /// `BUSY`: the system gives no random numbers.
    pub(super) fn seal(&self, place: &Place<'_>, value: &SecretText) -> Outcome<Sealed> {
        let mut own = Key::try_generate().map_err(no_random)?;
        let cipher = XChaCha20Poly1305::new(&own);
        let key = encrypt(&self.cipher, &place.bound("key"), &own);
        own.as_mut_slice().zeroize();
        let value = encrypt(&cipher, &place.bound("value"), value.reveal().as_bytes())?;
        Ok(Sealed { by: self.id.clone(), key: key?, value })
    }

    /// Opens a value.
    ///
    /// # Errors
    /// `CORRUPT`: it is sealed under another key, or was changed, or stood in another place.
    pub(super) fn open(&self, place: &Place<'_>, sealed: &Sealed) -> Outcome<SecretText> {
        self.is_by(&sealed.by)?;
        let wrong = || changed(&format!("version {} of `{}`", place.number, place.name));
        let own = decrypt(&self.cipher, &place.bound("key"), &sealed.key).ok_or_else(wrong)?;
        let cipher = XChaCha20Poly1305::new_from_slice(&own).map_err(|_| wrong())?;
        let value = decrypt(&cipher, &place.bound("value"), &sealed.value).ok_or_else(wrong)?;
        let text = std::str::from_utf8(&value).map_err(|_| wrong())?;
        SecretText::new(Zeroizing::new(text.to_owned())).map_err(|_| wrong())
    }

    /// A stamp that fits this text in this place alone.
    ///
    /// # Errors
    /// As [`Self::seal`].
    pub(super) fn stamp(&self, place: &Place<'_>, text: &str) -> Outcome<Vec<u8>> {
        encrypt(&self.cipher, &[place.bound("grant"), text.as_bytes().to_vec()].concat(), &[])
    }

    /// Holds a text against its stamp.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(super) fn check(&self, place: &Place<'_>, text: &str, by: &[u8], stamp: &[u8]) -> Outcome<()> {
        self.is_by(by)?;
        let bound = [place.bound("grant"), text.as_bytes().to_vec()].concat();
        match decrypt(&self.cipher, &bound, stamp) {
            Some(_) => Ok(()),
            None => Err(changed(&format!("grant {} of `{}`", place.number, place.name))),
        }
    }

    pub(super) fn is_by(&self, by: &[u8]) -> Outcome<()> {
        if by == self.id {
            return Ok(());
        }
        Err(ToolError::new(
            ErrorCode::Corrupt,
            "the vault is sealed under another key than this server has; a person must put the former `vault.key` or INDELIBLE_VAULT_KEY back, or delete the secrets and set them anew",
        ))
    }
}

impl Place<'_> {
    /// What the ciphertext is bound to. Lengths go before texts, so that no two places give the same bytes.
    fn bound(&self, what: &str) -> Vec<u8> {
        let mut bound = b"indelible vault 1".to_vec();
        for part in [what.as_bytes(), self.vault, self.name.as_bytes(), &self.number.to_be_bytes()] {
            bound.extend(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            bound.extend(part);
        }
        bound
    }
}

fn encrypt(cipher: &XChaCha20Poly1305, bound: &[u8], plain: &[u8]) -> Outcome<Vec<u8>> {
    let nonce = XNonce::try_generate().map_err(no_random)?;
    let sealed = cipher.encrypt(&nonce, Payload { msg: plain, aad: bound });
    let sealed =
        sealed.map_err(|_| ToolError::new(ErrorCode::TooLarge, "the value is too large to be sealed"))?;
    Ok([nonce.as_slice(), &sealed].concat())
}

fn decrypt(cipher: &XChaCha20Poly1305, bound: &[u8], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (nonce, sealed) = sealed.split_at_checked(NONCE)?;
    let nonce = XNonce::try_from(nonce).ok()?;
    cipher.decrypt(&nonce, Payload { msg: sealed, aad: bound }).ok().map(Zeroizing::new)
}

/// The error for what does not fit its seal or stamp.
pub(super) fn changed(what: &str) -> ToolError {
    ToolError::new(
        ErrorCode::Corrupt,
        format!(
            "{what} is not as it was given: the vault's file was damaged or changed past this program; a person must look at it, and can set it anew with `indelible vault`"
        ),
    )
}

fn no_random(error: impl std::fmt::Display) -> ToolError {
    ToolError::new(ErrorCode::Busy, format!("the system gives no random numbers: {error}; try again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'_> = Place { vault: b"vault", name: "name", number: 3 };

    fn secret() -> SecretText {
        SecretText::new(Zeroizing::new("correct horse battery".to_owned())).unwrap()
    }

    #[test]
    fn a_value_comes_back_in_its_place_and_under_its_key_alone() {
        let sealer = Sealer::new(&[7; 32]);
        let sealed = sealer.seal(&PLACE, &secret()).unwrap();
        assert_eq!(sealer.open(&PLACE, &sealed).unwrap(), secret());
        assert_ne!(sealer.seal(&PLACE, &secret()).unwrap(), sealed);
        let elsewhere = [
            Place { vault: b"vaulu", ..PLACE },
            Place { name: "nam", ..PLACE },
            Place { name: "namf", ..PLACE },
            Place { number: 2, ..PLACE },
            // The same bytes, otherwise divided.
            Place { vault: b"vaultn", name: "ame", ..PLACE },
        ];
        for place in elsewhere {
            assert_eq!(sealer.open(&place, &sealed).unwrap_err().code, ErrorCode::Corrupt);
        }
        let other = Sealer::new(&[8; 32]);
        let error = other.open(&PLACE, &sealed).unwrap_err();
        assert!(error.message.contains("another key than this server has"), "{error}");
        let claimed = Sealed { by: other.id().to_vec(), ..sealed };
        assert_eq!(other.open(&PLACE, &claimed).unwrap_err().code, ErrorCode::Corrupt);
    }

    #[test]
    fn what_is_changed_in_any_byte_does_not_open() {
        let sealer = Sealer::new(&[7; 32]);
        let sealed = sealer.seal(&PLACE, &secret()).unwrap();
        type Part = fn(&mut Sealed) -> &mut Vec<u8>;
        let parts: [Part; 3] = [|s| &mut s.by, |s| &mut s.key, |s| &mut s.value];
        for part in parts {
            for at in 0..part(&mut sealed.clone()).len() {
                let mut changed = sealed.clone();
                part(&mut changed)[at] ^= 1;
                assert_eq!(sealer.open(&PLACE, &changed).unwrap_err().code, ErrorCode::Corrupt, "{at}");
                let mut cut = sealed.clone();
                part(&mut cut).truncate(at);
                assert_eq!(sealer.open(&PLACE, &cut).unwrap_err().code, ErrorCode::Corrupt, "{at}");
            }
        }
        // Neither part can take the other's place.
        let swapped = Sealed { key: sealed.value.clone(), value: sealed.key.clone(), ..sealed };
        assert!(sealer.open(&PLACE, &swapped).is_err());
    }

    #[test]
    fn a_stamp_fits_its_text_in_its_place_alone() {
        let sealer = Sealer::new(&[7; 32]);
        let stamp = sealer.stamp(&PLACE, "rule").unwrap();
        let check = |place: &Place<'_>, text: &str, stamp: &[u8]| {
            sealer.check(place, text, sealer.id(), stamp).is_ok()
        };
        assert!(check(&PLACE, "rule", &stamp));
        assert!(!check(&PLACE, "rulf", &stamp));
        assert!(!check(&PLACE, "", &stamp));
        assert!(!check(&Place { number: 4, ..PLACE }, "rule", &stamp));
        assert!(!check(&Place { vault: b"other", ..PLACE }, "rule", &stamp));
        for at in 0..stamp.len() {
            let mut changed = stamp.clone();
            changed[at] ^= 1;
            assert!(!check(&PLACE, "rule", &changed), "{at}");
        }
        assert!(sealer.check(&PLACE, "rule", b"", &stamp).is_err());
    }

    #[test]
    fn nothing_of_a_key_is_shown() {
        assert_eq!(format!("{:?}", Sealer::new(&[7; 32])), "Sealer(..)");
    }
}
