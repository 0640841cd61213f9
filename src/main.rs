//! The `indelible` program: maps one function's result to an exit status.
//!
//! It decides nothing else; see `cli/`.

use indelible::cli::{self, Program, Verdict};
use indelible::config::{Profile, Settings};
use indelible::error::StartError;
use indelible::logging;
use indelible::outcome::{CallContext, Outcome};
use indelible::server::Service;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    match cli::run(&Unconnected, std::env::args_os()) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            logging::complain(&error.message);
            ExitCode::from(error.exit)
        }
    }
}

/// Stands where the application will: it has one profile and can open nothing.
struct Unconnected;

impl Program for Unconnected {
    type Service = Nothing;

    fn profiles(&self) -> Vec<Profile> {
        let defaults = indelible::spec::model::Defaults {
            query_timeout: 10.0,
            default_limit: 100,
            max_rows: 1000,
            max_result_bytes: 32_768,
            max_cell_chars: 2000,
        };
        vec![Profile { id: "memory".to_owned(), defaults }]
    }

    async fn open(&self, _: &Settings) -> Result<Arc<Nothing>, StartError> {
        Err(not_built())
    }

    fn verify(&self, _: &Settings, _: Option<&str>) -> Result<Verdict, StartError> {
        Err(not_built())
    }

    fn demo(&self, _: Option<PathBuf>) -> Result<(), StartError> {
        Err(not_built())
    }

    fn worker(&self) -> Result<(), StartError> {
        Err(not_built())
    }
}

fn not_built() -> StartError {
    StartError::failure("this build has no database engine yet")
}

/// A service that is never opened.
enum Nothing {}

impl Service for Nothing {
    fn instructions(&self) -> String {
        match *self {}
    }

    fn descriptors(&self) -> Vec<serde_json::Value> {
        match *self {}
    }

    async fn call(
        &self,
        _: String,
        _: Option<serde_json::Map<String, serde_json::Value>>,
        _: CallContext,
    ) -> Option<Outcome> {
        match *self {}
    }

    async fn shutdown(&self) {}
}
