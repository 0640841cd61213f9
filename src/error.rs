//! What can go wrong, in the two shapes the program has: a [`ToolError`] that an agent reads and can
//! mend, and a [`StartError`] that ends the program with one line and an exit status.
//!
//! It does not decide who sees an error: `server/` turns tool errors into results with `isError`,
//! `main.rs` prints start errors.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Exit status 0: done.
pub const EXIT_OK: u8 = 0;
/// Exit status 1: the program could not do its work (a file that cannot be served, a tool error in `call`).
pub const EXIT_FAILURE: u8 = 1;
/// Exit status 2: a flag, an environment variable or a configuration file is wrong.
pub const EXIT_USAGE: u8 = 2;
/// Exit status 3 of `indelible verify`: the chain is broken, or is not the one `--expect-head` names; and of
/// `indelible snapshots verify`: the snapshot cannot be restored.
pub const EXIT_BROKEN: u8 = 3;
/// Exit status 4 of `indelible verify`: the file cannot be read as an Indelible database.
pub const EXIT_UNREADABLE: u8 = 4;

/// The stable name of a kind of tool error, sent as `_meta["indelible/code"]` of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The statement is not one SELECT, VALUES or WITH ... SELECT.
    NotSelect,
    /// The statement would change something its tool may not change.
    NotReadOnly,
    /// The policy refuses the statement; the text names the tool that allows it, if one does.
    Refused,
    /// More than one statement in one call.
    MultipleStatements,
    /// No statement: empty, or only comments.
    EmptyStatement,
    /// SQLite cannot parse the statement.
    SyntaxError,
    /// No such table or view.
    UnknownTable,
    /// No such column.
    UnknownColumn,
    /// The bound parameters do not fit the statement.
    InvalidParams,
    /// The tool's arguments do not fit its schema.
    InvalidArguments,
    /// The statement ran into its deadline and was stopped.
    Timeout,
    /// The client cancelled the call.
    Cancelled,
    /// A value, a statement or the memory it needs is larger than the limits allow.
    TooBig,
    /// Another process held the database lock for longer than the busy timeout.
    Busy,
    /// The file is damaged, or is no database.
    Corrupt,
    /// The file was deleted, moved or replaced while it was served.
    FileGone,
    /// The worker process died; the statement's fate is in the text.
    WorkerLost,
    /// A snapshot could not be made, so the statement did not run.
    SnapshotFailed,
    /// A person was to be asked and did not agree, or could not be asked.
    Declined,
    /// No such primitive, key, file, job, memory, secret or object.
    NotFound,
    /// Several primitives would fit, and the call names none.
    AmbiguousPrimitive,
    /// The primitive, or the value in it, is of another type than the call needs.
    WrongType,
    /// A condition of the call does not hold: nothing was changed.
    PreconditionFailed,
    /// Somebody else has changed what the call builds on, or the name is taken.
    Conflict,
    /// The job is leased by somebody else by now, or done.
    LeaseLost,
    /// What was given, or what would come back, is larger than the limits allow.
    TooLarge,
    /// A person has paused the primitive.
    Paused,
    /// The caller's key, or the URL that it uses, leaves the tool out.
    ForbiddenTool,
    /// No grant of the secret allows the request.
    NotGranted,
    /// The host of a request could not be reached, or its answer could not be read.
    Unreachable,
    /// Anything else SQLite reports, in its own words.
    SqlError,
}

impl ErrorCode {
    /// Every code, in the order of the enum.
    pub const ALL: &'static [ErrorCode] = &[
        Self::NotSelect,
        Self::NotReadOnly,
        Self::Refused,
        Self::MultipleStatements,
        Self::EmptyStatement,
        Self::SyntaxError,
        Self::UnknownTable,
        Self::UnknownColumn,
        Self::InvalidParams,
        Self::InvalidArguments,
        Self::Timeout,
        Self::Cancelled,
        Self::TooBig,
        Self::Busy,
        Self::Corrupt,
        Self::FileGone,
        Self::WorkerLost,
        Self::SnapshotFailed,
        Self::Declined,
        Self::NotFound,
        Self::AmbiguousPrimitive,
        Self::WrongType,
        Self::PreconditionFailed,
        Self::Conflict,
        Self::LeaseLost,
        Self::TooLarge,
        Self::Paused,
        Self::ForbiddenTool,
        Self::NotGranted,
        Self::Unreachable,
        Self::SqlError,
    ];

    /// The name as sent: `NOT_SELECT`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotSelect => "NOT_SELECT",
            Self::NotReadOnly => "NOT_READ_ONLY",
            Self::Refused => "REFUSED",
            Self::MultipleStatements => "MULTIPLE_STATEMENTS",
            Self::EmptyStatement => "EMPTY_STATEMENT",
            Self::SyntaxError => "SYNTAX_ERROR",
            Self::UnknownTable => "UNKNOWN_TABLE",
            Self::UnknownColumn => "UNKNOWN_COLUMN",
            Self::InvalidParams => "INVALID_PARAMS",
            Self::InvalidArguments => "INVALID_ARGUMENTS",
            Self::Timeout => "TIMEOUT",
            Self::Cancelled => "CANCELLED",
            Self::TooBig => "TOO_BIG",
            Self::Busy => "BUSY",
            Self::Corrupt => "CORRUPT",
            Self::FileGone => "FILE_GONE",
            Self::WorkerLost => "WORKER_LOST",
            Self::SnapshotFailed => "SNAPSHOT_FAILED",
            Self::Declined => "DECLINED",
            Self::NotFound => "NOT_FOUND",
            Self::AmbiguousPrimitive => "AMBIGUOUS_PRIMITIVE",
            Self::WrongType => "WRONG_TYPE",
            Self::PreconditionFailed => "PRECONDITION_FAILED",
            Self::Conflict => "CONFLICT",
            Self::LeaseLost => "LEASE_LOST",
            Self::TooLarge => "TOO_LARGE",
            Self::Paused => "PAUSED",
            Self::ForbiddenTool => "FORBIDDEN_TOOL",
            Self::NotGranted => "NOT_GRANTED",
            Self::Unreachable => "UNREACHABLE",
            Self::SqlError => "SQL_ERROR",
        }
    }
}

