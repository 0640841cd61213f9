//! From what somebody calls a snapshot to a private, checked copy of it.
//!
//! It trusts neither the name nor the file, and reads no table.

use super::UNDONE;
use crate::error::{ErrorCode, ToolError};
use crate::render::one_line;
use crate::sqlite::copy::Place;
use crate::sqlite::copy::check::{self, Depth};
use crate::sqlite::copy::folder::{self, Temporary};
use crate::sqlite::copy::names::{Name, with_ending};
use crate::sqlite::diagnose;
use rusqlite::ErrorCode as SqliteCode;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// What every SQLite file begins with (<https://sqlite.org/fileformat.html#magic_header_string>).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// A snapshot that is there.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    /// Its name in the folder.
    pub(super) file: OsString,
    /// The same for people.
    pub(super) name: String,
    /// Its whole path.
    pub(super) path: PathBuf,
    /// What its name says.
    pub(super) says: Name,
}

impl Chosen {
    /// A file of the snapshot folder, if its name is that of a snapshot of this database.
    pub(super) fn of(place: &Place, file: OsString) -> Option<Self> {
        let says = Name::parse(&place.label, file.as_encoded_bytes())?;
        let name = one_line(&file.to_string_lossy(), 300);
        Some(Self { path: place.folder.join(&file), name, file, says })
    }

    /// The snapshot is no sound database.
    pub(super) fn damaged(&self, why: &str) -> ToolError {
        ToolError::new(
            ErrorCode::Corrupt,
            format!(
                "{UNDONE}: the snapshot `{}` is damaged ({}); choose another",
                self.name,
                one_line(why, 300)
            ),
        )
    }

    /// SQLite's words about the snapshot.
    pub(super) fn unusable(&self, error: &rusqlite::Error) -> ToolError {
        // A full disk, say, under the private copy is no fault of the snapshot's.
        if matches!(error.sqlite_error_code(), Some(SqliteCode::DatabaseCorrupt | SqliteCode::NotADatabase)) {
            return self.damaged(&error.to_string());
        }
        diagnose::tool_error(&format!("{UNDONE}: the snapshot `{}` cannot be used", self.name), error)
    }

    /// What it holds shows that it was made of something else.
    pub(super) fn of_another_database(&self, stranger: &str) -> ToolError {
        ToolError::new(
            ErrorCode::Refused,
            format!(
                "{UNDONE}: the snapshot `{}` is of another database, or one of the two was changed from outside: {stranger}",
                self.name
            ),
        )
    }
}

/// The snapshots in the folder, newest first.
pub(super) fn all(place: &Place) -> Vec<Chosen> {
    let mut found: Vec<Chosen> =
        folder::regular_files(&place.folder).filter_map(|file| Chosen::of(place, file)).collect();
    found.sort_by(|one, other| other.says.cmp(&one.says));
    found
}

/// The snapshot of this name, or of this path in the snapshot folder.
pub(super) fn choose(place: &Place, given: &str) -> Result<Chosen, ToolError> {
    let shown = one_line(given, 300);
    let path = Path::new(given);
    let is_bare = path.components().eq([Component::Normal(given.as_ref())]);
    let in_folder = path.parent().is_some_and(|parent| parent == place.folder);
    if !is_bare && !in_folder {
        return Err(ToolError::arguments(format!(
            "`{shown}` is not in the snapshot folder `{}`; give the name of a snapshot in it",
            place.folder.display()
        )));
    }
    let chosen = path.file_name().and_then(|file| Chosen::of(place, file.to_os_string()));
    let Some(chosen) = chosen else {
        return Err(ToolError::arguments(format!(
            "`{shown}` is not the name of a snapshot of this database{}",
            known(place)
        )));
    };
    match chosen.path.symlink_metadata() {
        Ok(found) if found.is_file() => Ok(chosen),
        Ok(_) => Err(ToolError::arguments(format!("the snapshot `{shown}` is not a regular file"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(ToolError::arguments(format!("there is no snapshot `{shown}`{}", known(place))))
        }
        Err(error) => Err(ToolError::new(ErrorCode::SqlError, format!("the snapshot `{shown}`: {error}"))),
    }
}

fn known(place: &Place) -> String {
    match all(place).first() {
        Some(newest) => format!("; list the snapshots to see all, the newest is `{}`", newest.name),
        None => format!("; there is none in `{}`", place.folder.display()),
    }
}

/// Copies a snapshot to a private file, and checks the copy from end to end.
pub(super) fn private_copy(
    place: &Place,
    chosen: &Chosen,
    now: jiff::Timestamp,
) -> Result<Temporary, ToolError> {
    for ending in ["-wal", "-journal"] {
        let companion = with_ending(chosen.path.as_os_str(), ending);
        if std::fs::metadata(&companion).is_ok_and(|found| found.len() > 0) {
            return Err(ToolError::new(
                ErrorCode::Refused,
                format!(
                    "{UNDONE}: beside the snapshot `{}` is its `{ending}` file, so another program has it open or has changed it; close that program",
                    chosen.name
                ),
            ));
        }
    }
    let name = Name::new(now, 0, chosen.says.kind).file_name(&place.label);
    let copy = Temporary::create(&place.folder, &name).map_err(|error| super::undone(&error))?;
    let io_failed = |error: std::io::Error| {
        ToolError::new(ErrorCode::SqlError, format!("{UNDONE}: the snapshot `{}`: {error}", chosen.name))
    };
    let mut file = open(&chosen.path).map_err(io_failed)?;
    let mut magic = [0; 16];
    if file.read_exact(&mut magic).is_err() || &magic != MAGIC {
        return Err(chosen.damaged("it is no SQLite database"));
    }
    let length = file.metadata().map_err(io_failed)?.len();
    copy.fill_from(&file, length).map_err(|error| super::undone(&error))?;
    match check::damage(copy.path(), Depth::Indexes) {
        Ok(None) => Ok(copy),
        Ok(Some(damage)) => Err(chosen.damaged(&damage)),
        Err(error) => Err(chosen.unusable(&error)),
    }
}

/// Opens a regular file, not what a link points to.
fn open(path: &Path) -> std::io::Result<File> {
    let file = crate::platform::open_no_link(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}
