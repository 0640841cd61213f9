//! The server's own writing connection: events, checkpoints and audit rows, in batches that are one
//! transaction each.
//!
//! It knows no queue and no thread (that is `store/`), and it cannot do anything else: its authorizer
//! allows reading and inserting into the three tables, so that whatever somebody attached to them from
//! outside makes the insert fail instead of running.

use crate::audit::AuditRow;
use crate::chain::{self, GENESIS};
use crate::error::{ErrorCode, StartError, ToolError};
use crate::sqlite::checkup::companion;
use crate::sqlite::identity::Opened;
use crate::sqlite::ledger_guard::Gate;
use crate::sqlite::trusted::Trust;
use crate::sqlite::{bootstrap, diagnose, open};
use rusqlite::config::DbConfig;
use rusqlite::hooks::AuthContext;
use rusqlite::{Connection, OptionalExtension};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest text of an event or a checkpoint, in bytes.
pub const MAX_TEXT_BYTES: usize = 1 << 20;

/// What a write added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The new row's id.
    pub id: i64,
    /// When, UTC to the second.
    pub ts: String,
    /// The new row's own hash, lower-case hex.
    pub hash: String,
    /// The newest event: the row itself, or the event a checkpoint pins (0 before the first).
    pub last_event_id: i64,
}

/// How far a failed write reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This row alone cannot be written; the batch goes on.
    Row,
    /// The batch is lost; another try may succeed.
    Batch,
    /// The disk failed at the end of a commit that stands all the same.
    Nowhere,
}

/// A write that failed.
#[derive(Clone, Debug)]
pub struct LedgerError {
    /// Whether the rest of the batch stands.
    pub reach: Reach,
    /// In words for the agent.
    pub error: ToolError,
}

/// The writing connection.
#[derive(Debug)]
pub struct Ledger {
    connection: Connection,
    /// In WAL mode: the WAL.
    wal: Option<PathBuf>,
    opened: Opened,
    gate: Gate,
    power_safe: bool,
    trusted: Option<Trust>,
}

impl Ledger {
    /// Opens the file for the server and makes its tables where they lack.
    ///
    /// # Errors
    /// Exit status 1: the file cannot be served.
    pub fn open(path: &Path, busy_timeout: Duration) -> Result<Self, StartError> {
        let mut connection = open::for_server(path, busy_timeout)?;
        bootstrap::bootstrap(&mut connection, path)?;
        let start_error = |error| diagnose::sqlite_error(path, &error);
        let mode: String =
            connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(start_error)?;
        // The server's tables have no foreign keys. Somebody else's that point at them (deferred ones are
        // looked up at each insert) are not the log's to enforce.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false).map_err(start_error)?;
        let gate = Gate::default();
        let asked = gate.clone();
        connection
            .authorizer(Some(move |context: AuthContext<'_>| asked.answer(context)))
            .map_err(start_error)?;
        let wal = (mode == "wal").then(|| companion(path, "-wal"));
        let opened = Opened::of(path, wal.as_deref()).map_err(|error| {
            StartError::failure(format!("cannot open the database `{}`: {error}", path.display()))
        })?;
        Ok(Self { connection, wal, opened, gate, power_safe: true, trusted: None })
    }

    /// The authorizer.
    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// For what only reads.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// For what waits for locks.
    pub(super) fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// The file, to see whether it is still there.
    #[must_use]
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// The file that commits go into which are not power-safe; none if they all are.
    #[must_use]
    pub fn unsynced(&self) -> Option<&Path> {
        self.wal.as_deref()
    }

    /// Begins a batch, waiting up to `wait` for other processes here and again at the commit.
    ///
    /// `power_safe`: the commit is on the disk when it returns. Without it (audit rows of calls that
    /// changed nothing) a power cut may take the batch, until the file of [`Ledger::unsynced`] is synced, but
    /// never tears the database.
    ///
    /// # Errors
    /// The file is gone, the lock was not to be had, or SQLite cannot write.
    pub fn batch(&mut self, wait: Duration, power_safe: bool) -> Result<Batch<'_>, LedgerError> {
        self.opened.check().map_err(|error| LedgerError { reach: Reach::Batch, error })?;
        self.begin(wait, power_safe).map_err(|error| batch_error("nothing was written", &error))?;
        Ok(Batch {
            connection: &self.connection,
            opened: Some(&self.opened),
            head: None,
            row: None,
            open: true,
        })
    }

    pub(super) fn trusted(&mut self) -> &mut Option<Trust> {
        &mut self.trusted
    }

    pub(super) fn is_wal(&self) -> bool {
        self.wal.is_some()
    }

    fn begin(&mut self, wait: Duration, power_safe: bool) -> rusqlite::Result<()> {
        // Outside WAL anything below FULL could tear the file.
        let power_safe = power_safe || self.wal.is_none();
        if power_safe != self.power_safe {
            let level = if power_safe { open::POWER_SAFE } else { "PRAGMA synchronous=NORMAL" };
            self.connection.execute_batch(level)?;
            self.power_safe = power_safe;
        }
        open::wait_for_locks(&mut self.connection, wait)?;
        run(&self.connection, "BEGIN IMMEDIATE")
    }
}

/// One transaction. Dropped without [`Batch::commit`], it leaves nothing.
#[derive(Debug)]
pub struct Batch<'a> {
    pub(super) connection: &'a Connection,
    pub(super) opened: Option<&'a Opened>,
    /// The chain's end, read under this transaction's lock: other processes append too.
    head: Option<Head>,
    /// The newest log row of this transaction, and its session.
    pub(super) row: Option<(i64, String)>,
    pub(super) open: bool,
}

