//! `indelible completions SHELL`: a completion script on stdout. It installs nothing.

use super::args::Cli;
use super::output;
use crate::error::{EXIT_OK, StartError};
use clap::CommandFactory;
use clap_complete::Shell;

pub(super) fn completions(shell: Shell) -> Result<u8, StartError> {
    // Into memory first: the generator panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "indelible", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(EXIT_OK)
}
