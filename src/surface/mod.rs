//! The active tools, resources and prompts: descriptors, instructions and argument checks of one profile under
//! the active settings.
//!
//! Pure. It runs no tool and knows no protocol; `server/` sends what it holds.

pub mod arguments;
pub mod pattern;
pub mod settings;
pub mod values;

pub use settings::SurfaceSettings;

use crate::error::StartError;
use crate::generated::{PolicyId, Resource, Tool};
use crate::spec::descriptor::{Context, Renderer};
use crate::spec::model::{
    Address, Annotations, Format, Manifest, ProfileSpec, PromptSpec, ResourceSpec, ToolSpec,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// One tool that clients can call.
#[derive(Clone, Debug)]
pub struct ActiveTool {
    /// Which handler it goes to; none for a tool whose statement is in its spec.
    pub tool: Option<Tool>,
    /// The policy it runs under.
    pub policy: PolicyId,
    /// Its words and parameters.
    pub spec: ToolSpec,
}

impl ActiveTool {
    /// How its results look in a profile.
    #[must_use]
    pub fn format(&self, profile: &ProfileSpec) -> Format {
        self.spec.statement.as_ref().and_then(|statement| statement.output).unwrap_or(profile.format)
    }

    /// The JSON Schema of its structured result, if it has one.
    fn output_schema(&self) -> Option<Value> {
        match self.tool {
            Some(tool) => tool.output_schema(),
            None => (!self.policy.policy().writes).then(crate::results::schema_of::<crate::results::RowSet>),
        }
    }
}

/// One resource, or template of resources, that clients can read.
#[derive(Clone, Debug)]
pub struct ActiveResource {
    /// Which handler it goes to.
    pub resource: Resource,
    /// The policy it is read under.
    pub policy: PolicyId,
    /// Its address and words, settings filled in.
    pub spec: ResourceSpec,
}

impl ActiveResource {
    /// What stands before the variable, if this is a template.
    #[must_use]
    pub fn template(&self) -> Option<&str> {
        match &self.spec.address {
            Address::Uri(_) => None,
            Address::Template { prefix, .. } => Some(prefix),
        }
    }
}

/// One prompt that clients can ask for.
#[derive(Clone, Debug)]
pub struct ActivePrompt {
    /// The policy it looks at the database under.
    pub policy: PolicyId,
    /// Its words, settings filled in, and its template.
    pub spec: PromptSpec,
}

/// What the active profile offers, as clients see it.
#[derive(Clone, Debug)]
pub struct Surface {
    profile: ProfileSpec,
    tools: Vec<ActiveTool>,
    descriptors: Vec<Value>,
    resources: Vec<ActiveResource>,
    prompts: Vec<ActivePrompt>,
    instructions: String,
    settings: SurfaceSettings,
    context: Context,
    manifest_sha256: String,
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
                let structured = tool.format(profile) == Format::Structured;
                let output = if structured { tool.output_schema() } else { None };
                renderer.descriptor(&tool.spec, output)
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(StartError::usage)?;
        let resources = profile.resources.iter().map(|id| active_resource(manifest, id, &renderer));
        let resources = resources.collect::<Result<Vec<_>, _>>()?;
        let prompts = profile.prompts.iter().map(|id| active_prompt(manifest, id, &renderer));
        let prompts = prompts.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            profile: profile.clone(),
            tools,
            descriptors,
            resources,
            prompts,
            instructions,
            settings: settings.clone(),
            context,
            manifest_sha256: digest(manifest)?,
        })
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

    /// The limits that words and schemas name, and that calls keep to.
    #[must_use]
    pub fn settings(&self) -> &SurfaceSettings {
        &self.settings
    }

    /// SHA-256 of the manifest that this is made of, in lower-case hex: of its compact JSON, with overlays.
    #[must_use]
    pub fn manifest_sha256(&self) -> &str {
        &self.manifest_sha256
    }

    /// What the server tells an agent at the start.
    #[must_use]
    pub fn instructions(&self) -> &str {
        &self.instructions
    }

    /// Every resource and template, in the profile's order.
    #[must_use]
    pub fn resources(&self) -> &[ActiveResource] {
        &self.resources
    }

    /// Every prompt, in the profile's order.
    #[must_use]
    pub fn prompts(&self) -> &[ActivePrompt] {
        &self.prompts
    }

    /// The MCP ResourceTemplate objects of resources/templates/list, keys always in the same order.
    #[must_use]
    pub fn template_descriptors(&self) -> Vec<Value> {
        let templates = self.resources.iter().filter(|resource| resource.template().is_some());
        let descriptor = |active: &ActiveResource| {
            json!({
                "uriTemplate": active.spec.address.shown(),
                "name": active.spec.name,
                "title": active.spec.title,
                "description": active.spec.description,
                "mimeType": active.spec.mime_type,
            })
        };
        templates.map(descriptor).collect()
    }

    /// The MCP Prompt objects of prompts/list, keys always in the same order.
    #[must_use]
    pub fn prompt_descriptors(&self) -> Vec<Value> {
        let descriptor = |active: &ActivePrompt| {
            let arguments = active.spec.arguments.iter().map(|argument| {
                json!({
                    "name": argument.name,
                    "description": argument.description,
                    "required": argument.required,
                })
            });
            json!({
                "name": active.spec.name,
                "title": active.spec.title,
                "description": active.spec.description,
                "arguments": arguments.collect::<Vec<_>>(),
            })
        };
        self.prompts.iter().map(descriptor).collect()
    }

    /// A prompt's message with its arguments filled in; none for one that was left out.
    ///
    /// # Errors
    ///
    /// One line that says what is wrong with the template.
    pub fn prompt_text<'v>(
        &self,
        prompt: &PromptSpec,
        values: impl IntoIterator<Item = (&'v str, Option<String>)>,
    ) -> Result<String, String> {
        let mut context = self.context.clone();
        for (name, value) in values {
            context.set(name, value);
        }
        Renderer::new(&context).text(&prompt.text)
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

fn active_resource(
    manifest: &Manifest,
    id: &str,
    renderer: &Renderer<'_>,
) -> Result<ActiveResource, StartError> {
    let lost = || StartError::usage(format!("no resource `{id}` in the manifest, or no handler for it here"));
    let mut spec = manifest.resource(id).cloned().ok_or_else(lost)?;
    spec.description = renderer.text(&spec.description).map_err(StartError::usage)?;
    Ok(ActiveResource {
        resource: Resource::from_id(id).ok_or_else(lost)?,
        policy: known_policy(&spec.policy, id)?,
        spec,
    })
}

fn active_prompt(manifest: &Manifest, id: &str, renderer: &Renderer<'_>) -> Result<ActivePrompt, StartError> {
    let lost = || StartError::usage(format!("no prompt `{id}` in the manifest"));
    let mut spec = manifest.prompt(id).cloned().ok_or_else(lost)?;
    spec.description = renderer.text(&spec.description).map_err(StartError::usage)?;
    Ok(ActivePrompt { policy: known_policy(&spec.policy, id)?, spec })
}

fn known_policy(policy: &str, id: &str) -> Result<PolicyId, StartError> {
    PolicyId::from_id(policy)
        .ok_or_else(|| StartError::usage(format!("`{id}` has unknown policy `{policy}`")))
}

/// SHA-256 of a manifest's compact JSON, in lower-case hex. Hints of tools made of SQL are derived from the
/// database at hand, so they do not count.
///
/// # Errors
///
/// Never for a manifest that was checked.
pub fn digest(manifest: &Manifest) -> Result<String, StartError> {
    let mut manifest = manifest.clone();
    for tool in manifest.tools.iter_mut().filter(|tool| tool.statement.is_some()) {
        tool.annotations =
            Annotations { read_only: false, destructive: true, idempotent: false, open_world: false };
    }
    let json = serde_json::to_vec(&manifest).map_err(|error| StartError::failure(error.to_string()))?;
    Ok(crate::render::hex(&Sha256::digest(json)))
}

fn active(manifest: &Manifest, id: &str) -> Result<ActiveTool, StartError> {
    let spec =
        manifest.tool(id).ok_or_else(|| StartError::usage(format!("no tool `{id}` in the manifest")))?;
    let tool = Tool::from_id(id);
    if tool.is_none() && spec.statement.is_none() {
        return Err(StartError::usage(format!("tool `{id}` has no handler here")));
    }
    let policy = known_policy(&spec.policy, id)?;
    Ok(ActiveTool { tool, policy, spec: spec.clone() })
}
