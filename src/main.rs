//! The `indelible` program: maps one function's result to an exit status.
//!
//! It decides nothing else; see `cli/`.

use indelible::program::Indelible;
use indelible::{cli, logging};
use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run(&Indelible, std::env::args_os()) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            logging::complain(&error.message);
            error.more.iter().for_each(|line| logging::complain(line));
            ExitCode::from(error.exit)
        }
    }
}
