//! A tool's definition in words, for models and people.

use haft_core::{ToolDefinition, iso_duration};
use serde_json::{Map, Value};
use std::{fmt::Write as _, time::Duration};

/// One parameter of a tool in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterRow {
    /// The name of the parameter.
    pub name: String,
    /// What it takes, such as `string`, `"json" or "toml"`, `list of integer`.
    pub kind: String,
    /// Whether it must be there.
    pub required: bool,
    /// What it is when left out, as JSON.
    pub default: Option<String>,
    /// What it is for.
    pub description: String,
}

/// The parameters of a tool: those that must be there first.
///
/// ```
/// use haft_sdk::{Tool, typed};
/// let tool = typed(haft_tools::ValidateContent);
/// let rows = haft_tools::describe::parameters(tool.definition());
/// assert_eq!((rows[0].name.as_str(), rows[0].required), ("content", true));
/// assert_eq!((rows[1].name.as_str(), rows[1].kind.as_str()), ("format", "\"json\" or \"toml\""));
/// ```
pub fn parameters(definition: &ToolDefinition) -> Vec<ParameterRow> {
    let schema = definition.parameters.to_schema();
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let mut rows: Vec<ParameterRow> = properties
        .iter()
        .map(|(name, property)| ParameterRow {
            name: name.clone(),
            kind: kind(property),
            required: required.contains(&name.as_str()),
            default: property.get("default").filter(|default| !default.is_null()).map(Value::to_string),
            description: property
                .get("description")
                .and_then(Value::as_str)
                .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
                .unwrap_or_default(),
        })
        .collect();
    rows.sort_by_key(|row| !row.required);
    rows
}

/// What a schema takes, in a few words.
///
/// ```
/// use serde_json::json;
/// let kind = haft_tools::describe::kind;
/// assert_eq!(kind(&json!({"type": ["integer", "null"], "minimum": 1, "maximum": 9})), "integer 1 to 9");
/// assert_eq!(kind(&json!({"type": "array", "items": {"type": "string"}})), "list of string");
/// assert_eq!(kind(&json!({"enum": ["a", "b"]})), r#""a" or "b""#);
/// assert_eq!(kind(&json!(true)), "anything");
/// ```
pub fn kind(schema: &Value) -> String {
    kind_within(schema, 4)
}

fn kind_within(schema: &Value, depth: usize) -> String {
    if depth == 0 {
        return "…".to_owned();
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return either(values.iter().filter(|value| !value.is_null()).map(Value::to_string));
    }
    for union in ["oneOf", "anyOf"] {
        if let Some(branches) = schema.get(union).and_then(Value::as_array) {
            let branches = branches.iter().filter(|branch| branch.get("type") != Some(&"null".into()));
            return either(branches.map(|branch| kind_within(branch, depth - 1)));
        }
    }
    match schema.get("type") {
        Some(Value::String(name)) => single(name, schema, depth),
        // Nothing is what an optional parameter is when it is left out; no need to say so.
        Some(Value::Array(names)) => either(
            names
                .iter()
                .filter_map(Value::as_str)
                .filter(|name| *name != "null")
                .map(|name| single(name, schema, depth)),
        ),
        _ => "anything".to_owned(),
    }
}

fn single(name: &str, schema: &Value, depth: usize) -> String {
    match name {
        "array" => match schema.get("items") {
            Some(items) => format!("list of {}", kind_within(items, depth - 1)),
            None => "list".to_owned(),
        },
        "integer" | "number" => match (schema.get("minimum"), schema.get("maximum")) {
            (Some(from), Some(to)) => format!("{name} {from} to {to}"),
            (Some(from), None) => format!("{name} from {from}"),
            (None, Some(to)) => format!("{name} up to {to}"),
            (None, None) => name.to_owned(),
        },
        _ => name.to_owned(),
    }
}

fn either(words: impl Iterator<Item = String>) -> String {
    let mut unique: Vec<String> = Vec::new();
    for word in words {
        if !unique.contains(&word) {
            unique.push(word);
        }
    }
    match unique.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

/// The whole definition in words, a line for each thing.
///
/// ```
/// use haft_sdk::{Tool, typed};
/// let text = haft_tools::describe::in_words(typed(haft_tools::InspectTool).definition());
/// assert!(text.starts_with("inspect_tool 1.0.0\nSays what a tool takes"), "{text}");
/// assert!(text.contains("\n  name (string, required): The name of the tool, or one of its aliases."), "{text}");
/// ```
pub fn in_words(definition: &ToolDefinition) -> String {
    let mut out = definition.name.clone();
    // Writing to a String cannot fail.
    if let Some(version) = &definition.version {
        let _ = write!(out, " {version}");
    }
    let _ = write!(out, "\n{}", definition.description.trim());
    let rows = parameters(definition);
    out.push_str(if rows.is_empty() { "\nParameters: none" } else { "\nParameters:" });
    for row in rows {
        let need = if row.required { "required" } else { "optional" };
        let _ = write!(out, "\n  {} ({}, {need}", row.name, row.kind);
        if let Some(default) = row.default {
            let _ = write!(out, ", default {default}");
        }
        let _ = write!(out, "): {}", row.description);
    }
    for (name, value) in facts(definition) {
        let _ = write!(out, "\n{name}: {value}");
    }
    out
}

/// What else there is to know about a tool: a name and a value for each fact.
///
/// ```
/// use haft_sdk::{Tool, typed};
/// let facts = haft_tools::describe::facts(typed(haft_tools::GetMetrics).definition());
/// assert!(facts.contains(&("Changes things", "no".to_owned())));
/// ```
pub fn facts(definition: &ToolDefinition) -> Vec<(&'static str, String)> {
    let constraints = &definition.constraints;
    let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let mut facts = vec![
        ("Category", format!("{:?}", definition.category)),
        ("Risk", format!("{:?}", definition.risk()).to_lowercase()),
        ("Changes things", yes_no(definition.has_side_effects())),
        ("Always asks a person", yes_no(definition.requires_confirmation)),
        ("Isolation", format!("{:?}", constraints.required_isolation).to_lowercase()),
    ];
    if let Some(timeout) = constraints.default_timeout {
        facts.push(("Timeout", time(timeout)));
    }
    facts.push(("Longest timeout", time(constraints.max_execution_time)));
    if let Some(bytes) = constraints.max_argument_size {
        facts.push(("Most bytes of arguments", bytes.to_string()));
    }
    if !definition.required_permissions.is_empty() {
        facts.push(("Permissions", definition.required_permissions.join(", ")));
    }
    if !definition.aliases.is_empty() {
        facts.push(("Also called", definition.aliases.join(", ")));
    }
    facts
}

/// `1m30s`.
fn time(duration: Duration) -> String {
    iso_duration::format(duration).trim_start_matches("PT").to_ascii_lowercase()
}
