//! Patterns, snippets and the report of a search.
//!
//! Values come from tables here; the store's tests cover how rows are streamed.

#![expect(clippy::expect_used, reason = "a helper of a test fails as the test does")]

use indelible::error::ErrorCode;
use indelible::render::{Caps, Cell};
use indelible::search::{Pattern, SearchEnd, SearchReport};
use proptest::prelude::*;

const CAPS: Caps = Caps { max_result_bytes: 32768, max_cell_chars: 2000 };

fn regex(pattern: &str) -> Pattern {
    Pattern::new(pattern, false, false).expect("a valid pattern")
}

#[track_caller]
fn check(pattern: &str, value: &str, context: usize, expected: &str) {
    assert_eq!(regex(pattern).snippet(value.as_bytes(), context).as_deref(), Some(expected));
}

#[test]
fn a_snippet_shows_the_first_match_with_its_context() {
    check("apple", "an apple a day", 40, "an apple a day");
    check("apple", "an apple a day", 3, "an apple a ...");
    check("apple", "an apple a day", 2, "...n apple a...");
    check("apple", "an apple a day", 0, "...apple...");
    check("a", "a", 0, "a");
    check("x*", "aaa", 2, "aa...");
    check("kůň", "příliš žluťoučký kůň úpěl ďábelské ódy", 10, "...žluťoučký kůň úpěl ďábe...");
    check("🐎", "🐎🐎🐎", 1, "🐎🐎...");
    check("b", "🐎🐎🐎b🐎🐎🐎", 2, "...🐎🐎b🐎🐎...");
}

#[test]
fn line_breaks_and_controls_stay_on_one_line() {
    check("second", "first\nsecond\r\nthird\rfourth", 40, "first⏎second⏎third⏎fourth");
    check("(?s)a.+b", "a\r\n\tb\u{2028}\u{1b}[0m", 40, "a⏎ b⏎ [0m");
    check("\\r", "a\r\nb", 40, "a⏎b");
    let lossy = regex("(?-u:\\xff)z").snippet(b"ab\xff\xffz", 9);
    assert_eq!(lossy.as_deref(), Some("ab\u{fffd}\u{fffd}z"));
    let cut = regex("z").snippet(b"a\xff\xff\xff\xffz", 3);
    assert_eq!(cut.as_deref(), Some("...\u{fffd}\u{fffd}\u{fffd}z"));
}

#[test]
fn a_pattern_is_a_regex_unless_it_is_fixed() {
    let matches = |pattern: &str, fixed, ignore, value: &str| {
        Pattern::new(pattern, fixed, ignore).expect("a valid pattern").is_match(value.as_bytes())
    };
    assert!(matches("A.{2}LE", false, true, "an apple a day"));
    assert!(!matches("A.{2}LE", false, false, "an apple a day"));
    assert!(!matches("a.p", true, false, "an apple a day"));
    assert!(matches("\\nabla", true, false, "with \\nabla"));
    assert!(matches("ŽLUŤ", true, true, "žluť"));
    assert!(!matches("a.b", false, false, "a\nb"));
    assert!(matches("(?s)a.b", false, false, "a\nb"));
}

#[track_caller]
fn check_refused(pattern: &str, expected: &str) {
    let error = Pattern::new(pattern, false, false).expect_err("a pattern that is refused");
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::InvalidArguments, expected));
}

#[test]
fn a_pattern_that_cannot_be_used_says_why() {
    let fixed = "; to search for the text as it is, set `fixed_strings` to true";
    let around = "look-around and back-references are not supported by this regex engine; match more in `pattern` \
                  and narrow the rows with `where`";
    check_refused("", "`pattern` is empty: give a regex, or a text with `fixed_strings`");
    check_refused("a(", &format!("`pattern` is not a valid regex: unclosed group{fixed}"));
    check_refused("(", &format!("`pattern` is not a valid regex: unclosed group{fixed}"));
    check_refused("a\n\n[", &format!("`pattern` is not a valid regex: unclosed character class{fixed}"));
    check_refused("a(?=b)", around);
    check_refused("(?<!a)b", around);
    check_refused("(a)\\1", around);
    let large = "`pattern` is too large: compiled, the regex would take more than 2 MiB; shorten it, or lower its \
                 repetition counts";
    check_refused("\\w{1000}", large);
    check_refused(
        &"a".repeat(4 << 20),
        "`pattern` is 4194304 bytes long, but at most 8192 are searched for; shorten it",
    );
    assert!(Pattern::new("\\w{20}", false, true).is_ok());
    assert!(Pattern::new(&"a".repeat(30_000), true, false).is_ok());
}