#[derive(Clone, Debug)]
struct Head {
    id: i64,
    hash: String,
}

impl<'a> Batch<'a> {
    /// A part of a transaction that somebody else began and ends.
    pub(super) fn within(connection: &'a Connection) -> Self {
        Self { connection, opened: None, head: None, row: None, open: false }
    }

    /// For what belongs to the same transaction.
    pub(super) fn connection(&self) -> &'a Connection {
        self.connection
    }
}

impl Batch<'_> {
    /// Inserts an audit row.
    ///
    /// # Errors
    /// SQLite's, or something attached to the table from outside stood in the way.
    pub fn audit(&mut self, row: &AuditRow) -> Result<(), LedgerError> {
        self.log(row).map_err(|error| self.failed("the call was not logged", &error))
    }

    fn log(&mut self, row: &AuditRow) -> rusqlite::Result<()> {
        insert_audit(self.connection, row)?;
        self.row = Some((self.connection.last_insert_rowid(), row.session.clone()));
        Ok(())
    }

    /// Appends an event and the audit row that `audit` makes of it; both or none.
    ///
    /// # Errors
    /// SQLite's, or the newest event is damaged so that nothing can follow it.
    pub fn event(
        &mut self,
        session: &str,
        kind: &str,
        content: &str,
        audit: impl FnOnce(&Appended) -> AuditRow,
    ) -> Result<Appended, LedgerError> {
        let before = self.head.clone();
        let written = self.both_or_none("the event was not appended", |batch| {
            let head = batch.head()?;
            let id = next_id(head.id)?;
            let ts = crate::audit::timestamp(jiff::Timestamp::now());
            let hash = chain::event_hash(id, &ts, session, kind, content, &head.hash);
            insert_one(
                batch.connection,
                "INSERT INTO memory_events (id, ts, session, kind, content, prev_hash, hash) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                (id, &ts, session, kind, content, &head.hash, &hash),
            )?;
            batch.head = Some(Head { id, hash: hash.clone() });
            let appended = Appended { id, ts, hash, last_event_id: id };
            batch.log(&audit(&appended))?;
            Ok(appended)
        });
        if written.is_err() {
            self.head = before;
        }
        written
    }

    /// Writes a checkpoint at the newest event and the audit row that `audit` makes of it; both or none.
    ///
    /// # Errors
    /// As [`Batch::event`].
    pub fn checkpoint(
        &mut self,
        session: &str,
        summary: &str,
        audit: impl FnOnce(&Appended) -> AuditRow,
    ) -> Result<Appended, LedgerError> {
        self.both_or_none("the checkpoint was not written", |batch| {
            let head = batch.head()?;
            let newest = newest(batch.connection, "memory_checkpoints")?;
            let (last_id, previous) = newest.unwrap_or((0, None));
            let id = next_id(last_id)?;
            // A NULL hash (a fault that verification reports) is followed as if nothing stood there.
            let previous = previous.unwrap_or_else(|| GENESIS.to_owned());
            let ts = crate::audit::timestamp(jiff::Timestamp::now());
            let hash = chain::checkpoint_hash(id, &ts, session, summary, head.id, &head.hash, &previous);
            insert_one(
                batch.connection,
                "INSERT INTO memory_checkpoints (id, ts, session, summary, last_event_id, head_hash, hash) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                (id, &ts, session, summary, head.id, &head.hash, &hash),
            )?;
            let appended = Appended { id, ts, hash, last_event_id: head.id };
            batch.log(&audit(&appended))?;
            Ok(appended)
        })
    }

    fn both_or_none(
        &mut self,
        doing: &str,
        write: impl FnOnce(&mut Self) -> Result<Appended, WriteFault>,
    ) -> Result<Appended, LedgerError> {
        run(self.connection, "SAVEPOINT one").map_err(|error| self.failed(doing, &error))?;
        let written = write(self);
        let undone = match written {
            Ok(_) => run(self.connection, "RELEASE one"),
            Err(_) => {
                run(self.connection, "ROLLBACK TO one").and_then(|()| run(self.connection, "RELEASE one"))
            }
        };
        match (written, undone) {
            (Ok(appended), Ok(())) => Ok(appended),
            (Err(WriteFault::Damaged(what)), Ok(())) => Err(LedgerError {
                reach: Reach::Row,
                error: ToolError::new(ErrorCode::Corrupt, format!("{doing}: {what}; run verify_chain")),
            }),
            (Err(WriteFault::Sqlite(error)), _) => Err(self.failed(doing, &error)),
            (_, Err(error)) => Err(batch_error(doing, &error)),
        }
    }

    fn head(&mut self) -> Result<Head, WriteFault> {
        if let Some(head) = &self.head {
            return Ok(head.clone());
        }
        let head = match newest(self.connection, "memory_events")? {
            None => Head { id: 0, hash: GENESIS.to_owned() },
            Some((id, Some(hash))) => Head { id, hash },
            Some((id, None)) => return Err(WriteFault::Damaged(format!("event {id} has no hash to follow"))),
        };
        self.head = Some(head.clone());
        Ok(head)
    }

    /// Some errors roll the whole transaction back (<https://sqlite.org/lang_transaction.html>, "Response
    /// To Errors Within A Transaction"), a trigger's RAISE(ROLLBACK) among them: then nothing stands.
    fn failed(&self, doing: &str, error: &rusqlite::Error) -> LedgerError {
        let mut failed = batch_error(doing, error);
        if !self.connection.is_autocommit() && !diagnose::is_of_the_file(error) {
            failed.reach = Reach::Row;
        }
        failed
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if self.open
            && !self.connection.is_autocommit()
            && let Err(error) = run(self.connection, "ROLLBACK")
        {
            tracing::error!("cannot roll back: {error}");
        }
    }
}

