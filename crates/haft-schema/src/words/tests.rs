use serde_json::json;

use super::*;
use crate::Checker;
use haft_core::suggest::nearest;

/// The problems of `value`, as `pointer [rule] message | hint`, with `key` where the key is meant.
fn problems(schema: &Value, value: &Value) -> Vec<String> {
    let checked = Checker::new(schema).expect("a schema").check(value).expect("within bounds");
    assert_eq!(checked.total, checked.problems.len());
    let line = |problem: &SchemaProblem| {
        let SchemaProblem { pointer, place, rule, message, hint, .. } = problem;
        let key = if *place == Place::Key { " key" } else { "" };
        let hint = hint.as_deref().map_or(String::new(), |hint| format!(" | {hint}"));
        format!("{pointer} [{rule}{key}] {message}{hint}")
    };
    checked.problems.iter().map(line).collect()
}

#[test]
fn words_for_each_keyword() {
    let table: &[(Value, Value, &[&str])] = &[
        // Types.
        (
            json!({"type": "integer"}),
            json!("12"),
            &[" [type] expected an integer, got the string \"12\" | write 12 without quotes"],
        ),
        (json!({"type": "integer"}), json!("1.5"), &[" [type] expected an integer, got the string \"1.5\""]),
        (
            json!({"type": "integer"}),
            json!(1.5),
            &[" [type] expected an integer, got the number 1.5 | write it without a fraction"],
        ),
        (
            json!({"type": ["null", "string"]}),
            json!(12),
            &[" [type] expected a string or null, got the number 12 | put it in quotes: \"12\""],
        ),
        (json!({"type": "string"}), json!(null), &[" [type] expected a string, got null"]),
        (
            json!({"type": "number"}),
            json!({"a": 1, "b": 2}),
            &[" [type] expected a number, got an object with \"a\", \"b\""],
        ),
        (json!({"type": "object"}), json!([1, 2]), &[" [type] expected an object, got an array of 2 items"]),
        (json!({"type": "object"}), json!([]), &[" [type] expected an object, got an empty array"]),
        (
            json!({"type": "object"}),
            json!("{\"a\": 1}"),
            &[" [type] expected an object, got the string \"{\\\"a\\\": 1}\" | \
               write the object itself, not a string with JSON in it"],
        ),
        (
            json!({"type": "array"}),
            json!(1),
            &[" [type] expected an array, got the number 1 | put it in an array: [ … ]"],
        ),
        (
            json!({"type": "boolean"}),
            json!("true"),
            &[" [type] expected a boolean, got the string \"true\" | write true without quotes"],
        ),
        // Properties.
        (
            json!({"properties": {"name": {}, "age": {}}, "required": ["name"]}),
            json!({"nmae": 1, "age": 2}),
            &[" [required] missing required property \"name\" | rename \"nmae\" to \"name\""],
        ),
        (json!({"required": ["a", "b"]}), json!({"b": 1}), &[" [required] missing required property \"a\""]),
        (
            json!({"dependentRequired": {"card": ["address"]}}),
            json!({"card": 1}),
            &[" [dependentRequired] missing property \"address\", required as \"card\" is there"],
        ),
        (
            json!({"properties": {"color": {}, "size": {}}, "additionalProperties": false}),
            json!({"colour": 1, "weight": 2, "a/b": 3}),
            &[
                "/a~1b [additionalProperties key] \"a/b\" is not a known property; expected one of \"color\", \"size\"",
                "/colour [additionalProperties key] \"colour\" is not a known property; did you mean \"color\"?",
                "/weight [additionalProperties key] \"weight\" is not a known property; expected one of \"color\", \"size\"",
            ],
        ),
        (
            json!({"additionalProperties": false}),
            json!({"a": 1, "b": 2}),
            &[
                "/a [additionalProperties key] \"a\" is not a known property",
                "/b [additionalProperties key] \"b\" is not a known property",
            ],
        ),
        (
            json!({"properties": {"color": {}}, "unevaluatedProperties": false}),
            json!({"colour": 1}),
            &[
                "/colour [unevaluatedProperties key] \"colour\" is not a known property; did you mean \"color\"?",
            ],
        ),
        (
            json!({"properties": {"x": false}}),
            json!({"x": 2}),
            &["/x [properties] the property \"x\" is not allowed here"],
        ),
        (json!({"minProperties": 1}), json!({}), &[" [minProperties] expected at least 1 property, got 0"]),
        (
            json!({"maxProperties": 0}),
            json!({"a": 1}),
            &[" [maxProperties] expected at most 0 properties, got 1"],
        ),
        (
            json!({"propertyNames": {"pattern": "^[a-z]+$"}}),
            json!({"Foo": 1}),
            &["/Foo [propertyNames key] \"Foo\" is not allowed as the name of a property: \
               expected a string that matches the pattern `^[a-z]+$`, got \"Foo\""],
        ),
        (
            json!({"propertyNames": false}),
            json!({"Foo": 1}),
            &[" [propertyNames] expected an empty object, got an object with \"Foo\""],
        ),
        // Values.
        (json!({"enum": ["a", "b"]}), json!("c"), &[" [enum] expected one of \"a\", \"b\", got \"c\""]),
        (
            json!({"enum": ["low", "high"]}),
            json!("High"),
            &[" [enum] expected one of \"low\", \"high\", got \"High\" | did you mean \"high\"?"],
        ),
        (json!({"enum": [1, 2]}), json!("1"), &[" [enum] expected one of 1, 2, got \"1\" | did you mean 1?"]),
        (json!({"enum": ["only"]}), json!(1), &[" [enum] expected \"only\", got 1"]),
        (json!({"const": {"a": 1}}), json!("c"), &[" [const] expected {\"a\":1}, got \"c\""]),
        (json!({"minimum": 1}), json!(0), &[" [minimum] expected at least 1, got 0"]),
        (json!({"maximum": 1.5}), json!(2), &[" [maximum] expected at most 1.5, got 2"]),
        (json!({"exclusiveMinimum": 0}), json!(0), &[" [exclusiveMinimum] expected more than 0, got 0"]),
        (json!({"exclusiveMaximum": 10}), json!(10), &[" [exclusiveMaximum] expected less than 10, got 10"]),
        (json!({"multipleOf": 5}), json!(7), &[" [multipleOf] expected a multiple of 5, got 7"]),
        (json!({"multipleOf": 0.5}), json!(0.7), &[" [multipleOf] expected a multiple of 0.5, got 0.7"]),
        (
            json!({"minLength": 3}),
            json!("äb"),
            &[" [minLength] expected a string of at least 3 characters, got 2 in \"äb\""],
        ),
        (
            json!({"maxLength": 1}),
            json!("ab"),
            &[" [maxLength] expected a string of at most 1 character, got 2 in \"ab\""],
        ),
        (
            json!({"pattern": "^a+$"}),
            json!("b"),
            &[" [pattern] expected a string that matches the pattern `^a+$`, got \"b\""],
        ),
        (
            json!({"pattern": "^(?!x)"}),
            json!("xy"),
            &[" [pattern] expected a string that matches the pattern `^(?!x)`, got \"xy\""],
        ),
        (
            json!({"not": {"type": "string"}}),
            json!("x"),
            &[" [not] expected a value that does not match {\"type\":\"string\"}, got the string \"x\""],
        ),
        (json!(false), json!(1), &[" [false] no value is allowed here, got the number 1"]),
        // Items.
        (json!({"minItems": 1}), json!([]), &[" [minItems] expected at least 1 item, got 0"]),
        (json!({"maxItems": 1}), json!([1, 2]), &[" [maxItems] expected at most 1 item, got 2"]),
        (
            json!({"uniqueItems": true}),
            json!([1, "a", 1.0]),
            &[" [uniqueItems] expected items that differ from each other, got 1.0 twice, as items 0 and 2"],
        ),
        (
            json!({"contains": {"type": "string"}}),
            json!([1]),
            &[" [contains] expected an item that matches `contains`, got none"],
        ),
        (
            json!({"contains": {"type": "string"}, "minContains": 2}),
            json!([1, "a"]),
            &[" [minContains] expected at least 2 items to match `contains`, got fewer"],
        ),
        (
            json!({"contains": {"type": "string"}, "maxContains": 1}),
            json!(["b", "a"]),
            &[" [maxContains] expected at most 1 item to match `contains`, got more"],
        ),
        (
            json!({"prefixItems": [{}], "items": false}),
            json!([1, 2]),
            &["/1 [items] no item is allowed here, got the number 2"],
        ),
        (
            json!({"prefixItems": [{}], "unevaluatedItems": false}),
            json!([1, 2, 3]),
            &[" [unevaluatedItems] expected no other items, got 2 more"],
        ),
        // Unions.
        (
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
            json!(true),
            &[" [anyOf] expected a string or an integer, got the boolean true"],
        ),
        (
            json!({"oneOf": [{"type": "null"}, {"enum": ["a", "b"]}]}),
            json!("c"),
            &[" [oneOf] expected null or one of \"a\", \"b\", got the string \"c\""],
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "object", "required": ["x", "y"]}]}),
            json!({"z": 1}),
            &[" [anyOf] matches none of the 2 alternatives of `anyOf`; the closest is number 2: \
               missing required property \"x\" (and 1 more)"],
        ),
        (
            json!({"oneOf": [
                {"properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}},
                {"properties": {"kind": {"const": "b"}, "n": {"type": "integer"}, "m": {"type": "integer"}}},
            ]}),
            json!({"kind": "b", "n": 1, "m": "1"}),
            &[" [oneOf] matches none of the 2 alternatives of `oneOf`; the closest is number 2: \
               /m: expected an integer, got the string \"1\" | write 1 without quotes"],
        ),
        (
            json!({"oneOf": [{"type": "integer"}, {"minimum": 2}, {"type": "string"}]}),
            json!(3),
            &[
                " [oneOf] matches 2 of the 3 alternatives of `oneOf` (numbers 1 and 2), but has to match exactly one",
            ],
        ),
        // Through references and conditions, each once.
        (
            json!({"allOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}], "$defs": {"n": {"type": "null"}}}),
            json!(1),
            &[" [type] expected null, got the number 1"],
        ),
        (
            json!({"if": {"type": "string"}, "then": {"minLength": 2}}),
            json!("a"),
            &[" [minLength] expected a string of at least 2 characters, got 1 in \"a\""],
        ),
        (
            json!({"properties": {"a": {"$ref": "#/$defs/c"}},
                   "$defs": {"c": {"properties": {"color": {}}, "additionalProperties": false}}}),
            json!({"a": {"colr": 1}}),
            &["/a/colr [additionalProperties key] \"colr\" is not a known property; did you mean \"color\"?"],
        ),
        // Older drafts.
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{}], "additionalItems": false}),
            json!([1, 2]),
            &["/1 [items] no item is allowed here, got the number 2"],
        ),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "format": "ipv4"}),
            json!("x"),
            &[" [format] expected a string in the format \"ipv4\", got \"x\""],
        ),
        // From 2020-12 on, `format` is a note.
        (json!({"format": "ipv4"}), json!("x"), &[]),
    ];
    for (schema, value, expected) in table {
        assert_eq!(problems(schema, value), *expected, "schema: {schema}, value: {value}");
    }
}

