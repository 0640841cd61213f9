//! Which tools a key may use, and which of them a URL leaves.
//!
//! A URL narrows and never adds. A name that is no tool is refused: whoever mistypes one would otherwise find tools
//! missing and not know why. `primitive_list` is always there, since every error sends agents to it.

use crate::error::{ErrorCode, ToolError};
use crate::generated::Tool;
use crate::outcome::Caller;
use crate::spec::diagnostic::suggestion;
use crate::state::keys::Scope;
use crate::surface::Surface;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The parameter of the URL.
const TOOLS: &str = "tools";

/// Names of tools; none for all.
pub type Allowed = Option<Arc<BTreeSet<String>>>;

/// What a key may use of the active tools.
#[must_use]
pub fn allowed(surface: &Surface, scope: &Scope) -> Allowed {
    match scope {
        Scope::All => None,
        Scope::ReadOnly => {
            let reading = surface.tools().iter().filter(|tool| !tool.policy.policy().writes);
            Some(with_list(surface, reading.map(|tool| tool.spec.name.clone())))
        }
        Scope::Tools(names) => Some(with_list(surface, names.iter().cloned())),
    }
}

/// What is left of that under the query of a URL.
///
/// # Errors
/// In words, what is wrong with the query.
pub fn narrowed(surface: &Surface, allowed: Allowed, query: Option<&str>) -> Result<Allowed, String> {
    let mut named = None;
    for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        if name != TOOLS {
            let name = crate::render::one_line(&name, 40);
            return Err(format!("`{name}` is no parameter of this URL, which takes `tools=a,b` alone"));
        }
        if named.replace(value).is_some() {
            return Err("`tools` stands twice in this URL; separate names by commas".to_owned());
        }
    }
    let Some(named) = named else { return Ok(allowed) };
    let names: Vec<&str> = named.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return Err("`tools` in this URL is empty; name tools, or leave it out for all".to_owned());
    }
    check_names(surface, &names)?;
    let left = names.into_iter().filter(|name| allowed.as_ref().is_none_or(|all| all.contains(*name)));
    Ok(Some(with_list(surface, left.map(str::to_owned))))
}

/// What somebody came in with opens nothing any more.
#[must_use]
pub fn over() -> ToolError {
    ToolError::new(
        ErrorCode::ForbiddenTool,
        "the key or token that this call came in with was taken back or has ended meanwhile, and nothing was done; ask a person for another",
    )
}

/// Whether all of them are names of active tools.
///
/// # Errors
/// The first that is not, and what may have been meant.
pub fn check_names(surface: &Surface, names: &[&str]) -> Result<(), String> {
    match names.iter().find(|name| surface.tool(name).is_none()) {
        None => Ok(()),
        Some(unknown) => {
            let known: Vec<&str> = surface.tools().iter().map(|tool| tool.spec.name.as_str()).collect();
            let shown = crate::render::one_line(unknown, 40);
            Err(format!("unknown tool `{shown}`{}", suggestion(unknown, &known)))
        }
    }
}

/// What a caller is told who may not use a tool.
#[must_use]
pub fn forbidden(tool: &str, caller: &Caller) -> ToolError {
    let names: Vec<&str> = caller.tools.iter().flat_map(|tools| tools.iter().map(String::as_str)).collect();
    let words = format!(
        "`{tool}` is not among the tools that your key and the URL's `tools` leave: {}; ask a person for a key that allows it",
        names.join(", ")
    );
    ToolError::new(ErrorCode::ForbiddenTool, words)
}

fn with_list(surface: &Surface, names: impl Iterator<Item = String>) -> Arc<BTreeSet<String>> {
    let list = surface.tools().iter().find(|tool| tool.tool == Some(Tool::PrimitivesPrimitiveList));
    Arc::new(names.chain(list.map(|tool| tool.spec.name.clone())).collect())
}
