//! What a call gets back.

use serde_json::{Value, from_value, json, to_value};

use super::super::{Args, Format, validate};

fn text(args: Value) -> String {
    let args: Args = from_value(args).expect("arguments");
    match validate(&args) {
        Ok(report) => report.to_string(),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn problems_of_a_schema_are_listed_by_place() {
    let content = "{\n  \"age\": \"12\",\n  \"colour\": \"red\",\n  \"tags\": [\"a\", 2, \"a\"]\n}";
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer"},
            "color": {"enum": ["red", "green"]},
            "tags": {"items": {"type": "string"}, "uniqueItems": true},
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    assert_eq!(
        text(json!({"content": content, "schema": schema})),
        "invalid JSON: 5 problems\n\
         line 1, column 1: missing required property \"name\"\n\
         line 2, column 10: /age: expected an integer, got the string \"12\"\n  \
           hint: write 12 without quotes\n\
         line 3, column 3: /colour: \"colour\" is not a known property; did you mean \"color\"?\n\
         line 4, column 11: /tags: expected items that differ from each other, got \"a\" twice, as items 0 and 2\n\
         line 4, column 17: /tags/1: expected a string, got the number 2\n  \
           hint: put it in quotes: \"2\""
    );
}

#[test]
fn mistakes_with_a_plain_meaning_do_not_hide_the_schemas() {
    let schema = json!({"properties": {"a": {"maximum": 1}}});
    assert_eq!(
        text(json!({"content": "{'a': 2, // two\n}", "schema": schema})),
        "invalid JSON: 4 problems\n\
         line 1, column 2: expected double quotes around the string, got single quotes\n  hint: write \"a\"\n\
         line 1, column 7: /a: expected at most 1, got 2\n\
         line 1, column 8: expected a key after the comma, got `}`\n  hint: remove the comma before `}`\n\
         line 1, column 10: expected JSON, which has no comments, got `//`\n  hint: remove the comment"
    );
    // What the number is cannot be told, so the schema has nothing to say about it.
    assert_eq!(
        text(json!({"content": "{\"a\": 02}", "schema": schema})),
        "invalid JSON: 1 problem\n\
         line 1, column 7: /a: expected a number without leading zeros, got `02`\n  \
           hint: write 2, or \"02\" if the zeros matter"
    );
    // The last of two equal keys counts.
    assert_eq!(
        text(json!({"content": "{\"a\": 2, \"a\": 1}", "schema": schema})),
        "invalid JSON: 1 problem\n\
         line 1, column 10: /a: expected each key once, got \"a\" again: it is first at line 1, column 2\n  \
           hint: keep one of the two: most readers take the last"
    );
}

#[test]
fn toml_against_a_schema() {
    let content =
        "name = \"x\"\n\n[server]\nport = 70000\nhots = \"h\"\n\n[[rule]]\npath = \"/\"\n\n[[rule]]\n";
    let schema = json!({
        "properties": {
            "server": {"properties": {"port": {"maximum": 65535}, "host": {}}, "additionalProperties": false},
            "rule": {"items": {"required": ["path"]}},
        },
        "required": ["version"],
    });
    assert_eq!(
        text(json!({"content": content, "format": "toml", "schema": schema})),
        "invalid TOML: 4 problems\n\
         line 1, column 1: missing required property \"version\"\n\
         line 4, column 8: /server/port: expected at most 65535, got 70000\n\
         line 5, column 1: /server/hots: \"hots\" is not a known property; did you mean \"host\"?\n\
         line 10, column 1: /rule/1: missing required property \"path\""
    );
    assert_eq!(
        text(json!({"content": "day = 2024-01-01", "format": "toml", "schema": {"type": "object"}})),
        "valid TOML"
    );
}

#[test]
fn a_schema_that_cannot_be_used_is_an_error_of_the_call() {
    let elsewhere = "references to other documents are not fetched: put what it refers to into `$defs`";
    let table: &[(Value, &str)] = &[
        (json!(12), "invalid schema: expected a boolean or an object, got the number 12"),
        (
            json!("{}"),
            "invalid schema: expected a boolean or an object, got the string \"{}\"; \
             write the object itself, not a string with JSON in it",
        ),
        (
            json!({"properties": {"a": {"type": "strng"}}}),
            "invalid schema at /properties/a/type: expected one of \"array\", \"boolean\", \"integer\", \"null\", \
             \"number\", \"object\", \"string\" or an array, got the string \"strng\"",
        ),
        (
            json!({"required": "a"}),
            "invalid schema at /required: expected an array, got the string \"a\"; put it in an array: [ … ]",
        ),
        (json!({"minLength": -1}), "invalid schema at /minLength: expected at least 0, got -1"),
        (
            json!({"items": {"pattern": "("}}),
            "invalid schema at /items/pattern: expected a regular expression, got \"(\"",
        ),
        (
            json!({"$schema": "https://example.com/meta"}),
            "invalid schema at /$schema: expected the address of a JSON Schema draft (such as \
             \"https://json-schema.org/draft/2020-12/schema\"), got \"https://example.com/meta\"",
        ),
        (
            json!({"properties": {"a": {"$ref": "#/$defs/b"}}}),
            "invalid schema at /properties/a/$ref: expected a reference to a part of this schema, got \"#/$defs/b\", \
             which is not there",
        ),
    ];
    for (schema, expected) in table {
        // Whatever the content is.
        for content in ["{}", "{"] {
            assert_eq!(text(json!({"content": content, "schema": schema})), format!("error: {expected}"));
        }
    }
    for reference in
        ["http://example.com/x.json", "https://example.com/x.json#/a", "file:///etc/passwd", "other.json"]
    {
        assert_eq!(
            text(json!({"content": "{}", "schema": {"items": {"$ref": reference}}})),
            format!(
                "error: invalid schema at /items/$ref: expected a reference into this schema, got {reference:?}; {elsewhere}"
            )
        );
    }
    let unused = json!({"content": "{}", "schema": {"$defs": {"a": {"$ref": "http://example.com/x.json"}}}});
    assert_eq!(
        text(unused),
        format!(
            "error: invalid schema: expected references into this schema only, got \"http://example.com/x.json\"; {elsewhere}"
        )
    );
}

#[test]
fn schemas_may_be_booleans_name_a_draft_and_refer_to_meta_schemas() {
    assert_eq!(text(json!({"content": "1", "schema": true})), "valid JSON");
    assert_eq!(
        text(json!({"content": "1", "schema": false})),
        "invalid JSON: 1 problem\nline 1, column 1: no value is allowed here, got the number 1"
    );
    assert_eq!(text(json!({"content": "1", "schema": null})), "valid JSON");
    let draft_7 =
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]});
    assert_eq!(
        text(json!({"content": "[1, 1]", "schema": draft_7})),
        "invalid JSON: 1 problem\nline 1, column 2: /0: expected a string, got the number 1\n  \
         hint: put it in quotes: \"1\""
    );
    let meta = json!({"$ref": "https://json-schema.org/draft/2020-12/schema"});
    assert_eq!(
        text(json!({"content": "{\"properties\": {\"a\": {\"minimum\": \"1\"}}}", "schema": meta})),
        "invalid JSON: 1 problem\n\
         line 1, column 34: /properties/a/minimum: expected a number, got the string \"1\"\n  \
           hint: write 1 without quotes"
    );
}

