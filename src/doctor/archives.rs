//! The files with old log rows, held against the events of the chain that name them.
//!
//! It reads the files and no database.

use super::{Finding, State, bytes};
use crate::config::Settings;
use crate::sqlite::trim::{TrimEvent, archive_folder};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const TOPIC: &str = "log archive";

/// The findings; none where the log was never trimmed.
pub(super) fn judge(events: &[TrimEvent], settings: &Settings) -> Vec<Finding> {
    let folder = archive_folder(&settings.db);
    let mut findings = Vec::new();
    let (mut named, mut sound, mut size) = (BTreeSet::new(), 0, 0);
    for event in events {
        let path = place(event, &folder);
        named.extend(path.file_name().map(OsString::from));
        let TrimEvent { event: id, ids: (first, last), sha256, .. } = event;
        let shown = path.display();
        match digest(&path) {
            Ok((found, length)) if found == *sha256 => {
                sound += 1;
                size += length;
            }
            Ok((found, _)) => {
                let text = format!("{shown} is not as it was written: event {id} names another SHA-256");
                let advice = "somebody changed it; look for a copy of it elsewhere";
                let value = json!({"event": id, "sha256": sha256, "found": found});
                findings.push(Finding::new(State::Problem, TOPIC, text).advise(advice).with(value));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let text = format!("{shown} with the log rows {first} to {last} is not there");
                let advice = format!("if it was moved elsewhere on purpose, event {id} holds its SHA-256");
                findings.push(Finding::new(State::Note, TOPIC, text).advise(advice).with(*id));
            }
            Err(error) => {
                findings.push(Finding::new(
                    State::Warning,
                    TOPIC,
                    format!("{shown} cannot be read: {error}"),
                ));
            }
        }
    }
    if sound > 0 {
        let text =
            format!("{sound} with old log rows, {} in {}, as the chain says", bytes(size), folder.display());
        findings.insert(0, Finding::ok(TOPIC, text).with(json!({"count": sound, "bytes": size})));
    }
    findings.extend(nameless(&folder, &named));
    findings
}

/// Where the file is now: the database and what is beside it may have been moved together.
fn place(event: &TrimEvent, folder: &Path) -> PathBuf {
    let beside = event.archive.file_name().map(|name| folder.join(name));
    match beside {
        Some(beside) if beside.exists() || !event.archive.exists() => beside,
        _ => event.archive.clone(),
    }
}

fn digest(path: &Path) -> io::Result<(String, u64)> {
    let (mut file, mut hash, mut length) = (std::fs::File::open(path)?, Sha256::new(), 0);
    let mut chunk = vec![0; 1 << 16];
    loop {
        let count = file.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        hash.update(chunk.get(..count).unwrap_or_default());
        length += count as u64;
    }
    Ok((crate::render::hex(&hash.finalize()), length))
}

/// Files of a trim that was cut off between the file and the event.
fn nameless(folder: &Path, named: &BTreeSet<OsString>) -> Option<Finding> {
    let entries = std::fs::read_dir(folder).ok()?;
    let names = entries.flatten().map(|entry| entry.file_name());
    let is_archive = |name: &OsString| Path::new(name).extension().is_some_and(|ending| ending == "jsonl");
    let count = names.filter(|name| is_archive(name) && !named.contains(name)).count();
    if count == 0 {
        return None;
    }
    let text = format!("{count} files in {} that no event names: a trim was cut off", folder.display());
    let advice = "their rows are still in query_log; the files may be removed";
    Some(Finding::new(State::Note, TOPIC, text).advise(advice).with(count))
}
