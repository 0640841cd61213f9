//! What bounds a call: the policy file and the limits that were in force when it began.
//!
//! It reads no file; `policy_file` does.

use super::{Call, Core};
use crate::policy_file::PolicyFile;
use crate::render::Caps;
use crate::surface::SurfaceSettings;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

impl Call<'_> {
    /// The limits in force for this call.
    #[must_use]
    pub fn limits(&self) -> &SurfaceSettings {
        self.surface.settings()
    }

    /// The caps of every text result.
    #[must_use]
    pub fn caps(&self) -> Caps {
        let size = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        Caps {
            max_result_bytes: size(self.limits().max_result_bytes),
            max_cell_chars: size(self.limits().max_cell_chars),
        }
    }

    /// How long a statement may run.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::try_from_secs_f64(self.limits().query_timeout).unwrap_or(Duration::MAX)
    }

    /// The policy file that the call began under.
    #[must_use]
    pub fn policy_file(&self) -> &PolicyFile {
        &self.policy_file
    }
}

impl Core {
    /// The same under a policy file.
    #[must_use]
    pub fn under(self, policy_file: PolicyFile) -> Self {
        self.renarrow(policy_file);
        self
    }

    /// The policy file in force.
    #[must_use]
    pub fn policy_file(&self) -> Arc<PolicyFile> {
        Arc::clone(&self.policy_file.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on calls run under this policy file. Its limits are the surface's to hold.
    pub fn renarrow(&self, policy_file: PolicyFile) {
        // The workers first: a row of the log that names a policy was written under it or a later one.
        self.pool.renarrow(policy_file.narrowing.clone());
        *self.policy_file.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy_file);
    }
}
