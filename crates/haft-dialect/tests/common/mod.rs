//! What the tests of this crate share: the rules of each provider, and definitions that need every rule.

#![allow(dead_code, reason = "no test file uses all of it")]

pub(crate) mod generate;

use haft_core::{Annotations, Parameter, ParameterType, Parameters, ToolDefinition};
use haft_dialect::{Dialect, Export};
use jsonschema::Validator;
use serde_json::{Map, Value, json};

/// The published rules of a provider, as a JSON Schema of what stands under `tools`.
pub(crate) struct Rules {
    dialect: Dialect,
    validator: Validator,
}

impl Rules {
    pub(crate) fn of(dialect: Dialect) -> Rules {
        let (text, entry) = match dialect {
            Dialect::OpenAiChat => (include_str!("../rules/openai.json"), Some("#/$defs/chat")),
            Dialect::OpenAiResponses => (include_str!("../rules/openai.json"), Some("#/$defs/responses")),
            Dialect::Anthropic => (include_str!("../rules/anthropic.json"), None),
            Dialect::Gemini => (include_str!("../rules/gemini.json"), None),
            Dialect::Mcp => (include_str!("../rules/mcp.json"), None),
        };
        let mut rules: Value = serde_json::from_str(text).unwrap();
        if let Some(entry) = entry {
            rules["$ref"] = entry.into();
        }
        Rules { dialect, validator: jsonschema::validator_for(&rules).unwrap() }
    }

    /// Every rule that a value breaks.
    pub(crate) fn broken_by(&self, tools: &Value) -> Vec<String> {
        let mut broken: Vec<String> = self
            .validator
            .iter_errors(tools)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        match self.dialect {
            Dialect::Gemini => each_object(tools, &mut |object| {
                for name in object.get("required").and_then(Value::as_array).into_iter().flatten() {
                    let known =
                        object.get("properties").and_then(|all| all.get(name.as_str().unwrap_or_default()));
                    if known.is_none() && object.get("type").is_some_and(|kind| kind == "object") {
                        broken.push(format!("required {name} has no property"));
                    }
                }
            }),
            Dialect::OpenAiChat | Dialect::OpenAiResponses => {
                for tool in tools.as_array().unwrap() {
                    let function = tool.get("function").unwrap_or(tool);
                    if function.get("strict") == Some(&Value::Bool(true)) {
                        all_required(&function["parameters"], &mut broken);
                    }
                }
            }
            Dialect::Anthropic | Dialect::Mcp => {}
        }
        broken
    }

    pub(crate) fn check(&self, export: &Export) {
        let value = export.to_value();
        let broken = self.broken_by(&value);
        assert!(broken.is_empty(), "{} breaks {broken:#?}\n{value:#}", self.dialect);
    }
}

fn each_object(value: &Value, see: &mut impl FnMut(&Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            see(object);
            object.values().for_each(|value| each_object(value, see));
        }
        Value::Array(items) => items.iter().for_each(|value| each_object(value, see)),
        _ => {}
    }
}

/// In strict mode `required` names all properties.
fn all_required(schema: &Value, broken: &mut Vec<String>) {
    let Value::Object(schema) = schema else { return };
    if let Some(Value::Object(properties)) = schema.get("properties") {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let mut required: Vec<&str> = required.filter_map(Value::as_str).collect();
        required.sort_unstable();
        let names: Vec<&str> = properties.keys().map(String::as_str).collect();
        if names != required {
            broken.push(format!("{names:?} are not all required: {required:?}"));
        }
        properties.values().for_each(|property| all_required(property, broken));
    }
    schema.get("items").into_iter().for_each(|items| all_required(items, broken));
    for branch in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        all_required(branch, broken);
    }
}

pub(crate) fn with_schema(name: &str, description: &str, schema: Value) -> ToolDefinition {
    let mut definition = ToolDefinition::new(name, description);
    definition.parameters = Parameters::Schema(schema);
    definition
}

/// The tools that come with haft.
pub(crate) fn builtin() -> Vec<ToolDefinition> {
    haft_tools::builtin().iter().map(|tool| ToolDefinition::clone(tool.definition())).collect()
}

