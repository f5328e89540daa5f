//! Every export keeps the rules that its provider publishes. The rules are in `tests/rules`, each with its sources.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use common::{Rules, builtin, handful, with_schema};
use haft_dialect::{Change, Dialect, Export, ExportOptions, export, export_with, import};
use haft_testkit::{not_run, shared_data};
use serde_json::{Value, json};
use std::fs;

#[test]
fn built_in_tools_keep_the_rules_and_all_of_them_are_there() {
    let tools = builtin();
    assert!(!tools.is_empty());
    for dialect in Dialect::ALL {
        for strict in [false, true] {
            let export = export_with(dialect, &ExportOptions { strict }, &tools);
            Rules::of(dialect).check(&export);
            assert_eq!(export.tools.len(), tools.len());
            assert!(export.remarks.iter().all(|remark| remark.change != Change::LeftOut));
        }
    }
}

#[test]
fn a_handful_of_everything_keeps_the_rules() {
    for dialect in Dialect::ALL {
        for strict in [false, true] {
            let export = export_with(dialect, &ExportOptions { strict }, &handful());
            Rules::of(dialect).check(&export);
            assert_eq!(export.tools.len(), handful().len());
        }
    }
}

#[test]
fn tools_for_mcp_fit_its_own_schema() {
    let Some(folder) = shared_data("mcp_schema") else {
        return not_run("tools_for_mcp_fit_its_own_schema", "the folder mcp_schema is not in the test data");
    };
    let tools: Vec<_> = builtin().into_iter().chain(handful()).collect();
    let export = export(Dialect::Mcp, &tools);
    for version in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let text = fs::read_to_string(folder.join("schema").join(version).join("schema.json")).unwrap();
        let mut schema: Value = serde_json::from_str(&text).unwrap();
        let definitions = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
        schema["$ref"] = format!("#/{definitions}/Tool").into();
        if version == "2025-06-18" {
            // Draft 7 has nothing beside a reference.
            schema = json!({"$schema": schema["$schema"], "allOf": [{"$ref": schema["$ref"]}], "definitions": schema["definitions"]});
        }
        let validator = jsonschema::validator_for(&schema).unwrap();
        assert!(!validator.is_valid(&json!({"name": "x"})), "{version} asks for an inputSchema");
        for tool in &export.tools {
            let broken: Vec<String> = validator.iter_errors(tool).map(|error| error.to_string()).collect();
            assert!(broken.is_empty(), "{version}: {broken:?}\n{tool:#}");
        }
    }
}

/// Tools as servers of MCP list them: with every member that its schema has, and with hardly any.
fn listed_tools() -> Vec<Value> {
    let weather = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "default": 3}},
        "required": ["city"],
    });
    vec![
        json!({"name": "least", "inputSchema": {"type": "object"}}),
        json!({"name": "closed", "inputSchema": {"type": "object", "additionalProperties": false}}),
        json!({"name": "weather", "title": "Weather", "description": "Asks the sky", "inputSchema": weather}),
        json!({
            "name": "with_all", "title": "All of it", "description": "Has every member", "inputSchema": weather,
            "outputSchema": {"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]},
            "annotations": {"title": "All", "readOnlyHint": true, "openWorldHint": true, "idempotentHint": true},
            "icons": [{"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"]}],
            "_meta": {"example.com/since": "2026"},
        }),
        json!({"name": "older_draft", "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "properties": {"a": {"$ref": "#/definitions/A"}}, "definitions": {"A": {"type": "number"}},
        }}),
        json!({"name": "newer_draft", "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
            "properties": {"a": {"anyOf": [{"type": "number"}, {"type": "null"}]}},
        }}),
    ]
}

/// Ours and, where the test data has them, those of the protocol's own pages.
#[test]
fn examples_of_mcp_are_imported() {
    let mut tools = listed_tools();
    if let Some(folder) = shared_data("mcp_schema/schema/2026-07-28/examples/Tool") {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        tools.extend(
            files.map(|file| serde_json::from_str::<Value>(&fs::read_to_string(file).unwrap()).unwrap()),
        );
        assert!(tools.len() >= 12, "{}", tools.len());
    }
    for tool in tools {
        let import = import(&tool).unwrap_or_else(|error| panic!("{tool}: {error}"));
        assert_eq!(import.definitions.len(), 1);
        for dialect in Dialect::ALL {
            let export = export(dialect, &import.definitions);
            Rules::of(dialect).check(&export);
            assert_eq!(export.tools.len(), 1, "{tool}");
        }
    }
}

