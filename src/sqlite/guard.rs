//! The connection that agent SQL runs on: authorizer, limits, watch; and the one way to compile on it.
//!
//! Only this module makes a [`Guarded`], so whoever holds one cannot run unguarded SQL by accident. It
//! takes no decision of its own: `policy::decide` judges what the authorizer reports. A panic inside a
//! callback denies (rusqlite catches it), so a bug refuses and does not allow.

use super::fault::{Fault, empty_statement, multiple_statements};
use super::heard::action_of;
pub use super::judged::Judged;
use super::objects::Catalog;
use super::program;
use super::watch::{PROGRESS_OPS, Watch};
use crate::error::ErrorCode;
use crate::policy::decide::{self, Facts};
use crate::policy::{Action, ActionKind, Bounds, ConnectionKind, Narrowing, Policy, Protected, Refusal};
use rusqlite::config::DbConfig;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::hooks::{AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Batch, CachedStatement, Connection, MAIN_DB, OpenFlags};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of one value: large rows stay editable, a bomb does not fit.
const MAX_VALUE_BYTES: i32 = 64 * 1024 * 1024;
/// Bytes of one statement; values belong into `params`.
pub const MAX_SQL_BYTES: usize = 1_000_000;
/// Statements kept compiled.
const KEPT_STATEMENTS: usize = 64;

/// Heap of a worker that reads, and of one that writes (`PRAGMA hard_heap_limit`): two readers, a writer
/// and the server together stay under 300 MB. A value of 60 MB can be read, and written as a parameter.
const READ_HEAP_BYTES: i64 = 62 * 1024 * 1024;
const WRITE_HEAP_BYTES: i64 = 124 * 1024 * 1024;

/// A connection behind the guard.
pub struct Guarded {
    conn: Connection,
    opened: Opened,
    ears: Arc<Mutex<Ears>>,
    watch: Watch,
    protected: &'static Protected,
    judged: RefCell<HashMap<&'static str, HashMap<String, Arc<Judged>>>>,
    /// `PRAGMA schema_version` when it was found out what is hidden.
    hidden_at: Cell<Option<i64>>,
    /// `PRAGMA schema_version` when what is remembered was judged.
    schema_version: Cell<Option<i64>>,
    /// What the names stand for, and `PRAGMA schema_version` when that was read.
    catalog: RefCell<Option<(i64, Arc<Catalog>)>>,
}

/// What a connection was opened with.
#[derive(Clone, Debug)]
struct Opened {
    path: PathBuf,
    kind: ConnectionKind,
    immutable: bool,
}

/// A compiled and accepted statement.
pub struct Compiled<'c> {
    /// Ready to bind, and to step within [`Guarded::enter`].
    pub statement: CachedStatement<'c>,
    /// What it does.
    pub judged: Arc<Judged>,
}

/// While it lives, an accepted statement or the audit row's runs; afterwards the connection is the server's own again.
pub struct Running<'g>(&'g Guarded);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.hear(|ears| {
            ears.phase = Phase::Trusted;
            ears.approved = None;
        });
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The server's own SQL.
    Trusted,
    /// Agent SQL is compiled: listen.
    Compile,
    /// What follows the first statement: nothing may.
    Tail,
    /// An accepted statement runs: nothing new, but what virtual tables do to their own tables.
    Run,
    /// The server asks what a text would read: everything is heard, nothing runs.
    Overhear,
    /// The audit row is written: nothing that somebody attached to its table may run along.
    Audit,
}

struct Ears {
    phase: Phase,
    policy: Option<&'static Policy>,
    heard: Vec<Action>,
    refused: Option<Refusal>,
    approved: Option<Arc<Judged>>,
    bounds: Arc<Bounds>,
}

