//! The rules for parameters.

use super::{FINE, definition, run};
use haft_core::Parameters;
use serde_json::{Value, json};

/// One parameter with these members, among those that are fine.
fn parameter(changes: Value) -> Value {
    let mut parameter = json!({"name": "path", "description": "Where", "type": "String"});
    for (field, value) in changes.as_object().unwrap() {
        parameter[field] = value.clone();
    }
    json!({"parameters": [{"name": "first", "description": "One", "type": "String"}, parameter]})
}

#[test]
fn declared_parameters() {
    run(&[
        ("none", json!({"parameters": []}), FINE),
        (
            "each type",
            json!({"parameters": [
                {"name": "a", "description": "", "type": "String"}, {"name": "b", "description": "", "type": "Integer"},
                {"name": "c", "description": "", "type": "Number"}, {"name": "d", "description": "", "type": "Boolean"},
                {"name": "e", "description": "", "type": "Array", "schema": {"items": {}}},
                {"name": "f", "description": "", "type": "Object", "schema": {}},
            ]}),
            FINE,
        ),
        (
            "camelCase",
            parameter(json!({"name": "maxDepth"})),
            &[("parameters[1].name", "`maxDepth`", "`max_depth`")],
        ),
        (
            "an empty name",
            parameter(json!({"name": ""})),
            &[("parameters[1].name", "not a valid name", "snake_case")],
        ),
        (
            "a long name",
            parameter(json!({"name": "x".repeat(65)})),
            &[("parameters[1].name", "not a valid name", "64")],
        ),
        ("a reserved word is no problem here", parameter(json!({"name": "run"})), FINE),
        (
            "a name twice",
            parameter(json!({"name": "first"})),
            &[("parameters[1].name", "`first` is there twice", "rename")],
        ),
        ("required", parameter(json!({"required": true})), FINE),
        (
            "required, with a default",
            parameter(json!({"required": true, "default": "x"})),
            &[("parameters[1].default", "required parameter cannot have a default", "required to false")],
        ),
        ("a default", parameter(json!({"default": "x"})), FINE),
        ("a default of null is none", parameter(json!({"required": true, "default": null})), FINE),
        (
            "a default of another type",
            parameter(json!({"default": 5})),
            &[("parameters[1].default", "5 is not of type String", "parameter's type")],
        ),
        (
            "an integer as a string",
            parameter(json!({"type": "Integer", "default": "5"})),
            &[("parameters[1].default", "\"5\" is not of type Integer", "parameter's type")],
        ),
        (
            "a fraction for an integer",
            parameter(json!({"type": "Integer", "default": 1.5})),
            &[("parameters[1].default", "1.5 is not of type Integer", "parameter's type")],
        ),
        ("an integer for a number", parameter(json!({"type": "Number", "default": 1})), FINE),
        ("the largest integers", parameter(json!({"type": "Integer", "enum": [i64::MIN, u64::MAX]})), FINE),
        (
            "a boolean as a string",
            parameter(json!({"type": "Boolean", "default": "true"})),
            &[("parameters[1].default", "not of type Boolean", "parameter's type")],
        ),
        (
            "required, and of another type",
            parameter(json!({"required": true, "default": 1})),
            &[
                ("parameters[1].default", "cannot have a default", "remove"),
                ("parameters[1].default", "not of type", "type"),
            ],
        ),
    ]);
}

