//! What a call says beside its command. `PATH=./bin` makes `git status` another program, and so does what it reads.

use super::ArgumentPattern;
use crate::command;
use serde_json::{Map, Value};

/// The command itself, and what changes how long it may run.
const HARMLESS: [&str; 2] = ["command", "timeout"];
/// The variables of a command.
const ENV: &str = "env";

/// Whether a call has more to say than the command, and more than a rule with these patterns names. `program` is the
/// first word of the command, where it is known.
pub(super) fn says_more(
    arguments: &Map<String, Value>,
    program: Option<&str>,
    named: &[ArgumentPattern],
) -> bool {
    let names = |pointer: &str| named.iter().any(|pattern| pattern.pointer == pointer);
    arguments.iter().filter(|(_, value)| !is_nothing(value)).any(|(name, value)| {
        let pointer = format!("/{}", escaped(name));
        match value {
            _ if names(&pointer) => false,
            // A program by its path is another one in another folder.
            _ if name == "working_dir" => program.is_some_and(is_relative_path),
            _ if HARMLESS.contains(&name.as_str()) => false,
            // Each member that is there must be named: a rule about one variable says nothing about the others.
            // Those that a line may set, too, change nothing about what runs.
            Value::Object(members) => !members.iter().all(|(member, value)| {
                names(&format!("{pointer}/{}", escaped(member))) || (name == ENV && is_tame(member, value))
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => true,
        }
    })
}

/// Whether a variable is one that the line itself may set without a question.
fn is_tame(name: &str, value: &Value) -> bool {
    value.as_str().is_some_and(|value| command::is_tame_value(name, value))
}

/// What is there and says nothing.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn is_relative_path(program: &str) -> bool {
    program.contains(['/', '\\']) && !program.starts_with('/')
}

/// A name as it stands in a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_stands_beside_a_command_is_named_or_asked_about() {
        let cases = [
            (json!({"command": "git status"}), &[][..], false),
            (json!({"command": "git status", "timeout": 5, "working_dir": "src"}), &[], false),
            (json!({"command": "git status", "env": {}, "stdin": null}), &[], false),
            (json!({"command": "git status", "env": {"PATH": "./bin"}}), &[], true),
            (
                json!({"command": "git status", "env": {"GIT_CONFIG_COUNT": "1"}}),
                &["/env/GIT_CONFIG_COUNT"],
                false,
            ),
            (json!({"command": "git status", "env": {"CI": "1", "PATH": "./bin"}}), &["/env/CI"], true),
            (json!({"command": "git status", "env": {"CI": "1", "NO_COLOR": ""}}), &[], false),
            (json!({"command": "git status", "env": {"CI": "1", "PATH": "./bin"}}), &["/env/PATH"], false),
            (json!({"command": "git status", "env": {"CI": 1}}), &[], true),
            (json!({"command": "git status", "terminal": {"CI": "1"}}), &[], true),
            (json!({"command": "git status", "env": {"a/b": "1"}}), &["/env/a~1b"], false),
            (json!({"command": "git status", "stdin": "x"}), &[], true),
            (json!({"command": "git status", "stdin": "x"}), &["/stdin"], false),
            (json!({"command": "git status", "background": true}), &[], true),
            (json!({"command": "git status", "terminal": {"rows": 1}}), &[], true),
            (json!({"command": "./x", "working_dir": "src"}), &[], true),
            (json!({"command": "./x", "working_dir": "src"}), &["/working_dir"], false),
            (json!({"command": "/bin/x", "working_dir": "src"}), &[], false),
        ];
        for (arguments, pointers, expected) in cases {
            let named: Vec<ArgumentPattern> = pointers
                .iter()
                .map(|pointer| ArgumentPattern { pointer: (*pointer).to_owned(), pattern: "*".to_owned() })
                .collect();
            let program = arguments["command"].as_str().unwrap().split(' ').next();
            let more = says_more(arguments.as_object().unwrap(), program, &named);
            assert_eq!(more, expected, "{arguments} {pointers:?}");
        }
    }
}
