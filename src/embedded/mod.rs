//! Keeps primitives in SQLite files below one data folder: the embedded implementation of `state`.
//!
//! ```text
//! DIR/lock                          held by the one server of the folder
//! DIR/catalog.db                    groups, primitives, hashes of keys
//! DIR/vault.key                     what secrets are sealed under, unless the environment gives it
//! DIR/groups/<group>/<primitive>/main.db    or another file that the catalog names
//! DIR/groups/<group>/<primitive>/snapshots/<snapshot>.db
//! DIR/groups/<group>/blobs/aa/bb/<sha256>
//! ```
//!
//! It knows tables and statements and nothing of tools. Agent-written SQL does not run here but in worker processes.
//!
//! # Layout
//!
//! - `file_search`: texts in files
//! - `folder`: where everything stands, and the lock; `file`: one file with its writing thread and its readers;
//!   `open_files`: which of them are open
//! - `databases`: files of agents' own, reached through workers; `crew`: which workers there are; `fault_words`: what
//!   their SQL came to, in words
//! - `branches`: of databases; `copies`, `keeper`: snapshots, restores and forks; `records`: which file is what, in the
//!   catalog; `sweep`: what nothing names is removed
//! - `catalog`, `kv`, `queue`, `memory`, `files`, `objects`, `blobs`, `vault`: one file per trait of `state`; `rows`: how
//!   they run statements; `memory_vectors`: what texts mean, beside their words
//! - [`Embedded`]: what ties them

mod blobs;
mod branches;
mod catalog;
mod copies;
mod crew;
mod databases;
mod fault_words;
mod file;
mod file_search;
mod files;
mod folder;
mod keeper;
mod keys;
mod kv;
mod memory;
mod memory_vectors;
mod objects;
mod open_files;
mod queue;
mod records;
mod rows;
mod sweep;
mod vault;

pub use file::StateFile;
pub use folder::Folder;

use crate::config::VaultKey;
use crate::error::{ErrorCode, StartError, ToolError};
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
use crate::state::snapshots::Snapshot;
use crate::state::store::Store;
use crate::state::vault::Vault;
use async_trait::async_trait;
use crew::Crew;
use databases::SqlDb;
use keeper::Keeper;
use open_files::OpenFiles;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use sweep::Sweeper;
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

/// Whether there is a data folder at this path.
#[must_use]
pub fn is_data_folder(data: &Path) -> bool {
    folder::catalog(data).exists()
}

/// Primitives in a data folder.
pub struct Embedded {
    folder: Arc<Folder>,
    clock: Arc<dyn Clock>,
    catalog: Arc<catalog::SqlCatalog>,
    embedder: Option<Arc<dyn Embedder>>,
    keys: vault::KeySource,
    open: Mutex<OpenFiles>,
    most_open: usize,
    databases: Mutex<HashMap<String, Arc<SqlDb>>>,
    crew: Arc<Crew>,
    keeper: Arc<Keeper>,
    gate: blobs::Gate,
    sweeper: Arc<Sweeper>,
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
    /// Snapshots of a primitive that are kept, of those made by themselves and of those asked for each; at least one.
    pub snapshots: usize,
}

impl Default for SqlSettings {
    fn default() -> Self {
        let (busy_timeout, narrowing) = (Duration::from_secs(5), Narrowing::default());
        Self { busy_timeout, narrowing, program: None, snapshots: 5 }
    }
}

impl Embedded {
    /// Opens the data folder, made if it is missing. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// The folder cannot be used, or another server has it; exit status 1.
    pub fn open(data: &Path, clock: Arc<dyn Clock>, sql: SqlSettings) -> Result<Self, StartError> {
        let opened = Self::over(Folder::lock(data)?, clock, sql)?;
        tokio::spawn(sweep::sweep_for_ever(Arc::downgrade(&opened.sweeper)));
        Ok(opened)
    }

    /// Opens a data folder that is there, beside a server that may have it, for a person's command.
    ///
    /// # Errors
    /// There is none, or it cannot be used; exit status 1.
    pub fn beside(data: &Path, clock: Arc<dyn Clock>) -> Result<Self, StartError> {
        Self::over(Folder::beside(data)?, clock, SqlSettings::default())
    }

