//! A grant covers what was shown: whatever other argument of a built-in tool is changed, added or left out, it holds no
//! more. The arguments come from the tools' own schemas, so a new one is tried out without anybody thinking of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A test may panic: that is how it fails.

use haft_core::{CallContext, Footprint, Resource, ToolDefinition, port::Subject};
use haft_guard::{Covers, Grant, Lasts, command::Shell};
use haft_tools::{
    CommandToolSettings, FileToolSettings, builtin, command_tools, commands::BackgroundCommands, file_tools,
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, sync::Arc};

fn definitions() -> Vec<Arc<ToolDefinition>> {
    let commands = command_tools(&CommandToolSettings::default(), &BackgroundCommands::default());
    let tools = builtin().into_iter().chain(file_tools(&FileToolSettings::default())).chain(commands);
    tools.map(|tool| Arc::clone(tool.definition())).collect()
}

/// Two values that a schema has room for; what they mean does not matter to a grant.
fn two_values(schema: &Value, root: &Value) -> [Value; 2] {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        return two_values(root.pointer(name.trim_start_matches('#')).unwrap(), root);
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(any) = schema.get(key).and_then(Value::as_array) {
            // Choices that are written one by one, or the first of several.
            let constants: Vec<Value> = any.iter().filter_map(|one| one.get("const").cloned()).collect();
            return match constants.as_slice() {
                [first, second, ..] => [first.clone(), second.clone()],
                _ => two_values(&any[0], root),
            };
        }
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        return [choices[0].clone(), choices.get(1).cloned().unwrap_or(Value::Null)];
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds[0].as_str(),
        Some(kind) => kind.as_str(),
        None => None,
    };
    match kind {
        Some("string") => [json!("one"), json!("two")],
        Some("integer" | "number") => [json!(1), json!(2)],
        Some("boolean") => [json!(false), json!(true)],
        Some("array") => [json!(["one"]), json!(["two"])],
        Some("object") => [json!({"ONE": "1"}), json!({"ONE": "2"})],
        _ => [json!("one"), json!({"two": 2})],
    }
}

fn covers(
    covers: &Covers,
    definition: &ToolDefinition,
    arguments: &Map<String, Value>,
    footprint: &Footprint,
) -> bool {
    let context = CallContext::new("acme", "agent");
    let now = Timestamp::UNIX_EPOCH;
    let subject = Subject {
        context: &context,
        definition,
        arguments,
        footprint,
        folder: "/w",
        confirm: None,
        accepts: haft_core::port::AcceptAnswers::from_any(),
        now,
    };
    Grant::new("g", "acme", covers.clone(), Lasts::Always).covers(&subject, Shell::Posix)
}

/// What a grant for a folder or a host leaves free: names and contents. Written down by hand: an argument that says how
/// a tool acts does not belong here.
const FREE: &[&str] = &[
    "apply_patch.patch",
    "call_tool.name",
    "copy_file.destination",
    "copy_file.source",
    "delete_file.expected_sha256",
    "delete_file.path",
    "edit_file.expected_sha256",
    "edit_file.new_text",
    "edit_file.old_text",
    "edit_file.path",
    "get_logs.tool",
    "get_metrics.tool",
    "glob.path",
    "glob.pattern",
    "inspect_tool.name",
    "kill_command.id",
    "list_directory.path",
    "move_file.destination",
    "move_file.source",
    "poll_command.id",
    "read_file.path",
    "read_output.handle",
    "read_output.pattern",
    "resize_command.id",
    "search_files.exclude",
    "search_files.include",
    "search_files.path",
    "search_files.pattern",
    "search_tools.query",
    "signal_command.id",
    "undo_changes.execution_id",
    "validate_content.content",
    "write_command.id",
    "write_command.input",
    "write_file.content",
    "write_file.expected_sha256",
    "write_file.path",
];

#[test]
fn whatever_argument_is_changed_alone_the_grant_does_not_cover_it() {
    let context = CallContext::new("acme", "agent");
    let footprints = [
        Footprint::writes([Resource::path("/w/src/a")]),
        Footprint::reads([Resource::Host("example.com".into())]),
        Footprint::undeclared(true),
    ];
    let (mut tried, mut free) = (0, BTreeSet::new());
    for definition in definitions() {
        let schema = definition.parameters.to_schema();
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let value = |name: &str, which: usize| match name {
            "command" => json!(["git status", "rm -rf x"][which]),
            _ => two_values(&properties[name], &schema)[which].clone(),
        };
        let whole: Map<String, Value> =
            properties.keys().map(|name| (name.clone(), value(name, 0))).collect();
        // With every argument, and with the command alone: others are then new.
        let bare = whole.clone().into_iter().filter(|(name, _)| name == "command").collect();
        for (base, footprint) in
            [&whole, &bare].into_iter().flat_map(|base| footprints.iter().map(move |f| (base, f)))
        {
            let subject = Subject {
                context: &context,
                definition: &definition,
                arguments: base,
                footprint,
                folder: "/w",
                confirm: None,
                accepts: haft_core::port::AcceptAnswers::from_any(),
                now: Timestamp::UNIX_EPOCH,
            };
            for offered in Covers::suggestions(&subject, "what it does", Shell::Posix) {
                assert!(covers(&offered, &definition, base, footprint), "the control: {offered}");
                for name in properties.keys() {
                    let mut changed = base.clone();
                    changed.insert(name.clone(), value(name, 1));
                    let mut less = base.clone();
                    less.remove(name);
                    for other in [changed, less].iter().filter(|other| *other != base) {
                        tried += 1;
                        if covers(&offered, &definition, other, footprint) {
                            assert!(
                                !matches!(offered, Covers::ExactCall { .. } | Covers::Commands { .. }),
                                "{offered}: {name}"
                            );
                            free.insert(format!("{}.{name}", definition.name));
                        }
                    }
                }
            }
        }
    }
    assert!(tried > 500, "{tried}");
    let expected: BTreeSet<String> = FREE.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(free, expected);
}
