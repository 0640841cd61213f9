//! What tests/fuzz/lines.rs holds, for a fuzzer that sees which code an input reaches.

#![no_main]

#[path = "../../tests/fuzz/lines.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::run(data));
