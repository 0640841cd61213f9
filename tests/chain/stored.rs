//! A chain as the two tables store it, for tests to write and to damage.
//!
//! It promises nothing itself.

use indelible::chain::{
    ChainVerifier, CheckpointRow, EventRow, GENESIS, Pins, StoredHash, Verdict, checkpoint_hash, event_hash,
};

/// The time of every row.
pub(crate) const TS: &str = "2026-11-30T09:01:02Z";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: i64,
    pub(crate) ts: String,
    pub(crate) session: String,
    pub(crate) kind: String,
    pub(crate) content: String,
    pub(crate) prev_hash: String,
    pub(crate) hash: String,
}

impl Event {
    pub(crate) fn row(&self) -> EventRow<'_> {
        let Self { id, ts, session, kind, content, prev_hash, hash } = self;
        EventRow { id: *id, ts, session, kind, content, prev_hash, hash }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Checkpoint {
    pub(crate) id: i64,
    pub(crate) summary: String,
    pub(crate) last_event_id: i64,
    pub(crate) head_hash: String,
    pub(crate) hash: Option<String>,
}

/// A stored chain, as the two tables hold it.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct Chain {
    pub(crate) events: Vec<Event>,
    pub(crate) checkpoints: Vec<Checkpoint>,
}

impl Chain {
    pub(crate) fn of(contents: &[&str]) -> Self {
        let mut chain = Self::default();
        contents.iter().for_each(|content| chain.append("note", content));
        chain
    }

    pub(crate) fn head(&self) -> (i64, String) {
        self.events.last().map_or((0, GENESIS.to_owned()), |event| (event.id, event.hash.clone()))
    }

    pub(crate) fn append(&mut self, kind: &str, content: &str) {
        let (head, prev_hash) = self.head();
        let hash = event_hash(head + 1, TS, "s1", kind, content, &prev_hash);
        let [ts, session, kind, content] = [TS, "s1", kind, content].map(str::to_owned);
        self.events.push(Event { id: head + 1, ts, session, kind, content, prev_hash, hash });
    }

    pub(crate) fn checkpoint(&mut self, summary: &str) {
        let (last_event_id, head_hash) = self.head();
        self.checkpoint_with(summary, last_event_id, &head_hash);
    }

    /// A checkpoint that names this event with this hash, right or wrong.
    pub(crate) fn checkpoint_of(&mut self, last_event_id: i64, head_hash: &str) {
        self.checkpoint_with("of its own", last_event_id, head_hash);
    }

    fn checkpoint_with(&mut self, summary: &str, last_event_id: i64, head_hash: &str) {
        let head_hash = head_hash.to_owned();
        let id = self.checkpoints.len() as i64 + 1;
        let previous =
            self.checkpoints.last().map_or(GENESIS.to_owned(), |checkpoint| checkpoint.hash.clone().unwrap());
        let hash = checkpoint_hash(id, TS, "s1", summary, last_event_id, &head_hash, &previous);
        let summary = summary.to_owned();
        self.checkpoints.push(Checkpoint { id, summary, last_event_id, head_hash, hash: Some(hash) });
    }

    /// Makes every event after `from` (an index) follow from the one before, as a forger would.
    pub(crate) fn rehash(&mut self, from: usize) {
        for index in from..self.events.len() {
            let prev_hash =
                index.checked_sub(1).map_or(GENESIS.to_owned(), |at| self.events[at].hash.clone());
            let event = &mut self.events[index];
            event.hash =
                event_hash(event.id, &event.ts, &event.session, &event.kind, &event.content, &prev_hash);
            event.prev_hash = prev_hash;
        }
    }

    pub(crate) fn verify(&self) -> Verdict {
        let mut verifier = ChainVerifier::new(self.pins());
        self.events.iter().for_each(|event| verifier.event(&event.row()));
        verifier.finish()
    }

    /// The same in pieces of so many events, walked side by side.
    pub(crate) fn verify_in_pieces(&self, of: usize) -> Verdict {
        let start = ChainVerifier::new(self.pins());
        let pieces = self.events.chunks(of).enumerate().map(|(at, piece)| {
            let mut verifier = match (at * of).checked_sub(1).map(|before| &self.events[before]) {
                Some(before) => start.behind(before.id, &before.hash),
                None => start.clone(),
            };
            piece.iter().for_each(|event| verifier.event(&event.row()));
            verifier
        });
        pieces.reduce(ChainVerifier::joined).unwrap_or(start).finish()
    }

    pub(crate) fn pins(&self) -> Pins {
        let mut pins = Pins::new();
        for Checkpoint { id, summary, last_event_id, head_hash, hash } in &self.checkpoints {
            let hash = hash.as_deref().map_or(StoredHash::Null, StoredHash::Text);
            let last_event_id = *last_event_id;
            pins.checkpoint(&CheckpointRow {
                id: *id,
                ts: TS,
                session: "s1",
                summary,
                last_event_id,
                head_hash,
                hash,
            });
        }
        pins
    }
}
