//! Redaction: every spelling, at every place, with what stands around it.

use super::super::spellings::spellings;
use super::*;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;

const SECRET: &str = "s3cr3t/ž<\"'&\\+%end";

#[test]
fn every_spelling_is_found_in_its_place() {
    let redactor = Redactor::new(&[SECRET]).unwrap();
    let hex: String = SECRET.bytes().map(|byte| format!("{byte:02X}")).collect();
    let rows = [
        SECRET.to_owned(),
        SECRET.to_uppercase().replace('Ž', "ž"),
        utf8_percent_encode(SECRET, NON_ALPHANUMERIC).to_string(),
        utf8_percent_encode(SECRET, NON_ALPHANUMERIC).to_string().to_lowercase(),
        "s3cr3t%2f%C5%be%3C%22'%26%5c%2B%25end".to_owned(),
        url::form_urlencoded::byte_serialize(SECRET.as_bytes()).collect(),
        hex.clone(),
        hex.to_lowercase(),
        // serde_json; Python; PHP; Go; .NET; JSON within JSON.
        r#"s3cr3t/ž<\"'&\\+%end"#.to_owned(),
        r#"s3cr3t/\u017e<\"'&\\+%end"#.to_owned(),
        r#"s3cr3t\/\u017e<\"'&\\+%end"#.to_owned(),
        r#"s3cr3t/ž\u003c\"'\u0026\\+%end"#.to_owned(),
        r#"s3cr3t/\u017E\u003C\u0022\u0027\u0026\\\u002B%end"#.to_owned(),
        r#"s3cr3t/ž<\\\"'&\\\\+%end"#.to_owned(),
        // Python, Go, Ruby, PHP, mustache.
        "s3cr3t/ž&lt;&quot;&#x27;&amp;\\+%end".to_owned(),
        "s3cr3t/ž&lt;&#34;&#39;&amp;\\&#43;%end".to_owned(),
        "s3cr3t/ž&lt;&quot;&#39;&amp;\\+%end".to_owned(),
        "s3cr3t/ž&lt;&quot;&#039;&amp;\\+%end".to_owned(),
        "s3cr3t&#x2F;ž&lt;&quot;&#39;&amp;\\+%end".to_owned(),
        "s3cr3t/&#382;&lt;&quot;&apos;&amp;\\+%end".to_owned(),
        // quote() of Python, which keeps `/`; encodeURIComponent and encodeURI of JavaScript; a path of the URL standard.
        "s3cr3t/%C5%BE%3C%22%27%26%5C%2B%25end".to_owned(),
        "s3cr3t%2F%C5%BE%3C%22'%26%5C%2B%25end".to_owned(),
        "s3cr3t/%C5%BE%3C%22'&%5C+%25end".to_owned(),
        "s3cr3t/%C5%BE%3C%22'&\\+%end".to_owned(),
        // The same within HTML, within JSON (PHP), and within another URL; escape() of JavaScript.
        "s3cr3t/%C5%BE%3C%22&#x27;&amp;%5C+%25end".to_owned(),
        r"s3cr3t\/%C5%BE%3C%22%27%26%5C%2B%25end".to_owned(),
        "s3cr3t/%25C5%25BE%253C%2522%2527%2526%255C%252B%2525end".to_owned(),
        "s3cr3t/%u017E%3C%22%27%26%5C+%25end".to_owned(),
        // A header that a server read as ISO 8859-1.
        SECRET.bytes().map(char::from).collect(),
    ];
    for row in rows {
        let clean = redactor.text(&format!("before {row} after"));
        assert_eq!(clean, "before [redacted] after", "{row}");
    }
    for (front, tail) in [("", ""), ("a", "b"), ("ab", "cd"), ("abc", "def"), ("user:", ""), ("Straße:", "x")]
    {
        let text = format!("{front}{SECRET}{tail}");
        for encoded in [STANDARD.encode(&text), URL_SAFE.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
            let clean = redactor.text(&format!("Basic {encoded} after"));
            assert!(clean.contains("[redacted]"), "{clean}");
            // What is left decodes to nothing of the secret.
            let left: String = clean.replace("Basic ", "").replace(" after", "").replace("[redacted]", "");
            assert!(left.len() <= (front.len() + tail.len()) * 8 / 6 + 4, "{text} {clean}");
        }
    }
    let marks = "?>?>?>?>???>>>~~~";
    let (encoded, both) = (STANDARD.encode(marks), Redactor::new(&[marks]).unwrap());
    assert!(encoded.contains('+') && encoded.contains('/'), "{encoded}");
    for within in [
        encoded.replace('+', "%2B").replace('/', "%2F"),
        encoded.replace('/', "\\/"),
        encoded.replace('+', "\\u002B"),
        encoded.replace('+', "&#43;"),
    ] {
        let clean = both.text(&within);
        assert!(clean.starts_with("[redacted]") && clean.len() < 15, "{within} {clean}");
    }
    // Lines of 76 characters, as mails have them, and of 64, as certificates; within JSON, too.
    let long = "0123456789abcdef".repeat(8);
    let (encoded, wrapped) = (STANDARD.encode(format!("user:{long}")), Redactor::new(&[&long]).unwrap());
    for (width, end) in [(76, "\r\n"), (64, "\n"), (76, "\n    "), (64, r"\n"), (76, r"\r\n")] {
        let lines: Vec<&str> =
            encoded.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
        let clean = wrapped.text(&format!("<{}>", lines.join(end)));
        assert!(clean.contains("[redacted]") && clean.len() < 25, "{clean}");
    }
    let utf16: Vec<u8> = SECRET.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(redactor.redact(&utf16), b"[redacted]");
}

