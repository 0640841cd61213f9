//! Verifications that later ones may go on from.
//!
//! What makes that safe stands in `sqlite/trusted`; here is only the order in which the reading connections and the
//! writing one are asked.

use super::reader::{Reader, Reading, ResumeChoice};
use super::writer::Message;
use super::{Store, thread_is_gone};
use crate::chain::Verdict;
use crate::error::ToolError;
use crate::sqlite::readout::Known;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long the writing thread may take before the chain is verified in full instead: an append in it may wait for
/// another process's lock, and no reading waits for that.
const PATIENCE: Duration = Duration::from_millis(20);

impl Store {
    /// Checks the whole chain, always from its first event, and remembers how far it is sound.
    ///
    /// # Errors
    /// As [`Reader::verify`].
    pub async fn verify(&self, reader: &Reader, reading: Reading) -> Result<Verdict, ToolError> {
        let version = self.version().await;
        let (verdict, known) = reader.verify_known(reading).await?;
        self.trust(version, known);
        Ok(verdict)
    }

    /// The resume text. The chain is verified from where nobody but this server's writing connection has
    /// committed since it was verified last; from its first event where that is not certain.
    ///
    /// # Errors
    /// As [`Reader::verify`].
    pub async fn resume(
        &self,
        reader: &Reader,
        choice: ResumeChoice,
        reading: Reading,
    ) -> Result<String, ToolError> {
        let (reply, answer) = oneshot::channel();
        let (wanted, terms) = (choice.clone(), reading.clone());
        self.shared.writer.send(Message::Resume { choice: wanted, reading: terms, reply });
        let version = match timeout(PATIENCE, answer).await {
            Ok(answer) => match answer.unwrap_or_else(|_| Err(thread_is_gone()))? {
                Some(text) => return Ok(text),
                None => self.version().await,
            },
            Err(_) => None,
        };
        let (text, known) = reader.resume_known(choice, reading).await?;
        self.trust(version, known);
        Ok(text)
    }

    async fn version(&self) -> Option<i64> {
        let (reply, answer) = oneshot::channel();
        self.shared.writer.send(Message::Version { reply });
        timeout(PATIENCE, answer).await.ok()?.ok().flatten()
    }

    /// `version` is from before the reading began.
    fn trust(&self, version: Option<i64>, known: Option<Known>) {
        self.shared.writer.send(match (version, known) {
            (Some(version), Some(known)) => Message::Trust { version, known: Box::new(known) },
            // A chain that is broken, or nobody could say since when: what was known before is not known any more.
            _ => Message::Distrust,
        });
    }
}
