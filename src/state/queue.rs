//! Queues of jobs: at least once, leased and fenced.
//!
//! ```text
//! ready --claim--> leased --ack--> gone
//!   ^                |  \--dead, or the last attempt failed--> dead (the queue `<queue>/dead`)
//!   '--retry, fail---'  (or the lease ran out)
//! ```
//!
//! A lease has a token, and everything that settles a job must show it. It holds until somebody else leases the job:
//! work that was done just after its lease ran out still counts. Attempts are counted when a job is leased, so that a
//! job that kills its workers is buried, too. Among jobs that are ready the highest priority comes first, and of these
//! the one sent first.

use super::Outcome;
use crate::error::{ErrorCode, ToolError};
use async_trait::async_trait;
use tokio::sync::watch;

/// The longest name of a queue, in bytes.
pub const LONGEST_NAME: usize = 128;
/// The largest body, in bytes of its compact JSON.
pub const LARGEST_BODY: usize = 256 << 10;
/// The most jobs in one claim.
pub const MOST_JOBS: u64 = 10;
/// A job that was leased so often is not leased again.
pub const MOST_ATTEMPTS: u32 = 5;
/// The longest lease, heartbeats included, in milliseconds: 12 hours.
pub const LONGEST_LEASE: i64 = 12 * 3_600_000;
/// The longest wait for a job, in milliseconds: 20 seconds.
pub const LONGEST_WAIT: i64 = 20_000;
/// How long a `dedupe_key` is remembered at least, in milliseconds: five minutes.
pub const DEDUPE_WINDOW: i64 = 300_000;
/// The longest pause before the next attempt, in milliseconds: 15 minutes.
pub const LONGEST_BACKOFF: i64 = 900_000;
/// What the name of a queue's dead letters ends in.
pub const DEAD: &str = "/dead";
/// What stands among the errors of a job for a lease that ran out.
pub const EXPIRED: &str = "lease_expired";

/// A job to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// The queue.
    pub queue: String,
    /// Compact JSON.
    pub body: String,
    /// When it can be leased first, in milliseconds since 1970.
    pub visible_at: i64,
    /// 0 to 9; 9 comes first.
    pub priority: u8,
    /// Jobs of one key within the window are one job.
    pub dedupe_key: Option<String>,
}

/// What became of a job that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The job's id.
    pub id: String,
    /// Whether it is the job that another call sent under the same key.
    pub deduplicated: bool,
}

/// A job that was leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    /// Its id.
    pub id: String,
    /// Compact JSON.
    pub body: String,
    /// How often it has been leased, this time included.
    pub attempts: u32,
    /// 0 to 9.
    pub priority: u8,
    /// What settles it.
    pub token: String,
    /// When the lease runs out, in milliseconds since 1970.
    pub expires_at: i64,
    /// What was said of earlier attempts, and [`EXPIRED`] for those that nobody settled; oldest first.
    pub errors: Vec<String>,
}

/// How a job is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settle {
    /// Done: it goes.
    Ack,
    /// Again, after so many milliseconds. In a queue of dead letters: back to where it came from, as new.
    Retry(i64),
    /// It failed: again after a pause that doubles, or dead after the last attempt.
    Fail,
    /// It is dead.
    Dead,
    /// It takes longer: the lease begins anew.
    Heartbeat,
}

/// What a job is after it was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Gone.
    Acked,
    /// Waiting for somebody.
    Ready,
    /// Among the dead letters.
    Dead,
    /// Still leased.
    Leased,
}

impl State {
    /// Its name: `acked`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Acked => "acked",
            Self::Ready => "ready",
            Self::Dead => "dead",
            Self::Leased => "leased",
        }
    }
}

/// What settling came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// What the job is now.
    pub state: State,
    /// When it can be leased next, or its lease runs out, in milliseconds since 1970.
    pub at: Option<i64>,
    /// Whether the lease had run out, and nobody had leased the job since.
    pub late: bool,
}

