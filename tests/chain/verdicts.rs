//! What the hashes are over, that no single change goes unseen, and where it is reported.
//!
//! Rows are built here; the store's tests cover how they are written and read.

use crate::stored::{Chain, Checkpoint, Event, TS};
use indelible::chain::{
    ChainVerifier, CheckpointRow, GENESIS, Pins, StoredHash, checkpoint_hash, event_hash,
};
use proptest::prelude::*;

/// Five events; checkpoints before the first, at 2 and at 4.
fn five() -> Chain {
    let mut chain = Chain::default();
    chain.checkpoint("empty");
    for (index, content) in ["one", "two", "three", "four", "five"].into_iter().enumerate() {
        chain.append("note", content);
        if index == 1 || index == 3 {
            chain.checkpoint(content);
        }
    }
    chain
}

#[track_caller]
fn check_broken(change: impl FnOnce(&mut Chain), at: Option<i64>, words: &str) {
    let mut chain = five();
    change(&mut chain);
    let verdict = chain.verify();
    assert_eq!((verdict.ok, verdict.break_at_id), (false, at), "{verdict:?}");
    let reason = verdict.reason.unwrap();
    assert!(reason.contains(words), "{reason}");
}

#[test]
fn the_hashes_are_those_of_python() {
    // hashlib.sha256(json.dumps([..], separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()
    let content = "line one\nline \"two\" \\ tab\t ž 🐎 \u{2028} / \u{7f} \u{8}\u{c}\r\u{0}\u{1f}";
    let first = event_hash(1, TS, "s-1", "décision", content, GENESIS);
    assert_eq!(first, "6cd08e3c91f7341a81c465425e4481d01b9d3f04115bba41181db14ac3fb4518");
    let second = event_hash(2, TS, "s-1", "note", "second", &first);
    assert_eq!(second, "7a91b6f7085055f9fc1ba217b1093cef363f31d20726768a04d4278a710b2567");
    let checkpoint = checkpoint_hash(1, TS, "s-1", "sum\nmary", 2, &second, GENESIS);
    assert_eq!(checkpoint, "0a078262e6af29209d85b1aa6b8ac72c520590ad9b3e1b2cbf6ede6e2ccbc54f");
}

