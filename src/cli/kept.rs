//! `indelible snapshots ...` with --data: snapshots of primitives.
//!
//! Snapshots are made and restored while no server has the folder: it would go on with the file that a restore takes
//! away. They are listed beside one, too.

use super::args::SnapshotAction;
use super::output::{moment, table};
use super::people::{failed, one_group, one_primitive};
use super::{Program, output, runtime};
use crate::config::{Primitives, Settings};
use crate::error::{EXIT_OK, StartError};
use crate::state::catalog::{Catalog, Group, Primitive};
use crate::state::snapshots::{Snapshot, check_label};
use crate::state::store::Store;
use serde_json::{Value, json};

pub(super) fn snapshots<P: Program>(
    program: &P,
    settings: &Settings,
    place: &Primitives,
    action: SnapshotAction,
) -> Result<u8, StartError> {
    let text = runtime::run(async {
        let store = match &action {
            SnapshotAction::List { .. } => program.store(place)?,
            SnapshotAction::Create { .. } | SnapshotAction::Restore { .. } => {
                program.store_alone(settings, place)?
            }
            SnapshotAction::Show { .. } | SnapshotAction::Verify { .. } => {
                return Err(StartError::usage(
                    "show and verify are for snapshots of a database: list shows those of primitives, and restore checks one first",
                ));
            }
        };
        let done = run(&*store, place, action).await;
        store.close().await;
        done
    })?;
    output::print(&text)?;
    Ok(EXIT_OK)
}

async fn run(store: &dyn Store, place: &Primitives, action: SnapshotAction) -> Result<String, StartError> {
    let group = one_group(store.catalog(), place.group.as_deref()).await?;
    let catalog = store.catalog();
    match action {
        SnapshotAction::List { primitive, json } => {
            let found = kept(store, of(catalog, &group, primitive.as_deref()).await?).await?;
            Ok(match json {
                true => Value::from(found.iter().map(entry).collect::<Vec<_>>()).to_string(),
                false if found.is_empty() => "no snapshots".to_owned(),
                false => list(&found),
            })
        }
        SnapshotAction::Create { primitive, label, json } => {
            let chosen = one_primitive(catalog, &group, primitive.as_deref(), None).await?;
            label.as_deref().map(check_label).transpose().map_err(failed)?;
            let made = store.snapshot(&chosen, label).await.map_err(failed)?;
            let text = format!("ok: snapshot {} of {}", made.id, chosen.name);
            Ok(if json { entry(&(chosen, made)).to_string() } else { text })
        }
        SnapshotAction::Restore { name, primitive, json, .. } => {
            let found = kept(store, of(catalog, &group, primitive.as_deref()).await?).await?;
            let (chosen, _) = found.into_iter().find(|(_, one)| one.id == name).ok_or_else(|| {
                StartError::failure(format!(
                    "group {} has no snapshot `{name}`; list shows its ids",
                    group.name
                ))
            })?;
            let undo = store.restore(&chosen, &name).await.map_err(failed)?;
            Ok(match json {
                true => json!({"primitive": chosen.name, "restored": name, "snapshot": undo.id}).to_string(),
                false => format!("ok: {} restored from {name}; snapshot: {}", chosen.name, undo.id),
            })
        }
        SnapshotAction::Show { .. } | SnapshotAction::Verify { .. } => Ok(String::new()),
    }
}

/// The one that is named, or all.
async fn of(
    catalog: &dyn Catalog,
    group: &Group,
    wanted: Option<&str>,
) -> Result<Vec<Primitive>, StartError> {
    match wanted {
        None => catalog.primitives(group).await.map_err(failed),
        Some(_) => Ok(vec![one_primitive(catalog, group, wanted, None).await?]),
    }
}

async fn kept(
    store: &dyn Store,
    primitives: Vec<Primitive>,
) -> Result<Vec<(Primitive, Snapshot)>, StartError> {
    let mut found = Vec::new();
    for primitive in primitives {
        let snapshots = store.snapshots(&primitive).await.map_err(failed)?;
        found.extend(snapshots.into_iter().map(|one| (primitive.clone(), one)));
    }
    Ok(found)
}

fn entry((primitive, one): &(Primitive, Snapshot)) -> Value {
    json!({
        "primitive": primitive.name,
        "type": primitive.kind.name(),
        "id": one.id,
        "kind": kind(one),
        "label": one.label,
        "bytes": one.bytes,
        "created_at": moment(one.created_at),
    })
}

fn list(found: &[(Primitive, Snapshot)]) -> String {
    let mut rows = vec![["primitive", "snapshot", "kind", "made", "bytes", "label"].map(str::to_owned)];
    rows.extend(found.iter().map(|(primitive, one)| {
        let label = one.label.clone().unwrap_or_else(|| "-".to_owned());
        let (kind, bytes) = (kind(one).to_owned(), one.bytes.to_string());
        [primitive.name.clone(), one.id.clone(), kind, moment(one.created_at), bytes, label]
    }));
    table(&rows)
}

fn kind(one: &Snapshot) -> &'static str {
    if one.automatic { "auto" } else { "manual" }
}