impl Guarded {
    /// Opens the file behind the guard; `immutable` is for readers of a file that nobody writes.
    ///
    /// # Errors
    /// What SQLite reports when the file cannot be opened.
    pub fn open(
        path: &Path,
        kind: ConnectionKind,
        immutable: bool,
        protected: &'static Protected,
        watch: Watch,
    ) -> rusqlite::Result<Self> {
        let reads = kind == ConnectionKind::ReadOnly;
        let access = if reads { OpenFlags::SQLITE_OPEN_READ_ONLY } else { OpenFlags::SQLITE_OPEN_READ_WRITE };
        let mut conn = if reads && immutable {
            super::open::immutable(path)?
        } else {
            Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?
        };
        // SQLite opens what it may not write to read only, and would keep to that when the rights are back.
        if !reads && conn.is_readonly(MAIN_DB)? {
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY);
            return Err(rusqlite::Error::SqliteFailure(code, Some("it is read-only".to_owned())));
        }
        restrict(&conn)?;
        let heap = if reads { READ_HEAP_BYTES } else { WRITE_HEAP_BYTES };
        conn.pragma_update(None, "hard_heap_limit", heap)?;
        conn.pragma_update(None, "foreign_keys", true)?;
        if reads {
            conn.pragma_update(None, "query_only", true)?;
        } else {
            // It reads the schema, for which a reader would have to wait before it has a deadline.
            conn.execute_batch(super::open::POWER_SAFE)?;
            conn.execute_batch(super::open::BOUNDED_JOURNAL)?;
        }
        conn.set_prepared_statement_cache_capacity(KEPT_STATEMENTS);
        let ears = Arc::new(Mutex::new(Ears {
            phase: Phase::Trusted,
            policy: None,
            heard: Vec::new(),
            refused: None,
            approved: None,
            bounds: Arc::default(),
        }));
        let listener = Arc::clone(&ears);
        conn.authorizer(Some(move |context: AuthContext<'_>| lock(&listener).answer(&context)))?;
        let progress = watch.clone();
        conn.progress_handler(PROGRESS_OPS, Some(move || progress.must_stop()))?;
        let busy = watch.clone();
        conn.busy_handler(Some(move |tries| busy.wait_for_lock(tries)))?;
        let judged = RefCell::default();
        let (schema_version, hidden_at) = (Cell::new(None), Cell::new(None));
        let catalog = RefCell::default();
        let opened = Opened { path: path.to_path_buf(), kind, immutable };
        Ok(Self { conn, opened, ears, watch, protected, judged, hidden_at, schema_version, catalog })
    }

    /// One more connection to the same file, under the same watch and the same bounds.
    ///
    /// # Errors
    /// What SQLite reports when the file cannot be opened.
    pub(super) fn another(&self) -> rusqlite::Result<Self> {
        let Opened { path, kind, immutable } = &self.opened;
        let another = Self::open(path, *kind, *immutable, self.protected, self.watch.clone())?;
        let narrowing = self.hear(|ears| ears.bounds.narrowing.clone());
        Ok(another.narrowed(narrowing))
    }

    /// The same under what the user's policy file takes away.
    #[must_use]
    pub fn narrowed(self, narrowing: Narrowing) -> Self {
        self.set_bounds(Bounds { narrowing, ..Bounds::default() });
        self
    }

    /// What the user's policy file takes away, on the schema as it is now.
    ///
    /// # Errors
    /// What SQLite reports while the schema is read: who cannot say what is hidden shows nothing.
    pub fn bounds(&self) -> Result<Arc<Bounds>, Fault> {
        let known = self.hear(|ears| Arc::clone(&ears.bounds));
        if !known.narrowing.hides() {
            return Ok(known);
        }
        let now = self.version().map_err(|error| self.fault(&error))?;
        if self.hidden_at.get() == Some(now) {
            return Ok(known);
        }
        let hidden = super::hiding::hidden(self, &known.narrowing).map_err(|error| self.fault(&error))?;
        self.set_bounds(Bounds { narrowing: known.narrowing.clone(), hidden });
        self.hidden_at.set(Some(now));
        Ok(self.hear(|ears| Arc::clone(&ears.bounds)))
    }

    /// What was accepted under other bounds is forgotten.
    fn set_bounds(&self, bounds: Bounds) {
        self.forget();
        self.hear(|ears| ears.bounds = Arc::new(bounds));
    }

    /// What a text would do, without judging or running it, and whether it compiles. Pragmas are heard and
    /// not carried out.
    pub(super) fn overhear(&self, sql: &str) -> (bool, Vec<Action>) {
        self.hear(|ears| {
            ears.phase = Phase::Overhear;
            ears.heard.clear();
        });
        let compiled = self.conn.prepare(sql).map(drop);
        let heard = self.hear(|ears| {
            ears.phase = Phase::Trusted;
            std::mem::take(&mut ears.heard)
        });
        (compiled.is_ok(), heard)
    }

    /// The connection, for the server's own SQL within `sqlite/`.
    pub(super) fn trusted(&self) -> &Connection {
        &self.conn
    }

    /// The same, to set hooks on.
    pub(super) fn trusted_mut(&mut self) -> &mut Connection {
        &mut self.conn
    }

    /// The watch over what runs here.
    #[must_use]
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// The server's own objects.
    #[must_use]
    pub fn protected(&self) -> &'static Protected {
        self.protected
    }

