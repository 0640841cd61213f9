//! The running server: settings, tools, workers and store put together, and one call from start to end.
//!
//! It speaks no protocol and decides nothing about SQL. Every call, whatever becomes of it, leaves a row
//! in the log.

mod overlays;
mod policies;
mod requests;

pub use overlays::compile_only;

use crate::audit::{AuditRow, timestamp};
use crate::config::Settings;
use crate::error::{ErrorCode, StartError, ToolError};
use crate::generated::PolicyId;
use crate::handlers::restore::{self, RestoreInput};
use crate::handlers::{Call, Core, Reply, dispatch, statement};
use crate::outcome::{CallContext, Outcome};
use crate::overlay::{self, Effective};
use crate::policy::Narrowing;
use crate::policy_file;
use crate::render::one_line;
use crate::spec::model::{ErrorStyle, Manifest};
use crate::sqlite::restore::Restored;
use crate::store::audit_log::AuditLog;
use crate::store::reader::Reader;
use crate::store::{Store, StoreSettings};
use crate::surface::{Surface, SurfaceSettings, arguments};
use crate::worker::pool::Pool;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long calls that were stopped may take to write their row, at the end.
const LAST_CALLS: Duration = Duration::from_millis(150);
/// How long rows that could not be written may take to be said on stderr.
const REPORTING: Duration = Duration::from_millis(30);

/// The running server.
pub struct App {
    core: Core,
    watched: overlays::Watched,
    watched_policy: policies::WatchedPolicy,
    /// None of the profile's tools wrote at the start.
    only_read: bool,
    running: AtomicUsize,
    idle: Notify,
}

impl App {
    /// Opens the database and gets everything ready. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// What keeps the file from being served, in one line; exit status 1 or 2. Statements of overlays that do not
    /// compile, a line each; exit status 2.
    pub async fn open(effective: Effective, settings: Settings) -> Result<Self, StartError> {
        let policy = policy_file::load(&settings)?;
        if let Some(warning) = policy_file::warning(&settings) {
            tracing::warn!("{warning}");
        }
        let watched_policy = policies::WatchedPolicy::new(settings.clone());
        let settings = policy.lowered(settings);
        let words = surface_settings(&settings);
        let surface = Surface::new(&effective.manifest, &settings.profile, &words, settings.read_only)?;
        let only_read = !profile_writes(&effective.manifest, &settings.profile);
        let watched = overlays::Watched::new(&effective, &settings.profile);
        for path in overlay::exposed(&settings.tools, &settings.db) {
            tracing::warn!(
                "`{}` lies in the database's folder and is writable: an agent that also edits files there could change its own tools; keep it elsewhere, or take away the right to write",
                path.display()
            );
        }
        let session = uuid::Uuid::new_v4().to_string();
        let audit_log =
            settings.audit_log.as_ref().map(|path| AuditLog::open(path, &settings.db)).transpose()?;
        let store = if settings.read_only {
            None
        } else {
            crate::sqlite::copy::sweep(&settings.db, &settings.snapshot_dir);
            Some(Store::open(StoreSettings {
                path: settings.db.clone(),
                session: session.clone(),
                busy_timeout: settings.busy_timeout,
                keep: settings.audit_keep,
            })?)
        };
        let reads_chain = surface.tools().iter().any(|tool| tool.spec.handler.starts_with("chain."));
        let reader = if reads_chain {
            Some(Reader::open(settings.db.clone(), settings.busy_timeout)?)
        } else {
            // Nothing of this process holds the file; the workers open it.
            crate::sqlite::open::check(&settings.db, settings.busy_timeout, settings.immutable)?;
            None
        };
        let pool = Pool::new(settings.db.clone(), settings.busy_timeout, settings.immutable);
        let has_statements = surface.tools().iter().any(|tool| tool.tool.is_none());
        let core = Core::new(settings, surface, pool, store, reader, session, audit_log).under(policy);
        let (running, idle) = (AtomicUsize::new(0), Notify::new());
        let app = Self { core, watched, watched_policy, only_read, running, idle };
        if has_statements {
            let effective = app.compiled(effective, &words).await?;
            app.serve(effective, &words)?;
        }
        Ok(app)
    }

    /// The active tools.
    #[must_use]
    pub fn surface(&self) -> Arc<Surface> {
        self.core.surface()
    }