/// The example of each provider's own guide, so that the rules are not stricter than what is known to be taken.
#[test]
fn examples_of_the_guides_keep_the_rules() {
    let weather = json!({
        "type": "object",
        "properties": {
            "location": {"type": "string", "description": "City and country e.g. Bogotá, Colombia"},
            "units": {"type": ["string", "null"], "enum": ["celsius", "fahrenheit"], "description": "Units"},
        },
        "required": ["location", "units"],
        "additionalProperties": false,
    });
    let examples = [
        (
            Dialect::OpenAiChat,
            json!([{"type": "function", "function": {
                "name": "get_weather", "description": "Retrieves current weather", "parameters": weather, "strict": true,
            }}]),
        ),
        (
            Dialect::OpenAiResponses,
            json!([{
                "type": "function", "name": "get_weather", "description": "Retrieves current weather",
                "parameters": weather, "strict": true,
            }]),
        ),
        (
            Dialect::Anthropic,
            json!([{
                "name": "get_stock_price",
                "description": "Get the current stock price for a given ticker symbol.",
                "input_schema": {
                    "type": "object",
                    "properties": {"ticker": {"type": "string", "description": "The stock ticker symbol"}},
                    "required": ["ticker"],
                },
            }]),
        ),
        (
            Dialect::Gemini,
            json!([{"functionDeclarations": [{
                "name": "schedule_meeting",
                "description": "Schedules a meeting with specified attendees at a given time and date.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "attendees": {"type": "array", "items": {"type": "string"}, "description": "Who"},
                        "date": {"type": "string", "description": "Date (e.g., '2024-07-29')"},
                    },
                    "required": ["attendees", "date"],
                },
            }]}]),
        ),
        (
            Dialect::Mcp,
            json!([{
                "name": "get_weather", "title": "Weather Information Provider",
                "description": "Get current weather information for a location",
                "inputSchema": {
                    "type": "object",
                    "properties": {"location": {"type": "string", "description": "City name or zip code"}},
                    "required": ["location"],
                },
            }]),
        ),
    ];
    for (dialect, tools) in examples {
        assert_eq!(Rules::of(dialect).broken_by(&tools), Vec::<String>::new(), "{dialect}");
        assert_eq!(import(&tools).unwrap().definitions.len(), 1, "{dialect}");
    }
}

/// What the providers are known to turn away breaks the rules, so that the rules are worth keeping.
#[test]
fn the_rules_turn_away_what_the_providers_do() {
    let gemini = |schema: Value| {
        json!([{"functionDeclarations": [{"name": "t", "description": "d", "parameters": {
            "type": "object", "properties": {"x": schema},
        }}]}])
    };
    let chat = |parameters: Value| json!([{"type": "function", "function": {"name": "t", "parameters": parameters}}]);
    let strict = |parameters: Value| json!([{"type": "function", "function": {"name": "t", "parameters": parameters, "strict": true}}]);
    let turned_away = [
        (Dialect::Gemini, gemini(json!({"type": "string", "additionalProperties": false}))),
        (Dialect::Gemini, gemini(json!({"type": ["string", "null"]}))),
        (Dialect::Gemini, gemini(json!({"type": "string", "format": "uuid"}))),
        (Dialect::Gemini, gemini(json!({"type": "integer", "enum": [1, 2]}))),
        (Dialect::Gemini, gemini(json!({"type": "string", "enum": [""]}))),
        (Dialect::Gemini, gemini(json!({"type": "array"}))),
        (Dialect::Gemini, gemini(json!({"const": "x"}))),
        (Dialect::Gemini, gemini(json!({}))),
        (Dialect::Gemini, gemini(json!({"description": "d", "anyOf": [{"type": "string"}]}))),
        (Dialect::Gemini, gemini(json!({"type": "object", "properties": {}, "required": ["a"]}))),
        (Dialect::OpenAiChat, chat(json!({"type": "object"}))),
        (Dialect::OpenAiChat, chat(json!({"type": "object", "properties": {}, "anyOf": []}))),
        (Dialect::OpenAiChat, chat(json!({"type": "object", "properties": {"x": {"type": "array"}}}))),
        (Dialect::OpenAiChat, strict(json!({"type": "object", "properties": {}}))),
        (
            Dialect::OpenAiChat,
            strict(json!({
                "type": "object", "properties": {"x": {"type": "string"}}, "required": [], "additionalProperties": false,
            })),
        ),
        (
            Dialect::OpenAiResponses,
            json!([{"type": "function", "name": "t", "parameters": {"type": "object", "properties": {}}}]),
        ),
        (Dialect::Anthropic, json!([{"name": "a.b", "input_schema": {"type": "object"}}])),
        (Dialect::Anthropic, json!([{"name": "t", "input_schema": {"type": "object", "oneOf": []}}])),
        (
            Dialect::Anthropic,
            json!([{"name": "t", "input_schema": {"type": "object", "properties": {"$top": {}}}}]),
        ),
        (Dialect::Mcp, json!([{"name": "t", "inputSchema": {"type": "object", "properties": {"x": true}}}])),
        (
            Dialect::Mcp,
            json!([{"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}}]),
        ),
    ];
    for (dialect, tools) in turned_away {
        assert!(!Rules::of(dialect).broken_by(&tools).is_empty(), "{dialect} would take {tools}");
    }
}

#[test]
fn an_export_without_tools_is_an_empty_list() {
    for dialect in Dialect::ALL {
        assert_eq!(export(dialect, []).to_value(), json!([]), "{dialect}");
    }
}

#[test]
fn too_many_tools_are_reported_and_not_cut() {
    let tools: Vec<_> =
        (0..600).map(|n| with_schema(&format!("t{n}"), "d", json!({"type": "object"}))).collect();
    let said =
        |export: &Export| export.remarks.iter().filter(|remark| remark.change == Change::OverLimit).count();
    for (dialect, expected) in Dialect::ALL.into_iter().zip([1, 1, 0, 1, 0]) {
        let export = export(dialect, &tools);
        assert_eq!((export.tools.len(), said(&export)), (600, expected), "{dialect}");
    }
}
