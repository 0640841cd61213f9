//! Asking a person before a destructive call, under `--confirm destructive`: when, what they read, and what
//! their answer means for the call.
//!
//! How a question reaches a person is the confirmer's to know. Nothing here holds the turn while a person
//! thinks; callers give it back before they ask.

use super::words::cancelled;
use super::{Call, Core, Reply};
use crate::config::Confirm;
use crate::confirm::{Confirmer, Question, Said};
use crate::error::{ErrorCode, ToolError};
use crate::generated::ACTION_WORDS;
use crate::render::{cap_text, hex};
use crate::sqlite::restore::SnapshotEntry;
use crate::sqlite::toll::{TableToll, Toll};
use crate::surface::ActiveTool;
use crate::worker::protocol::Work;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often one call asks: the counts may change while a person thinks.
pub const MOST_QUESTIONS: u32 = 3;

/// Bytes of the agent's statement, parameters and reason that a person is shown.
const MAX_STATEMENT: usize = 4000;
const MAX_PARAMS: usize = 1000;
const MAX_REASON: usize = 1000;

/// What a question was answered with.
#[derive(Debug)]
pub enum Consent {
    /// Go on: the answer holds for this question's subject and for one time.
    Given,
    /// The call ends with this reply; it is made again with the answer.
    Pending(Reply),
}

/// A call's way to a person.
#[derive(Default)]
pub(super) struct Person {
    confirmer: Option<Arc<dyn Confirmer>>,
    /// Questions that this call has put.
    asked: AtomicU32,
}

impl Core {
    /// Whether a person must agree before this tool changes anything.
    #[must_use]
    pub fn must_ask(&self, tool: &ActiveTool) -> bool {
        self.settings.confirm == Confirm::Destructive
            && (tool.policy.policy().snapshots_first || tool.spec.annotations.destructive)
    }
}

