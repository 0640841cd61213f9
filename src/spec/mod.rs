//! The YAML manifest and policy: the models, and how they are loaded, checked and reported on.
//!
//! Shared by build.rs and the runtime, so that an overlay is checked exactly as the build checks. Pure
//! functions over text: it opens no file and prints nothing.

pub mod check;
pub mod check_narrowing;
pub mod check_offers;
pub mod check_policy;
pub mod check_tool;
pub mod descriptor;
pub mod diagnostic;
pub mod environment;
pub mod load;
pub mod model;
pub mod params;
pub mod policy_model;
pub mod position;
pub mod raw;
pub mod report;
pub mod settings;
pub mod shape;

pub use check::{Checked, Source, check_sources};
