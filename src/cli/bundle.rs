//! `indelible bundle`: this program as a bundle for desktop apps.
//!
//! What is in the file is `crate::bundle`'s; here arguments become one call of it.

use super::{Program, output};
use crate::bundle::{self, Bundle};
use crate::config::{self, RawArgs};
use crate::error::{EXIT_OK, StartError};
use crate::spec::model::Serves;
use std::path::Path;

/// What the app suggests for the database.
const SUGGESTED: &str = "~/indelible.db";

/// Writes it and says where. Settings come from flags alone: the bundle is for another machine than this.
pub(super) fn bundle<P: Program>(program: &P, raw: &RawArgs, out: &Path) -> Result<u8, StartError> {
    let suggested = match &raw.db {
        None => SUGGESTED.to_owned(),
        Some(path) => path.to_str().map(str::to_owned).ok_or_else(|| {
            StartError::usage(format!(
                "--db `{}`: is not UTF-8, so it cannot be written down",
                path.display()
            ))
        })?,
    };
    let raw = RawArgs { db: Some("indelible.db".into()), ..raw.clone() };
    let home = |name: &str| (name == "HOME").then(|| std::env::var_os(name)).flatten();
    let (overlays, profile) = config::overlays(&raw, home)?;
    let profiles = program.profiles(&overlays, profile.as_deref())?;
    let of_group = |id: &str| profiles.iter().any(|one| one.id == id && one.serves == Serves::Group);
    if let Some(id) = profile.as_deref().filter(|id| of_group(id)) {
        return Err(StartError::usage(format!(
            "a bundle is for profiles that serve one database, and {id} serves groups: `indelible config claude-desktop --profile {id} --data DIR --group NAME` connects the app"
        )));
    }
    let resolved = config::resolve_with_origins(&raw, home, &profiles)?;
    let arguments = resolved.arguments()?;
    // Behind --db and its path.
    let arguments = arguments.get(2..).unwrap_or_default();
    let tools = program.tools(&resolved.settings)?;
    let running = super::client_config::running()?;
    let made = Bundle { program: &running, tools: &tools, arguments, database: &suggested };
    let written = bundle::write(&made, out)?;
    output::print(&format!("{} ({} bytes)", written.path.display(), written.bytes))?;
    Ok(EXIT_OK)
}
