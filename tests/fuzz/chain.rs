//! The chain: whole as it was made, and broken by any change of one field, at that event or the next.

use indelible::chain::{
    ChainVerifier, CheckpointRow, EventRow, GENESIS, Pins, StoredHash, Verdict, checkpoint_hash, event_hash,
};

#[derive(Clone, PartialEq)]
struct Event {
    id: i64,
    fields: [String; 6],
}

impl Event {
    fn row(&self) -> EventRow<'_> {
        let [ts, session, kind, content, prev_hash, hash] = &self.fields;
        EventRow { id: self.id, ts, session, kind, content, prev_hash, hash }
    }
}

fn verify(events: &[Event], pin: Option<(&str, &str)>) -> Verdict {
    let mut pins = Pins::new();
    if let Some((head_hash, own)) = pin {
        pins.checkpoint(&CheckpointRow {
            id: 1,
            ts: "t",
            session: "s",
            summary: "all",
            last_event_id: i64::try_from(events.len()).unwrap_or(i64::MAX),
            head_hash,
            hash: StoredHash::Text(own),
        });
    }
    let mut verifier = ChainVerifier::new(pins);
    events.iter().for_each(|event| verifier.event(&event.row()));
    verifier.finish()
}

pub(crate) fn run(data: &[u8]) {
    let [at, field, with, rest @ ..] = data else { return };
    let mut events: Vec<Event> = Vec::new();
    let mut previous = GENESIS.to_owned();
    for (id, content) in (1_i64..).zip(rest.split(|byte| *byte == 0xfe).take(20)) {
        let content = String::from_utf8_lossy(content).into_owned();
        let hash = event_hash(id, "t", "s", "note", &content, &previous);
        let fields = ["t", "s", "note", &content, &previous, &hash].map(str::to_owned);
        events.push(Event { id, fields });
        previous = hash;
    }
    let last = i64::try_from(events.len()).unwrap_or(i64::MAX);
    let own = checkpoint_hash(1, "t", "s", "all", last, &previous, GENESIS);
    let pin = Some((previous.as_str(), own.as_str()));
    let verdict = verify(&events, pin);
    assert!(verdict.ok && verdict.pinned_through == last, "{verdict}");

    let at = usize::from(*at) % events.len();
    let mut changed = events.clone();
    match usize::from(*field) % 9 {
        field @ 0..6 => {
            let text = &mut changed[at].fields[field];
            let place = (0..=text.len()).rev().find(|place| text.is_char_boundary(*place)).unwrap_or(0);
            text.insert(place, char::from(*with));
        }
        6 => changed[at].id ^= 1 + i64::from(*with),
        7 => drop(changed.remove(at)),
        _ => changed.insert(at, events[at].clone()),
    }
    if changed != events {
        let verdict = verify(&changed, pin);
        assert!(!verdict.ok, "a change at {at} went unseen: {verdict}");
    }
}
