//! What a secret is looked for as, once an answer's escapes are undone: as it is, in hex, base64, UTF-16.
//!
//! Pure. Letters in another case are not listed: who looks for the spellings does so without regard to case. Escapes are
//! not listed either, since encoders differ in which characters they leave: `unescape` undoes whichever there are.

use super::unescape::{Layer, plain};
use crate::render::hex;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::collections::BTreeSet;

/// What to look for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spelling {
    pub(super) bytes: Vec<u8>,
    /// Whether the base64 character in front of it holds some bits of the text, too.
    pub(super) before: bool,
    /// The same of the one behind it.
    pub(super) after: bool,
}

/// Every spelling of the texts.
pub(super) fn spellings(texts: &[&str]) -> BTreeSet<Spelling> {
    let mut found = BTreeSet::new();
    for text in texts.iter().filter(|text| !text.is_empty()) {
        found.insert(whole(text.as_bytes().to_vec()));
        found.insert(whole(hex(text.as_bytes()).into_bytes()));
        found.insert(whole(text.encode_utf16().flat_map(u16::to_le_bytes).collect()));
        found.insert(whole(text.encode_utf16().flat_map(u16::to_be_bytes).collect()));
        found.extend(base64(text.as_bytes()));
        // Servers that read headers as ISO 8859-1 give the bytes back as letters of their own.
        let letters: String = text.bytes().map(char::from).collect();
        found.insert(whole(letters.into_bytes()));
        // Some encoders leave what looks like an escape already, as URLs do with `%41`; it is undone with the others.
        let undone = Layer::ALL.iter().filter_map(|layer| plain(text.as_bytes(), *layer));
        found.extend(undone.filter(|plain| plain.bytes.len() >= SHORTEST).map(|plain| whole(plain.bytes)));
    }
    found
}

/// What is shorter stands in too many answers by itself, in bytes; secrets are no shorter.
const SHORTEST: usize = 8;

fn whole(bytes: Vec<u8>) -> Spelling {
    Spelling { bytes, before: false, after: false }
}

/// In base64 a text looks different by how many bytes stand in front of it, modulo three. The characters that hold bits
/// of the text alone are the pattern; those at its edges share theirs with what stands beside it.
fn base64(text: &[u8]) -> Vec<Spelling> {
    let mut found = Vec::new();
    for ahead in 0..3 {
        let padded = [vec![0; ahead].as_slice(), text].concat();
        let (first, last) = ((ahead * 8).div_ceil(6), padded.len() * 8 / 6);
        let (before, after) = (ahead > 0, padded.len() % 3 > 0);
        for encoded in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            let own = encoded.get(first..last).map(|own| own.as_bytes().to_vec());
            found.extend(own.map(|bytes| Spelling { bytes, before, after }));
        }
    }
    found
}
