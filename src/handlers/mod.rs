//! What the tools do: one file per family, bound to tools.yaml by the generated dispatch.
//!
//! A handler turns checked arguments into work for a worker or the store, and the answer into the text
//! an agent reads. It runs no SQL itself and names no protocol. What every handler needs stands here:
//! [`Core`], the parts of the running server, and [`Call`], one call with its notes for the log.

pub mod chain;
pub mod confirm;
pub mod explore;
mod fate;
mod noted;
mod policy;
pub mod prompts;
pub mod query;
mod required;
pub mod resources;
pub mod restore;
pub mod rows;
pub mod schema;
pub mod search;
pub mod snapshot;
pub mod statement;
pub mod structured;
mod together;
pub mod view;
mod words;

pub use noted::note_params;
pub use required::{required_reason, required_text};

use crate::audit::{AuditRow, timestamp};
use crate::config::Settings;
use crate::confirm::Question;
use crate::error::{ErrorCode, ToolError};
use crate::generated::PolicyId;
use crate::outcome::ProgressReporter;
use crate::policy_file::PolicyFile;
use crate::spec::model::Format;
use crate::sqlite::fault::Fault;
use crate::sqlite::identity::Opened;
use crate::store::audit_log::AuditLog;
use crate::store::reader::Reader;
use crate::store::{Store, TurnGuard};
use crate::surface::Surface;
use crate::worker::pool::{Attend, JobError, Pool, Terms};
use crate::worker::protocol::{Answer, Work};
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

// The generated dispatch: from a tool or resource to its handler.
include!(concat!(env!("OUT_DIR"), "/dispatch.rs"));

/// How long a statement that reads the log waits for the gathered rows to be written.
const LOG_WAIT: Duration = Duration::from_millis(100);

/// Bytes of a statement that go into the log.
const MAX_LOGGED_QUERY: usize = 100_000;

/// The parts of the running server that handlers use.
pub struct Core {
    /// The settings as they were at the start. The limits of a call are its surface's: files that are read again may
    /// change them.
    pub settings: Settings,
    /// The file, to see whether it is still there.
    opened: Option<Opened>,
    /// The active tools; replaced as a whole when overlays are read again.
    surface: RwLock<Arc<Surface>>,
    /// The workers.
    pub pool: Pool,
    /// The writing side; none with --read-only.
    pub store: Option<Store>,
    /// The reader of the chain; none where no tool reads it.
    pub reader: Option<Reader>,
    /// The id of this server run.
    pub session: String,
    /// The copy of the log in a file, if asked for.
    pub audit_log: Option<AuditLog>,
    /// The policy file and its digest.
    policy_file: RwLock<Arc<PolicyFile>>,
    /// The digests of manifest and policy that the log knows to be in force; none before the first row.
    marked: Mutex<Option<(String, String)>>,
    /// Changes that wait for the turn.
    together: together::Together,
    calls: AtomicU64,
    schema_changes: watch::Sender<u64>,
}

impl Core {
    /// The parts put together.
    #[must_use]
    pub fn new(
        settings: Settings,
        surface: Surface,
        pool: Pool,
        store: Option<Store>,
        reader: Option<Reader>,
        session: String,
        audit_log: Option<AuditLog>,
    ) -> Self {
        let opened = match &store {
            Some(store) => Some(store.opened().clone()),
            None => Opened::of(&settings.db, None).ok(),
        };
        Self {
            settings,
            opened,
            surface: RwLock::new(Arc::new(surface)),
            pool,
            store,
            reader,
            session,
            audit_log,
            policy_file: RwLock::new(Arc::new(PolicyFile::none())),
            marked: Mutex::default(),
            together: together::Together::default(),
            calls: AtomicU64::new(0),
            schema_changes: watch::Sender::new(0),
        }
    }

    /// Looks whether the file is still the one that was opened.
    ///
    /// # Errors
    /// `FILE_GONE`, with what to do.
    pub fn check_file(&self) -> Result<(), ToolError> {
        self.opened.as_ref().map_or(Ok(()), Opened::check)
    }

    /// Counts a change to the list of tables and views made through this server.
    pub fn schema_changed(&self) {
        self.schema_changes.send_modify(|changes| *changes += 1);
    }

