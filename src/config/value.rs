//! One setting's text to its value, or to the one line that says what is wrong with it.
//!
//! It does not know which settings there are.

use crate::audit::Keep;
use crate::error::StartError;
use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest time a setting may name, in seconds: a day.
const MAX_SECONDS: f64 = 86_400.0;

/// A setting's text and where it stood.
#[derive(Clone, Debug)]
pub(super) struct Given {
    /// The flag (`--db`) or the variable (`INDELIBLE_DB`).
    pub(super) name: String,
    pub(super) text: OsString,
}

impl Given {
    /// The one line about a value that breaks a rule.
    pub(super) fn refused(&self, rule: impl std::fmt::Display) -> StartError {
        let text = self.text.to_string_lossy();
        StartError::usage(format!("{} `{}`: {rule}", self.name, text.escape_debug()))
    }

    pub(super) fn count(&self, allowed: RangeInclusive<u64>) -> Result<u64, StartError> {
        let (low, high) = (allowed.start(), allowed.end());
        let count = self.text.to_str().and_then(|text| text.trim().parse().ok());
        count
            .filter(|count| allowed.contains(count))
            .ok_or_else(|| self.refused(format_args!("must be a whole number from {low} to {high}")))
    }

    /// Seconds with decimals. Zero only where `zero` says so.
    pub(super) fn seconds(&self, zero: bool) -> Result<Duration, StartError> {
        let seconds = self.text.to_str().and_then(|text| text.trim().parse::<f64>().ok());
        let seconds = seconds.filter(|s| (*s > 0.0 || (zero && *s == 0.0)) && *s <= MAX_SECONDS);
        // Below a nanosecond a Duration is zero.
        let duration = seconds.map(Duration::from_secs_f64).filter(|d| zero || !d.is_zero());
        duration.ok_or_else(|| {
            let least = if zero { "from 0" } else { "above 0" };
            self.refused(format_args!("must be a number of seconds {least} to {MAX_SECONDS}"))
        })
    }

    /// A number of rows, or of days as in `90d`.
    pub(super) fn keep(&self) -> Result<Keep, StartError> {
        let text = self.text.to_str().map(str::trim).unwrap_or_default();
        let keep = match text.strip_suffix('d') {
            Some(days) => days.parse().ok().filter(|days| (1..=36_500).contains(days)).map(Keep::Days),
            None => text.parse().ok().filter(|rows| (1..=2_147_483_647).contains(rows)).map(Keep::Rows),
        };
        keep.ok_or_else(|| self.refused("must be a number of rows, such as 100000, or of days, such as 90d"))
    }

    pub(super) fn boolean(&self) -> Result<bool, StartError> {
        match self.text.to_str().map(|text| text.trim().to_ascii_lowercase()).as_deref() {
            Some("1" | "true" | "yes") => Ok(true),
            Some("0" | "false" | "no") => Ok(false),
            _ => Err(self.refused("must be one of 1, 0, true, false, yes, no")),
        }
    }

    /// An absolute path; `~` alone or before a slash is the home folder.
    pub(super) fn path(&self, home: Option<&OsStr>) -> Result<PathBuf, StartError> {
        std::path::absolute(self.expanded(home)?).map_err(|error| self.refused(error))
    }

    /// The path as it was given, but for `~`.
    pub(super) fn expanded(&self, home: Option<&OsStr>) -> Result<PathBuf, StartError> {
        if self.text.is_empty() {
            return Err(self.refused("must be a path"));
        }
        let path = Path::new(&self.text);
        Ok(match path.strip_prefix("~") {
            Err(_) => path.to_owned(),
            Ok(rest) => {
                let home = home.filter(|home| !home.is_empty());
                let home = home.ok_or_else(|| self.refused("`~` needs HOME to be set"))?;
                // Joining an empty rest would end the path with a slash.
                if rest.as_os_str().is_empty() { home.into() } else { Path::new(home).join(rest) }
            }
        })
    }
}
