//! Fields in snake_case, as TOML has them, become those in camelCase, as the JSON form has them.

use crate::error::{Position, ReadError};
use crate::tree::{Kind, Node};

/// The fields of more than one word, by where they are.
const WHOLE: [&str; 4] = ["outputSchema", "requiredPermissions", "requiresConfirmation", "settingsSchema"];
const CONSTRAINTS: [&str; 6] = [
    "defaultTimeout",
    "maxExecutionTime",
    "maxOutputSize",
    "maxArgumentSize",
    "allowSideEffects",
    "requiredIsolation",
];
const ANNOTATIONS: [&str; 1] = ["openWorld"];
const RETRY: [&str; 1] = ["maxRetries"];
const COMMAND: [&str; 1] = ["workingDir"];
const LIMITS: [&str; 12] = [
    "memoryBytes",
    "cpuMillicores",
    "cpuTime",
    "wallTime",
    "openFiles",
    "fileBytes",
    "scratchBytes",
    "outputBytes",
    "readBytes",
    "writtenBytes",
    "ioOperations",
    "ioBytesPerSecond",
];

/// Renames them; a field that is there in both spellings is an error.
pub(crate) fn unify(tree: &mut Node, text: &str) -> Vec<ReadError> {
    let mut errors = Vec::new();
    rename(tree, &WHOLE, text, &mut errors);
    for (name, fields) in [
        ("constraints", &CONSTRAINTS[..]),
        ("annotations", &ANNOTATIONS),
        ("command", &COMMAND),
        ("retry", &RETRY),
    ] {
        if let Some(table) = tree.member_mut(name) {
            rename(table, fields, text, &mut errors);
        }
    }
    for name in ["command", "mcp"] {
        if let Some(limits) = tree.member_mut(name).and_then(|table| table.member_mut("limits")) {
            rename(limits, &LIMITS, text, &mut errors);
        }
    }
    errors
}

fn rename(table: &mut Node, fields: &[&str], text: &str, errors: &mut Vec<ReadError>) {
    let Kind::Table(members) = &mut table.kind else { return };
    for field in fields {
        let snake = snake_case(field);
        let Some(old) = members.iter().position(|(key, _)| key.name == snake) else { continue };
        if members.iter().any(|(key, _)| key.name == *field) {
            let (key, _) = members.remove(old);
            errors.push(ReadError {
                position: Position::of(text, key.at),
                problem: format!("`{snake}` and `{field}` are the same field"),
                help: Some("keep one of the two".to_owned()),
            });
        } else {
            (*field).clone_into(&mut members[old].0.name);
        }
    }
}

fn snake_case(field: &str) -> String {
    let mut snake = String::new();
    for letter in field.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// The lists here are those of the schema of the file.
    #[test]
    fn every_field_of_several_words_is_known() {
        let schema: Value = serde_json::from_str(crate::FILE_SCHEMA).unwrap();
        for (pointer, fields) in [
            ("/properties", &WHOLE[..]),
            ("/$defs/constraints/properties", &CONSTRAINTS),
            ("/$defs/annotations/properties", &ANNOTATIONS),
            ("/$defs/command/properties", &COMMAND),
            ("/$defs/retry/properties", &RETRY),
            ("/$defs/limits/properties", &LIMITS),
            ("/$defs/http/properties", &[]),
            ("/$defs/mcp/properties", &[]),
            ("/$defs/parameter/properties", &[]),
        ] {
            let all = schema.pointer(pointer).unwrap().as_object().unwrap().keys();
            let mut several: Vec<&str> =
                all.map(String::as_str).filter(|name| name.contains(char::is_uppercase)).collect();
            let mut fields = fields.to_vec();
            several.sort_unstable();
            fields.sort_unstable();
            assert_eq!(several, fields, "{pointer}");
        }
    }
}
