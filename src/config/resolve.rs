//! Judges the settings: flag before environment before default, each value against its rule.
//!
//! Pure but for the current folder, which makes relative paths absolute. It does not look whether
//! a path exists.

use super::GivenLimits;
use super::origin::{self, Resolved};
use super::primitives::Primitives;
use super::raw::RawArgs;
use super::value::Given;
use super::vault_key;
use crate::audit::Keep;
use crate::error::StartError;
use crate::spec::model::{Defaults, Serves};
use crate::state::catalog::check_name;
use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// Rows a write may overwrite.
const MAX_UPDATE_ROWS: u64 = 500;
/// Automatic snapshots kept.
const SNAPSHOTS: u64 = 5;
/// Seconds to wait for a lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A profile that can be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name: `memory`.
    pub id: String,
    /// What its settings start from.
    pub defaults: Defaults,
    /// Whether none of its tools writes: it is served as with --read-only.
    pub only_reads: bool,
    /// What its tools work on.
    pub serves: Serves,
}

/// Before which calls a person is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confirm {
    /// Before none.
    #[default]
    None,
    /// Before those that destroy.
    Destructive,
}

impl Confirm {
    /// As it is given: `destructive`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Destructive => "destructive",
        }
    }
}

/// Every setting, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The database, absolute; empty where the profile serves groups of primitives.
    pub db: PathBuf,
    /// Where primitives are kept; only where the profile serves groups of them.
    pub primitives: Option<Primitives>,
    /// The profile's name; one that exists.
    pub profile: String,
    /// Overlay files, in the order to lay them over the built-in tools; as given, but for `~`.
    pub tools: Vec<PathBuf>,
    /// Only tools that read; nothing is written to the file.
    pub read_only: bool,
    /// Nobody writes the file while it is served; only with a profile that only reads.
    pub immutable: bool,
    /// How long a statement may run; above zero, at most a day.
    pub query_timeout: Duration,
    /// How long to wait for another process's lock; zero is not at all.
    pub busy_timeout: Duration,
    /// Rows a call returns when it names no limit; 1 to `max_rows`.
    pub default_limit: u64,
    /// Rows a call may ask for; at least 1.
    pub max_rows: u64,
    /// Bytes of result text without trailer; at least 1.
    pub max_result_bytes: u64,
    /// Characters (Unicode scalar values) of one cell; at least 1.
    pub max_cell_chars: u64,
    /// Existing rows one write may overwrite; 0 is none.
    pub max_update_rows: u64,
    /// Rows a text search may look at; 0 is no bound.
    pub search_candidates: u64,
    /// Automatic snapshots kept; 0 makes none.
    pub snapshots: u64,
    /// Before which calls a person is asked.
    pub confirm: Confirm,
    /// The folder for snapshots, absolute.
    pub snapshot_dir: PathBuf,
    /// How much of the log stays in the database; none is all.
    pub audit_keep: Option<Keep>,
    /// Where every call is added as a line of JSON, absolute.
    pub audit_log: Option<PathBuf>,
    /// The file that narrows the policies, absolute.
    pub policy: Option<PathBuf>,
    /// 0, 1 or 2: how much is said on stderr.
    pub verbosity: u8,
    /// Which limits flags and variables set, and not the profile.
    pub given: GivenLimits,
}

/// Resolves the settings. The first profile is the default one.
///
/// # Errors
/// The first value that breaks its rule, as one line that names the flag or variable, the value and
/// the rule; exit status 2.
pub fn resolve(
    raw: &RawArgs,
    env: impl Fn(&str) -> Option<OsString>,
    profiles: &[Profile],
) -> Result<Settings, StartError> {
    resolve_with_origins(raw, env, profiles).map(|resolved| resolved.settings)
}

/// The same, with where each setting came from.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_with_origins(
    raw: &RawArgs,
    env: impl Fn(&str) -> Option<OsString>,
    profiles: &[Profile],
) -> Result<Resolved, StartError> {
    let sources = Sources { env, seen: RefCell::default() };
    let settings = judge(raw, &sources, profiles)?;
    let listed = origin::listed(raw, &settings, &sources.seen.into_inner());
    Ok(Resolved { settings, listed })
}

