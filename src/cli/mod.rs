//! The command line: which command, with which settings, and what its end means as an exit status.
//!
//! It reaches the application through [`Program`] and knows nothing of databases or protocols.
//! Stdout belongs to the command that runs; this module says what it has to say as a [`StartError`].
//!
//! # Layout
//!
//! - `args`: the commands and their help; `usage`: clap's errors in our words
//! - `serve`, `call`, `verify`, `tools`, `policy`, `snapshots`, `doctor`, `client_config`, `bundle`, `completions`:
//!   one file a command
//! - `people`: groups and primitives; `kept`: their snapshots; `keys`: what opens a group; `vault`: secrets and their
//!   grants; `ask`: the person at the terminal
//! - `output`, `runtime`, `stdin`: what they share

mod args;
mod ask;
mod bundle;
mod call;
mod client_config;
mod completions;
mod doctor;
mod kept;
mod keys;
mod output;
mod people;
mod policy;
mod runtime;
mod serve;
mod snapshots;
mod stdin;
mod tools;
mod usage;
mod vault;
mod verify;

pub use tools::{ToolLine, ToolsReport};

use crate::config::{self, HttpSettings, Primitives, Profile, RawArgs, Resolved, Settings};
use crate::doctor::Report;
use crate::error::{EXIT_OK, StartError};
use crate::logging;
use crate::outcome::CallContext;
use crate::server::Service;
use crate::server::http::Groups;
use crate::spec::model::Serves;
use crate::sqlite::restore::{Restored, Shown, SnapshotEntry};
use crate::state::catalog::Catalog;
use crate::state::store::Store;
use args::{Cli, Command};
use clap::Parser;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the command line needs of the application.
pub trait Program {
    /// What `serve` and `call` speak to.
    type Service: Service;

    /// What `serve` speaks to over HTTP, for a profile that serves groups.
    type Groups: Groups;

    /// The profiles there are with these overlay files; the first is the default. `served` is the one that the
    /// files are about.
    ///
    /// # Errors
    /// Everything that is wrong in the files; exit status 2.
    fn profiles(&self, overlays: &[PathBuf], served: Option<&str>) -> Result<Vec<Profile>, StartError>;

    /// Opens the database and gets ready to serve. Runs inside a tokio runtime of one thread.
    ///
    /// # Errors
    /// The file cannot be served; exit status 1.
    fn open(&self, settings: &Settings) -> impl Future<Output = Result<Arc<Self::Service>, StartError>>;

    /// Opens the data folder and gets ready to serve its groups, or the one that the settings name. Runs inside a
    /// tokio runtime of one thread.
    ///
    /// # Errors
    /// The folder cannot be served: exit status 1. Nobody could come in, or everybody although there are keys: exit
    /// status 2.
    fn open_groups(
        &self,
        settings: &Settings,
        http: &HttpSettings,
    ) -> impl Future<Output = Result<Arc<Self::Groups>, StartError>>;

    /// The tools of the settings' profile; with `compile`, their statements compiled against the database, which is
    /// left as it is.
    ///
    /// # Errors
    /// Everything that is wrong in the overlay files; exit status 2.
    fn tools_report(
        &self,
        settings: &Settings,
        compile: bool,
    ) -> impl Future<Output = Result<ToolsReport, StartError>>;

    /// Checks the event chain and its checkpoints, and that its head is the expected one
    /// (64 lower-case hex digits).
    ///
    /// # Errors
    /// The file cannot be read as an Indelible database; exit status 4.
    fn verify(&self, settings: &Settings, expect_head: Option<&str>) -> Result<Verdict, StartError>;

    /// The snapshots of the database, newest first.
    ///
    /// # Errors
    /// The database cannot be read; exit status 1.
    fn snapshots(&self, settings: &Settings) -> Result<Vec<SnapshotEntry>, StartError>;

    /// One snapshot and the rows of its tables.
    ///
    /// # Errors
    /// There is none of this name, or the database cannot be read; exit status 1.
    fn snapshot(&self, settings: &Settings, name: &str) -> Result<Shown, StartError>;

    /// One snapshot, checked from end to end.
    ///
    /// # Errors
    /// As [`Program::snapshot`].
    fn check_snapshot(&self, settings: &Settings, name: &str) -> Result<SnapshotEntry, StartError>;

    /// Restores a snapshot. Runs inside a tokio runtime of one thread.
    ///
    /// # Errors
    /// Nothing was restored; exit status 1.
    fn restore(
        &self,
        settings: &Settings,
        name: &str,
        reason: &str,
        context: CallContext,
    ) -> impl Future<Output = Result<Restored, StartError>>;

    /// Looks the database over and changes nothing.
    ///
    /// # Errors
    /// Everything that is wrong in the overlay files; exit status 2.
    fn doctor(&self, resolved: &Resolved) -> Result<Report, StartError>;

    /// The tools that a server with these settings would offer, as in tools/list; opens no database.
    ///
    /// # Errors
    /// As [`Program::open`] says of settings.
    fn tools(&self, settings: &Settings) -> Result<Vec<Value>, StartError>;

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

    /// The catalog of a data folder, beside a server that may have it. With `create` both are made where they are
    /// missing. Runs inside a tokio runtime of one thread.
    ///
    /// # Errors
    /// There is no data folder, or it cannot be used; exit status 1.
    fn catalog(&self, data: &Path, create: bool) -> Result<Arc<dyn Catalog>, StartError>;

    /// What a data folder holds, beside a server that may have it. Runs inside a tokio runtime of one thread.
    ///
    /// # Errors
    /// There is no data folder, or it cannot be used; exit status 1.
    fn store(&self, place: &Primitives) -> Result<Arc<dyn Store>, StartError>;

