//! What a model reads when it got the arguments wrong: the pointer, what was expected, what was there, and what to do.
//! A changed snapshot is a changed message.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_schema::{ArgumentSchema, Coercion, Schema};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// A tool that edits and searches files: every usual kind of parameter.
fn tool() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "Where"},
            "pattern": {"type": "string", "pattern": "^[a-z*.]+$", "maxLength": 20},
            "encoding": {"type": "string", "enum": ["utf-8", "ascii", "utf-16"], "default": "utf-8"},
            "max_results": {"type": "integer", "minimum": 1, "maximum": 100},
            "ratio": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "step": {"type": "integer", "multipleOf": 5},
            "recursive": {"type": "boolean"},
            "limit": {"type": ["integer", "null"]},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3, "uniqueItems": true},
            "range": {
                "type": "object",
                "properties": {"start": {"type": "integer"}, "end": {"type": "integer"}},
                "required": ["start"],
                "additionalProperties": false,
            },
            "edits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"old": {"type": "string"}, "new": {"type": "string"}},
                    "required": ["old", "new"],
                    "additionalProperties": false,
                },
            },
            "target": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "action": {"oneOf": [
                {"properties": {"kind": {"const": "move"}, "to": {"type": "string"}}, "required": ["kind", "to"]},
                {"properties": {"kind": {"const": "delete"}, "force": {"type": "boolean"}}, "required": ["kind"]},
            ]},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["path"],
        "additionalProperties": false,
        "dependentRequired": {"step": ["max_results"]},
    })
}

/// Name of the mistake, and the arguments.
fn mistakes() -> Vec<(&'static str, Value)> {
    vec![
        ("a required argument is missing", json!({})),
        ("its name is misspelt", json!({"pth": "a.txt"})),
        ("its name is in another case", json!({"Path": "a.txt"})),
        ("an argument that the tool does not have", json!({"path": "a", "colour": "red"})),
        ("camelCase instead of snake_case", json!({"path": "a", "maxResults": 5})),
        ("a number in quotes", json!({"path": "a", "max_results": "5"})),
        ("a number as a word", json!({"path": "a", "max_results": "five"})),
        ("a fraction", json!({"path": "a", "max_results": 2.5})),
        ("below the minimum", json!({"path": "a", "max_results": 0})),
        ("above the maximum", json!({"path": "a", "max_results": 1000})),
        ("on the edge that does not count", json!({"path": "a", "ratio": 1})),
        ("not a multiple", json!({"path": "a", "max_results": 5, "step": 7})),
        ("without what belongs to it", json!({"path": "a", "step": 5})),
        ("a boolean in quotes", json!({"path": "a", "recursive": "true"})),
        ("a boolean as a number", json!({"path": "a", "recursive": 1})),
        ("null for what must be there", json!({"path": null})),
        ("null for what may be absent", json!({"path": "a", "max_results": null})),
        ("a boolean as a word", json!({"path": "a", "recursive": "Yes"})),
        ("a string that is empty", json!({"path": ""})),
        ("a choice that is not there", json!({"path": "a", "encoding": "latin-1"})),
        ("a choice that is misspelt", json!({"path": "a", "encoding": "utf8"})),
        ("a text that does not match", json!({"path": "a", "pattern": "*.RS"})),
        ("a text that is too long", json!({"path": "a", "pattern": "a".repeat(21)})),
        ("one thing instead of a list", json!({"path": "a", "tags": "red"})),
        ("a list as text", json!({"path": "a", "tags": "[\"red\"]"})),
        ("an empty list", json!({"path": "a", "tags": []})),
        ("too long a list", json!({"path": "a", "tags": ["a", "b", "c", "d"]})),
        ("the same twice", json!({"path": "a", "tags": ["a", "a"]})),
        ("something else in a list", json!({"path": "a", "tags": ["a", 5]})),
        ("an object as text", json!({"path": "a", "range": "{\"start\": 1}"})),
        ("a list instead of an object", json!({"path": "a", "range": [1, 2]})),
        ("an object that lacks something", json!({"path": "a", "range": {"end": 2}})),
        ("an object with something more", json!({"path": "a", "range": {"start": 1, "stop": 2}})),
        ("deep inside", json!({"path": "a", "edits": [{"old": "x", "new": "y"}, {"old": "x", "with": "y"}]})),
        ("neither of two types", json!({"path": "a", "target": 5})),
        ("or nothing, but not this", json!({"path": "a", "limit": "none"})),
        ("an alternative that lacks something", json!({"path": "a", "action": {"kind": "move"}})),
        ("an alternative that is not there", json!({"path": "a", "action": {"kind": "copy", "to": "b"}})),
        ("a map with another type", json!({"path": "a", "headers": {"x-count": 5}})),
        ("the arguments inside of another object", json!({"arguments": {"path": "a"}})),
        ("a path as a list", json!({"path": ["a.txt"]})),
        ("a very long value", json!({"path": {"content": "x".repeat(10_000)}})),
        ("several mistakes", json!({"pth": "a", "max_results": "5", "recursive": "yes"})),
        (
            "more mistakes than are named",
            json!({"max_results": 0, "ratio": 2, "step": 1, "recursive": 0, "limit": "x", "tags": 5, "encoding": 1}),
        ),
    ]
}

