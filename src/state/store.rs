//! From a primitive to what it can do.

use super::Outcome;
use super::catalog::{Catalog, Primitive};
use super::kv::Kv;
use async_trait::async_trait;
use std::sync::Arc;

/// Keeps everything: the catalog, and each primitive behind its trait.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Groups and their primitives.
    fn catalog(&self) -> &dyn Catalog;

    /// A key-value primitive.
    async fn kv(&self, primitive: &Primitive) -> Outcome<Arc<dyn Kv>>;

    /// Writes what is still queued and closes everything. Nothing works afterwards.
    async fn close(&self);
}
