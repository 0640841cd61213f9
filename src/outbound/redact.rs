//! Takes a secret out of what somebody sent back, in every spelling that servers commonly give it.
//!
//! Escapes are undone, up to twice over, and the secret is looked for in what comes out; so any mixture of escaped and
//! plain characters is found. It is the second line: where a secret may go at all is the first. It does not find a secret
//! that was cut up, turned around, compressed or encoded in ways of its own.

use super::spellings::{Spelling, spellings};
use super::unescape::{Layer, plain};
use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// What stands in the place of a secret.
pub const PLACEHOLDER: &str = "[redacted]";

/// Finds every spelling of one secret in one pass.
pub struct Redactor {
    automaton: AhoCorasick,
    /// For each pattern, whether the character in front of it and the one behind it hold some of the secret, too.
    edges: Vec<(bool, bool)>,
    /// The escapes that it may be under.
    layers: Vec<Layer>,
}

/// Escapes within escapes that are looked through: a URL within a URL, JSON within JSON.
const DEEPEST: usize = 2;
/// How many bytes escapes make of one at most, in the ways that are met; hex and UTF-16 double it before.
const MOST_ESCAPED: usize = 6;

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redactor(..)")
    }
}

impl Redactor {
    /// For these texts, such as a secret and `user:secret`. None if they are too much for it.
    #[must_use]
    pub fn new(texts: &[&str]) -> Option<Self> {
        let spellings: Vec<Spelling> = spellings(texts).into_iter().collect();
        let edges = spellings.iter().map(|spelling| (spelling.before, spelling.after)).collect();
        // Without regard to case: %2f and %2F, hex in both, names of headers, and whatever somebody turned to capitals.
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(spellings.iter().map(|spelling| &spelling.bytes));
        let spaced = texts.iter().any(|text| text.contains(' '));
        let layers = Layer::ALL.iter().copied().filter(|layer| spaced || *layer != Layer::Form);
        Some(Self { automaton: automaton.ok()?, edges, layers: layers.collect() })
    }

    /// How much beyond an end must be there so that no secret that begins before it is missed.
    #[must_use]
    pub fn margin(&self) -> usize {
        self.automaton.max_pattern_len() * MOST_ESCAPED + 2
    }

    /// The bytes without the secret.
    #[must_use]
    pub fn redact(&self, bytes: &[u8]) -> Vec<u8> {
        self.redact_up_to(bytes, bytes.len())
    }

    /// The first `end` bytes without the secret. Where a secret goes on behind the end, nothing of it is left either;
    /// for that, `bytes` must go on for [`Self::margin`], or be all there is.
    #[must_use]
    pub fn redact_up_to(&self, bytes: &[u8], end: usize) -> Vec<u8> {
        let mut found = self.hits(bytes, DEEPEST);
        found.sort_unstable();
        let mut clean = Vec::with_capacity(end.min(bytes.len()));
        let mut at = 0;
        for (start, stop) in found {
            if start >= end {
                break;
            }
            // What overlaps or touches the hit before is one with it.
            if start > at || at == 0 {
                clean.extend_from_slice(bytes.get(at..start).unwrap_or_default());
                clean.extend_from_slice(PLACEHOLDER.as_bytes());
            }
            at = at.max(stop);
        }
        clean.extend_from_slice(bytes.get(at..end.min(bytes.len())).unwrap_or_default());
        clean
    }

    /// Where the secret stands, under up to `deep` layers of escapes.
    fn hits(&self, bytes: &[u8], deep: usize) -> Vec<(usize, usize)> {
        let hit = |hit: aho_corasick::Match| {
            let (before, after) = self.edges.get(hit.pattern().as_usize()).copied().unwrap_or_default();
            let left = hit.start().checked_sub(1).filter(|at| before && is_base64(bytes.get(*at)));
            let right = after && is_base64(bytes.get(hit.end()));
            (left.unwrap_or(hit.start()), hit.end() + usize::from(right))
        };
        let mut found: Vec<(usize, usize)> = self.automaton.find_overlapping_iter(bytes).map(hit).collect();
        if let Some(deep) = deep.checked_sub(1) {
            for plain in self.layers.iter().filter_map(|layer| plain(bytes, *layer)) {
                let within = self.hits(&plain.bytes, deep);
                found.extend(within.into_iter().map(|(from, to)| plain.origin(from, to)));
            }
        }
        found
    }

    /// The text without the secret.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.redact(text.as_bytes())).into_owned()
    }
}

fn is_base64(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte))
}

#[cfg(test)]
mod tests;