/// An error the agent can act on: a stable code and words that say what to do next.
///
/// The message is a lower-case fragment without a final period; SQLite's own words stay verbatim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolError {
    /// The kind of error.
    pub code: ErrorCode,
    /// What happened and what to do instead.
    pub message: String,
}

impl ToolError {
    /// An error of this kind with these words. Of words that are very long (they may repeat names and texts of
    /// any length) the middle is left out: they begin with what happened and end with what to do.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: bounded(message.into()) }
    }

    /// The same with at most about `most` bytes of words: their beginning, which says what happened, and their
    /// end, which says what to do. SQLite's words repeat names, which may have a megabyte.
    #[must_use]
    pub fn within(mut self, most: usize) -> Self {
        const END: usize = 300;
        if self.message.len() > most.saturating_add(500) {
            let text = &self.message;
            let boundary =
                |at: usize| (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
            let head = text.get(..boundary(most)).unwrap_or_default();
            let tail = text.get(boundary(text.len() - END)..).unwrap_or_default();
            let left_out = text.len() - head.len() - tail.len();
            self.message = format!("{head}...[{left_out} bytes]...{tail}");
        }
        self
    }

    /// Arguments that do not fit the tool's schema.
    pub fn arguments(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArguments, message)
    }
}

/// Characters kept of the beginning and of the end of a message that is longer than both together.
const KEPT_CHARS: (usize, usize) = (3000, 1000);

fn bounded(message: String) -> String {
    let (head, tail) = KEPT_CHARS;
    // No text has more characters than bytes.
    let chars = if message.len() > head + tail { message.chars().count() } else { 0 };
    if chars <= head + tail {
        return message;
    }
    let at = |place: usize| message.char_indices().nth(place).map_or(message.len(), |(at, _)| at);
    let (start, end) = (message.get(..at(head)), message.get(at(chars - tail)..));
    format!("{}...[+{} chars]...{}", start.unwrap_or_default(), chars - head - tail, end.unwrap_or_default())
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ToolError {}

/// An error that keeps the program from starting or from doing what a person asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartError {
    /// One of the `EXIT_*` constants.
    pub exit: u8,
    /// One line: what is wrong and what to do.
    pub message: String,
    /// Further lines, where several things are wrong at once.
    pub more: Vec<String>,
    /// What the error is for an agent, where it can come to one; none says nothing of it.
    pub code: Option<ErrorCode>,
}

impl StartError {
    /// Exit status 1.
    pub fn failure(message: impl Into<String>) -> Self {
        Self { exit: EXIT_FAILURE, message: message.into(), more: Vec::new(), code: None }
    }

    /// Exit status 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: EXIT_USAGE, message: message.into(), more: Vec::new(), code: None }
    }

    /// Exit status 2, with everything that is wrong in configuration files, a line each.
    pub fn lines(lines: impl IntoIterator<Item = impl ToString>) -> Self {
        let mut lines = lines.into_iter().map(|line| line.to_string());
        let message = lines.next().unwrap_or_default();
        Self { exit: EXIT_USAGE, message, more: lines.collect(), code: None }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StartError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_keep_their_beginning_and_their_end() {
        let message = format!("no such table: {}; list_tables shows them", "ž".repeat(5000));
        let error = ToolError { code: ErrorCode::UnknownTable, message };
        assert_eq!(error.clone().within(20_000), error);
        let cut = error.clone().within(100).message;
        assert!(cut.len() <= 600 && cut.starts_with("no such table: žž"), "{cut}");
        assert!(cut.ends_with("ž; list_tables shows them") && cut.contains("...[9"), "{cut}");
        let short = ToolError::arguments("short");
        assert_eq!(short.clone().within(1), short);
    }

    #[test]
    fn all_holds_every_code_by_its_name() {
        // serde knows the enum's variants and names them when none fits.
        let words = serde_json::from_str::<ErrorCode>("\"?\"").unwrap_err().to_string();
        let (_, list) = words.split_once("expected one of ").unwrap();
        let (list, _) = list.split_once(" at line").unwrap();
        let known: Vec<&str> = list.split(", ").map(|name| name.trim_matches('`')).collect();
        assert_eq!(ErrorCode::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>(), known);
    }
}
