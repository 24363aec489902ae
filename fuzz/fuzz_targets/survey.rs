//! The `survey` target under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lanescope_fuzz::survey(data));
