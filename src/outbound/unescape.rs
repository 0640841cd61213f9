//! Undoes the escapes of URLs, forms, JSON, HTML and wrapped lines, and knows where each byte came from.
//!
//! Pure. Whatever can be read as an escape is undone and everything else stays, so it makes no difference which characters
//! an encoder escapes: urllib keeps `/`, encodeURIComponent `!'()*`, forms `*-._`, and each library of HTML and JSON has a
//! set of its own. What comes out is to be searched, not to be shown: it is not what any one reader would make of it.

/// A way of escaping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    /// `%2F`, and `%u002F` as escape() of JavaScript writes it.
    Percent,
    /// The same, with `+` for a space: bodies of forms, and queries.
    Form,
    /// `\/`, `\n`, `\u002f`, `\x2f`: JSON, and texts in most languages.
    Backslash,
    /// `&amp;`, `&#47;`, `&#x2F;`.
    Html,
    /// Line breaks with the indentation behind them: base64 in mails and certificates, folded headers.
    Lines,
}

impl Layer {
    pub(super) const ALL: &'static [Self] =
        &[Self::Percent, Self::Form, Self::Backslash, Self::Html, Self::Lines];
}

/// Bytes without their escapes.
pub(super) struct Plain {
    pub(super) bytes: Vec<u8>,
    escapes: Vec<Escape>,
}

/// An escape that was undone.
struct Escape {
    /// Where its bytes begin in what came out, and how many there are.
    at: usize,
    len: usize,
    /// Where it began in what was read, and ended.
    from: usize,
    to: usize,
}

impl Plain {
    /// What `from..to` of what came out was in what was read, escapes as a whole.
    pub(super) fn origin(&self, from: usize, to: usize) -> (usize, usize) {
        let escape = |at: usize| {
            let next = self.escapes.partition_point(|escape| escape.at <= at);
            next.checked_sub(1).and_then(|last| self.escapes.get(last))
        };
        let start = match escape(from) {
            None => from,
            Some(escape) if from < escape.at + escape.len => escape.from,
            Some(escape) => escape.to + (from - escape.at - escape.len),
        };
        let last = to.saturating_sub(1);
        let end = match escape(last) {
            None => to,
            Some(escape) if last < escape.at + escape.len => escape.to,
            Some(escape) => escape.to + (to - escape.at - escape.len),
        };
        (start, end)
    }
}

/// The bytes without the escapes of a layer; none where there are none.
pub(super) fn plain(bytes: &[u8], layer: Layer) -> Option<Plain> {
    let mut plain = Plain { bytes: Vec::new(), escapes: Vec::new() };
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let undone = match layer {
            Layer::Percent => percent(rest),
            Layer::Form => {
                percent(rest).or_else(|| (rest.first() == Some(&b'+')).then(|| Undone::byte(1, b' ')))
            }
            Layer::Backslash => backslash(rest),
            Layer::Html => html(rest),
            Layer::Lines => line_break(rest),
        };
        if let Some(undone) = undone {
            let (begin, to) = (plain.bytes.len(), at + undone.length);
            plain.bytes.extend_from_slice(undone.bytes());
            let len = plain.bytes.len() - begin;
            plain.escapes.push(Escape { at: begin, len, from: at, to });
            at = to;
        } else {
            plain.bytes.extend(rest.first());
            at += 1;
        }
    }
    (!plain.escapes.is_empty()).then_some(plain)
}

/// What an escape at the beginning of some bytes means.
struct Undone {
    length: usize,
    bytes: [u8; 4],
    count: usize,
}

impl Undone {
    fn byte(length: usize, byte: u8) -> Self {
        Self { length, bytes: [byte, 0, 0, 0], count: 1 }
    }

    fn character(length: usize, character: char) -> Self {
        let mut bytes = [0; 4];
        let count = character.encode_utf8(&mut bytes).len();
        Self { length, bytes, count }
    }

    fn nothing(length: usize) -> Self {
        Self { length, bytes: [0; 4], count: 0 }
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.count).unwrap_or_default()
    }
}

fn percent(rest: &[u8]) -> Option<Undone> {
    match rest {
        [b'%', b'u' | b'U', ..] => unicode(rest),
        [b'%', ..] => Some(Undone::byte(3, u8::try_from(number(rest, 1, 2, 16)?).ok()?)),
        _ => None,
    }
}

fn backslash(rest: &[u8]) -> Option<Undone> {
    let [b'\\', second, ..] = rest else { return None };
    match second.to_ascii_lowercase() {
        b'u' => unicode(rest),
        b'x' => Some(Undone::byte(4, u8::try_from(number(rest, 2, 2, 16)?).ok()?)),
        b'b' => Some(Undone::byte(2, 0x08)),
        b'f' => Some(Undone::byte(2, 0x0c)),
        b'n' => Some(Undone::byte(2, b'\n')),
        b'r' => Some(Undone::byte(2, b'\r')),
        b't' => Some(Undone::byte(2, b'\t')),
        b'\\' | b'/' | b'"' | b'\'' | b'`' => Some(Undone::byte(2, *second)),
        _ => None,
    }
}

/// `%u` or `\u` and a unit of UTF-16, or two that are one character.
fn unicode(rest: &[u8]) -> Option<Undone> {
    let first = u16::try_from(number(rest, 2, 4, 16)?).ok()?;
    let second =
        rest.get(6..8).filter(|next| rest.get(..2).is_some_and(|own| own.eq_ignore_ascii_case(next)));
    let second = second.and_then(|_| u16::try_from(number(rest, 8, 4, 16)?).ok());
    match (char::decode_utf16([first]).next()?, second) {
        (Ok(one), _) => Some(Undone::character(6, one)),
        (Err(_), Some(second)) => match char::decode_utf16([first, second]).next()? {
            Ok(one) => Some(Undone::character(12, one)),
            Err(_) => None,
        },
        (Err(_), None) => None,
    }
}

