use serde_json::json;

use super::*;

/// What becomes of a member under a schema.
fn coerced(schema: Value, value: Value) -> (Value, Vec<String>) {
    let schema = json!({"properties": {"x": schema}, "$defs": {
        "n": {"type": "integer"}, "tree": {"type": "object", "properties": {"n": {"type": "integer"}, "next": {"$ref": "#/$defs/tree"}}}
    }});
    let mut arguments = Map::from_iter([("x".to_owned(), value)]);
    let changed = coerce(&schema, &mut arguments);
    (arguments["x"].clone(), changed)
}

#[test]
fn scalars() {
    for (value, wanted, expected) in [
        (json!("5"), "integer", json!(5)),
        (json!("-5"), "integer", json!(-5)),
        (json!("18446744073709551615"), "integer", json!(u64::MAX)),
        (json!("1.5"), "number", json!(1.5)),
        (json!("5"), "number", json!(5)),
        (json!("true"), "boolean", json!(true)),
        (json!("false"), "boolean", json!(false)),
        (json!("null"), "null", json!(null)),
        (json!(5), "string", json!("5")),
        (json!(-5), "string", json!("-5")),
        (json!(u64::MAX), "string", json!("18446744073709551615")),
        (json!(5.0), "integer", json!(5)),
        (json!(-5.0), "integer", json!(-5)),
        (json!(1e18), "integer", json!(1_000_000_000_000_000_000u64)),
        (json!(9_223_372_036_854_775_808.0), "integer", json!(1u64 << 63)),
        (json!(-9_223_372_036_854_775_808.0), "integer", json!(i64::MIN)),
    ] {
        let found = coerced(json!({"type": wanted}), value.clone());
        assert_eq!(found, (expected, vec!["/x".to_owned()]), "{value} as {wanted}");
    }
}

#[test]
fn what_would_lose_something_or_is_right_stays() {
    for (value, wanted) in [
        (json!("5.0"), json!("integer")),
        (json!("05"), json!("integer")),
        (json!("+5"), json!("integer")),
        (json!(" 5"), json!("integer")),
        (json!("5 "), json!("integer")),
        (json!("5e0"), json!("number")),
        (json!("1.50"), json!("number")),
        (json!("-0"), json!("number")),
        (json!("0.1234567890123456789"), json!("number")),
        (json!("18446744073709551616"), json!("integer")),
        (json!("NaN"), json!("number")),
        (json!("yes"), json!("boolean")),
        (json!("True"), json!("boolean")),
        (json!("1"), json!("boolean")),
        (json!("None"), json!("null")),
        (json!(""), json!("integer")),
        (json!("5"), json!("string")),
        (json!("5"), json!(["string", "integer"])),
        (json!(1.5), json!("string")),
        (json!(5.0), json!("string")),
        (json!(true), json!("string")),
        (json!(1), json!("boolean")),
        (json!(null), json!("string")),
        (json!(5.5), json!("integer")),
        (json!(-0.0), json!("integer")),
        (json!(1e300), json!("integer")),
        (json!(5.0), json!("number")),
        (json!("a"), json!("array")),
        (json!("{\"a\":1}"), json!("array")),
        (json!("[1"), json!("array")),
        (json!("{\"a\":1,\"a\":2}"), json!("object")),
        (json!("\"5\""), json!("integer")),
        (json!([1]), json!("string")),
    ] {
        assert_eq!(
            coerced(json!({"type": wanted}), value.clone()),
            (value.clone(), vec![]),
            "{value} as {wanted}"
        );
    }
}

#[test]
fn lists_and_objects_given_as_text() {
    for (schema, value, expected, changed) in [
        (json!({"type": "array"}), json!("[1,2]"), json!([1, 2]), &["/x"][..]),
        (json!({"type": "array"}), json!(" [1, \"2\"]\n"), json!([1, "2"]), &["/x"]),
        (json!({"type": "object"}), json!("{\"a\": [null]}"), json!({"a": [null]}), &["/x"]),
        (
            json!({"type": "array", "items": {"type": "integer"}}),
            json!("[\"1\", 2]"),
            json!([1, 2]),
            &["/x", "/x/0"],
        ),
        (
            json!({"type": "array", "items": {"type": "array"}}),
            json!("[\"[1]\"]"),
            json!([[1]]),
            &["/x", "/x/0"],
        ),
        (json!({"type": ["array", "null"]}), json!("[1]"), json!([1]), &["/x"]),
        (json!({"type": ["array", "string"]}), json!("[1]"), json!("[1]"), &[]),
    ] {
        let found = coerced(schema.clone(), value.clone());
        let changed = changed.iter().map(|pointer| (*pointer).to_owned()).collect();
        assert_eq!(found, (expected, changed), "{value} as {schema}");
    }
}

