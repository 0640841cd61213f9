//! Keeps primitives in SQLite files below one data folder: the embedded implementation of `state`.
//!
//! ```text
//! DIR/lock                          held by the one server of the folder
//! DIR/catalog.db                    groups, primitives, hashes of keys
//! DIR/vault.key                     what secrets are sealed under, unless the environment gives it
//! DIR/groups/<group>/<primitive>/main.db
//! DIR/groups/<group>/blobs/aa/bb/<sha256>
//! ```
//!
//! It knows tables and statements and nothing of tools. Agent-written SQL does not run here but in worker processes.
//!
//! # Layout
//!
//! - `file_search`: texts in files
//! - `folder`: where everything stands, and the lock; `file`: one file with its writing thread and its readers
//! - `databases`: files of agents' own, reached through workers; `crew`: which workers there are; `fault_words`: what
//!   their SQL came to, in words
//! - `catalog`, `kv`, `queue`, `memory`, `files`, `objects`, `blobs`, `vault`: one file per trait of `state`; `rows`: how
//!   they run statements; `memory_vectors`: what texts mean, beside their words
//! - [`Embedded`]: what ties them

mod blobs;
mod catalog;
mod crew;
mod databases;
mod fault_words;
mod file;
mod file_search;
mod files;
mod folder;
mod keys;
mod kv;
mod memory;
mod memory_vectors;
mod objects;
mod queue;
mod rows;
mod vault;

pub use file::StateFile;
pub use folder::Folder;

use crate::config::VaultKey;
use crate::error::StartError;
use crate::policy::Narrowing;
use crate::state::Outcome;
use crate::state::catalog::{Catalog, Primitive};
use crate::state::clock::Clock;
use crate::state::db::Db;
use crate::state::files::Files;
use crate::state::kv::Kv;
use crate::state::memory::{Embedder, Memory};
use crate::state::objects::Objects;
use crate::state::queue::Queue;
use crate::state::store::Store;
use crate::state::vault::Vault;
use async_trait::async_trait;
use crew::Crew;
use databases::SqlDb;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The catalog alone of the folder at `data`, for commands of people: they work while a server has the folder. With
/// `create` both are made where they are missing. Must be called in a tokio runtime.
///
/// # Errors
/// There is no data folder, or it cannot be used; exit status 1.
pub fn catalog(data: &Path, clock: Arc<dyn Clock>, create: bool) -> Result<Arc<dyn Catalog>, StartError> {
    if create {
        folder::private_folder(data).map_err(|error| {
            StartError::failure(format!("cannot make the data folder `{}`: {error}", data.display()))
        })?;
    } else {
        Folder::beside(data)?;
    }
    let catalog = catalog::SqlCatalog::open(folder::catalog(data), clock);
    Ok(Arc::new(catalog.map_err(|error| StartError::failure(error.message))?))
}

/// Primitives in a data folder.
pub struct Embedded {
    folder: Folder,
    clock: Arc<dyn Clock>,
    catalog: catalog::SqlCatalog,
    embedder: Option<Arc<dyn Embedder>>,
    keys: vault::KeySource,
    /// Open files, by the id of their primitive.
    open: Mutex<HashMap<String, Arc<StateFile>>>,
    databases: Mutex<HashMap<String, Arc<SqlDb>>>,
    crew: Arc<Crew>,
}

/// How agent-written SQL runs.
#[derive(Clone, Debug)]
pub struct SqlSettings {
    /// How long to wait for another process's lock.
    pub busy_timeout: Duration,
    /// What the user's policy file takes away.
    pub narrowing: Narrowing,
    /// The program that a worker is; this one where it is left out.
    pub program: Option<PathBuf>,
}

impl Default for SqlSettings {
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(5), narrowing: Narrowing::default(), program: None }
    }
}

impl Embedded {
    /// Opens the data folder, made if it is missing. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// The folder cannot be used, or another server has it; exit status 1.
    pub fn open(data: &Path, clock: Arc<dyn Clock>, sql: SqlSettings) -> Result<Self, StartError> {
        Self::over(Folder::lock(data)?, clock, sql)
    }

    /// Opens a data folder that is there, beside a server that may have it, for a person's command.
    ///
    /// # Errors
    /// There is none, or it cannot be used; exit status 1.
    pub fn beside(data: &Path, clock: Arc<dyn Clock>) -> Result<Self, StartError> {
        Self::over(Folder::beside(data)?, clock, SqlSettings::default())
    }

