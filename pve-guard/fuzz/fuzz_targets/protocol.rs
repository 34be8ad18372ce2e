//! Any line, read as a request, as input and as a reply:
//! `cargo +nightly fuzz run protocol`.
#![no_main]

#[path = "../check.rs"]
mod fuzz;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::check(data));
