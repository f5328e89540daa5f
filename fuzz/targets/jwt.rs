//! Bearer tokens come from anybody who can reach the server.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(token) = std::str::from_utf8(data) {
        haft_server::fuzz_token(token);
    }
});
