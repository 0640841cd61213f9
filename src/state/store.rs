//! From a primitive to what it can do.

use super::Outcome;
use super::catalog::{Catalog, Primitive};
use super::db::Db;
use super::files::Files;
use super::kv::Kv;
use super::memory::Memory;
use super::objects::Objects;
use super::queue::Queue;
use super::snapshots::Snapshot;
use super::vault::Vault;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

/// Keeps everything: the catalog, and each primitive behind its trait.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Groups and their primitives.
    fn catalog(&self) -> &dyn Catalog;

    /// A key-value primitive.
    async fn kv(&self, primitive: &Primitive) -> Outcome<Arc<dyn Kv>>;

    /// A queue primitive.
    async fn queue(&self, primitive: &Primitive) -> Outcome<Arc<dyn Queue>>;

    /// A memory primitive.
    async fn memory(&self, primitive: &Primitive) -> Outcome<Arc<dyn Memory>>;

    /// An fs primitive.
    async fn files(&self, primitive: &Primitive) -> Outcome<Arc<dyn Files>>;

    /// A storage primitive.
    async fn objects(&self, primitive: &Primitive) -> Outcome<Arc<dyn Objects>>;

    /// A vault primitive.
    async fn vault(&self, primitive: &Primitive) -> Outcome<Arc<dyn Vault>>;

    /// A db primitive.
    async fn db(&self, primitive: &Primitive) -> Outcome<Arc<dyn Db>>;

    /// Keeps the primitive as it is now, to go back to. Of a database it is main, without its branches.
    ///
    /// # Errors
    /// `SNAPSHOT_FAILED`.
    async fn snapshot(&self, primitive: &Primitive, label: Option<String>) -> Outcome<Snapshot>;

    /// What there is to go back to, newest first.
    async fn snapshots(&self, primitive: &Primitive) -> Outcome<Vec<Snapshot>>;

    /// Puts a snapshot in the primitive's place, and keeps what stood there: the snapshot of that. Nobody else may use
    /// the primitive meanwhile.
    ///
    /// # Errors
    /// `NOT_FOUND`; `SNAPSHOT_FAILED` where it is damaged. Nothing has changed then.
    async fn restore(&self, primitive: &Primitive, snapshot: &str) -> Outcome<Snapshot>;

    /// Makes a copy of the primitive in its group, which goes its own way. Large contents are shared. Of a database it is
    /// main, without its branches; in a queue nothing is leased.
    ///
    /// # Errors
    /// `CONFLICT` where the group has the name; `SNAPSHOT_FAILED`.
    async fn fork(&self, primitive: &Primitive, name: &str) -> Outcome<Primitive>;

    /// Removes what nothing names any more and was not written for `grace`; how many large contents that were.
    async fn remove_unnamed(&self, grace: Duration) -> Outcome<u64>;

    /// Writes what is still queued and closes everything. Nothing works afterwards.
    async fn close(&self);
}