    /// Compiles one statement and judges it.
    ///
    /// # Errors
    /// Refusals, SQLite's own errors, more than one statement or none, NUL in the text, a text that is
    /// too long.
    pub fn compile(&self, policy: &'static Policy, sql: &str) -> Result<Compiled<'_>, Fault> {
        check_text(sql)?;
        let compiled = self.compile_for_what_is_known(policy, sql);
        let Err(fault) = compiled else { return compiled };
        // SQLite compiles for the schema that this connection has read last, and finds out at the first step that there is
        // another; what does not compile has no first step.
        let before = self.schema_version.get();
        match self.refresh_schema() {
            Ok(()) if self.schema_version.get() != before => self.compile_for_what_is_known(policy, sql),
            _ => Err(fault),
        }
    }

    fn compile_for_what_is_known(&self, policy: &'static Policy, sql: &str) -> Result<Compiled<'_>, Fault> {
        if let Some(table) = self.bounds()?.hidden.joined(sql) {
            return Err(Refusal::HiddenJoin { table: table.to_owned() }.into());
        }
        let mut known = self.known(policy, sql);
        if known.as_ref().is_some_and(|judged| judged.explain) {
            // Unlike any other statement, one that is explained is not compiled again by itself when the
            // schema has changed.
            self.refresh_schema()?;
            known = self.known(policy, sql);
        }
        if known.is_none()
            && let Some(compiled) = self.compile_and_judge(policy, sql)?
        {
            self.remember(policy, sql, &compiled.judged);
            return Ok(compiled);
        }
        for _ in 0..3 {
            let judged = match known.take() {
                Some(judged) => judged,
                None => Arc::new(self.judge_twice(policy, sql)?),
            };
            let statement = self.listen(policy, || self.conn.prepare_cached(sql))?;
            // The schema may have changed since: what was compiled now must be what was judged.
            if self.hear(|ears| ears.heard.iter().all(|action| judged.approved.contains(action))) {
                self.remember(policy, sql, &judged);
                return Ok(Compiled { statement, judged });
            }
            statement.discard();
        }
        Err(Fault::error(ErrorCode::Busy, "the schema keeps changing under the statement: try again"))
    }

    fn known(&self, policy: &Policy, sql: &str) -> Option<Arc<Judged>> {
        self.judged.borrow().get(policy.id).and_then(|known| known.get(sql)).map(Arc::clone)
    }

    fn remember(&self, policy: &'static Policy, sql: &str, judged: &Arc<Judged>) {
        let mut known = self.judged.borrow_mut();
        let of_policy = known.entry(policy.id).or_default();
        if of_policy.len() >= KEPT_STATEMENTS * 2 {
            of_policy.clear();
        }
        of_policy.insert(sql.to_owned(), Arc::clone(judged));
    }

    /// Forgets what was judged and compiled under another schema, and reads the schema anew then. Within
    /// a transaction, what is compiled afterwards is compiled for the schema that it will meet.
    ///
    /// # Errors
    /// What SQLite reports while it reads the schema.
    pub(super) fn refresh_schema(&self) -> Result<(), Fault> {
        let now = self.version().map_err(|error| self.fault(&error))?;
        if self.schema_version.get() == Some(now) {
            return Ok(());
        }
        self.forget();
        // Stepping a SELECT is what makes SQLite compare its copy of the schema with the file's.
        self.conn
            .query_row("SELECT count(*) FROM (SELECT 1 FROM main.sqlite_schema LIMIT 1)", [], |_| Ok(()))
            .map_err(|error| self.fault(&error))?;
        self.schema_version.set(Some(now));
        Ok(())
    }

    /// Forgets what was judged and compiled so far.
    pub(super) fn forget(&self) {
        self.judged.borrow_mut().clear();
        self.conn.flush_prepared_statement_cache();
        self.schema_version.set(None);
        self.hidden_at.set(None);
        self.catalog.replace(None);
    }

    /// The number that changes with the schema (<https://sqlite.org/pragma.html#pragma_schema_version>).
    fn version(&self) -> rusqlite::Result<i64> {
        self.conn.prepare_cached("PRAGMA main.schema_version")?.query_row([], |row| row.get(0))
    }

    /// What the names stand for; read once for each schema, since it takes as long as there are many tables.
    fn catalog(&self) -> rusqlite::Result<Arc<Catalog>> {
        let now = self.version()?;
        if let Some((version, catalog)) = &*self.catalog.borrow()
            && *version == now
        {
            return Ok(Arc::clone(catalog));
        }
        // Changed in between, it stands under a number that does not come again.
        let catalog = Arc::new(Catalog::read(&self.conn)?);
        self.catalog.replace(Some((now, Arc::clone(&catalog))));
        Ok(catalog)
    }

    /// Judges a statement as the schema is now, whatever was remembered of it.
    ///
    /// # Errors
    /// As [`Self::compile`].
    pub fn judge_afresh(&self, policy: &'static Policy, sql: &str) -> Result<(), Fault> {
        self.bounds()?;
        self.judge_twice(policy, sql).map(|_| ())
    }

    /// A virtual table connects while the first statement that names it is compiled, and its own SQL is
    /// heard then too. So a refusal counts only the second time round.
    fn judge_twice(&self, policy: &'static Policy, sql: &str) -> Result<Judged, Fault> {
        match self.hear_and_judge(policy, sql) {
            Err(Fault::Refused(_)) => self.hear_and_judge(policy, sql),
            other => other,
        }
    }

    /// Lets an accepted statement run while the answer lives.
    #[must_use]
    pub fn enter(&self, judged: &Arc<Judged>) -> Running<'_> {
        self.hear(|ears| {
            ears.phase = Phase::Run;
            ears.policy = Some(judged.policy);
            ears.refused = None;
            ears.approved = Some(Arc::clone(judged));
        });
        Running(self)
    }

    /// Lets the audit row of a statement that has run be written while the answer lives: rows of the
    /// server's own tables, and nothing else by way of a trigger or an index that somebody hung on them.
    /// Virtual tables write what they have gathered when the next statement begins, which is this one.
    pub(super) fn enter_audit(&self, judged: &Arc<Judged>) -> Running<'_> {
        self.hear(|ears| {
            ears.phase = Phase::Audit;
            ears.refused = None;
            ears.approved = Some(Arc::clone(judged));
        });
        Running(self)
    }

