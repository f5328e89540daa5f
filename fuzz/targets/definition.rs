//! Tool definitions come from files, servers and other people's registries.
#![no_main]

use haft_core::ToolDefinition;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(definition) = serde_json::from_slice::<ToolDefinition>(data) else {
        return;
    };
    // One that breaks a rule is refused, so it is never written.
    if !definition.check().is_empty() {
        return;
    }
    let written = serde_json::to_string(&definition).expect("a definition that was read can be written");
    let again: ToolDefinition =
        serde_json::from_str(&written).expect("a definition that was written can be read");
    assert_eq!(again, definition, "{written}");
    assert!(again.check().is_empty(), "{written}");
});