/// Inserts one audit row by the fixed statement; also for write workers, inside the transaction of the
/// agent's statement.
///
/// # Errors
/// SQLite's; also when a trigger swallowed the row.
pub fn insert_audit(connection: &Connection, row: &AuditRow) -> rusqlite::Result<()> {
    insert_one(
        connection,
        "INSERT INTO query_log (ts, session, tool, query, ok, rows, error, duration_ms, detail) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        (
            &row.ts,
            &row.session,
            &row.tool,
            &row.query,
            row.ok,
            row.rows,
            &row.error,
            row.duration_ms,
            &row.detail,
        ),
    )
}

/// Inserts exactly one row. A trigger with RAISE(IGNORE) makes an insert succeed without one.
fn insert_one(connection: &Connection, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<()> {
    match connection.prepare_cached(sql)?.execute(values)? {
        1 => Ok(()),
        changed => Err(rusqlite::Error::StatementChangedRows(changed)),
    }
}

pub(super) fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

/// The newest row's id and hash; the hash is `None` where it is no text of a sane length.
fn newest(connection: &Connection, table: &str) -> rusqlite::Result<Option<(i64, Option<String>)>> {
    let sql = match table {
        "memory_events" => "SELECT id, hash FROM memory_events ORDER BY id DESC LIMIT 1",
        _ => "SELECT id, hash FROM memory_checkpoints ORDER BY id DESC LIMIT 1",
    };
    let mut statement = connection.prepare_cached(sql)?;
    let row = |row: &rusqlite::Row<'_>| {
        let hash = row.get_ref(1)?.as_str().ok().filter(|hash| hash.len() <= 1024);
        Ok((row.get(0)?, hash.map(str::to_owned)))
    };
    statement.query_row([], row).optional()
}

enum WriteFault {
    Sqlite(rusqlite::Error),
    Damaged(String),
}

impl From<rusqlite::Error> for WriteFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

fn next_id(last: i64) -> Result<i64, WriteFault> {
    last.max(0).checked_add(1).ok_or_else(|| WriteFault::Damaged(format!("no id can follow {last}")))
}

pub(super) fn batch_error(doing: &str, error: &rusqlite::Error) -> LedgerError {
    LedgerError { reach: Reach::Batch, error: diagnose::tool_error(doing, error) }
}
