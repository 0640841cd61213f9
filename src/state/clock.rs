//! The time.
//!
//! Everything that expires asks a clock that it was given, so that a test can move the time.

use std::sync::atomic::{AtomicI64, Ordering};

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    fn now(&self) -> i64;
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> i64 {
        jiff::Timestamp::now().as_millisecond()
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows these milliseconds since 1970.
    #[must_use]
    pub fn at(milliseconds: i64) -> Self {
        Self(AtomicI64::new(milliseconds))
    }

    /// Moves it on.
    pub fn advance(&self, milliseconds: i64) {
        self.0.fetch_add(milliseconds, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A moment as results show it: `2026-11-30T09:01:02.345Z`.
#[must_use]
pub fn shown(milliseconds: i64) -> String {
    jiff::Timestamp::from_millisecond(milliseconds).map(|moment| format!("{moment:.3}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_shown_to_the_millisecond_in_utc() {
        assert_eq!(shown(1_764_493_262_045), "2025-11-30T09:01:02.045Z");
        assert_eq!(shown(0), "1970-01-01T00:00:00.000Z");
    }
}
