//! Bytes by their hash: written once, never changed.
//!
//! What is small stands beside its entry in the index; this is for what is large. Two entries with the same bytes
//! share them, so that a copy of a tree or a fork of a primitive copies no bytes.

use super::Outcome;
use async_trait::async_trait;
use sha2::{Digest, Sha256};

/// Bytes up to this many stand in the index itself.
pub const INLINE: usize = 64 << 10;
/// The most content that one call shows, in bytes.
pub const MOST_SHOWN: usize = 256 << 10;
/// The most content that one call writes, in bytes.
pub const MOST_WRITTEN: usize = 16 << 20;

/// Where bytes are kept.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Keeps bytes; they are on the disk when it returns. Bytes that are there already are kept once.
    async fn put(&self, hash: String, bytes: Vec<u8>) -> Outcome<()>;

    /// Up to `most` bytes from `offset` on.
    async fn read(&self, hash: String, offset: u64, most: usize) -> Outcome<Vec<u8>>;
}

/// The name of bytes: SHA-256, lower-case hex.
#[must_use]
pub fn hash(bytes: &[u8]) -> String {
    crate::render::hex(&Sha256::digest(bytes))
}
