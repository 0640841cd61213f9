//! How a server starts its workers: with a folder for temporary files that they share, and one word about what their
//! sandbox lacks.
//!
//! It keeps no workers; `pool` does.

use super::child::Worker;
use super::temp_folder::TempFolder;
use crate::sandbox::Confined;
use std::io;
use std::path::PathBuf;
use std::sync::{Once, OnceLock};

/// What the workers of one server have in common.
#[derive(Debug)]
pub(super) struct Nursery {
    /// The program that a worker is; this one where it is left out.
    program: Option<PathBuf>,
    /// Made with the first worker; none if it could not be.
    temporary: OnceLock<Option<TempFolder>>,
    lacks_said: Once,
}

impl Nursery {
    pub(super) fn of(program: Option<PathBuf>) -> Self {
        Self { program, temporary: OnceLock::new(), lacks_said: Once::new() }
    }

    /// Starts a worker.
    pub(super) fn spawn(&self) -> io::Result<Worker> {
        let temporary = self.temporary.get_or_init(|| {
            let made = TempFolder::create();
            if let Err(why) = &made {
                tracing::warn!(
                    "no folder for temporary files could be made ({why}), so large sorts fail; set TMPDIR to one that can be written"
                );
            }
            made.ok()
        });
        Worker::spawn(self.program.as_deref(), temporary.as_ref().map(TempFolder::path))
    }

    /// Says what a worker lacks, once for a server, and only where something can be done about it: a system without a
    /// sandbox is known to be one.
    pub(super) fn note(&self, confined: &Confined) {
        if cfg!(target_os = "linux") && !confined.lacks.is_empty() {
            self.lacks_said.call_once(|| {
                tracing::warn!("workers run less confined than they should: {}", confined.lacks.join("; "));
            });
        }
    }
}
