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
    /// All others that the call had, by name. Any that it had not must be absent.
    #[serde(default)]
    pub names: Vec<String>,
    /// SHA-256, in hex, over their values, which may be secret; empty where there are none.
    #[serde(default)]
    pub digest: String,
}

impl Fixed {
    /// Everything but what is free, as it is in these arguments.
    pub fn of(arguments: &Map<String, Value>, free: Vec<String>) -> Self {
        let kept = |name: &&String| !free.contains(name);
        let names: Vec<String> = arguments.keys().filter(kept).cloned().collect();
        let digest = match names.is_empty() {
            true => String::new(),
            false => {
                let values = names.iter().map(|name| (name.clone(), arguments[name].clone())).collect();
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
        *self == Fixed::of(arguments, self.free.clone())
    }
}

/// Arguments that hold names and contents, such as paths and texts: what they may be about is said by a folder or a host.
/// Switches, numbers and choices say how a tool acts, so they are not among them, nor is what the tool does not declare.
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
