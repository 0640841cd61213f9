//! Vectors of texts, by a model that the user brings: `model.onnx` and `tokenizer.json` in one folder.
//!
//! It is there with the feature `embeddings` alone; without it, a folder is refused by name. It fetches nothing, and it
//! keeps nothing: where vectors are kept, and what they are compared with, is for `embedded` to say.

use crate::error::StartError;
use crate::state::memory::Embedder;
use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "embeddings")]
mod onnx;

/// Whether this program was built with it.
pub const BUILT_IN: bool = cfg!(feature = "embeddings");

/// The model in a folder.
///
/// # Errors
/// A program without the feature `embeddings`; a folder without a model that this one can run; exit status 2.
#[cfg(feature = "embeddings")]
pub fn load(folder: &Path) -> Result<Arc<dyn Embedder>, StartError> {
    Ok(Arc::new(onnx::Onnx::load(folder)?))
}

/// The model in a folder.
///
/// # Errors
/// A program without the feature `embeddings`; a folder without a model that this one can run; exit status 2.
#[cfg(not(feature = "embeddings"))]
pub fn load(folder: &Path) -> Result<Arc<dyn Embedder>, StartError> {
    Err(StartError::usage(format!(
        "this program was built without embeddings, so `--embedding-model {}` has no use: build it with \
         `--features embeddings`, or leave the flag out; memories are then recalled by their words",
        folder.display()
    )))
}
