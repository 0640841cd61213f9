//! The server's side of its workers: two that read, one that writes, each started when first needed.
//!
//! It gives a job to a free worker, keeps its time, passes cancellation on, and replaces a worker that
//! overran or died. It does not know what the jobs mean.

use super::child::{Worker, encoded, receive};
use super::clock::Clock;
use super::narrowed::Narrowed;
use super::protocol::{Answer, FromWorker, Job, Order, Setup, ToWorker, Work};
use crate::error::{ErrorCode, ToolError};
use crate::policy::Narrowing;
use crate::sqlite::copy::{SnapshotDone, SnapshotRequest};
use crate::sqlite::fault::Fault;
use crate::sqlite::restore::{Listing, RestoreRequest, Restored, SnapshotEntry};
use crate::sqlite::watch::Stop;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Mutex as StdMutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// Workers that read. Two, because their heap limits together with the writer's stay under 300 MB.
pub const READERS: usize = 2;

/// How long a job reads before another worker is got ready for the next one.
const LONG_READ: Duration = Duration::from_millis(50);

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
    path: PathBuf,
    busy_timeout: Duration,
    immutable: bool,
    narrowed: Narrowed,
    numbers: AtomicU64,
    places: Semaphore,
    idle: StdMutex<Vec<Worker>>,
    writer: Mutex<Option<Worker>>,
    closing: CancellationToken,
}

/// The terms of one job.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The policy's id.
    pub policy: &'static str,
    /// How long it may run, from the moment a worker takes it.
    pub timeout: Duration,
    /// Cancelled when the client no longer wants it.
    pub cancel: CancellationToken,
}

