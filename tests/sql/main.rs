//! Random SQL on guarded connections, as workers run it: reads change nothing, changes keep their bounds, and what a
//! SELECT gives is what plain SQLite gives, value for value.
//!
//! The fuzz targets of `fuzz/` share the grammar and what must hold. `PROPTEST_CASES=100000` makes the runs long.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]

mod desk;
mod grammar;

use desk::Desk;
use indelible::render::Datum;
use proptest::prelude::*;
use rusqlite::types::Value;

/// The same value, with the bits of a number and what stands for a blob.
fn is_same(plain: &Value, shown: &Datum) -> bool {
    match (plain, shown) {
        (Value::Null, Datum::Null) => true,
        (Value::Integer(one), Datum::Integer(other)) => one == other,
        (Value::Real(one), Datum::Real(other)) => one.to_bits() == other.to_bits(),
        (Value::Text(one), Datum::Text(other)) => one == other,
        (Value::Blob(bytes), Datum::Text(other)) => *other == format!("<blob {} bytes>", bytes.len()),
        _ => false,
    }
}

#[test]
fn statements_of_the_grammar_are_mostly_statements() {
    let desk = Desk::new();
    let (mut taken, mut distinct) = (0, std::collections::BTreeSet::new());
    for seed in 0..2000_u32 {
        let bytes: Vec<u8> =
            (0..60_u32).map(|at| (seed.wrapping_mul(2_654_435_761).rotate_left(at) >> 13) as u8).collect();
        let sql = grammar::select(&bytes);
        taken += u32::from(desk.plain(&sql).is_ok());
        distinct.insert(sql);
    }
    assert!(taken > 1500, "{taken} of 2000 run");
    assert!(distinct.len() > 1000, "{} differ", distinct.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn no_statement_that_is_read_changes_a_byte(statements in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..8)) {
        let desk = Desk::new();
        for bytes in &statements {
            desk.read_changes_nothing(&grammar::anything(bytes));
        }
    }

    #[test]
    fn no_change_touches_the_server_s_tables_or_passes_the_cap(statements in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..12)) {
        let mut desk = Desk::new();
        for bytes in &statements {
            desk.change_keeps_its_bounds(&grammar::anything(bytes));
        }
    }

    #[test]
    fn what_a_select_gives_is_what_plain_sqlite_gives(statements in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..20)) {
        let desk = Desk::new();
        for bytes in &statements {
            let sql = grammar::select(bytes);
            match (desk.plain(&sql), desk.read("read", &sql)) {
                (Ok(plain), Ok(shown)) => {
                    prop_assert_eq!(plain.len(), shown.rows.len(), "{}", sql);
                    for (plain, shown) in plain.iter().zip(&shown.rows) {
                        prop_assert_eq!(plain.len(), shown.len(), "{}", sql);
                        let same = plain.iter().zip(shown).all(|(plain, shown)| is_same(plain, shown));
                        prop_assert!(same, "{}\n{:?}\n{:?}", sql, plain, shown);
                    }
                }
                (Err(_), Err(_)) => {}
                (plain, shown) => prop_assert!(false, "{}\n{:?}\n{:?}", sql, plain, shown),
            }
        }
    }
}
