//! A list of parameters and its JSON Schema say the same: each gives the other, and nothing is lost on the way.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_core::{Parameter, ParameterType, Parameters};
use proptest::{collection::vec, option, prelude::*};
use serde_json::{Map, Value, json};

fn value_of(kind: ParameterType) -> BoxedStrategy<Value> {
    match kind {
        ParameterType::String => ".{0,8}".prop_map(Value::from).boxed(),
        ParameterType::Integer => any::<i64>().prop_map(Value::from).boxed(),
        // Eighths: reading any other float back takes serde_json's `float_roundtrip`, which is another matter.
        ParameterType::Number => any::<i32>().prop_map(|n| Value::from(f64::from(n) / 8.0)).boxed(),
        ParameterType::Boolean => any::<bool>().prop_map(Value::from).boxed(),
        ParameterType::Array => vec(any::<i64>(), 0..3).prop_map(|items| json!(items)).boxed(),
        ParameterType::Object => {
            ("[a-z]{1,3}", any::<bool>()).prop_map(|(key, value)| json!({key: value})).boxed()
        }
    }
}

fn kind() -> impl Strategy<Value = ParameterType> {
    use ParameterType::{Array, Boolean, Integer, Number, Object, String};
    prop_oneof![Just(String), Just(Integer), Just(Number), Just(Boolean), Just(Array), Just(Object)]
}

