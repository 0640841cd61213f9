//! The program behind the command line: what each command does, with the real database.
//!
//! It binds `cli/` to [`App`]; it parses no flags and prints nothing.

mod groups;
mod served;

pub use groups::ServedGroups;
pub use served::Served;

use crate::app::{App, profile_writes, surface_settings};
use crate::cli::{PolicyQuestion, Program, ToolLine, ToolsReport, Verdict};
use crate::config::{HttpSettings, Primitives, Profile, Resolved, Settings};
use crate::doctor::{self, Report};
use crate::embedded::{self, Embedded, SqlSettings};
use crate::embedding;
use crate::error::{EXIT_UNREADABLE, ErrorCode, StartError, ToolError};
use crate::handlers::restore::RestoreInput;
use crate::outcome::CallContext;
use crate::overlay::{self, Effective};
use crate::policy_file::explain::explain;
use crate::policy_file::{self, report};
use crate::primitives::GroupServer;
use crate::primitives::access;
use crate::primitives::groups::Groups;
use crate::server::shut_down;
use crate::spec::model::ProfileSpec;
use crate::sqlite::restore::{self, Listing, Restored, Shown, SnapshotEntry};
use crate::sqlite::weigh::Weigher;
use crate::state::catalog::Catalog;
use crate::state::clock::{Clock, SystemClock};
use crate::state::store::Store;
use crate::store::audit_log::AuditLog;
use crate::store::reader::{Reader, Reading};
use crate::surface::{Surface, built_in_manifest};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How long `indelible verify` may take: a day, which is to say as long as it takes.
const VERIFY_TIME: Duration = Duration::from_secs(86_400);

/// The real thing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Indelible;

/// An answer for people or for programs.
enum Said {
    Text(String),
    Data(Value),
}

impl Program for Indelible {
    type Service = Served;
    type Groups = ServedGroups;

    fn profiles(&self, overlays: &[PathBuf], served: Option<&str>) -> Result<Vec<Profile>, StartError> {
        let manifest = effective(overlays, served)?.manifest;
        let profile = |profile: &ProfileSpec| Profile {
            id: profile.id.clone(),
            defaults: profile.defaults.clone(),
            only_reads: !profile_writes(&manifest, &profile.id),
            serves: profile.serves,
        };
        Ok(manifest.profiles.iter().map(profile).collect())
    }

    async fn open(&self, settings: &Settings) -> Result<Arc<Served>, StartError> {
        Ok(Arc::new(match &settings.primitives {
            None => Served::Database(Box::new(self.open_database(settings).await?)),
            Some(place) => Served::Group(open_group(settings, place).await?),
        }))
    }

    async fn open_groups(
        &self,
        settings: &Settings,
        http: &HttpSettings,
    ) -> Result<Arc<ServedGroups>, StartError> {
        let place = settings.primitives.as_ref();
        let place = place.ok_or_else(|| StartError::failure("the profile serves no groups"))?;
        let (groups, only) = (open_folder(settings, place)?, place.group.as_deref());
        if let Some(name) = only {
            only_group(&groups, settings, name).await?;
        }
        Ok(Arc::new(ServedGroups::new(groups, only, http).await?))
    }

    async fn tools_report(&self, settings: &Settings, compile: bool) -> Result<ToolsReport, StartError> {
        let mut effective = effective(&settings.tools, Some(&settings.profile))?;
        if compile {
            effective = crate::app::compile_only(effective, settings).await?;
        }
        let (words, manifest) = (surface_settings(settings), &effective.manifest);
        let surface = Surface::new(manifest, &settings.profile, &words, settings.read_only)?;
        let tools = surface.tools().iter().zip(surface.descriptors());
        Ok(ToolsReport {
            profile: settings.profile.clone(),
            tools: tools
                .map(|(tool, descriptor)| ToolLine {
                    policy: tool.policy.id().to_owned(),
                    own: tool.tool.is_none(),
                    descriptor: descriptor.clone(),
                })
                .collect(),
            instructions: surface.instructions().to_owned(),
            notes: effective.notes.iter().map(ToString::to_string).collect(),
            statements: (surface.tools().iter().filter(|tool| tool.tool.is_none()).count(), compile),
            yaml: overlay::export::yaml(manifest, &settings.profile)?,
        })
    }

