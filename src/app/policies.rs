//! The policy file while the server runs: read again when it changes or a signal asks for it.
//!
//! A change is taken as a whole or not at all: a file with a mistake leaves the policy as it was.

use super::App;
use crate::config::Settings;
use crate::policy_file;
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

impl WatchedPolicy {
    pub(super) fn new(given: Settings) -> Self {
        let text = given.policy.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
        Self { given, texts: Mutex::new(Texts { seen: text.clone(), taken: text }) }
    }

    /// Whether the file is to be taken up: forced, or changed and then left alone for one look.
    fn is_new(&self, forced: bool) -> bool {
        let Some(path) = &self.given.policy else { return false };
        let now = std::fs::read_to_string(path).ok();
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

impl App {
    /// Reads the policy file again if it changed; `forced`, in any case. What is wrong goes to stderr, a line
    /// each, and the policy stays as it is.
    pub(super) fn reload_policy(&self, forced: bool) {
        if !self.watched_policy.is_new(forced) {
            return;
        }
        let before = self.core.policy_file();
        match policy_file::load(&self.watched_policy.given) {
            Ok(now) if now.narrowing.limits != before.narrowing.limits => {
                tracing::error!("the policy file's `limits` changed; start the server again for that");
                tracing::error!("the policy stays as it was");
            }
            Ok(now) if now.sha256 == before.sha256 => tracing::info!("the policy file is the same"),
            Ok(now) => {
                self.core.renarrow(now);
                tracing::info!(target: SHOWN, "the policy file was read again and has changed");
            }
            Err(error) => {
                for line in std::iter::once(&error.message).chain(&error.more) {
                    tracing::error!("{line}");
                }
                tracing::error!("the policy stays as it was");
            }
        }
    }
}
