//! `indelible doctor`: what is wrong with a database and its surroundings. What it looks at is `crate::doctor`'s.

use super::{Program, output};
use crate::config::Resolved;
use crate::doctor::State;
use crate::error::{EXIT_FAILURE, EXIT_OK, StartError};

/// Prints the report; exit status 1 when there is a problem in it.
pub(super) fn doctor<P: Program>(program: &P, resolved: &Resolved, json: bool) -> Result<u8, StartError> {
    let report = program.doctor(resolved)?;
    let text = if json { format!("{:#}", report.to_json()) } else { report.to_text() };
    output::print(&text)?;
    Ok(if report.state() == State::Problem { EXIT_FAILURE } else { EXIT_OK })
}
