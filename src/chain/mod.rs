//! The memory that cannot be rewritten: hash arithmetic, the verdict over a chain, and the resume text.
//!
//! Pure: rows come in, text and verdicts go out. It opens no file and runs no SQL; `store/` reads and appends.

pub mod hash;
pub mod pins;
pub mod resume;
pub mod tally;
pub mod verdict;
pub mod verify;

pub use hash::{GENESIS, checkpoint_hash, event_hash};
pub use pins::Pins;
pub use tally::Tally;
pub use verdict::Verdict;
pub use verify::{ChainVerifier, SoundPrefix};

/// A row of `memory_events`, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRow<'a> {
    /// Position in the chain, from 1.
    pub id: i64,
    /// UTC time, like `2026-11-30T09:01:02Z`.
    pub ts: &'a str,
    /// The server run that wrote it.
    pub session: &'a str,
    /// What sort of event, `note` unless said otherwise.
    pub kind: &'a str,
    /// The text, exactly as stored.
    pub content: &'a str,
    /// The hash of the event before, [`GENESIS`] for the first.
    pub prev_hash: &'a str,
    /// The stored hash, lower-case hex.
    pub hash: &'a str,
}

/// A row of `memory_checkpoints`, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointRow<'a> {
    /// Position among the checkpoints, from 1.
    pub id: i64,
    /// UTC time, like `2026-11-30T09:01:02Z`.
    pub ts: &'a str,
    /// The server run that wrote it.
    pub session: &'a str,
    /// The text, exactly as stored.
    pub summary: &'a str,
    /// The newest event when it was written; 0 before the first.
    pub last_event_id: i64,
    /// That event's hash; [`GENESIS`] before the first.
    pub head_hash: &'a str,
    /// The checkpoint's own stored hash.
    pub hash: StoredHash<'a>,
}

/// What stands in a checkpoint's `hash` column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredHash<'a> {
    /// A text.
    Text(&'a str),
    /// NULL: a fault, since the server fills every one.
    Null,
    /// There is no such column: a file of the Python server that was never opened for writing here. The
    /// checkpoint still pins its event, but nothing binds the checkpoints to each other.
    NoColumn,
}
