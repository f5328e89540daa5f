use serde_json::{Map, json};

use super::*;

fn steps_and_chain(schema: &Value) -> (u64, usize) {
    let shape = measure(schema, []).expect("measurable");
    (shape.steps, shape.chain)
}

#[test]
fn only_what_applies_to_the_same_value_adds_up() {
    for (schema, expected) in [
        (json!(true), (1, 1)),
        (json!({}), (1, 1)),
        (json!({"properties": {"a": {}, "b": {"items": {}}}}), (1, 1)),
        (json!({"allOf": [{}, {}], "anyOf": [{"not": {}}]}), (5, 3)),
        (json!({"if": {}, "then": {}, "else": {}}), (4, 2)),
        (json!({"dependentSchemas": {"a": {}, "b": {}}}), (3, 2)),
        // A reference below a property is about another value.
        (json!({"properties": {"a": {"$ref": "#"}}}), (2, 2)),
        (json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#b"}, "b": {"$anchor": "b"}}}), (3, 3)),
        // Data is not schema.
        (json!({"const": {"allOf": [{}, {}]}, "enum": [{"$ref": "nowhere"}]}), (1, 1)),
        (
            json!({"items": {"const": {"$ref": "nowhere"}}, "properties": {"not": {"enum": [{"$ref": "nowhere"}]}}}),
            (1, 1),
        ),
        // What was looked at is found out by looking again.
        (json!({"allOf": [{}, {}], "unevaluatedProperties": false}), (3 + 9, 2)),
    ] {
        assert_eq!(steps_and_chain(&schema), expected, "{schema}");
    }
}

#[test]
fn references_are_followed_as_a_validator_does() {
    for schema in [
        json!({"$ref": "#/$defs/a~1b%25c", "$defs": {"a/b%c": {"type": "null"}}}),
        json!({"$id": "https://example.com/root.json", "$ref": "sub.json",
               "$defs": {"s": {"$id": "sub.json", "type": "null"}}}),
        json!({"$id": "https://example.com/root.json", "$ref": "https://example.com/root.json#/$defs/a",
               "$defs": {"a": {}}}),
        json!({"$ref": "urn:example:a", "$defs": {"s": {"$id": "urn:example:a"}}}),
        json!({"$dynamicRef": "#node", "$defs": {"s": {"$dynamicAnchor": "node"}}}),
        json!({"allOf": [{}], "items": {"$ref": "#/allOf/0"}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#old", "definitions": {"a": {"$id": "#old"}}}),
        // Only draft 4 has `id`.
        json!({"$defs": {"n": {}}, "properties": {"a": {"id": "Note", "properties": {"b": {"$ref": "#/$defs/n"}}}}}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://example.com/root.json",
               "definitions": {"s": {"id": "s.json", "definitions": {"n": {}}, "items": {"$ref": "#/definitions/n"}}},
               "items": {"$ref": "s.json#/definitions/n"}}),
        // Beside a `$ref`, drafts up to 7 have no `$id`.
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"n": {}},
               "items": {"$id": "http://example.com/x.json", "$ref": "#/definitions/n"}}),
    ] {
        assert_eq!(steps_and_chain(&schema), (2, 2), "{schema}");
    }
    assert_eq!(steps_and_chain(&json!({"$ref": "https://json-schema.org/draft/2020-12/schema"})), (1, 1));
}

#[test]
fn a_way_back_to_the_same_value_is_found() {
    for (schema, pointer) in [
        (json!({"$ref": "#"}), ""),
        (json!({"allOf": [{"$ref": "#"}]}), ""),
        (json!({"not": {"anyOf": [{"$ref": "#/not"}]}}), "/not"),
        (
            json!({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            "/$defs/a",
        ),
        (json!({"$dynamicAnchor": "x", "allOf": [{"$dynamicRef": "#x"}]}), ""),
        (json!({"$recursiveAnchor": true, "allOf": [{"$recursiveRef": "#"}]}), ""),
    ] {
        assert_eq!(
            measure(&schema, []),
            Err(Unmeasured::Endless { pointer: pointer.to_owned() }),
            "{schema}"
        );
    }
}

#[test]
fn what_leads_nowhere_is_named() {
    for (schema, pointer, other_document) in [
        (json!({"$ref": "#/nothing"}), "/$ref", false),
        (json!({"items": {"$ref": "#nothing"}}), "/items/$ref", false),
        (json!({"anyOf": [{}, {"$ref": "other.json"}]}), "/anyOf/1/$ref", true),
        (json!({"$id": "https://example.com/a", "$ref": "b#/c"}), "/$ref", true),
    ] {
        let found = measure(&schema, []);
        assert!(
            matches!(&found, Err(Unmeasured::Nowhere { pointer: at, other_document: other, .. })
                if at == pointer && *other == other_document),
            "{schema}: {found:?}"
        );
    }
}

#[test]
fn large_numbers_do_not_overflow() {
    let mut defs = Map::new();
    for level in 0..200 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(format!("d{level}"), json!({"allOf": [next, next], "unevaluatedItems": false}));
    }
    defs.insert("d200".to_owned(), json!({}));
    let (steps, chain) = steps_and_chain(&json!({"$ref": "#/$defs/d0", "$defs": defs}));
    assert_eq!((steps, chain), (u64::MAX, 402));
}

#[test]
fn many_dynamic_references_to_many_anchors_are_too_many() {
    let anchors: Map<String, Value> =
        (0..1000).map(|number| (format!("a{number}"), json!({"$dynamicAnchor": "x"}))).collect();
    let schema = json!({"allOf": vec![json!({"$dynamicRef": "#x"}); 1000], "$defs": anchors});
    assert_eq!(measure(&schema, []), Err(Unmeasured::TooMany));
}
