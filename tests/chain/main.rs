//! The memory's chain, without a database: hashes, verdicts, the resume text.
//!
//! How rows are read and written is for the tests of the store.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper of a test fails as the test does"
)]

mod resume_text;
mod stored;
mod verdicts;
