//! Faults: kills at random moments, power cuts, other processes' locks, full disks, files that vanish.
//!
//! Each test starts the program on a database of its own and looks afterwards at the file alone. In `cargo test` each
//! goes a few rounds; `INDELIBLE_FAULT_ROUNDS=300` makes it as many, and `INDELIBLE_FAULT_SEED=...` repeats the run
//! whose seed a failure names. docs/RELIABILITY.md says what was run.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]

mod chain;
mod contention;
mod crash;
#[cfg(target_arch = "x86_64")]
mod full;
#[cfg(target_arch = "x86_64")]
mod power;
#[cfg(target_arch = "x86_64")]
mod trace;

mod growth;
mod resources;

#[path = "../support/mod.rs"]
mod support;

use std::fmt::Display;

/// How often a test goes round.
fn rounds(short: usize) -> usize {
    std::env::var("INDELIBLE_FAULT_ROUNDS").ok().map_or(short, |text| text.parse().unwrap())
}

/// Runs the same for each of these at the same time: most of it is waiting.
fn side_by_side<T: Sync>(ways: &[T], run: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| {
        for way in ways {
            scope.spawn(|| run(way));
        }
    });
}

/// Numbers that look random and can be had again.
#[derive(Clone, Debug)]
struct Dice {
    seed: u64,
    state: u64,
}

impl Dice {
    /// From the environment, or new ones.
    fn new() -> Self {
        let seed = match std::env::var("INDELIBLE_FAULT_SEED") {
            Ok(text) => text.parse().unwrap(),
            Err(_) => uuid::Uuid::new_v4().as_u64_pair().0,
        };
        Self { seed, state: seed | 1 }
    }

    /// Other numbers for each of what runs side by side.
    fn lane(self, lane: usize) -> Self {
        let apart = (lane as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self { state: (self.state ^ apart) | 1, ..self }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    /// For messages.
    fn told(&self, what: impl Display) -> String {
        format!("INDELIBLE_FAULT_SEED={} {what}", self.seed)
    }
}
