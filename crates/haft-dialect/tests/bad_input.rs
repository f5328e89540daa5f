//! What comes from outside is wrong in every way: a clear error or a right value, never a panic, never a wait.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use common::{Rules, with_schema};
use haft_core::{Source, ToolDefinition};
use haft_dialect::{Change, Dialect, ExportOptions, export, export_with, import};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// Exports in every way there is, and holds each to the rules.
fn export_everywhere(definitions: &[ToolDefinition]) {
    for dialect in Dialect::ALL {
        for strict in [false, true] {
            let export = export_with(dialect, &ExportOptions { strict }, definitions);
            Rules::of(dialect).check(&export);
            assert_eq!(export.tools.len(), definitions.len(), "{dialect}: {:?}", export.remarks);
        }
    }
}

fn fast_enough<T>(what: &str, most: Duration, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    let took = start.elapsed();
    println!("{what}: {took:?}");
    assert!(took < most, "{what} took {took:?}");
    result
}

#[test]
fn wrong_lists_are_explained() {
    let lists = [
        json!(5),
        json!("tools"),
        json!([null, true, "x", [], {}]),
        json!([{"name": ""}, {"name": "  "}, {"name": 5}, {"description": "no name"}]),
        json!([{"name": "a", "decription": "typo"}, {"name": "b", "params": {}}]),
        json!([{"name": "a", "parameters": "{}"}, {"name": "b", "parameters": 5}, {"name": "c", "parameters": true}]),
        json!([{"name": "a", "parameters": {"type": "string"}}]),
        json!([{"name": "a", "parameters": [{"name": "x"}]}]),
        json!([{"name": "a", "parameters": [{"name": "X y", "description": "", "type": "String"}]}]),
        json!([{"type": "object", "properties": {}}]),
        json!([{"type": "fucntion", "name": "a", "parameters": {}}]),
        json!([{"type": "function", "function": "a"}, {"type": "tool", "function": {"name": "a"}}]),
        json!([{"functionDeclarations": {"name": "a"}}, {"functionDeclarations": [5], "googleSearch": 1}]),
        json!([{"name": "a"}, {"name": "a"}, {"name": "getUser"}, {"name": "get-user"}]),
        json!([{"name": "a", "inputSchema": []}, {"name": "b", "input_schema": 1, "description": []}]),
        json!((0..25).map(|n| json!({"nam": n})).collect::<Vec<_>>()),
    ];
    let mut told = String::new();
    for list in &lists {
        let error = import(list).unwrap_err();
        assert!(error.problems.len() <= 10);
        let shown: String = list.to_string().chars().take(160).collect();
        told.push_str(&format!("{shown}\n{error}\n\n"));
    }
    insta::assert_snapshot!(told);
}

#[test]
fn every_shape_of_a_list_is_known() {
    let bare = json!({"name": "read_file", "description": "Read file contents", "parameters": {
        "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
    }});
    let expected = import(&json!([bare])).unwrap();
    assert_eq!(expected.definitions[0].source, Source::Declared);
    for list in [
        bare.clone(),
        json!({"tools": [bare]}),
        json!({"model": "m", "messages": [], "tools": [bare]}),
        json!({"functions": [bare]}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [bare], "nextCursor": "x"}}),
        json!([{"type": "function", "function": bare}]),
        json!([{"type": "function", "name": bare["name"], "description": bare["description"], "parameters": bare["parameters"], "strict": false}]),
        json!([{"name": bare["name"], "description": bare["description"], "input_schema": bare["parameters"]}]),
        json!([{"type": "custom", "name": bare["name"], "description": bare["description"], "input_schema": bare["parameters"]}]),
        json!([{"name": bare["name"], "description": bare["description"], "inputSchema": bare["parameters"]}]),
        json!({"functionDeclarations": [bare]}),
        json!([{"function_declarations": [bare], "codeExecution": null}]),
        json!([{"functionDeclarations": [{
            "name": bare["name"], "description": bare["description"], "parametersJsonSchema": bare["parameters"],
        }]}]),
        json!([{"name": bare["name"], "description": bare["description"], "parameters": {
            "type": "OBJECT", "properties": {"path": {"type": "STRING"}}, "required": ["path"],
        }}]),
    ] {
        assert_eq!(import(&list).unwrap(), expected, "{list}");
    }
    for empty in [json!([]), json!(null), json!({"tools": []}), json!({"tools": null})] {
        assert_eq!(import(&empty).unwrap().definitions, [], "{empty}");
    }
}

