//! What holds for every definition: an export never fails, is always the same, keeps the rules, and says what it changed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use common::{Rules, with_schema};
use haft_core::ToolDefinition;
use haft_dialect::{Change, Dialect, Export, ExportOptions, export, export_with, import};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

static RULES: LazyLock<Vec<(Dialect, Rules)>> =
    LazyLock::new(|| Dialect::ALL.map(|dialect| (dialect, Rules::of(dialect))).into());

fn names() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "b", "c"])
}

/// Values that have a fair chance to fit a schema made of the same few names.
fn value() -> impl Strategy<Value = Value> {
    let leaf = select(vec![
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(2),
        json!(1.5),
        json!(-1),
        json!(""),
        json!("a"),
        json!("abc"),
        json!("2026-01-01T00:00:00Z"),
    ]);
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((names(), inner), 0..3).prop_map(object),
        ]
    })
}

fn arguments() -> impl Strategy<Value = Value> {
    vec((names(), value()), 0..4).prop_map(object)
}

fn object(members: Vec<(&str, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn keyword() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        select(vec!["string", "integer", "number", "boolean", "null", "object", "array"])
            .prop_map(|kind| ("type", json!(kind))),
        vec(select(vec!["string", "integer", "number", "boolean", "null", "object", "array"]), 1..4)
            .prop_map(|mut kinds| {
                kinds.sort_unstable();
                kinds.dedup();
                ("type", json!(kinds))
            }),
        vec(value(), 1..4).prop_map(|values| ("enum", json!(values))),
        value().prop_map(|value| ("const", value)),
        (0..4_u8).prop_map(|count| ("minLength", json!(count))),
        (0..4_u8).prop_map(|count| ("maxLength", json!(count))),
        select(vec!["^a", "b$", "(?=a)a", "\\d"]).prop_map(|pattern| ("pattern", json!(pattern))),
        select(vec!["date-time", "uuid", "int32", "double", "enum", "uri"])
            .prop_map(|format| ("format", json!(format))),
        (-2..3_i8).prop_map(|bound| ("minimum", json!(bound))),
        (-2..3_i8).prop_map(|bound| ("maximum", json!(bound))),
        (-2..3_i8).prop_map(|bound| ("exclusiveMinimum", json!(bound))),
        (-2..3_i8).prop_map(|bound| ("exclusiveMaximum", json!(bound))),
        Just(("multipleOf", json!(2))),
        (0..3_u8).prop_map(|count| ("minItems", json!(count))),
        (0..3_u8).prop_map(|count| ("maxItems", json!(count))),
        Just(("uniqueItems", json!(true))),
        (0..3_u8).prop_map(|count| ("minProperties", json!(count))),
        vec(names(), 0..3).prop_map(|mut names| {
            names.sort_unstable();
            names.dedup();
            ("required", json!(names))
        }),
        any::<bool>().prop_map(|open| ("additionalProperties", json!(open))),
        select(vec!["text", "another"]).prop_map(|text| ("description", json!(text))),
        value().prop_map(|value| ("default", value)),
        select(vec!["#/$defs/A", "#/$defs/B", "#/$defs/C", "#"]).prop_map(|to| ("$ref", json!(to))),
    ]
}

/// What is not what it is itself is a riddle, not a schema.
fn without_references(keywords: Vec<(&'static str, Value)>) -> Vec<(&'static str, Value)> {
    keywords.into_iter().filter(|(key, _)| *key != "$ref").collect()
}

/// Schemas that are valid, if odd.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        8 => vec(keyword(), 0..4).prop_map(object),
        1 => any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let more = prop_oneof![
            3 => vec((names(), inner.clone()), 0..4).prop_map(|all| ("properties", object(all))),
            1 => inner.clone().prop_map(|items| ("items", items)),
            1 => vec(inner.clone(), 1..3).prop_map(|all| ("prefixItems", json!(all))),
            1 => vec(inner.clone(), 1..4).prop_map(|all| ("anyOf", json!(all))),
            1 => vec(inner.clone(), 1..4).prop_map(|all| ("oneOf", json!(all))),
            1 => vec(inner.clone(), 1..3).prop_map(|all| ("allOf", json!(all))),
            1 => vec(keyword(), 1..3).prop_map(|not| ("not", object(without_references(not)))),
            1 => inner.prop_map(|kind| ("additionalProperties", kind)),
        ];
        (vec(keyword(), 0..3), vec(more, 1..3)).prop_map(|(mut keywords, more)| {
            keywords.extend(more);
            object(keywords)
        })
    })
}

