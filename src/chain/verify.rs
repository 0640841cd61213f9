//! Walks a chain once and finds where it first breaks.
//!
//! It holds one hash and the pins, never the events: a chain of any length, fed in pieces of any size. Pieces
//! may be walked side by side and put together afterwards, and a walk may go on where an earlier one ended. It
//! does not read rows and does not decide what to do about a broken chain.

use super::hash::write_event_hash;
use super::pins::{CheckpointFault, Pin};
use super::{EventRow, GENESIS, Pins, Verdict};
use std::sync::Arc;

/// Checks events against their hashes, each other and the checkpoints' pins.
///
/// Feed every row of `memory_events` in the order of its id; then [`ChainVerifier::finish`]. Ids must rise, but
/// may skip: what proves that nothing stood between two events is that the later one carries the earlier
/// one's hash.
#[derive(Clone, Debug)]
pub struct ChainVerifier {
    pins: Arc<[Pin]>,
    next_pin: usize,
    checkpoint_fault: Option<CheckpointFault>,
    events: u64,
    head_id: i64,
    head_hash: String,
    pinned_through: i64,
    fault: Option<EventFault>,
    /// Whether `head_hash` is one that was read here, and not where the walk began.
    read_any: bool,
    /// The hash of the event at hand, kept to spare an allocation per event.
    computed: String,
}

/// The beginning of a chain, up to its event `head_id`, in which nothing was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoundPrefix {
    /// How many events it has.
    pub events: u64,
    /// Its last event; 0 when it has none.
    pub head_id: i64,
    /// The hash of that; [`GENESIS`] when it has none.
    pub head_hash: String,
    /// The last event in it that a sound checkpoint pins, 0 when none does.
    pub pinned_through: i64,
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
        Self {
            // Checkpoints from before the first event pin nothing; one that names no event at all is a fault above.
            next_pin: pins.partition_point(|pin| pin.event <= 0),
            pins: pins.into(),
            checkpoint_fault,
            events: 0,
            head_id: 0,
            head_hash: GENESIS.to_owned(),
            pinned_through: 0,
            fault: None,
            read_any: false,
            computed: String::with_capacity(64),
        }
    }

    /// A walk over the same chain that begins behind the event `id`, of which `hash` is what is stored. What it
    /// finds holds once the walk up to that event is [`ChainVerifier::joined`] with it.
    #[must_use]
    pub fn behind(&self, id: i64, hash: &str) -> Self {
        Self {
            pins: Arc::clone(&self.pins),
            next_pin: self.pins.partition_point(|pin| pin.event <= id),
            checkpoint_fault: self.checkpoint_fault.clone(),
            events: 0,
            head_id: id,
            head_hash: hash.to_owned(),
            pinned_through: 0,
            fault: None,
            read_any: false,
            computed: String::with_capacity(64),
        }
    }

    /// This walk and the one that began where it ended, as if it had gone on.
    #[must_use]
    pub fn joined(self, later: Self) -> Self {
        let events = self.events + later.events;
        // Without an event that could be read, the newest hash is still the one before.
        let head_hash = if later.read_any { later.head_hash } else { self.head_hash };
        let (head_id, read_any) = (later.head_id, self.read_any || later.read_any);
        match self.fault {
            // Behind the first fault, events are only counted.
            Some(_) => Self { events, head_id, head_hash, read_any, ..self },
            None => Self {
                events,
                head_hash,
                read_any,
                pinned_through: later.pinned_through.max(self.pinned_through),
                ..later
            },
        }
    }

    /// A walk that goes on behind what an earlier walk over the same events found sound, with the checkpoints
    /// as they are now.
    ///
    /// The earlier checkpoints are taken for what they were then; the caller knows that nobody changed them.
    #[must_use]
    pub fn after(sound: &SoundPrefix, pins: Pins) -> Self {
        let mut verifier = Self::new(pins);
        verifier.events = sound.events;
        verifier.head_id = sound.head_id;
        verifier.head_hash.clone_from(&sound.head_hash);
        verifier.pinned_through = sound.pinned_through;
        verifier.next_pin = verifier.pins.partition_point(|pin| pin.event < sound.head_id);
        // Checkpoints written since, while no event came.
        if sound.head_id > 0 {
            verifier.fault = verifier.check_pins(sound.head_id, &sound.head_hash).err();
        } else {
            verifier.next_pin = verifier.pins.partition_point(|pin| pin.event <= 0);
        }
        verifier
    }

    /// What was walked so far, for a later walk to begin behind; none if anything was wrong with it.
    #[must_use]
    pub fn sound(&self) -> Option<SoundPrefix> {
        let cut_off = self.pins.last().is_some_and(|pin| pin.event > self.head_id);
        if self.fault.is_some() || self.checkpoint_fault.is_some() || cut_off {
            return None;
        }
        Some(SoundPrefix {
            events: self.events,
            head_id: self.head_id,
            head_hash: self.head_hash.clone(),
            pinned_through: self.pinned_through,
        })
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
        self.read_any = true;
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
        self.check_pins(row.id, row.hash)
    }

    fn check_pins(&mut self, id: i64, hash: &str) -> Result<(), EventFault> {
        while let Some(pin) = self.pins.get(self.next_pin).filter(|pin| pin.event <= id) {
            let fault = |what: &str| EventFault {
                id: pin.event,
                reason: format!("checkpoint {} names {what}", pin.checkpoint),
            };
            if pin.event < id {
                return Err(fault("it, but it is missing and the events behind it were written anew"));
            }
            if pin.head_hash != hash {
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