impl Pool {
    /// A pool without workers yet; `immutable` says that nobody writes the file.
    #[must_use]
    pub fn new(path: PathBuf, busy_timeout: Duration, immutable: bool) -> Self {
        Self {
            path,
            busy_timeout,
            immutable,
            narrowed: Narrowed::default(),
            numbers: AtomicU64::new(1),
            places: Semaphore::new(READERS),
            idle: StdMutex::default(),
            writer: Mutex::new(None),
            closing: CancellationToken::new(),
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
        let place = tokio::select! {
            place = self.places.acquire() => place,
            () = terms.cancel.cancelled() => return Err(Fault::Stopped(Stop::Cancelled).into()),
            () = self.closing.cancelled() => return Err(Fault::Stopped(Stop::Cancelled).into()),
        };
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
    /// longer for its worker than for its answer because another one takes long.
    async fn get_ready(&self) {
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
        let mut slot = self.writer.lock().await;
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

    /// Makes a snapshot, in a process of its own. The caller holds the turn-lock.
    ///
    /// # Errors
    /// Why there is none; `CANCELLED` when nobody wants it any more.
    pub async fn snapshot(
        &self,
        request: SnapshotRequest,
        cancel: &CancellationToken,
    ) -> Result<SnapshotDone, ToolError> {
        let failed = |words: String| ToolError::new(ErrorCode::SnapshotFailed, words);
        let mut worker =
            Worker::spawn().map_err(|error| failed(format!("a worker cannot be started: {error}")))?;
        let order = Order::Snapshot(request);
        let made = worker.order(&order);
        // Dropping the worker kills it; what it leaves has a temporary name and is swept later.
        let message = tokio::select! {
            message = made => message,
            () = cancel.cancelled() => return Err(ToolError::new(ErrorCode::Cancelled, "the call was cancelled")),
            () = self.closing.cancelled() => return Err(ToolError::new(ErrorCode::Cancelled, "the server ended")),
        };
        match message {
            Ok(Some(FromWorker::Snapshot(done))) => done,
            Ok(_) => Err(failed("the process that copies the file died".to_owned())),
            Err(error) => Err(failed(format!("the process that copies the file died: {error}"))),
        }
    }

    /// Restores a snapshot, in a process of its own. The caller holds the turn-lock.
    ///
    /// # Errors
    /// Why nothing was restored; a kill or a lost process, after which the caller must find out.
    pub async fn restore(
        &self,
        request: RestoreRequest,
        cancel: &CancellationToken,
    ) -> Result<Restored, JobError> {
        let lost = |words: String| JobError::Lost(format!("the process that restores {words}"));
        let mut worker = Worker::spawn().map_err(|error| lost(format!("cannot be started: {error}")))?;
        let order = Order::Restore(Box::new(request));
        let first = tokio::select! {
            biased;
            message = worker.order(&order) => Some(message),
            () = cancel.cancelled() => None,
            () = self.closing.cancelled() => None,
        };
        let Some(mut message) = first else {
            // Whoever asks next whether something was committed must not be too early.
            let _ = worker.child.kill().await;
            return Err(JobError::Killed(Stop::Cancelled));
        };
        if matches!(message, Ok(Some(FromWorker::Committing { .. }))) {
            message = receive(&mut worker.output, &mut worker.inbox).await;
        }
        match message {
            Ok(Some(FromWorker::Restored(done))) => {
                done.map(|restored| *restored).map_err(|error| JobError::Fault(error.into()))
            }
            Ok(_) => Err(lost("died".to_owned())),
            Err(error) => Err(lost(format!("died: {error}"))),
        }
    }

    /// Lists the snapshots, in a process of its own: their files may have been edited by anyone.
    ///
    /// # Errors
    /// Why there is no list.
    pub async fn snapshots(
        &self,
        listing: Listing,
        cancel: &CancellationToken,
    ) -> Result<Vec<SnapshotEntry>, JobError> {
        let lost = |words: String| JobError::Lost(format!("the process that looks at snapshots {words}"));
        let mut worker = Worker::spawn().map_err(|error| lost(format!("cannot be started: {error}")))?;
        let order = Order::Snapshots(listing);
        let message = tokio::select! {
            message = worker.order(&order) => message,
            () = cancel.cancelled() => return Err(JobError::Killed(Stop::Cancelled)),
            () = self.closing.cancelled() => return Err(JobError::Killed(Stop::Cancelled)),
        };
        match message {
            Ok(Some(FromWorker::Snapshots(found))) => found.map_err(|error| JobError::Fault(error.into())),
            Ok(_) => Err(lost("died".to_owned())),
            Err(error) => Err(lost(format!("died: {error}"))),
        }
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
        let mut worker = Worker::spawn()
            .map_err(|error| JobError::Lost(format!("a worker cannot be started: {error}")))?;
        let told = self.narrowed.tell();
        worker.narrowing_changes = told.changes;
        let setup = Setup {
            path: self.path.clone(),
            writes,
            immutable: self.immutable,
            busy_timeout_ms: u64::try_from(self.busy_timeout.as_millis()).unwrap_or(u64::MAX),
            tells_notes: told.tells_notes,
            narrowing: told.narrowing,
        };
        let order = Order::Jobs(setup);
        match tokio::time::timeout(START_GRACE, worker.order(&order)).await {
            Ok(Ok(Some(FromWorker::Ready(Ok(()))))) => Ok(worker),
            Ok(Ok(Some(FromWorker::Ready(Err(error))))) => {
                let words = format!("a worker cannot open the database: {}", error.message);
                Err(JobError::Fault(Fault::error(error.code, words)))
            }
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

/// Frames on their way to a worker.
struct Unsent {
    bytes: Vec<u8>,
    sent: usize,
}

impl Unsent {
    fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, sent: 0 }
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn push(&mut self, frame: Vec<u8>) {
        self.bytes.extend_from_slice(&frame);
    }

    /// Sends a part. Safe to drop half-way: what was taken by the pipe is counted before anything waits.
    async fn send(&mut self, input: &mut ChildStdin) -> io::Result<()> {
        let rest = self.bytes.get(self.sent..).unwrap_or_default();
        self.sent += input.write(rest).await?;
        if self.sent >= self.bytes.len() {
            *self = Self::new(Vec::new());
        }
        Ok(())
    }
}
