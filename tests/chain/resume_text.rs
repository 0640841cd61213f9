//! The text an agent reads first, exact and within its caps.
//!
//! Which events are chosen for it is the store's; they are simply handed over here.

use crate::stored::{Chain, TS};
use indelible::chain::resume::{ResumeCheckpoint, ResumeEvent, compose};
use indelible::render::{Caps, Cell};
use proptest::prelude::*;

const CAPS: Caps = Caps { max_result_bytes: 32768, max_cell_chars: 2000 };

fn resume(chain: &Chain, since: usize, max_events: usize, caps: Caps) -> String {
    let checkpoint = chain.checkpoints.last().map(|c| ResumeCheckpoint {
        id: c.id,
        ts: TS,
        last_event_id: c.last_event_id,
        summary: &c.summary,
    });
    let all = &chain.events[since..];
    let events: Vec<ResumeEvent<'_>> = all[all.len().saturating_sub(max_events)..]
        .iter()
        .map(|event| ResumeEvent {
            id: Cell::Integer(event.id),
            ts: Cell::Text(event.ts.as_bytes()),
            kind: Cell::Text(event.kind.as_bytes()),
            content: Cell::Text(event.content.as_bytes()),
        })
        .collect();
    compose(checkpoint, &events, all.len() as u64, &chain.verify(), caps)
}

#[test]
fn the_resume_text_is_exact() {
    let mut chain = Chain::default();
    assert_eq!(resume(&chain, 0, 50, CAPS), "# no checkpoint yet\n\n# 0 events | chain ok (0 events)");
    chain.append("decision", "chose sqlite");
    chain.append("note", "loaded data");
    let rows = format!("id,ts,kind,content\n1,{TS},decision,chose sqlite\n2,{TS},note,loaded data");
    assert_eq!(
        resume(&chain, 0, 50, CAPS),
        format!("# no checkpoint yet\n\n# 2 events | chain ok (2 events)\n{rows}")
    );
    chain.checkpoint("two events in");
    let head = format!("# checkpoint 1 | {TS} | at event 2\ntwo events in\n\n");
    assert_eq!(
        resume(&chain, 2, 50, CAPS),
        format!("{head}# 0 events since checkpoint | chain ok (2 events)")
    );
    chain.append("note", "after checkpoint");
    assert_eq!(
        resume(&chain, 2, 50, CAPS),
        format!(
            "{head}# 1 events since checkpoint | chain ok (3 events)\nid,ts,kind,content\n3,{TS},note,after checkpoint"
        )
    );
    chain.events[1].content = "LOADED".to_owned();
    assert!(resume(&chain, 2, 50, CAPS).contains("# 1 events since checkpoint | chain BROKEN at event 2: "));
}

#[test]
fn resume_drops_the_oldest_and_never_the_newest() {
    let mut chain = Chain::of(&["curated one"]);
    (0..80).for_each(|index| chain.append("prompt", &format!("raw prompt {index} {}", "x".repeat(300))));
    chain.append("decision", "curated two");
    let text = resume(&chain, 0, 50, Caps { max_result_bytes: 4096, ..CAPS });
    assert!(text.len() <= 4596 && text.ends_with(",decision,curated two"), "{text}");
    let shown = text.matches("raw prompt").count() + 1;
    let head = format!(
        "# 82 events | chain ok (82 events); {} older events not shown; cut at 4096 bytes\n",
        82 - shown
    );
    assert!(text.contains(&head) && !text.contains("curated one"), "{text}");
    let by_count = resume(&chain, 0, 2, CAPS);
    assert!(
        by_count.contains("# 82 events | chain ok (82 events); 80 older events not shown\n"),
        "{by_count}"
    );
}

#[test]
fn a_newest_event_too_wide_is_shown_in_part() {
    let chain = Chain::of(&["old", &"é".repeat(5000)]);
    let text = resume(&chain, 0, 50, Caps { max_result_bytes: 1000, max_cell_chars: 100_000 });
    assert!(text.len() <= 1000 && text.contains(&format!("\n2,{TS},note,éééé")), "{text}");
    assert!(text.contains("; 1 older events not shown; cut at 1000 bytes\n"), "{text}");
    let cells = resume(&chain, 0, 50, Caps { max_cell_chars: 30, ..CAPS });
    assert!(cells.contains("chain ok (2 events); 1 cells cut to 30 chars\n"), "{cells}");
    assert!(cells.ends_with("...[+4970 chars]"), "{cells}");
}

#[test]
fn a_summary_cannot_pass_for_the_servers_own_lines() {
    let mut chain = Chain::default();
    chain.checkpoint("# 9 events\n#two\r# three\u{2028}# four\n\n#\n a # b");
    let text = resume(&chain, 0, 50, CAPS);
    let summary = " # 9 events\n #two\r # three\u{2028} # four\n\n #\n a # b";
    let expected = format!(
        "# checkpoint 1 | {TS} | at event 0\n{summary}\n\n# 0 events since checkpoint | chain ok (0 events)"
    );
    assert_eq!(text, expected);
}

#[test]
fn a_summary_leaves_room_for_the_newest_event() {
    let mut chain = Chain::default();
    chain.checkpoint(&"š".repeat(50_000));
    chain.append("note", &"n".repeat(900));
    let text = resume(&chain, 0, 50, Caps { max_result_bytes: 4000, ..CAPS });
    assert!(text.len() <= 4500 && text.ends_with(&"n".repeat(900)), "{}", text.len());
    let shown = text.matches('š').count();
    let line = format!("\n# summary cut at 4000 bytes, {} chars not shown\n\n# 1 events", 50_000 - shown);
    assert!(shown > 1400 && text.contains(&line), "{shown}");
}

proptest! {
    #[test]
    fn the_resume_text_stays_within_its_cap(
        summary in "[#a\n\ré]{0,400}", contents in prop::collection::vec("[#a,\n\"é]{0,200}", 0..6), bytes in 0usize..1500,
    ) {
        let mut chain = Chain::default();
        chain.checkpoint(&summary);
        contents.iter().for_each(|content| chain.append("note", content));
        let text = resume(&chain, 0, 50, Caps { max_result_bytes: bytes, ..CAPS });
        prop_assert!(text.len() <= bytes + 500, "{}", text.len());
        if bytes >= 600 && !contents.is_empty() {
            let newest = format!("\n{},", contents.len());
            prop_assert!(text.contains(&newest));
        }
    }
}