#[test]
fn choices() {
    run(&[
        ("some", parameter(json!({"enum": ["a", "b"]})), FINE),
        ("none", parameter(json!({"enum": []})), &[("parameters[1].enum", "empty", "name the choices")]),
        (
            "of another type",
            parameter(json!({"enum": ["a", 1]})),
            &[("parameters[1].enum[1]", "1 is not of type String", "parameter's type")],
        ),
        (
            "null among them",
            parameter(json!({"enum": ["a", null]})),
            &[("parameters[1].enum[1]", "null is not of type String", "parameter's type")],
        ),
        (
            "all of another type",
            parameter(json!({"type": "Integer", "enum": ["1", 2.5, 3]})),
            &[
                ("parameters[1].enum[0]", "\"1\" is not of type Integer", "type"),
                ("parameters[1].enum[1]", "2.5 is not of type Integer", "type"),
            ],
        ),
        (
            "one twice",
            parameter(json!({"enum": ["a", "b", "a"]})),
            &[("parameters[1].enum[2]", "\"a\" is there twice", "remove")],
        ),
        (
            "1 and 1.0 are one",
            parameter(json!({"type": "Number", "enum": [1, 1.0]})),
            &[("parameters[1].enum[1]", "1.0 is there twice", "remove one")],
        ),
        ("with a default", parameter(json!({"enum": ["a", "b"], "default": "b"})), FINE),
        (
            "with another default",
            parameter(json!({"enum": ["a", "b"], "default": "c"})),
            &[("parameters[1].default", "\"c\" is not in enum", "one of the choices")],
        ),
        (
            "a default that is the same number",
            parameter(json!({"type": "Number", "enum": [1.0, 2.5], "default": 1})),
            FINE,
        ),
        ("lists need no schema beside it", parameter(json!({"type": "Array", "enum": [[], [1]]})), FINE),
        ("objects neither", parameter(json!({"type": "Object", "enum": [{"a": 1}]})), FINE),
    ]);
}

#[test]
fn schemas() {
    run(&[
        (
            "a list with one",
            parameter(json!({"type": "Array", "schema": {"items": {"type": "string"}}})),
            FINE,
        ),
        (
            "a list without",
            parameter(json!({"type": "Array"})),
            &[("parameters[1].schema", "type Array needs a schema", "{\"items\": {\"type\": \"string\"}}")],
        ),
        (
            "an object without",
            parameter(json!({"type": "Object"})),
            &[("parameters[1].schema", "type Object needs a schema", "\"properties\"")],
        ),
        ("a string with one", parameter(json!({"schema": {"minLength": 1}})), FINE),
        (
            "not an object",
            parameter(json!({"schema": "string"})),
            &[("parameters[1].schema", "not a JSON Schema", "object")],
        ),
        ("the same type again", parameter(json!({"schema": {"type": "string"}})), FINE),
        (
            "another type",
            parameter(json!({"schema": {"type": "integer"}})),
            &[(
                "parameters[1].schema.type",
                "\"integer\", and the parameter itself \"string\"",
                "remove it from the schema",
            )],
        ),
        (
            "another description",
            parameter(json!({"schema": {"description": "Other"}})),
            &[(
                "parameters[1].schema.description",
                "\"Other\", and the parameter itself \"Where\"",
                "say it once",
            )],
        ),
        (
            "another default",
            parameter(json!({"default": "a", "schema": {"default": "b"}})),
            &[("parameters[1].schema.default", "\"b\", and the parameter itself \"a\"", "say it once")],
        ),
        (
            "a default of its own",
            parameter(json!({"required": true, "schema": {"default": "b"}})),
            &[("parameters[1].schema.default", "the parameter itself nothing", "`default` of the parameter")],
        ),
        (
            "other choices",
            parameter(json!({"enum": ["a"], "schema": {"enum": ["b"]}})),
            &[("parameters[1].schema.enum", "[\"b\"]", "`enum` of the parameter")],
        ),
        (
            "parameters as a schema",
            json!({"parameters": {"type": "object", "properties": {"maxDepth": {}}}}),
            FINE,
        ),
        ("a schema without a type", json!({"parameters": {"properties": {}}}), FINE),
        (
            "a schema of a list",
            json!({"parameters": {"type": "array"}}),
            &[("parameters.type", "always an object", "\"type\": \"object\"")],
        ),
        (
            "a schema of several types",
            json!({"parameters": {"type": ["object", "null"]}}),
            &[("parameters.type", "always an object", "\"type\": \"object\"")],
        ),
        ("an output schema", json!({"outputSchema": {"type": "string"}}), FINE),
        ("an output schema of true", json!({"outputSchema": true}), FINE),
        (
            "an output schema that is none",
            json!({"outputSchema": "string"}),
            &[("outputSchema", "not a JSON Schema", "boolean")],
        ),
    ]);
    let mut odd = definition(&json!({}));
    odd.parameters = Parameters::Schema(json!(true));
    assert_eq!(odd.check()[0].place, "parameters", "a schema that was not read from a file");
}
