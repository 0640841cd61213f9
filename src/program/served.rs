//! What a server serves, by the profile: a database, or a group of primitives.

use crate::app::App;
use crate::error::ToolError;
use crate::outcome::{
    CallContext, CompletionOf, Completions, Offers, Outcome, RequestError, ResourcePage, ResourceText,
};
use crate::primitives::GroupServer;
use crate::server::Service;
use crate::surface::Surface;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;

/// A database, or a group of primitives.
pub enum Served {
    /// One SQLite file.
    Database(Box<App>),
    /// A group.
    Group(Arc<GroupServer>),
}

fn offers(surface: &Surface) -> Offers {
    let (resources, prompts) = (surface.resources(), surface.prompts());
    Offers {
        resources: !resources.is_empty(),
        prompts: !prompts.is_empty(),
        completions: resources.iter().any(|resource| resource.template().is_some())
            || prompts.iter().any(|prompt| prompt.spec.table_argument().is_some()),
    }
}

/// Nothing is offered besides tools, so nobody is answered this.
fn nothing<T>() -> Result<T, RequestError> {
    Err(RequestError::Invalid(ToolError::arguments("this server has tools and nothing else")))
}

impl Service for Served {
    fn description(&self) -> String {
        match self {
            Self::Database(_) => env!("CARGO_PKG_DESCRIPTION").to_owned(),
            Self::Group(group) => group.surface().profile().title.clone(),
        }
    }

    fn instructions(&self) -> String {
        match self {
            Self::Database(app) => app.surface().instructions().to_owned(),
            Self::Group(group) => group.surface().instructions().to_owned(),
        }
    }

    fn descriptors(&self) -> Vec<Value> {
        match self {
            Self::Database(app) => app.surface().descriptors().to_vec(),
            Self::Group(group) => group.surface().descriptors().to_vec(),
        }
    }

    async fn call(
        &self,
        tool: String,
        arguments: Option<Map<String, Value>>,
        context: CallContext,
    ) -> Option<Outcome> {
        match self {
            Self::Database(app) => app.call(&tool, arguments, context).await,
            Self::Group(group) => group.call(&tool, arguments, context).await,
        }
    }

    fn asks(&self, tool: &str) -> bool {
        match self {
            Self::Database(app) => app.asks(tool),
            Self::Group(_) => false,
        }
    }

    fn note_refused(&self, tool: &str, why: &str) {
        if let Self::Database(app) = self {
            app.note_refused(tool, why);
        }
    }

    fn offers(&self) -> Offers {
        match self {
            Self::Database(app) => offers(&app.surface()),
            Self::Group(_) => Offers::default(),
        }
    }

    fn resource_templates(&self) -> Vec<Value> {
        match self {
            Self::Database(app) => app.surface().template_descriptors(),
            Self::Group(_) => Vec::new(),
        }
    }

    fn prompts(&self) -> Vec<Value> {
        match self {
            Self::Database(app) => app.surface().prompt_descriptors(),
            Self::Group(_) => Vec::new(),
        }
    }

    fn resource_changes(&self) -> Option<watch::Receiver<u64>> {
        match self {
            Self::Database(app) => app.schema_changes(),
            Self::Group(_) => None,
        }
    }

    async fn resources(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<ResourcePage, RequestError> {
        match self {
            Self::Database(app) => app.resources(cursor, context).await,
            Self::Group(_) => nothing(),
        }
    }

    async fn read_resource(&self, uri: String, context: CallContext) -> Result<ResourceText, RequestError> {
        match self {
            Self::Database(app) => app.read_resource(&uri, context).await,
            Self::Group(_) => nothing(),
        }
    }

    async fn prompt(
        &self,
        name: String,
        arguments: Map<String, Value>,
        context: CallContext,
    ) -> Result<String, RequestError> {
        match self {
            Self::Database(app) => app.prompt(&name, &arguments, context).await,
            Self::Group(_) => nothing(),
        }
    }

    async fn complete(
        &self,
        of: CompletionOf,
        argument: String,
        begun: String,
        context: CallContext,
    ) -> Result<Completions, RequestError> {
        match self {
            Self::Database(app) => app.complete(of, &argument, &begun, context).await,
            Self::Group(_) => nothing(),
        }
    }

    fn tool_changes(&self) -> Option<watch::Receiver<u64>> {
        match self {
            Self::Database(app) => app.tool_changes(),
            Self::Group(_) => None,
        }
    }

    async fn reload(&self, forced: bool) {
        if let Self::Database(app) = self {
            app.reload(forced).await;
        }
    }

    async fn shutdown(&self, deadline: Instant) {
        match self {
            Self::Database(app) => app.shutdown(deadline).await,
            Self::Group(group) => group.store.close().await,
        }
    }
}