    fn verify(&self, settings: &Settings, expect_head: Option<&str>) -> Result<Verdict, StartError> {
        let unreadable =
            |message: String| StartError { exit: EXIT_UNREADABLE, ..StartError::failure(message) };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| StartError::failure(format!("cannot start the event loop: {error}")))?;
        let reader = Reader::open(settings.db.clone(), settings.busy_timeout)
            .map_err(|error| unreadable(error.message))?;
        let reading = Reading { limit: VERIFY_TIME, cancel: CancellationToken::new(), progress: None };
        let verdict = runtime.block_on(reader.verify(reading)).map_err(|error| unreadable(error.message))?;
        let expected = expect_head.is_none_or(|head| head == verdict.head_hash);
        let mut text = verdict.to_json().to_string();
        if let (Some(head), false) = (expect_head, expected) {
            text.push_str(&format!("\nthe head is {}, not the expected {head}", verdict.head_hash));
        }
        Ok(Verdict { text, intact: verdict.ok && expected })
    }

    fn snapshots(&self, settings: &Settings) -> Result<Vec<SnapshotEntry>, StartError> {
        restore::list(&listing(settings)).map_err(|error| StartError::failure(error.message))
    }

    fn snapshot(&self, settings: &Settings, name: &str) -> Result<Shown, StartError> {
        restore::show(&listing(settings), name).map_err(|error| StartError::failure(error.message))
    }

    fn check_snapshot(&self, settings: &Settings, name: &str) -> Result<SnapshotEntry, StartError> {
        restore::verify(&listing(settings), name, jiff::Timestamp::now())
            .map_err(|error| StartError::failure(error.message))
    }

    async fn restore(
        &self,
        settings: &Settings,
        name: &str,
        reason: &str,
        context: CallContext,
    ) -> Result<Restored, StartError> {
        // Opening makes the file that is not there, and nothing can be restored into that.
        if !settings.db.exists() {
            let message = format!("the database `{}` does not exist", settings.db.display());
            return Err(StartError::failure(message));
        }
        let app = self.open_database(settings).await?;
        let input = RestoreInput { name: name.to_owned(), reason: reason.to_owned() };
        let restored = app.restore(input, context).await;
        shut_down(Instant::now(), |deadline| app.shutdown(deadline)).await;
        restored.map_err(|error| StartError::failure(error.message))
    }

    fn doctor(&self, resolved: &Resolved) -> Result<Report, StartError> {
        let effective = effective(&resolved.settings.tools, Some(&resolved.settings.profile))?;
        Ok(doctor::examine(resolved, crate::surface::digest(&effective.manifest)?))
    }

    fn tools(&self, settings: &Settings) -> Result<Vec<Value>, StartError> {
        let effective = effective(&settings.tools, Some(&settings.profile))?;
        let (manifest, words) = (&effective.manifest, surface_settings(settings));
        let surface = Surface::new(manifest, &settings.profile, &words, settings.read_only)?;
        Ok(surface.descriptors().to_vec())
    }

    fn demo(&self, db: Option<PathBuf>, profile: Option<&str>) -> Result<(), StartError> {
        crate::demo::run(db, profile)
    }

    fn policy(&self, settings: &Settings, question: &PolicyQuestion) -> Result<String, StartError> {
        let file = policy_file::load(settings)?;
        let failed = |error: rusqlite::Error| {
            let words = crate::sqlite::fault::message(&error);
            StartError::failure(format!("the database cannot be opened: {words}"))
        };
        let open = || Weigher::open(question.db.as_deref(), file.narrowing.clone()).map_err(failed);
        let said = match &question.sql {
            Some(sql) => {
                let explained = explain(
                    &open()?,
                    &file,
                    &effective(&settings.tools, Some(&settings.profile))?.manifest,
                    sql,
                );
                if question.json { Said::Data(explained.json()) } else { Said::Text(explained.text()) }
            }
            None => {
                let weigher = question.db.as_ref().map(|_| open()).transpose()?;
                if question.json {
                    Said::Data(report::json(&file, settings, weigher.as_ref()))
                } else {
                    Said::Text(report::text(&file, settings, weigher.as_ref()))
                }
            }
        };
        match said {
            Said::Text(text) => Ok(text),
            Said::Data(value) => serde_json::to_string_pretty(&value)
                .map_err(|error| StartError::failure(format!("the answer cannot be written: {error}"))),
        }
    }

    fn catalog(&self, data: &Path, create: bool) -> Result<Arc<dyn Catalog>, StartError> {
        embedded::catalog(data, Arc::new(SystemClock), create)
    }

    fn check_tools(&self, settings: &Settings, names: &[&str]) -> Result<(), StartError> {
        let effective = effective(&settings.tools, Some(&settings.profile))?;
        let words = surface_settings(settings);
        let surface = Surface::new(&effective.manifest, &settings.profile, &words, settings.read_only)?;
        access::check_names(&surface, names).map_err(|words| StartError::usage(format!("--tools: {words}")))
    }

    fn store(&self, place: &Primitives) -> Result<Arc<dyn Store>, StartError> {
        let store = Embedded::beside(&place.data, Arc::new(SystemClock))?;
        Ok(Arc::new(store.with_vault_key(place.vault_key.clone())))
    }

    fn store_alone(&self, settings: &Settings, place: &Primitives) -> Result<Arc<dyn Store>, StartError> {
        if !embedded::is_data_folder(&place.data) {
            let words = format!("`{}` is no data folder", place.data.display());
            return Err(StartError::failure(words));
        }
        let sql = SqlSettings {
            busy_timeout: settings.busy_timeout,
            snapshots: snapshots_kept(settings),
            ..SqlSettings::default()
        };
        let store = Embedded::open(&place.data, Arc::new(SystemClock), sql)?;
        Ok(Arc::new(store.with_vault_key(place.vault_key.clone())))
    }

    fn worker(&self) -> Result<(), StartError> {
        crate::worker::process::run()
            .map_err(|error| StartError::failure(format!("the worker lost its server: {error}")))
    }
}

