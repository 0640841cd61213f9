//! What an agent reads: CSV, cut cells, byte caps and trailers.
//!
//! The values come from tables here, not from SQLite; the sqlite tests cover how they are read.

use indelible::render::cell::{count_chars, shown};
use indelible::render::{Caps, Cell, CsvSink, Flow, Rendered, RowCut};
use indelible::render::{cap_block, cap_text, one_line, write_cell, write_field};
use proptest::prelude::*;

const WIDE: Caps = Caps { max_result_bytes: 1 << 20, max_cell_chars: 2000 };

fn text(value: &str) -> Cell<'_> {
    Cell::Text(value.as_bytes())
}

fn render(columns: &[&str], rows: &[Vec<Cell<'_>>], caps: Caps, cut: RowCut) -> Rendered {
    let mut sink = CsvSink::new(columns, caps);
    for row in rows {
        sink.begin_row();
        row.iter().for_each(|cell| sink.cell(*cell));
        if sink.end_row() == Flow::Full {
            break;
        }
    }
    sink.finish(cut)
}

#[track_caller]
fn check_cell(cell: Cell<'_>, expected: &str) {
    assert_eq!(render(&["a", "v"], &[vec![Cell::Null, cell]], WIDE, RowCut::None).text, {
        format!("a,v\n,{expected}\n# 1 rows")
    });
}

#[test]
fn every_storage_class_has_its_text() {
    check_cell(Cell::Null, "");
    check_cell(Cell::Integer(i64::MAX), "9223372036854775807");
    check_cell(Cell::Integer(i64::MIN), "-9223372036854775808");
    check_cell(Cell::Real(0.1), "0.1");
    check_cell(Cell::Real(2.0), "2.0");
    check_cell(Cell::Real(-0.0), "-0.0");
    check_cell(Cell::Real(1e300), "1e300");
    check_cell(Cell::Real(5e-324), "5e-324");
    check_cell(Cell::Real(1.797_693_134_862_315_7e308), "1.7976931348623157e308");
    check_cell(Cell::Real(f64::INFINITY), "Inf");
    check_cell(Cell::Real(f64::NEG_INFINITY), "-Inf");
    check_cell(Cell::Blob(3), "<blob 3 bytes>");
    check_cell(text(""), "\"\"");
    check_cell(text("žluťoučký 🐎"), "žluťoučký 🐎");
    check_cell(text("12"), "12");
    check_cell(text("after\0nul"), "after\0nul");
    check_cell(text("# inside a row"), "# inside a row");
    check_cell(text(" spaces kept "), " spaces kept ");
    check_cell(text("a,b"), "\"a,b\"");
    check_cell(text("with \"quotes\""), "\"with \"\"quotes\"\"\"");
    check_cell(text("two\nlines"), "\"two\nlines\"");
    check_cell(text("lone\rreturn"), "\"lone\rreturn\"");
    check_cell(Cell::Text(b"bad\xff\xe2\x82byte"), "bad\u{fffd}\u{fffd}byte");
}

#[test]
fn no_row_and_no_header_can_pass_for_the_trailer() {
    let rendered = render(&["# 9 rows"], &[vec![text("# 5 rows")]], WIDE, RowCut::None);
    assert_eq!(rendered.text, "\"# 9 rows\"\n\"# 5 rows\"\n# 1 rows");
}

#[test]
fn a_lone_null_is_an_empty_line_and_names_may_repeat() {
    let rendered = render(&["x"], &[vec![Cell::Null], vec![text("")]], WIDE, RowCut::None);
    assert_eq!(rendered.text, "x\n\n\"\"\n# 2 rows");
    assert_eq!(render(&["a", "a", "b,c"], &[], WIDE, RowCut::None).text, "a,a,\"b,c\"\n# 0 rows");
}

#[test]
fn the_trailer_names_every_cut() {
    let rows = [vec![Cell::Integer(1)], vec![text("ééééé")]];
    let narrow = Caps { max_cell_chars: 2, ..WIDE };
    let limit = RowCut::Limit { limit: 2, maximum: 1000 };
    assert_eq!(
        render(&["id"], &rows, narrow, limit).text,
        "id\n1\néé...[+3 chars]\n# 2 rows; more rows exist (limit 2, maximum 1000); 1 cells cut to 2 chars"
    );
    let at_most = RowCut::AtMost { rows: 1 };
    assert_eq!(
        render(&["id"], &rows[..1], WIDE, at_most).text,
        "id\n1\n# 1 rows; more rows exist (at most 1 are shown)"
    );
}

#[test]
fn a_row_that_does_not_fit_is_left_out_with_its_cut_cells() {
    let caps = Caps { max_result_bytes: 24, max_cell_chars: 3 };
    let rows = [vec![Cell::Integer(1), text("abc")], vec![Cell::Integer(2), text("abcdef")]];
    let rendered = render(&["id", "s"], &rows, caps, RowCut::None);
    assert_eq!(rendered.text, "id,s\n1,abc\n# 1 rows; cut at 24 bytes");
    assert_eq!((rendered.rows, rendered.cut_cells, rendered.bytes_cut), (1, 0, true));
    // Exactly as large as the cap is not cut.
    let exact = Caps { max_result_bytes: 11, ..caps };
    assert_eq!(render(&["id", "s"], &rows[..1], exact, RowCut::None).text, "id,s\n1,abc\n# 1 rows");
}

#[test]
fn of_a_first_row_too_wide_what_fits_is_shown() {
    let caps = Caps { max_result_bytes: 20, ..WIDE };
    let reason = "# 1 rows; row 1 cut at 20 bytes, later rows not shown";
    let rows = [vec![Cell::Integer(7), text("éééééééééé"), text("x")], vec![Cell::Integer(8)]];
    assert_eq!(render(&["a", "b", "c"], &rows, caps, RowCut::None).text, format!("a,b,c\n7,ééééé\n{reason}"));
    let quoted = [vec![Cell::Integer(7), text("\"\"\"\"\",,,,,,,,,")]];
    assert_eq!(
        render(&["a", "b"], &quoted, caps, RowCut::None).text,
        format!("a,b\n7,\"{},\"\n{reason}", "\"\"".repeat(5))
    );
    let number = [vec![text("first"), Cell::Integer(i64::MAX)]];
    assert_eq!(render(&["a", "b"], &number, caps, RowCut::None).text, format!("a,b\nfirst\n{reason}"));
}

#[test]
fn of_a_header_too_wide_what_fits_is_shown() {
    let caps = Caps { max_result_bytes: 12, ..WIDE };
    let rendered = render(&["first", "second_column"], &[vec![Cell::Integer(1)]], caps, RowCut::None);
    assert_eq!(rendered.text, "first,secon\n# 0 rows; header cut at 12 bytes, rows not shown");
}

#[test]
fn a_huge_cell_costs_no_copy_of_it() {
    let huge = "é".repeat(8 << 20);
    let rendered = render(&["s"], &[vec![text(&huge)]], WIDE, RowCut::None);
    let shown = "é".repeat(2000);
    let expected = format!("s\n{shown}...[+8386608 chars]\n# 1 rows; 1 cells cut to 2000 chars");
    assert!(rendered.text == expected, "{}", &rendered.text[3990..]);
    let unbounded = Caps { max_cell_chars: usize::MAX, max_result_bytes: 1000 };
    let mut sink = CsvSink::new(&["s"], unbounded);
    sink.begin_row();
    sink.cell(text(&huge));
    assert_eq!(sink.end_row(), Flow::Full);
    assert!(sink.finish(RowCut::None).text.capacity() < 10_000);
}

#[test]
fn cut_cells_count_the_characters_that_replacement_shows() {
    let bytes = b"ab\xff\xffcd\xe2\x82";
    assert_eq!(count_chars(bytes), 7);
    let cut = shown(bytes, 3);
    assert_eq!((&*cut.text, cut.bytes, cut.left_out), ("ab\u{fffd}", 3, 4));
}

#[test]
fn plain_texts_are_cut_on_character_boundaries() {
    assert_eq!(cap_text("héé", 3), ("hé".to_owned(), true));
    assert_eq!(cap_text("héé", 4), ("hé".to_owned(), true));
    assert_eq!(cap_text("héé", 5), ("héé".to_owned(), false));
    assert_eq!(cap_block("one\ntwo", 5), "one\nt\n# cut at 5 bytes");
    assert_eq!(cap_block("one\ntwo", 7), "one\ntwo");
    assert_eq!(one_line("a\r\n\tb\u{1b}[0m\u{2028}\u{85}é", 100), "a\\r\\n\\tb\\u001b[0m\\u2028\\u0085é");
    assert_eq!(one_line("abcdef", 4), "abcd...[+2 chars]");
}

#[test]
fn plain_fields_are_quoted_only_where_needed() {
    let mut line = String::new();
    for (field, first) in [("#t", true), (",", false), ("", false), ("#t", false)] {
        write_field(&mut line, field, first);
        line.push(';');
    }
    assert_eq!(line, "\"#t\";\",\";;#t;");
    let mut cell = String::new();
    assert!(write_cell(&mut cell, text("abc"), 2, false));
    assert!(!write_cell(&mut cell, text("abc"), 3, false));
    assert_eq!(cell, "ab...[+1 chars]abc");
}

/// One value as the properties make it.
#[derive(Clone, Debug)]
enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Bytes(Vec<u8>),
}

