//! Walks a chain once and finds where it first breaks.
//!
//! It holds one hash and the pins, never the events: a chain of any length, fed in pieces of any size. It does
//! not read rows and does not decide what to do about a broken chain.

use super::hash::write_event_hash;
use super::pins::{CheckpointFault, Pin};
use super::{EventRow, GENESIS, Pins, Verdict};

/// Checks events against their hashes, each other and the checkpoints' pins.
///
/// Feed every row of `memory_events` in the order of its id; then [`ChainVerifier::finish`]. Ids must rise, but
/// may skip: what proves that nothing stood between two events is that the later one carries the earlier
/// one's hash.
#[derive(Clone, Debug)]
pub struct ChainVerifier {
    pins: Vec<Pin>,
    next_pin: usize,
    checkpoint_fault: Option<CheckpointFault>,
    events: u64,
    head_id: i64,
    head_hash: String,
    pinned_through: i64,
    fault: Option<EventFault>,
    /// The hash of the event at hand, kept to spare an allocation per event.
    computed: String,
}

/// The first event that does not hold.
#[derive(Clone, Debug)]
struct EventFault {
    id: i64,
    reason: String,
}

impl ChainVerifier {
    /// Starts before the first event.
    #[must_use]
    pub fn new(pins: Pins) -> Self {
        let (pins, checkpoint_fault) = pins.into_parts();
        let mut verifier = Self {
            pins,
            next_pin: 0,
            checkpoint_fault,
            events: 0,
            head_id: 0,
            head_hash: GENESIS.to_owned(),
            pinned_through: 0,
            fault: None,
            computed: String::with_capacity(64),
        };
        // Checkpoints from before the first event pin nothing; one that names no event at all is a fault above.
        while verifier.pins.get(verifier.next_pin).is_some_and(|pin| pin.event <= 0) {
            verifier.next_pin += 1;
        }
        verifier
    }

    /// Takes the next event. Behind the first fault, events are only counted.
    pub fn event(&mut self, row: &EventRow<'_>) {
        self.events += 1;
        if self.fault.is_none() {
            self.fault = self.check(row).err();
        }
        self.head_id = row.id;
        self.head_hash.clear();
        self.head_hash.push_str(row.hash);
    }

    /// Takes an event whose fields are not what the table promises (NULL, another type, invalid UTF-8).
    pub fn unreadable(&mut self, id: i64, reason: &str) {
        self.events += 1;
        self.head_id = id;
        self.fault.get_or_insert_with(|| EventFault { id, reason: format!("it cannot be read: {reason}") });
    }

    /// Events taken so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The verdict, once the last event is taken.
    #[must_use]
    pub fn finish(mut self) -> Verdict {
        if self.fault.is_none()
            && let Some(pin) = self.pins.last().filter(|pin| pin.event > self.head_id)
        {
            let reason = format!(
                "checkpoint {} names event {}, but the newest event is {}: the chain's end was cut off",
                pin.checkpoint, pin.event, self.head_id
            );
            self.fault = Some(EventFault { id: self.head_id.saturating_add(1), reason });
        }
        let break_at_id = self.fault.as_ref().map(|fault| fault.id);
        let reason = match (self.fault, self.checkpoint_fault) {
            (None, None) => None,
            (Some(event), None) => Some(event.reason),
            (None, Some(checkpoint)) => {
                Some(format!("checkpoint {} {}", checkpoint.checkpoint, checkpoint.reason))
            }
            (Some(event), Some(CheckpointFault { checkpoint, reason })) => {
                Some(format!("{}; also checkpoint {checkpoint} {reason}", event.reason))
            }
        };
        Verdict {
            ok: reason.is_none(),
            events: self.events,
            head_id: self.head_id,
            head_hash: self.head_hash,
            pinned_through: self.pinned_through,
            break_at_id,
            reason,
        }
    }

    fn check(&mut self, row: &EventRow<'_>) -> Result<(), EventFault> {
        let at_row = |reason: String| EventFault { id: row.id, reason };
        if row.id <= self.head_id {
            return Err(at_row(format!("it comes after event {}: ids must rise from 1", self.head_id)));
        }
        // Its own hash first: it covers prev_hash, so what is left to blame below is the event before.
        write_event_hash(row, &mut self.computed);
        if row.hash != self.computed {
            return Err(at_row(
                "its fields do not match its hash: it was altered after it was written".to_owned(),
            ));
        }
        if row.prev_hash != self.head_hash {
            return Err(at_row(self.broken_link(row.id)));
        }
        self.check_pins(row)
    }

    fn check_pins(&mut self, row: &EventRow<'_>) -> Result<(), EventFault> {
        while let Some(pin) = self.pins.get(self.next_pin).filter(|pin| pin.event <= row.id) {
            let fault = |what: &str| EventFault {
                id: pin.event,
                reason: format!("checkpoint {} names {what}", pin.checkpoint),
            };
            if pin.event < row.id {
                return Err(fault("it, but it is missing and the events behind it were written anew"));
            }
            if pin.head_hash != row.hash {
                return Err(fault("another hash for it: the chain up to it was written anew"));
            }
            if pin.sound {
                self.pinned_through = pin.event;
            }
            self.next_pin += 1;
        }
        Ok(())
    }

    fn broken_link(&self, id: i64) -> String {
        let (before, gap) = (self.head_id, id.saturating_sub(self.head_id) - 1);
        match (before, gap) {
            (0, 0) => "its prev_hash is not that of a first event (64 zeros)".to_owned(),
            (_, 0) => format!("its prev_hash is not the hash of event {before}: that event was written anew"),
            (_, 1) => {
                format!("its prev_hash is not that of the event before it: event {} is missing", id - 1)
            }
            _ => format!(
                "its prev_hash is not that of the event before it: events {} to {} are missing",
                before + 1,
                id - 1
            ),
        }
    }
}
