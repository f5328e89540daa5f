//! Schemas and arguments by chance.

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value, json};

pub(crate) fn names() -> impl Strategy<Value = &'static str> {
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
    let nested = leaf.clone().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((names(), inner), 0..3).prop_map(object),
        ]
    });
    prop_oneof![2 => leaf, 1 => nested]
}

pub(crate) fn arguments() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => value().prop_map(|value| json!({"a": value})),
        1 => vec((names(), value()), 0..4).prop_map(object),
    ]
}

pub(crate) fn object(members: Vec<(&str, Value)>) -> Value {
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
pub(crate) fn parameters() -> impl Strategy<Value = Value> {
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
pub(crate) fn mild_parameters() -> impl Strategy<Value = Value> {
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
    let nested = plain.clone().prop_recursive(3, 12, 3, |inner| {
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
    let nested = prop_oneof![1 => plain, 1 => nested];
    let one = nested.clone().prop_map(|schema| vec![("a", schema)]);
    let properties = prop_oneof![3 => one, 1 => vec((names(), nested), 1..3)];
    (properties, option::weighted(0.3, names()), proptest::bool::weighted(0.3)).prop_map(|(properties, required, closed)| {
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

pub(crate) const KEYS: [&str; 12] = [
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
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
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