    fn over(folder: Folder, clock: Arc<dyn Clock>, sql: SqlSettings) -> Result<Self, StartError> {
        let catalog = catalog::SqlCatalog::open(folder.catalog(), Arc::clone(&clock))
            .map_err(|error| StartError::failure(error.message))?;
        Ok(Self {
            keys: vault::KeySource::File(folder.vault_key()),
            folder,
            clock,
            catalog,
            embedder: None,
            open: Mutex::default(),
            databases: Mutex::default(),
            crew: Crew::new(sql),
        })
    }

    /// The same, with memories recalled by meaning, too, where there is a model.
    #[must_use]
    pub fn with_embedder(mut self, embedder: Option<Arc<dyn Embedder>>) -> Self {
        self.embedder = embedder;
        self
    }

    /// The same, with the key of the vaults that the environment gives.
    #[must_use]
    pub fn with_vault_key(mut self, key: Option<VaultKey>) -> Self {
        if let Some(key) = key {
            self.keys = vault::KeySource::Given(key);
        }
        self
    }

    /// The file of a primitive, opened once.
    async fn file(
        &self,
        primitive: &Primitive,
        steps: crate::sqlite::state_file::Steps,
    ) -> Outcome<Arc<StateFile>> {
        let mut open = self.open.lock().await;
        if let Some(file) = open.get(&primitive.id) {
            return Ok(Arc::clone(file));
        }
        let path = self.folder.primitive(&primitive.group, &primitive.id)?.join("main.db");
        let file = Arc::new(StateFile::open(path, steps)?);
        open.insert(primitive.id.clone(), Arc::clone(&file));
        Ok(file)
    }
}

#[async_trait]
impl Store for Embedded {
    fn catalog(&self) -> &dyn Catalog {
        &self.catalog
    }

    async fn kv(&self, primitive: &Primitive) -> Outcome<Arc<dyn Kv>> {
        let file = self.file(primitive, kv::STEPS).await?;
        Ok(Arc::new(kv::SqlKv::new(file, Arc::clone(&self.clock))))
    }

    async fn queue(&self, primitive: &Primitive) -> Outcome<Arc<dyn Queue>> {
        let file = self.file(primitive, queue::STEPS).await?;
        Ok(Arc::new(queue::SqlQueue::new(file, Arc::clone(&self.clock))))
    }

    async fn memory(&self, primitive: &Primitive) -> Outcome<Arc<dyn Memory>> {
        let file = self.file(primitive, memory::STEPS).await?;
        Ok(Arc::new(memory::SqlMemory::new(file, Arc::clone(&self.clock), self.embedder.clone())))
    }

    async fn files(&self, primitive: &Primitive) -> Outcome<Arc<dyn Files>> {
        let file = self.file(primitive, files::STEPS).await?;
        let blobs = blobs::FolderBlobs::new(self.folder.blobs(&primitive.group));
        Ok(Arc::new(files::SqlFiles::new(file, blobs, Arc::clone(&self.clock))))
    }

    async fn objects(&self, primitive: &Primitive) -> Outcome<Arc<dyn Objects>> {
        let file = self.file(primitive, objects::STEPS).await?;
        let blobs = blobs::FolderBlobs::new(self.folder.blobs(&primitive.group));
        Ok(Arc::new(objects::SqlObjects::new(file, blobs, Arc::clone(&self.clock))))
    }

    async fn vault(&self, primitive: &Primitive) -> Outcome<Arc<dyn Vault>> {
        let file = self.file(primitive, vault::STEPS).await?;
        Ok(Arc::new(vault::SqlVault::new(file, Arc::clone(&self.clock), self.keys.clone())))
    }

    async fn db(&self, primitive: &Primitive) -> Outcome<Arc<dyn Db>> {
        let mut databases = self.databases.lock().await;
        if let Some(db) = databases.get(&primitive.id) {
            return Ok(Arc::clone(db) as Arc<dyn Db>);
        }
        let folder = self.folder.primitive(&primitive.group, &primitive.id)?;
        let db = Arc::new(SqlDb::open(folder, Arc::clone(&self.crew)).await?);
        databases.insert(primitive.id.clone(), Arc::clone(&db));
        Ok(db)
    }

    async fn close(&self) {
        self.crew.close().await;
        let files: Vec<Arc<StateFile>> = self.open.lock().await.drain().map(|(_, file)| file).collect();
        for file in files {
            file.close().await;
        }
        self.catalog.close().await;
    }
}