#[test]
fn tools_of_the_provider_are_left_out_and_named() {
    let list = json!([
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "google_search"},
        {"type": "custom", "name": "grammar", "format": {"type": "text"}},
        {"googleSearch": {}},
        {"functionDeclarations": [], "codeExecution": {}},
        {"name": "own"},
    ]);
    let import = import(&list).unwrap();
    assert_eq!(import.definitions.len(), 1);
    let left: Vec<&str> = import
        .remarks
        .iter()
        .filter(|remark| remark.change == Change::LeftOut)
        .map(|remark| remark.tool.as_str())
        .collect();
    assert_eq!(left, ["web_search", "google_search", "grammar", "googleSearch", "codeExecution"]);
}

#[test]
fn names_of_others_become_haft_names_and_are_kept() {
    for (original, name, alias) in [
        ("getUser", "get_user", true),
        ("get-user", "get_user", false),
        ("admin.tools/list", "admin_tools_list", false),
        ("ADD", "add", false),
        ("run", "run_tool", false),
        ("HTTPGet", "http_get", true),
    ] {
        let import = import(&json!([{"name": original}])).unwrap();
        let definition = &import.definitions[0];
        assert_eq!(definition.name, name);
        assert_eq!(definition.metadata["originalName"], original);
        assert_eq!(definition.aliases.contains(&original.to_owned()), alias, "{original}");
        assert_eq!(definition.check(), []);
        assert!(import.remarks.iter().any(|remark| remark.change == Change::Renamed && remark.tool == name));
    }
    // As names are taken in any case, an alias must not be the name of another tool.
    let both = import(&json!([{"name": "getUser"}, {"name": "getuser"}])).unwrap();
    assert_eq!(both.definitions[0].aliases, Vec::<String>::new());
}

#[test]
fn huge_and_foreign_names_are_no_problem() {
    let huge = "x".repeat(1_000_000);
    for name in [huge.as_str(), "天気を調べる", "🦀", "\u{202e}gpj.exe", "a\0b", "Ünïcödé", "-", "___"]
    {
        let import = import(&json!([{"name": name, "description": "d"}])).unwrap();
        assert_eq!(import.definitions[0].check(), [], "{name:.20}");
        let definition =
            with_schema(name, "d", json!({"type": "object", "properties": {name: {"type": "string"}}}));
        export_everywhere(std::slice::from_ref(&definition));
        for dialect in Dialect::ALL {
            let export = export(dialect, [&definition]);
            let exported =
                export.tools[0].get("function").unwrap_or(&export.tools[0])["name"].as_str().unwrap();
            assert_eq!(export.name_back(exported), Some(name));
            for remark in &export.remarks {
                assert!(remark.to_string().len() < 2_000, "a remark stays readable");
            }
        }
    }
}

#[test]
fn renamed_parameters_find_their_way_back() {
    let definition = with_schema(
        "t",
        "d",
        json!({"properties": {"user id": {"type": "string"}, "ok": {"type": "integer"}}, "required": ["user id"]}),
    );
    for dialect in [Dialect::Anthropic, Dialect::Gemini] {
        let export = export(dialect, [&definition]);
        let schema = export.tools[0].get("input_schema").or(export.tools[0].get("parameters")).unwrap();
        let sent: Map<String, Value> = schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(|name| (name.clone(), json!(name.len())))
            .collect();
        let back = export.arguments_back("t", sent.clone());
        assert_eq!(back.keys().collect::<Vec<_>>(), ["ok", "user id"]);
        assert_eq!(export.arguments_back("another", sent.clone()), sent);
    }
}

