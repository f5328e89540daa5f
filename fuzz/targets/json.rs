//! Arguments come from models: JSON that is read strictly, or not at all.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(value) = haft_core::json::parse(text) else {
        return;
    };
    // What is read strictly is JSON to everybody else, too, and means the same.
    let usual: serde_json::Value = serde_json::from_str(text).expect(text);
    assert_eq!(value, usual, "{text}");
    let written = value.to_string();
    assert_eq!(haft_core::json::parse(&written).expect(&written), value, "{written}");
});
