//! `indelible snapshots ...`: what there is to go back to, and the way back.
//!
//! It prints; looking and restoring is the program's.

use super::args::SnapshotAction;
use super::output::table;
use super::{Program, output, runtime};
use crate::config::Settings;
use crate::error::{EXIT_BROKEN, EXIT_OK, StartError};
use crate::outcome::CallContext;
use crate::sqlite::restore::{Shown, SnapshotEntry, Standing};
use serde_json::{Value, json};

/// Exit status 3 when `verify` finds that the snapshot cannot be restored.
pub(super) fn snapshots<P: Program>(
    program: &P,
    settings: &Settings,
    action: SnapshotAction,
) -> Result<u8, StartError> {
    match action {
        SnapshotAction::List { primitive: Some(_), .. }
        | SnapshotAction::Restore { primitive: Some(_), .. } => {
            return Err(StartError::usage("--primitive is for snapshots of primitives: give --data DIR"));
        }
        SnapshotAction::Create { .. } => {
            return Err(StartError::usage(
                "create is for snapshots of primitives: give --data DIR; those of a database are made by its tools",
            ));
        }
        SnapshotAction::List { json, .. } => {
            let found = program.snapshots(settings)?;
            let text = if json {
                Value::from(found.iter().map(entry).collect::<Vec<_>>()).to_string()
            } else if found.is_empty() {
                format!("no snapshots in {}", settings.snapshot_dir.display())
            } else {
                list(&found)
            };
            output::print(&text)?;
        }
        SnapshotAction::Show { name, json } => {
            let shown = program.snapshot(settings, &name)?;
            output::print(&if json { show_json(&shown).to_string() } else { show(&shown) })?;
        }
        SnapshotAction::Verify { name, json } => {
            let found = program.check_snapshot(settings, &name)?;
            let text = if json {
                entry(&found).to_string()
            } else {
                format!("{}: {}", found.name, found.verdict.words())
            };
            output::print(&text)?;
            if found.verdict != Standing::Sound {
                return Ok(EXIT_BROKEN);
            }
        }
        SnapshotAction::Restore { name, reason, json, .. } => {
            let reason = reason.ok_or_else(|| {
                StartError::usage("no reason: give --reason TEXT, which goes into the memory")
            })?;
            let restored = runtime::run(async {
                let context = CallContext { cancel: runtime::signals(false)?.stop, ..CallContext::default() };
                program.restore(settings, &name, &reason, context).await
            })?;
            let undo = restored.undo.display().to_string();
            let text = if json {
                json!({"restored": restored.name, "event": restored.event, "hash": restored.hash, "snapshot": undo})
                    .to_string()
            } else {
                format!("ok: {} restored (event {}); snapshot: {undo}", restored.name, restored.event)
            };
            output::print(&text)?;
        }
    }
    Ok(EXIT_OK)
}

fn entry(found: &SnapshotEntry) -> Value {
    json!({
        "name": found.name,
        "kind": found.kind,
        "time": found.time,
        "bytes": found.bytes,
        "events": found.events,
        "verdict": found.verdict.words(),
    })
}

fn list(found: &[SnapshotEntry]) -> String {
    let mut rows = vec![["name", "kind", "time", "bytes", "events", "verdict"].map(str::to_owned)];
    rows.extend(found.iter().map(cells));
    table(&rows)
}

fn cells(found: &SnapshotEntry) -> [String; 6] {
    [
        found.name.clone(),
        found.kind.clone(),
        found.time.clone(),
        found.bytes.to_string(),
        number(found.events),
        found.verdict.words(),
    ]
}

fn show(shown: &Shown) -> String {
    let heads = ["name", "kind", "time", "bytes", "events", "verdict"];
    let mut lines: Vec<String> =
        heads.iter().zip(cells(&shown.entry)).map(|(head, cell)| format!("{head:<8} {cell}")).collect();
    lines.push(format!("{:<8} {}", "path", shown.path.display()));
    if !shown.tables.is_empty() {
        let mut rows = vec![["table", "rows in it", "rows now"].map(str::to_owned)];
        rows.extend(
            shown.tables.iter().map(|at| [at.table.clone(), number(at.snapshot), number(at.database)]),
        );
        lines.push(String::new());
        lines.push(table(&rows));
    }
    lines.join("\n")
}

fn show_json(shown: &Shown) -> Value {
    let mut value = entry(&shown.entry);
    if let Some(object) = value.as_object_mut() {
        object.insert("path".to_owned(), shown.path.display().to_string().into());
        let tables = shown
            .tables
            .iter()
            .map(|at| json!({"table": at.table, "snapshot": at.snapshot, "database": at.database}));
        object.insert("tables".to_owned(), tables.collect());
    }
    value
}

fn number(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_a_table_of_aligned_columns() {
        let entry = |name: &str, events, verdict| SnapshotEntry {
            name: name.to_owned(),
            kind: "auto".to_owned(),
            time: "2026-11-30T09:01:02.123Z".to_owned(),
            bytes: 4096,
            events,
            verdict,
        };
        let text =
            list(&[entry("a", Some(3), Standing::Sound), entry("bb", None, Standing::Damaged("x".into()))]);
        assert_eq!(
            text,
            "name  kind  time                      bytes  events  verdict\n\
             a     auto  2026-11-30T09:01:02.123Z  4096   3       ok\n\
             bb    auto  2026-11-30T09:01:02.123Z  4096   -       damaged: x"
        );
    }
}