#[test]
fn two_definitions_with_one_name_are_one_tool() {
    let (first, second) = (ToolDefinition::new("t", "first"), ToolDefinition::new("t", "second"));
    for dialect in Dialect::ALL {
        let export = export(dialect, [&first, &second]);
        assert_eq!(export.tools.len(), 1);
        assert_eq!(export.remarks.last().unwrap().change, Change::LeftOut);
    }
}

#[test]
fn parameters_that_are_no_object_leave_the_tool_out() {
    for schema in
        [json!({"type": "string"}), json!([]), json!("x"), json!(5), json!({"type": ["string", "null"]})]
    {
        let definition = with_schema("t", "d", schema.clone());
        for dialect in Dialect::ALL {
            let export = export(dialect, [&definition]);
            assert_eq!(export.to_value(), json!([]), "{dialect} {schema}");
            assert_eq!(export.remarks.last().unwrap().change, Change::LeftOut);
        }
    }
}

#[test]
fn references_in_circles_end() {
    let circles = [
        json!({"$ref": "#"}),
        json!({"properties": {"x": {"$ref": "#"}}}),
        json!({"properties": {"x": {"$ref": "#/properties/x"}}}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"allOf": [{"$ref": "#"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}),
        json!({"anyOf": [{"$ref": "#"}, {"properties": {"y": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}}]}),
        json!({"properties": {"x": {"type": "array", "items": {"$ref": "#/$defs/list"}}}, "$defs": {
            "list": {"type": "array", "items": {"$ref": "#/$defs/list"}},
        }}),
        json!({"properties": {"x": {"$ref": "#/$defs/%24x~1y"}}, "$defs": {"$x/y": {"type": "string"}}}),
        json!({"properties": {"x": {"$ref": "#/nowhere"}, "y": {"$ref": "#anchor"}, "z": {"$ref": 5}}}),
    ];
    for schema in circles {
        let definition = with_schema("t", "d", schema.clone());
        fast_enough(&schema.to_string(), Duration::from_secs(2), || {
            export_everywhere(std::slice::from_ref(&definition));
        });
    }
}

#[test]
fn references_that_multiply_cost_little() {
    let mut definitions = Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        definitions.insert(
            format!("l{level}"),
            json!({"type": "object", "properties": {"a": next, "b": next, "c": next}}),
        );
    }
    definitions.insert("l40".into(), json!({"type": "string"}));
    let schema = json!({"properties": {"x": {"$ref": "#/$defs/l0"}}, "$defs": definitions});
    let definition = with_schema("t", "d", schema);
    for dialect in Dialect::ALL {
        for strict in [false, true] {
            let export = fast_enough("three to the fortieth", Duration::from_secs(3), || {
                export_with(dialect, &ExportOptions { strict }, [&definition])
            });
            assert_eq!(export.tools.len(), 1);
            assert!(export.remarks.len() <= 102, "{}", export.remarks.len());
        }
    }
}

#[test]
fn deep_nesting_ends() {
    for (depth, wrap) in [
        (128, (|inner: Value| json!({"type": "object", "properties": {"x": inner}})) as fn(Value) -> Value),
        (128, |inner| json!({"type": "array", "items": inner})),
        (128, |inner| json!({"anyOf": [inner, {"type": "integer"}]})),
        (128, |inner| json!({"allOf": [inner]})),
        // Deeper than any JSON text that is read.
        (300, |inner| json!({"type": "object", "properties": {"x": inner}})),
        (300, |inner| json!({"allOf": [inner]})),
        (300, |inner| json!({"anyOf": [inner]})),
        (300, |inner| json!({"oneOf": [inner]})),
        (300, |inner| json!({"not": inner})),
    ] {
        let mut schema = json!({"type": "string"});
        for _ in 0..depth {
            schema = wrap(schema);
        }
        for schema in [json!({"type": "object", "properties": {"x": schema}}), schema] {
            let definition = with_schema("t", "d", schema.clone());
            for dialect in Dialect::ALL {
                for strict in [false, true] {
                    let export = export_with(dialect, &ExportOptions { strict }, [&definition]);
                    assert!(export.remarks.len() <= 102);
                }
            }
            let _ = import(&json!([{"functionDeclarations": [{"name": "t", "parameters": schema}]}]));
        }
    }
}

