//! Changes that several calls want at the same time: whoever has the turn takes along what waits, and one commit
//! is for all of it.
//!
//! It keeps the order in which calls came. What a change may do is the worker's to say, alone or in a group.

use super::fate::{self, Fate};
use super::{Call, Core, LogKeeper, words};
use crate::error::{ErrorCode, ToolError};
use crate::generated::PolicyId;
use crate::sqlite::fault::Fault;
use crate::sqlite::params::Params;
use crate::sqlite::watch::Stop;
use crate::sqlite::write::Changed;
use crate::store::TurnGuard;
use crate::store::crowd::Crowd;
use crate::worker::pool::{JobError, Terms};
use crate::worker::protocol::{Answer, Grouped, Work};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The most changes, and about the most bytes, in one group.
const MOST_CHANGES: usize = 32;
const MOST_BYTES: usize = 1 << 20;

/// For the words about a change that ended before anybody could say what became of it.
pub(super) const CHANGE: fate::Change =
    fate::Change { process: "the worker", done: "the change is in the database" };

/// Changes that wait for the turn.
#[derive(Default)]
pub(crate) struct Together {
    waiting: Mutex<VecDeque<Waiting>>,
    crowd: Crowd,
}

struct Waiting {
    /// The call's number.
    number: u64,
    policy: PolicyId,
    change: Grouped,
    since: Instant,
    terms: Terms,
    reply: oneshot::Sender<Settled>,
}

/// What became of a change.
enum Settled {
    Done(Result<Changed, Fault>),
    /// It was not run, and is to be run alone.
    Alone,
    /// The worker died over it, or the disk failed at its commit.
    InDoubt(JobError),
    /// The same over it or another one of its group.
    InDoubtTogether(JobError),
}

/// Whether a change is small enough to be kept twice while it waits.
pub(super) fn fits(sql: &str, params: &Params) -> bool {
    sql.len() + params.bytes() <= MOST_BYTES
}

impl Together {
    fn push(&self, waiting: Waiting) {
        self.lock().push_back(waiting);
    }

    /// Takes a change back; false when it is being run already.
    fn withdraw(&self, number: u64) -> bool {
        let mut waiting = self.lock();
        let before = waiting.len();
        waiting.retain(|waiting| waiting.number != number);
        waiting.len() < before
    }

