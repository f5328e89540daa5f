#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use serde_json::json;

fn address(draft: Draft) -> &'static str {
    match draft {
        Draft::Four => "http://json-schema.org/draft-04/schema#",
        Draft::Six => "http://json-schema.org/draft-06/schema#",
        Draft::Seven => "http://json-schema.org/draft-07/schema#",
        Draft::Nineteen => "https://json-schema.org/draft/2019-09/schema",
        Draft::Newest => OURS,
    }
}

fn named(draft: Draft, mut schema: Value) -> Value {
    schema["$schema"] = address(draft).into();
    schema
}

#[test]
fn each_old_keyword_has_its_new_words() {
    for (draft, old, new) in [
        (Draft::Four, json!({"maximum": 3, "exclusiveMaximum": true}), json!({"exclusiveMaximum": 3})),
        (Draft::Four, json!({"maximum": 3, "exclusiveMaximum": false}), json!({"maximum": 3})),
        (Draft::Four, json!({"id": "http://a/b#"}), json!({"$id": "http://a/b"})),
        (Draft::Four, json!({"const": 1, "$id": "http://a/b"}), json!({})),
        (Draft::Six, json!({"if": true, "contains": {}}), json!({"contains": {}})),
        (
            Draft::Seven,
            json!({"format": "uuid", "not": {"format": "ipv4"}}),
            json!({"not": {"format": "ipv4"}}),
        ),
        (Draft::Seven, json!({"items": {}, "additionalItems": false}), json!({"items": {}})),
        (
            Draft::Seven,
            json!({"items": [{}], "additionalItems": false}),
            json!({"prefixItems": [{}], "items": false}),
        ),
        (Draft::Seven, json!({"additionalItems": false, "prefixItems": [{}]}), json!({})),
        (
            Draft::Seven,
            json!({"dependencies": {"a": ["b"], "c": {"items": []}}}),
            json!({"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {}}}),
        ),
        (
            Draft::Seven,
            json!({"$ref": "#/definitions/a%25b/items/0", "type": "null", "definitions": {"a%b": {"items": [{}]}}}),
            json!({"$ref": "#/$defs/a%25b/prefixItems/0", "$defs": {"a%b": {"prefixItems": [{}]}}}),
        ),
        (
            Draft::Seven,
            json!({"definitions": {"a": {"$id": "#x"}}, "not": {"$ref": "#x"}}),
            json!({"$defs": {"a": {"$anchor": "x"}}, "not": {"$ref": "#x"}}),
        ),
        // Names and values that look like keywords, and a place that only a reference makes a schema.
        (
            Draft::Seven,
            json!({"properties": {"definitions": {"enum": [{"definitions": {}}]}}, "definitions": {}}),
            json!({"properties": {"definitions": {"enum": [{"definitions": {}}]}}}),
        ),
        (
            Draft::Seven,
            json!({"not": {"$ref": "#/x-parts/a"}, "x-parts": {"a": {"items": [{}]}, "b": {"items": [{}]}}}),
            json!({"not": {"$ref": "#/x-parts/a"}, "x-parts": {"a": {"prefixItems": [{}]}, "b": {"items": [{}]}}}),
        ),
        (
            Draft::Nineteen,
            json!({"$recursiveAnchor": true, "items": {"$recursiveRef": "#"}}),
            json!({"$dynamicAnchor": "haft-recursive", "items": {"$dynamicRef": "#haft-recursive"}}),
        ),
        (
            Draft::Nineteen,
            json!({"items": {"$recursiveRef": "#", "allOf": [{}]}}),
            json!({"items": {"allOf": [{}, {"$ref": "#"}]}}),
        ),
    ] {
        let source = named(draft, old);
        let converted = to_2020_12(&source).unwrap();
        assert_eq!(converted.draft, draft);
        assert_eq!(*converted.schema, named(Draft::Newest, new), "{source}");
    }
}

#[test]
fn what_cannot_be_said_in_2020_12_is_refused_with_its_place() {
    for (schema, pointer, part) in [
        (
            json!({"$schema": "http://json-schema.org/draft-03/schema#"}),
            "/$schema",
            "write the schema in 2020-12",
        ),
        (json!({"$schema": "https://json-schema.org/draft/next/schema"}), "/$schema", "2020-12"),
        (named(Draft::Four, json!({"exclusiveMinimum": 1})), "/exclusiveMinimum", "true or false"),
        (named(Draft::Four, json!({"exclusiveMinimum": true})), "/exclusiveMinimum", "beside `minimum`"),
        (named(Draft::Seven, json!({"not": {"$id": "#a b"}})), "/not/$id", "choose another name"),
        (
            named(Draft::Seven, json!({"$defs": {"a": {}}, "definitions": {"a": {}}})),
            "/definitions",
            "rename one of them",
        ),
        (
            named(Draft::Seven, json!({"not": {"$id": "http://a/b"}, "if": {"$ref": "#/x"}, "x": {}})),
            "/if/$ref",
            "move it to `definitions`",
        ),
        (
            named(Draft::Nineteen, json!({"contains": {}, "unevaluatedItems": false})),
            "/contains",
            "write the schema in 2020-12",
        ),
        (
            named(Draft::Seven, json!({"not": {"$ref": "#/enum/0"}, "enum": [{"items": [{}]}]})),
            "/enum",
            "move what it refers to",
        ),
        (named(Draft::Seven, json!({"not": {"$ref": address(Draft::Seven)}})), "/not/$ref", "refer to"),
        (json!({"items": {"$schema": address(Draft::Seven)}}), "/items/$schema", "expected one draft"),
    ] {
        let refused = to_2020_12(&schema).unwrap_err();
        assert_eq!(refused.pointer, pointer, "{schema}");
        assert!(refused.message.contains(part), "{schema}: {}", refused.message);
        let error = crate::Schema::compile(&schema).unwrap_err();
        assert_eq!((error.pointer, error.message), (refused.pointer, refused.message));
    }
}

#[test]
fn problems_are_told_where_the_author_wrote_them() {
    let schema = named(Draft::Seven, json!({"definitions": {"a": {"items": [{"type": "text"}]}}}));
    let error = crate::Schema::compile(&schema).unwrap_err();
    assert_eq!(error.pointer, "/definitions/a/items/0/type");
    let schema = named(Draft::Seven, json!({"definitions": {"a": {"type": "string", "default": 1}}}));
    assert_eq!(crate::check_defaults(&schema)[0].0, "/definitions/a/default");
}

#[test]
fn a_schema_in_2020_12_stays_as_it_is() {
    for schema in [json!({"items": [{}]}), json!(true), named(Draft::Newest, json!({"definitions": {}}))] {
        assert_eq!(*to_2020_12(&schema).unwrap().schema, schema);
    }
}

#[test]
fn formats_are_checked_as_in_the_draft_that_was_named() {
    let email = json!("no address");
    for (draft, checked) in
        [(Draft::Four, true), (Draft::Seven, true), (Draft::Nineteen, false), (Draft::Newest, false)]
    {
        let schema = crate::Schema::compile(&named(draft, json!({"format": "email"}))).unwrap();
        assert_eq!(!schema.is_valid(&email), checked, "{draft}");
        assert_eq!(!schema.explain(&email).1.is_empty(), checked, "{draft}");
    }
}
