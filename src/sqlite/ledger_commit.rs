//! The end of a batch of the server's own: its commit, and what is true of one that ends with an error.
//!
//! It writes nothing that is not in the batch already.

use super::fault;
use super::identity::Opened;
use super::ledger::{Batch, LedgerError, Reach, batch_error, run};
use crate::error::{ErrorCode, ToolError};
use rusqlite::OptionalExtension;

impl Batch<'_> {
    /// Makes everything in the batch last.
    ///
    /// # Errors
    /// The file is gone, or SQLite's; then nothing of it was written, but for [`Reach::Nowhere`].
    pub fn commit(mut self) -> Result<(), LedgerError> {
        if let Some(Err(error)) = self.opened.map(Opened::check) {
            return Err(LedgerError { reach: Reach::Batch, error });
        }
        run(self.connection, "COMMIT").map_err(|error| self.uncommitted(&error))?;
        self.open = false;
        Ok(())
    }

    /// In rollback mode the removal of the journal is the commit, and the sync behind it may fail.
    fn uncommitted(&self, error: &rusqlite::Error) -> LedgerError {
        let undone = batch_error("nothing was written", error);
        if !fault::is_of_the_disk(error) {
            return undone;
        }
        match self.stands() {
            Ok(false) => undone,
            Ok(true) => {
                let words = format!("{}: it is written, do not repeat it", fault::COMMITTED_ALL_THE_SAME);
                LedgerError { reach: Reach::Nowhere, error: ToolError::new(ErrorCode::SqlError, words) }
            }
            // A log row that is written twice is better than one that is not written.
            Err(_) => {
                let words = "the disk reports an error at the commit, and the file cannot be read now to see what became of it: look whether it is written before you repeat it";
                LedgerError { reach: Reach::Batch, error: ToolError::new(ErrorCode::SqlError, words) }
            }
        }
    }

    /// Whether the newest log row is there. No other process writes rows of this session, and whoever of this server
    /// does has the turn.
    fn stands(&self) -> rusqlite::Result<bool> {
        let Some((id, session)) = &self.row else { return Ok(false) };
        if !self.connection.is_autocommit() {
            run(self.connection, "ROLLBACK")?;
        }
        let mut statement = self.connection.prepare_cached("SELECT session FROM query_log WHERE id = ?1")?;
        let found: Option<String> = statement.query_row([id], |row| row.get(0)).optional()?;
        Ok(found.as_deref() == Some(session))
    }
}
