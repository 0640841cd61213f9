//! `indelible policy` and `indelible policy explain`: the effective policy, and one statement under it.

use super::args::PolicyCommand;
use super::{PolicyQuestion, Program, output};
use crate::config::{self, RawArgs};
use crate::error::{EXIT_OK, StartError};
use std::ffi::OsString;

/// Prints the answer. A database is not needed; without one, statements are looked at on an empty one.
pub(super) fn policy<P: Program>(
    program: &P,
    raw: &RawArgs,
    environment: impl Fn(&str) -> Option<OsString>,
    command: Option<PolicyCommand>,
    json: bool,
) -> Result<u8, StartError> {
    let mut raw = raw.clone();
    let (overlays, profile) = config::overlays(&raw, &environment)?;
    let profiles = program.profiles(&overlays, profile.as_deref())?;
    let given = super::complete_place(&mut raw, &profiles, profile.as_deref(), &environment);
    let settings = config::resolve(&raw, environment, &profiles)?;
    crate::logging::start(settings.verbosity);
    let question = PolicyQuestion {
        db: given.then(|| settings.db.clone()),
        sql: command.map(|PolicyCommand::Explain { sql }| sql),
        json,
    };
    output::print(&program.policy(&settings, &question)?)?;
    Ok(EXIT_OK)
}
