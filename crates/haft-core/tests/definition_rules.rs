//! The rules of a definition, one line of a table each: the definition, and what is wrong with it, if anything.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_core::{DefinitionProblem, ToolDefinition};
use serde_json::{Value, json};

#[path = "definition_rules/parameters.rs"]
mod parameters;

/// Place, part of the problem, part of the fix.
type Broken = (&'static str, &'static str, &'static str);
/// Name of the case, what is different from a definition that is fine, and each rule that it breaks.
type Case = (&'static str, Value, &'static [Broken]);

const FINE: &[Broken] = &[];

/// A definition that is fine, with these members in place of its own.
fn definition(changes: &Value) -> ToolDefinition {
    let mut whole = json!({"name": "read_file", "description": "Read the contents of a file"});
    for (field, value) in changes.as_object().unwrap() {
        whole[field] = value.clone();
    }
    serde_json::from_value(whole.clone()).unwrap_or_else(|error| panic!("{error}: {whole}"))
}

fn run(cases: &[Case]) {
    for (name, changes, expected) in cases {
        let found = definition(changes).check();
        let said: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{name}: {said:#?}");
        for (DefinitionProblem { place, problem, fix }, (at, part, help)) in found.iter().zip(*expected) {
            assert_eq!(place, at, "{name}: {said:?}");
            assert!(problem.contains(part), "{name}: {problem:?} has no {part:?}");
            assert!(fix.contains(help), "{name}: {fix:?} has no {help:?}");
        }
    }
}

#[test]
fn names() {
    run(&[
        ("a plain name", json!({"name": "read_file"}), FINE),
        ("one letter", json!({"name": "x"}), FINE),
        ("digits and underscores", json!({"name": "a1__b2_"}), FINE),
        ("64 characters", json!({"name": "a".repeat(64)}), FINE),
        ("65 characters", json!({"name": "a".repeat(65)}), &[("name", "65 characters", "at most 64")]),
        ("empty", json!({"name": ""}), &[("name", "empty", "such as `read_file`")]),
        ("upper case", json!({"name": "ReadFile"}), &[("name", "`ReadFile` is not", "such as `read_file`")]),
        ("a dash", json!({"name": "read-file"}), &[("name", "not a valid name", "such as `read_file`")]),
        ("a space", json!({"name": "read file"}), &[("name", "not a valid name", "such as `read_file`")]),
        ("a dot", json!({"name": "fs.read"}), &[("name", "not a valid name", "such as `fs_read`")]),
        ("a digit first", json!({"name": "7zip"}), &[("name", "not a valid name", "such as `zip`")]),
        ("an underscore first", json!({"name": "_x"}), &[("name", "not a valid name", "such as `x`")]),
        ("a letter that is not of ASCII", json!({"name": "öffnen"}), &[("name", "not a valid name", "a-z")]),
        ("a line end", json!({"name": "a\nb"}), &[("name", "`a\\nb`", "such as `a_b`")]),
        ("execute", json!({"name": "execute"}), &[("name", "reserved word", "such as `execute_report`")]),
        ("run", json!({"name": "run"}), &[("name", "reserved word", "`run_report`")]),
        ("call", json!({"name": "call"}), &[("name", "reserved word", "`call_report`")]),
        ("invoke", json!({"name": "invoke"}), &[("name", "reserved word", "`invoke_report`")]),
        (
            "a reserved word in another case",
            json!({"name": "Run"}),
            &[("name", "not a valid", "`run_report`")],
        ),
        ("a reserved word and more", json!({"name": "run_tests"}), FINE),
        ("an alias as others spell it", json!({"aliases": ["ReadFile", "cat"]}), FINE),
        (
            "an alias with a space",
            json!({"aliases": ["ok", "a b"]}),
            &[("aliases[1]", "`a b` is not a name", "letters")],
        ),
        ("an empty alias", json!({"aliases": [""]}), &[("aliases[0]", "not a name", "1 to 64")]),
        ("an alias of 65", json!({"aliases": ["a".repeat(65)]}), &[("aliases[0]", "not a name", "1 to 64")]),
        (
            "a reserved alias",
            json!({"aliases": ["Execute"]}),
            &[("aliases[0]", "reserved word", "another word")],
        ),
        (
            "an alias twice",
            json!({"aliases": ["Cat", "cat"]}),
            &[("aliases[1]", "there twice", "remove one")],
        ),
        (
            "an alias that is the name",
            json!({"aliases": ["READ_FILE"]}),
            &[("aliases[0]", "own name", "remove it")],
        ),
    ]);
}

#[test]
fn texts_and_versions() {
    run(&[
        ("a description of 1024 characters", json!({"description": "ä".repeat(1024)}), FINE),
        (
            "one of 1025",
            json!({"description": "x".repeat(1025)}),
            &[("description", "1025 characters", "shorten")],
        ),
        ("an empty one", json!({"description": ""}), &[("description", "empty", "in one sentence")]),
        ("one of spaces", json!({"description": " \n\t"}), &[("description", "empty", "in one sentence")]),
        ("an empty title", json!({"title": " "}), &[("title", "empty", "or remove it")]),
        ("a long title", json!({"title": "x".repeat(129)}), &[("title", "129 characters", "shorten")]),
        ("no version", json!({"version": null}), FINE),
        ("a version", json!({"version": "1.0.0"}), FINE),
        ("one before a release", json!({"version": "2.0.0-rc.1+build.7"}), FINE),
        (
            "two numbers",
            json!({"version": "1.0"}),
            &[("version", "`1.0` is not a semantic version", "`1.0.0`")],
        ),
        ("a v", json!({"version": "v1.0.0"}), &[("version", "not a semantic version", "three numbers")]),
        (
            "a zero in front",
            json!({"version": "1.01.0"}),
            &[("version", "not a semantic version", "three numbers")],
        ),
        ("a word", json!({"version": "latest"}), &[("version", "`latest`", "three numbers")]),
        (
            "33 characters",
            json!({"version": format!("1.0.0-{}", "a".repeat(27))}),
            &[("version", "33 characters", "shorten")],
        ),
    ]);
}

#[test]
fn constraints_and_permissions() {
    let with = |constraints: Value| json!({"constraints": constraints});
    let cacheable = |effects: bool| json!({"cacheable": true, "constraints": {"allowSideEffects": effects}});
    run(&[
        ("none", with(json!({})), FINE),
        ("one second", with(json!({"maxExecutionTime": "PT1S"})), FINE),
        ("ten minutes", with(json!({"maxExecutionTime": "PT10M"})), FINE),
        (
            "less",
            with(json!({"maxExecutionTime": "PT0.999S"})),
            &[("constraints.maxExecutionTime", "out of range", "PT1S to PT10M")],
        ),
        (
            "more",
            with(json!({"maxExecutionTime": "PT10M1S"})),
            &[("constraints.maxExecutionTime", "PT10M1S is out of range", "PT1S to PT10M")],
        ),
        ("a deadline within it", with(json!({"maxExecutionTime": "PT30S", "defaultTimeout": "PT30S"})), FINE),
        (
            "a deadline above it",
            with(json!({"maxExecutionTime": "PT30S", "defaultTimeout": "PT31S"})),
            &[("constraints.defaultTimeout", "PT31S is zero or above", "at most PT30S")],
        ),
        (
            "no time at all",
            with(json!({"defaultTimeout": "PT0S"})),
            &[("constraints.defaultTimeout", "zero", "at most PT10M")],
        ),
        ("1 KiB", with(json!({"maxOutputSize": 1024})), FINE),
        ("100 MiB", with(json!({"maxOutputSize": 104_857_600})), FINE),
        (
            "1023 bytes",
            with(json!({"maxOutputSize": 1023})),
            &[("constraints.maxOutputSize", "1023 bytes", "1024 to")],
        ),
        (
            "a byte more",
            with(json!({"maxOutputSize": 104_857_601})),
            &[("constraints.maxOutputSize", "out of range", "to 104857600")],
        ),
        (
            "no arguments",
            with(json!({"maxArgumentSize": 0})),
            &[("constraints.maxArgumentSize", "no call", "at least 2")],
        ),
        ("a built-in in the process", with(json!({"requiredIsolation": "None"})), FINE),
        (
            "a program in the process",
            json!({"source": "command", "constraints": {"requiredIsolation": "None"}}),
            &[("constraints.requiredIsolation", "None is for code", "use Standard")],
        ),
        (
            "a module in the process",
            json!({"source": "wasm", "constraints": {"requiredIsolation": "None"}}),
            &[("constraints.requiredIsolation", "None is for code", "use Standard")],
        ),
        ("answers from a cache", cacheable(false), FINE),
        ("with side effects", cacheable(true), &[("cacheable", "side effects", "allowSideEffects to false")]),
        ("permissions", json!({"requiredPermissions": ["tool.filesystem.read", "tool.net"]}), FINE),
        (
            "an empty one",
            json!({"requiredPermissions": [""]}),
            &[("requiredPermissions[0]", "not a permission", "dots")],
        ),
        (
            "one with a space",
            json!({"requiredPermissions": ["a", "b c"]}),
            &[("requiredPermissions[1]", "`b c` is not a permission", "such as")],
        ),
        (
            "a wildcard",
            json!({"requiredPermissions": ["tool.*"]}),
            &[("requiredPermissions[0]", "has a `*`", "each")],
        ),
        (
            "one twice",
            json!({"requiredPermissions": ["a", "a"]}),
            &[("requiredPermissions[1]", "there twice", "remove")],
        ),
        (
            "everything at once",
            json!({"name": "run", "description": "", "version": "1", "aliases": ["-"], "outputSchema": 1}),
            &[
                ("name", "reserved", "report"),
                ("description", "empty", "say"),
                ("outputSchema", "not a JSON Schema", "use"),
                ("version", "semantic", "three"),
                ("aliases[0]", "not a name", "use"),
            ],
        ),
    ]);
}

/// A hostile definition costs little and is shown on a line.
#[test]
fn problems_stay_short() {
    let long = "X".repeat(1_000_000);
    let found = definition(&json!({
        "name": long, "version": "1.x.0", "aliases": [long], "requiredPermissions": [format!("{long} ")],
        "parameters": [{"name": long, "description": "", "type": "Integer", "default": long, "enum": [long]}]
    }))
    .check();
    assert_eq!(found.len(), 7);
    for problem in found {
        let text = problem.to_string();
        assert!(text.len() < 300 && !text.contains('\n'), "{text}");
    }
}
