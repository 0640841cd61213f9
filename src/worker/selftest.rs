//! Whether workers are as confined as they should be here: one is started on a file of our own and tries.
//!
//! It touches no database of a user's. What must be denied is what [`attempt::all`] tries but for [`allowed`].

use super::child::Worker;
use super::protocol::{FromWorker, Order, Setup};
use super::temp_folder::TempFolder;
use crate::policy::Narrowing;
use crate::sandbox::Confined;
use crate::sandbox::attempt::{Attempt, Ground};
use crate::sqlite::open;
use std::io;
use std::time::Duration;

/// How long a worker may take over its attempts.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// What holds.
    pub confined: Confined,
    /// All attempts.
    pub attempts: Vec<Attempt>,
    /// Whether the worker was one that writes.
    pub writes: bool,
}

impl Tested {
    /// What was possible and should not be, and what was denied and is needed.
    #[must_use]
    pub fn wrong(&self) -> Vec<&Attempt> {
        let wrong =
            |attempt: &&Attempt| attempt.denied == allowed(self.writes).contains(&attempt.what.as_str());
        self.attempts.iter().filter(wrong).collect()
    }
}

/// What a worker must be able to do, as the attempts are called; the database of the test is in WAL mode.
#[must_use]
pub fn allowed(writes: bool) -> &'static [&'static str] {
    if writes {
        &["read the database", "write the database", "make a temporary file"]
    } else {
        &["read the database", "make a temporary file"]
    }
}

/// Starts a worker that reads or writes and has it try. Must be called in a tokio runtime.
///
/// # Errors
/// There is no folder for the file, the worker cannot be started, or it died over an attempt.
pub async fn run(writes: bool) -> io::Result<Tested> {
    let (scratch, temporary) = (TempFolder::create()?, TempFolder::create()?);
    let (outside, folder) = (scratch.path().join("outside"), scratch.path().join("inside"));
    std::fs::write(&outside, "out of reach")?;
    std::fs::create_dir(&folder)?;
    let database = folder.join("test.db");
    let other = |error: String| io::Error::other(error);
    drop(open::for_server(&database, PATIENCE).map_err(|error| other(error.message))?);
    open::make_companions(&database, PATIENCE).map_err(|error| other(error.to_string()))?;
    let mut worker = Worker::spawn(None, Some(temporary.path()))?;
    let setup = Setup {
        path: database.clone(),
        writes,
        immutable: false,
        has_own_tables: true,
        busy_timeout_ms: 0,
        narrowing: Narrowing::default(),
        tells_notes: false,
    };
    let ground = Ground { outside, database, process: std::process::id() };
    let order = Order::Attempts(setup, ground);
    let answer = tokio::time::timeout(PATIENCE, worker.order(&order)).await;
    match answer {
        Ok(Ok(Some(FromWorker::Attempts(confined, attempts)))) => Ok(Tested { confined, attempts, writes }),
        Ok(Ok(_)) => Err(io::Error::other("the worker died over an attempt")),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(io::Error::other("the worker did not come to an end")),
    }
}
