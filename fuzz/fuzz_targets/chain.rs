//! What tests/fuzz/chain.rs holds, for a fuzzer that sees which code an input reaches.

#![no_main]

#[path = "../../tests/fuzz/chain.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::run(data));
