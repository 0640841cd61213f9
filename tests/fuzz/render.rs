//! CSV and Markdown: any cells under any caps give whole rows, and nothing in them ends the table.

use indelible::render::{Caps, Cell, CsvSink, Flow, RowCut, markdown};
use serde_json::Value;

pub(crate) fn run(data: &[u8]) {
    let [columns, bytes, chars, rest @ ..] = data else { return };
    let width = 1 + usize::from(columns % 5);
    let caps = Caps { max_result_bytes: usize::from(*bytes) * 8, max_cell_chars: usize::from(*chars) };
    let cells: Vec<&[u8]> = rest.split(|byte| *byte == 0xfe).collect();
    let names: Vec<String> = (0..width).map(|at| format!("c{at}")).collect();
    let cell = |bytes: &'_ [u8]| match bytes.first() {
        None => Value::Null,
        Some(_) => Value::from(String::from_utf8_lossy(bytes).into_owned()),
    };

    let mut sink = CsvSink::new(&names, caps);
    for row in cells.chunks(width) {
        sink.begin_row();
        for at in 0..width {
            match row.get(at) {
                Some(bytes) if !bytes.is_empty() => sink.cell(Cell::Text(bytes)),
                _ => sink.cell(Cell::Null),
            }
        }
        if sink.end_row() == Flow::Full {
            break;
        }
    }
    let rendered = sink.finish(RowCut::None);
    let trailer = rendered.text.lines().last().unwrap_or_default();
    assert!(trailer.starts_with(&format!("# {} rows", rendered.rows)), "{}", rendered.text);
    assert!(rendered.text.len() - trailer.len() <= caps.max_result_bytes, "{}", rendered.text);
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(rendered.text.as_bytes());
    assert!(reader.records().all(|record| record.is_ok()), "{}", rendered.text);

    let rows: Vec<Vec<Value>> = cells
        .chunks(width)
        .map(|row| (0..width).map(|at| cell(row.get(at).copied().unwrap_or_default())).collect())
        .collect();
    let table = markdown::table(&names, rows.iter().map(Vec::as_slice));
    // Names, a rule, a line for each row.
    assert_eq!(table.trim_end_matches('\n').split('\n').count(), rows.len() + 2, "{table}");
}