#[test]
fn references_unions_and_places() {
    let tree = json!({"$ref": "#/$defs/tree"});
    for (schema, value, expected) in [
        (json!({"$ref": "#/$defs/n"}), json!("5"), json!(5)),
        (json!({"allOf": [{"$ref": "#/$defs/n"}]}), json!("5"), json!(5)),
        (json!({"type": ["integer", "null"]}), json!("5"), json!(5)),
        (json!({"type": ["integer", "null"]}), json!("null"), json!(null)),
        (json!({"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}), json!("5"), json!(5)),
        (json!({"oneOf": [{"type": "null"}, {"type": "boolean"}]}), json!("true"), json!(true)),
        (json!({"anyOf": [tree, {"type": "null"}]}), json!({"n": "5"}), json!({"n": 5})),
        (tree.clone(), json!({"next": {"next": {"n": "5"}}}), json!({"next": {"next": {"n": 5}}})),
        (json!({"anyOf": [tree, {"type": "array"}]}), json!("{\"n\": \"5\"}"), json!({"n": 5})),
        (json!({"enum": [1, 2]}), json!("1"), json!(1)),
        (json!({"enum": ["1", "2"]}), json!(1), json!("1")),
        (
            json!({"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}),
            json!(["1", 2]),
            json!([1, "2"]),
        ),
        (json!({"additionalProperties": {"type": "integer"}}), json!({"a": "1"}), json!({"a": 1})),
        // Either alternative may be meant.
        (
            json!({"anyOf": [tree, {"properties": {"n": {"type": "string"}}}]}),
            json!({"n": "5"}),
            json!({"n": "5"}),
        ),
        // Not known to hold.
        (json!({"if": {}, "then": {"type": "integer"}}), json!("5"), json!("5")),
        (json!({"not": {"type": "integer"}}), json!("5"), json!("5")),
        (
            json!({"patternProperties": {".": {}}, "additionalProperties": {"type": "integer"}}),
            json!({"a": "1"}),
            json!({"a": "1"}),
        ),
        // Nothing can be right.
        (json!({"type": "integer", "allOf": [{"type": "boolean"}]}), json!("5"), json!("5")),
        (json!({"allOf": [false]}), json!("5"), json!("5")),
        (json!({}), json!("5"), json!("5")),
        (json!(true), json!("5"), json!("5")),
    ] {
        assert_eq!(coerced(schema.clone(), value.clone()).0, expected, "{value} as {schema}");
    }
}

#[test]
fn nested_places_are_named() {
    let schema = json!({"properties": {"a/b": {"items": {"properties": {"n": {"type": "integer"}}}}}});
    let mut arguments = json!({"a/b": [{"n": 1}, {"n": "2"}]}).as_object().unwrap().clone();
    assert_eq!(coerce(&schema, &mut arguments), ["/a~1b/1/n"]);
}

/// In older drafts other words count.
#[test]
fn each_draft_in_its_own_words() {
    let seven = "http://json-schema.org/draft-07/schema#";
    let cases = [
        (json!({"$schema": seven, "properties": {"x": {"type": "integer"}}}), json!("5"), json!(5)),
        // Beside a reference nothing counts.
        (
            json!({"$schema": seven, "properties": {"x": {"$ref": "#/definitions/any", "type": "integer"}}, "definitions": {"any": {}}}),
            json!("5"),
            json!("5"),
        ),
        (
            json!({"$schema": seven, "properties": {"x": {"prefixItems": [{"type": "integer"}]}}}),
            json!(["5"]),
            json!(["5"]),
        ),
        (
            json!({"$schema": seven, "properties": {"x": {"items": [{"type": "integer"}]}}}),
            json!(["5"]),
            json!([5]),
        ),
        (
            json!({"$schema": "http://example.com/mine", "properties": {"x": {"type": "integer"}}}),
            json!("5"),
            json!("5"),
        ),
    ];
    for (schema, value, expected) in cases {
        let mut arguments = Map::from_iter([("x".to_owned(), value)]);
        coerce(&schema, &mut arguments);
        assert_eq!(arguments["x"], expected, "{schema}");
    }
}

#[test]
fn hostile_schemas_and_values_cost_little() {
    let started = std::time::Instant::now();
    // Each definition refers twice to the next.
    let defs: Map<String, Value> = (0..60)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            (format!("d{n}"), json!({"anyOf": [next, next], "allOf": [next]}))
        })
        .collect();
    let schema = json!({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs});
    let mut arguments = Map::from_iter([("x".to_owned(), json!({"a": vec!["1"; 100]}))]);
    assert!(coerce(&schema, &mut arguments).is_empty());
    let itself = json!({"properties": {"x": {"$ref": "#/properties/x", "type": "integer"}}});
    assert_eq!(coerce(&itself, &mut Map::from_iter([("x".to_owned(), json!("5"))])), ["/x"]);
    // Text in text in text: each level doubles the quotes.
    let nested = (0..12).fold(json!([]), |inner, _| json!([inner.to_string()]));
    let lists = json!({"properties": {"x": {"$ref": "#/$defs/l"}}, "$defs": {"l": {"type": "array", "items": {"$ref": "#/$defs/l"}}}});
    assert_eq!(coerce(&lists, &mut Map::from_iter([("x".to_owned(), nested)])).len(), 12);
    let long = json!({"properties": {"x": {"type": "integer"}}});
    assert!(coerce(&long, &mut Map::from_iter([("x".to_owned(), json!("9".repeat(1 << 20)))])).is_empty());
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}
