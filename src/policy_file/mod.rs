//! The user's policy file: read, checked against what is in force, and described.
//!
//! # Layout
//!
//! - `report`: the effective policy as a table; `explain`: one statement under it
//!
//! It judges no statement and watches no file. A reload calls [`load`] again and gives the result to the
//! pool of workers.

pub mod explain;
pub mod report;

use crate::config::Settings;
use crate::error::StartError;
use crate::generated::{POLICIES, POLICY_SHA256};
use crate::overlay;
use crate::platform;
use crate::policy::narrowing::LowerLimits;
use crate::policy::{ConnectionKind, Narrowing};
use crate::spec::check_narrowing::{Ground, GroundLimits, GroundPolicy, check_narrowing};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::Duration;

/// A policy file that may be used, and its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFile {
    /// What it takes away; nothing where there is no file.
    pub narrowing: Narrowing,
    /// SHA-256 of the effective policy, in lower-case hex: of the built-in one alone where there is no
    /// file; else of that digest, a newline, the file's text, a newline and the checked narrowing as JSON,
    /// in which the environment's values stand.
    pub sha256: String,
}

impl PolicyFile {
    /// The built-in policy alone.
    #[must_use]
    pub fn none() -> Self {
        Self { narrowing: Narrowing::default(), sha256: POLICY_SHA256.to_owned() }
    }

    /// The settings under the file's limits.
    #[must_use]
    pub fn lowered(&self, settings: Settings) -> Settings {
        let LowerLimits { max_rows, max_result_bytes, max_cell_chars, max_update_rows, query_timeout_ms } =
            self.narrowing.limits;
        let lower = |given: u64, limit: Option<u64>| limit.map_or(given, |limit| limit.min(given));
        let max_rows = lower(settings.max_rows, max_rows);
        Settings {
            max_rows,
            default_limit: settings.default_limit.min(max_rows),
            max_result_bytes: lower(settings.max_result_bytes, max_result_bytes),
            max_cell_chars: lower(settings.max_cell_chars, max_cell_chars),
            max_update_rows: lower(settings.max_update_rows, max_update_rows),
            query_timeout: query_timeout_ms.map_or(settings.query_timeout, |limit| {
                settings.query_timeout.min(Duration::from_millis(limit))
            }),
            ..settings
        }
    }
}

/// Loads and checks the policy file that the settings name; the built-in policy alone where they name none.
/// The settings are those of flags, environment and profile, without an earlier file's limits.
///
/// # Errors
/// A file that cannot be read, and every mistake in it as `file:line:col: message`, a line each; exit
/// status 2.
pub fn load(settings: &Settings) -> Result<PolicyFile, StartError> {
    let Some(path) = &settings.policy else { return Ok(PolicyFile::none()) };
    let text = overlay::text(path)
        .map_err(|why| StartError::usage(format!("the policy file `{}` {why}", path.display())))?;
    let environment = |name: &str| std::env::var(name).ok();
    let narrowing = check_narrowing(&path.display().to_string(), &text, &ground(settings)?, &environment)
        .map_err(StartError::lines)?;
    let json = serde_json::to_string(&narrowing)
        .map_err(|error| StartError::failure(format!("the policy cannot be written as JSON: {error}")))?;
    let sha256 = crate::render::hex(&Sha256::digest(format!("{POLICY_SHA256}\n{text}\n{json}")));
    Ok(PolicyFile { narrowing, sha256 })
}

/// Why the policy file is not safe from the agent's own work, if it is not: it lies in the database's
/// folder or below, and this program may write it.
#[must_use]
pub fn warning(settings: &Settings) -> Option<String> {
    let path = settings.policy.as_ref()?;
    let folder = settings.db.parent()?;
    let (real, folder) = (path.canonicalize().ok()?, folder.canonicalize().ok()?);
    (real.starts_with(&folder) && is_writable(&real)).then(|| {
        format!(
            "the policy file `{}` lies in the database's folder and can be written: work in that folder could change it; move it elsewhere or make it read-only",
            path.display()
        )
    })
}

/// Whether the file, or its folder, in which it could be replaced, may be written.
fn is_writable(path: &Path) -> bool {
    platform::may_write(path) || path.parent().is_some_and(platform::may_make_files)
}

fn ground(settings: &Settings) -> Result<Ground, StartError> {
    let sql = POLICIES.iter().filter(|policy| policy.connection != ConnectionKind::None);
    let policies = sql.map(|policy| GroundPolicy {
        id: policy.id.to_owned(),
        actions: policy.actions.to_vec(),
        pragmas: policy.pragmas.iter().map(|rule| rule.name.to_owned()).collect(),
    });
    let mut functions = crate::sqlite::hiding::function_names().map_err(|error| {
        StartError::failure(format!("SQLite does not say which functions it has: {error}"))
    })?;
    let denied = POLICIES.iter().flat_map(|policy| policy.functions_denied);
    functions.extend(denied.map(|name| (*name).to_owned()));
    let milliseconds = u64::try_from(settings.query_timeout.as_millis()).unwrap_or(u64::MAX);
    Ok(Ground {
        policies: policies.collect(),
        functions,
        limits: GroundLimits {
            max_rows: settings.max_rows,
            max_result_bytes: settings.max_result_bytes,
            max_cell_chars: settings.max_cell_chars,
            max_update_rows: settings.max_update_rows,
            query_timeout_ms: milliseconds,
        },
    })
}
