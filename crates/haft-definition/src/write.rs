//! From a definition to text.

use haft_core::ToolDefinition;
use serde_json::{Map, Value};

use crate::Format;
use crate::toml_tree::JSON_KEY;

/// The fields that become lines at the top, in their order; the rest become sections.
const LINES: [&str; 13] = [
    "name",
    "title",
    "description",
    "category",
    "version",
    "tier",
    "source",
    "risk",
    "requiredPermissions",
    "requiresConfirmation",
    "idempotent",
    "cacheable",
    "aliases",
];
const CONSTRAINTS: [&str; 6] = [
    "defaultTimeout",
    "maxExecutionTime",
    "maxOutputSize",
    "maxArgumentSize",
    "allowSideEffects",
    "requiredIsolation",
];
const RETRY: [&str; 3] = ["maxRetries", "base", "on"];
const ANNOTATIONS: [&str; 2] = ["destructive", "openWorld"];
const COMMAND: [&str; 14] = [
    "program",
    "args",
    "input",
    "positional",
    "flags",
    "output",
    "reads",
    "writes",
    "env",
    "hosts",
    "presets",
    "files",
    "workingDir",
    "limits",
];
const HTTP: [&str; 5] = ["url", "method", "query", "body", "headers"];
const MCP: [&str; 11] =
    ["server", "tool", "program", "args", "env", "hosts", "presets", "files", "limits", "url", "headers"];
const PARAMETER: [&str; 7] = ["name", "description", "type", "required", "default", "enum", "schema"];
/// How deep a value may be in TOML; a deeper one is written as JSON text.
const MAX_DEPTH: usize = 32;

/// Writes a definition, such that [`read`](crate::read()) gives the same.
///
/// ```
/// use haft_core::ToolDefinition;
/// use haft_definition::{Format, read, write};
/// let definition = ToolDefinition::new("ping", "Answers at once");
/// let text = write(&definition, Format::Toml);
/// assert!(text.starts_with("name = \"ping\"\ndescription = \"Answers at once\"\ncategory = \"System\"\n"));
/// assert_eq!(read(&text, Format::Toml), Ok(definition));
/// ```
pub fn write(definition: &ToolDefinition, format: Format) -> String {
    match format {
        Format::Json => {
            // A definition is made of names, texts, numbers and values: all of that can be written.
            let mut text = serde_json::to_string_pretty(definition).unwrap_or_default();
            text.push('\n');
            text
        }
        Format::Toml => match serde_json::to_value(definition) {
            Ok(Value::Object(fields)) => toml_text(fields),
            _ => String::new(),
        },
    }
}

fn toml_text(mut fields: Map<String, Value>) -> String {
    let mut text = String::new();
    lines(&mut text, &mut fields, &LINES);
    // Those that are sections only where they are not empty, or not just true or false.
    for name in ["parameters", "outputSchema"] {
        if fields.get(name).is_some_and(|value| value == &Value::Array(vec![]) || value.is_boolean()) {
            lines(&mut text, &mut fields, &[name]);
        }
    }
    let sections = [
        ("command", &COMMAND[..]),
        ("http", &HTTP),
        ("mcp", &MCP),
        ("constraints", &CONSTRAINTS),
        ("retry", &RETRY),
        ("annotations", &ANNOTATIONS),
    ];
    for (name, order) in sections {
        if let Some(Value::Object(mut section)) = fields.remove(name) {
            text.push_str(&format!("\n[{name}]\n"));
            lines(&mut text, &mut section, order);
        }
    }
    if let Some(Value::Array(parameters)) = fields.get("parameters").cloned() {
        fields.remove("parameters");
        for parameter in parameters {
            text.push_str("\n[[parameters]]\n");
            if let Value::Object(mut parameter) = parameter {
                lines(&mut text, &mut parameter, &PARAMETER);
            }
        }
    }
    for name in ["parameters", "outputSchema", "settingsSchema", "flow", "metadata"] {
        let Some(value) = fields.remove(name) else { continue };
        let section = toml::Table::from_iter([(name.to_owned(), toml_value(&value, 1))]);
        text.push('\n');
        // What cannot be a section can be JSON text.
        text.push_str(
            &toml::to_string_pretty(&section).unwrap_or_else(|_| format!("{name} = {}\n", json_text(&value))),
        );
    }
    text
}

/// Writes those of the fields that are there, in that order.
fn lines(text: &mut String, fields: &mut Map<String, Value>, order: &[&str]) {
    for name in order {
        if let Some(value) = fields.remove(*name) {
            text.push_str(&format!("{name} = {}\n", toml_value(&value, 1)));
        }
    }
}

/// The value in TOML; what TOML cannot say as a table with JSON text in it.
fn toml_value(value: &Value, depth: usize) -> toml::Value {
    let as_json = || json_text(value);
    match value {
        _ if depth > MAX_DEPTH => as_json(),
        Value::Null => as_json(),
        Value::Bool(on) => toml::Value::Boolean(*on),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => toml::Value::Integer(integer),
            (None, Some(float)) if number.is_f64() => toml::Value::Float(float),
            (None, _) => as_json(),
        },
        Value::String(text) => toml::Value::String(text.clone()),
        Value::Array(items) => {
            toml::Value::Array(items.iter().map(|item| toml_value(item, depth + 1)).collect())
        }
        // It would be read as the value that the text in it stands for.
        Value::Object(members) if members.len() == 1 && members.contains_key(JSON_KEY) => as_json(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), toml_value(value, depth + 1)));
            toml::Value::Table(members.collect())
        }
    }
}

fn json_text(value: &Value) -> toml::Value {
    let text = toml::Value::String(value.to_string());
    toml::Value::Table(toml::Table::from_iter([(JSON_KEY.to_owned(), text)]))
}
