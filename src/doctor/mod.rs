//! `indelible doctor`: looks a database and its surroundings over, and says what is wrong and what to do.
//!
//! It changes nothing. What the database holds is found by `sqlite::checkup`; here it gets its meaning.
//!
//! # Layout
//!
//! - `file`: the file and its folder, before SQLite is asked
//! - `database`: what SQLite found in it
//! - `archives`: files with old log rows
//! - `snapshots`: the folder of snapshots
//! - `sandbox`: how far the system confines workers
//! - `report`: findings as text and JSON

mod archives;
mod database;
mod file;
mod report;
mod sandbox;
mod snapshots;

pub use report::{Finding, Report, State};

use crate::config::Resolved;
use crate::policy_file::{self, PolicyFile};
use crate::sqlite::checkup::checkup;

/// Looks everything over; `manifest_sha256` is of the tools in force. The process must have no connection to the database.
#[must_use]
pub fn examine(resolved: &Resolved, manifest_sha256: String) -> Report {
    let settings = &resolved.settings;
    let (mut findings, readable) = file::look(settings);
    if readable {
        match checkup(&settings.db, settings.busy_timeout) {
            Ok(found) => {
                findings.extend(database::judge(&found, settings));
                findings.extend(archives::judge(&found.trims, settings));
            }
            Err(error) => {
                findings.push(Finding::from_line(State::Problem, "database", &error.message));
            }
        }
    }
    findings.extend(snapshots::look(settings));
    findings.extend(sandbox::look());
    let policy = policy(resolved, &mut findings);
    Report {
        database: settings.db.to_string_lossy().into_owned(),
        findings,
        settings: resolved.listed.clone(),
        manifest_sha256,
        policy_sha256: policy.sha256,
    }
}

/// The policy file, where there is one; each mistake in it is a problem.
fn policy(resolved: &Resolved, findings: &mut Vec<Finding>) -> PolicyFile {
    let settings = &resolved.settings;
    let mut say = |state: State, line: &str| findings.push(Finding::from_line(state, "policy file", line));
    let loaded = policy_file::load(settings);
    match (&settings.policy, &loaded, policy_file::warning(settings)) {
        (None, ..) => {}
        (_, Err(error), _) => {
            let lines = std::iter::once(&error.message).chain(&error.more);
            lines.for_each(|line| say(State::Problem, line));
        }
        (_, _, Some(warning)) => say(State::Warning, &warning),
        (Some(path), Ok(_), None) => say(State::Ok, &path.display().to_string()),
    }
    loaded.unwrap_or_else(|_| PolicyFile::none())
}

/// Bytes as a person reads them: `4.0 KiB`.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} bytes");
    }
    let mut size = count as f64 / 1024.0;
    let mut unit = UNITS[0];
    for larger in UNITS.into_iter().skip(1) {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    format!("{size:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_the_unit_that_fits() {
        let rows = [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (1_572_864, "1.5 MiB"),
            (5 << 40, "5.0 TiB"),
            (5 << 50, "5120.0 TiB"),
        ];
        for (count, expected) in rows {
            assert_eq!(bytes(count), expected);
        }
    }
}
