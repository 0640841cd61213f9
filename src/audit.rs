//! One row of `query_log`, as it travels from the call that made it to the statement that stores it.
//!
//! It neither writes rows nor decides when they are written: `store/` does that for the server's own
//! rows, a write worker for the row of the statement it ran.

use serde::{Deserialize, Serialize};

/// What one call did, as `query_log` keeps it (the row's id is the database's).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRow {
    /// UTC, `2026-11-30T09:01:02Z`; see [`timestamp`].
    pub ts: String,
    /// One id per server run.
    pub session: String,
    /// The tool's name as the client called it.
    pub tool: String,
    /// The SQL or pattern, where the tool takes one.
    pub query: Option<String>,
    /// Whether the call succeeded.
    pub ok: bool,
    /// Rows returned or changed.
    pub rows: Option<i64>,
    /// The error's text.
    pub error: Option<String>,
    /// Milliseconds from the call's arrival to its answer.
    pub duration_ms: i64,
    /// A JSON object with the arguments that matter.
    pub detail: Option<String>,
}

/// How much of the log stays in the database; older rows go into files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// So many of the newest rows.
    Rows(u64),
    /// The rows of so many days.
    Days(u64),
}

impl std::fmt::Display for Keep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rows(rows) => write!(f, "{rows}"),
            Self::Days(days) => write!(f, "{days}d"),
        }
    }
}

/// The server's way to write a moment: UTC to the second, `2026-11-30T09:01:02Z`.
#[must_use]
pub fn timestamp(moment: jiff::Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_utc_to_the_second() {
        let moment: jiff::Timestamp = "2026-11-30T10:01:02.999+01:00".parse().unwrap();
        assert_eq!(timestamp(moment), "2026-11-30T09:01:02Z");
    }
}