    /// Tells of every such change from now on.
    #[must_use]
    pub fn schema_changes(&self) -> watch::Receiver<u64> {
        self.schema_changes.subscribe()
    }

    /// The active tools. A call keeps those that it began with.
    #[must_use]
    pub fn surface(&self) -> Arc<Surface> {
        Arc::clone(&self.surface.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts other tools, and other limits, in the place of the active ones.
    pub fn replace_surface(&self, surface: Arc<Surface>) {
        *self.surface.write().unwrap_or_else(PoisonError::into_inner) = surface;
    }

    fn marked(&self) -> std::sync::MutexGuard<'_, Option<(String, String)>> {
        self.marked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a handler gives back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The text for the agent.
    pub text: String,
    /// Rows returned or changed, for the log.
    pub rows: Option<u64>,
    /// The result as data, for profiles that send it.
    pub structured: Option<Value>,
    /// A question that must be answered before the call can go on.
    pub question: Option<Question>,
}

impl Reply {
    /// A reply that is text alone.
    #[must_use]
    pub fn text(text: impl Into<String>, rows: Option<u64>) -> Self {
        Self { text: text.into(), rows, ..Self::default() }
    }
}

/// One call on its way through a handler.
pub struct Call<'a> {
    /// The server's parts.
    pub core: &'a Core,
    /// The tools that were active when the call began.
    pub surface: Arc<Surface>,
    /// What was called, as the log names it: a tool, or a request such as `resources/read`.
    pub name: &'a str,
    /// The policy it runs under.
    pub policy: PolicyId,
    /// Cancelled when the client no longer wants the answer.
    pub cancel: CancellationToken,
    /// Where to report progress, if the client asked.
    pub progress: Option<ProgressReporter>,
    format: Format,
    person: confirm::Person,
    policy_file: Arc<PolicyFile>,
    number: u64,
    began: Instant,
    ts: String,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    query: Option<String>,
    detail: Map<String, Value>,
    recorded: Option<AuditRow>,
}

impl<'a> Call<'a> {
    /// A call that begins now.
    #[must_use]
    pub fn new(
        core: &'a Core,
        surface: Arc<Surface>,
        name: &'a str,
        policy: PolicyId,
        cancel: CancellationToken,
        progress: Option<ProgressReporter>,
    ) -> Self {
        let number = core.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let ts = timestamp(jiff::Timestamp::now());
        Self {
            core,
            format: surface.profile().format,
            surface,
            name,
            policy,
            cancel,
            progress,
            person: confirm::Person::default(),
            policy_file: core.policy_file(),
            number,
            began: Instant::now(),
            ts,
            notes: Mutex::default(),
        }
    }

    /// The call with its results in this form, whatever the profile's is.
    #[must_use]
    pub fn showing(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// The call's number in this server run, by which its row in the log can be found.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How results look.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Notes the statement or pattern for the log.
    pub fn note_query(&self, query: &str) {
        self.notes().query = Some(noted::shortened_text(query, MAX_LOGGED_QUERY));
    }

    /// Notes an argument that matters for the log, shortened where it is long.
    pub fn note(&self, name: &str, value: impl Into<Value>) {
        self.note_whole(name, noted::shortened(value.into()));
    }

    /// The same with every byte of it, for what the log is to keep and nothing else does.
    pub fn note_whole(&self, name: &str, value: impl Into<Value>) {
        self.notes().detail.insert(name.to_owned(), value.into());
    }

    /// The audit row of this call as it stands now.
    #[must_use]
    pub fn audit_row(&self, rows: Option<u64>, error: Option<&str>) -> AuditRow {
        let notes = self.notes();
        let mut detail = notes.detail.clone();
        let digests = self.digests();
        if self.core.marked().as_ref() != Some(&digests) {
            detail.insert("manifest_sha256".to_owned(), digests.0.into());
            detail.insert("policy_sha256".to_owned(), digests.1.into());
        }
        AuditRow {
            ts: self.ts.clone(),
            session: self.core.session.clone(),
            tool: self.name.to_owned(),
            query: notes.query.clone(),
            ok: error.is_none(),
            rows: rows.and_then(|rows| i64::try_from(rows).ok()),
            error: error.map(str::to_owned),
            duration_ms: i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX),
            detail: (!detail.is_empty()).then(|| Value::Object(detail).to_string()),
        }
    }

