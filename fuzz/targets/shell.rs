//! Lines of shell come from models, and policy reads them in haft's own process.
#![no_main]

use haft_guard::command::{Part, Shell, line};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let alone = line(text, Shell::Posix);
    assert!(!alone.parts.is_empty(), "{text:?}");
    let _ = line(text, Shell::Windows);
    // What is read by itself is found again behind another command.
    let both = line(&format!("true\n{text}"), Shell::Posix);
    if alone.is_read() && both.is_read() {
        for part in alone.parts.iter().filter(|part| matches!(part, Part::Command(_))) {
            assert!(both.parts.contains(part), "{part} of {text:?}");
        }
    }
});