#[test]
fn what_looks_like_an_escape_and_is_the_secret_s_own_is_found() {
    let secret = "ab%41cd/ž\"&amp;\\u0041<x";
    let redactor = Redactor::new(&[secret]).unwrap();
    let mut url = url::Url::parse("https://h.example/").unwrap();
    url.set_query(Some(secret));
    let rows = [
        secret.to_owned(),
        // The URL standard leaves `%`; PHP can be told to leave entities.
        url.query().unwrap().to_owned(),
        "ab%41cd/ž&quot;&amp;\\u0041&lt;x".to_owned(),
        serde_json::to_string(secret).unwrap().trim_matches('"').to_owned(),
        utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string(),
    ];
    for row in rows {
        assert_eq!(redactor.text(&format!("before {row} after")), "before [redacted] after", "{row}");
    }
}

#[test]
fn what_overlaps_is_taken_out_whole() {
    let redactor = Redactor::new(&["aabaabaa"]).unwrap();
    assert_eq!(redactor.text("xaabaabaabaabaay"), "x[redacted]y");
    assert_eq!(redactor.text("aabaabaaaabaabaa"), "[redacted]");
    let both = Redactor::new(&["secret-value", "user:secret-value"]).unwrap();
    assert_eq!(both.text("user:secret-value!"), "[redacted]!");
    assert_eq!(both.text("nothing here"), "nothing here");
}

#[test]
fn an_end_within_a_secret_leaves_nothing_of_it() {
    let redactor = Redactor::new(&["0123456789abcdef"]).unwrap();
    let text = b"xxxx0123456789abcdefyyyy";
    for end in 0..=text.len() {
        let clean = String::from_utf8(redactor.redact_up_to(text, end)).unwrap();
        let expected = match end {
            0..=4 => "xxxx"[..end].to_owned(),
            5..=20 => "xxxx[redacted]".to_owned(),
            _ => format!("xxxx[redacted]{}", &"yyyy"[..end - 20]),
        };
        assert_eq!(clean, expected, "{end}");
    }
    assert!(redactor.margin() > 2 * 16);
}

#[test]
fn nothing_short_is_looked_for_and_nothing_is_shown() {
    for text in ["12345678", "žžžžžžžž", "a b c d e"] {
        let shortest = spellings(&[text]).iter().map(|spelling| spelling.bytes.len()).min().unwrap();
        assert!(shortest >= 8, "{text}: {shortest}");
    }
    assert_eq!(format!("{:?}", Redactor::new(&[SECRET]).unwrap()), "Redactor(..)");
    let large = "x/\"<ž".repeat(1200);
    assert!(Redactor::new(&[&large]).is_some());
}

