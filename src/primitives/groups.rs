//! The groups of a data folder, each a server once it is asked for.
//!
//! What they share is here: the store, the tools, the log. It does not judge who asks.

use super::GroupServer;
use super::audit_row;
use super::whereabouts::Whereabouts;
use crate::config::Settings;
use crate::error::{StartError, ToolError};
use crate::outbound::Outbound;
use crate::spec::model::Manifest;
use crate::state::Outcome;
use crate::state::catalog::Primitive;
use crate::state::clock::Clock;
use crate::state::signing::Grant;
use crate::state::store::Store;
use crate::store::audit_log::AuditLog;
use crate::surface::{Surface, SurfaceSettings};
use serde_json::json;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The groups.
pub struct Groups {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    outbound: Arc<Outbound>,
    settings: Settings,
    surface: Arc<Surface>,
    words: SurfaceSettings,
    audit_log: Option<Arc<AuditLog>>,
    whereabouts: Arc<Whereabouts>,
    /// One id for this run of the server, for the log.
    session: String,
    /// By id: a name may come to mean another group.
    open: Mutex<HashMap<String, Arc<GroupServer>>>,
}

impl Groups {
    /// The groups of a store.
    ///
    /// # Errors
    /// A manifest that the build would have refused; exit status 2.
    pub fn new(
        manifest: &Manifest,
        settings: Settings,
        words: SurfaceSettings,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        audit_log: Option<Arc<AuditLog>>,
    ) -> Result<Self, StartError> {
        let surface = Arc::new(Surface::new(manifest, &settings.profile, &words, settings.read_only)?);
        let session = uuid::Uuid::new_v4().to_string();
        let outbound = Arc::new(Outbound::default());
        let data = settings.primitives.as_ref().map(|place| Whereabouts::of(&place.data));
        let whereabouts = Arc::new(data.unwrap_or_default());
        Ok(Self {
            store,
            clock,
            outbound,
            settings,
            surface,
            words,
            audit_log,
            whereabouts,
            session,
            open: Mutex::default(),
        })
    }

    /// The same, with another way to the outside.
    #[must_use]
    pub fn with_outbound(mut self, outbound: Outbound) -> Self {
        self.outbound = Arc::new(outbound);
        self
    }

    /// Where everything is kept.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// An error without where the data folder is.
    #[must_use]
    pub fn without_whereabouts(&self, error: ToolError) -> ToolError {
        self.whereabouts.left_out_of(error)
    }

    /// Whether nothing may be changed.
    #[must_use]
    pub fn read_only(&self) -> bool {
        self.settings.read_only
    }

    /// The active tools.
    #[must_use]
    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// Notes what was asked for by a signed URL as a call is noted, in the log in a file.
    pub async fn note_signed(
        &self,
        grant: &Grant,
        primitive: &Primitive,
        method: &http::Method,
        status: u16,
        began: Instant,
    ) {
        let Some(log) = &self.audit_log else { return };
        let groups = self.store.catalog().groups().await.unwrap_or_default();
        let group = groups.into_iter().find(|entry| entry.group.id == primitive.group);
        let detail = json!({
            "credential": grant.by,
            "primitive": primitive.name,
            "object": grant.key,
            "status": status,
            "group": group.map(|entry| entry.group.name),
        });
        let error = (status >= 400).then(|| format!("status {status}"));
        log.write(&audit_row(&self.session, &format!("signed {method}"), began, error, &detail));
    }

    /// The group of this name, made if it is missing and `create` says so. It is looked up each time, so that a group
    /// that somebody makes is served at once.
    ///
    /// # Errors
    /// As the catalog says.
    pub async fn open(&self, name: &str, create: bool) -> Outcome<Arc<GroupServer>> {
        let group = self.store.catalog().group(name, create).await?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let id = group.id.clone();
        let server = open.entry(id).or_insert_with(|| {
            Arc::new(GroupServer {
                group,
                store: Arc::clone(&self.store),
                clock: Arc::clone(&self.clock),
                outbound: Arc::clone(&self.outbound),
                settings: self.settings.clone(),
                surface: Arc::clone(&self.surface),
                words: self.words.clone(),
                session: self.session.clone(),
                audit_log: self.audit_log.clone(),
                whereabouts: Arc::clone(&self.whereabouts),
            })
        });
        Ok(Arc::clone(server))
    }
}
