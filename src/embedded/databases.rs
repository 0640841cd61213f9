//! Databases in files of agents' own, which no connection of the server's opens: SQL runs in workers, behind the guard.
//!
//! A file is in WAL mode from the start, so that readers and the writer do not wait for each other. Its only writer is
//! its worker.

use super::fault_words::{explained, of_statement, unexpected};
use super::keeper::Keeper;
use super::records::FIRST_FILE;
use crate::error::{ErrorCode, ToolError};
use crate::render::{Caps, Datum, DatumRows};
use crate::shares::Owner;
use crate::sqlite::batch::{Batch, Bound, Executed as Ran};
use crate::sqlite::fault::Fault;
use crate::sqlite::params::Params;
use crate::sqlite::query::Form;
use crate::sqlite::state_file;
use crate::state::Outcome;
use crate::state::catalog::Primitive;
use crate::state::db::{Branch, Db, Executed, MAIN, Statement, Terms};
use crate::worker::pool::{self, JobError};
use crate::worker::protocol::{Answer, Work};
use async_trait::async_trait;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::RwLock;

/// How long it may take to see the stamp of a file.
const LOOK_TIME: Duration = Duration::from_secs(5);

/// The policies of both tools.
const READS: &str = "database_read";
const CHANGES: &str = "database_change";

pub(super) struct SqlDb {
    pub(super) primitive: Primitive,
    pub(super) folder: PathBuf,
    pub(super) keeper: Arc<Keeper>,
    /// Shared by those who write into files, alone for those who copy or exchange them.
    pub(super) turn: RwLock<()>,
}

impl SqlDb {
    /// The database in the folder, made if it is missing.
    pub(super) async fn open(primitive: &Primitive, folder: PathBuf, keeper: Arc<Keeper>) -> Outcome<Self> {
        let file = folder.join(keeper.catalog.main_file(&primitive.id).await?);
        if file.ends_with(FIRST_FILE) && !file.exists() {
            super::blocking(move || state_file::empty(&file)).await?;
        }
        Ok(Self { primitive: primitive.clone(), folder, keeper, turn: RwLock::default() })
    }

    /// The file of main.
    pub(super) async fn main(&self) -> Outcome<PathBuf> {
        Ok(self.folder.join(self.keeper.catalog.main_file(&self.primitive.id).await?))
    }

    /// The file of a branch, or of main.
    async fn file(&self, branch: Option<&str>) -> Outcome<PathBuf> {
        match branch {
            None | Some(MAIN) => self.main().await,
            Some(branch) => Ok(self.folder.join(self.branch(branch).await?.file)),
        }
    }

    /// The stamp that a file bears.
    pub(super) async fn stamp(&self, file: &Path) -> Outcome<i32> {
        // In nobody's share: what callers do keeps none of them from hearing what became of a change.
        let owner = Owner::default();
        let terms = pool::Terms { policy: READS, timeout: LOOK_TIME, cancel: Default::default(), owner };
        let caps = Caps { max_result_bytes: 1_000, max_cell_chars: 100 };
        // Whatever ended one worker may have ended those that wait, too.
        for _ in 0..=pool::READERS {
            let work = reading("PRAGMA user_version".to_owned(), Params::None, 1, caps);
            match self.keeper.crew.read(file, work, &terms).await {
                Ok(Answer::Rows(rows)) => match rows.rows.first().and_then(|row| row.first()) {
                    Some(Datum::Integer(stamp)) => return i32::try_from(*stamp).map_err(|_| unexpected()),
                    _ => return Err(unexpected()),
                },
                Err(JobError::Lost(_)) => {}
                Err(JobError::Fault(Fault::Error(error))) => return Err(error),
                _ => return Err(unexpected()),
            }
        }
        Err(unexpected())
    }

    /// What became of a transaction whose worker was lost.
    async fn fate(&self, file: &Path, stamp: i32, lost: ToolError) -> ToolError {
        let words = match self.stamp(file).await {
            Ok(found) if found != stamp => return lost,
            Ok(_) => "the worker died after the commit: the change is in the database, do not repeat it",
            Err(_) => {
                "the worker died, and the database cannot be read now to see whether it had committed: look whether the change is there before you repeat it"
            }
        };
        ToolError::new(ErrorCode::WorkerLost, words)
    }
}

#[async_trait]
impl Db for SqlDb {
    async fn query_ro(
        &self,
        branch: Option<String>,
        statement: Statement,
        terms: Terms,
    ) -> Outcome<DatumRows> {
        let params = Params::from_json(statement.params)?;
        let mut file = self.file(branch.as_deref()).await?;
        loop {
            let work = reading(statement.sql.clone(), params.clone(), terms.max_rows, terms.caps);
            match self.keeper.crew.read(&file, work, &of_pool(READS, &terms)).await {
                Ok(Answer::Rows(rows)) => return Ok(rows),
                Ok(_) => return Err(unexpected()),
                Err(error) => {
                    // Reading holds nobody up, so the file may have gone for another one meanwhile.
                    let now = self.file(branch.as_deref()).await?;
                    if file.exists() || now == file {
                        return Err(explained(error, &terms));
                    }
                    file = now;
                }
            }
        }
    }

    async fn exec_tx(
        &self,
        branch: Option<String>,
        statements: Vec<Statement>,
        terms: Terms,
    ) -> Outcome<Vec<Executed>> {
        let count = statements.len();
        let bound = statements.into_iter().enumerate().map(|(at, Statement { sql, params })| {
            let params = Params::from_json(params).map_err(|error| of_statement(at, count, error))?;
            Ok(Bound { sql, params })
        });
        let statements = bound.collect::<Outcome<Vec<Bound>>>()?;
        let _here = self.turn.read().await;
        let file = self.file(branch.as_deref()).await?;
        let stamp = new_stamp();
        let batch = Batch { statements, max_rows: terms.max_rows, caps: terms.caps, stamp };
        let done = self.keeper.crew.write(&file, Work::Batch(batch), &of_pool(CHANGES, &terms)).await;
        match done {
            Ok(Answer::Executed(Ok(results))) => Ok(results.into_iter().map(executed).collect()),
            Ok(Answer::Executed(Err(failed))) => {
                let error = explained(JobError::Fault(failed.fault), &terms);
                Err(match failed.at {
                    Some(at) => of_statement(at, count, error),
                    None => error,
                })
            }
            Ok(_) => Err(unexpected()),
            Err(error @ (JobError::Lost(_) | JobError::Killed(_))) => {
                Err(self.fate(&file, stamp, explained(error, &terms)).await)
            }
            Err(error) => Err(explained(error, &terms)),
        }
    }

    async fn create_branch(&self, branch: &str) -> Outcome<()> {
        self.make_branch(branch).await
    }

    async fn promote_branch(&self, branch: &str, force: bool) -> Outcome<Option<String>> {
        self.promote(branch, force).await
    }

    async fn discard_branch(&self, branch: &str, force: bool) -> Outcome<()> {
        self.discard(branch, force).await
    }

    async fn branches(&self) -> Outcome<Vec<Branch>> {
        self.list_branches().await
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
    pool::Terms { policy, timeout: terms.timeout, cancel: terms.cancel.clone(), owner: terms.owner.clone() }
}

fn executed(ran: Ran) -> Executed {
    let Ran { rows_affected, last_insert_rowid, rows } = ran;
    Executed { rows_affected, last_insert_rowid, rows }
}
