//! memory_remember, memory_recall, memory_forget.

use super::{Call, Reply};
use crate::error::{ErrorCode, ToolError};
use crate::results::{MemoriesChanged, MemoriesRecalled, MemoryChange, MemoryEntry, MemoryRemembered};
use crate::state::catalog::Kind;
use crate::state::memory::{
    Change, LARGEST_METADATA, LONGEST_QUERY, Memory, MemoryKind, NewMemory, Recalled, Sought, check_tags,
    check_text,
};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Arguments of [`remember`].
pub struct RememberInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// "episodic", "semantic" or "procedural".
    pub kind: String,
    /// The text.
    pub text: String,
    /// Its tags.
    pub tags: Option<Vec<String>>,
    /// Whatever else is to be kept with it.
    pub metadata: Option<Map<String, Value>>,
}

/// Arguments of [`recall`].
pub struct RecallInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// What is sought.
    pub query: String,
    /// Only of these kinds.
    pub kinds: Option<Vec<String>>,
    /// Only with all of these tags.
    pub tags: Option<Vec<String>>,
    /// Memories at most.
    pub limit: u64,
}

/// Arguments of [`forget`].
pub struct ForgetInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// "delete", "supersede" or "consolidate".
    pub action: String,
    /// The memory.
    pub id: Option<String>,
    /// With supersede: the new text.
    pub text: Option<String>,
    /// With supersede: its tags.
    pub tags: Option<Vec<String>>,
}

/// Remembers a text.
///
/// # Errors
/// As the primitive says.
pub async fn remember(call: &Call<'_>, input: RememberInput) -> Result<Reply, ToolError> {
    check_text(&input.text)?;
    let metadata = input.metadata.map(|metadata| Value::Object(metadata).to_string());
    if let Some(size) = metadata.as_ref().map(String::len).filter(|size| *size > LARGEST_METADATA) {
        return Err(ToolError::new(
            ErrorCode::TooLarge,
            format!(
                "`metadata` has {size} bytes, and may have {LARGEST_METADATA}; keep the rest in a kv primitive"
            ),
        ));
    }
    let memory = NewMemory {
        kind: known(&input.kind)?,
        text: input.text,
        tags: check_tags(input.tags.unwrap_or_default())?,
        metadata,
    };
    let made = memory_of(call, input.primitive.as_deref()).await?.remember(memory).await?;
    Reply::of(&MemoryRemembered { id: made.id, deduplicated: made.deduplicated })
}

/// Recalls what fits best.
///
/// # Errors
/// As the primitive says.
pub async fn recall(call: &Call<'_>, input: RecallInput) -> Result<Reply, ToolError> {
    if input.query.len() > LONGEST_QUERY {
        return Err(ToolError::new(
            ErrorCode::TooLarge,
            format!(
                "`query` has {} bytes, and may have {LONGEST_QUERY}; ask with fewer words",
                input.query.len()
            ),
        ));
    }
    let kinds = input.kinds.unwrap_or_default();
    let sought = Sought {
        query: input.query,
        kinds: kinds.iter().map(|kind| known(kind)).collect::<Result<_, _>>()?,
        tags: check_tags(input.tags.unwrap_or_default())?,
        limit: usize::try_from(input.limit).unwrap_or(usize::MAX),
    };
    let found = memory_of(call, input.primitive.as_deref()).await?.recall(sought).await?;
    call.note("memories", found.memories.len());
    let mode = if found.hybrid { "hybrid" } else { "lexical" };
    let data = found.memories.into_iter().map(shown).collect::<Result<Vec<_>, _>>()?;
    Reply::of(&MemoriesRecalled { mode: mode.to_owned(), data })
}

/// Deletes, supersedes or consolidates.
///
/// # Errors
/// As the primitive says.
pub async fn forget(call: &Call<'_>, input: ForgetInput) -> Result<Reply, ToolError> {
    call.note("action", input.action.as_str());
    if let Some(id) = &input.id {
        call.note("id", crate::render::one_line(id, 40));
    }
    let memory = memory_of(call, input.primitive.as_deref()).await?;
    let superseding = input.action == "supersede";
    if !superseding && (input.text.is_some() || input.tags.is_some()) {
        return Err(ToolError::arguments("`text` and `tags` go with the action supersede alone"));
    }
    let needed = || {
        ToolError::arguments(format!(
            "`id` is missing; {} needs it, and memory_recall gives it",
            input.action
        ))
    };
    let changes = match input.action.as_str() {
        "supersede" => {
            let text = input
                .text
                .ok_or_else(|| ToolError::arguments("`text` is missing: the text that holds now"))?;
            check_text(&text)?;
            let tags: Option<BTreeSet<String>> = input.tags.map(check_tags).transpose()?;
            memory.supersede(input.id.ok_or_else(needed)?, text, tags).await?
        }
        "consolidate" if input.id.is_some() => {
            return Err(ToolError::arguments("consolidate looks at all memories and takes no `id`"));
        }
        "consolidate" => memory.consolidate().await?,
        _ => memory.delete(input.id.ok_or_else(needed)?).await?,
    };
    let change = |change: Change| MemoryChange { id: change.id, action: change.action.to_owned() };
    Reply::of(&MemoriesChanged { changed: changes.into_iter().map(change).collect() })
}

async fn memory_of(call: &Call<'_>, wanted: Option<&str>) -> Result<Arc<dyn Memory>, ToolError> {
    let primitive = call.primitive(wanted, Some(Kind::Memory)).await?;
    call.server.store.memory(&primitive).await
}

fn known(kind: &str) -> Result<MemoryKind, ToolError> {
    MemoryKind::from_name(kind).ok_or_else(|| {
        let names: Vec<&str> = MemoryKind::ALL.iter().map(|kind| kind.name()).collect();
        ToolError::arguments(format!("a kind must be one of {}", names.join(", ")))
    })
}

fn shown(memory: Recalled) -> Result<MemoryEntry, ToolError> {
    let metadata = memory.metadata.as_deref().map(serde_json::from_str).transpose().map_err(|error| {
        ToolError::new(
            ErrorCode::Corrupt,
            format!("the metadata of memory `{}` is damaged: {error}", memory.id),
        )
    })?;
    Ok(MemoryEntry {
        id: memory.id,
        kind: memory.kind.name().to_owned(),
        text: memory.text,
        tags: memory.tags.into_iter().collect(),
        metadata,
        score: (memory.score * 10_000.0).round() / 10_000.0,
    })
}
