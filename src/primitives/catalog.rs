//! primitive_list, primitive_create, primitive_snapshot, primitive_fork: what the group has.

use super::{Call, Reply, short_id};
use crate::error::ToolError;
use crate::results::{PrimitiveEntry, PrimitiveList, PrimitiveMade, SnapshotMade};
use crate::state::catalog::{Kind, LONGEST_NAME, Primitive};
use crate::state::clock::shown;
use crate::state::snapshots::{Snapshot, check_label};

/// Arguments of [`list`].
pub struct ListInput {
    /// Only primitives of this type.
    pub kind: Option<String>,
}

/// Arguments of [`create`].
pub struct CreateInput {
    /// Its type.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// Arguments of [`snapshot`].
pub struct SnapshotInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// What to call it.
    pub label: Option<String>,
}

/// Arguments of [`fork`].
pub struct ForkInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// The copy's name.
    pub new_name: Option<String>,
}

/// The group's primitives.
///
/// # Errors
/// As the catalog says.
pub async fn list(call: &Call<'_>, input: ListInput) -> Result<Reply, ToolError> {
    let kind = input.kind.as_deref().map(known).transpose()?;
    let all = call.server.store.catalog().primitives(&call.server.group).await?;
    let wanted = all.into_iter().filter(|primitive| kind.is_none_or(|kind| primitive.kind == kind));
    let entry = |primitive: Primitive| PrimitiveEntry {
        id: primitive.id,
        name: primitive.name,
        kind: primitive.kind.name().to_owned(),
        paused: primitive.paused,
    };
    Reply::of(&PrimitiveList { data: wanted.map(entry).collect() })
}

/// Makes an empty primitive.
///
/// # Errors
/// As the catalog says.
pub async fn create(call: &Call<'_>, input: CreateInput) -> Result<Reply, ToolError> {
    call.note("name", input.name.as_str());
    let kind = known(&input.kind)?;
    let made = call.server.store.catalog().create(&call.server.group, kind, &input.name).await?;
    Reply::of(&PrimitiveMade { id: made.id, name: made.name, kind: kind.name().to_owned() })
}

/// Keeps a primitive as it is.
///
/// # Errors
/// As the store says.
pub async fn snapshot(call: &Call<'_>, input: SnapshotInput) -> Result<Reply, ToolError> {
    let primitive = call.primitive(input.primitive.as_deref(), None).await?;
    input.label.as_deref().map(check_label).transpose()?;
    let Snapshot { id, label, created_at, .. } = call.server.store.snapshot(&primitive, input.label).await?;
    call.note("snapshot", id.as_str());
    Reply::of(&SnapshotMade { id, label, created_at: shown(created_at) })
}

/// Copies a primitive.
///
/// # Errors
/// As the store says.
pub async fn fork(call: &Call<'_>, input: ForkInput) -> Result<Reply, ToolError> {
    let primitive = call.primitive(input.primitive.as_deref(), None).await?;
    let name = input.new_name.unwrap_or_else(|| {
        let ending = format!("-fork-{}", short_id());
        let begin: String = primitive.name.chars().take(LONGEST_NAME - ending.len()).collect();
        begin + &ending
    });
    let made = call.server.store.fork(&primitive, &name).await?;
    call.note("fork", made.name.as_str());
    Reply::of(&PrimitiveMade { id: made.id, name: made.name, kind: made.kind.name().to_owned() })
}

fn known(kind: &str) -> Result<Kind, ToolError> {
    Kind::from_name(kind).ok_or_else(|| {
        let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        ToolError::arguments(format!("`type` must be one of {}", names.join(", ")))
    })
}
