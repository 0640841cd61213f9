//! The program with toy tools instead of a database, for `tests/protocol_stdio.rs`.
//!
//! Everything above the tools is the real thing: command line, settings, signals, streams, protocol.

#[path = "../tests/toy/mod.rs"]
mod toy;

use indelible::cli::{self, PolicyQuestion, Program, ToolsReport, Verdict};
use indelible::config::{HttpSettings, Primitives, Profile, Resolved, Settings};
use indelible::doctor::{self, Report};
use indelible::error::{EXIT_UNREADABLE, StartError};
use indelible::logging;
use indelible::outcome::CallContext;
use indelible::program::ServedGroups;
use indelible::server::Service;
use indelible::spec::model::{Defaults, Serves};
use indelible::sqlite::restore::{Restored, Shown, SnapshotEntry};
use indelible::state::catalog::Catalog;
use indelible::state::store::Store;
use serde_json::Value;
use std::path::{Path, PathBuf};
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
    type Groups = ServedGroups;

    fn check_tools(&self, _: &Settings, _: &[&str]) -> Result<(), StartError> {
        Ok(())
    }

    async fn open_groups(&self, _: &Settings, _: &HttpSettings) -> Result<Arc<ServedGroups>, StartError> {
        Err(StartError::failure("the toy serves no groups"))
    }

    fn catalog(&self, _: &Path, _: bool) -> Result<Arc<dyn Catalog>, StartError> {
        Err(StartError::failure("the toy has no data folder"))
    }

    fn profiles(&self, _: &[PathBuf], _: Option<&str>) -> Result<Vec<Profile>, StartError> {
        let defaults = Defaults {
            query_timeout: 10.0,
            default_limit: 100,
            max_rows: 1000,
            max_result_bytes: 32_768,
            max_cell_chars: 2000,
        };
        Ok(vec![Profile { id: "toys".to_owned(), defaults, only_reads: false, serves: Serves::Database }])
    }

    async fn open(&self, settings: &Settings) -> Result<Arc<Toy>, StartError> {
        match settings.db.file_name().and_then(|name| name.to_str()) {
            Some("broken") => Err(StartError::failure("the toy box is broken")),
            _ => Ok(Arc::new(Toy::default())),
        }
    }

    async fn tools_report(&self, _: &Settings, _: bool) -> Result<ToolsReport, StartError> {
        Err(StartError::failure("toys are not listed"))
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

    fn store(&self, _: &Primitives) -> Result<Arc<dyn Store>, StartError> {
        Err(StartError::failure("toys keep no state"))
    }

    fn store_alone(&self, _: &Settings, _: &Primitives) -> Result<Arc<dyn Store>, StartError> {
        Err(StartError::failure("toys keep no state"))
    }

    fn snapshots(&self, _: &Settings) -> Result<Vec<SnapshotEntry>, StartError> {
        Ok(Vec::new())
    }

    fn snapshot(&self, _: &Settings, _: &str) -> Result<Shown, StartError> {
        Err(no_snapshots())
    }

    fn check_snapshot(&self, _: &Settings, _: &str) -> Result<SnapshotEntry, StartError> {
        Err(no_snapshots())
    }

    async fn restore(&self, _: &Settings, _: &str, _: &str, _: CallContext) -> Result<Restored, StartError> {
        Err(no_snapshots())
    }

    fn doctor(&self, resolved: &Resolved) -> Result<Report, StartError> {
        Ok(doctor::examine(resolved, String::new()))
    }

    fn tools(&self, _: &Settings) -> Result<Vec<Value>, StartError> {
        Ok(Toy::default().descriptors())
    }

    fn demo(&self, _: Option<PathBuf>, _: Option<&str>) -> Result<(), StartError> {
        Err(StartError::failure("toys have no demo"))
    }

    fn worker(&self) -> Result<(), StartError> {
        Err(StartError::failure("toys do not work"))
    }
}

fn no_snapshots() -> StartError {
    StartError::failure("toys have no snapshots")
}
