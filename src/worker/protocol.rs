//! The messages between the server and its workers, and their frames.
//!
//! A frame is its length as four little-endian bytes and a postcard body. One job is in flight on a
//! worker at a time; every message about a job carries its number, so that a late interrupt can never
//! hit the job that comes next.

use crate::audit::AuditRow;
use crate::error::ToolError;
use crate::policy::Narrowing;
use crate::render::{Caps, DatumRows};
use crate::results::PlanStep;
use crate::sandbox::Confined;
use crate::sandbox::attempt::{Attempt, Ground};
use crate::sqlite::batch::{Batch, Executed, Failed};
use crate::sqlite::compile::Compilation;
use crate::sqlite::copy::{Copied, CopyRequest, SnapshotDone, SnapshotRequest};
use crate::sqlite::fault::Fault;
use crate::sqlite::group::Outcome;
use crate::sqlite::introspect::{Schema, TableDescription, TableEntry};
use crate::sqlite::params::Params;
use crate::sqlite::query::{Form, TextResult};
use crate::sqlite::restore::{Listing, RestoreRequest, Restored, SnapshotEntry};
use crate::sqlite::sample::Sample;
use crate::sqlite::search_rows::Search;
use crate::sqlite::toll::Toll;
use crate::sqlite::view::CreatedView;
use crate::sqlite::write::Changed;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::path::PathBuf;

/// The longest frame either side accepts: a call's parameters, or a result under the caps.
pub const MAX_FRAME_BYTES: usize = 160 * 1024 * 1024;

/// The first message to a worker: what it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Open a database and run jobs.
    Jobs(Setup),
    /// Make one snapshot and end.
    Snapshot(SnapshotRequest),
    /// Restore one snapshot and end.
    Restore(Box<RestoreRequest>),
    /// List the snapshots and end.
    Snapshots(Listing),
    /// Make one copy and end.
    Copy(CopyRequest),
    /// Be confined as for these jobs, try what must be denied, and end.
    Attempts(Setup, Ground),
}

/// What a worker for jobs opens, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The database file.
    #[serde(with = "crate::os_path")]
    pub path: PathBuf,
    /// Whether this worker changes the database.
    pub writes: bool,
    /// Whether nobody writes the file, so that no lock is needed.
    pub immutable: bool,
    /// Whether tables of the server's own stand in it, which nobody else may change.
    pub has_own_tables: bool,
    /// Milliseconds to wait for another process's lock.
    pub busy_timeout_ms: u64,
    /// What the user's policy file takes away.
    pub narrowing: Narrowing,
    /// Whether to say, with the first job, what of it finds nothing.
    pub tells_notes: bool,
}

/// From the server to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToWorker {
    /// Run this.
    Job(Box<Job>),
    /// Stop this job, if it is still running.
    Interrupt {
        /// The job's number.
        job: u64,
    },
    /// The audit rows are written: go on.
    LogWritten {
        /// The job's number.
        job: u64,
    },
}

/// From a worker to the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromWorker {
    /// The file is open, and the worker confined so far; or why it is not.
    Ready(Result<Confined, Fault>),
    /// What of the policy file finds nothing in the database, for the server's log.
    Notes(Vec<String>),
    /// The snapshot that was ordered, or why there is none.
    Snapshot(Result<SnapshotDone, ToolError>),
    /// The restore that was ordered, or why there is none.
    Restored(Result<Box<Restored>, Fault>),
    /// The list that was ordered.
    Snapshots(Result<Vec<SnapshotEntry>, ToolError>),
    /// The copy that was ordered, or why there is none.
    Copied(Result<Copied, ToolError>),
    /// How far the worker is confined, and what came of the attempts.
    Attempts(Confined, Vec<Attempt>),
    /// The job waits for another process's lock; its own time stands still.
    Waiting {
        /// The job's number.
        job: u64,
    },
    /// The lock was had.
    Started {
        /// The job's number.
        job: u64,
    },
    /// The job reads the server's log: write what is gathered, then say `LogWritten`.
    NeedsLog {
        /// The job's number.
        job: u64,
    },
    /// What follows must not be cut short.
    Committing {
        /// The job's number.
        job: u64,
    },
    /// The end of the job.
    Done {
        /// The job's number.
        job: u64,
        /// What it came to.
        result: Result<Answer, Fault>,
    },
}

/// One piece of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its number, unique over the life of the server.
    pub number: u64,
    /// The policy's id in policy.yaml.
    pub policy: String,
    /// Milliseconds it may run.
    pub timeout_ms: u64,
    /// What to do.
    pub work: Work,
}

