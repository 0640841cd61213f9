//! The program with toy tools instead of a database, for `tests/protocol_stdio.rs`.
//!
//! Everything above the tools is the real thing: command line, settings, signals, streams, protocol.

#[path = "../tests/toy/mod.rs"]
mod toy;

use indelible::cli::{self, PolicyQuestion, Program, Verdict};
use indelible::config::{Profile, Settings};
use indelible::error::{EXIT_UNREADABLE, StartError};
use indelible::logging;
use indelible::spec::model::Defaults;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use toy::Toy;

fn main() -> ExitCode {
    match cli::run(&ToyProgram, std::env::args_os()) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            logging::complain(&error.message);
            ExitCode::from(error.exit)
        }
    }
}

struct ToyProgram;

impl Program for ToyProgram {
    type Service = Toy;

    fn profiles(&self) -> Vec<Profile> {
        let defaults = Defaults {
            query_timeout: 10.0,
            default_limit: 100,
            max_rows: 1000,
            max_result_bytes: 32_768,
            max_cell_chars: 2000,
        };
        vec![Profile { id: "toys".to_owned(), defaults, only_reads: false }]
    }

    async fn open(&self, settings: &Settings) -> Result<Arc<Toy>, StartError> {
        match settings.db.file_name().and_then(|name| name.to_str()) {
            Some("broken") => Err(StartError::failure("the toy box is broken")),
            _ => Ok(Arc::new(Toy::default())),
        }
    }

    /// Intact when the expected head is all zeros or none is.
    fn verify(&self, settings: &Settings, expect_head: Option<&str>) -> Result<Verdict, StartError> {
        if settings.db.ends_with("broken") {
            return Err(StartError { exit: EXIT_UNREADABLE, ..StartError::failure("no toys in here") });
        }
        let intact = expect_head.is_none_or(|head| head.bytes().all(|digit| digit == b'0'));
        Ok(Verdict { text: format!("intact: {intact}"), intact })
    }

    fn policy(&self, _: &Settings, question: &PolicyQuestion) -> Result<String, StartError> {
        Ok(format!("toys only, json: {}", question.json))
    }

    fn demo(&self, _: Option<PathBuf>, _: Option<&str>) -> Result<(), StartError> {
        Err(StartError::failure("toys have no demo"))
    }

    fn worker(&self) -> Result<(), StartError> {
        Err(StartError::failure("toys do not work"))
    }
}
