//! The command line: which command, with which settings, and what its end means as an exit status.
//!
//! It reaches the application through [`Program`] and knows nothing of databases or protocols.
//! Stdout belongs to the command that runs; this module says what it has to say as a [`StartError`].
//!
//! # Layout
//!
//! - `args`: the commands and their help; `usage`: clap's errors in our words
//! - `serve`, `call`, `verify`, `policy`, `completions`: one file a command
//! - `output`, `runtime`: what they share

mod args;
mod call;
mod completions;
mod output;
mod policy;
mod runtime;
mod serve;
mod usage;
mod verify;

use crate::config::{self, Profile, Settings};
use crate::error::{EXIT_OK, StartError};
use crate::logging;
use crate::server::Service;
use args::{Cli, Command};
use clap::Parser;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// What the command line needs of the application.
pub trait Program {
    /// What `serve` and `call` speak to.
    type Service: Service;

    /// The profiles there are; the first is the default.
    fn profiles(&self) -> Vec<Profile>;

    /// Opens the database and gets ready to serve. Runs inside a tokio runtime of one thread.
    ///
    /// # Errors
    /// The file cannot be served; exit status 1.
    fn open(&self, settings: &Settings) -> impl Future<Output = Result<Arc<Self::Service>, StartError>>;

    /// Checks the event chain and its checkpoints, and that its head is the expected one
    /// (64 lower-case hex digits).
    ///
    /// # Errors
    /// The file cannot be read as an Indelible database; exit status 4.
    fn verify(&self, settings: &Settings, expect_head: Option<&str>) -> Result<Verdict, StartError>;

    /// Shows an agent's session with a profile's tools on a small database, at this path or in a temporary
    /// folder; without a profile, with the default one's.
    ///
    /// # Errors
    /// The show could not be given to its end: exit status 1. The profile has none: exit status 2.
    fn demo(&self, db: Option<PathBuf>, profile: Option<&str>) -> Result<(), StartError>;

    /// The effective policy, or what one statement would do under it, as text or JSON.
    ///
    /// # Errors
    /// A policy file with mistakes: exit status 2. A database that cannot be opened: exit status 1.
    fn policy(&self, settings: &Settings, question: &PolicyQuestion) -> Result<String, StartError>;

    /// Runs a worker on stdin and stdout until stdin closes.
    ///
    /// # Errors
    /// The worker cannot start.
    fn worker(&self) -> Result<(), StartError>;
}

/// What `policy` is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyQuestion {
    /// The database, if one is given.
    pub db: Option<PathBuf>,
    /// The statement to explain; none for the whole policy.
    pub sql: Option<String>,
    /// JSON instead of text.
    pub json: bool,
}

/// What `verify` found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// For people; printed as it is, with a newline behind it.
    pub text: String,
    /// Whether the chain is whole and its head the expected one.
    pub intact: bool,
}

/// Runs the command that the arguments name, the program's own name first; returns the exit status.
///
/// # Errors
/// One line for stderr, and the exit status.
pub fn run<P: Program>(program: &P, args: impl Iterator<Item = OsString>) -> Result<u8, StartError> {
    let mut args = args.peekable();
    let name = args.next().unwrap_or_else(|| "indelible".into());
    // Workers start often and must start fast, and no person calls them.
    if args.peek().is_some_and(|first| first == "worker") {
        program.worker()?;
        return Ok(EXIT_OK);
    }
    let cli = match Cli::try_parse_from(std::iter::once(name).chain(args)) {
        Ok(cli) => cli,
        Err(error) => return usage::answer(&error),
    };
    let environment = |name: &str| std::env::var_os(name);
    let settings = || {
        let settings = config::resolve(&cli.raw, environment, &program.profiles())?;
        logging::start(settings.verbosity);
        Ok(settings)
    };
    match cli.command {
        None => serve::serve(program, &settings()?),
        Some(Command::Call { tool, arguments }) => call::call(program, &settings()?, &tool, &arguments),
        Some(Command::Verify { expect_head }) => {
            verify::verify(program, &settings()?, expect_head.as_deref())
        }
        Some(Command::Policy { command, json }) => {
            policy::policy(program, &cli.raw, environment, command, json)
        }
        Some(Command::Demo) => {
            logging::start(cli.raw.verbose);
            program.demo(config::database_flag(&cli.raw, environment)?, cli.raw.profile.as_deref())?;
            Ok(EXIT_OK)
        }
        Some(Command::Completions { shell }) => completions::completions(shell),
    }
}