#[test]
fn what_a_model_reads() {
    let schema = ArgumentSchema::compile(&tool()).unwrap();
    let mut all = String::new();
    for (name, arguments) in mistakes() {
        let given = arguments.as_object().unwrap().clone();
        let unfit = schema.check(given, Coercion::Off).expect_err(name);
        let shown: String = arguments.to_string().chars().take(110).collect();
        writeln!(all, "# {name}\n{shown}\n{}", unfit.sentence).unwrap();
        for problem in &unfit.problems {
            writeln!(
                all,
                "  {} [{}]",
                if problem.pointer.is_empty() { "/" } else { &problem.pointer },
                problem.rule
            )
            .unwrap();
        }
        all.push('\n');
        assert!(unfit.sentence.len() < 1500, "{name}: {}", unfit.sentence.len());
        assert!((1..=5).contains(&unfit.problems.len()), "{name}");
    }
    insta::assert_snapshot!("what_a_model_reads", all);
}

#[test]
fn at_most_five_problems_are_named_and_the_rest_counted() {
    let schema = Schema::compile(&json!({"items": {"type": "integer"}})).unwrap();
    for (wrong, named, more) in
        [(1, 1, None), (5, 5, None), (6, 5, Some("; and 1 more")), (5000, 5, Some("; and 4995 more"))]
    {
        let (sentence, problems) = schema.explain(&json!(vec!["x"; wrong]));
        assert_eq!(problems.len(), named);
        assert_eq!(sentence.matches("expected an integer").count(), named);
        match more {
            Some(more) => assert!(sentence.ends_with(more), "{sentence}"),
            None => assert!(!sentence.contains("more"), "{sentence}"),
        }
    }
    assert_eq!(schema.explain(&json!([])), (String::new(), Vec::new()));
}

/// With documents, words are taken from the document that the broken rule is in.
#[test]
fn words_from_another_document() {
    let mut options = haft_schema::Options::default();
    let person = json!({"properties": {"surname": {}, "age": {}}, "additionalProperties": false});
    options.documents.add("https://example.com/person.json", person).unwrap();
    // The same place in the schema itself has other names.
    let schema = json!({
        "properties": {"person": {"$ref": "https://example.com/person.json"}, "surnames": {}},
        "additionalProperties": false,
    });
    let schema = Schema::compile_with(&schema, &options).unwrap();
    let (sentence, _) = schema.explain(&json!({"person": {"surnam": 1}}));
    assert_eq!(sentence, "/person/surnam: \"surnam\" is not a known property; did you mean \"surname\"?");
}

#[test]
fn nothing_is_wrong_with_what_fits() {
    let schema = ArgumentSchema::compile(&tool()).unwrap();
    let fine = json!({"path": "a", "tags": ["a"], "range": {"start": 1}, "limit": null, "action": {"kind": "delete"}});
    let fitting = schema.check(fine.as_object().unwrap().clone(), Coercion::Lossless).unwrap();
    assert_eq!((fitting.coerced.len(), &fitting.arguments["encoding"]), (0, &json!("utf-8")));
    assert!(schema.check(Map::new(), Coercion::Lossless).is_err());
}
