//! From a primitive to what it can do.

use super::Outcome;
use super::catalog::{Catalog, Primitive};
use super::db::Db;
use super::files::Files;
use super::kv::Kv;
use super::memory::Memory;
use super::objects::Objects;
use super::queue::Queue;
use super::vault::Vault;
use async_trait::async_trait;
use std::sync::Arc;

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

    /// Writes what is still queued and closes everything. Nothing works afterwards.
    async fn close(&self);
}