impl Value {
    fn cell(&self) -> Cell<'_> {
        match self {
            Self::Null => Cell::Null,
            Self::Integer(value) => Cell::Integer(*value),
            Self::Real(value) => Cell::Real(*value),
            Self::Bytes(bytes) => Cell::Text(bytes),
        }
    }
    fn as_read(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Integer(value) => value.to_string(),
            Self::Real(value) => format!("{value:?}"),
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let tricky =
        prop::collection::vec(prop::sample::select(vec!["\"", ",", "\n", "\r", "#", "é", "🐎", "a"]), 0..8);
    prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::Integer),
        prop::num::f64::NORMAL.prop_map(Value::Real),
        tricky.prop_map(|parts| Value::Bytes(parts.concat().into_bytes())),
        any::<String>().prop_map(|text| Value::Bytes(text.into_bytes())),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Bytes),
    ]
}

fn table() -> impl Strategy<Value = (Vec<String>, Vec<Vec<Value>>)> {
    (2usize..5).prop_flat_map(|width| {
        let header = prop::collection::vec(any::<String>(), width);
        (header, prop::collection::vec(prop::collection::vec(value(), width), 0..6))
    })
}

fn render_values(header: &[String], rows: &[Vec<Value>], caps: Caps) -> Rendered {
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let rows: Vec<Vec<Cell<'_>>> = rows.iter().map(|row| row.iter().map(Value::cell).collect()).collect();
    render(&header, &rows, caps, RowCut::None)
}

