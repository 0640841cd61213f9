//! The policy file while the server runs: read again when it changes or a signal asks for it.
//!
//! A change is taken as a whole or not at all: a file with a mistake leaves the policy as it was.

use super::overlays::lines_of;
use super::{App, surface_settings};
use crate::config::Settings;
use crate::error::StartError;
use crate::overlay;
use crate::policy_file;
use crate::spec::model::Manifest;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The target of lines that are shown whatever the verbosity.
const SHOWN: &str = "indelible::start";

/// What is known of the file.
pub(super) struct WatchedPolicy {
    /// The settings before the file's limits lowered them.
    given: Settings,
    texts: Mutex<Texts>,
}

/// The file's text as last looked at and as last taken up, good or bad; none where it cannot be read.
#[derive(Default)]
struct Texts {
    seen: Option<String>,
    taken: Option<String>,
}

fn text(path: &Path) -> Option<String> {
    overlay::is_file(path).then(|| overlay::text(path).ok())?
}

impl WatchedPolicy {
    pub(super) fn new(given: Settings) -> Self {
        let text = given.policy.as_deref().and_then(text);
        Self { given, texts: Mutex::new(Texts { seen: text.clone(), taken: text }) }
    }

    /// Whether the file is to be taken up: forced, or changed and then left alone for one look.
    fn is_new(&self, forced: bool) -> bool {
        let Some(path) = &self.given.policy else { return false };
        // A pipe can be read once, and what is then left of it would narrow nothing.
        if path.exists() && !overlay::is_file(path) {
            return false;
        }
        let now = text(path);
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let settled = now == texts.seen;
        texts.seen.clone_from(&now);
        let new = forced || (now != texts.taken && settled);
        if new {
            texts.taken = now;
        }
        new
    }
}

impl WatchedPolicy {
    /// The settings before the file's limits, over the defaults of the served profile.
    pub(super) fn given_over(&self, manifest: &Manifest) -> Result<Settings, StartError> {
        match manifest.profile(&self.given.profile) {
            Some(profile) => self.given.over(&profile.defaults).map_err(StartError::usage),
            None => Ok(self.given.clone()),
        }
    }
}

impl App {
    /// Reads the policy file again if it changed; `forced`, in any case. What is wrong goes to stderr, a line
    /// each, and the policy stays as it is.
    pub(super) fn reload_policy(&self, forced: bool) {
        if !self.watched_policy.is_new(forced) {
            return;
        }
        match self.take_up_policy() {
            Ok(true) => {
                tracing::info!(target: SHOWN, "the policy file was read again and has changed");
                self.watched.tell();
            }
            Ok(false) => tracing::info!("the policy file is the same"),
            Err(error) => {
                for line in lines_of(error) {
                    tracing::error!("{line}");
                }
                tracing::error!("the policy stays as it was");
            }
        }
    }

    /// Puts the file's policy and limits in force; whether they are others than before.
    fn take_up_policy(&self) -> Result<bool, StartError> {
        let effective = self.watched.effective();
        let given = self.watched_policy.given_over(&effective.manifest)?;
        let now = policy_file::load(&given)?;
        if now.sha256 == self.core.policy_file().sha256 {
            return Ok(false);
        }
        let words = surface_settings(&now.lowered(given));
        self.core.renarrow(now);
        self.serve(effective, &words)?;
        Ok(true)
    }
}
