//! primitive_list, primitive_create: what the group has.

use super::{Call, Reply};
use crate::error::ToolError;
use crate::results::{PrimitiveEntry, PrimitiveList, PrimitiveMade};
use crate::state::catalog::{Kind, Primitive};

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

fn known(kind: &str) -> Result<Kind, ToolError> {
    Kind::from_name(kind).ok_or_else(|| {
        let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        ToolError::arguments(format!("`type` must be one of {}", names.join(", ")))
    })
}
