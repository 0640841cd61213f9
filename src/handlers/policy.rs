//! The policy file that calls run under.
//!
//! It reads no file; `policy_file` does.

use super::Core;
use crate::policy_file::PolicyFile;
use std::sync::{Arc, PoisonError};

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

    /// From now on calls run under this policy file. Its limits are not looked at: they are the settings'.
    pub fn renarrow(&self, policy_file: PolicyFile) {
        self.pool.renarrow(policy_file.narrowing.clone());
        *self.policy_file.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy_file);
    }
}
