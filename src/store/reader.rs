//! Verification and the resume text, off the async threads and beside the writes.
//!
//! It holds a few reading connections for reuse; a reading that finds a second one free uses it too, on a second
//! thread. It neither judges the chain nor words the text.

use crate::chain::Verdict;
use crate::error::{ErrorCode, StartError, ToolError};
pub use crate::sqlite::readout::ResumeChoice;
use crate::sqlite::readout::{Known, Pace, Readout};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Connections that read at once. A second one keeps a short resume from waiting behind a long verification,
/// or helps with it.
const READERS: usize = 2;

/// Told the events done and about how many there are.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// How one reading goes.
#[derive(Clone)]
pub struct Reading {
    /// The most it may take.
    pub limit: Duration,
    /// Ends it at once.
    pub cancel: CancellationToken,
    /// Told how it goes, a few times a second at most.
    pub progress: Option<Progress>,
}

/// The handle.
#[derive(Clone, Debug)]
pub struct Reader {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    busy_timeout: Duration,
    idle: Mutex<Vec<Readout>>,
    free: Semaphore,
}

impl Reader {
    /// Opens the first connection, so that a file that cannot be read shows at the start. With a
    /// [`Store`](super::Store) on the same file, open that first: it makes what is missing.
    ///
    /// # Errors
    /// Exit status 1: the file cannot be read.
    pub fn open(path: PathBuf, busy_timeout: Duration) -> Result<Self, StartError> {
        let first = Readout::open(&path, busy_timeout)?;
        let (idle, free) = (Mutex::new(vec![first]), Semaphore::new(READERS));
        Ok(Self { shared: Arc::new(Shared { path, busy_timeout, idle, free }) })
    }

    /// Checks the whole chain.
    ///
    /// # Errors
    /// No such tables (a file opened with --read-only), the limit, a cancelled call, or SQLite's.
    pub async fn verify(&self, reading: Reading) -> Result<Verdict, ToolError> {
        self.verify_known(reading).await.map(|(verdict, _)| verdict)
    }

    /// The same, with what a later reading may go on from.
    pub(super) async fn verify_known(&self, reading: Reading) -> Result<(Verdict, Option<Known>), ToolError> {
        self.run(reading, |readout, pace, beside| readout.verify(pace, beside)).await
    }

    /// The resume text, with the verdict over the same view of the file.
    ///
    /// # Errors
    /// As [`Reader::verify`].
    pub async fn resume(&self, choice: ResumeChoice, reading: Reading) -> Result<String, ToolError> {
        self.resume_known(choice, reading).await.map(|(text, _)| text)
    }

    /// The same, with what a later reading may go on from.
    pub(super) async fn resume_known(
        &self,
        choice: ResumeChoice,
        reading: Reading,
    ) -> Result<(String, Option<Known>), ToolError> {
        self.run(reading, move |readout, pace, beside| readout.resume(&choice, pace, beside)).await
    }

    /// Closes the connections that nobody uses.
    pub fn close(&self) {
        self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    async fn run<T: Send + 'static>(
        &self,
        reading: Reading,
        read: impl FnOnce(&Readout, &Pace<'_>, Option<&mut Readout>) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let deadline = Instant::now() + reading.limit;
        let shared = Arc::clone(&self.shared);
        let _permit = tokio::select! {
            permit = self.shared.free.acquire() => permit.ok(),
            () = reading.cancel.cancelled() => None,
            () = tokio::time::sleep(reading.limit) => None,
        };
        let blocking = tokio::task::spawn_blocking(move || {
            let cancelled = || reading.cancel.is_cancelled();
            let progress = |done, total| {
                if let Some(progress) = &reading.progress {
                    progress(done, total);
                }
            };
            let pace = Pace { deadline, limit: reading.limit, cancelled: &cancelled, progress: &progress };
            pace.check()?;
            let readout = shared.take()?;
            // Where nobody else reads, both connections and two threads for one reading.
            let second = if two_cores() { shared.free.try_acquire().ok() } else { None };
            let mut beside = second.as_ref().and_then(|_| shared.take().ok());
            let result = read(&readout, &pace, beside.as_mut());
            [Some(readout), beside].into_iter().flatten().for_each(|readout| shared.give_back(readout));
            result
        });
        blocking.await.unwrap_or_else(|error| Err(failed(&error)))
    }
}

impl Shared {
    fn take(&self) -> Result<Readout, ToolError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(readout) => Ok(readout),
            None => Readout::open(&self.path, self.busy_timeout)
                .map_err(|error| ToolError::new(ErrorCode::SqlError, error.message)),
        }
    }

    fn give_back(&self, readout: Readout) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < READERS {
            idle.push(readout);
        }
    }
}

fn two_cores() -> bool {
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1)
}

fn failed(error: &tokio::task::JoinError) -> ToolError {
    ToolError::new(ErrorCode::SqlError, format!("reading the chain failed: {error}"))
}