    fn over(folder: Folder, clock: Arc<dyn Clock>, sql: SqlSettings) -> Result<Self, StartError> {
        let folder = Arc::new(folder);
        let catalog = catalog::SqlCatalog::open(folder.catalog(), Arc::clone(&clock))
            .map_err(|error| StartError::failure(error.message))?;
        let (catalog, crew, gate) = (Arc::new(catalog), Crew::new(&sql), blobs::Gate::default());
        let keeper = Keeper::new(Arc::clone(&catalog), Arc::clone(&crew), Arc::clone(&clock), sql.snapshots);
        let (of_sweeper, shut) = (Arc::clone(&keeper), Arc::clone(&gate));
        let sweeper = Arc::new(Sweeper { folder: Arc::clone(&folder), keeper: of_sweeper, gate: shut });
        let keys = vault::KeySource::File(folder.vault_key());
        let (open, databases, embedder) = (Mutex::default(), Mutex::default(), None);
        let most_open = open_files::most_open();
        Ok(Self {
            folder,
            clock,
            catalog,
            embedder,
            keys,
            open,
            most_open,
            databases,
            crew,
            keeper,
            gate,
            sweeper,
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
            return Ok(file);
        }
        let (_, path) = self.place(primitive).await?;
        close_all(open.surplus(self.most_open.saturating_sub(1))).await;
        let opened = || {
            let path = path.clone();
            blocking(move || StateFile::open(path, steps))
        };
        let file = match opened().await {
            // Others may have taken the descriptors that were counted on.
            Err(error) if error.code == ErrorCode::Busy => {
                close_all(open.surplus(0)).await;
                opened().await?
            }
            opened => opened?,
        };
        let file = Arc::new(file);
        open.insert(primitive.id.clone(), Arc::clone(&file));
        Ok(file)
    }

    /// A database, opened once.
    async fn database(&self, primitive: &Primitive) -> Outcome<Arc<SqlDb>> {
        let mut databases = self.databases.lock().await;
        if let Some(db) = databases.get(&primitive.id) {
            return Ok(Arc::clone(db));
        }
        let folder = self.folder.primitive(&primitive.group, &primitive.id)?;
        let db = Arc::new(SqlDb::open(primitive, folder, Arc::clone(&self.keeper)).await?);
        databases.insert(primitive.id.clone(), Arc::clone(&db));
        Ok(db)
    }

    /// The large contents of a primitive's group.
    fn blobs(&self, primitive: &Primitive) -> blobs::FolderBlobs {
        blobs::FolderBlobs::new(self.folder.blobs(&primitive.group), Arc::clone(&self.gate))
    }
}

#[async_trait]
impl Store for Embedded {
    fn catalog(&self) -> &dyn Catalog {
        &*self.catalog
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
        let blobs = self.blobs(primitive);
        Ok(Arc::new(files::SqlFiles::new(file, blobs, Arc::clone(&self.clock))))
    }

    async fn objects(&self, primitive: &Primitive) -> Outcome<Arc<dyn Objects>> {
        let file = self.file(primitive, objects::STEPS).await?;
        let blobs = self.blobs(primitive);
        Ok(Arc::new(objects::SqlObjects::new(file, blobs, Arc::clone(&self.clock))))
    }

    async fn vault(&self, primitive: &Primitive) -> Outcome<Arc<dyn Vault>> {
        let file = self.file(primitive, vault::STEPS).await?;
        Ok(Arc::new(vault::SqlVault::new(file, Arc::clone(&self.clock), self.keys.clone())))
    }

    async fn db(&self, primitive: &Primitive) -> Outcome<Arc<dyn Db>> {
        Ok(self.database(primitive).await?)
    }

    async fn snapshot(&self, primitive: &Primitive, label: Option<String>) -> Outcome<Snapshot> {
        self.keep(primitive, label).await
    }

    async fn snapshots(&self, primitive: &Primitive) -> Outcome<Vec<Snapshot>> {
        let rows = self.catalog.snapshot_rows(&primitive.id).await?;
        Ok(rows.into_iter().map(|(snapshot, _)| snapshot).collect())
    }

    async fn restore(&self, primitive: &Primitive, snapshot: &str) -> Outcome<Snapshot> {
        self.go_back(primitive, snapshot).await
    }

    async fn fork(&self, primitive: &Primitive, name: &str) -> Outcome<Primitive> {
        self.copy_primitive(primitive, name).await
    }

    async fn remove_unnamed(&self, grace: Duration) -> Outcome<u64> {
        self.sweeper.sweep(grace).await
    }

    async fn close(&self) {
        self.crew.close().await;
        let files = self.open.lock().await.drain();
        close_all(files).await;
        self.catalog.close().await;
    }
}

async fn close_all(files: Vec<Arc<StateFile>>) {
    for file in files {
        file.close().await;
    }
}

/// Runs work that waits for the disk on a thread for that.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Outcome<T> + Send + 'static) -> Outcome<T> {
    let lost = |_| ToolError::new(ErrorCode::Busy, "the server is ending; try again");
    tokio::task::spawn_blocking(work).await.map_err(lost)?
}