/// How a server may spell it, by encoders that are not those under test.
fn spelled(text: &str, how: u8, front: &str) -> Vec<u8> {
    match how {
        0 => text.as_bytes().to_vec(),
        // Without the quotes around it alone: its own belong to the secret.
        1 => {
            let quoted = serde_json::to_string(text).unwrap();
            quoted.as_bytes()[1..quoted.len() - 1].to_vec()
        }
        2 => url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().into_bytes(),
        3 => STANDARD.encode(format!("{front}{text}")).into_bytes(),
        4 => URL_SAFE_NO_PAD.encode(format!("{front}{text}")).into_bytes(),
        5 => text.bytes().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect(),
        6 => {
            let mut url = url::Url::parse("https://h.example/").unwrap();
            url.query_pairs_mut().append_pair("k", text);
            url.query().unwrap().as_bytes()[2..].to_vec()
        }
        _ => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").into_bytes(),
    }
}

/// Each character escaped or plain, by itself: for URLs (0), in JSON (1) or HTML (2).
fn mixture(text: &str, kind: u8, how: &[(u8, bool)]) -> String {
    let mut choices = how.iter().cycle();
    let mut mixed = String::new();
    for one in text.chars() {
        let (choice, capital) = *choices.next().unwrap();
        let hex = |number: u32| if capital { format!("{number:X}") } else { format!("{number:x}") };
        let mut utf8 = [0; 4];
        let utf8 = one.encode_utf8(&mut utf8).bytes();
        let mut units = [0; 2];
        mixed += &match (kind, one, choice) {
            // What would be read as an escape is escaped by every encoder.
            (0, '%', _) => "%25".to_owned(),
            (1, '\\', 0..6) => "\\\\".to_owned(),
            (2, '&', 0..6) => "&amp;".to_owned(),
            (0, ' ', 0..6) => "+".to_owned(),
            (0, '+', _) => "%2B".to_owned(),
            (_, one, 0..6) => one.to_string(),
            (0, ..) => utf8.map(|byte| format!("%{:0>2}", hex(byte.into()))).collect(),
            (1, '"' | '/', 6..9) => format!("\\{one}"),
            (1, ..) => one
                .encode_utf16(&mut units)
                .iter()
                .map(|unit| format!("\\u{:0>4}", hex((*unit).into())))
                .collect(),
            (_, '<', 6..9) => "&lt;".to_owned(),
            (_, '"', 6..9) => "&quot;".to_owned(),
            (_, one, 6..10) => format!("&#{};", u32::from(one)),
            (_, one, _) => format!("&#x{};", hex(one.into())),
        };
    }
    mixed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_mixture_of_escaped_and_plain_characters_comes_through(
        secret in "[ -~ž-ž‰😀]{8,40}",
        how in proptest::collection::vec((0_u8..12, any::<bool>()), 40),
        twice in 0_u8..4,
        front in "[a-z ]{0,10}",
    ) {
        prop_assume!(secret.trim() == secret);
        let redactor = Redactor::new(&[&secret]).unwrap();
        for kind in 0..3 {
            let once = mixture(&secret, kind, &how);
            let text = match twice {
                0 | 1 => once,
                2 => once.bytes().map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect(),
                _ => once.replace('\\', "\\\\").replace('"', "\\\"").replace('/', "\\/"),
            };
            let clean = redactor.text(&format!("{front}\"{text}\" tail"));
            prop_assert_eq!(clean, format!("{front}\"[redacted]\" tail"), "{}", text);
        }
    }

    #[test]
    fn no_spelling_of_any_secret_comes_through(
        secret in "[ -~ž-ž‰]{8,40}",
        how in 0_u8..8,
        front in "[a-z]{0,4}:",
        around in ("[ -~]{0,30}", "[ -~]{0,30}"),
        end in 0_usize..120,
    ) {
        prop_assume!(secret.trim() == secret);
        let redactor = Redactor::new(&[&secret]).unwrap();
        let found = spelled(&secret, how, &front);
        let text = [around.0.as_bytes(), b"\n", &found, b"\n", around.1.as_bytes()].concat();
        let clean = redactor.redact(&text);
        let holds = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        prop_assert!(!holds(&clean, &found), "{}", String::from_utf8_lossy(&clean));
        prop_assert!(holds(&clean, PLACEHOLDER.as_bytes()));
        // What is cut shows no more than what is whole.
        let cut = redactor.redact_up_to(&text, end);
        prop_assert!(cut.len() <= PLACEHOLDER.len() * 4 + end, "{}", String::from_utf8_lossy(&cut));
        let common = cut.iter().zip(&clean).take_while(|(a, b)| a == b).count();
        prop_assert!(common == cut.len(), "{} of {}", String::from_utf8_lossy(&cut), String::from_utf8_lossy(&clean));
    }
}
