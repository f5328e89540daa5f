//! Files that describe tools: one definition, a list of them, or `tools` with a list; as JSON or TOML.

use crate::{DeclaredTool, Error, Haft, RegisterError, ToolDefinition};
use haft_core::DefinitionProblem;
pub(super) use haft_tools::validate_content::Format;
use haft_tools::validate_content::{Args, Problem, validate};
use serde_json::{Value, json};
use std::path::Path;

/// The form of a definition, as a JSON Schema.
const FORM: &str = include_str!("definition_file.schema.json");
/// However many there are, no more are listed.
const MOST_PROBLEMS: u32 = 1000;

/// The format of a file: by the end of its name, else by how the text begins.
pub(super) fn format(path: &Path, text: &str) -> Format {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "json" => Format::Json,
        "toml" => Format::Toml,
        // `[` may begin either: a list, or the name of a table.
        _ if text.trim_start().starts_with('{') || serde_json::from_str::<Value>(text).is_ok() => {
            Format::Json
        }
        _ => Format::Toml,
    }
}

/// The definitions in a text, or every problem with them.
pub(super) fn read(text: &str, format: Format) -> Result<Vec<ToolDefinition>, Vec<DefinitionProblem>> {
    let value = parse(text, format)?;
    let (entries, base) = entries(&value);
    let mut definitions = Vec::with_capacity(entries.len());
    let mut problems = check_form(text, format, &value);
    if problems.is_empty() {
        for (index, entry) in entries.iter().enumerate() {
            let place = base.as_ref().map(|base| format!("{base}[{index}]"));
            match serde_json::from_value::<ToolDefinition>(Value::clone(entry)) {
                Ok(definition) => {
                    problems.extend(check(&definition).into_iter().map(|problem| within(&place, problem)));
                    definitions.push(definition);
                }
                Err(error) => problems
                    .extend(unreadable(entry, &error).into_iter().map(|problem| within(&place, problem))),
            }
        }
        problems.extend(twice(&definitions, base.as_deref()));
    }
    if problems.is_empty() { Ok(definitions) } else { Err(problems) }
}

/// Every rule that a definition breaks: what would be said if it were registered now.
pub(super) fn check(definition: &ToolDefinition) -> Vec<DefinitionProblem> {
    let alone = Haft::builder().without_builtins().tool(DeclaredTool::new(definition.clone())).build();
    match alone {
        Err(Error::Register(RegisterError::BadDefinition { problems, .. })) => problems,
        // An alias that is the name is all that can be a duplicate in it.
        Err(error) => vec![problem("aliases", error.to_string(), "name it once")],
        Ok(_) => Vec::new(),
    }
}

fn problem(
    place: impl Into<String>,
    problem: impl Into<String>,
    fix: impl Into<String>,
) -> DefinitionProblem {
    DefinitionProblem { place: place.into(), problem: problem.into(), fix: fix.into() }
}

fn within(place: &Option<String>, problem: DefinitionProblem) -> DefinitionProblem {
    match place {
        Some(place) => DefinitionProblem { place: format!("{place}.{}", problem.place), ..problem },
        None => problem,
    }
}

fn parse(text: &str, format: Format) -> Result<Value, Vec<DefinitionProblem>> {
    let found = report(text, format, None);
    if !found.is_empty() {
        return Err(found);
    }
    let parsed = match format {
        Format::Json => serde_json::from_str(text).map_err(|error| error.to_string()),
        Format::Toml => toml::from_str(text).map_err(|error| error.message().to_owned()),
    };
    parsed.map_err(|error| vec![problem("the file", error, format!("write it as {format}"))])
}

/// The definitions in it, and the place of their list where there is one.
fn entries(value: &Value) -> (Vec<&Value>, Option<String>) {
    match value {
        Value::Array(list) => (list.iter().collect(), Some(String::new())),
        Value::Object(object) => match object.get("tools") {
            Some(Value::Array(list)) => (list.iter().collect(), Some("tools".to_owned())),
            _ => (vec![value], None),
        },
        _ => (vec![value], None),
    }
}

/// Whether each member is there that must be, known, and of its type.
fn check_form(text: &str, format: Format, value: &Value) -> Vec<DefinitionProblem> {
    let Ok(mut form) = serde_json::from_str::<Value>(FORM) else { return Vec::new() };
    let definitions = json!({"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/definition"}});
    let root = match value {
        Value::Array(_) => definitions,
        Value::Object(object) if object.contains_key("tools") => {
            json!({"required": ["tools"], "additionalProperties": false, "properties": {"tools": definitions}})
        }
        _ => json!({"$ref": "#/$defs/definition"}),
    };
    if let (Value::Object(form), Value::Object(root)) = (&mut form, root) {
        form.extend(root);
    }
    report(text, format, Some(form))
}

fn report(text: &str, format: Format, schema: Option<Value>) -> Vec<DefinitionProblem> {
    let args = Args { content: text.to_owned(), format, schema, max_problems: Some(MOST_PROBLEMS) };
    match validate(&args) {
        Ok(report) => report.problems.into_iter().map(placed).collect(),
        // The schema is ours. Should it fail, the definitions are still read and checked.
        Err(_) => Vec::new(),
    }
}