impl Call<'_> {
    /// The same with somebody who can ask a person.
    #[must_use]
    pub fn with_confirmer(mut self, confirmer: Option<Arc<dyn Confirmer>>) -> Self {
        self.person.confirmer = confirmer;
        self
    }

    /// Whether a person must agree before this call changes anything.
    #[must_use]
    pub fn must_ask(&self) -> bool {
        self.surface.tool(self.name).is_some_and(|tool| self.core.must_ask(tool))
    }

    /// Whether the call came with the person's consent to this question. It is used up by asking.
    ///
    /// # Errors
    /// The call came with another answer to it.
    pub fn has_consent(&self, question: &Question) -> Result<bool, ToolError> {
        match self.person.confirmer.as_ref().and_then(|confirmer| confirmer.at_hand(question)) {
            Some(said) => self.heard(said).map(|()| true),
            None => Ok(false),
        }
    }

    /// Puts a question to a person and waits; the caller must not hold the turn.
    ///
    /// # Errors
    /// The person did not agree or could not be asked, the call was cancelled, or it has asked too often.
    pub async fn ask(&self, question: Question) -> Result<Consent, ToolError> {
        let Some(confirmer) = &self.person.confirmer else {
            return Err(self.not_asked("nobody can be asked here"));
        };
        let before =
            self.person.asked.fetch_add(1, Ordering::Relaxed).saturating_add(confirmer.asked_before());
        if before >= MOST_QUESTIONS {
            return Err(ToolError::new(
                ErrorCode::Busy,
                format!(
                    "the person was asked {before} times, and each time what the call takes had changed meanwhile; nothing was run"
                ),
            ));
        }
        let said = confirmer.ask(&question).await;
        if self.cancel.is_cancelled() {
            self.note("confirmed", "cancelled");
            return Err(cancelled());
        }
        if said == Said::Later {
            self.note("confirmed", "asked");
            let words = "a person must agree first; call again with their answer";
            return Ok(Consent::Pending(Reply { question: Some(question), ..Reply::text(words, None) }));
        }
        self.heard(said).map(|()| Consent::Given)
    }

    /// No change that a person must agree to goes to a worker without what they agreed to.
    pub(super) fn check_agreed(&self, work: &Work) -> Result<(), ToolError> {
        if self.must_ask() && matches!(work, Work::Change { agreed: None, .. }) {
            let words =
                "nobody was asked before the change, so it was not run; this is a fault in the server";
            return Err(ToolError::new(ErrorCode::Declined, words));
        }
        Ok(())
    }

    /// What an answer means.
    fn heard(&self, said: Said) -> Result<(), ToolError> {
        let (noted, words) = match said {
            Said::Accepted => ("accepted", None),
            Said::Declined => (
                "declined",
                Some(
                    "the person was asked and declined, so nothing was run; do not repeat the call, ask them what they want",
                ),
            ),
            Said::Cancelled => (
                "cancelled",
                Some(
                    "the person closed the question without an answer, which declines the call; nothing was run",
                ),
            ),
            Said::Expired | Said::Later => (
                "expired",
                Some(
                    "the person gave no answer in time, which declines the call; nothing was run; call again when they are there",
                ),
            ),
            Said::Unsupported(why) => return Err(self.not_asked(&why)),
        };
        self.note("confirmed", noted);
        words.map_or(Ok(()), |words| Err(ToolError::new(ErrorCode::Declined, words)))
    }

    /// The question about a statement that takes this much.
    #[must_use]
    pub fn question(&self, statement: Statement<'_>, toll: &Toll) -> Question {
        let params = statement.params.map(Value::to_string).unwrap_or_default();
        let reason = statement.reason.unwrap_or_default();
        let subject = self.subject(&[statement.sql, &params, reason, &toll.terms()]);
        Question { text: self.question_text(statement, toll), subject }
    }

    /// The question about restoring a snapshot; the list's entry where it has one of that name.
    #[must_use]
    pub fn restore_question(&self, name: &str, reason: &str, entry: Option<&SnapshotEntry>) -> Question {
        let about = entry.map(|entry| format!("{entry:?}")).unwrap_or_default();
        let mut text = format!(
            "An agent wants to restore a snapshot of {} with {}:\n\n{}\n",
            plain(&self.core.settings.db.display().to_string(), 500),
            self.name,
            framed(name, MAX_REASON)
        );
        match entry {
            Some(entry) => text.push_str(&format!(
                "\nIt was made {} ({}), has {} bytes, and is {}.\n",
                plain(&entry.time, 100),
                plain(&entry.kind, 100),
                entry.bytes,
                plain(&entry.verdict.words(), 500)
            )),
            None => text.push_str("\nThe folder of snapshots has none of that name; it may be a path.\n"),
        }
        text.push_str(&format!("\nReason, in the agent's words:\n{}\n", framed(reason, MAX_REASON)));
        text.push_str(
            "\nTables, views, indexes and triggers become what they were then; what came later is gone from them. \
             The memory and the log stay.\nA snapshot of the whole database is made first.",
        );
        Question { text, subject: self.subject(&[name, reason, &about]) }
    }

    /// A digest of what an answer holds for.
    fn subject(&self, parts: &[&str]) -> String {
        let mut digest = Sha256::new();
        for part in [self.core.session.as_str(), self.name].iter().chain(parts) {
            // With the length in front, no two lists of parts give the same bytes.
            digest.update(part.len().to_le_bytes());
            digest.update(part.as_bytes());
        }
        hex(&digest.finalize())
    }

    fn question_text(&self, statement: Statement<'_>, toll: &Toll) -> String {
        let mut text = format!(
            "An agent wants to run this with {} on {}:\n\n{}\n",
            self.name,
            plain(&self.core.settings.db.display().to_string(), 500),
            framed(statement.sql, MAX_STATEMENT)
        );
        if let Some(params) = statement.params.filter(|params| !params.is_null()) {
            text.push_str(&format!("\nParameters:\n{}\n", framed(&params.to_string(), MAX_PARAMS)));
        }
        if let Some(reason) = statement.reason {
            text.push_str(&format!("\nReason, in the agent's words:\n{}\n", framed(reason, MAX_REASON)));
        }
        text.push_str("\nWhat it takes, counted in a trial that was undone:\n");
        text.push_str(&toll_text(toll));
        text.push_str(match (self.policy.policy().snapshots_first, self.core.settings.snapshots) {
            (false, _) => "\nNo snapshot is made first.",
            (true, 0) => "\nNo snapshot is made first: they are turned off.",
            (true, _) => "\nA snapshot of the whole database is made first.",
        });
        text
    }

    fn not_asked(&self, why: &str) -> ToolError {
        self.note("confirmed", "unsupported");
        ToolError::new(
            ErrorCode::Declined,
            format!(
                "the server runs with --confirm destructive, and a person must agree before {} runs, but could not be asked: {why}; nothing was run",
                self.name
            ),
        )
    }
}

/// What an agent wants to run, and why.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// The SQL.
    pub sql: &'a str,
    /// Its parameters, as given.
    pub params: Option<&'a Value>,
    /// The agent's reason, where the tool asks for one.
    pub reason: Option<&'a str>,
}

