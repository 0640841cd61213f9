//! `--audit-log FILE`: each call as one JSON line, beside `query_log`.
//!
//! It is a copy for people and log collectors: a line that cannot be written is reported once and never
//! fails a call.

use crate::audit::AuditRow;
use crate::error::StartError;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The open file.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    sink: Mutex<Sink>,
}

#[derive(Debug)]
struct Sink {
    file: File,
    failing: bool,
}

impl AuditLog {
    /// Opens `path` to append, creating it readable for its owner alone. `database` and its companions
    /// are refused.
    ///
    /// # Errors
    /// Exit status 1: the file cannot be written, or is the database.
    pub fn open(path: &Path, database: &Path) -> Result<Self, StartError> {
        let shown = path.display();
        if is_of_database(path, database) {
            return Err(StartError::failure(format!(
                "the audit log `{shown}` would be written into the database; give another file"
            )));
        }
        let opened =
            crate::platform::private(std::fs::OpenOptions::new().append(true).create(true)).open(path);
        let file = opened
            .map_err(|error| StartError::failure(format!("cannot open the audit log `{shown}`: {error}")))?;
        Ok(Self { path: path.to_path_buf(), sink: Mutex::new(Sink { file, failing: false }) })
    }

    /// Appends a row, control characters escaped, so that no text can make or hide a line.
    pub fn write(&self, row: &AuditRow) {
        let written = line(row).map_err(std::io::Error::from);
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        // One write call to a file opened to append: lines of two servers do not mix.
        match written.and_then(|line| sink.file.write_all(line.as_bytes())) {
            Ok(()) => sink.failing = false,
            Err(_) if sink.failing => {}
            Err(error) => {
                sink.failing = true;
                tracing::error!("cannot write the audit log `{}`: {error}", self.path.display());
            }
        }
    }
}

fn line(row: &AuditRow) -> serde_json::Result<String> {
    let json = serde_json::to_string(row)?;
    let mut line = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        // JSON itself asks only for those below U+0020, and they are escaped by now.
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            line.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            line.push(c);
        }
    }
    line.push('\n');
    Ok(line)
}

fn is_of_database(path: &Path, database: &Path) -> bool {
    let real = |path: &Path| {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        std::fs::canonicalize(&absolute).unwrap_or(absolute)
    };
    let (path, database) = (real(path), real(database));
    ["", "-wal", "-shm", "-journal"].iter().any(|ending| {
        let mut companion = database.clone().into_os_string();
        companion.push(ending);
        path == companion
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_one_line_of_json_without_control_characters() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let log = AuditLog::open(&path, &folder.path().join("memory.db")).unwrap();
        let row = AuditRow {
            tool: "read_query".to_owned(),
            query: Some("SELECT\n'\u{7f}\u{9b}\u{2028}\u{0}\"ž'".to_owned()),
            ok: true,
            ..AuditRow::default()
        };
        log.write(&row);
        log.write(&AuditRow::default());
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.split_terminator('\n').collect();
        assert_eq!(lines.len(), 2);
        assert!(!lines[0].chars().any(|c| c.is_control() || c == '\u{2028}'));
        assert_eq!(serde_json::from_str::<AuditRow>(lines[0]).unwrap(), row);
        let mode = crate::platform::mode(&std::fs::metadata(&path).unwrap());
        assert!(mode.is_none_or(|mode| mode & 0o777 == 0o600), "{mode:?}");
    }

    #[test]
    fn the_database_is_no_audit_log() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("memory.db");
        for name in ["memory.db", "memory.db-wal", "x/../memory.db-journal"] {
            std::fs::create_dir_all(folder.path().join("x")).unwrap();
            std::fs::write(folder.path().join(name), "").unwrap();
            let error = AuditLog::open(&folder.path().join(name), &database).unwrap_err();
            assert!(error.message.contains("the database"), "{error}");
        }
    }
}