/// Keywords that belong to the rest: never those that a parameter says itself.
fn schema() -> impl Strategy<Value = Map<String, Value>> {
    let keyword = prop_oneof![
        (1..9u64).prop_map(|n| ("minLength", json!(n))),
        (1..9i64).prop_map(|n| ("maximum", json!(n))),
        Just((
            "items",
            json!({"type": "string", "description": "deeper ones stay", "enum": ["a"], "default": "a"})
        )),
        Just(("properties", json!({"type": {"type": "string"}, "required": {"default": null}}))),
        Just(("required", json!(["type"]))),
        Just(("title", json!("A title"))),
        Just(("x-note", json!({"any": ["thing", null]}))),
    ];
    vec(keyword, 0..3)
        .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// In the one form that a list has: an empty schema stands only where one is needed.
fn parameter() -> impl Strategy<Value = Parameter> {
    kind().prop_flat_map(|kind| {
        let choices = option::of(vec(value_of(kind), 1..4));
        ("[a-z][a-z0-9_]{0,6}", ".{0,20}", any::<bool>(), option::of(value_of(kind)), choices, schema())
            .prop_map(move |(name, description, required, default, choices, schema)| {
                let structured = matches!(kind, ParameterType::Array | ParameterType::Object);
                let schema =
                    (!schema.is_empty() || (structured && choices.is_none())).then_some(schema.into());
                Parameter { name, description, kind, required, default, choices, schema }
            })
    })
}

fn list() -> impl Strategy<Value = Vec<Parameter>> {
    vec(parameter(), 0..6).prop_map(|mut list| {
        list.sort_by(|a, b| a.name.cmp(&b.name));
        list.dedup_by(|a, b| a.name == b.name);
        list
    })
}

/// `required` is a set, and what is absent says the same as what is empty.
fn meaning(mut schema: Value) -> Value {
    let members = schema.as_object_mut().unwrap();
    members.entry("properties").or_insert(json!({}));
    let required = members.entry("required").or_insert(json!([])).as_array_mut().unwrap();
    required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    schema
}

proptest! {
    #[test]
    fn a_list_comes_back_from_its_schema(list in list()) {
        let schema = Parameters::List(list.clone()).to_schema();
        prop_assert_eq!(Parameters::Schema(schema).to_list(), Some(list));
    }

    /// Order is no part of the meaning.
    #[test]
    fn a_list_in_another_order_is_the_same_schema(list in list()) {
        let reversed: Vec<Parameter> = list.iter().rev().cloned().collect();
        let (one, other) = (Parameters::List(list).to_schema(), Parameters::List(reversed).to_schema());
        prop_assert_eq!(meaning(one), meaning(other));
    }

    #[test]
    fn a_list_comes_back_from_its_json(list in list()) {
        let text = serde_json::to_string(&Parameters::List(list.clone())).unwrap();
        prop_assert_eq!(serde_json::from_str::<Parameters>(&text).unwrap(), Parameters::List(list));
    }

    /// Schemas that a list can say, spelled in ways that a list would not choose.
    #[test]
    fn a_schema_comes_back_from_its_list(
        list in list(),
        drop_empty in any::<bool>(),
        empty_required in any::<bool>(),
    ) {
        let mut schema = Parameters::List(list).to_schema();
        let members = schema.as_object_mut().unwrap();
        if drop_empty && members["properties"] == json!({}) {
            members.remove("properties");
        }
        if empty_required {
            members.entry("required").or_insert(json!([]));
        }
        if let Some(Value::Array(names)) = members.get_mut("required") {
            names.reverse();
        }
        let back = Parameters::List(Parameters::Schema(schema.clone()).to_list().unwrap()).to_schema();
        prop_assert_eq!(meaning(back), meaning(schema));
    }

    /// Any other schema: none, or a list that says the same.
    #[test]
    fn no_list_loses_anything(list in list(), key in 0..12usize, place in 0..3usize) {
        let mut schema = Parameters::List(list).to_schema();
        let (word, value) = [
            ("type", json!(["object", "null"])), ("type", json!("array")), ("additionalProperties", json!(true)),
            ("required", json!(["not there"])), ("required", json!([1])), ("title", json!("x")), ("$defs", json!({})),
            ("$schema", json!("https://json-schema.org/draft/2020-12/schema")), ("default", json!(null)),
            ("description", json!("")), ("enum", json!("x")), ("minProperties", json!(1)),
        ][key].clone();
        let target = match place {
            0 => Some(&mut schema),
            _ => schema["properties"].as_object_mut().unwrap().values_mut().next(),
        };
        if let Some(Value::Object(target)) = target {
            target.insert(word.to_owned(), value);
        }
        if let Some(list) = Parameters::Schema(schema.clone()).to_list() {
            prop_assert_eq!(meaning(Parameters::List(list).to_schema()), meaning(schema));
        }
    }
}

#[test]
fn schemas_that_say_more_than_a_list_give_none() {
    let closed = |properties: Value| json!({"type": "object", "properties": properties, "additionalProperties": false});
    for (why, schema) in [
        ("a boolean", json!(true)),
        ("no type", json!({"properties": {}, "additionalProperties": false})),
        ("several types", json!({"type": ["object", "null"], "additionalProperties": false})),
        ("open to other members", json!({"type": "object", "properties": {}})),
        ("other members of a kind", json!({"type": "object", "additionalProperties": {"type": "string"}})),
        ("a title", json!({"type": "object", "additionalProperties": false, "title": "T"})),
        ("a draft", json!({"type": "object", "additionalProperties": false, "$schema": "x"})),
        ("definitions", json!({"type": "object", "additionalProperties": false, "$defs": {}})),
        ("at least one", json!({"type": "object", "additionalProperties": false, "minProperties": 1})),
        ("a union", json!({"type": "object", "additionalProperties": false, "anyOf": [{"required": ["a"]}]})),
        (
            "requires what it does not name",
            json!({"type": "object", "additionalProperties": false, "required": ["a"]}),
        ),
        ("a parameter of any kind", closed(json!({"a": {}}))),
        ("a parameter that is true", closed(json!({"a": true}))),
        ("a parameter of several types", closed(json!({"a": {"type": ["string", "null"]}}))),
        ("a parameter that is null", closed(json!({"a": {"type": "null"}}))),
        ("a reference", closed(json!({"a": {"$ref": "#/$defs/a"}}))),
        ("a default of null", closed(json!({"a": {"type": "string", "default": null}}))),
        ("an empty description", closed(json!({"a": {"type": "string", "description": ""}}))),
        ("a description that is no text", closed(json!({"a": {"type": "string", "description": 1}}))),
        ("an enum that is no list", closed(json!({"a": {"type": "string", "enum": "x"}}))),
    ] {
        assert_eq!(Parameters::Schema(schema.clone()).to_list(), None, "{why}: {schema}");
    }
    assert_eq!(Parameters::Schema(closed(json!({}))).to_list(), Some(vec![]));
}

#[test]
fn a_schema_that_repeats_the_parameter_changes_nothing() {
    let list: Parameters = serde_json::from_value(json!([{
        "name": "tags", "description": "Some", "type": "Array",
        "schema": {"type": "array", "description": "Some", "items": {"type": "string"}}
    }]))
    .unwrap();
    let back = Parameters::Schema(list.to_schema()).to_list().unwrap();
    assert_eq!(back[0].schema, Some(json!({"items": {"type": "string"}})), "said once");
    assert_eq!(Parameters::List(back).to_schema(), list.to_schema());
}
