//! The server's side of its workers: two that read, one that writes, each started when first needed.
//!
//! It gives a job to a free worker, keeps its time, passes cancellation on, and replaces a worker that
//! overran or died. It does not know what the jobs mean.

use super::child::{Worker, encoded, receive};
use super::clock::Clock;
use super::narrowed::Narrowed;
use super::nursery::Nursery;
use super::protocol::{Answer, FromWorker, Job, Order, Setup, ToWorker, Work};
use super::unsent::Unsent;
use crate::error::ErrorCode;
use crate::policy::Narrowing;
use crate::shares::{Owner, Shares, Taken};
use crate::sqlite::diagnose::io_hint;
use crate::sqlite::fault::Fault;
use crate::sqlite::watch::Stop;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// Workers that read. Two, because their heap limits together with the writer's stay under 300 MB.
pub const READERS: usize = 2;

/// How long a job reads before another worker is got ready for the next one.
const LONG_READ: Duration = Duration::from_millis(50);

/// How long more than its own time a job waits for its turn where others' jobs may be ahead, so that it still gets it
/// behind one that runs until it is stopped.
const ONE_AHEAD: Duration = Duration::from_secs(2);

/// How long the kernel may take to end workers that were killed.
const KILL_WAIT: Duration = Duration::from_millis(100);

/// How long a worker may take to open the file.
const START_GRACE: Duration = Duration::from_secs(30);

/// Why a job has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobError {
    /// The worker said so.
    Fault(Fault),
    /// The worker was killed because it did not stop; whether a change was committed is for the
    /// caller to find out.
    Killed(Stop),
    /// The worker died or could not be started; likewise.
    Lost(String),
}

impl From<Fault> for JobError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// What a job needs from the server while it runs.
pub trait Attend: Send + Sync {
    /// Writes the audit rows gathered so far, as far as that can be done at once.
    fn write_log(&self) -> impl Future<Output = ()> + Send;
}

/// The workers of one database.
pub struct Pool {
    pub(super) path: PathBuf,
    pub(super) busy_timeout: Duration,
    immutable: bool,
    has_own_tables: bool,
    narrowed: Narrowed,
    numbers: AtomicU64,
    places: Semaphore,
    /// Jobs that run at once, over all databases that share a yard; none for one database alone.
    room: Option<Shares>,
    /// How long more than its own time a job waits for its turn, where there is a room.
    patience: Duration,
    idle: StdMutex<Vec<Worker>>,
    writer: Mutex<Option<Worker>>,
    pub(super) closing: CancellationToken,
    pub(super) nursery: Arc<Nursery>,
}

/// What the workers of many databases share: a place for temporary files, a bound on how many run, and what the user's
/// policy file takes away.
pub struct Yard {
    /// How long to wait for another process's lock.
    pub busy_timeout: Duration,
    narrowing: Narrowing,
    room: Shares,
    patience: Duration,
    pub(super) nursery: Arc<Nursery>,
}

impl Yard {
    /// A yard in which at most `jobs` run at once. A worker is `program`, or this program where it is left out.
    #[must_use]
    pub fn new(jobs: usize, busy_timeout: Duration, narrowing: Narrowing, program: Option<PathBuf>) -> Self {
        let (room, nursery) = (Shares::new(jobs), Arc::new(Nursery::of(program)));
        Self { busy_timeout, narrowing, room, patience: ONE_AHEAD, nursery }
    }

    /// The workers of one more database, in which nothing is the server's.
    #[must_use]
    pub fn pool(&self, path: PathBuf) -> Pool {
        let pool = Pool {
            has_own_tables: false,
            room: Some(self.room.clone()),
            patience: self.patience,
            nursery: Arc::clone(&self.nursery),
            ..Pool::new(path, self.busy_timeout, false)
        };
        pool.narrowed.set(self.narrowing.clone());
        pool
    }
}

/// The terms of one job.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The policy's id.
    pub policy: &'static str,
    /// How long it may run, from the moment a worker takes it. Where databases share a yard, it waits for that moment as
    /// long, and [`ONE_AHEAD`] more.
    pub timeout: Duration,
    /// Cancelled when the client no longer wants it.
    pub cancel: CancellationToken,
    /// In whose share of the yard it runs.
    pub owner: Owner,
}

impl Pool {
    /// A pool without workers yet; `immutable` says that nobody writes the file.
    #[must_use]
    pub fn new(path: PathBuf, busy_timeout: Duration, immutable: bool) -> Self {
        Self {
            path,
            busy_timeout,
            immutable,
            has_own_tables: true,
            narrowed: Narrowed::default(),
            numbers: AtomicU64::new(1),
            places: Semaphore::new(READERS),
            room: None,
            patience: Duration::ZERO,
            idle: StdMutex::default(),
            writer: Mutex::new(None),
            closing: CancellationToken::new(),
            nursery: Arc::new(Nursery::of(None)),
        }
    }