    /// Runs one tool; none if there is no such tool.
    pub async fn call(
        &self,
        tool: &str,
        given: Option<Map<String, Value>>,
        context: CallContext,
    ) -> Option<Outcome> {
        let _running = Running::new(self);
        let surface = self.core.surface();
        let Some(active) = surface.tool(tool) else {
            self.note_unknown(tool);
            return None;
        };
        let name = &active.spec.name;
        let tools = Arc::clone(&surface);
        let call = Call::new(&self.core, tools, name, active.policy, context.cancel, context.progress)
            .showing(active.format(surface.profile()))
            .with_confirmer(context.confirm);
        let names: Vec<String> =
            given.iter().flat_map(Map::keys).take(20).map(|name| one_line(name, 100)).collect();
        let result = match arguments::check(&active.spec, surface.settings(), given) {
            Ok(arguments) => match (active.tool, &active.spec.statement) {
                (Some(tool), _) => dispatch(tool, &call, arguments).await,
                (None, Some(statement)) => statement::run(&call, &active.spec, statement, arguments).await,
                (None, None) => Err(ToolError::arguments("the tool has nothing to run")),
            },
            Err(error) => {
                call.note("arguments", names);
                Err(error)
            }
        };
        let result = result.map_err(|error| error.within(call.caps().max_result_bytes));
        call.finish(&result);
        Some(outcome(result, surface.profile().errors))
    }

    /// Restores a snapshot, whatever tools are active: what a person asks for on the command line. The call is
    /// logged as the tool's.
    ///
    /// # Errors
    /// As the tool's.
    pub async fn restore(&self, input: RestoreInput, context: CallContext) -> Result<Restored, ToolError> {
        let _running = Running::new(self);
        let call = Call::new(
            &self.core,
            self.core.surface(),
            "restore_snapshot",
            PolicyId::Restore,
            context.cancel,
            context.progress,
        );
        let result = restore::run(&call, input, Narrowing::default()).await;
        call.finish(&result.as_ref().map(|_| Reply::default()).map_err(Clone::clone));
        result
    }

    /// Stops what runs, kills the workers and writes what is gathered, all by the deadline.
    pub async fn shutdown(&self, deadline: Instant) {
        self.core.pool.close().await;
        let calls_done = async {
            while self.running.load(Ordering::Acquire) > 0 {
                self.idle.notified().await;
            }
        };
        if tokio::time::timeout(LAST_CALLS, calls_done).await.is_err() {
            tracing::warn!("calls were still running when the server ended");
        }
        if let Some(reader) = &self.core.reader {
            reader.close();
        }
        if let Some(store) = &self.core.store {
            store.shutdown(deadline.checked_sub(REPORTING).unwrap_or(deadline)).await;
        }
    }

    /// Whether a person must agree before this tool changes anything.
    #[must_use]
    pub fn asks(&self, tool: &str) -> bool {
        self.core.surface().tool(tool).is_some_and(|tool| self.core.must_ask(tool))
    }

    /// A call that came with an answer which is not the person's leaves a row, too.
    pub fn note_refused(&self, tool: &str, why: &str) {
        self.note_turned_away(tool, why, Some(r#"{"confirmed":"refused"}"#));
    }

    /// A call of a tool that does not exist leaves a row, too.
    fn note_unknown(&self, tool: &str) {
        let error = format!("unknown tool ({})", ErrorCode::InvalidArguments.as_str());
        self.note_turned_away(tool, &error, None);
    }

    fn note_turned_away(&self, tool: &str, error: &str, detail: Option<&str>) {
        let row = AuditRow {
            ts: timestamp(jiff::Timestamp::now()),
            session: self.core.session.clone(),
            tool: one_line(tool, 100),
            ok: false,
            error: Some(error.to_owned()),
            detail: detail.map(str::to_owned),
            ..AuditRow::default()
        };
        if let Some(log) = &self.core.audit_log {
            log.write(&row);
        }
        if let Some(store) = &self.core.store {
            store.queue_audit(row);
        }
    }
}

fn outcome(result: Result<Reply, ToolError>, errors: ErrorStyle) -> Outcome {
    match result {
        Ok(reply) => {
            Outcome { text: reply.text, structured: reply.structured, error: None, question: reply.question }
        }
        Err(error) => Outcome::of_error(error, errors),
    }
}

/// Counts a call as running while it lives.
struct Running<'a>(&'a App);

impl<'a> Running<'a> {
    fn new(app: &'a App) -> Self {
        app.running.fetch_add(1, Ordering::AcqRel);
        Self(app)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_one();
        }
    }
}

/// Whether a tool of the profile can write.
#[must_use]
pub fn profile_writes(manifest: &Manifest, profile: &str) -> bool {
    let tools = manifest.profile(profile).map(|profile| profile.tools.as_slice()).unwrap_or_default();
    let writes = |id: &String| {
        let policy = manifest.tool(id).and_then(|tool| PolicyId::from_id(&tool.policy));
        policy.is_none_or(|policy| policy.policy().writes)
    };
    tools.iter().any(writes)
}

/// The settings that words and schemas name.
#[must_use]
pub fn surface_settings(settings: &Settings) -> SurfaceSettings {
    SurfaceSettings {
        max_rows: settings.max_rows,
        default_limit: settings.default_limit,
        max_result_bytes: settings.max_result_bytes,
        max_cell_chars: settings.max_cell_chars,
        max_update_rows: settings.max_update_rows,
        query_timeout: settings.query_timeout.as_secs_f64(),
        snapshots: settings.snapshots,
        search_candidates: settings.search_candidates,
    }
}