impl Indelible {
    async fn open_database(&self, settings: &Settings) -> Result<App, StartError> {
        let effective = effective(&settings.tools, Some(&settings.profile))?;
        App::open(effective, settings.clone()).await
    }
}

/// Opens the data folder and the one group that stdin and stdout serve.
async fn open_group(settings: &Settings, place: &Primitives) -> Result<Arc<GroupServer>, StartError> {
    let name = place.group()?;
    only_group(&open_folder(settings, place)?, settings, name).await
}

/// The group of this name, made where it is missing and something may be made.
async fn only_group(
    groups: &Groups,
    settings: &Settings,
    name: &str,
) -> Result<Arc<GroupServer>, StartError> {
    groups.open(name, !settings.read_only).await.map_err(|error| match error.code {
        ErrorCode::NotFound => StartError::failure(format!(
            "{}, and with --read-only none is made; `indelible groups create` makes one",
            error.message
        )),
        _ => failed(error),
    })
}

/// Opens the data folder.
fn open_folder(settings: &Settings, place: &Primitives) -> Result<Groups, StartError> {
    if settings.read_only && !embedded::is_data_folder(&place.data) {
        return Err(StartError::failure(format!(
            "`{}` is no data folder, and with --read-only none is made; `indelible groups create` makes one",
            place.data.display()
        )));
    }
    let manifest = effective(&settings.tools, Some(&settings.profile))?.manifest;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let policy = policy_file::load(settings)?;
    let settings = &policy.lowered(settings.clone());
    let sql = SqlSettings {
        busy_timeout: settings.busy_timeout,
        narrowing: policy.narrowing,
        program: None,
        snapshots: snapshots_kept(settings),
    };
    let model = place.embedding_model.as_deref().map(embedding::load).transpose()?;
    let store = Embedded::open(&place.data, Arc::clone(&clock), sql)?;
    let store: Arc<dyn Store> = Arc::new(store.with_vault_key(place.vault_key.clone()).with_embedder(model));
    let log = settings.audit_log.as_ref();
    let log = log.map(|path| AuditLog::open(path, &place.data.join("catalog.db"))).transpose()?;
    let words = surface_settings(settings);
    Groups::new(&manifest, settings.clone(), words, store, clock, log.map(Arc::new))
}

/// An error that was meant for an agent and meets a person.
fn failed(error: ToolError) -> StartError {
    StartError::failure(error.message)
}

/// How many snapshots of a primitive are kept, of each kind.
fn snapshots_kept(settings: &Settings) -> usize {
    match settings.snapshots {
        // There it stands for no automatic ones, which are not optional here.
        0 => 5,
        count => usize::try_from(count).unwrap_or(usize::MAX),
    }
}

/// The built-in tools with overlay files over them.
fn effective(overlays: &[PathBuf], served: Option<&str>) -> Result<Effective, StartError> {
    let built_in = built_in_manifest()?;
    if overlays.is_empty() {
        return Ok(Effective::built_in(built_in));
    }
    overlay::load(&built_in, overlays, served).map_err(StartError::lines)
}

fn listing(settings: &Settings) -> Listing {
    Listing {
        database: settings.db.clone(),
        folder: settings.snapshot_dir.clone(),
        busy_timeout: settings.busy_timeout,
    }
}
