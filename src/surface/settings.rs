//! The active limits that words and schemas name; the type is shared with the build.
//!
//! It resolves nothing: `config.rs` does.

pub use crate::spec::settings::{
    DEFAULT_MAX_UPDATE_ROWS, DEFAULT_SEARCH_CANDIDATES, DEFAULT_SNAPSHOTS, SurfaceSettings,
};
