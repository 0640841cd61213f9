//! `indelible demo`: an agent's session on a small music store, shown to a person.
use crate::error::StartError;
use std::path::PathBuf;

/// Shows the session.
///
/// # Errors
/// What keeps it from being shown.
pub fn run(_db: Option<PathBuf>) -> Result<(), StartError> {
    Err(StartError::failure("not yet"))
}
