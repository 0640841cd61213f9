//! A resume that goes on from what was verified before, on the connection that makes the server's own writes.
//!
//! On that connection `PRAGMA data_version` stays the same as long as no other connection of any process has
//! committed to the file. So if it is what it was before the chain was verified in full, the events up to there
//! are the ones that were verified: this connection only adds rows. What was added since is verified here, and
//! every checkpoint. Whatever is in doubt is no answer, and the caller verifies in full.
//!
//! It sees no change that goes past SQLite, to the bytes of the file. A full verification does.

use super::chain_view::{ReadFault, View, Walked};
use super::ledger::Ledger;
use super::one_moment::{data_version, run};
use super::readout::{Known, Pace, ResumeChoice, end, in_words, newest_since, resume_text};
use crate::chain::{ChainVerifier, Tally};
use crate::error::ToolError;
use rusqlite::{Connection, OptionalExtension};

/// More events than these since then are not verified here: appends wait meanwhile.
const MOST_NEW_EVENTS: u64 = 2000;

/// What was verified, and what proves that nobody else has written since.
#[derive(Clone, Debug)]
pub(super) struct Trust {
    version: i64,
    known: Known,
}

impl Ledger {
    /// The number that changes when another connection commits; none where it cannot be had.
    #[must_use]
    pub fn data_version(&self) -> Option<i64> {
        data_version(self.connection()).ok()
    }

    /// Forgets what was found: the next resume verifies in full.
    pub fn distrust(&mut self) {
        *self.trusted() = None;
    }

    /// Remembers what a full verification has found, if nobody else has written since `version` was asked for,
    /// which was before it began.
    pub fn trust(&mut self, version: i64, known: Known) {
        let same_file = self.opened().is_certainly_there();
        let connection = self.connection();
        // The verification read over another connection: its head must be ours, too.
        let stored = connection.prepare_cached("SELECT hash FROM memory_events WHERE id = ?1").and_then(
            |mut statement| {
                statement.query_row([known.sound.head_id], |row| row.get::<_, String>(0)).optional()
            },
        );
        let same_head = match stored {
            Ok(Some(hash)) => hash == known.sound.head_hash,
            Ok(None) => known.sound.events == 0,
            Err(_) => false,
        };
        let unchanged = self.data_version() == Some(version);
        let trusted = same_file && same_head && unchanged && self.is_wal();
        *self.trusted() = trusted.then_some(Trust { version, known });
    }

    /// The resume text, going on from what is known; none where that has to be verified in full.
    ///
    /// # Errors
    /// A cancelled call, the deadline.
    pub fn resume(&mut self, choice: &ResumeChoice, pace: &Pace<'_>) -> Result<Option<String>, ToolError> {
        let Some(trust) = self.trusted().take() else { return Ok(None) };
        let connection = self.connection();
        let gone_on = run(connection, "BEGIN")
            .map_err(ReadFault::from)
            .and_then(|()| go_on(connection, &trust, choice, pace));
        end(connection);
        match gone_on {
            Ok(Some((text, known))) => {
                *self.trusted() = Some(Trust { known, ..trust });
                Ok(Some(text))
            }
            // What is wrong, the full verification finds out.
            Ok(None) | Err(ReadFault::Sqlite(_)) => Ok(None),
            Err(fault) => {
                *self.trusted() = Some(trust);
                Err(in_words(fault))
            }
        }
    }
}

fn go_on(
    connection: &Connection,
    trust: &Trust,
    choice: &ResumeChoice,
    pace: &Pace<'_>,
) -> Result<Option<(String, Known)>, ReadFault> {
    let Known { sound, tally, has_hash } = &trust.known;
    if data_version(connection)? != trust.version {
        return Ok(None);
    }
    let view = View::of_known(connection, *has_hash, false)?;
    if view.last.saturating_sub(sound.head_id).unsigned_abs() > MOST_NEW_EVENTS && sound.events > 0 {
        return Ok(None);
    }
    let newest = view.newest_checkpoint()?;
    let since = newest_since(newest.as_ref());
    let tally = if since == tally.since() {
        tally.clone()
    } else if since >= sound.head_id {
        Tally::behind(since, &choice.exclude_kinds)
    } else {
        return Ok(None);
    };
    let mut walked = Walked { verifier: ChainVerifier::after(sound, view.pins(pace)?), tally };
    view.walk_on(&mut walked, sound.head_id, pace)?;
    let Some(known) = Known::of(&view, &walked) else { return Ok(None) };
    let Some(events) = walked.tally.without(&choice.exclude_kinds) else { return Ok(None) };
    let verdict = walked.verifier.finish();
    if !verdict.ok {
        return Ok(None);
    }
    Ok(Some((resume_text(&view, newest.as_ref(), events, &verdict, choice, pace)?, known)))
}
