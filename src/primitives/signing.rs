//! storage_sign: URLs for clients that have no key.

use super::{Call, Reply, access};
use crate::error::{ErrorCode, ToolError};
use crate::generated::Tool;
use crate::results::ObjectSigned;
use crate::state::catalog::Kind;
use crate::state::clock::shown;
use crate::state::duration;
use crate::state::objects::{check_key, check_type};
use crate::state::signing::{Grant, LONGEST, Method};
use std::collections::BTreeMap;

/// Arguments of [`sign`].
pub struct SignInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// The object.
    pub key: String,
    /// "GET" or "PUT".
    pub method: String,
    /// How long the URL holds.
    pub expires_in: String,
    /// With PUT: the media type that must be sent.
    pub content_type: Option<String>,
    /// With PUT: the most bytes.
    pub max_size: Option<u64>,
    /// With PUT, "*": nothing may stand at the key.
    pub if_none_match: Option<String>,
}

/// Signs a URL for one object. It allows what the caller could do itself, and ends no later than the caller's key.
///
/// # Errors
/// `PRECONDITION_FAILED` where nobody could follow it, `FORBIDDEN_TOOL`; as the catalog says.
pub async fn sign(call: &Call<'_>, input: SignInput) -> Result<Reply, ToolError> {
    check_key("key", &input.key)?;
    call.note("object", input.key.as_str());
    call.note("method", input.method.as_str());
    let lasts = duration::milliseconds("expires_in", &input.expires_in, 1_000, Some(LONGEST))?;
    let method = if input.method == "PUT" { Method::Put } else { Method::Get };
    let puts = [
        ("content_type", input.content_type.is_some()),
        ("max_size", input.max_size.is_some()),
        ("if_none_match", input.if_none_match.is_some()),
    ];
    if let Some((name, _)) = puts.iter().find(|(_, given)| *given && method == Method::Get) {
        return Err(ToolError::arguments(format!("`{name}` goes with the method PUT alone")));
    }
    if input.if_none_match.as_deref().is_some_and(|value| value != "*") {
        return Err(ToolError::arguments("`if_none_match` must be \"*\": nothing may stand at the key"));
    }
    if let Some(content_type) = &input.content_type {
        check_type(content_type)?;
    }
    let primitive = call.primitive(input.primitive.as_deref(), Some(Kind::Storage)).await?;
    let reached = call.caller.reached.as_ref().ok_or_else(|| {
        ToolError::new(
            ErrorCode::PreconditionFailed,
            "a signed URL leads to this server over HTTP, and it is served on stdin and stdout; a person can start it \
             with `--http`, until then use storage_read and storage_write",
        )
    })?;
    let does = if method == Method::Put { Tool::PrimitivesStorageWrite } else { Tool::PrimitivesStorageRead };
    let as_tool = call.server.surface().tools().iter().find(|tool| tool.tool == Some(does));
    if let Some(tool) = as_tool.filter(|tool| !call.caller.may(&tool.spec.name)) {
        return Err(access::forbidden(&tool.spec.name, &call.caller));
    }
    let end = call.now().saturating_add(lasts).min(reached.until.unwrap_or(i64::MAX));
    let grant = Grant {
        primitive: primitive.id,
        key: input.key,
        method,
        expires_at: end / 1_000,
        content_type: input.content_type,
        max_size: input.max_size,
        if_none: input.if_none_match.is_some(),
        by: reached.signer.clone(),
    };
    let secret = call.server.store.catalog().keys().signing_secret().await?;
    let headers = grant.content_type.iter().map(|kind| ("Content-Type".to_owned(), kind.clone()));
    Reply::of(&ObjectSigned {
        url: format!("{}{}", reached.base, grant.signed(&secret, &reached.binding)),
        method: method.name().to_owned(),
        headers: headers.collect::<BTreeMap<String, String>>(),
        expires_at: shown(grant.expires_at.saturating_mul(1_000)).replace(".000Z", "Z"),
    })
}
