//! What a check of the chain found, as JSON and as one line.
//!
//! It carries the result; `verify` finds it.

use crate::render::one_line;
use std::fmt;

/// How far a chain reaches and where it first breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Every event and every checkpoint holds.
    pub ok: bool,
    /// Events in the table.
    pub events: u64,
    /// The newest event; 0 when there is none.
    pub head_id: i64,
    /// Its stored hash; 64 zeros when there is none.
    pub head_hash: String,
    /// The last event that a sound checkpoint pins, 0 when none does. What lies behind it could have been cut
    /// off without a trace.
    pub pinned_through: i64,
    /// The event where the chain first breaks; none when the events hold and only a checkpoint does not.
    pub break_at_id: Option<i64>,
    /// What is wrong there, when something is.
    pub reason: Option<String>,
}

impl Verdict {
    /// `ok, events, head_id, head_hash, pinned_through`, and when broken `break_at_id` (null when only a
    /// checkpoint is at fault) and `reason`, in this order.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let mut json = serde_json::json!({
            "ok": self.ok,
            "events": self.events,
            "head_id": self.head_id,
            "head_hash": self.head_hash,
            "pinned_through": self.pinned_through,
        });
        if let (false, Some(object)) = (self.ok, json.as_object_mut()) {
            object.insert("break_at_id".to_owned(), self.break_at_id.into());
            object.insert("reason".to_owned(), self.reason.clone().into());
        }
        json
    }
}

/// One line: `chain ok (3 events)`, `chain BROKEN at event 2: reason`, `chain BROKEN: checkpoint 1 has no hash`.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ok {
            return write!(f, "chain ok ({} events)", self.events);
        }
        let reason = one_line(self.reason.as_deref().unwrap_or("unknown"), 400);
        match self.break_at_id {
            Some(id) => write!(f, "chain BROKEN at event {id}: {reason}"),
            None => write!(f, "chain BROKEN: {reason}"),
        }
    }
}