fn judge<E: Fn(&str) -> Option<OsString>>(
    raw: &RawArgs,
    sources: &Sources<E>,
    profiles: &[Profile],
) -> Result<Settings, StartError> {
    let home = (sources.env)("HOME");
    let home = home.as_deref();

    let profile = sources.profile(raw, profiles)?;
    let defaults = &profile.defaults;
    let (db, primitives) = sources.place(raw, profile, home)?;
    let counted = |flag, given: &Option<String>, least: u64| {
        let given = sources.given(flag, given.as_deref().map(OsStr::new));
        given.map(|given| given.count(least..=MOST)).transpose()
    };
    let count = |flag, given: &Option<String>, least: u64, default: u64| {
        counted(flag, given, least).map(|given| given.unwrap_or(default))
    };

    let given_max_rows = counted("max-rows", &raw.max_rows, 1)?;
    let max_rows = given_max_rows.unwrap_or(defaults.max_rows);
    let given_default_limit = match sources.text("default-limit", &raw.default_limit) {
        None => None,
        Some(given) => {
            let limit = given.count(1..=MOST)?;
            if limit > max_rows {
                return Err(given.refused(format_args!("must be at most --max-rows, which is {max_rows}")));
            }
            Some(limit)
        }
    };
    let immutable = raw.immutable || sources.given("immutable", None).map_or(Ok(false), |g| g.boolean())?;
    if immutable && !profile.only_reads {
        return Err(StartError::usage(format!(
            "--immutable is for profiles that only read, and {} writes: use --profile explorer",
            profile.id
        )));
    }
    let given_timeout = match sources.text("query-timeout", &raw.query_timeout) {
        Some(given) => Some(given.seconds(false)?),
        None => match sources.text("timeout-ms", &raw.timeout_ms) {
            Some(given) => Some(Duration::from_millis(given.count(1..=86_400_000)?)),
            None => None,
        },
    };
    let given = GivenLimits {
        max_rows: given_max_rows,
        default_limit: given_default_limit,
        max_result_bytes: counted("max-result-bytes", &raw.max_result_bytes, 1)?,
        max_cell_chars: counted("max-cell-chars", &raw.max_cell_chars, 1)?,
        query_timeout: given_timeout,
    };
    let snapshot_dir = sources.path("snapshot-dir", raw.snapshot_dir.as_deref(), home)?;
    Ok(Settings {
        profile: profile.id.clone(),
        primitives,
        tools: sources.overlays(raw, home)?,
        immutable,
        read_only: profile.only_reads
            || raw.read_only
            || sources.given("read-only", None).map_or(Ok(false), |g| g.boolean())?,
        query_timeout: given_timeout
            .unwrap_or_else(|| Duration::try_from_secs_f64(defaults.query_timeout).unwrap_or(Duration::MAX)),
        busy_timeout: match sources.text("busy-timeout", &raw.busy_timeout) {
            Some(given) => given.seconds(true)?,
            None => BUSY_TIMEOUT,
        },
        default_limit: given_default_limit.unwrap_or_else(|| defaults.default_limit.min(max_rows)),
        max_rows,
        max_result_bytes: given.max_result_bytes.unwrap_or(defaults.max_result_bytes),
        max_cell_chars: given.max_cell_chars.unwrap_or(defaults.max_cell_chars),
        given,
        max_update_rows: count("max-update-rows", &raw.max_update_rows, 0, MAX_UPDATE_ROWS)?,
        search_candidates: count("search-candidates", &raw.search_candidates, 0, 0)?,
        snapshots: count("snapshots", &raw.snapshots, 0, SNAPSHOTS)?,
        confirm: sources.confirm(&raw.confirm)?,
        snapshot_dir: snapshot_dir.unwrap_or_else(|| {
            if db.as_os_str().is_empty() {
                return PathBuf::new();
            }
            let mut beside = db.clone().into_os_string();
            beside.push(".snapshots");
            beside.into()
        }),
        audit_keep: sources.text("audit-keep", &raw.audit_keep).map(|given| given.keep()).transpose()?,
        audit_log: sources.path("audit-log", raw.audit_log.as_deref(), home)?,
        policy: sources.path("policy", raw.policy.as_deref(), home)?,
        verbosity: sources.verbosity(raw)?,
        db,
    })
}