fn placed(found: Problem) -> DefinitionProblem {
    let place = format!("line {}, column {}", found.line, found.column);
    let place = match found.pointer.as_deref() {
        Some(pointer) if !pointer.is_empty() => format!("{place}: {}", dotted(pointer)),
        _ => place,
    };
    let fix = found.hint.unwrap_or_else(|| fix(&found.rule).to_owned());
    problem(place, found.message, fix)
}

/// What to do about a broken rule of the form.
fn fix(rule: &str) -> &'static str {
    match rule {
        "required" => "add it",
        "additionalProperties" => "correct its name, or remove it; what is yours alone goes into `metadata`",
        "minItems" => "describe at least one tool",
        "enum" => "use one of those",
        _ => "`haft tools export validate_content` shows how a definition is written",
    }
}

/// `/tools/0/name` as the other rules write it: `tools[0].name`.
fn dotted(pointer: &str) -> String {
    let mut out = String::new();
    for step in pointer.split('/').skip(1) {
        match step.parse::<usize>() {
            Ok(index) => out.push_str(&format!("[{index}]")),
            Err(_) if out.is_empty() => out.push_str(step),
            Err(_) => out.push_str(&format!(".{step}")),
        }
    }
    out
}

/// Which members cannot be read, each by itself: the form says nothing about the text of a time.
fn unreadable(entry: &Value, whole: &serde_json::Error) -> Vec<DefinitionProblem> {
    let fix = "write it as the description of tools says";
    let members = entry.as_object().into_iter().flatten();
    let mut found: Vec<DefinitionProblem> = members
        .filter(|(name, _)| !matches!(name.as_str(), "name" | "description"))
        .filter_map(|(name, value)| {
            let alone = json!({"name": "n", "description": "d", name: value});
            let error = serde_json::from_value::<ToolDefinition>(alone).err()?;
            Some(problem(name, error.to_string(), fix))
        })
        .collect();
    if found.is_empty() {
        found.push(problem("the definition", whole.to_string(), fix));
    }
    found
}

fn twice(definitions: &[ToolDefinition], base: Option<&str>) -> Vec<DefinitionProblem> {
    let is_twice = |(index, definition): &(usize, &ToolDefinition)| {
        definitions[..*index].iter().any(|earlier| earlier.name == definition.name)
    };
    definitions
        .iter()
        .enumerate()
        .filter(is_twice)
        .map(|(index, definition)| {
            let place = format!("{}[{index}].name", base.unwrap_or_default());
            problem(place, format!("`{}` is there twice", definition.name), "give one of them another name")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_haft_writes_it_reads() {
        for tool in haft_tools::builtin() {
            let definition = ToolDefinition::clone(tool.definition());
            let text = serde_json::to_string_pretty(&definition).unwrap();
            assert_eq!(read(&text, Format::Json), Ok(vec![definition]));
        }
    }

    #[test]
    fn one_or_many_in_either_format() {
        let one = r#"{"name": "a_tool", "description": "Does something"}"#;
        for (text, format) in [
            (one.to_owned(), Format::Json),
            (format!("[{one}]"), Format::Json),
            (format!("{{\"tools\": [{one}]}}"), Format::Json),
            ("name = 'a_tool'\ndescription = 'Does something'".to_owned(), Format::Toml),
            ("[[tools]]\nname = 'a_tool'\ndescription = 'Does something'".to_owned(), Format::Toml),
        ] {
            assert_eq!(super::format(Path::new("-"), &text), format, "{text}");
            let read = read(&text, format).unwrap();
            assert_eq!((read.len(), read[0].name.as_str()), (1, "a_tool"), "{text}");
        }
    }

    #[test]
    fn every_problem_has_a_place_and_a_fix() {
        for (text, place, said) in [
            ("{\"name\": \"a\",}", "line 1, column 13", "expected a key after the comma"),
            ("[]", "line 1, column 1", "item"),
            ("3", "line 1, column 1", "expected an object"),
            (r#"{"name": "a_tool"}"#, "line 1, column 1", "missing required property \"description\""),
            (r#"{"name": "a_tool", "descriptoin": "x"}"#, "line 1, column 20: descriptoin", "descriptoin"),
            (
                r#"[{"name": "a_tool", "description": "x", "parameters": [{"name": 1}]}]"#,
                "line 1, column 65: [0].parameters[0].name",
                "expected a string",
            ),
            (
                r#"{"name": "a_tool", "description": "x", "constraints": {"maxExecutionTime": "soon"}}"#,
                "constraints",
                "soon",
            ),
            (r#"[{"name": "Bad Name", "description": "x"}]"#, "[0].name", "is not a valid name"),
            (
                r#"{"tools": [{"name": "a_tool", "description": "x"}, {"name": "a_tool", "description": "x"}]}"#,
                "tools[1].name",
                "`a_tool` is there twice",
            ),
            (r#"{"name": "a_tool", "description": "x", "parameters": {"type": 5}}"#, "parameters", ""),
        ] {
            let problems = read(text, Format::Json).unwrap_err();
            assert!(
                problems.iter().any(|found| found.place.starts_with(place) && found.problem.contains(said)),
                "{text}: {problems:?}"
            );
            assert!(problems.iter().all(|found| !found.fix.is_empty()), "{problems:?}");
        }
    }
}