proptest! {
    #[test]
    fn a_csv_reader_reads_back_what_was_shown((header, rows) in table()) {
        let rendered = render_values(&header, &rows, WIDE);
        let trailer = format!("# {} rows", rows.len());
        let body = rendered.text.strip_suffix(&trailer).expect("the trailer is the last line");
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(body.as_bytes());
        let read: Vec<Vec<String>> = reader
            .records()
            .map(|record| record.expect("valid csv").iter().map(str::to_owned).collect())
            .collect();
        let mut expected = vec![header];
        expected.extend(rows.iter().map(|row| row.iter().map(Value::as_read).collect()));
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn the_caps_hold_whatever_the_rows((header, rows) in table(), bytes in 0usize..120, chars in 0usize..12) {
        let rendered = render_values(&header, &rows, Caps { max_result_bytes: bytes, max_cell_chars: chars });
        let trailer = rendered.text.lines().last().unwrap_or_default().to_owned();
        let head = format!("# {} rows", rendered.rows);
        prop_assert!(trailer.starts_with(&head), "{}", rendered.text);
        let body = rendered.text.len() - trailer.len();
        prop_assert!(body <= bytes && trailer.len() <= 500, "{body} bytes: {}", rendered.text);
        prop_assert_eq!(rendered.bytes_cut, trailer.contains("bytes"));
        prop_assert!(rendered.bytes_cut || rendered.rows == rows.len() as u64);
        // What is shown of a cut row is whole CSV too.
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(rendered.text.as_bytes());
        prop_assert!(reader.records().all(|record| record.is_ok()));
    }

    #[test]
    fn heads_and_counts_agree_with_lossy_decoding(bytes in prop::collection::vec(any::<u8>(), 0..60), max in 0usize..30) {
        let lossy = String::from_utf8_lossy(&bytes);
        let cut = shown(&bytes, max);
        let head: String = lossy.chars().take(max).collect();
        prop_assert_eq!(&*cut.text, head.as_str());
        prop_assert_eq!(cut.left_out, lossy.chars().count() - head.chars().count());
        prop_assert_eq!(count_chars(&bytes), lossy.chars().count());
    }

    #[test]
    fn counting_is_exact_across_its_blocks(pad in 16_380usize..16_388, tail in prop::collection::vec(any::<u8>(), 0..20)) {
        let mut bytes = vec![b'x'; pad];
        bytes.extend("🐎é".bytes().chain(tail));
        prop_assert_eq!(count_chars(&bytes), String::from_utf8_lossy(&bytes).chars().count());
    }
}