/// The parameters of a tool: an object at the top, with definitions to refer to.
fn parameters() -> impl Strategy<Value = Value> {
    let top =
        (option::weighted(0.5, schema()), vec((names(), schema()), 0..4), vec(names(), 0..3), any::<bool>());
    (top, vec(schema(), 3)).prop_map(|((base, properties, required, closed), definitions)| {
        let mut top = match base {
            Some(Value::Object(base)) => base,
            _ => Map::new(),
        };
        top.insert("type".into(), json!("object"));
        top.insert("properties".into(), object(properties));
        let mut required = required;
        required.sort_unstable();
        required.dedup();
        top.insert("required".into(), json!(required));
        if closed {
            top.insert("additionalProperties".into(), json!(false));
        }
        let names = ["A", "B", "C"].into_iter().zip(definitions).collect();
        top.insert("$defs".into(), object(names));
        Value::Object(top)
    })
}

/// Parameters as people write them, so that a single rule is looked at and not a heap.
fn mild_parameters() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        Just(json!({"type": "string"})),
        (0..3_u8).prop_map(|least| json!({"type": "string", "minLength": least, "maxLength": 3})),
        Just(json!({"type": "string", "pattern": "^a"})),
        vec(select(vec!["a", "abc", ""]), 1..3).prop_map(|all| json!({"type": "string", "enum": all})),
        Just(json!({"const": "abc"})),
    ];
    let number = prop_oneof![
        (-1..2_i8).prop_map(|bound| json!({"type": "integer", "exclusiveMinimum": bound})),
        (-1..2_i8).prop_map(|bound| json!({"type": "number", "exclusiveMaximum": bound})),
        (-1..2_i8).prop_map(|bound| json!({"type": "integer", "minimum": bound, "exclusiveMinimum": 0})),
        Just(json!({"type": "integer", "enum": [1, 2]})),
        Just(json!({"const": 1})),
        Just(json!({"enum": [1, "a", null]})),
    ];
    let plain = prop_oneof![
        3 => text,
        3 => number,
        1 => Just(json!({"type": "boolean"})),
        1 => Just(json!({"type": ["string", "null"]})),
        1 => Just(json!({"type": ["string", "null"], "enum": ["a", null]})),
        1 => Just(json!({"type": ["integer", "string"], "minimum": 1, "maxLength": 1})),
        1 => Just(json!({"$ref": "#/$defs/A"})),
        1 => Just(json!({"$ref": "#/$defs/A", "description": "text"})),
        1 => Just(json!({"$ref": "#/$defs/B"})),
        1 => Just(json!({})),
    ];
    let nested = plain.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            2 => (vec((names(), inner.clone()), 1..3), any::<bool>(), any::<bool>()).prop_map(|(all, required, closed)| {
                let names: Vec<&str> = if required { vec![all[0].0] } else { vec![] };
                let mut schema = json!({"type": "object", "properties": object(all), "required": names});
                if closed {
                    schema["additionalProperties"] = json!(false);
                }
                schema
            }),
            1 => inner.clone().prop_map(|items| json!({"type": "array", "items": items, "maxItems": 2})),
            1 => vec(inner.clone(), 1..3).prop_map(|all| json!({"anyOf": all})),
            1 => vec(inner.clone(), 1..3).prop_map(|all| json!({"oneOf": all})),
            1 => vec(inner.clone(), 1..3).prop_map(|all| json!({"allOf": all})),
            1 => inner.prop_map(|one| json!({"anyOf": [one, {"type": "null"}], "description": "text"})),
        ]
    });
    (vec((names(), nested), 1..3), option::of(names()), any::<bool>()).prop_map(|(properties, required, closed)| {
        let properties = object(properties);
        let mut schema = json!({
            "type": "object",
            "$defs": {
                "A": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/$defs/B"}}},
                "B": {"type": "string", "enum": ["a", "abc"]},
            },
        });
        if let Some(name) = required.filter(|name| properties.get(*name).is_some()) {
            schema["required"] = json!([name]);
        }
        if closed {
            schema["additionalProperties"] = json!(false);
        }
        schema["properties"] = properties;
        schema
    })
}

