//! Bodies in chunks, from both ends.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| haft_gate::fuzzing::chunks(data));