/// The overlay files, and the name of the profile if one is chosen: which profiles there are depends on them.
///
/// # Errors
/// A path that cannot be one; exit status 2.
pub fn overlays(
    raw: &RawArgs,
    env: impl Fn(&str) -> Option<OsString>,
) -> Result<(Vec<PathBuf>, Option<String>), StartError> {
    let sources = Sources { env, seen: RefCell::default() };
    let home = (sources.env)("HOME");
    let profile = sources.text("profile", &raw.profile);
    let profile = profile.map(|given| given.text.to_string_lossy().into_owned());
    Ok((sources.overlays(raw, home.as_deref())?, profile))
}

/// The path of --db alone, absolute. The variable is left aside: whoever sets it means the real database.
///
/// # Errors
/// A path that cannot be made absolute; exit status 2.
pub fn database_flag(
    raw: &RawArgs,
    env: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<PathBuf>, StartError> {
    let home = env("HOME");
    let flag = raw.db.clone().map(|text| Given { name: "--db".to_owned(), text });
    flag.map(|given| given.path(home.as_deref())).transpose()
}

/// The data folder, absolute, and the group if one is given, for commands that need nothing else.
///
/// # Errors
/// As [`resolve`] says of both.
pub fn data_folder(raw: &RawArgs, env: impl Fn(&str) -> Option<OsString>) -> Result<Primitives, StartError> {
    let sources = Sources { env, seen: RefCell::default() };
    let home = (sources.env)("HOME");
    sources.data_folder(raw, "this command", home.as_deref())
}

/// The greatest count a setting takes: what fits both an SQLite integer and a 32-bit size.
const MOST: u64 = 2_147_483_647;

/// Where settings come from.
pub(super) struct Sources<E> {
    pub(super) env: E,
    /// What was given, by the flag that asks for it.
    pub(super) seen: RefCell<Vec<(String, Given)>>,
}

impl<E: Fn(&str) -> Option<OsString>> Sources<E> {
    /// The flag's text, or else its variable's; an empty variable is as none.
    pub(super) fn given(&self, flag: &str, text: Option<&OsStr>) -> Option<Given> {
        let given = self.flag_or_variable(flag, text)?;
        self.seen.borrow_mut().push((flag.to_owned(), given.clone()));
        Some(given)
    }

    fn flag_or_variable(&self, flag: &str, text: Option<&OsStr>) -> Option<Given> {
        if let Some(text) = text {
            return Some(Given { name: format!("--{flag}"), text: text.to_owned() });
        }
        let name = format!("INDELIBLE_{}", flag.replace('-', "_").to_ascii_uppercase());
        let text = (self.env)(&name).filter(|text| !text.is_empty())?;
        Some(Given { name, text })
    }

    pub(super) fn text(&self, flag: &str, text: &Option<String>) -> Option<Given> {
        self.given(flag, text.as_deref().map(OsStr::new))
    }

    fn path(
        &self,
        flag: &str,
        text: Option<&OsStr>,
        home: Option<&OsStr>,
    ) -> Result<Option<PathBuf>, StartError> {
        self.given(flag, text).map(|given| given.path(home)).transpose()
    }

    /// What is served: a database, or a data folder with a group in it.
    fn place(
        &self,
        raw: &RawArgs,
        profile: &Profile,
        home: Option<&OsStr>,
    ) -> Result<(PathBuf, Option<Primitives>), StartError> {
        let id = &profile.id;
        match profile.serves {
            Serves::Database => {
                // A variable may be there for another server.
                if raw.data.is_some() || raw.group.is_some() || raw.embedding_model.is_some() {
                    return Err(StartError::usage(format!(
                        "--data, --group and --embedding-model are for the profile primitives, and {id} serves one database: give --db PATH"
                    )));
                }
                let db = self.path("db", raw.db.as_deref(), home)?;
                let db =
                    db.ok_or_else(|| StartError::usage("no database: give --db PATH, or set INDELIBLE_DB"))?;
                Ok((db, None))
            }
            Serves::Group => {
                Ok((PathBuf::new(), Some(self.data_folder(raw, &format!("the profile {id}"), home)?)))
            }
        }
    }

    /// The data folder and the group; `who` works on them.
    fn data_folder(&self, raw: &RawArgs, who: &str, home: Option<&OsStr>) -> Result<Primitives, StartError> {
        if raw.db.is_some() {
            return Err(StartError::usage(format!(
                "--db is for profiles that serve one database, and {who} works on a data folder: give --data DIR"
            )));
        }
        let data = self.path("data", raw.data.as_deref(), home)?;
        let data =
            data.ok_or_else(|| StartError::usage("no data folder: give --data DIR, or set INDELIBLE_DATA"))?;
        let group =
            self.text("group", &raw.group).map(|given| match given.text.to_str() {
                Some(name) if check_name("group", name).is_ok() => Ok(name.to_owned()),
                _ => Err(given
                    .refused("must be 1 to 64 letters, digits, `_`, `-` or `.`, first a letter or digit")),
            });
        let embedding_model = self.path("embedding-model", raw.embedding_model.as_deref(), home)?;
        let vault_key = vault_key::given(&self.env)?;
        Ok(Primitives { data, group: group.transpose()?, embedding_model, vault_key })
    }

    fn overlays(&self, raw: &RawArgs, home: Option<&OsStr>) -> Result<Vec<PathBuf>, StartError> {
        let named = |name: &str, text: OsString| Given { name: name.to_owned(), text }.expanded(home);
        if let Some(first) = raw.tools.first() {
            self.given("tools", Some(first));
            return raw.tools.iter().map(|text| named("--tools", text.clone())).collect();
        }
        let Some(given) = self.given("tools", None) else { return Ok(Vec::new()) };
        let paths = std::env::split_paths(&given.text).filter(|path| !path.as_os_str().is_empty());
        paths.map(|path| named("INDELIBLE_TOOLS", path.into_os_string())).collect()
    }

    fn profile<'p>(&self, raw: &RawArgs, profiles: &'p [Profile]) -> Result<&'p Profile, StartError> {
        let Some(given) = self.text("profile", &raw.profile) else {
            return profiles.first().ok_or_else(|| StartError::failure("the manifest has no profile"));
        };
        let found = profiles.iter().find(|profile| given.text == OsStr::new(&profile.id));
        found.ok_or_else(|| {
            let names: Vec<&str> = profiles.iter().map(|profile| profile.id.as_str()).collect();
            given.refused(format_args!("no such profile; there is {}", names.join(", ")))
        })
    }

    fn confirm(&self, text: &Option<String>) -> Result<Confirm, StartError> {
        let Some(given) = self.text("confirm", text) else { return Ok(Confirm::None) };
        match given.text.to_str().map(str::trim) {
            Some("none") => Ok(Confirm::None),
            Some("destructive") => Ok(Confirm::Destructive),
            _ => Err(given.refused("must be none or destructive")),
        }
    }

    fn verbosity(&self, raw: &RawArgs) -> Result<u8, StartError> {
        if raw.verbose > 0 {
            return Ok(raw.verbose.min(2));
        }
        let Some(given) = self.given("verbose", None) else { return Ok(0) };
        match given.text.to_str().map(str::trim) {
            Some("2") => Ok(2),
            _ => given.boolean().map(u8::from).map_err(|_| given.refused("must be 0, 1 or 2")),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
