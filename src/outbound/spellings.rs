//! The spellings in which servers give back what they were sent: escaped for URLs, HTML and JSON, in hex, base64, UTF-16.
//!
//! Pure. Letters in another case are not listed: who looks for the spellings does so without regard to case.

use crate::render::hex;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_encode};
use std::collections::BTreeSet;
use std::fmt::Write;

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
        let mut plain = BTreeSet::from([(*text).to_owned(), hex(text.as_bytes())]);
        plain.extend(percent(text));
        plain.extend(json(text));
        plain.extend(html(text));
        found.extend(plain.into_iter().map(|text| whole(text.into_bytes())));
        found.insert(whole(text.encode_utf16().flat_map(u16::to_le_bytes).collect()));
        found.insert(whole(text.encode_utf16().flat_map(u16::to_be_bytes).collect()));
        found.extend(base64(text.as_bytes()));
    }
    found
}

fn whole(bytes: Vec<u8>) -> Spelling {
    Spelling { bytes, before: false, after: false }
}

/// RFC 3986: everything but the unreserved characters.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// encodeURIComponent (<https://tc39.es/ecma262/#sec-encodeuricomponent-uricomponent>).
const COMPONENT: &AsciiSet = &STRICT.remove(b'!').remove(b'\'').remove(b'(').remove(b')').remove(b'*');
/// encodeURI: what has a meaning in a URL stays.
const WHOLE_URL: &AsciiSet = &COMPONENT
    .remove(b';')
    .remove(b'/')
    .remove(b'?')
    .remove(b':')
    .remove(b'@')
    .remove(b'&')
    .remove(b'=')
    .remove(b'+')
    .remove(b'$')
    .remove(b',')
    .remove(b'#');
/// The path of a URL, as RFC 3986 allows it.
const PATH: &AsciiSet = &WHOLE_URL.add(b'?').add(b'#');
/// A segment of a path.
const SEGMENT: &AsciiSet = &PATH.add(b'/');
/// The queries of the URL standard (<https://url.spec.whatwg.org/#query-percent-encode-set>), with and without `'`.
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');
const SPECIAL_QUERY: &AsciiSet = &QUERY.add(b'\'');
/// Forms (<https://url.spec.whatwg.org/#concept-urlencoded-byte-serializer>), with a space as `+`.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'*').remove(b'-').remove(b'.').remove(b'_');

fn percent(text: &str) -> Vec<String> {
    let encoded = |text: &str, set: &'static AsciiSet| percent_encode(text.as_bytes(), set).to_string();
    let sets = [STRICT, COMPONENT, WHOLE_URL, PATH, SEGMENT, QUERY, SPECIAL_QUERY, FORM];
    let mut found: Vec<String> = sets.iter().map(|set| encoded(text, set)).collect();
    for set in [STRICT, COMPONENT, FORM] {
        found.push(encoded(text, set).replace("%20", "+"));
    }
    // Once more over, as in a URL within a URL.
    for set in [STRICT, FORM] {
        found.push(encoded(&encoded(text, set), set));
    }
    let every = text.bytes().fold(String::new(), |mut every, byte| {
        let _ = write!(every, "%{byte:02x}");
        every
    });
    found.push(every);
    found
}

/// As serializers write it: `/` escaped or not, other scripts escaped or not, and marks that mean something in HTML.
fn json(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for marks in ["", "<>&", "<>&'", "<>&'\"", "<>&'\"+`"] {
        for (slash, ascii) in [(false, false), (true, false), (false, true), (true, true)] {
            let once = escaped(text, |one, out| match one {
                one if marks.contains(one) => unicode(one, out),
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '/' if slash => out.push_str("\\/"),
                '\u{7f}'.. if ascii => unicode(one, out),
                one => out.push(one),
            });
            // JSON as a text within JSON.
            found.insert(once.replace('\\', "\\\\").replace('"', "\\\""));
            found.insert(once);
        }
    }
    found
}

fn unicode(one: char, out: &mut String) {
    for unit in one.encode_utf16(&mut [0; 2]) {
        let _ = write!(out, "\\u{unit:04x}");
    }
}

fn html(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for double in ["\"", "&quot;", "&#34;", "&#x22;"] {
        for single in ["'", "&#39;", "&#039;", "&#x27;", "&apos;"] {
            for more in ["", "/", "/`=", "+"] {
                for ascii in [false, true] {
                    found.insert(escaped(text, |one, out| match one {
                        '&' => out.push_str("&amp;"),
                        '<' => out.push_str("&lt;"),
                        '>' => out.push_str("&gt;"),
                        '"' => out.push_str(double),
                        '\'' => out.push_str(single),
                        one if more.contains(one) && one == '+' => out.push_str("&#43;"),
                        one if more.contains(one) => drop(write!(out, "&#x{:x};", u32::from(one))),
                        '\u{7f}'.. if ascii => drop(write!(out, "&#{};", u32::from(one))),
                        one => out.push(one),
                    }));
                }
            }
        }
    }
    found
}

fn escaped(text: &str, escape: impl Fn(char, &mut String)) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, one| {
        escape(one, &mut out);
        out
    })
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
            let Some(own) = encoded.get(first..last) else { continue };
            // As it is, and as it stands in a URL, in JSON, in HTML.
            let within = [
                own.to_owned(),
                own.replace('+', "%2b").replace('/', "%2f"),
                own.replace('/', "\\/"),
                own.replace('+', "\\u002b"),
                own.replace('+', "&#43;"),
                own.replace('/', "&#x2f;"),
            ];
            found.extend(within.map(|text| Spelling { bytes: text.into_bytes(), before, after }));
        }
    }
    found
}
