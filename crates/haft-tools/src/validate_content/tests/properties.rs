//! What holds for any content.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::json::scan;
use super::super::problem::{Findings, Lines};
use super::super::{Args, Report, validate};
use haft_schema::pointer::push_segment;

fn json_report(content: &str) -> Report {
    validate(&Args::json(content)).expect("no schema")
}

/// Any JSON value, not too large.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 1024.0)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-c/~ \"\\\\é]{0,3}", inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Pieces that JSON is made of, and some that it is not, in any order.
fn jsonish() -> impl Strategy<Value = String> {
    let pieces = [
        "{", "}", "[", "]", ",", ":", "\"", "\\", "\"a\"", "\"b\"", "0", "1", "-", "+", ".", "e5", "01",
        "1.5", "true", "false", "null", "nul", "NaN", " ", "\n", "\t", "\\u", "\\ud800", "\\udc00", "\\n",
        "//", "/*", "*/", "'", "#", "é", "😀", "\u{feff}", "\u{0}", "_",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..25).prop_map(|pieces| pieces.concat())
}

/// Subschemas of a few keywords, with references among them.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        prop::sample::select(vec!["string", "integer", "object", "array", "null"]).prop_map(|name| json!({"type": name})),
        (0..4_u32).prop_map(|number| json!({"minimum": number, "minLength": number, "minItems": number, "minProperties": number})),
        prop::collection::vec("[a-c]", 1..3).prop_map(|names| json!({"required": names})),
        prop::sample::select(vec!["#", "#/properties/a", "#/allOf/0", "#/nowhere"]).prop_map(|to| json!({"$ref": to})),
        Just(json!({"pattern": "^(?=a)", "enum": ["a", 1, null]})),
        Just(json!({"additionalProperties": false, "uniqueItems": true})),
    ];
    leaf.prop_recursive(3, 20, 3, |inner| {
        let several = prop::collection::vec(inner.clone(), 1..3);
        prop_oneof![
            (prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]), several)
                .prop_map(|(keyword, schemas)| json!({keyword: schemas})),
            (
                prop::sample::select(vec![
                    "not",
                    "items",
                    "contains",
                    "if",
                    "unevaluatedProperties",
                    "unevaluatedItems",
                    "propertyNames",
                    "additionalProperties"
                ]),
                inner.clone()
            )
                .prop_map(|(keyword, schema)| json!({keyword: schema})),
            prop::collection::btree_map("[a-c]", inner, 1..3)
                .prop_map(|schemas| json!({"properties": schemas})),
        ]
    })
}

/// Whether two readers that disagree do so for a reason that is documented.
fn expected_difference(content: &str, report: &Report) -> bool {
    let only_duplicates =
        !report.valid && report.problems.iter().all(|problem| problem.rule == "duplicate_key");
    // serde_json refuses numbers that are too large for a float.
    let too_large =
        serde_json::from_str::<Value>(content).is_err_and(|error| error.to_string().contains("out of range"));
    only_duplicates || (report.valid && too_large)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic(content in any::<String>()) {
        let report = json_report(&content);
        prop_assert_eq!(report.valid, report.total == 0);
        prop_assert_eq!(report.valid, report.to_string() == "valid JSON");
        let toml = validate(&Args::toml(&content)).expect("no schema");
        prop_assert_eq!(toml.valid, toml.total == 0);
    }

    #[test]
    fn agrees_with_serde_json(content in jsonish()) {
        let report = json_report(&content);
        let serde = serde_json::from_str::<Value>(&content);
        prop_assert!(
            report.valid == serde.is_ok() || expected_difference(&content, &report),
            "{content:?}: {report}, serde_json: {serde:?}"
        );
    }

    #[test]
    fn agrees_with_serde_json_on_changed_json(
        value in any_value(),
        at in any::<prop::sample::Index>(),
        change in prop_oneof![Just(None), jsonish().prop_map(Some)],
    ) {
        let mut content = serde_json::to_string(&value).expect("JSON");
        let places: Vec<usize> = (0..content.len()).filter(|at| content.is_char_boundary(*at)).collect();
        let at = *at.get(&places);
        match change {
            Some(piece) => content.insert_str(at, &piece),
            None => { content.remove(at); }
        }
        let report = json_report(&content);
        let serde = serde_json::from_str::<Value>(&content);
        prop_assert!(
            report.valid == serde.is_ok() || expected_difference(&content, &report),
            "{content:?}: {report}, serde_json: {serde:?}"
        );
        let _ = validate(&Args::toml(&content));
    }

    #[test]
    fn places_are_inside_the_content(content in jsonish()) {
        for problem in json_report(&content).problems {
            prop_assert!(content.is_char_boundary(problem.offset), "{problem:?}");
            let before = &content[..problem.offset];
            prop_assert_eq!(problem.line, before.matches('\n').count() + 1);
            let line_start = before.rfind('\n').map_or(0, |at| at + 1);
            prop_assert_eq!(problem.column, before[line_start..].chars().count() + 1);
        }
    }

    #[test]
    fn each_span_reads_back_as_its_value(value in any_value(), pretty in any::<bool>()) {
        let content = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let content = content.expect("JSON");
        let mut findings = Findings::default();
        let scanned = scan(&content, &Lines::new(&content), &mut findings);
        prop_assert_eq!(scanned.value.as_ref(), Some(&value));
        let places = scanned.places.expect("places");
        let mut open = vec![(String::new(), &value)];
        while let Some((pointer, value)) = open.pop() {
            let span = places.value_at(&pointer).expect("a place").span.clone();
            let read: Value = serde_json::from_str(&content[span]).expect("JSON");
            prop_assert_eq!(&read, value, "{}", pointer);
            let below = |name: &str| { let mut below = pointer.clone(); push_segment(&mut below, name); below };
            match value {
                Value::Array(items) => {
                    open.extend(items.iter().enumerate().map(|(index, item)| (below(&index.to_string()), item)));
                }
                Value::Object(members) => {
                    for (name, member) in members {
                        let key = places.key_at(&below(name)).expect("a key");
                        let read: String = serde_json::from_str(&content[key]).expect("a string");
                        prop_assert_eq!(&read, name);
                        open.push((below(name), member));
                    }
                }
                _ => {}
            }
        }
    }

    #[test]
    fn bounded_checks_agree_with_the_plain_validator(schema in any_schema(), value in any_value()) {
        let Ok(checker) = haft_schema::Checker::new(&schema) else { return Ok(()) };
        let checked = checker.check(&value).expect("within bounds");
        let plain = jsonschema::validator_for(&schema).expect("it compiled before");
        prop_assert_eq!(checked.total == 0, plain.is_valid(&value), "{} {}: {:?}", schema, value, checked.problems);
        for problem in checked.problems {
            prop_assert!(!problem.message.is_empty() && !problem.rule.is_empty());
            prop_assert!(value.pointer(&problem.pointer).is_some(), "{problem:?}");
        }
    }
}