/// The marks that HTML has a name for (<https://html.spec.whatwg.org/multipage/named-characters.html>), as far as they
/// are ASCII: what encoders escape by name.
const NAMES: &[(&str, char)] = &[
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("sol", '/'),
    ("bsol", '\\'),
    ("plus", '+'),
    ("equals", '='),
    ("grave", '`'),
    ("colon", ':'),
    ("semi", ';'),
    ("comma", ','),
    ("period", '.'),
    ("excl", '!'),
    ("quest", '?'),
    ("num", '#'),
    ("dollar", '$'),
    ("percnt", '%'),
    ("lpar", '('),
    ("rpar", ')'),
    ("ast", '*'),
    ("commat", '@'),
    ("lsqb", '['),
    ("lbrack", '['),
    ("rsqb", ']'),
    ("rbrack", ']'),
    ("lcub", '{'),
    ("lbrace", '{'),
    ("rcub", '}'),
    ("rbrace", '}'),
    ("verbar", '|'),
    ("vert", '|'),
    ("hat", '^'),
    ("lowbar", '_'),
    ("nbsp", '\u{a0}'),
];
/// The longest escape of HTML: `&#` with digits, some of them zeros ahead.
const LONGEST_HTML: usize = 12;

fn html(rest: &[u8]) -> Option<Undone> {
    let [b'&', behind @ ..] = rest else { return None };
    let end = behind.iter().take(LONGEST_HTML).position(|byte| *byte == b';')?;
    let name = behind.get(..end)?;
    let one = match name {
        [b'#', b'x' | b'X', digits @ ..] => char::from_u32(number(digits, 0, digits.len(), 16)?)?,
        [b'#', digits @ ..] => char::from_u32(number(digits, 0, digits.len(), 10)?)?,
        _ => NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()))?.1,
    };
    Some(Undone::character(end + 2, one))
}

fn line_break(rest: &[u8]) -> Option<Undone> {
    let breaks = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let indented = rest.iter().skip(breaks).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    (breaks > 0).then(|| Undone::nothing(breaks + indented))
}

/// The digits from `at` on, all of them.
fn number(rest: &[u8], at: usize, digits: usize, radix: u32) -> Option<u32> {
    let digits = rest.get(at..at.checked_add(digits)?)?;
    let all = !digits.is_empty() && digits.iter().all(|digit| char::from(*digit).is_digit(radix));
    u32::from_str_radix(std::str::from_utf8(digits).ok().filter(|_| all)?, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_escape_is_undone_and_what_is_none_stays() {
        let rows = [
            (Layer::Percent, "a%2Fb%2fc+%zz%", "a/b/c+%zz%"),
            (Layer::Percent, "%u002f%u017E%u", "/ž%u"),
            (Layer::Percent, "%C5%BE", "ž"),
            (Layer::Form, "a+b%2B", "a b+"),
            (Layer::Backslash, r#"\/\\\"\u002F\x2f\ud83d\ude00\q\ud83d"#, "/\\\"//😀\\q\\ud83d"),
            (Layer::Html, "&amp;&LT;&#47;&#x2F;&#0039;&sol;&who;&#;&#x;&", "&<//'/&who;&#;&#x;&"),
            (Layer::Lines, "ab\r\n  cd\nef g", "abcdef g"),
        ];
        for (layer, escaped, expected) in rows {
            let plain = plain(escaped.as_bytes(), layer).unwrap();
            assert_eq!(String::from_utf8(plain.bytes).unwrap(), expected, "{escaped}");
        }
        for layer in Layer::ALL {
            assert!(plain(b"nothing here", *layer).is_none(), "{layer:?}");
        }
    }

    #[test]
    fn what_came_out_is_traced_to_where_it_stood() {
        let plain = plain(b"ab%2Fcd%C5%BEe", Layer::Percent).unwrap();
        assert_eq!(plain.bytes, "ab/cdže".as_bytes());
        let rows = [
            ((0, 2), (0, 2)),
            ((2, 3), (2, 5)),
            ((1, 4), (1, 6)),
            ((5, 6), (7, 10)),
            ((5, 8), (7, 14)),
            ((7, 8), (13, 14)),
        ];
        for ((from, to), expected) in rows {
            assert_eq!(plain.origin(from, to), expected, "{from}..{to}");
        }
        let plain = super::plain(b"a\nb\r\nc", Layer::Lines).unwrap();
        assert_eq!((plain.origin(0, 1), plain.origin(0, 2), plain.origin(1, 3)), ((0, 1), (0, 3), (2, 6)));
    }

    proptest! {
        #[test]
        fn any_part_of_what_came_out_comes_out_of_where_it_stood(
            bytes in "[a&#;x%2F+\\\\u0/\n ]{0,60}",
            layer in 0_usize..5,
            (from, length) in (0_usize..60, 1_usize..60),
        ) {
            let Some(plain) = plain(bytes.as_bytes(), Layer::ALL[layer]) else { return Ok(()) };
            let to = (from + length).min(plain.bytes.len());
            prop_assume!(from < to);
            let (start, end) = plain.origin(from, to);
            prop_assert!(start < end && end <= bytes.len());
            let part = super::plain(&bytes.as_bytes()[start..end], Layer::ALL[layer]);
            let part = part.map_or_else(|| bytes.as_bytes()[start..end].to_vec(), |part| part.bytes);
            let wanted = &plain.bytes[from..to];
            prop_assert!(part.windows(wanted.len()).any(|window| window == wanted), "{:?} {:?}", part, wanted);
        }
    }
}
