//! The settings that tool words, schemas and instructions may name as `{{ max_rows }}`.
//!
//! It holds values; where they come from (flag, environment, default) is not decided here.

use super::model::Defaults;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// Rows that one write may overwrite, unless set.
pub const DEFAULT_MAX_UPDATE_ROWS: u64 = 500;
/// Automatic snapshots kept, unless set.
pub const DEFAULT_SNAPSHOTS: u64 = 5;
/// Candidate rows of a search, unless set: 0 is no cap.
pub const DEFAULT_SEARCH_CANDIDATES: u64 = 0;

/// The active limits, as templates see them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SurfaceSettings {
    /// Rows: the greatest `limit`.
    pub max_rows: u64,
    /// Rows: `limit` where it is left out.
    pub default_limit: u64,
    /// Bytes of one result.
    pub max_result_bytes: u64,
    /// Characters of one cell.
    pub max_cell_chars: u64,
    /// Existing rows one write may overwrite.
    pub max_update_rows: u64,
    /// Seconds a statement may run; shown without `.0` when whole.
    #[serde(serialize_with = "seconds")]
    pub query_timeout: f64,
    /// Automatic snapshots kept; 0 makes none.
    pub snapshots: u64,
    /// Candidate rows of a search; 0 is no cap.
    pub search_candidates: u64,
}

impl SurfaceSettings {
    /// A profile's defaults, with the defaults that all profiles share.
    #[must_use]
    pub fn for_profile(defaults: &Defaults) -> Self {
        Self {
            max_rows: defaults.max_rows,
            default_limit: defaults.default_limit,
            max_result_bytes: defaults.max_result_bytes,
            max_cell_chars: defaults.max_cell_chars,
            max_update_rows: DEFAULT_MAX_UPDATE_ROWS,
            query_timeout: defaults.query_timeout,
            snapshots: DEFAULT_SNAPSHOTS,
            search_candidates: DEFAULT_SEARCH_CANDIDATES,
        }
    }

    /// The settings by name.
    #[must_use]
    pub fn to_map(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map,
            // A struct of numbers is always an object; nothing known is the safe answer otherwise.
            _ => Map::new(),
        }
    }

    /// The setting that `{{ name }}` stands for, as a whole number.
    #[must_use]
    pub fn whole(&self, name: &str) -> Option<u64> {
        self.to_map().get(name).and_then(Value::as_u64)
    }
}

/// `max_rows` of `{{ max_rows }}`: text that is one setting in braces and nothing else.
#[must_use]
pub fn setting_in_braces(text: &str) -> Option<&str> {
    Some(text.trim().strip_prefix("{{")?.strip_suffix("}}")?.trim())
}

// serde hands the field by reference.
fn seconds<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && (0.0..1e15).contains(value) {
        serializer.serialize_u64(*value as u64)
    } else {
        serializer.serialize_f64(*value)
    }
}
