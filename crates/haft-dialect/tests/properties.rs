//! What holds for every definition: an export never fails, is always the same, keeps the rules, and says what it
//! changed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use common::{
    Rules,
    generate::{KEYS, any_json, arguments, mild_parameters, object, parameters},
    with_schema,
};
use haft_core::ToolDefinition;
use haft_dialect::{Change, Dialect, Export, ExportOptions, export, export_with, import};
use proptest::{collection::vec, prelude::*, sample::select, test_runner::RngSeed};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

static RULES: LazyLock<Vec<(Dialect, Rules)>> =
    LazyLock::new(|| Dialect::ALL.map(|dialect| (dialect, Rules::of(dialect))).into());

fn all_exports(definitions: &[ToolDefinition]) -> Vec<Export> {
    Dialect::ALL
        .into_iter()
        .flat_map(|dialect| {
            [false, true].map(|strict| export_with(dialect, &ExportOptions { strict }, definitions))
        })
        .collect()
}

fn keeps_the_rules(export: &Export) {
    let (_, rules) = RULES.iter().find(|(dialect, _)| *dialect == export.dialect).unwrap();
    rules.check(export);
}

/// A value as a model in strict mode says it: what is absent is null.
fn with_nulls(schema: &Value, value: &Value) -> Value {
    match (value, schema.get("properties"), schema.get("items")) {
        (Value::Object(members), Some(Value::Object(properties)), _) => properties
            .iter()
            .map(|(name, property)| {
                let member = members.get(name).map_or(Value::Null, |member| with_nulls(property, member));
                (name.clone(), member)
            })
            .collect::<Map<String, Value>>()
            .into(),
        (Value::Array(all), _, Some(items)) => all.iter().map(|item| with_nulls(items, item)).collect(),
        _ => value.clone(),
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_json_at_all_as_parameters_keeps_the_rules(names in vec(".{0,80}", 1..4), schema in any_json()) {
        let definitions: Vec<_> = names.iter().map(|name| with_schema(name, "d", schema.clone())).collect();
        for export in all_exports(&definitions) {
            // Not every JSON is a schema, so that what is not rewritten may be wrong further down.
            if matches!(export.dialect, Dialect::Gemini | Dialect::Mcp | Dialect::Anthropic) {
                keeps_the_rules(&export);
            }
            for tool in &export.tools {
                let name = tool.get("function").unwrap_or(tool)["name"].as_str().unwrap();
                prop_assert!(names.iter().any(|original| export.name_back(name) == Some(original)));
            }
        }
    }

    #[test]
    fn any_schema_keeps_the_rules_and_loses_no_tool(
        schema in prop_oneof![1 => parameters(), 2 => mild_parameters()],
        description in ".{0,40}",
    ) {
        let definition = with_schema("tool", &description, schema);
        for export in all_exports(std::slice::from_ref(&definition)) {
            keeps_the_rules(&export);
            prop_assert_eq!(export.tools.len(), 1);
        }
    }

    #[test]
    fn the_order_of_definitions_does_not_matter(schemas in vec(parameters(), 1..4)) {
        let mut definitions: Vec<_> = schemas
            .into_iter()
            .enumerate()
            .map(|(index, schema)| with_schema(&format!("tool_{index}"), "d", schema))
            .collect();
        let before = all_exports(&definitions);
        definitions.reverse();
        let after = all_exports(&definitions);
        for (before, after) in before.iter().zip(&after) {
            prop_assert_eq!(before.to_value().to_string(), after.to_value().to_string());
            prop_assert_eq!(&before.remarks, &after.remarks);
        }
    }

    /// A remark is made of each change of meaning: without `loosened` a model may send nothing that the tool would not
    /// take, without `tightened` it may send all that the tool takes.
    #[test]
    fn remarks_tell_the_truth(
        schema in prop_oneof![1 => parameters(), 2 => mild_parameters()],
        sent in vec(arguments(), 16),
    ) {
        let Ok(original) = jsonschema::validator_for(&schema) else { return Ok(()) };
        let definition = with_schema("tool", "d", schema);
        for export in all_exports(std::slice::from_ref(&definition)) {
            let tool = export.tools[0].get("function").unwrap_or(&export.tools[0]);
            let strict = tool.get("strict") == Some(&json!(true));
            // Gemini's words have to be read as JSON Schema first.
            let read = import(&export.to_value()).unwrap().definitions.remove(0).parameters.to_schema();
            let exported = jsonschema::validator_for(&read)
                .map_err(|error| TestCaseError::fail(format!("{}: {error}: {read}", export.dialect)))?;
            let made = |change: Change| export.remarks.iter().any(|remark| remark.change == change);
            for sent in &sent {
                let may_be_sent = exported.is_valid(sent);
                let back = export.arguments_back("tool", sent.as_object().unwrap().clone());
                let fits = original.is_valid(&Value::Object(back));
                let told = || format!("{} {sent}\n{:#}\n{:#?}", export.dialect, export.to_value(), export.remarks);
                if !made(Change::Loosened) {
                    prop_assert!(!may_be_sent || fits, "may be sent, and does not fit: {}", told());
                }
                if made(Change::Tightened) {
                    continue;
                }
                if !strict {
                    prop_assert!(!fits || may_be_sent, "fits, and may not be sent: {}", told());
                } else if !read.to_string().contains("anyOf") && original.is_valid(sent) {
                    let sent = with_nulls(&read, sent);
                    prop_assert!(exported.is_valid(&sent), "fits, and may not be sent as {sent}: {}", told());
                }
            }
        }
    }

    #[test]
    fn what_has_no_remark_comes_back_as_it_was(
        schema in prop_oneof![1 => parameters(), 2 => mild_parameters()],
        name in "[a-z][a-z0-9_]{0,20}",
        sent in vec(arguments(), 16),
    ) {
        let definition = with_schema(&name, "What it does", schema);
        prop_assume!(definition.check().is_empty());
        for dialect in Dialect::ALL {
            let export = export(dialect, [&definition]);
            if !export.remarks.is_empty() {
                continue;
            }
            let import = import(&export.to_value()).unwrap();
            prop_assert!(import.remarks.is_empty());
            let back = &import.definitions[0];
            prop_assert_eq!((&back.name, &back.description), (&definition.name, &definition.description));
            let (read, said) = (back.parameters.to_schema(), definition.parameters.to_schema());
            if dialect != Dialect::Gemini {
                prop_assert_eq!(&read, &said, "{}", dialect);
            }
            let (Ok(read), Ok(said)) = (jsonschema::validator_for(&read), jsonschema::validator_for(&said)) else {
                continue;
            };
            for sent in &sent {
                prop_assert_eq!(read.is_valid(sent), said.is_valid(sent), "{} {}", dialect, sent);
            }
        }
    }

    #[test]
    fn an_import_of_anything_is_an_error_or_fine(json in any_json()) {
        if let Ok(import) = import(&json) {
            for definition in &import.definitions {
                prop_assert_eq!(definition.check(), []);
            }
        }
    }

    #[test]
    fn an_import_of_anything_that_looks_like_a_tool_is_an_error_or_fine(
        tools in vec(vec((select(KEYS.to_vec()), any_json()), 0..5), 0..4)
    ) {
        let tools: Vec<Value> = tools.into_iter().map(object).collect();
        match import(&json!({"tools": tools})) {
            Ok(import) => for definition in &import.definitions {
                prop_assert_eq!(definition.check(), []);
            },
            Err(error) => prop_assert!(!error.problems.is_empty() && error.problems.len() <= 10),
        }
    }
}

/// The same cases every time, so that a run tells about the code and not about luck. With `PROPTEST_CASES` as many
/// other ones as that says.
fn config() -> ProptestConfig {
    let wanted = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: wanted.unwrap_or(300),
        rng_seed: wanted.map_or(RngSeed::Fixed(2026), |_| RngSeed::Random),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
