//! What the user's policy file takes away, as workers are told it: now, and how often that has changed.
//!
//! It judges nothing; a worker's guard does.

use crate::policy::Narrowing;
use std::sync::{Mutex, PoisonError};

/// The narrowing in force.
#[derive(Debug, Default)]
pub(super) struct Narrowed(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    narrowing: Narrowing,
    changes: u64,
    /// Whether a worker was asked what the file says in vain.
    asked: bool,
}

/// What a worker that starts now is told.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) narrowing: Narrowing,
    /// Which narrowing it is.
    pub(super) changes: u64,
    /// Whether it is to say what of the file finds nothing: one worker does.
    pub(super) tells_notes: bool,
}

impl Narrowed {
    /// Puts another narrowing in force.
    pub(super) fn set(&self, narrowing: Narrowing) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State { narrowing, changes: state.changes + 1, asked: false };
    }

    /// How often it was changed.
    pub(super) fn changes(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).changes
    }

    /// For a worker that starts.
    pub(super) fn tell(&self) -> Told {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = std::mem::replace(&mut state.asked, true);
        let tells_notes = !asked && state.narrowing != Narrowing::default();
        Told { narrowing: state.narrowing.clone(), changes: state.changes, tells_notes }
    }
}
