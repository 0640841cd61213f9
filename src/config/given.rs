//! The limits whose defaults are the profile's: what flags and variables say of them, and settings under other
//! defaults.
//!
//! An overlay that is read again while serving may change the profile's defaults. It judges no text.

use super::Settings;
use crate::spec::model::Defaults;
use std::time::Duration;

/// What flags and variables say; none where the profile's default holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenLimits {
    /// Rows a call may ask for.
    pub max_rows: Option<u64>,
    /// Rows a call returns when it names no limit.
    pub default_limit: Option<u64>,
    /// Bytes of a result.
    pub max_result_bytes: Option<u64>,
    /// Characters of a cell.
    pub max_cell_chars: Option<u64>,
    /// How long a statement may run.
    pub query_timeout: Option<Duration>,
}

impl Settings {
    /// The settings with other defaults of the profile, flags and variables as before.
    ///
    /// # Errors
    /// A given `--default-limit` above what would be the greatest limit, in one line.
    pub fn over(&self, defaults: &Defaults) -> Result<Self, String> {
        let given = self.given;
        let max_rows = given.max_rows.unwrap_or(defaults.max_rows);
        let default_limit = given.default_limit.unwrap_or_else(|| defaults.default_limit.min(max_rows));
        if default_limit > max_rows {
            return Err(format!(
                "the profile's `max_rows` would be {max_rows}, and --default-limit is {default_limit}"
            ));
        }
        let query_timeout = given
            .query_timeout
            .unwrap_or_else(|| Duration::try_from_secs_f64(defaults.query_timeout).unwrap_or(Duration::MAX));
        Ok(Self {
            max_rows,
            default_limit,
            max_result_bytes: given.max_result_bytes.unwrap_or(defaults.max_result_bytes),
            max_cell_chars: given.max_cell_chars.unwrap_or(defaults.max_cell_chars),
            query_timeout,
            ..self.clone()
        })
    }
}
