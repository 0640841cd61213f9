//! When the log is trimmed: soon after the start, and now and then while the server runs.
//!
//! What a trim does is `sqlite::trim`'s.

use super::Shared;
use super::writer::Message;
use crate::audit::Keep;
use crate::error::ToolError;
use crate::sqlite::ledger::Ledger;
use crate::sqlite::trim::{Trim, Trimmed};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// How soon after the start: a command that runs one tool has ended by then.
const FIRST: Duration = Duration::from_secs(1);
/// How often.
const EVERY: Duration = Duration::from_secs(600);
/// Between two parts of one trim, so that others get to write.
const PAUSE: Duration = Duration::from_millis(50);
/// How long it waits for another process's lock; the next look is soon enough.
const WAIT: Duration = Duration::from_millis(500);

/// What is to be trimmed.
#[derive(Clone, Debug)]
pub(super) struct TrimOrder {
    pub(super) keep: Keep,
    pub(super) database: PathBuf,
    pub(super) stopping: Arc<AtomicBool>,
}

impl TrimOrder {
    pub(super) fn run(&self, ledger: &mut Ledger, session: &str) -> Result<Option<Trimmed>, ToolError> {
        ledger.trim(&Trim {
            keep: self.keep,
            database: &self.database,
            session,
            now: jiff::Timestamp::now(),
            wait: WAIT,
            stop: &|| self.stopping.load(Ordering::Acquire),
        })
    }
}

/// The background task.
pub(super) async fn trim_now_and_then(shared: Arc<Shared>, order: TrimOrder) {
    tokio::time::sleep(FIRST).await;
    loop {
        while let Some(trimmed) = trim(&shared, &order).await {
            tracing::info!("{} rows of query_log are in `{}` now", trimmed.rows, trimmed.archive.display());
            tokio::time::sleep(PAUSE).await;
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// One part; none if there is nothing to do, or it could not be done.
async fn trim(shared: &Shared, order: &TrimOrder) -> Option<Trimmed> {
    let turn = Arc::clone(&shared.turn).lock_owned().await;
    let (reply, answer) = oneshot::channel();
    shared.writer.send(Message::Trim { order: order.clone(), turn, reply });
    match answer.await {
        Ok(Ok(trimmed)) => trimmed,
        Ok(Err(error)) => {
            tracing::warn!("{}; it is tried again in {} minutes", error.message, EVERY.as_secs() / 60);
            None
        }
        Err(_) => None,
    }
}