fn toll_text(toll: &Toll) -> String {
    let mut lines = Vec::new();
    if let Some((kind, object)) = &toll.structural {
        let words = ACTION_WORDS.iter().find(|words| words.kind == *kind);
        let label = words.map_or("change of the schema", |words| words.label);
        lines.push(format!("- {label} {}", plain(object, 200)).trim_end().to_owned());
    }
    lines.extend(toll.tables.iter().map(table_line));
    if toll.elsewhere > 0 {
        lines.push(format!("- {} changed in WITHOUT ROWID tables", rows(toll.elsewhere)));
    }
    if lines.is_empty() {
        lines.push("- no rows".to_owned());
    }
    lines.push(String::new());
    lines.join("\n")
}

fn table_line(table: &TableToll) -> String {
    let parts = [("removed", table.removed), ("changed", table.changed), ("added", table.added)];
    let mut said: Vec<String> = parts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{} {what}", rows(count)))
        .collect();
    if said.is_empty() {
        said.push("no rows removed or changed".to_owned());
    }
    let of = table.rows.map(|count| format!(" (it has {})", rows(count))).unwrap_or_default();
    format!("- {}: {}{of}", plain(&table.name, 200), said.join(", "))
}

fn rows(count: u64) -> String {
    if count == 1 { "1 row".to_owned() } else { format!("{count} rows") }
}

/// The agent's text with a bar before each line, so that none of it can pass for the server's words.
fn framed(text: &str, max_bytes: usize) -> String {
    let (short, cut) = cap_text(text.trim(), max_bytes);
    let mut framed = String::new();
    for line in short.lines() {
        framed.push_str("  | ");
        line.chars().for_each(|character| push_visible(&mut framed, character));
        framed.push('\n');
    }
    if cut {
        framed.push_str(&format!("  (cut here; it has {} bytes)\n", text.len()));
    }
    framed.truncate(framed.trim_end().len());
    framed
}

/// A name or path on one line.
fn plain(text: &str, max_bytes: usize) -> String {
    let (short, cut) = cap_text(text, max_bytes);
    let mut line = String::new();
    short.chars().for_each(|character| push_visible(&mut line, character));
    if cut {
        line.push_str("...");
    }
    line
}

/// What does not show, or turns the direction of what does, is written as its code.
fn push_visible(line: &mut String, character: char) {
    let hidden = character.is_control() && character != '\t'
        || matches!(character, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    if hidden { line.extend(character.escape_unicode()) } else { line.push(character) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::ActionKind;

    #[test]
    fn a_toll_is_said_table_by_table() {
        let table = |name: &str, rows, removed, changed, added| TableToll {
            name: name.to_owned(),
            rows,
            removed,
            changed,
            added,
        };
        let rows = [
            (Toll::default(), "- no rows\n"),
            (
                Toll {
                    tables: vec![table("notes", Some(3), 1, 0, 0), table("tags", None, 2, 1, 4)],
                    ..Toll::default()
                },
                "- notes: 1 row removed (it has 3 rows)\n- tags: 2 rows removed, 1 row changed, 4 rows added\n",
            ),
            (
                Toll {
                    structural: Some((ActionKind::DropTable, "notes".to_owned())),
                    tables: vec![table("notes", Some(3), 3, 0, 0)],
                    elsewhere: 0,
                },
                "- DROP TABLE notes\n- notes: 3 rows removed (it has 3 rows)\n",
            ),
            (Toll { elsewhere: 7, ..Toll::default() }, "- 7 rows changed in WITHOUT ROWID tables\n"),
        ];
        for (toll, expected) in rows {
            assert_eq!(toll_text(&toll), expected);
        }
    }

    #[test]
    fn an_agent_s_words_cannot_pass_for_the_server_s() {
        let rows = [
            ("DELETE FROM t", "  | DELETE FROM t"),
            ("a\n\nWhat it takes:\n- t: no rows", "  | a\n  | \n  | What it takes:\n  | - t: no rows"),
            ("a\r- t\u{2028}- b\u{202e}c", "  | a\\u{d}- t\\u{2028}- b\\u{202e}c"),
            ("a\tb", "  | a\tb"),
        ];
        for (text, expected) in rows {
            assert_eq!(framed(text, 1000), expected);
        }
        assert_eq!(
            framed(&"x".repeat(12), 10),
            format!("  | {}\n  (cut here; it has 12 bytes)", "x".repeat(10))
        );
    }
}