#[test]
fn arguments_and_the_report_as_json() {
    let args: Args = from_value(json!({"content": "[1,]"})).expect("arguments");
    assert_eq!((args.format, args.schema.clone(), args.max_problems), (Format::Json, None, None));
    assert_eq!(
        to_value(validate(&args).expect("no schema")).expect("a report is JSON"),
        json!({
            "valid": false,
            "format": "json",
            "problems": [{
                "line": 1, "column": 3, "offset": 2, "pointer": "", "rule": "trailing_comma",
                "message": "expected a value after the comma, got `]`", "hint": "remove the comma before `]`",
            }],
            "total": 1,
        })
    );
    for wrong in
        [json!({}), json!({"content": "", "formt": "json"}), json!({"content": "", "format": "yaml"})]
    {
        assert!(from_value::<Args>(wrong).is_err());
    }
}

#[test]
fn the_schema_of_the_arguments_is_what_a_model_needs() {
    let schema = to_value(schemars::schema_for!(Args)).expect("a schema is JSON");
    assert_eq!(schema["required"], json!(["content"]));
    assert_eq!(schema["additionalProperties"], json!(false));
    for (name, property) in schema["properties"].as_object().expect("properties") {
        assert!(property["description"].is_string(), "{name}");
    }
    assert_eq!(schema["properties"]["schema"]["type"], json!(["object", "boolean", "null"]));
    assert_eq!(schema["properties"]["max_problems"]["minimum"], json!(1));
    assert_eq!(schema["properties"]["max_problems"]["maximum"], json!(1000));
}
