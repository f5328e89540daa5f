//! The arguments that a grant holds to.

use haft_core::{ToolDefinition, text::spelled_line};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::fmt;

/// The argument that holds a command.
pub(crate) const COMMAND: &str = "command";

/// The arguments of a call that a grant holds to. The default frees none and knows none: it fits only a call without
/// arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixed {
    /// Arguments that may be anything, because the grant says in words what they may be about.
    #[serde(default)]
    pub free: Vec<String>,
    /// All others that the call had and that say something, by name. Any that it had not must be absent, and an empty
    /// one must stay empty.
    #[serde(default)]
    pub names: Vec<String>,
    /// SHA-256, in hex, over all others with their values, which may be secret; empty where there are none.
    #[serde(default)]
    pub digest: String,
}

impl Fixed {
    /// Everything but what is free, as it is in these arguments.
    pub fn of(arguments: &Map<String, Value>, free: Vec<String>) -> Self {
        let kept = others(arguments, &free);
        let names =
            kept.iter().filter(|(_, value)| !is_empty(value)).map(|(name, _)| (*name).clone()).collect();
        let digest = match kept.is_empty() {
            true => String::new(),
            false => {
                let values = kept.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                let mut text = String::new();
                canonical(&Value::Object(values), &mut text);
                crate::hex(&Sha256::new_with_prefix(b"haft-grant-fixed-1\0").chain_update(text).finalize())
            }
        };
        Fixed { free, names, digest }
    }

    /// No argument but the command, which is free: what a grant for commands held to before it looked at the others.
    pub fn no_other_than_the_command() -> Self {
        Fixed { free: vec![COMMAND.to_owned()], ..Fixed::default() }
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Fixed::default()
    }

    /// Whether everything that is not free is as it was.
    pub(crate) fn fits(&self, arguments: &Map<String, Value>) -> bool {
        let now = Fixed::of(arguments, self.free.clone());
        // An earlier haft named the empty ones, too.
        let all = || others(arguments, &self.free).into_iter().map(|(name, _)| name);
        self.digest == now.digest && (self.names == now.names || all().eq(&self.names))
    }
}

/// The arguments that are not free.
fn others<'a>(arguments: &'a Map<String, Value>, free: &[String]) -> Vec<(&'a String, &'a Value)> {
    arguments.iter().filter(|(name, _)| !free.contains(name)).collect()
}

/// Whether a value says nothing, as `env` does where it is filled in for a call that has none.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Arguments that hold names and contents, such as paths and texts: what they may be about is said by a folder or a
/// host. Switches, numbers and choices say how a tool acts, so they are not among them, nor is what the tool does not
/// declare.
pub(crate) fn names_and_contents(definition: &ToolDefinition) -> Vec<String> {
    let schema = definition.parameters.to_schema();
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let is_one = |schema: &Value| {
        let is_choice =
            ["enum", "const", "$ref", "oneOf", "anyOf", "allOf"].iter().any(|key| schema.get(key).is_some());
        let is_text = |kind: &Value| kind == "string" || kind == "array";
        let typed = match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().all(|kind| is_text(kind) || kind == "null"),
            Some(kind) => is_text(kind),
            None => false,
        };
        typed && !is_choice
    };
    properties.iter().filter(|(_, schema)| is_one(schema)).map(|(name, _)| name.clone()).collect()
}

/// The arguments that stay as they were, as the end of a sentence; nothing where there are none.
impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.names.iter().map(|name| format!("`{}`", spelled_line(name))).collect();
        match names.split_last() {
            None => Ok(()),
            Some((one, [])) => write!(f, ", with the same {one} as here"),
            Some((last, others)) => write!(f, ", with the same {} and {last} as here", others.join(", ")),
        }
    }
}

/// A value as text, with members by name: the order in which they were written is nothing.
pub(crate) fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            out.push('{');
            for name in names {
                out.push_str(&Value::String(name.clone()).to_string());
                out.push(':');
                canonical(&members[name], out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}