/// What a worker can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Work {
    /// Run a statement that reads.
    Read {
        /// The statement.
        sql: String,
        /// Its parameters.
        params: Params,
        /// Rows to return at most.
        limit: u64,
        /// The greatest limit a call may ask for.
        max_rows: u64,
        /// Caps of the text.
        caps: Caps,
        /// What the result is wanted as.
        form: Form,
    },
    /// Rows of a table, the first or some at random.
    Sample(Sample),
    /// The plan of a statement that reads.
    Explain {
        /// The statement.
        sql: String,
        /// Its parameters.
        params: Params,
    },
    /// Compile and judge a statement that will be run later, under a policy that reads or writes.
    Compile {
        /// The statement.
        sql: String,
    },
    /// Compile and judge a change without running it.
    Check {
        /// The statement.
        sql: String,
        /// Its parameters.
        params: Params,
    },
    /// Run a change and roll it back, to learn what it takes.
    Try {
        /// The statement.
        sql: String,
        /// Its parameters.
        params: Params,
        /// As of `Change`.
        max_overwrites: Option<u64>,
    },
    /// Run a statement that changes the database.
    Change {
        /// The statement.
        sql: String,
        /// Its parameters.
        params: Params,
        /// RETURNING rows to show at most.
        max_rows: u64,
        /// Caps of their text.
        caps: Caps,
        /// Existing rows it may overwrite; none where the policy does not count.
        max_overwrites: Option<u64>,
        /// What a person agreed that it may take; none where nobody was to be asked.
        agreed: Option<Toll>,
        /// Its audit row, but for rows and the time it takes.
        audit: AuditRow,
    },
    /// Run changes of several calls and commit them together.
    Group(Vec<Grouped>),
    /// Run statements in one transaction, in a file without tables of the server's own.
    Batch(Batch),
    /// Create a view.
    CreateView {
        /// Its name.
        name: String,
        /// Its SELECT.
        select_sql: String,
        /// What it is for.
        description: Option<String>,
        /// Whether to replace one of that name.
        replace: bool,
        /// Its audit row, but for the time it takes.
        audit: AuditRow,
    },
    /// List tables and views.
    Tables {
        /// Whether to count rows.
        counts: bool,
    },
    /// Describe a table or view.
    Describe {
        /// Its name.
        table: String,
        /// Whether to count its rows.
        count: bool,
    },
    /// All definitions.
    Definitions {
        /// Whether to include the server's own.
        include_system: bool,
        /// About how much text to return at most.
        max_bytes: u64,
    },
    /// Search text.
    Search(Search),
}

/// One change of a group: as `Change`, where nobody is to be asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grouped {
    /// The statement.
    pub sql: String,
    /// Its parameters.
    pub params: Params,
    /// RETURNING rows to show at most.
    pub max_rows: u64,
    /// Caps of their text.
    pub caps: Caps,
    /// Existing rows it may overwrite; none where the policy does not count.
    pub max_overwrites: Option<u64>,
    /// Its audit row, but for rows and the time it takes.
    pub audit: AuditRow,
}

impl Grouped {
    /// The same as a change of its own.
    #[must_use]
    pub fn alone(self) -> Work {
        let Self { sql, params, max_rows, caps, max_overwrites, audit } = self;
        Work::Change { sql, params, max_rows, caps, max_overwrites, agreed: None, audit }
    }
}

/// What work comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Of `Read` and `Search` as text.
    Text(TextResult),
    /// Of `Read` and `Sample` as values.
    Rows(DatumRows),
    /// Of `Explain`.
    Plan(Vec<PlanStep>),
    /// Of `Compile`.
    Compiled(Compilation),
    /// Of `Check`.
    Accepted {
        /// Whether there is anything to do.
        to_do: bool,
    },
    /// Of `Change`.
    Changed(Changed),
    /// Of `Try`; and of `Change`, which was rolled back because it takes something else than was agreed.
    Takes(Box<Toll>),
    /// Of `Group`, in order.
    Group(Vec<Outcome>),
    /// Of `Batch`.
    Executed(Result<Vec<Executed>, Failed>),
    /// Of `CreateView`.
    ViewCreated(CreatedView),
    /// Of `Tables`.
    Tables(Vec<TableEntry>),
    /// Of `Describe`.
    Described(Box<TableDescription>),
    /// Of `Definitions`.
    Definitions(Schema),
}

/// A message as a frame, appended to `out`.
///
/// # Errors
/// When the message does not fit a frame.
pub fn encode<T: Serialize>(message: &T, out: &mut Vec<u8>) -> Result<(), FrameError> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let taken = std::mem::take(out);
    let mut taken = postcard::to_extend(message, taken).map_err(|_| FrameError::Malformed)?;
    let length = taken.len() - start - 4;
    if length > MAX_FRAME_BYTES {
        return Err(FrameError::TooLong(length));
    }
    let bytes = u32::try_from(length).map_err(|_| FrameError::TooLong(length))?.to_le_bytes();
    if let Some(head) = taken.get_mut(start..start + 4) {
        head.copy_from_slice(&bytes);
    }
    *out = taken;
    Ok(())
}

/// The length that a frame's head announces.
///
/// # Errors
/// When it is longer than any frame.
pub fn body_length(head: [u8; 4]) -> Result<usize, FrameError> {
    let length = usize::try_from(u32::from_le_bytes(head)).unwrap_or(usize::MAX);
    if length > MAX_FRAME_BYTES { Err(FrameError::TooLong(length)) } else { Ok(length) }
}

/// The message in a frame's body.
///
/// # Errors
/// When it is no such message.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    postcard::from_bytes(body).map_err(|_| FrameError::Malformed)
}

/// A frame that cannot be made or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// Longer than [`MAX_FRAME_BYTES`].
    TooLong(usize),
    /// Not a message of this protocol.
    Malformed,
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLong(bytes) => write!(f, "a message of {bytes} bytes is longer than {MAX_FRAME_BYTES}"),
            Self::Malformed => f.write_str("a message that is not of the worker protocol"),
        }
    }
}

impl std::error::Error for FrameError {}
