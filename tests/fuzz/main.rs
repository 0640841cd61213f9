//! The fuzz targets of `fuzz/` on a plain toolchain: their committed corpus, and bytes made from it and from nothing.
//!
//! It sees no coverage, so it finds less in an hour than a fuzzer in a minute; what was found once stays found.
//! `INDELIBLE_FUZZ_ROUNDS=10000` makes the runs long, `INDELIBLE_FUZZ_SEED=...` repeats one that a failure names.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper that fails fails its test"
)]

mod chain;
#[path = "../support/dice.rs"]
mod dice;
mod lines;
mod render;
mod sql;
mod worker_protocol;
mod yaml;

use dice::Dice;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

impl Dice {
    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.below(256) as u8).collect()
    }

    /// Changes some bytes, cuts, repeats or lengthens.
    fn change(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            match self.below(5) {
                0 => bytes.truncate(at),
                1 => bytes.splice(at..at, self.bytes(16)).for_each(drop),
                2 => bytes.extend_from_within(at..),
                _ if at < bytes.len() => bytes[at] = self.below(256) as u8,
                _ => bytes.push(self.below(256) as u8),
            }
        }
        bytes.truncate(4096);
    }
}

/// Runs a target over its corpus, then `rounds` times over what is made of it; a failure names the input.
#[track_caller]
fn holds(target: &str, rounds: u64, run: fn(&[u8])) {
    let seed =
        from_environment("INDELIBLE_FUZZ_SEED").unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0);
    let rounds = from_environment("INDELIBLE_FUZZ_ROUNDS").unwrap_or(rounds);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut corpus: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .collect();
    corpus.sort();
    assert!(!corpus.is_empty(), "{} is empty", folder.display());
    let mut dice = Dice(seed | 1);
    let made = (0..rounds).map(|round| {
        if round % 4 == 0 {
            return dice.bytes(400);
        }
        let mut bytes = corpus[dice.below(corpus.len())].clone();
        dice.change(&mut bytes);
        bytes
    });
    for input in corpus.clone().into_iter().chain(made) {
        if catch_unwind(AssertUnwindSafe(|| run(&input))).is_err() {
            panic!("INDELIBLE_FUZZ_SEED={seed} fails over {input:?}: {:?}", String::from_utf8_lossy(&input));
        }
    }
}

#[test]
fn any_text_as_a_yaml_file_is_a_manifest_or_has_mistakes_with_their_place() {
    holds("yaml", 60, yaml::run);
}

#[test]
fn any_statement_keeps_what_its_policy_promises() {
    holds("sql", 4, sql::run);
}

#[test]
fn any_cells_make_a_table_that_nothing_in_them_ends() {
    holds("render", 500, render::run);
}

#[test]
fn any_bytes_between_server_and_worker_are_a_message_or_none() {
    holds("worker_protocol", 2000, worker_protocol::run);
}

#[test]
fn whatever_comes_on_stdin_what_goes_out_is_json_rpc() {
    holds("lines", 100, lines::run);
}

#[test]
fn any_change_of_a_chain_shows() {
    holds("chain", 500, chain::run);
}