fn all_exports(definitions: &[ToolDefinition]) -> Vec<Export> {
    Dialect::ALL
        .into_iter()
        .flat_map(|dialect| {
            [false, true].map(|strict| export_with(dialect, &ExportOptions { strict }, definitions))
        })
        .collect()
}

fn keeps_the_rules(export: &Export) {
    let (_, rules) = RULES.iter().find(|(dialect, _)| *dialect == export.dialect).unwrap();
    rules.check(export);
}

/// A value as a model in strict mode says it: what is absent is null.
fn with_nulls(schema: &Value, value: &Value) -> Value {
    match (value, schema.get("properties"), schema.get("items")) {
        (Value::Object(members), Some(Value::Object(properties)), _) => properties
            .iter()
            .map(|(name, property)| {
                let member = members.get(name).map_or(Value::Null, |member| with_nulls(property, member));
                (name.clone(), member)
            })
            .collect::<Map<String, Value>>()
            .into(),
        (Value::Array(all), _, Some(items)) => all.iter().map(|item| with_nulls(items, item)).collect(),
        _ => value.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_json_at_all_as_parameters_keeps_the_rules(names in vec(".{0,80}", 1..4), schema in any_json()) {
        let definitions: Vec<_> = names.iter().map(|name| with_schema(name, "d", schema.clone())).collect();
        for export in all_exports(&definitions) {
            // Not every JSON is a schema, so that what is not rewritten may be wrong further down.
            if matches!(export.dialect, Dialect::Gemini | Dialect::Mcp | Dialect::Anthropic) {
                keeps_the_rules(&export);
            }
            for tool in &export.tools {
                let name = tool.get("function").unwrap_or(tool)["name"].as_str().unwrap();
                prop_assert!(names.iter().any(|original| export.name_back(name) == Some(original)));
            }
        }
    }

    #[test]
    fn any_schema_keeps_the_rules_and_loses_no_tool(
        schema in prop_oneof![parameters(), mild_parameters()],
        description in ".{0,40}",
    ) {
        let definition = with_schema("tool", &description, schema);
        for export in all_exports(std::slice::from_ref(&definition)) {
            keeps_the_rules(&export);
            prop_assert_eq!(export.tools.len(), 1);
        }
    }

    #[test]
    fn the_order_of_definitions_does_not_matter(schemas in vec(parameters(), 1..4)) {
        let mut definitions: Vec<_> = schemas
            .into_iter()
            .enumerate()
            .map(|(index, schema)| with_schema(&format!("tool_{index}"), "d", schema))
            .collect();
        let before = all_exports(&definitions);
        definitions.reverse();
        let after = all_exports(&definitions);
        for (before, after) in before.iter().zip(&after) {
            prop_assert_eq!(before.to_value().to_string(), after.to_value().to_string());
            prop_assert_eq!(&before.remarks, &after.remarks);
        }
    }

    /// A remark is made of each change of meaning: without `loosened` a model may send nothing that the tool would not
    /// take, without `tightened` it may send all that the tool takes.
    #[test]
    fn remarks_tell_the_truth(
        schema in prop_oneof![parameters(), mild_parameters()],
        sent in vec(arguments(), 16),
    ) {
        let Ok(original) = jsonschema::validator_for(&schema) else { return Ok(()) };
        let definition = with_schema("tool", "d", schema);
        for export in all_exports(std::slice::from_ref(&definition)) {
            let tool = export.tools[0].get("function").unwrap_or(&export.tools[0]);
            let strict = tool.get("strict") == Some(&json!(true));
            // Gemini's words have to be read as JSON Schema first.
            let read = import(&export.to_value()).unwrap().definitions.remove(0).parameters.to_schema();
            let exported = jsonschema::validator_for(&read)
                .map_err(|error| TestCaseError::fail(format!("{}: {error}: {read}", export.dialect)))?;
            let made = |change: Change| export.remarks.iter().any(|remark| remark.change == change);
            for sent in &sent {
                let may_be_sent = exported.is_valid(sent);
                let back = export.arguments_back("tool", sent.as_object().unwrap().clone());
                let fits = original.is_valid(&Value::Object(back));
                let told = || format!("{} {sent}\n{:#}\n{:#?}", export.dialect, export.to_value(), export.remarks);
                if !made(Change::Loosened) {
                    prop_assert!(!may_be_sent || fits, "may be sent, and does not fit: {}", told());
                }
                if made(Change::Tightened) {
                    continue;
                }
                if !strict {
                    prop_assert!(!fits || may_be_sent, "fits, and may not be sent: {}", told());
                } else if !read.to_string().contains("anyOf") && original.is_valid(sent) {
                    let sent = with_nulls(&read, sent);
                    prop_assert!(exported.is_valid(&sent), "fits, and may not be sent as {sent}: {}", told());
                }
            }
        }
    }

    #[test]
    fn what_has_no_remark_comes_back_as_it_was(
        schema in prop_oneof![parameters(), mild_parameters()],
        name in "[a-z][a-z0-9_]{0,20}",
        sent in vec(arguments(), 16),
    ) {
        let definition = with_schema(&name, "What it does", schema);
        prop_assume!(definition.check().is_empty());
        for dialect in Dialect::ALL {
            let export = export(dialect, [&definition]);
            if !export.remarks.is_empty() {
                continue;
            }
            let import = import(&export.to_value()).unwrap();
            prop_assert!(import.remarks.is_empty());
            let back = &import.definitions[0];
            prop_assert_eq!((&back.name, &back.description), (&definition.name, &definition.description));
            let (read, said) = (back.parameters.to_schema(), definition.parameters.to_schema());
            if dialect != Dialect::Gemini {
                prop_assert_eq!(&read, &said, "{}", dialect);
            }
            let (Ok(read), Ok(said)) = (jsonschema::validator_for(&read), jsonschema::validator_for(&said)) else {
                continue;
            };
            for sent in &sent {
                prop_assert_eq!(read.is_valid(sent), said.is_valid(sent), "{} {}", dialect, sent);
            }
        }
    }

    #[test]
    fn an_import_of_anything_is_an_error_or_fine(json in any_json()) {
        if let Ok(import) = import(&json) {
            for definition in &import.definitions {
                prop_assert_eq!(definition.check(), []);
            }
        }
    }

    #[test]
    fn an_import_of_anything_that_looks_like_a_tool_is_an_error_or_fine(
        tools in vec(vec((select(KEYS.to_vec()), any_json()), 0..5), 0..4)
    ) {
        let tools: Vec<Value> = tools.into_iter().map(object).collect();
        match import(&json!({"tools": tools})) {
            Ok(import) => for definition in &import.definitions {
                prop_assert_eq!(definition.check(), []);
            },
            Err(error) => prop_assert!(!error.problems.is_empty() && error.problems.len() <= 10),
        }
    }
}

const KEYS: [&str; 12] = [
    "name",
    "name",
    "title",
    "description",
    "parameters",
    "input_schema",
    "inputSchema",
    "function",
    "functionDeclarations",
    "type",
    "annotations",
    "outputSchema",
];

/// Any JSON, made of words that mean something here.
fn any_json() -> impl Strategy<Value = Value> {
    let words = select(vec![
        "type",
        "object",
        "array",
        "string",
        "null",
        "properties",
        "required",
        "items",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "#",
        "#/$defs/x",
        "$defs",
        "enum",
        "const",
        "name",
        "function",
        "description",
        "tools",
        "minimum",
        "a b",
        "天気",
        "",
        "nullable",
        "OBJECT",
        "additionalProperties",
        "prefixItems",
        "not",
        "x",
    ]);
    let leaf = prop_oneof![
        3 => words.clone().prop_map(Value::from),
        1 => any::<f64>().prop_map(|number| json!(number)),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 5, move |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..4).prop_map(Value::from),
            2 => vec((words.clone(), inner), 0..5).prop_map(object),
        ]
    })
}

/// Cases for each property; more with `PROPTEST_CASES`.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(200)
}