    /// The fault of a failed compilation or step: the refusal behind it, if there is one.
    #[must_use]
    pub fn fault(&self, error: &rusqlite::Error) -> Fault {
        if let Some(refusal) = self.hear(|ears| ears.refused.take()) {
            return Fault::Refused(refusal);
        }
        Fault::of(error, &self.watch)
    }

    /// Whether the schema changed under a statement so that it wanted something it was not accepted
    /// for; it is forgotten then, and compiling it again judges what it does now.
    #[must_use]
    pub fn surprised(&self, policy: &Policy, sql: &str) -> bool {
        let surprised = self.hear(|ears| ears.phase == Phase::Run && ears.refused.is_some());
        if surprised && let Some(of_policy) = self.judged.borrow_mut().get_mut(policy.id) {
            of_policy.remove(sql);
        }
        surprised
    }

    /// Compiles a statement that nothing can stand behind, and judges it by that one compilation. None: it takes
    /// the long way, which also has the words for what is refused.
    fn compile_and_judge(&self, policy: &'static Policy, sql: &str) -> Result<Option<Compiled<'_>>, Fault> {
        if !is_surely_one(sql) {
            return Ok(None);
        }
        let Ok(statement) = self.listen(policy, || self.conn.prepare_cached(sql)) else { return Ok(None) };
        let actions = self.hear(|ears| std::mem::take(&mut ears.heard));
        // Nothing is heard of a statement that was compiled before under another policy.
        if actions.is_empty() {
            return Ok(None);
        }
        let (readonly, explain) = (statement.readonly(), statement.is_explain() != 0);
        match self.judge(policy, sql, actions, readonly, explain) {
            Ok(judged) => Ok(Some(Compiled { statement, judged: Arc::new(judged) })),
            Err(Fault::Refused(_)) => {
                statement.discard();
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    fn hear_and_judge(&self, policy: &'static Policy, sql: &str) -> Result<Judged, Fault> {
        let mut batch = Batch::new(&self.conn, sql);
        let statement = self.listen(policy, || batch.next())?.ok_or_else(empty_statement)?;
        let (readonly, explain) = (statement.readonly(), statement.is_explain() != 0);
        drop(statement);
        let actions = self.hear(|ears| {
            ears.phase = Phase::Tail;
            std::mem::take(&mut ears.heard)
        });
        let rest = batch.next();
        self.hear(|ears| {
            ears.phase = Phase::Trusted;
            ears.refused = None;
        });
        if !matches!(rest, Ok(None)) {
            return Err(multiple_statements().into());
        }
        self.judge(policy, sql, actions, readonly, explain)
    }

    /// Judges what was heard while a statement was compiled.
    fn judge(
        &self,
        policy: &'static Policy,
        sql: &str,
        actions: Vec<Action>,
        readonly: bool,
        explain: bool,
    ) -> Result<Judged, Fault> {
        let changes =
            |action: &Action| decide::is_row_write(action.kind) || decide::is_structural(action.kind);
        // Who cannot say what a name stands for judges nothing: a schema that cannot be read is an error.
        let catalog = match !explain && actions.iter().any(changes) {
            true => Some(self.catalog().map_err(|error| self.fault(&error))?),
            false => None,
        };
        let bounds = self.hear(|ears| Arc::clone(&ears.bounds));
        let judge =
            |objects: &Catalog| decide::judge(policy, self.protected, &bounds, objects, &actions, readonly);
        let verdict = match (&catalog, explain) {
            // Nothing of an explained statement is carried out; what acts while compiling was judged.
            (_, true) => Ok(Facts::default()),
            (Some(catalog), false) => judge(catalog),
            (None, false) => judge(&Catalog::default()),
        };
        let facts = match decide::may_be_idle(&verdict) && program::does_nothing(self, policy, sql) {
            true => Facts { nothing: true, ..Facts::default() },
            false => verdict?,
        };
        Ok(Judged { facts, readonly, explain, catalog, policy, approved: actions.into_iter().collect() })
    }

    /// Compiles under the authorizer's ears.
    fn listen<T>(
        &self,
        policy: &'static Policy,
        compile: impl FnOnce() -> rusqlite::Result<T>,
    ) -> Result<T, Fault> {
        self.hear(|ears| {
            ears.phase = Phase::Compile;
            ears.policy = Some(policy);
            ears.heard.clear();
            ears.refused = None;
        });
        let result = compile();
        self.hear(|ears| ears.phase = Phase::Trusted);
        result.map_err(|error| self.fault(&error))
    }

    fn hear<T>(&self, work: impl FnOnce(&mut Ears) -> T) -> T {
        work(&mut lock(&self.ears))
    }
}

impl Ears {
    fn answer(&mut self, context: &AuthContext<'_>) -> Authorization {
        match self.phase {
            Phase::Trusted => Authorization::Allow,
            Phase::Tail => Authorization::Deny,
            Phase::Audit => {
                let action = action_of(context);
                let of_module =
                    self.approved.as_ref().is_some_and(|judged| judged.while_logging(&self.bounds, &action));
                if of_module { Authorization::Allow } else { super::ledger_guard::may_write_audit(context) }
            }
            Phase::Compile => {
                let action = action_of(context);
                let bounds = &self.bounds;
                let judge = |policy| decide::at_once(policy, bounds, &action);
                let verdict = self.policy.map_or(Err(Refusal::Unrecorded), judge);
                self.heard.push(action);
                self.deny_if(verdict)
            }
            Phase::Run => {
                let action = action_of(context);
                let verdict = match &self.approved {
                    Some(judged) => judged.while_running(&self.bounds, &action),
                    None => Err(Refusal::Unrecorded),
                };
                self.deny_if(verdict)
            }
            Phase::Overhear => {
                let action = action_of(context);
                let acts = action.kind == ActionKind::Pragma;
                self.heard.push(action);
                if acts { Authorization::Deny } else { Authorization::Allow }
            }
        }
    }

    fn deny_if(&mut self, verdict: Result<(), Refusal>) -> Authorization {
        match verdict {
            Ok(()) => Authorization::Allow,
            Err(refusal) => {
                self.refused.get_or_insert(refusal);
                Authorization::Deny
            }
        }
    }
}

/// Limits and switches of every connection that meets agent SQL
/// (<https://sqlite.org/security.html>, <https://sqlite.org/c3ref/c_dbconfig_defensive.html>).
fn restrict(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false)?;
    conn.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)?;
    conn.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, 2_000_000)?;
    conn.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    conn.pragma_update(None, "cell_size_check", true)?;
    Ok(())
}

fn check_text(sql: &str) -> Result<(), Fault> {
    if sql.len() > MAX_SQL_BYTES {
        return Err(Fault::error(
            ErrorCode::TooBig,
            format!(
                "the statement has {} bytes, more than {MAX_SQL_BYTES}; give long values in `params`",
                sql.len()
            ),
        ));
    }
    if sql.as_bytes().contains(&0) {
        return Err(Fault::error(
            ErrorCode::SyntaxError,
            "the statement holds a NUL character, which would hide what follows it; remove it",
        ));
    }
    Ok(())
}

/// Whether nothing can stand behind the first statement: SQLite goes on to another only behind a `;`
/// (<https://sqlite.org/c3ref/prepare.html>). Also false for many a text of one statement, which is then compiled
/// once more.
fn is_surely_one(sql: &str) -> bool {
    !sql.trim_end_matches(|c: char| c == ';' || c.is_ascii_whitespace()).contains(';')
}

fn lock(ears: &Mutex<Ears>) -> std::sync::MutexGuard<'_, Ears> {
    ears.lock().unwrap_or_else(PoisonError::into_inner)
}
