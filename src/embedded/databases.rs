//! Databases in files of agents' own, which no connection of the server's opens: SQL runs in workers, behind the guard.
//!
//! A file is in WAL mode from the start, so that readers and the writer do not wait for each other. Its only writer is
//! its worker.

use super::crew::Crew;
use super::fault_words::{explained, of_statement, unexpected};
use crate::error::{ErrorCode, ToolError};
use crate::render::{Caps, Datum, DatumRows};
use crate::sqlite::batch::{Batch, Bound, Executed as Ran};
use crate::sqlite::params::Params;
use crate::sqlite::query::Form;
use crate::sqlite::state_file;
use crate::state::Outcome;
use crate::state::db::{Db, Executed, Statement, Terms};
use crate::worker::pool::{self, JobError};
use crate::worker::protocol::{Answer, Work};
use async_trait::async_trait;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long it may take to see whether a lost process had committed.
const LOOK_TIME: Duration = Duration::from_secs(5);

/// The policies of both tools.
const READS: &str = "database_read";
const CHANGES: &str = "database_change";

pub(super) struct SqlDb {
    file: PathBuf,
    crew: Arc<Crew>,
}

impl SqlDb {
    /// The database in the folder, made if it is missing.
    pub(super) async fn open(folder: PathBuf, crew: Arc<Crew>) -> Outcome<Self> {
        let file = folder.join("main.db");
        if !file.exists() {
            let made = file.clone();
            let lost = |_| ToolError::new(ErrorCode::Busy, "the server is ending; try again");
            tokio::task::spawn_blocking(move || state_file::empty(&made)).await.map_err(lost)??;
        }
        Ok(Self { file, crew })
    }

    /// Whether the file bears this stamp; none where that cannot be seen.
    async fn bears(&self, stamp: i32) -> Option<bool> {
        let terms = pool::Terms { policy: READS, timeout: LOOK_TIME, cancel: Default::default() };
        let caps = Caps { max_result_bytes: 1_000, max_cell_chars: 100 };
        // Whatever ended one worker may have ended those that wait, too.
        for _ in 0..=pool::READERS {
            let work = reading("PRAGMA user_version".to_owned(), Params::None, 1, caps);
            match self.crew.read(&self.file, work, &terms).await {
                Ok(Answer::Rows(rows)) => {
                    let found = rows.rows.first().and_then(|row| row.first());
                    return Some(found == Some(&Datum::Integer(stamp.into())));
                }
                Err(JobError::Lost(_)) => {}
                _ => return None,
            }
        }
        None
    }
}

#[async_trait]
impl Db for SqlDb {
    async fn query_ro(&self, statement: Statement, terms: Terms) -> Outcome<DatumRows> {
        let params = Params::from_json(statement.params)?;
        let work = reading(statement.sql, params, terms.max_rows, terms.caps);
        match self.crew.read(&self.file, work, &of_pool(READS, &terms)).await {
            Ok(Answer::Rows(rows)) => Ok(rows),
            Ok(_) => Err(unexpected()),
            Err(error) => Err(explained(error, &terms)),
        }
    }

    async fn exec_tx(&self, statements: Vec<Statement>, terms: Terms) -> Outcome<Vec<Executed>> {
        let count = statements.len();
        let bound = statements.into_iter().enumerate().map(|(at, Statement { sql, params })| {
            let params = Params::from_json(params).map_err(|error| of_statement(at, count, error))?;
            Ok(Bound { sql, params })
        });
        let statements = bound.collect::<Outcome<Vec<Bound>>>()?;
        let stamp = new_stamp();
        let batch = Batch { statements, max_rows: terms.max_rows, caps: terms.caps, stamp };
        match self.crew.write(&self.file, Work::Batch(batch), &of_pool(CHANGES, &terms)).await {
            Ok(Answer::Executed(Ok(results))) => Ok(results.into_iter().map(executed).collect()),
            Ok(Answer::Executed(Err(failed))) => {
                let error = explained(JobError::Fault(failed.fault), &terms);
                Err(failed.at.map_or_else(|| error.clone(), |at| of_statement(at, count, error.clone())))
            }
            Ok(_) => Err(unexpected()),
            Err(error @ (JobError::Lost(_) | JobError::Killed(_))) => {
                let fate = self.bears(stamp).await;
                Err(match fate {
                    Some(false) => explained(error, &terms),
                    Some(true) => ToolError::new(
                        ErrorCode::WorkerLost,
                        "the worker died after the commit: the change is in the database, do not repeat it",
                    ),
                    None => ToolError::new(
                        ErrorCode::WorkerLost,
                        "the worker died, and the database cannot be read now to see whether it had committed: look whether the change is there before you repeat it",
                    ),
                })
            }
            Err(error) => Err(explained(error, &terms)),
        }
    }
}

/// A stamp that no file bears yet, but by a chance of one in two thousand million.
fn new_stamp() -> i32 {
    let [a, b, c, d, ..] = *uuid::Uuid::new_v4().as_bytes();
    i32::from_le_bytes([a, b, c, d & 0x7f]).max(1)
}

fn reading(sql: String, params: Params, max_rows: u64, caps: Caps) -> Work {
    Work::Read { sql, params, limit: max_rows, max_rows, caps, form: Form::Exact }
}

fn of_pool(policy: &'static str, terms: &Terms) -> pool::Terms {
    pool::Terms { policy, timeout: terms.timeout, cancel: terms.cancel.clone() }
}

fn executed(ran: Ran) -> Executed {
    let Ran { rows_affected, last_insert_rowid, rows } = ran;
    Executed { rows_affected, last_insert_rowid, rows }
}
