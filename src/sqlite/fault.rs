//! What can end a statement: a refusal, a stop, or SQLite's own error with a stable code.
//!
//! It words nothing about tools; refusals are worded by the process that knows their names.

use super::diagnose;
use super::toll::Toll;
use super::watch::{Stop, Watch};
use crate::error::{ErrorCode, ToolError};
use crate::policy::Refusal;
use rusqlite::ErrorCode as Primary;
use serde::{Deserialize, Serialize};

/// What is said of a commit that stands although it ended with an error.
pub const COMMITTED_ALL_THE_SAME: &str = "the disk reports an error at the end of a commit that stands all the same, and a power cut may still take back; a person must look at the disk";

/// Why a job ended without its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// The policy refuses the statement.
    Refused(Refusal),
    /// The statement was stopped.
    Stopped(Stop),
    /// An error with its words.
    Error(ToolError),
    /// A transaction was cut off, and must be rolled back by a connection that may write; the words for where none can.
    CutOff(String),
    /// The disk failed at the commit: in rollback mode that may be behind the moment from which the change stands. The
    /// words for where it does not.
    InDoubt(String),
    /// It takes something else than what a person agreed to, and was rolled back.
    OtherToll(Box<Toll>),
    /// `create_view` without `replace` met a view of that name.
    Exists {
        /// `view` or `table`.
        kind: String,
        /// Its name.
        name: String,
    },
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<ToolError> for Fault {
    fn from(error: ToolError) -> Self {
        Self::Error(error)
    }
}

impl Fault {
    /// An error of this kind.
    pub fn error(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::Error(ToolError::new(code, message))
    }

    /// What SQLite reported, in its own words, with what to do where that is known. An interrupt is
    /// the watch's doing.
    #[must_use]
    pub fn of(error: &rusqlite::Error, watch: &Watch) -> Self {
        if error.sqlite_error_code() == Some(Primary::OperationInterrupted) {
            return Self::Stopped(watch.stopped().unwrap_or(Stop::Cancelled));
        }
        if let Some(stop) = watch.stopped() {
            return Self::Stopped(stop);
        }
        Self::at_opening(error)
    }

    /// The same of a commit.
    #[must_use]
    pub fn of_commit(error: &rusqlite::Error, watch: &Watch) -> Self {
        if is_of_the_disk(error) { Self::InDoubt(tool_error(error).message) } else { Self::of(error, watch) }
    }

    /// The same before anything could be stopped.
    #[must_use]
    pub fn at_opening(error: &rusqlite::Error) -> Self {
        let said = tool_error(error);
        if is_cut_off(error) { Self::CutOff(said.message) } else { Self::Error(said) }
    }
}

/// Whether a commit that ends with this error may stand nevertheless: the removal of its journal was done, and could not
/// be synced.
pub(super) fn is_of_the_disk(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(Primary::SystemIoFailure | Primary::DiskFull))
}

fn is_cut_off(error: &rusqlite::Error) -> bool {
    matches!(diagnose::extended_code(error), diagnose::READONLY_ROLLBACK | diagnose::READONLY_RECOVERY)
}

/// Keeps this process from printing a panic where rusqlite denies what has a name that is no UTF-8: it panics before our
/// authorizer is asked, catches that, and denies.
pub fn deny_quietly() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let said = panic.payload().downcast_ref::<String>();
        if !said.is_some_and(|said| said.starts_with("received non-utf8 string as ")) {
            usual(panic);
        }
    }));
}

/// SQLite's words for an error, without rusqlite's.
#[must_use]
pub fn message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqliteFailure(code, None) => code.to_string(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}

/// The stable code and the words of an error.
#[must_use]
pub fn tool_error(error: &rusqlite::Error) -> ToolError {
    let words = message(error);
    match error {
        rusqlite::Error::MultipleStatement => return multiple_statements(),
        rusqlite::Error::Empty => return empty_statement(),
        _ => {}
    }
    if let Some(hint) = unreadable(error) {
        return ToolError::new(ErrorCode::SqlError, format!("{words}; {hint}"));
    }
    let code = error.sqlite_error_code();
    let (code, hint) = match code {
        Some(Primary::TooBig) => {
            (ErrorCode::TooBig, "; a value or statement is over the size limit: work on a part of it")
        }
        Some(Primary::OutOfMemory) => (
            ErrorCode::TooBig,
            "; the statement needs more memory than a worker may use: work on a part of it",
        ),
        Some(Primary::DatabaseBusy | Primary::DatabaseLocked) => {
            (ErrorCode::Busy, "; another process holds the lock: try again")
        }
        Some(Primary::DatabaseCorrupt | Primary::NotADatabase) => (
            ErrorCode::Corrupt,
            "; the file is damaged: stop, and tell a person, who can run PRAGMA integrity_check and restore a copy",
        ),
        // The authorizer takes names as text; what is none is denied without a look (`deny_quietly`).
        Some(Primary::AuthorizationForStatementDenied) if words.contains('\u{fffd}') => {
            (ErrorCode::Refused, "; its name is not UTF-8, and so no policy can judge it: leave it out")
        }
        Some(Primary::DiskFull) => {
            (ErrorCode::SqlError, "; nothing was changed: make room on the disk and try again")
        }
        Some(Primary::SystemIoFailure) => (
            ErrorCode::SqlError,
            "; nothing was changed: the disk reports an error, a quota or a limit on the size of files is reached, or the folder cannot be written, and a person must look at it",
        ),
        Some(Primary::ReadOnly) => (
            ErrorCode::SqlError,
            "; nothing was changed: the file or its folder cannot be written any more, and a person must make them writable",
        ),
        _ => (code_of_words(&words), ""),
    };
    ToolError::new(code, format!("{words}{hint}"))
}

/// What to do about a file that SQLite would have to write to before it could read it.
fn unreadable(error: &rusqlite::Error) -> Option<&'static str> {
    let primary = error.sqlite_error_code();
    match diagnose::extended_code(error) {
        _ if is_cut_off(error) => Some(
            "another program was cut off in the middle of a change, which must be rolled back before anybody can read: a person must open the file once with a program that may write to it",
        ),
        diagnose::READONLY_CANTINIT | diagnose::READONLY_DIRECTORY => Some(
            "the file is in WAL mode and SQLite cannot make `-wal` and `-shm` beside it: a person must make the folder writable, serve a copy, or start with --immutable if nobody writes the file",
        ),
        _ if primary == Some(Primary::CannotOpen) => Some(
            "the file, or its `-wal` and `-shm`, cannot be opened any more: a person must look whether they are still there and may be read, and whether the disk is full",
        ),
        _ => None,
    }
}

fn code_of_words(words: &str) -> ErrorCode {
    if words.starts_with("no such table") {
        ErrorCode::UnknownTable
    } else if words.starts_with("no such column") {
        ErrorCode::UnknownColumn
    } else if words.ends_with("syntax error")
        || words.starts_with("incomplete input")
        || words.starts_with("unrecognized token")
    {
        ErrorCode::SyntaxError
    } else {
        ErrorCode::SqlError
    }
}

/// The error for more than one statement.
#[must_use]
pub fn multiple_statements() -> ToolError {
    ToolError::new(
        ErrorCode::MultipleStatements,
        "one statement per call: more SQL follows the first statement; send each in a call of its own",
    )
}

/// The error for no statement.
#[must_use]
pub fn empty_statement() -> ToolError {
    ToolError::new(
        ErrorCode::EmptyStatement,
        "there is no statement, only blanks or comments; send one SQL statement",
    )
}
