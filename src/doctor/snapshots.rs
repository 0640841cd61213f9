//! The folder of snapshots.
//!
//! It opens no snapshot.

use super::{Finding, State, bytes};
use crate::clients::quoted_path;
use crate::config::Settings;
use crate::platform;
use crate::sqlite::copy::{FoundSnapshot, SnapshotKind, found};
use serde_json::json;

/// The findings; none for a profile that only reads and has none.
pub(super) fn look(settings: &Settings) -> Vec<Finding> {
    let folder = &settings.snapshot_dir;
    let there = match found(&settings.db, folder) {
        Ok(there) => there,
        Err(error) => {
            let text = format!("{} cannot be read: {error}", folder.display());
            let finding = Finding::new(State::Problem, "snapshots", text);
            return vec![finding.advise("move away what is there, or set --snapshot-dir")];
        }
    };
    let Some(newest) = there.first() else {
        let text = if settings.snapshots == 0 {
            "none, and --snapshots 0 makes none before a destructive statement"
        } else {
            "none yet"
        };
        let state = if settings.snapshots == 0 && !settings.read_only { State::Warning } else { State::Ok };
        return vec![Finding::new(state, "snapshots", text).with(json!({"count": 0}))];
    };
    let total: u64 = there.iter().map(|snapshot| snapshot.bytes).sum();
    let of_kind = |kind| there.iter().filter(|snapshot| snapshot.kind == kind).count();
    let (auto, manual) = (of_kind(SnapshotKind::Auto), of_kind(SnapshotKind::Manual));
    let text = format!(
        "{} ({auto} automatic, {manual} by hand), {} in {}, the newest of {}",
        there.len(),
        bytes(total),
        folder.display(),
        newest.stamp
    );
    let value = json!({
        "count": there.len(),
        "automatic": auto,
        "manual": manual,
        "bytes": total,
        "newest": newest.path.to_string_lossy(),
    });
    let mut findings = vec![Finding::ok("snapshots", text).with(value)];
    findings.extend(open_to_others(settings, &there));
    findings
}

fn open_to_others(settings: &Settings, there: &[FoundSnapshot]) -> Option<Finding> {
    let folder = platform::mode(&std::fs::metadata(&settings.snapshot_dir).ok()?)? & 0o777;
    let open = there.iter().filter(|snapshot| snapshot.mode & 0o077 != 0).count();
    if folder & 0o077 == 0 || open == 0 {
        return None;
    }
    let text = format!("{open} of them are open to others, and so is the folder ({folder:03o})");
    let advice = format!("chmod -R go= {}", quoted_path(&settings.snapshot_dir));
    Some(Finding::new(State::Warning, "snapshots", text).advise(advice).with(open))
}
