#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| proxmox_mcp::safety::fuzzing::command(data));