/// A queue primitive: any number of queues, by name; a queue is there once it is named.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Sends a job.
    async fn send(&self, job: NewJob) -> Outcome<Sent>;

    /// Leases up to `most` jobs that are ready, for `lease` milliseconds. May find none.
    async fn claim(&self, queue: String, most: u64, lease: i64) -> Outcome<Vec<Leased>>;

    /// Settles a job; `error` is kept with it.
    ///
    /// # Errors
    /// `LEASE_LOST` where the token is not the job's, or the job is gone.
    async fn settle(
        &self,
        queue: String,
        id: String,
        token: String,
        how: Settle,
        error: Option<String>,
    ) -> Outcome<Settled>;

    /// When a job of the queue will be ready next, in milliseconds since 1970; none if there is no job.
    async fn next_visible(&self, queue: String) -> Outcome<Option<i64>>;

    /// Tells of every job that was sent or settled through this server from now on.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// The pause before the next attempt, in milliseconds: 1 s, 2 s, 4 s ..., and up to half as much again by `jitter`
/// (0 to 1), so that jobs that failed together do not come back together.
#[must_use]
pub fn backoff(attempts: u32, jitter: f64) -> i64 {
    let doubled = 1_000_i64.saturating_mul(1 << attempts.saturating_sub(1).min(20)).min(LONGEST_BACKOFF);
    let more = (doubled as f64 * 0.5 * jitter.clamp(0.0, 1.0)) as i64;
    (doubled + more).min(LONGEST_BACKOFF)
}

/// A name of a queue. Jobs cannot be sent to dead letters.
///
/// # Errors
/// `INVALID_ARGUMENTS` with the rule.
pub fn check_queue(name: &str, sending: bool) -> Outcome<()> {
    // The dead letters of a queue are there whatever its name.
    let own = if sending { name } else { name.strip_suffix(DEAD).unwrap_or(name) };
    if name.is_empty() || own.len() > LONGEST_NAME || name.chars().any(char::is_control) {
        return Err(ToolError::arguments(format!(
            "`queue` must have 1 to {LONGEST_NAME} bytes and no control characters"
        )));
    }
    if sending && name.ends_with(DEAD) {
        return Err(ToolError::arguments(
            "`queue` must not end in `/dead`: those are dead letters, which only a failed job becomes",
        ));
    }
    Ok(())
}

/// The error for a token that is not the job's any more.
#[must_use]
pub fn lease_lost(id: &str) -> ToolError {
    ToolError::new(
        ErrorCode::LeaseLost,
        format!(
            "the lease of job `{}` is lost: it was leased to somebody else, is settled, or the token is another's; drop the work and call queue_receive for the next",
            crate::render::one_line(id, 40)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_end_at_a_quarter_of_an_hour() {
        let pauses: Vec<i64> = (1..6).map(|attempts| backoff(attempts, 0.0)).collect();
        assert_eq!(pauses, [1_000, 2_000, 4_000, 8_000, 16_000]);
        assert_eq!(backoff(1, 1.0), 1_500);
        assert_eq!(backoff(u32::MAX, 1.0), LONGEST_BACKOFF);
    }

    #[test]
    fn a_queue_has_a_name_and_nobody_sends_to_the_dead() {
        for (name, sending, good) in [
            ("jobs", true, true),
            ("jobs/dead", false, true),
            ("jobs/dead", true, false),
            ("", false, false),
            ("a\nb", true, false),
            (&"q".repeat(LONGEST_NAME), true, true),
            (&"q".repeat(LONGEST_NAME + 1), false, false),
            (&format!("{}/dead", "q".repeat(LONGEST_NAME)), false, true),
            (&format!("{}/dead", "q".repeat(LONGEST_NAME + 1)), false, false),
        ] {
            assert_eq!(check_queue(name, sending).is_ok(), good, "{name:?} {sending}");
        }
    }
}