#[test]
fn an_intact_chain_says_how_far_it_reaches() {
    let chain = five();
    let verdict = chain.verify();
    let head = chain.head().1;
    let json = format!(r#"{{"ok":true,"events":5,"head_id":5,"head_hash":"{head}","pinned_through":4}}"#);
    assert_eq!(verdict.to_json().to_string(), json);
    assert_eq!(verdict.to_string(), "chain ok (5 events)");
    let empty = Chain::default().verify();
    assert_eq!((empty.ok, empty.events, empty.head_id, empty.head_hash.as_str()), (true, 0, 0, GENESIS));
}

#[test]
fn a_broken_chain_names_the_event_and_the_reason() {
    let mut chain = five();
    chain.events[1].content = "TWO".to_owned();
    let verdict = chain.verify();
    let reason = "its fields do not match its hash: it was altered after it was written";
    assert_eq!(verdict.to_string(), format!("chain BROKEN at event 2: {reason}"));
    let json = verdict.to_json().to_string();
    assert!(json.starts_with(r#"{"ok":false,"events":5,"#), "{json}");
    assert!(
        json.ends_with(&format!(r#""pinned_through":0,"break_at_id":2,"reason":"{reason}"}}"#)),
        "{json}"
    );
}

#[test]
fn every_kind_of_damage_is_reported_where_it_is() {
    check_broken(|c| drop(c.events.remove(1)), Some(3), "event 2 is missing");
    check_broken(|c| drop(c.events.drain(0..2)), Some(3), "events 1 to 2 are missing");
    check_broken(|c| c.events[2].hash = "0".repeat(64), Some(3), "altered");
    check_broken(|c| c.events[0].prev_hash = "0".repeat(63), Some(1), "altered");
    check_broken(|c| c.events[3].id = 9, Some(9), "altered");
    check_broken(|c| c.events.insert(2, c.events[1].clone()), Some(2), "ids must rise");
    check_broken(|c| c.events[0].id = 0, Some(0), "ids must rise");
    check_broken(|c| c.events[0].content.push('!'), Some(1), "altered");
    // A forger who makes one event new and hashes it meets the next event.
    let forge = |c: &mut Chain| {
        c.events[2].content = "forged".to_owned();
        let event = c.events[2].clone();
        c.events[2].hash = event_hash(3, TS, "s1", "note", "forged", &event.prev_hash);
    };
    check_broken(forge, Some(4), "not the hash of event 3: that event was written anew");
}

#[test]
fn a_chain_written_anew_meets_its_checkpoints() {
    let forge_all = |c: &mut Chain| {
        c.events[0].content = "forged".to_owned();
        c.rehash(0);
    };
    check_broken(forge_all, Some(2), "checkpoint 2 names another hash for it");
    let remove_and_rehash = |c: &mut Chain| {
        c.events.remove(3);
        c.rehash(3);
    };
    check_broken(remove_and_rehash, Some(4), "checkpoint 3 names it, but it is missing");
    // Behind the last checkpoint there is nothing to hold it: pinned_through says so.
    let mut chain = five();
    chain.events.pop();
    let verdict = chain.verify();
    assert_eq!((verdict.ok, verdict.pinned_through, verdict.events), (true, 4, 4));
}

#[test]
fn a_cut_tail_is_noticed_through_the_checkpoint() {
    check_broken(|c| c.events.truncate(3), Some(4), "checkpoint 3 names event 4, but the newest event is 3");
    check_broken(|c| c.events.clear(), Some(1), "newest event is 0");
}

#[test]
fn checkpoints_are_held_to_their_own_hashes() {
    check_broken(|c| c.checkpoints[1].hash = None, None, "checkpoint 2 has no hash");
    check_broken(|c| c.checkpoints[1].summary.push('!'), None, "checkpoint 2 does not match its hash");
    check_broken(|c| c.checkpoints[2].last_event_id = 99, None, "checkpoint 3 does not match its hash");
    check_broken(|c| drop(c.checkpoints.remove(1)), None, "checkpoint 3 does not match its hash");
    check_broken(|c| c.checkpoints[0].id = 2, None, "checkpoint 2 does not match its hash");
    let two = |c: &mut Chain| {
        c.events[4].content = "5".to_owned();
        c.checkpoints[0].hash = None;
    };
    check_broken(two, Some(5), "altered after it was written; also checkpoint 1 has no hash");
    let names_nothing = |c: &mut Chain| {
        c.checkpoints.truncate(1);
        c.checkpoints[0].head_hash = "f".repeat(64);
        c.checkpoints[0].hash = Some(checkpoint_hash(1, TS, "s1", "empty", 0, &"f".repeat(64), GENESIS));
    };
    check_broken(names_nothing, None, "checkpoint 1 names event 0, which no chain has");
    let mut chain = five();
    chain.checkpoints[1].hash = None;
    let verdict = chain.verify();
    assert_eq!(verdict.pinned_through, 0, "a checkpoint behind a faulty one proves nothing");
    assert_eq!(verdict.to_string(), "chain BROKEN: checkpoint 2 has no hash");
    assert!(verdict.to_json().to_string().contains(r#""break_at_id":null"#));
}

#[test]
fn rows_that_cannot_be_read_are_faults() {
    let chain = five();
    let mut verifier = ChainVerifier::new(Pins::new());
    verifier.event(&chain.events[0].row());
    verifier.unreadable(2, "`content` is NULL");
    verifier.event(&chain.events[2].row());
    let verdict = verifier.finish();
    assert_eq!((verdict.events, verdict.head_id, verdict.break_at_id), (3, 3, Some(2)));
    assert_eq!(verdict.to_string(), "chain BROKEN at event 2: it cannot be read: `content` is NULL");
    let mut pins = Pins::new();
    pins.unreadable(1, "`summary` is a blob");
    let verdict = ChainVerifier::new(pins).finish();
    assert_eq!(verdict.reason.unwrap(), "checkpoint 1 cannot be read: `summary` is a blob");
}

#[test]
fn what_is_wrong_is_no_beginning_to_go_on_from() {
    let sound = |chain: &Chain| {
        let mut verifier = ChainVerifier::new(chain.pins());
        chain.events.iter().for_each(|event| verifier.event(&event.row()));
        verifier.sound()
    };
    let mut chain = five();
    assert_eq!(sound(&chain).unwrap().head_id, 5);
    chain.events.truncate(3);
    assert_eq!(sound(&chain), None, "a cut tail");
    let mut chain = five();
    chain.events[4].content.push('!');
    assert_eq!(sound(&chain), None, "an altered event");
    let mut chain = five();
    chain.checkpoints[2].hash = None;
    assert_eq!(sound(&chain), None, "an altered checkpoint");
    // A checkpoint that came while no event did is held against the event that it names.
    let mut chain = five();
    let sound = sound(&chain).unwrap();
    chain.checkpoint("again");
    assert!(ChainVerifier::after(&sound, chain.pins()).finish().ok);
    chain.checkpoints.pop();
    chain.checkpoint_of(5, &"1".repeat(64));
    let verdict = ChainVerifier::after(&sound, chain.pins()).finish();
    assert_eq!(verdict.break_at_id, Some(5), "{verdict:?}");
}

#[test]
fn checkpoints_without_the_hash_column_still_pin() {
    let chain = five();
    let pins = || {
        let mut pins = Pins::new();
        for Checkpoint { id, summary, last_event_id, head_hash, .. } in &chain.checkpoints {
            let (id, last_event_id, hash) = (*id, *last_event_id, StoredHash::NoColumn);
            pins.checkpoint(&CheckpointRow {
                id,
                ts: TS,
                session: "s1",
                summary,
                last_event_id,
                head_hash,
                hash,
            });
        }
        pins
    };
    let mut verifier = ChainVerifier::new(pins());
    chain.events.iter().for_each(|event| verifier.event(&event.row()));
    let verdict = verifier.finish();
    assert_eq!((verdict.ok, verdict.pinned_through), (true, 4));
    assert!(!ChainVerifier::new(pins()).finish().ok);
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(any::<String>(), 1..8)
}

/// One change to a stored chain and the events it may be reported at.
fn mutate(chain: &mut Chain, what: usize, at: usize, with: &str) -> Vec<i64> {
    let count = chain.events.len();
    let index = at % count;
    let id = index as i64 + 1;
    let event = &mut chain.events[index];
    match what {
        0 => event.content.push_str(with),
        1 => event.kind.push_str(with),
        2 => event.ts.insert_str(0, with),
        3 => event.session.push_str(with),
        4 => event.prev_hash.push_str(with),
        5 => event.hash.insert_str(0, with),
        6 => event.content.clear(),
        7 => {
            event.id += count as i64;
            let moved = chain.events.remove(index);
            chain.events.push(moved);
            // The gap it leaves is met first, unless it was the last one.
            return vec![id + 1, id + count as i64];
        }
        8 => {
            chain.events.remove(index);
            // Without a checkpoint behind it, the loss of the last one would leave no trace.
            return vec![id + 1, count as i64];
        }
        9 => {
            let other = (index + 1) % count;
            let (a, b) = (chain.events[index].clone(), chain.events[other].clone());
            (chain.events[index], chain.events[other]) =
                (Event { id: a.id, ..b.clone() }, Event { id: b.id, ..a });
            return vec![id.min(b.id)];
        }
        _ => {
            let forged = chain.events[index].clone();
            chain.events.insert(index, Event { content: with.to_owned(), ..forged });
            return vec![id];
        }
    }
    vec![id]
}

proptest! {
    #[test]
    fn any_single_change_is_reported_and_where(
        contents in texts(), what in 0usize..11, at in 0usize..8, with in "[a-z]{1,3}", pinned: bool,
    ) {
        let mut chain = Chain::of(&contents.iter().map(String::as_str).collect::<Vec<_>>());
        chain.checkpoint("all of it");
        if pinned {
            chain.checkpoint("again");
        }
        prop_assert!(chain.verify().ok);
        prop_assert_eq!(chain.verify().pinned_through, contents.len() as i64);
        let before = chain.clone();
        let places = mutate(&mut chain, what, at, &with);
        prop_assume!(chain != before);
        let verdict = chain.verify();
        prop_assert!(!verdict.ok);
        for pieces in 1..=contents.len() {
            prop_assert_eq!(&chain.verify_in_pieces(pieces), &verdict, "in pieces of {}", pieces);
        }
        let place = verdict.break_at_id.expect("an event is to blame");
        prop_assert!(places.contains(&place), "{places:?}: {verdict}");
    }

    #[test]
    fn a_walk_goes_on_where_an_earlier_one_ended(
        first in texts(), then in texts(), pinned_first: bool, pinned_between: bool, pinned_then: bool,
    ) {
        let mut chain = Chain::of(&first.iter().map(String::as_str).collect::<Vec<_>>());
        if pinned_first {
            chain.checkpoint("first");
        }
        let mut verifier = ChainVerifier::new(chain.pins());
        chain.events.iter().for_each(|event| verifier.event(&event.row()));
        let sound = verifier.sound().expect("nothing is wrong with it");
        if pinned_between {
            chain.checkpoint("between");
        }
        then.iter().for_each(|content| chain.append("note", content));
        if pinned_then {
            chain.checkpoint("then");
        }
        let mut on = ChainVerifier::after(&sound, chain.pins());
        chain.events[first.len()..].iter().for_each(|event| on.event(&event.row()));
        prop_assert_eq!(on.finish(), chain.verify());
        // What came since is not taken on trust.
        chain.events.last_mut().expect("there is one").content.push('!');
        let mut on = ChainVerifier::after(&sound, chain.pins());
        chain.events[first.len()..].iter().for_each(|event| on.event(&event.row()));
        prop_assert_eq!(on.finish(), chain.verify());
    }

    #[test]
    fn the_hashed_text_is_compact_json(ts: String, kind: String, content: String, id: i64) {
        use sha2::{Digest, Sha256};
        let json = serde_json::to_string(&(id, &ts, "s", &kind, &content, GENESIS)).unwrap();
        let expected: String = Sha256::digest(json).iter().map(|byte| format!("{byte:02x}")).collect();
        prop_assert_eq!(event_hash(id, &ts, "s", &kind, &content, GENESIS), expected);
    }
}
