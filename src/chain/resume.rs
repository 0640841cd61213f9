//! The text an agent reads first: the newest checkpoint, the events since, and how the chain stands.
//!
//! Events are taken newest first, so that what does not fit is always the oldest and a caller stops reading
//! there. It does not choose events or filter kinds; the reader of the store does.

use super::Verdict;
use crate::render::trailer::{boundary_before, is_control_or_break};
use crate::render::{Caps, Cell, CsvSink, Flow, cap_text, one_line};

/// Bytes set aside for the lines that are the server's own; what they take beyond is within the 500 bytes that
/// every result may have over its cap.
const OWN_LINES: usize = 200;
/// The most of the verdict that is shown, in bytes.
const VERDICT_BYTES: usize = 240;

/// The newest checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeCheckpoint<'a> {
    /// Its id.
    pub id: i64,
    /// When it was written.
    pub ts: &'a str,
    /// The newest event then.
    pub last_event_id: i64,
    /// What the agent wrote.
    pub summary: &'a str,
}

/// An event as values of whatever class the row holds: a row from outside may hold anything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResumeEvent<'a> {
    /// Its id.
    pub id: Cell<'a>,
    /// When it was written.
    pub ts: Cell<'a>,
    /// Its kind.
    pub kind: Cell<'a>,
    /// Its text.
    pub content: Cell<'a>,
}

/// Puts the resume text together.
#[derive(Debug)]
pub struct ResumeText<'a> {
    checkpoint: Option<ResumeCheckpoint<'a>>,
    caps: Caps,
    budget: usize,
    sink: CsvSink,
    /// Where each event's row ends in the sink, newest first.
    ends: Vec<usize>,
}

impl<'a> ResumeText<'a> {
    /// Starts with the newest checkpoint, if there is one.
    #[must_use]
    pub fn new(checkpoint: Option<ResumeCheckpoint<'a>>, caps: Caps) -> Self {
        let bytes = caps.max_result_bytes;
        let budget = bytes - OWN_LINES.min(bytes / 2);
        // A summary may take what events leave it, but a quarter is always theirs.
        let summary = checkpoint.map_or(0, |checkpoint| indent(checkpoint.summary, budget).0.len());
        let room = budget - summary.min(budget - budget / 4);
        let sink = CsvSink::without_header(Caps { max_result_bytes: room, ..caps });
        Self { checkpoint, caps, budget, sink, ends: Vec::new() }
    }

    /// Takes the next older event; [`Flow::Full`] says that neither it nor any before it will be shown. The
    /// newest one is shown at least in part.
    pub fn older(&mut self, event: &ResumeEvent<'_>) -> Flow {
        let rows = self.sink.rows();
        self.sink.begin_row();
        [event.id, event.ts, event.kind, event.content].into_iter().for_each(|cell| self.sink.cell(cell));
        let flow = self.sink.end_row();
        if self.sink.rows() > rows {
            self.ends.push(self.sink.written());
        }
        flow
    }

    /// The text. `events` counts what there is to show since the checkpoint, or at all without one: the
    /// events taken and the older ones of the same choice.
    #[must_use]
    pub fn finish(self, events: u64, verdict: &Verdict) -> String {
        let rendered = self.sink.into_rows();
        let mut text = String::with_capacity(self.caps.max_result_bytes.min(rendered.text.len() + 4096));
        match self.checkpoint {
            None => text.push_str("# no checkpoint yet\n"),
            Some(checkpoint) => {
                let ResumeCheckpoint { id, ts, last_event_id, summary } = checkpoint;
                let ts = cap_text(one_line(ts, 40), 40).0;
                text.push_str(&format!("# checkpoint {id} | {ts} | at event {last_event_id}\n"));
                let (summary, left_out) = indent(summary, self.budget.saturating_sub(rendered.text.len()));
                text.push_str(&summary);
                text.push('\n');
                if left_out > 0 {
                    let bytes = self.caps.max_result_bytes;
                    text.push_str(&format!("# summary cut at {bytes} bytes, {left_out} chars not shown\n"));
                }
            }
        }
        let since = if self.checkpoint.is_some() { " since checkpoint" } else { "" };
        let verdict = cap_text(verdict.to_string(), VERDICT_BYTES).0;
        text.push_str(&format!("\n# {events} events{since} | {verdict}"));
        let older = events.saturating_sub(rendered.rows);
        if older > 0 {
            text.push_str(&format!("; {older} older events not shown"));
        }
        if rendered.cut_cells > 0 {
            let chars = self.caps.max_cell_chars;
            text.push_str(&format!("; {} cells cut to {chars} chars", rendered.cut_cells));
        }
        if rendered.bytes_cut {
            text.push_str(&format!("; cut at {} bytes", self.caps.max_result_bytes));
        }
        if !self.ends.is_empty() {
            text.push_str("\nid,ts,kind,content\n");
            let starts = std::iter::once(0).chain(self.ends.iter().copied());
            let rows: Vec<(usize, usize)> = starts.zip(self.ends.iter().copied()).collect();
            for (start, end) in rows.into_iter().rev() {
                text.push_str(rendered.text.get(start..end).unwrap_or_default());
            }
            // Rows end in a line feed; the text does not.
            text.pop();
        }
        text
    }
}

/// The whole text from events that are at hand already, the newest last.
#[must_use]
pub fn compose(
    checkpoint: Option<ResumeCheckpoint<'_>>,
    newest_last: &[ResumeEvent<'_>],
    events: u64,
    verdict: &Verdict,
    caps: Caps,
) -> String {
    let mut resume = ResumeText::new(checkpoint, caps);
    for event in newest_last.iter().rev() {
        if resume.older(event) == Flow::Full {
            break;
        }
    }
    resume.finish(events, verdict)
}

/// A summary of at most `limit` bytes in which no line starts with `#`, and the characters left out.
///
/// Such lines get a space in front, so that they cannot pass for the server's own; a line starts behind
/// whatever some reader may break lines at.
fn indent(summary: &str, limit: usize) -> (String, usize) {
    // No more than `limit` bytes are looked at, whatever the length.
    let head = summary.get(..boundary_before(summary, limit)).unwrap_or_default();
    let mut text = String::with_capacity(head.len());
    let mut at_start = true;
    let mut used = head.len();
    for (at, character) in head.char_indices() {
        let marked = at_start && character == '#';
        if text.len() + usize::from(marked) + character.len_utf8() > limit {
            used = at;
            break;
        }
        if marked {
            text.push(' ');
        }
        text.push(character);
        // Any control character but a tab: more than needed, and none of them is missed.
        at_start = character != '\t' && is_control_or_break(character);
    }
    let left_out = summary.get(used..).map_or(0, |rest| rest.chars().count());
    (text, left_out)
}
