//! Finding text: patterns, snippets around a match, and the report of a search.
//!
//! Pure: it sees one value at a time and never SQL; `handlers/` streams the rows.

mod found;
mod pattern;
mod report;
mod snippet;

pub use found::Found;
pub use pattern::Pattern;
pub use report::{SearchEnd, SearchReport};
