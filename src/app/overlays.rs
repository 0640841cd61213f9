//! Overlay files while the server runs: statements compiled against the open database, files read again.
//!
//! A change is taken as a whole or not at all: what was active stays until everything about the new files holds.

use super::{App, profile_writes, surface_settings};
use crate::config::Settings;
use crate::error::StartError;
use crate::handlers::{Call, Core, unexpected_answer};
use crate::overlay::{self, Effective, OverlayFile};
use crate::policy_file;
use crate::spec::diagnostic::Diagnostic;
use crate::spec::model::{Manifest, ProfileSpec, ToolSpec};
use crate::sqlite::compile::Compilation;
use crate::surface::{Surface, SurfaceSettings, built_in_manifest};
use crate::worker::pool::Pool;
use crate::worker::protocol::Answer;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The target of lines that are shown whatever the verbosity.
const SHOWN: &str = "indelible::start";

/// What is known of the files, and who wants to hear of changes.
pub(super) struct Watched {
    files: Mutex<Files>,
    /// What is served, with the hints of its statements derived.
    effective: Mutex<Effective>,
    /// The profile as it was at the start: resources and prompts stay for the life of the server.
    profile: Option<ProfileSpec>,
    changes: watch::Sender<u64>,
}

/// File texts as last looked at and as last taken up, good or bad.
#[derive(Default)]
struct Files {
    seen: Vec<Result<OverlayFile, Diagnostic>>,
    taken: Vec<Result<OverlayFile, Diagnostic>>,
}

impl Watched {
    pub(super) fn new(effective: &Effective, profile: &str) -> Self {
        let profile = effective.manifest.profile(profile).cloned();
        let taken: Vec<_> = effective.read().iter().cloned().map(Ok).collect();
        let files = Mutex::new(Files { seen: taken.clone(), taken });
        let effective = Mutex::new(effective.clone());
        Self { files, effective, profile, changes: watch::Sender::new(0) }
    }

    /// What is served now.
    pub(super) fn effective(&self) -> Effective {
        self.effective.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whoever listens is told that the tools are others.
    pub(super) fn tell(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }
}

impl App {
    /// Tells of every other list of tools from now on; none where no file could change it.
    #[must_use]
    pub fn tool_changes(&self) -> Option<watch::Receiver<u64>> {
        let settings = &self.core.settings;
        let may_change = !settings.tools.is_empty() || settings.policy.is_some();
        may_change.then(|| self.watched.changes.subscribe())
    }

    /// Reads the files of policy and tools again if they changed; `forced`, in any case. What is wrong goes to stderr,
    /// a line each, and stays as it is.
    pub async fn reload(&self, forced: bool) {
        self.reload_policy(forced);
        let Some(files) = self.changed_files(forced) else { return };
        match self.take_up(files).await {
            Ok(true) => {
                tracing::info!(target: SHOWN, "the tools were read again and have changed");
                self.watched.tell();
            }
            Ok(false) => tracing::info!("the tools were read again and are the same"),
            Err(lines) => {
                for line in &lines {
                    tracing::error!("{line}");
                }
                tracing::error!("the tools stay as they were");
            }
        }
    }

    /// The files, if they are to be taken up: forced, or changed and then left alone for one look.
    fn changed_files(&self, forced: bool) -> Option<Vec<Result<OverlayFile, Diagnostic>>> {
        let paths = &self.core.settings.tools;
        if paths.is_empty() {
            return None;
        }
        let mut known = self.watched.files.lock().unwrap_or_else(PoisonError::into_inner);
        let now = paths.iter().enumerate().map(|(at, path)| match known.taken.get(at) {
            // A pipe can be read once.
            Some(Ok(before)) if !overlay::is_file(path) && path.exists() => Ok(before.clone()),
            _ => overlay::read_one(path),
        });
        let now: Vec<_> = now.collect();
        let settled = now == known.seen;
        known.seen.clone_from(&now);
        if !forced && (now == known.taken || !settled) {
            return None;
        }
        known.taken.clone_from(&now);
        Some(now)
    }

    /// Makes the files' tools the active ones; whether they are others than before.
    async fn take_up(&self, files: Vec<Result<OverlayFile, Diagnostic>>) -> Result<bool, Vec<String>> {
        let lines = |found: Vec<Diagnostic>| found.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (good, bad): (Vec<_>, Vec<_>) = files.into_iter().partition(Result::is_ok);
        let bad: Vec<Diagnostic> = bad.into_iter().filter_map(Result::err).collect();
        if !bad.is_empty() {
            return Err(lines(bad));
        }
        let files: Vec<OverlayFile> = good.into_iter().filter_map(Result::ok).collect();
        let built_in = built_in_manifest().map_err(|error| vec![error.message])?;
        let profile = &self.core.settings.profile;
        let effective =
            overlay::merge(&built_in, &files, Some(profile), &overlay::environment).map_err(lines)?;
        self.needs_no_restart(&effective.manifest)?;
        let before = self.core.surface();
        let words = self.limits_over(&effective.manifest).map_err(lines_of)?;
        let effective = self.compiled(effective, &words).await.map_err(lines_of)?;
        self.serve(effective, &words).map_err(lines_of)?;
        Ok(self.core.surface().manifest_sha256() != before.manifest_sha256())
    }

