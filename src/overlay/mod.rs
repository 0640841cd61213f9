//! Overlays: files that change the tools at run time, laid over the built-in manifest in the order given.
//!
//! Checked as the build checks tools.yaml, with the same messages. Pure but for [`read`]; statements of new tools
//! are checked here only as far as that goes without a database.
//!
//! # Layout
//!
//! - `raw`: a file as parsed
//! - `merge`: all files over the manifest; `change`: one entry for a tool that is there; `statement`: one new
//!   tool; `profile`: one profile; `rename`: renamed tools in the words of others
//! - `check`: what holds for the whole: names, templates, budgets
//! - `export`: the tools in force as an overlay

mod change;
mod check;
pub mod export;
mod merge;
mod profile;
pub mod raw;
mod rename;
mod statement;

pub use merge::merge;

use crate::spec::diagnostic::Diagnostic;
use crate::spec::model::Manifest;
use crate::spec::position::{Position, TOP};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The longest overlay file, in bytes.
const MOST_BYTES: u64 = 1024 * 1024;

/// A file's text, and the name that diagnostics give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlayFile {
    /// As the user gave it.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// A place in an overlay file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The file's name.
    pub file: String,
    /// Where in it.
    pub position: Position,
}

/// What of a tool, or of a profile, an overlay said something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Entry,
    Name,
    Words,
    Params,
    Statement,
    Instructions,
}

/// The manifest with all overlays over it.
#[derive(Clone, Debug)]
pub struct Effective {
    /// What is served; the served profile lists the tools that are active.
    pub manifest: Manifest,
    /// What is no mistake and yet worth a look: words about tools that are not there.
    pub notes: Vec<Diagnostic>,
    sites: HashMap<(String, Part), Site>,
    files: Vec<OverlayFile>,
}

impl Effective {
    /// The manifest without overlays.
    #[must_use]
    pub fn built_in(manifest: Manifest) -> Self {
        Self { manifest, notes: Vec::new(), sites: HashMap::new(), files: Vec::new() }
    }

    /// The files that were laid over, as they were read.
    #[must_use]
    pub fn read(&self) -> &[OverlayFile] {
        &self.files
    }

    /// Derives a tool's hints from what its statement was found to do.
    pub fn only_adds(&mut self, tool: &str, only_adds: bool) {
        if let Some(tool) = self.manifest.tools.iter_mut().find(|known| known.id == tool) {
            tool.annotations = statement::annotations(!tool.annotations.read_only, !only_adds);
        }
    }

    /// A mistake in a tool's statement, where it stands.
    #[must_use]
    pub fn in_statement(&self, tool: &str, message: impl Into<String>) -> Diagnostic {
        self.diagnostic(tool, &[Part::Statement, Part::Entry], message)
    }

    /// A mistake in a tool's parameters, where they stand.
    #[must_use]
    pub fn in_params(&self, tool: &str, message: impl Into<String>) -> Diagnostic {
        self.diagnostic(tool, &[Part::Params, Part::Statement, Part::Entry], message)
    }

    /// A mistake at the first of these parts that an overlay has; else at the top of the last file.
    fn diagnostic(&self, tool: &str, parts: &[Part], message: impl Into<String>) -> Diagnostic {
        let site = parts.iter().find_map(|part| self.sites.get(&(tool.to_owned(), *part)));
        let file = self.last_file();
        let site = site.cloned().unwrap_or(Site { file, position: TOP });
        Diagnostic { file: site.file, position: site.position, message: message.into() }
    }

    fn last_file(&self) -> String {
        self.files.last().map(|file| file.name.clone()).unwrap_or_default()
    }
}

/// Reads the files and lays them over the built-in manifest, with this process's environment.
///
/// # Errors
///
/// Every mistake, by file and place.
pub fn load<P: AsRef<Path>>(
    built_in: &Manifest,
    paths: &[P],
    served: Option<&str>,
) -> Result<Effective, Vec<Diagnostic>> {
    merge(built_in, &read(paths)?, served, &environment)
}

/// A variable of this process's environment; none where it is not UTF-8.
#[must_use]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Reads overlay files, all of them.
///
/// # Errors
///
/// Every file that cannot be read, as a diagnostic at its top.
pub fn read<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<OverlayFile>, Vec<Diagnostic>> {
    let (files, found): (Vec<_>, Vec<_>) =
        paths.iter().map(|path| read_one(path.as_ref())).partition(Result::is_ok);
    if found.is_empty() {
        Ok(files.into_iter().filter_map(Result::ok).collect())
    } else {
        Err(found.into_iter().filter_map(Result::err).collect())
    }
}

/// Reads one overlay file.
///
/// # Errors
///
/// Why it cannot be read, as a diagnostic at its top.
pub fn read_one(path: &Path) -> Result<OverlayFile, Diagnostic> {
    let name = path.display().to_string();
    match text(path) {
        Ok(text) => Ok(OverlayFile { name, text }),
        Err(message) => Err(Diagnostic { file: name, position: TOP, message }),
    }
}

/// Whether there is a file that can be read more than once.
#[must_use]
pub fn is_file(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// The files that work on the database could change: in its folder or below it, and writable.
#[must_use]
pub fn exposed<'p>(paths: &'p [PathBuf], database: &Path) -> Vec<&'p PathBuf> {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let Some(folder) = database.parent().and_then(real) else { return Vec::new() };
    let inside = |path: &&PathBuf| {
        real(path).is_some_and(|path| path.starts_with(&folder)) && crate::platform::may_write(path)
    };
    paths.iter().filter(inside).collect()
}

/// The text of a file that somebody wrote by hand.
///
/// # Errors
///
/// Why it cannot be read, or is none.
pub fn text(path: &Path) -> Result<String, String> {
    use std::io::Read;
    let file = std::fs::File::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MOST_BYTES {
        return Err(format!("longer than {MOST_BYTES} bytes, so nobody wrote it by hand"));
    }
    String::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())
}
