//! The checkpoints of a chain: each one's own hash, and the event it pins.
//!
//! Read first, they are few; their summaries are hashed and let go. Whether the pinned events are there is
//! for `verify`, which meets them.

use super::{CheckpointRow, GENESIS, StoredHash, checkpoint_hash};

/// The checkpoints, checked among themselves. Feed every row in the order of its id.
#[derive(Clone, Debug)]
pub struct Pins {
    pins: Vec<Pin>,
    /// The stored hash of the checkpoint before.
    previous: String,
    last_id: i64,
    fault: Option<CheckpointFault>,
}

/// What one checkpoint says about the events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pin {
    pub(super) checkpoint: i64,
    pub(super) event: i64,
    pub(super) head_hash: String,
    /// Nothing was wrong with the checkpoints before it either.
    pub(super) sound: bool,
}

/// The first thing wrong with the checkpoints themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckpointFault {
    pub(super) checkpoint: i64,
    pub(super) reason: String,
}

impl Default for Pins {
    fn default() -> Self {
        Self::new()
    }
}

impl Pins {
    /// No checkpoint yet.
    #[must_use]
    pub fn new() -> Self {
        Self { pins: Vec::new(), previous: GENESIS.to_owned(), last_id: 0, fault: None }
    }

    /// Takes the next row.
    pub fn checkpoint(&mut self, row: &CheckpointRow<'_>) {
        match self.check(row) {
            // A checkpoint that is wrong itself has no say about the events.
            Err(reason) => self.set_fault(row.id, reason),
            Ok(()) => self.pins.push(Pin {
                checkpoint: row.id,
                event: row.last_event_id,
                head_hash: row.head_hash.to_owned(),
                sound: self.fault.is_none(),
            }),
        }
        self.last_id = row.id;
        self.previous.clear();
        self.previous.push_str(match row.hash {
            StoredHash::Text(hash) => hash,
            StoredHash::Null | StoredHash::NoColumn => GENESIS,
        });
    }

    /// Takes a row whose fields are not what the table promises (NULL, another type, invalid UTF-8).
    pub fn unreadable(&mut self, id: i64, reason: &str) {
        self.set_fault(id, format!("cannot be read: {reason}"));
        self.last_id = id;
    }

    /// The pins in the order of the events they name, and the first fault.
    pub(super) fn into_parts(mut self) -> (Vec<Pin>, Option<CheckpointFault>) {
        self.pins.sort_by_key(|pin| pin.event);
        (self.pins, self.fault)
    }

    fn check(&self, row: &CheckpointRow<'_>) -> Result<(), String> {
        if row.id <= self.last_id {
            return Err(format!("comes after checkpoint {}: ids must rise from 1", self.last_id));
        }
        match row.hash {
            StoredHash::NoColumn => {}
            StoredHash::Null => return Err("has no hash".to_owned()),
            StoredHash::Text(stored) => {
                let CheckpointRow { id, ts, session, summary, last_event_id, head_hash, .. } = *row;
                if stored
                    != checkpoint_hash(id, ts, session, summary, last_event_id, head_hash, &self.previous)
                {
                    return Err(
                        "does not match its hash: it or the checkpoint before it was altered or removed"
                            .to_owned(),
                    );
                }
            }
        }
        if row.last_event_id < 0 || (row.last_event_id == 0 && row.head_hash != GENESIS) {
            return Err(format!("names event {}, which no chain has", row.last_event_id));
        }
        Ok(())
    }

    fn set_fault(&mut self, checkpoint: i64, reason: String) {
        self.fault.get_or_insert(CheckpointFault { checkpoint, reason });
    }
}