    /// Waits for a turn at the file, then until another job may run.
    async fn admitted<T>(
        &self,
        turn: impl Future<Output = T>,
        terms: &Terms,
    ) -> Result<(T, Option<Taken>), JobError> {
        let admitted = async {
            let turn = turn.await;
            match &self.room {
                Some(room) => (turn, Some(room.take(&terms.owner, 1).await)),
                None => (turn, None),
            }
        };
        tokio::select! {
            biased;
            () = terms.cancel.cancelled() => Err(Fault::Stopped(Stop::Cancelled).into()),
            () = self.closing.cancelled() => Err(Fault::Stopped(Stop::Cancelled).into()),
            admitted = admitted => Ok(admitted),
            () = sleep(terms.timeout + self.patience), if self.room.is_some() => {
                Err(no_room(terms.timeout + self.patience).into())
            }
        }
    }

    /// From now on every job runs under this narrowing. Workers under another one take no further job.
    pub fn renarrow(&self, narrowing: Narrowing) {
        self.narrowed.set(narrowing);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The worker, if it runs under the narrowing of now and did not die.
    fn usable(&self, worker: Worker) -> Option<Worker> {
        if worker.narrowing_changes == self.narrowed.changes() { worker.if_alive() } else { None }
    }

    /// Runs a job that reads.
    ///
    /// # Errors
    /// The worker's fault, a kill, a lost worker.
    pub async fn read(&self, work: Work, terms: &Terms, attend: &impl Attend) -> Result<Answer, JobError> {
        let (place, _room) = self.admitted(self.places.acquire(), terms).await?;
        let _place = place.map_err(|_| JobError::Fault(Fault::Stopped(Stop::Cancelled)))?;
        let free = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut worker = match free.and_then(|worker| self.usable(worker)) {
            Some(worker) => worker,
            None => self.start(false).await?,
        };
        let result = {
            let mut driven = pin!(self.drive(&mut worker, work, terms, attend));
            let spare = async {
                sleep(LONG_READ).await;
                self.get_ready().await;
                std::future::pending().await
            };
            tokio::select! {
                biased;
                result = &mut driven => result,
                never = spare => never,
            }
        };
        if !matches!(result, Err(JobError::Killed(_) | JobError::Lost(_))) {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        }
        result
    }

    /// Starts a worker for the next call that reads, if none waits and there is a place: that call shall not wait
    /// longer for its worker than for its answer because another one takes long. Where databases share a yard, room is
    /// for calls that are there.
    async fn get_ready(&self) {
        if self.room.is_some() {
            return;
        }
        let Ok(_place) = self.places.try_acquire() else { return };
        let none_waits = self.idle.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if none_waits && let Ok(worker) = self.start(false).await {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        }
    }

    /// Runs a job that writes. The caller holds the turn-lock.
    ///
    /// # Errors
    /// The worker's fault, a kill, a lost worker.
    pub async fn write(&self, work: Work, terms: &Terms, attend: &impl Attend) -> Result<Answer, JobError> {
        let (mut slot, _room) = self.admitted(self.writer.lock(), terms).await?;
        let mut worker = match slot.take().and_then(|worker| self.usable(worker)) {
            Some(worker) => worker,
            None => self.start(true).await?,
        };
        let result = self.drive(&mut worker, work, terms, attend).await;
        if matches!(result, Err(JobError::Killed(_) | JobError::Lost(_))) {
            // Whoever asks next whether something was committed must not be too early.
            let _ = tokio::time::timeout(KILL_WAIT, worker.child.kill()).await;
        } else {
            *slot = Some(worker);
        }
        result
    }

    /// Stops what runs and ends the workers that wait. A commit that was announced is let through.
    pub async fn close(&self) {
        self.closing.cancel();
        let mut workers: Vec<Worker> =
            std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        if let Ok(mut writer) = self.writer.try_lock() {
            workers.extend(writer.take());
        }
        // Waited for, so that the server's own connection is the last one and leaves no -wal behind.
        let ends = workers.into_iter().map(|mut worker| async move { worker.child.kill().await });
        let _ = tokio::time::timeout(KILL_WAIT, futures::future::join_all(ends)).await;
    }

    async fn start(&self, writes: bool) -> Result<Worker, JobError> {
        let mut worker = self.nursery.spawn().map_err(|error| {
            JobError::Lost(format!("a worker cannot be started: {error}{}", io_hint(&error)))
        })?;
        let told = self.narrowed.tell();
        worker.narrowing_changes = told.changes;
        let setup = Setup {
            path: self.path.clone(),
            writes,
            immutable: self.immutable,
            has_own_tables: self.has_own_tables,
            busy_timeout_ms: u64::try_from(self.busy_timeout.as_millis()).unwrap_or(u64::MAX),
            tells_notes: told.tells_notes,
            narrowing: told.narrowing,
        };
        let order = Order::Jobs(setup);
        match tokio::time::timeout(START_GRACE, worker.order(&order)).await {
            Ok(Ok(Some(FromWorker::Ready(Ok(confined))))) => {
                self.nursery.note(&confined);
                Ok(worker)
            }
            Ok(Ok(Some(FromWorker::Ready(Err(Fault::Error(error)))))) => {
                let words = format!("a worker cannot open the database: {}", error.message);
                Err(JobError::Fault(Fault::error(error.code, words)))
            }
            Ok(Ok(Some(FromWorker::Ready(Err(fault))))) => Err(JobError::Fault(fault)),
            Ok(Ok(_)) => Err(JobError::Lost("a worker ended while it started".to_owned())),
            Ok(Err(error)) => Err(JobError::Lost(format!("a worker ended while it started: {error}"))),
            Err(_) => Err(JobError::Lost("a worker did not start in time".to_owned())),
        }
    }

    async fn drive(
        &self,
        worker: &mut Worker,
        work: Work,
        terms: &Terms,
        attend: &impl Attend,
    ) -> Result<Answer, JobError> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let job = Job {
            number,
            policy: terms.policy.to_owned(),
            timeout_ms: u64::try_from(terms.timeout.as_millis()).unwrap_or(u64::MAX),
            work,
        };
        let mut clock = Clock::new(terms.timeout, self.busy_timeout);
        let message = encoded(&ToWorker::Job(Box::new(job)))
            .map_err(|error| JobError::Fault(Fault::error(ErrorCode::TooBig, error.to_string())))?;
        let lost = |error: io::Error| JobError::Lost(error.to_string());
        // A worker that does not read (stopped from outside, say) holds up whatever does not fit its pipe:
        // sending, too, ends at the deadline.
        let mut unsent = Unsent::new(message);
        loop {
            tokio::select! {
                biased;
                message = receive::<FromWorker>(&mut worker.output, &mut worker.inbox) => {
                    match message.map_err(lost)? {
                        Some(FromWorker::Done { job, result }) if job == number => {
                            return result.map_err(JobError::Fault);
                        }
                        Some(FromWorker::NeedsLog { job }) if job == number => {
                            clock.pause();
                            attend.write_log().await;
                            clock.resume();
                            unsent.push(encoded(&ToWorker::LogWritten { job }).map_err(lost)?);
                        }
                        Some(FromWorker::Notes(notes)) => notes.iter().for_each(|note| tracing::warn!("{note}")),
                        Some(FromWorker::Waiting { job }) if job == number => clock.pause(),
                        Some(FromWorker::Started { job }) if job == number => clock.resume(),
                        Some(FromWorker::Committing { job }) if job == number => clock.commit(),
                        Some(_) => {}
                        None => return Err(JobError::Lost("the worker process died".to_owned())),
                    }
                },
                sent = unsent.send(&mut worker.input), if !unsent.is_empty() => sent.map_err(lost)?,
                () = terms.cancel.cancelled(), if !clock.cancelled => {
                    clock.cancel();
                    unsent.push(encoded(&ToWorker::Interrupt { job: number }).map_err(lost)?);
                }
                () = self.closing.cancelled(), if !clock.committing => {
                    return Err(JobError::Killed(Stop::Cancelled));
                }
                () = sleep_until(clock.kill_at) => {
                    return Err(JobError::Killed(if clock.cancelled { Stop::Cancelled } else { Stop::Deadline }));
                }
            }
        }
    }
}