#[test]
fn a_huge_value_is_not_copied() {
    let mut value = "é".repeat(4 << 20);
    value.push_str("needle");
    value.push_str(&"x".repeat(1 << 20));
    let snippet = regex("needle").snippet(value.as_bytes(), 3).expect("a match");
    assert_eq!(snippet, "...éééneedlexxx...");
    let all = regex("(?s).+").snippet(value.as_bytes(), 3).expect("a match");
    assert_eq!(all, format!("{}...", "é".repeat(400)));
}

fn notes(limit: u64, caps: Caps, end: SearchEnd) -> String {
    let rows = [(1, "alpha", "an apple a day"), (2, "beta", "with \"quotes\" and, commas"), (3, "gamma", "")];
    let pattern = regex("a");
    let mut report = SearchReport::new(2, limit, 60, caps);
    for (id, title, body) in rows {
        report.begin_row();
        report.value(&pattern, &[Cell::Integer(id)], "title", title.as_bytes());
        report.value(&pattern, &[Cell::Integer(id)], "body", body.as_bytes());
    }
    report.finish(end).text
}

#[test]
fn the_report_counts_what_it_shows_and_what_it_saw() {
    let end = SearchEnd { maximum: 1000, candidates_cut: None };
    let scanned = "(3 candidate rows x 2 columns scanned)";
    assert_eq!(
        notes(50, CAPS, end),
        format!(
            "key,column,snippet\n1,title,alpha\n1,body,an apple a day\n2,title,beta\n\
             2,body,\"with \"\"quotes\"\" and, commas\"\n3,title,gamma\n# 5 of 5 matching values in 3 rows {scanned}"
        )
    );
    assert_eq!(
        notes(1, CAPS, end),
        format!(
            "key,column,snippet\n1,title,alpha\n\
             # 1 of 5 matching values in 3 rows {scanned}; more matches exist (limit 1, maximum 1000)"
        )
    );
    let bytes = Caps { max_result_bytes: 40, ..CAPS };
    assert_eq!(
        notes(50, bytes, end),
        format!(
            "key,column,snippet\n1,title,alpha\n# 1 of 5 matching values in 3 rows {scanned}; cut at 40 bytes"
        )
    );
    let stopped = SearchEnd { candidates_cut: Some(3), ..end };
    assert!(notes(50, CAPS, stopped).ends_with(
        "scanned); stopped after 3 candidate rows (--search-candidates), narrow them with `where`"
    ));
}

#[test]
fn a_composite_key_is_joined_and_then_quoted() {
    let mut report = SearchReport::new(1, 10, 60, CAPS);
    report.begin_row();
    let key = [Cell::Text(b"#a,\"b\""), Cell::Integer(2), Cell::Null, Cell::Text(b"")];
    report.value(&regex("x"), &key, "c", b"x");
    let text = report.finish(SearchEnd::default()).text;
    assert!(text.starts_with("key,column,snippet\n\"#a,\"\"b\"\"|2||\",c,x\n# 1 of 1"), "{text}");
}

proptest! {
    #[test]
    fn a_snippet_is_the_match_and_its_neighbours(value in "[aé🐎b]{0,12}M[aé🐎b]{0,12}", context in 0usize..14) {
        let snippet = regex("M").snippet(value.as_bytes(), context).expect("a match");
        let chars: Vec<char> = value.chars().collect();
        let at = chars.iter().position(|character| *character == 'M').expect("M");
        let (start, end) = (at.saturating_sub(context), (at + context + 1).min(chars.len()));
        let middle: String = chars[start..end].iter().collect();
        let lead = if start > 0 { "..." } else { "" };
        let trail = if end < chars.len() { "..." } else { "" };
        prop_assert_eq!(snippet, format!("{lead}{middle}{trail}"));
    }

    #[test]
    fn any_bytes_make_a_snippet_on_one_line(value in prop::collection::vec(any::<u8>(), 0..40), context in 0usize..10) {
        let snippet = regex("(?s-u:.)").snippet(&value, context);
        prop_assert_eq!(snippet.is_some(), !value.is_empty());
        prop_assert!(!snippet.unwrap_or_default().chars().any(char::is_control));
    }
}