    /// Remembers that the call's row was committed together with its change.
    pub fn recorded(&self, row: AuditRow) {
        self.mark();
        self.notes().recorded = Some(row);
    }

    /// Gives work that reads to a worker.
    ///
    /// # Errors
    /// Whatever ended it, in words.
    pub async fn read(&self, work: Work) -> Result<Answer, ToolError> {
        self.core.check_file()?;
        let attend = LogKeeper { core: self.core, turn: None };
        let terms = self.terms();
        let may_roll_back = self.core.store.as_ref().filter(|store| store.is_in_rollback_mode());
        let again = may_roll_back.map(|store| (store, work.clone()));
        let read = match (self.core.pool.read(work, &terms, &attend).await, again) {
            // What a dead process left half written a reader may not roll back; the server's own connection does.
            (Err(JobError::Fault(Fault::CutOff(_))), Some((store, work))) => {
                store.max_id_of_session(&self.core.session).await?;
                self.core.pool.read(work, &terms, &attend).await
            }
            (read, _) => read,
        };
        read.map_err(|error| self.explain(error))
    }

    /// Writes the rows that are gathered for the log, as far as that can be done at once.
    pub(super) async fn write_log(&self) {
        LogKeeper { core: self.core, turn: None }.write_log().await;
    }

    /// Gives work that writes to the writing worker.
    ///
    /// # Errors
    /// Whatever ended it, in words; after a worker's death they say whether the change was committed.
    pub async fn write(&self, work: Work, turn: &TurnGuard) -> Result<Answer, ToolError> {
        self.check_agreed(&work)?;
        let attend = LogKeeper { core: self.core, turn: Some(turn) };
        let changes = !matches!(work, Work::Check { .. } | Work::Try { .. } | Work::Compile { .. });
        match self.core.pool.write(work, &self.terms(), &attend).await {
            Ok(answer) => Ok(answer),
            Err(error) if changes && fate::is_in_doubt(&error) => {
                Err(self.fated(self.fate().await, together::CHANGE, error))
            }
            Err(error) => Err(self.explain(error)),
        }
    }

    /// The turn to write, or the client's cancellation. What is gathered for the log is written first,
    /// if that can be done at once, so that the log keeps the order of the calls.
    ///
    /// # Errors
    /// Cancellation, or a server that does not write.
    pub async fn turn(&self) -> Result<TurnGuard, ToolError> {
        let store = self.store()?;
        let turn = tokio::select! {
            turn = store.turn() => turn,
            () = self.cancel.cancelled() => return Err(words::cancelled()),
        };
        self.core.check_file()?;
        self.note("call", self.number);
        store.flush_audit(Duration::ZERO, Some(&turn)).await;
        Ok(turn)
    }

    /// The writing side.
    ///
    /// # Errors
    /// With --read-only there is none.
    pub fn store(&self) -> Result<&'a Store, ToolError> {
        self.core.store.as_ref().ok_or_else(|| {
            ToolError::new(ErrorCode::Refused, "the server runs with --read-only and writes nothing")
        })
    }

    /// The reader of the chain.
    ///
    /// # Errors
    /// In a profile without chain tools there is none.
    pub fn reader(&self) -> Result<&'a Reader, ToolError> {
        self.core.check_file()?;
        self.core.reader.as_ref().ok_or_else(|| {
            ToolError::new(
                ErrorCode::Refused,
                "this profile keeps no memory; serve the file with --profile memory",
            )
        })
    }

    fn terms(&self) -> Terms {
        let (cancel, owner) = (self.cancel.clone(), Default::default());
        Terms { policy: self.policy.id(), timeout: self.timeout(), cancel, owner }
    }

    fn notes(&self) -> std::sync::MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the gathered rows when a statement is about to read the log.
struct LogKeeper<'a> {
    core: &'a Core,
    turn: Option<&'a TurnGuard>,
}

impl Attend for LogKeeper<'_> {
    async fn write_log(&self) {
        if let Some(store) = &self.core.store {
            store.flush_audit(LOG_WAIT, self.turn).await;
        }
    }
}

/// The error for an answer of another kind of work; it means that this program is wrong.
#[must_use]
pub fn unexpected_answer() -> ToolError {
    ToolError::new(
        ErrorCode::SqlError,
        "the worker gave an answer of another kind; this is a fault in the server",
    )
}