    /// The changes that have waited longest and run under one policy.
    fn take(&self) -> Vec<Waiting> {
        let mut waiting = self.lock();
        waiting.retain(|waiting| !waiting.reply.is_closed());
        let Some(policy) = waiting.front().map(|first| first.policy) else { return Vec::new() };
        let mut bytes = 0;
        let joins = |waiting: &&Waiting| {
            bytes += waiting.change.sql.len() + waiting.change.params.bytes();
            waiting.policy == policy && bytes <= MOST_BYTES
        };
        let count = waiting.iter().take(MOST_CHANGES).take_while(joins).count();
        // The first one goes in any case.
        waiting.drain(..count.max(1)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        // Nothing in here panics half way.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call<'_> {
    /// Runs a change, together with those of other calls that wait. None: nothing was run, and it is to be run
    /// alone.
    ///
    /// # Errors
    /// As the worker says.
    pub(super) async fn change_together(&self, change: Grouped) -> Result<Option<Changed>, ToolError> {
        let store = self.store()?;
        let (reply, mut settled) = oneshot::channel();
        let (number, policy, terms) = (self.number, self.policy, self.terms());
        self.core.together.push(Waiting { number, policy, change, since: Instant::now(), terms, reply });
        let mut waits = true;
        loop {
            let turn = tokio::select! {
                biased;
                // Taken along by another.
                settled = &mut settled => return self.settled(settled.ok()).await,
                () = self.cancel.cancelled(), if waits => {
                    if self.core.together.withdraw(number) {
                        return Err(words::cancelled());
                    }
                    waits = false;
                    continue;
                }
                turn = store.turn() => turn,
            };
            if let Err(gone) = self.core.check_file() {
                // Whoever had the turn before may have run it; then the answer is there.
                if self.core.together.withdraw(number) {
                    return Err(gone);
                }
                continue;
            }
            let together = &self.core.together;
            together.crowd.gather(|| together.lock().len()).await;
            store.flush_audit(Duration::ZERO, Some(&turn)).await;
            self.core.run_waiting(&turn).await;
        }
    }

    async fn settled(&self, settled: Option<Settled>) -> Result<Option<Changed>, ToolError> {
        match settled {
            Some(Settled::Done(Ok(changed))) => Ok(Some(changed)),
            Some(Settled::Done(Err(fault))) => Err(self.explain(fault.into())),
            Some(Settled::Alone) => Ok(None),
            Some(Settled::InDoubt(error)) => Err(self.fated(self.fate().await, CHANGE, error)),
            // Whoever had it is gone, as calls are when the server ends.
            None => Err(self.fated(self.fate().await, CHANGE, JobError::Killed(Stop::Cancelled))),
            // Run once more by itself, so that only the culprit meets its fate.
            Some(Settled::InDoubtTogether(error)) => match self.fate().await {
                Fate::Undone => Ok(None),
                fate => Err(self.fated(fate, CHANGE, error)),
            },
        }
    }
}

impl Core {
    /// Runs what waits, as one group, and tells those who wait.
    async fn run_waiting(&self, turn: &TurnGuard) {
        let mut waiting = self.together.take();
        for waiting in &mut waiting {
            let waited = i64::try_from(waiting.since.elapsed().as_millis()).unwrap_or(i64::MAX);
            waiting.change.audit.duration_ms += waited;
        }
        let attend = LogKeeper { core: self, turn: Some(turn) };
        if waiting.len() == 1
            && let Some(Waiting { change, terms, reply, .. }) = waiting.pop()
        {
            let settled = match self.pool.write(change.alone(), &terms, &attend).await {
                Ok(Answer::Changed(changed)) => Settled::Done(Ok(changed)),
                Ok(_) => Settled::Done(Err(other_answer())),
                Err(JobError::Fault(fault)) if !matches!(fault, Fault::InDoubt(_)) => {
                    Settled::Done(Err(fault))
                }
                Err(error) => Settled::InDoubt(error),
            };
            // Whoever has gone does not want to know.
            let _ = reply.send(settled);
            return;
        }
        let Some(first) = waiting.first() else { return };
        // One call's cancellation is not the others'.
        let terms = Terms { cancel: CancellationToken::new(), ..first.terms.clone() };
        let (changes, replies): (Vec<Grouped>, Vec<oneshot::Sender<Settled>>) =
            waiting.into_iter().map(|waiting| (waiting.change, waiting.reply)).unzip();
        match self.pool.write(Work::Group(changes), &terms, &attend).await {
            Ok(Answer::Group(outcomes)) if outcomes.len() == replies.len() => {
                for (reply, outcome) in replies.into_iter().zip(outcomes) {
                    let _ = reply.send(outcome.map_or(Settled::Alone, Settled::Done));
                }
            }
            Ok(_) => tell(replies, || Settled::Done(Err(other_answer()))),
            Err(JobError::Fault(fault)) if !matches!(fault, Fault::InDoubt(_)) => {
                tell(replies, || Settled::Done(Err(fault.clone())));
            }
            Err(error) => tell(replies, || Settled::InDoubtTogether(error.clone())),
        }
    }
}

fn tell(replies: Vec<oneshot::Sender<Settled>>, settled: impl Fn() -> Settled) {
    for reply in replies {
        let _ = reply.send(settled());
    }
}

fn other_answer() -> Fault {
    let error = super::unexpected_answer();
    Fault::error(ErrorCode::SqlError, error.message)
}