    /// What the running server cannot follow.
    fn needs_no_restart(&self, manifest: &Manifest) -> Result<(), Vec<String>> {
        let settings = &self.core.settings;
        let restart = |what: String| Err(vec![format!("{what}; start the server again for that")]);
        let Some(profile) = manifest.profile(&settings.profile) else {
            return restart(format!("profile `{}` is gone from the overlays", settings.profile));
        };
        let mut tools = profile.tools.iter().filter_map(|id| manifest.tool(id));
        let reads_chain = tools.any(|tool| tool.handler.starts_with("chain."));
        if reads_chain && self.core.reader.is_none() {
            return restart("the profile has tools of the memory now and had none".to_owned());
        }
        if let Some(before) = &self.watched.profile {
            let settled = [
                ("resources", before.resources == profile.resources),
                ("prompts", before.prompts == profile.prompts),
            ];
            if let Some((key, _)) = settled.iter().find(|(_, same)| !same) {
                return restart(format!("the `{key}` of profile `{}` changed", profile.id));
            }
        }
        if self.only_read && profile_writes(manifest, &profile.id) {
            return restart(format!("profile `{}` only read and has tools that write now", profile.id));
        }
        Ok(())
    }

    /// The limits of the profile's defaults, flags and variables over them, under the policy file.
    fn limits_over(&self, manifest: &Manifest) -> Result<SurfaceSettings, StartError> {
        let given = self.watched_policy.given_over(manifest)?;
        // What the policy file lowers must still be lower. A pipe cannot be read again.
        if given.policy.as_deref().is_some_and(overlay::is_file) {
            policy_file::load(&given)?;
        }
        Ok(surface_settings(&self.core.policy_file().lowered(given)))
    }

    /// The tools with their statements compiled and their hints derived.
    ///
    /// # Errors
    /// As [`compile`].
    pub(super) async fn compiled(
        &self,
        effective: Effective,
        words: &SurfaceSettings,
    ) -> Result<Effective, StartError> {
        compile(&self.core, words, effective, self.core.settings.read_only).await
    }

    /// Makes them the active ones, under these limits.
    ///
    /// # Errors
    /// A manifest that the checks should have refused.
    pub(super) fn serve(&self, effective: Effective, words: &SurfaceSettings) -> Result<(), StartError> {
        let settings = &self.core.settings;
        let surface = Surface::new(&effective.manifest, &settings.profile, words, settings.read_only)?;
        *self.watched.effective.lock().unwrap_or_else(PoisonError::into_inner) = effective;
        self.core.replace_surface(Arc::new(surface));
        Ok(())
    }
}

/// As stderr has them.
pub(super) fn lines_of(error: StartError) -> Vec<String> {
    std::iter::once(error.message).chain(error.more).collect()
}

/// Compiles the statements against the settings' database and serves nothing: the file stays as it is.
///
/// # Errors
/// As [`compile`]; a file that cannot be opened.
pub async fn compile_only(effective: Effective, settings: &Settings) -> Result<Effective, StartError> {
    crate::sqlite::open::check(&settings.db, settings.busy_timeout, settings.immutable)?;
    let words = surface_settings(settings);
    let surface = Surface::new(&effective.manifest, &settings.profile, &words, settings.read_only)?;
    let pool = Pool::new(settings.db.clone(), settings.busy_timeout, settings.immutable);
    let core = Core::new(settings.clone(), surface, pool, None, None, String::new(), None)
        .under(policy_file::load(settings)?);
    let compiled = compile(&core, &words, effective, settings.read_only).await;
    core.pool.close().await;
    compiled
}

/// The manifest with the hints that its compiled statements bear out; `read_only` leaves out those that write.
///
/// # Errors
/// Every statement that does not compile under its policy or does not fit its parameters; exit status 2.
async fn compile(
    core: &Core,
    words: &SurfaceSettings,
    mut effective: Effective,
    read_only: bool,
) -> Result<Effective, StartError> {
    let surface = Arc::new(Surface::new(&effective.manifest, &core.settings.profile, words, read_only)?);
    let mut found = Vec::new();
    for active in surface.tools().iter().filter(|active| active.tool.is_none()) {
        let (name, statement) = (&active.spec.name, active.spec.statement.as_ref());
        let sql = statement.map(|statement| statement.sql.clone()).unwrap_or_default();
        let call = Call::new(core, Arc::clone(&surface), name, active.policy, CancellationToken::new(), None);
        match call.compile(sql).await {
            Ok(Answer::Compiled(compilation)) => {
                found.extend(mismatches(&effective, &active.spec, &compilation));
                effective.only_adds(&active.spec.id, !compilation.overwrites);
            }
            Ok(_) => found.push(effective.in_statement(&active.spec.id, unexpected_answer().message)),
            Err(error) => {
                let message = format!("the statement of tool `{name}` does not compile: {}", error.message);
                found.push(effective.in_statement(&active.spec.id, message));
            }
        }
    }
    found.sort();
    if found.is_empty() { Ok(effective) } else { Err(StartError::lines(found)) }
}

/// Parameters that only one of statement and declaration has.
fn mismatches(effective: &Effective, spec: &ToolSpec, compilation: &Compilation) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let tool = &spec.name;
    let named: Vec<&str> = compilation.parameters.iter().flatten().filter_map(|name| name.get(1..)).collect();
    if compilation.parameters.iter().any(|name| name.as_deref().is_none_or(|name| name.starts_with('?'))) {
        let message = format!("the statement of tool `{tool}` has a `?`; name its parameters, as in `:name`");
        found.push(effective.in_statement(&spec.id, message));
    }
    for name in &named {
        let numbered = name.starts_with(|c: char| c.is_ascii_digit());
        if !numbered && !spec.params.iter().any(|param| param.name == *name) {
            let message =
                format!("the statement of tool `{tool}` has `:{name}`, which is not declared under `params`");
            found.push(effective.in_statement(&spec.id, message));
        }
    }
    for param in spec.params.iter().filter(|param| !named.contains(&param.name.as_str())) {
        let message =
            format!("parameter `{0}` of tool `{tool}` is not in its statement as `:{0}`", param.name);
        found.push(effective.in_params(&spec.id, message));
    }
    found.dedup();
    found
}