/// A handful of definitions that need every rewriting there is.
pub(crate) fn handful() -> Vec<ToolDefinition> {
    let mut annotated = with_schema(
        "annotated",
        "Says what it does and what it gives",
        json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}),
    );
    annotated.title = Some("Annotated".into());
    annotated.annotations = Annotations { destructive: Some(false), open_world: Some(true) };
    annotated.constraints.allow_side_effects = false;
    annotated.idempotent = true;
    annotated.output_schema = Some(json!({
        "type": "object",
        "properties": {"found": {"type": "boolean"}, "anything": true},
        "required": ["found"],
    }));
    let mut list_output = ToolDefinition::new("list_output", "Gives a list");
    list_output.output_schema = Some(json!({"type": "array", "items": {"type": "string"}}));
    let mut listed = ToolDefinition::new("listed", "Has a list of declared parameters");
    listed.parameters = Parameters::List(vec![
        Parameter {
            name: "path".into(),
            description: "Where".into(),
            kind: ParameterType::String,
            required: true,
            default: None,
            choices: None,
            schema: None,
        },
        Parameter {
            name: "mode".into(),
            description: "How".into(),
            kind: ParameterType::String,
            required: false,
            default: Some("fast".into()),
            choices: Some(vec!["fast".into(), "safe".into()]),
            schema: None,
        },
    ]);
    vec![
        annotated,
        list_output,
        listed,
        with_schema(
            "long_text",
            &"It says a lot. ".repeat(69),
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
        ),
        nested(),
        with_schema(
            "anything",
            "Takes whatever there is",
            json!({
                "type": "object",
                "properties": {
                    "value": {"description": "Whatever there is"},
                    "always": true,
                    "never": false,
                    "elsewhere": {"$ref": "https://example.com/schema.json"},
                },
            }),
        ),
        with_schema(
            "recursive",
            "Contains itself",
            json!({
                "type": "object",
                "properties": {"tree": {"$ref": "#/$defs/Node"}},
                "$defs": {
                    "Node": {
                        "type": "object",
                        "properties": {
                            "value": {"type": "string"},
                            "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                        },
                        "required": ["value"],
                    },
                },
            }),
        ),
        with_schema(
            "Odd name!",
            "Has names that not everybody takes",
            json!({
                "type": "object",
                "properties": {"$top": {"type": "integer"}, "user id": {"type": "string"}, "ok": {"type": "string"}},
                "required": ["user id"],
            }),
        ),
        refs(),
        top_union(),
        unions(),
    ]
}

fn nested() -> ToolDefinition {
    with_schema(
        "nested",
        "Takes objects in lists in objects",
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "order": {
                    "type": "object",
                    "description": "The order",
                    "properties": {
                        "lines": {
                            "type": "array",
                            "minItems": 1,
                            "maxItems": 20,
                            "uniqueItems": true,
                            "items": {
                                "type": "object",
                                "properties": {
                                    "sku": {"type": "string", "pattern": "^[A-Z]{3}-\\d+$", "minLength": 5},
                                    "count": {"type": "integer", "exclusiveMinimum": 0, "maximum": 99},
                                    "price": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.01},
                                },
                                "required": ["sku", "count"],
                                "additionalProperties": false,
                            },
                        },
                        "due": {"type": "string", "format": "date-time"},
                        "contact": {"type": "string", "format": "email", "examples": ["a@b.example"]},
                    },
                    "required": ["lines"],
                },
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
                "loose": {"type": "array"},
                "urgent": {"type": "boolean", "default": false},
            },
            "required": ["order"],
            "additionalProperties": false,
        }),
    )
}

fn refs() -> ToolDefinition {
    with_schema(
        "refs",
        "Refers to definitions",
        json!({
            "type": "object",
            "properties": {
                "home": {"$ref": "#/$defs/Address", "description": "Where one lives"},
                "work": {"$ref": "#/$defs/Address"},
                "both": {"allOf": [{"$ref": "#/$defs/Named"}, {"properties": {"age": {"type": "integer"}}}]},
            },
            "required": ["home"],
            "$defs": {
                "Address": {
                    "type": "object",
                    "description": "An address",
                    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
                    "required": ["city"],
                },
                "Named": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            },
        }),
    )
}

fn top_union() -> ToolDefinition {
    with_schema(
        "top_union",
        "Has alternatives at the top",
        json!({
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
                    "required": ["kind", "radius"],
                    "additionalProperties": false,
                },
                {
                    "type": "object",
                    "properties": {"kind": {"const": "square"}, "side": {"type": "number"}},
                    "required": ["kind", "side"],
                    "additionalProperties": false,
                },
            ],
        }),
    )
}

fn unions() -> ToolDefinition {
    with_schema(
        "unions",
        "Takes one thing or another",
        json!({
            "type": "object",
            "properties": {
                "maybe": {"type": ["string", "null"], "description": "A text or nothing"},
                "either": {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 1}], "description": "Id or name"},
                "one": {"oneOf": [{"type": "string", "format": "uuid"}, {"type": "null"}]},
                "several": {"type": ["string", "number", "boolean"]},
                "fixed": {"const": "v1"},
                "level": {"type": "integer", "enum": [1, 2, 3], "description": "How loud"},
                "exact": {"const": 7},
                "colour": {"type": ["string", "null"], "enum": ["red", "green", "", null]},
                "mixed": {"enum": ["auto", 0]},
                "documented": {
                    "description": "How to write it",
                    "oneOf": [
                        {"const": "json", "type": "string", "description": "With braces"},
                        {"const": "toml", "type": "string", "description": "With brackets"},
                    ],
                },
                "no_type": {"properties": {"a": {"type": "string"}}},
                "at_least_one": {
                    "type": "object",
                    "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                    "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
                },
                "not_this": {"type": "string", "not": {"const": "root"}},
            },
            "required": ["maybe", "either", "fixed"],
        }),
    )
}