    /// What a data folder holds, while no server has it. Runs inside a tokio runtime of one thread.
    ///
    /// # Errors
    /// A server has it, or it cannot be used; exit status 1.
    fn store_alone(&self, settings: &Settings, place: &Primitives) -> Result<Arc<dyn Store>, StartError>;

    /// Whether all of these are tools that a server with these settings would offer.
    ///
    /// # Errors
    /// The first that is none, and what may have been meant; exit status 2.
    fn check_tools(&self, settings: &Settings, names: &[&str]) -> Result<(), StartError>;

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
    crate::sandbox::survive_file_size_limits();
    let mut args = args.peekable();
    let name = args.next().unwrap_or_else(|| "indelible".into());
    // Workers start often and must start fast, and no person calls them.
    if args.peek().is_some_and(|first| first == "worker") {
        program.worker()?;
        return Ok(EXIT_OK);
    }
    crate::platform::raise_descriptors();
    let cli = match Cli::try_parse_from(std::iter::once(name).chain(args)) {
        Ok(cli) => cli,
        Err(error) => return usage::answer(&error),
    };
    let environment = |name: &str| std::env::var_os(name);
    let resolve = |raw: &RawArgs| {
        let (overlays, profile) = config::overlays(raw, environment)?;
        let profiles = program.profiles(&overlays, profile.as_deref())?;
        let resolved = config::resolve_with_origins(raw, environment, &profiles)?;
        logging::start(resolved.settings.verbosity);
        Ok(resolved)
    };
    let resolved = || resolve(&cli.raw);
    let settings = || resolved().map(|resolved| resolved.settings);
    let database = || resolved().and_then(of_database);
    if let (Some(_), Some(flag)) = (&cli.command, cli.http.given()) {
        return Err(StartError::usage(format!("{flag} is for serving; leave it out here")));
    }
    match cli.command {
        None => {
            let settings = settings()?;
            match config::http(&cli.http, environment, settings.primitives.is_some())? {
                None => serve::on_stdio(program, &settings),
                Some(http) => serve::over_http(program, &settings, &http),
            }
        }
        Some(Command::Call { tool, arguments }) => call::call(program, &settings()?, &tool, &arguments),
        Some(Command::Verify { expect_head }) => {
            verify::verify(program, &database()?.settings, expect_head.as_deref())
        }
        Some(Command::Policy { command, json }) => {
            policy::policy(program, &cli.raw, environment, command, json)
        }
        Some(Command::Tools { format, command }) => {
            tools::tools(program, &cli.raw, environment, format, command)
        }
        Some(Command::Snapshots { action }) => {
            let mut raw = cli.raw.clone();
            if raw.data.is_some() {
                raw.profile.get_or_insert_with(|| OF_DATA.to_owned());
            }
            let settings = resolve(&raw)?.settings;
            match &settings.primitives {
                Some(place) => kept::snapshots(program, &settings, place, action),
                None => snapshots::snapshots(program, &settings, action),
            }
        }
        Some(Command::Groups { action }) => {
            logging::start(cli.raw.verbose);
            people::groups(program, &config::data_folder(&cli.raw, environment)?, action)
        }
        Some(Command::Primitives { action }) => {
            logging::start(cli.raw.verbose);
            people::primitives(program, &config::data_folder(&cli.raw, environment)?, action)
        }
        Some(Command::Keys { action }) => keys::keys(program, &cli.raw, environment, action),
        Some(Command::Vault { action }) => {
            logging::start(cli.raw.verbose);
            vault::vault(program, &config::data_folder(&cli.raw, environment)?, action)
        }
        Some(Command::Doctor { json }) => doctor::doctor(program, &database()?, json),
        Some(Command::Config { client, name, write, file, hooks, log_prompts, hooks_file }) => {
            let wanted = client_config::Wanted { client, name, write, file, hooks, log_prompts, hooks_file };
            client_config::config(program, &resolved()?, &wanted)
        }
        Some(Command::Bundle { out }) => bundle::bundle(program, &cli.raw, &out),
        Some(Command::Demo) => {
            logging::start(cli.raw.verbose);
            program.demo(config::database_flag(&cli.raw, environment)?, cli.raw.profile.as_deref())?;
            Ok(EXIT_OK)
        }
        Some(Command::Completions { shell }) => completions::completions(shell),
    }
}

/// The profile that --data means where none is given.
const OF_DATA: &str = "primitives";

/// Settings for a command that works on a database.
fn of_database(resolved: Resolved) -> Result<Resolved, StartError> {
    if resolved.settings.primitives.is_some() {
        return Err(StartError::usage(format!(
            "this command works on one database, and the profile {} serves groups of primitives: use --profile memory or explorer",
            resolved.settings.profile
        )));
    }
    Ok(resolved)
}

/// Gives settings a place where none was given, for a command that looks at no place: settings must have one. Whether
/// there is a database to look at.
fn complete_place(
    raw: &mut RawArgs,
    profiles: &[Profile],
    chosen: Option<&str>,
    environment: impl Fn(&str) -> Option<OsString>,
) -> bool {
    let given = |flag: &Option<OsString>, variable| {
        flag.is_some() || environment(variable).is_some_and(|path| !path.is_empty())
    };
    let of_group = |profile: &Profile| profile.serves == Serves::Group && chosen == Some(profile.id.as_str());
    if profiles.iter().any(of_group) {
        if !given(&raw.data, "INDELIBLE_DATA") {
            raw.data = Some("none".into());
        }
        return false;
    }
    let has_database = given(&raw.db, "INDELIBLE_DB");
    if !has_database {
        raw.db = Some("none".into());
    }
    has_database
}