#[test]
fn a_model_in_strict_mode_stands_for_absence_with_null() {
    let definition = with_schema(
        "t",
        "d",
        json!({
            "type": "object",
            "properties": {
                "must": {"type": "string"},
                "may": {"type": "string"},
                "null_is_fine": {"type": ["string", "null"]},
                "inner": {"type": "object", "properties": {"may": {"type": "integer"}}, "additionalProperties": false},
                "list": {"type": "array", "items": {
                    "type": "object", "properties": {"may": {"enum": ["a", "b"]}}, "additionalProperties": false,
                }},
            },
            "required": ["must", "inner", "list"],
            "additionalProperties": false,
        }),
    );
    let export = export_with(Dialect::OpenAiResponses, &ExportOptions { strict: true }, [&definition]);
    assert_eq!(export.tools[0]["strict"], true);
    let sent = json!({
        "must": "x", "may": null, "null_is_fine": null, "inner": {"may": null}, "list": [{"may": null}, {"may": "a"}],
    });
    let back = export.arguments_back("t", sent.as_object().unwrap().clone());
    assert_eq!(
        Value::Object(back),
        json!({"must": "x", "null_is_fine": null, "inner": {}, "list": [{}, {"may": "a"}]}),
    );
}

#[test]
fn what_a_server_says_of_itself_is_not_believed() {
    let list = json!([{
        "name": "wipe", "description": "Wipes the disk", "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": true, "idempotentHint": true, "destructiveHint": false, "title": "Wipe"},
    }]);
    let import = import(&list).unwrap();
    let definition = &import.definitions[0];
    assert!(definition.has_side_effects() && !definition.idempotent && !definition.cacheable);
    assert_eq!(definition.annotations.destructive, Some(false));
    assert_eq!(definition.title.as_deref(), Some("Wipe"));
    assert_eq!(definition.metadata["hints"], json!({"readOnlyHint": true, "idempotentHint": true}));
    // Nor can it say so in haft's own words.
    let list = json!([{"name": "wipe", "parameters": {}, "constraints": {"allowSideEffects": false}}]);
    assert!(import_error(&list).contains("`constraints` means nothing here"));
}

fn import_error(list: &Value) -> String {
    import(list).unwrap_err().to_string()
}

#[test]
fn long_and_missing_texts_are_made_to_fit() {
    let list = json!([
        {"name": "a", "description": "é".repeat(5000), "inputSchema": {"type": "object"}, "title": "t".repeat(500)},
        {"name": "get_time", "inputSchema": {"type": "object"}},
        {"name": "b", "description": " ", "title": "Bee", "inputSchema": {"type": "object"}},
    ]);
    let import = import(&list).unwrap();
    assert!(import.definitions.iter().all(|definition| definition.check().is_empty()));
    assert_eq!(import.definitions[0].description.chars().count(), 1024);
    assert_eq!(import.definitions[1].description, "get time");
    assert_eq!(import.definitions[2].description, "Bee");
    let shortened = import.remarks.iter().filter(|remark| remark.change == Change::Shortened).count();
    assert_eq!(shortened, 2);
}

#[test]
fn ten_thousand_tools_take_less_than_a_second() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where"},
            "mode": {"type": ["string", "null"], "enum": ["fast", "safe", null]},
            "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
        },
        "required": ["path"],
        "additionalProperties": false,
        "$defs": {"Line": {"type": "object", "properties": {"text": {"type": "string"}, "at": {"type": "integer"}}}},
    });
    let definitions: Vec<ToolDefinition> = (0..10_000)
        .rev()
        .map(|n| with_schema(&format!("tool_{n:05}"), "Does something", schema.clone()))
        .collect();
    // Without optimisation everything takes several times as long.
    let most = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 1 });
    for dialect in Dialect::ALL {
        let export = fast_enough(&format!("export {dialect}"), most, || export(dialect, &definitions));
        assert_eq!(export.tools.len(), 10_000);
        assert_eq!(export.name_back("tool_00007"), Some("tool_00007"));
        let value = export.to_value();
        let import = fast_enough(&format!("import {dialect}"), most, || import(&value)).unwrap();
        assert_eq!(import.definitions.len(), 10_000);
    }
}
