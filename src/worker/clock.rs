//! How long a job's worker lives: until the job's deadline and a second more, or longer where a lock or a commit
//! takes its time.
//!
//! It kills nothing; `pool` asks it when to.

use std::time::Duration;
use tokio::time::Instant;

/// How long an interrupted statement may take to end before its worker is killed.
const KILL_GRACE: Duration = Duration::from_secs(1);

/// How long a commit may take that has been announced.
pub(super) const COMMIT_GRACE: Duration = Duration::from_secs(120);

/// When a worker is killed.
pub(super) struct Clock {
    /// When the worker is to be killed.
    pub(super) kill_at: Instant,
    busy_timeout: Duration,
    paused: Option<(Instant, Instant)>,
    /// Nobody wants the result any more.
    pub(super) cancelled: bool,
    /// A commit was announced.
    pub(super) committing: bool,
}

impl Clock {
    pub(super) fn new(timeout: Duration, busy_timeout: Duration) -> Self {
        let kill_at = Instant::now() + timeout + KILL_GRACE;
        Self { kill_at, busy_timeout, paused: None, cancelled: false, committing: false }
    }

    /// The job waits for somebody else; its time stands still for the busy timeout at most.
    pub(super) fn pause(&mut self) {
        if self.paused.is_none() && !self.committing && !self.cancelled {
            let now = Instant::now();
            self.paused = Some((now, self.kill_at));
            self.kill_at = self.kill_at.max(now + self.busy_timeout + KILL_GRACE);
        }
    }

    pub(super) fn resume(&mut self) {
        if let Some((since, kill_at)) = self.paused.take()
            && !self.committing
            && !self.cancelled
        {
            self.kill_at = kill_at + since.elapsed();
        }
    }

    pub(super) fn cancel(&mut self) {
        self.cancelled = true;
        if !self.committing {
            self.kill_at = self.kill_at.min(Instant::now() + KILL_GRACE);
        }
    }

    pub(super) fn commit(&mut self) {
        self.committing = true;
        self.kill_at = Instant::now() + COMMIT_GRACE;
    }
}
