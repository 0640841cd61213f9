//! The active tools: descriptors, instructions and argument checks of one profile under the active settings.
//!
//! Pure. It runs no tool and knows no protocol; `server/` sends what it holds.

pub mod arguments;
pub mod settings;

pub use settings::SurfaceSettings;

use crate::error::StartError;
use crate::generated::{PolicyId, Tool};
use crate::spec::descriptor::{Context, Renderer};
use crate::spec::model::{Format, Manifest, ProfileSpec, ToolSpec};
use serde_json::Value;

/// One tool that clients can call.
#[derive(Clone, Debug)]
pub struct ActiveTool {
    /// Which handler it goes to.
    pub tool: Tool,
    /// The policy it runs under.
    pub policy: PolicyId,
    /// Its words and parameters.
    pub spec: ToolSpec,
}

/// The tools of the active profile, as clients see them.
#[derive(Clone, Debug)]
pub struct Surface {
    profile: ProfileSpec,
    tools: Vec<ActiveTool>,
    descriptors: Vec<Value>,
    instructions: String,
}

impl Surface {
    /// The surface of a profile; `read_only` keeps only the tools whose policy cannot write.
    ///
    /// # Errors
    ///
    /// An unknown profile, or a manifest that the build would have refused.
    pub fn new(
        manifest: &Manifest,
        profile: &str,
        settings: &SurfaceSettings,
        read_only: bool,
    ) -> Result<Self, StartError> {
        let known: Vec<&str> = manifest.profiles.iter().map(|profile| profile.id.as_str()).collect();
        let profile = manifest.profile(profile).ok_or_else(|| {
            let hint = crate::spec::diagnostic::suggestion(profile, &known);
            StartError::usage(format!("unknown profile `{profile}`{hint}"))
        })?;
        let mut tools = Vec::new();
        for id in &profile.tools {
            let tool = active(manifest, id)?;
            if !(read_only && tool.policy.policy().writes) {
                tools.push(tool);
            }
        }
        let names: Vec<&str> = tools.iter().map(|tool| tool.spec.name.as_str()).collect();
        let context = Context::new(settings, &names, read_only);
        let renderer = Renderer::new(&context);
        let instructions = renderer.text(&profile.instructions).map_err(StartError::usage)?;
        let descriptors = tools
            .iter()
            .map(|tool| {
                let structured = profile.format == Format::Structured;
                let output = if structured { tool.tool.output_schema() } else { None };
                renderer.descriptor(&tool.spec, output)
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(StartError::usage)?;
        Ok(Self { profile: profile.clone(), tools, descriptors, instructions })
    }

    /// The profile: its text format, error style and defaults.
    #[must_use]
    pub fn profile(&self) -> &ProfileSpec {
        &self.profile
    }

    /// The MCP Tool objects of tools/list, in the profile's order, keys always in the same order.
    #[must_use]
    pub fn descriptors(&self) -> &[Value] {
        &self.descriptors
    }

    /// What the server tells an agent at the start.
    #[must_use]
    pub fn instructions(&self) -> &str {
        &self.instructions
    }

    /// Every active tool, in the profile's order.
    #[must_use]
    pub fn tools(&self) -> &[ActiveTool] {
        &self.tools
    }

    /// The active tool that agents call by this name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ActiveTool> {
        self.tools.iter().find(|tool| tool.spec.name == name)
    }
}

/// The checked manifest that the build put into this program.
///
/// # Errors
///
/// Never in a program that was built; the caller reports it as it reports other start errors.
pub fn built_in_manifest() -> Result<Manifest, StartError> {
    serde_json::from_str(crate::generated::MANIFEST_JSON)
        .map_err(|error| StartError::failure(format!("the built-in manifest cannot be read: {error}")))
}

fn active(manifest: &Manifest, id: &str) -> Result<ActiveTool, StartError> {
    let spec =
        manifest.tool(id).ok_or_else(|| StartError::usage(format!("no tool `{id}` in the manifest")))?;
    let tool =
        Tool::from_id(id).ok_or_else(|| StartError::usage(format!("tool `{id}` has no handler here")))?;
    let policy = PolicyId::from_id(&spec.policy)
        .ok_or_else(|| StartError::usage(format!("tool `{id}` has unknown policy `{}`", spec.policy)))?;
    Ok(ActiveTool { tool, policy, spec: spec.clone() })
}
