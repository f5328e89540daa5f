//! Coercion and defaults, against schemas and arguments by chance.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub,
    reason = "a test fails by panicking"
)]

mod common;

use common::{arguments, same, schema, schema_and_arguments, value};
use haft_schema::{ArgumentSchema, Checker, Coercion, Defaults, Schema, check_defaults, coerce};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn fits(checker: &Checker, arguments: &Map<String, Value>) -> bool {
    checker.check(&Value::Object(arguments.clone())).is_ok_and(|checked| checked.total == 0)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    /// Coercion changes only what does not fit. 5.0 and 5 are the same value.
    #[test]
    fn arguments_that_fit_are_not_coerced((schema, before) in schema_and_arguments()) {
        let Ok(checker) = Checker::new(&schema) else { return Ok(()) };
        prop_assume!(fits(&checker, &before));
        let mut after = before.clone();
        let changed = coerce(&schema, &mut after);
        prop_assert!(same(&json!(before), &json!(after)), "{changed:?}: {after:?}");
        prop_assert_eq!(changed.is_empty(), before == after);
        prop_assert!(fits(&checker, &after));
    }

    /// What is said to have changed has, and nothing else.
    #[test]
    fn every_change_is_named(schema in schema(), before in arguments()) {
        let (before, mut after) = (Value::Object(before.clone()), before);
        let changed = coerce(&schema, &mut after);
        let mut after = Value::Object(after);
        for pointer in changed.iter().rev() {
            match before.pointer(pointer) {
                Some(old) => *after.pointer_mut(pointer).expect("it is there") = old.clone(),
                // Inside of a text that became a list or an object.
                None => prop_assert!(changed.iter().any(|other| pointer.len() > other.len() && pointer.starts_with(other.as_str()))),
            }
        }
        prop_assert_eq!(after, before);
    }

    /// Coercing twice is coercing once.
    #[test]
    fn coercion_is_done_at_once(schema in schema(), mut arguments in arguments()) {
        coerce(&schema, &mut arguments);
        let once = arguments.clone();
        prop_assert_eq!(coerce(&schema, &mut arguments), Vec::<String>::new());
        prop_assert_eq!(once, arguments);
    }

    /// Neither coercion nor defaults spoil arguments that fit.
    #[test]
    fn arguments_that_fit_still_fit((schema, before) in schema_and_arguments()) {
        let Ok(checker) = Checker::new(&schema) else { return Ok(()) };
        prop_assume!(fits(&checker, &before));
        let compiled = ArgumentSchema::compile(&schema).expect("the checker took it");
        for coercion in [Coercion::Off, Coercion::Lossless] {
            let fitting = compiled.check(before.clone(), coercion);
            let fitting = fitting.map_err(|unfit| TestCaseError::fail(unfit.sentence))?;
            prop_assert!(fits(&checker, &fitting.arguments), "{:?}", fitting);
            for (name, given) in &before {
                let kept = &fitting.arguments[name];
                // Objects and lists may have got defaults inside.
                prop_assert!(given.is_object() || given.is_array() || same(given, kept), "{name}: {given} {kept}");
            }
        }
    }

    /// What is accepted fits, and what does not fit is refused with a reason.
    #[test]
    fn what_is_accepted_fits(schema in schema(), given in arguments()) {
        let Ok(checker) = Checker::new(&schema) else { return Ok(()) };
        let compiled = ArgumentSchema::compile(&schema).expect("the checker took it");
        for coercion in [Coercion::Off, Coercion::Lossless] {
            match compiled.check(given.clone(), coercion) {
                Ok(fitting) => prop_assert!(fits(&checker, &fitting.arguments), "{:?}", fitting),
                Err(unfit) => {
                    prop_assert!(!unfit.sentence.is_empty() && (1..=5).contains(&unfit.problems.len()), "{:?}", unfit);
                    prop_assert!(!fits(&checker, &given));
                }
            }
        }
    }

    /// The quick way and the bounded one agree.
    #[test]
    fn the_quick_way_gives_the_same_answer(schema in schema(), value in value()) {
        match (Checker::new(&schema), Schema::compile(&schema)) {
            (Ok(checker), Ok(quick)) => {
                let fits = checker.check(&value).is_ok_and(|checked| checked.total == 0);
                prop_assert_eq!(quick.is_valid(&value), fits);
                let converted = haft_schema::to_2020_12(&schema).unwrap();
                prop_assert_eq!(quick.source(), converted.schema);
            }
            (one, other) => prop_assert_eq!(one.err(), other.err()),
        }
    }

    /// Defaults never panic, are added once, and those that a schema refuses are named.
    #[test]
    fn defaults_are_added_once(schema in schema(), mut arguments in arguments()) {
        let defaults = Defaults::of(&schema);
        defaults.apply(&mut arguments);
        let once = arguments.clone();
        defaults.apply(&mut arguments);
        prop_assert_eq!(once, arguments);
        for (pointer, problem) in check_defaults(&schema) {
            prop_assert!(schema.pointer(&pointer).is_some() && !problem.is_empty(), "{}", pointer);
        }
    }
}

/// A default that would spoil arguments is left out; the others, too, as they belong together.
#[test]
fn a_default_that_does_not_belong_is_left_out() {
    let schema = ArgumentSchema::compile(&json!({
        "properties": {"a": {"default": 1}, "b": {}},
        "maxProperties": 1,
    }))
    .unwrap();
    let given = json!({"b": 2}).as_object().unwrap().clone();
    assert_eq!(schema.check(given.clone(), Coercion::Off).unwrap().arguments, given);
    assert_eq!(json!(schema.check(Map::new(), Coercion::Off).unwrap().arguments), json!({"a": 1}));
}

/// A default makes up for a required member that is absent.
#[test]
fn a_default_counts_as_given() {
    let schema = json!({"properties": {"a": {"default": 1}, "b": {"type": "integer"}}, "required": ["a"], "type": "object"});
    let schema = ArgumentSchema::compile(&schema).unwrap();
    assert_eq!(json!(schema.check(Map::new(), Coercion::Off).unwrap().arguments), json!({"a": 1}));
    let unfit = schema.check(json!({"b": "x"}).as_object().unwrap().clone(), Coercion::Lossless).unwrap_err();
    assert_eq!(unfit.sentence, "/b: expected an integer, got the string \"x\"", "nothing about `a`");
}

#[test]
fn coercion_is_recorded() {
    let schema = ArgumentSchema::compile(&json!({
        "type": "object",
        "properties": {
            "depth": {"type": ["integer", "null"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "ratio": {"type": "number"},
            "count": {"type": "integer"},
        },
    }))
    .unwrap();
    let given =
        json!({"depth": "3", "tags": "[\"a\", 5]", "ratio": 2.0, "count": 7.0}).as_object().unwrap().clone();
    let fitting = schema.check(given.clone(), Coercion::Lossless).unwrap();
    assert_eq!(fitting.coerced, ["/count", "/depth", "/tags", "/tags/1"]);
    assert_eq!(json!(fitting.arguments), json!({"depth": 3, "tags": ["a", "5"], "ratio": 2.0, "count": 7}));
    let unfit = schema.check(given, Coercion::Off).unwrap_err();
    assert_eq!(unfit.problems.len(), 2, "7.0 is an integer to JSON Schema: {}", unfit.sentence);
}
