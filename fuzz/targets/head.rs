//! Heads of HTTP messages, from a program in a jail and from the servers that it reaches.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The first byte chooses the size of the pieces.
fuzz_target!(|data: &[u8]| {
    if let [piece, head @ ..] = data {
        haft_gate::fuzzing::head(head, usize::from(*piece));
    }
});
