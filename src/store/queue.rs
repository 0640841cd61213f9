//! What waits to be written, in order.
//!
//! It writes nothing; `writer.rs` takes from it.

use crate::audit::AuditRow;
use crate::error::ToolError;
use crate::sqlite::ledger::Appended;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Audit rows that cannot be written are kept up to this many and about these bytes; then the oldest
/// go to stderr.
const MAX_ROWS: usize = 50_000;
const MAX_BYTES: usize = 64 << 20;

/// Makes the audit row of an append, once its id is known.
pub type AuditMaker = Box<dyn FnOnce(&Appended) -> AuditRow + Send>;

/// One thing to be written.
pub enum Job {
    /// An audit row.
    Audit(AuditRow),
    /// An event or a checkpoint.
    Append(Append),
}

/// An event or a checkpoint, with who waits for it.
pub struct Append {
    /// What is appended.
    pub text: Text,
    /// Its audit row.
    pub audit: AuditMaker,
    /// Told when it is committed, or why it is not. Closed: nobody waits any more.
    pub reply: oneshot::Sender<Result<Appended, ToolError>>,
}

/// What is appended.
#[derive(Debug)]
pub enum Text {
    /// A row of `memory_events`.
    Event {
        /// `note`, `decision`, ...
        kind: String,
        /// The text.
        content: String,
    },
    /// A row of `memory_checkpoints`.
    Checkpoint {
        /// The text.
        summary: String,
    },
}

/// The queue.
#[derive(Debug, Default)]
pub struct Queue {
    jobs: Mutex<Jobs>,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    audit_rows: usize,
    audit_bytes: usize,
    appends: usize,
}

impl Queue {
    /// Puts a job at the end.
    pub fn push(&self, job: Job) {
        let mut jobs = self.lock();
        jobs.count(&job);
        jobs.waiting.push_back(job);
        for row in jobs.overflow() {
            report(&row);
        }
    }

    /// Takes everything.
    #[must_use]
    pub fn take(&self) -> VecDeque<Job> {
        std::mem::take(&mut *self.lock()).waiting
    }

    /// Takes the audit rows that stand before the first append that somebody waits for, and says whether there
    /// are more behind it.
    #[must_use]
    pub fn take_rows(&self) -> (VecDeque<Job>, bool) {
        let mut jobs = self.lock();
        let is_free = |job: &&Job| match job {
            Job::Audit(_) => true,
            Job::Append(append) => append.reply.is_closed(),
        };
        let free = jobs.waiting.iter().take_while(is_free).count();
        let behind = jobs.waiting.split_off(free);
        let rows = std::mem::take(&mut *jobs).waiting;
        for job in behind {
            jobs.count(&job);
            jobs.waiting.push_back(job);
        }
        (rows, jobs.audit_rows > 0)
    }

    /// Puts audit rows back in front of what has come since.
    pub fn put_back(&self, rows: Vec<AuditRow>) {
        let mut jobs = self.lock();
        for row in rows.into_iter().rev() {
            let job = Job::Audit(row);
            jobs.count(&job);
            jobs.waiting.push_front(job);
        }
        for row in jobs.overflow() {
            report(&row);
        }
    }

    /// Whether audit rows wait.
    #[must_use]
    pub fn has_audit(&self) -> bool {
        self.lock().audit_rows > 0
    }

    /// How many appends wait.
    #[must_use]
    pub fn appends(&self) -> usize {
        self.lock().appends
    }

    /// The audit rows that wait.
    #[must_use]
    pub fn rows(&self) -> Vec<AuditRow> {
        let row = |job: &Job| match job {
            Job::Audit(row) => Some(row.clone()),
            Job::Append(_) => None,
        };
        self.lock().waiting.iter().filter_map(row).collect()
    }

    /// Sends the audit rows that wait to stderr and forgets them.
    pub fn report_unwritten(&self) {
        for job in self.take() {
            if let Job::Audit(row) = job {
                report(&row);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Jobs> {
        // Nothing in here panics half way; a poisoned queue is as good as any.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Jobs {
    fn count(&mut self, job: &Job) {
        match job {
            Job::Audit(row) => {
                self.audit_rows += 1;
                self.audit_bytes += size(row);
            }
            Job::Append(_) => self.appends += 1,
        }
    }

    /// The oldest rows, until the rest is within bounds.
    fn overflow(&mut self) -> Vec<AuditRow> {
        let mut dropped = Vec::new();
        while self.audit_rows > MAX_ROWS || self.audit_bytes > MAX_BYTES {
            let Some(at) = self.waiting.iter().position(|job| matches!(job, Job::Audit(_))) else { break };
            if let Some(Job::Audit(row)) = self.waiting.remove(at) {
                self.audit_rows -= 1;
                self.audit_bytes -= size(&row);
                dropped.push(row);
            }
        }
        dropped
    }
}

impl std::fmt::Debug for Jobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jobs").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

fn size(row: &AuditRow) -> usize {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    size_of::<AuditRow>() + row.tool.len() + length(&row.query) + length(&row.error) + length(&row.detail)
}

/// A row that the log will not hold, as one line on stderr.
pub fn report(row: &AuditRow) {
    let json = serde_json::to_string(row).unwrap_or_else(|error| error.to_string());
    tracing::error!("not written to query_log: {json}");
}

/// A row whose commit was not over when the server had to end, the same way.
pub fn report_doubtful(row: &AuditRow) {
    let json = serde_json::to_string(row).unwrap_or_else(|error| error.to_string());
    tracing::error!("perhaps not written to query_log, since the disk had not synced it in time: {json}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: usize, bytes: usize) -> Job {
        Job::Audit(AuditRow {
            tool: number.to_string(),
            query: Some("x".repeat(bytes)),
            ..AuditRow::default()
        })
    }

    #[test]
    fn rows_beyond_the_bounds_leave_the_queue_at_its_old_end() {
        // As many as may wait and seven more; as many bytes as may wait and some more.
        for (count, bytes, least) in [(MAX_ROWS + 7, 0, MAX_ROWS), (70, 1 << 20, 63)] {
            let queue = Queue::default();
            (0..count).for_each(|number| queue.push(row(number, bytes)));
            let left: Vec<String> = queue
                .take()
                .into_iter()
                .filter_map(|job| if let Job::Audit(row) = job { Some(row.tool) } else { None })
                .collect();
            let expected: Vec<String> = (count - least..count).map(|number| number.to_string()).collect();
            assert_eq!(left, expected);
        }
    }
}
