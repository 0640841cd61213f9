//! The YAML manifest: its model, and (next to it) how it is loaded, checked and reported on.
//!
//! Shared by build.rs and the runtime, so that an overlay is checked exactly as the build checks.

pub mod model;
