//! Tools in the dialects of model providers.

use crate::support::Place;
use serde_json::{Value, json};

#[test]
fn every_dialect_is_exported_as_one_document() {
    let place = Place::new();
    for (dialect, pointer) in [
        ("openai-chat", "/0/function/name"),
        ("openai-responses", "/0/name"),
        ("anthropic", "/0/name"),
        ("gemini", "/0/functionDeclarations/0/name"),
        ("mcp", "/0/name"),
    ] {
        let said = place.haft(&["tools", "export", "--dialect", dialect, "validate_content"]);
        let value: Value = serde_json::from_str(&said.stdout).expect("one document");
        assert_eq!(value.pointer(pointer), Some(&json!("validate_content")), "{dialect}: {value}");
    }
    let said = place.haft(&["tools", "export", "--dialect", "antropic"]);
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("did you mean `anthropic`?"), "{}", said.stderr);
}

#[test]
fn what_was_rewritten_is_said_beside_the_document() {
    let said = Place::new().haft(&["tools", "export", "--dialect", "gemini", "validate_content"]);
    assert!(said.stderr.contains("note: validate_content at /parameters/"), "{}", said.stderr);
}

#[test]
fn a_list_of_a_provider_can_be_added() {
    let place = Place::new();
    let list = json!([{"type": "function", "function": {
        "name": "getWeather",
        "description": "Says how the weather is",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }}]);
    let said = place.haft_with(&["tools", "add", "--import", "-"], list.to_string());
    assert_eq!(said.code, 0, "{said:?}");
    let shown = place.ok(&["tools", "show", "getweather"]).stdout;
    assert!(shown.contains("city"), "{shown}");

    let broken = json!([{"type": "function", "function": {"description": "no name"}}]);
    let said = place.haft_with(&["tools", "add", "--import", "-"], broken.to_string());
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.stderr.contains("tools[0]"), "{}", said.stderr);
}
