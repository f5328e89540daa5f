//! The first bytes of a TLS connection, from a program in a jail.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| haft_gate::fuzzing::hello(data));