/// A job that waited too long for its turn.
fn no_room(waited: Duration) -> Fault {
    let words = format!(
        "the call waited {} s for others that run SQL, over all databases and in this one, and nothing was done; \
         try again, with fewer calls at once",
        waited.as_secs_f64()
    );
    Fault::error(ErrorCode::Busy, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoLog;

    impl Attend for NoLog {
        async fn write_log(&self) {}
    }

    fn work() -> Work {
        let caps = crate::render::Caps { max_result_bytes: 1, max_cell_chars: 1 };
        Work::Batch(crate::sqlite::batch::Batch { statements: Vec::new(), max_rows: 1, caps, stamp: 1 })
    }

    #[tokio::test]
    async fn a_job_that_gets_no_room_in_time_is_told_so_and_starts_no_worker() {
        // A worker that cannot be started would be another error.
        let program = Some(PathBuf::from("/nowhere"));
        let yard =
            Yard { patience: Duration::ZERO, ..Yard::new(1, Duration::ZERO, Narrowing::default(), program) };
        let held = yard.room.try_take(&Owner::default(), 1);
        let pool = yard.pool(PathBuf::from("/nowhere/a.db"));
        let (timeout, cancel) = (Duration::from_millis(20), CancellationToken::new());
        let terms = Terms { policy: "database_read", timeout, cancel, owner: Owner::new("team", "") };
        for result in [pool.read(work(), &terms, &NoLog).await, pool.write(work(), &terms, &NoLog).await] {
            let Err(JobError::Fault(Fault::Error(error))) = result else { panic!("{result:?}") };
            assert_eq!(error.code, ErrorCode::Busy);
            assert!(error.message.starts_with("the call waited 0.02 s"), "{error:?}");
        }
        drop(held);
        let result = pool.read(work(), &terms, &NoLog).await;
        assert!(matches!(result, Err(JobError::Lost(_))), "{result:?}");
    }
}
