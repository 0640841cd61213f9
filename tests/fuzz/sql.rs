//! The policy over a grammar of SQL: what is read changes no byte, what is changed keeps its bounds.
//!
//! It shares grammar and judgement with tests/sql, whose property tests are short runs of the same.

#[path = "../sql/desk.rs"]
#[allow(dead_code)]
mod desk;
#[path = "../sql/grammar.rs"]
#[allow(dead_code)]
mod grammar;

pub(crate) fn run(data: &[u8]) {
    let mut desk = desk::Desk::new();
    // Statements after each other, each from its own stretch of bytes.
    for bytes in data.chunks(48).take(6) {
        let sql = grammar::anything(bytes);
        desk.read_changes_nothing(&sql);
        desk.change_keeps_its_bounds(&sql);
    }
}