#[test]
fn without_schema_and_content_the_words_are_nearly_the_same() {
    let schema = json!({"properties": {"color": {}}, "additionalProperties": false});
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let message = |value: Value| {
        let first = validator.iter_errors(&value).next().expect("a problem");
        describe(&first).to_string()
    };
    assert_eq!(message(json!({"colour": 1})), "/colour: \"colour\" is not a known property");
    assert_eq!(message(json!({"a": 1, "b": 2})), "\"a\", \"b\" are not known properties");
}

#[test]
fn long_values_and_lists_are_cut() {
    let long = "x".repeat(1000);
    let found = problems(&json!({"const": long}), &json!(vec![long.clone(); 5]));
    let shown = format!("\"{}…", "x".repeat(78));
    assert_eq!(found, [format!(" [const] expected {shown}, got [\"{}…", "x".repeat(77))]);
    let options: Vec<String> = (0..1000).map(|number| format!("option {number}")).collect();
    let found = problems(&json!({"enum": options}), &json!("zzz"));
    assert!(found[0].contains(" and 981 more, got \"zzz\""), "{found:?}");
    assert!(found[0].chars().count() < 330, "{found:?}");
}

#[test]
fn nested_unions_are_followed_only_so_far() {
    let schema = json!({"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#", "minProperties": 2}]}}});
    let value = (0..8).fold(json!(1), |value, _| json!({"a": value}));
    let found = problems(&schema, &value);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].matches("the closest is").count(), 3, "{found:?}");
}

#[test]
fn names_that_are_near() {
    let known = ["path", "max_results", "recursive", "include_hidden"];
    for (name, near) in [
        ("paht", Some("path")),
        ("Path", Some("path")),
        ("maxResults", Some("max_results")),
        ("recursiv", Some("recursive")),
        ("includeHiden", Some("include_hidden")),
        ("x", None),
        ("", None),
        ("file", None),
    ] {
        assert_eq!(nearest(name, known), near, "{name}");
    }
}
