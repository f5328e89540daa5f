//! From text to a definition.

use std::sync::LazyLock;

use haft_core::{ToolDefinition, iso_duration};
use haft_schema::Checker;
use haft_schema::words::SchemaProblem;
use serde_json::Value;

use crate::error::{Position, ReadError, ReadErrors};
use crate::tree::Node;
use crate::{Format, json_tree, spelling, toml_tree};

/// The JSON Schema of a definition file, for editors.
///
/// ```
/// let schema: serde_json::Value = serde_json::from_str(haft_definition::FILE_SCHEMA).unwrap();
/// assert_eq!(schema["required"], serde_json::json!(["name", "description"]));
/// ```
pub const FILE_SCHEMA: &str = include_str!("../definition.schema.json");

/// It is part of the program, and tests show that it compiles.
static CHECKER: LazyLock<Option<Checker>> =
    LazyLock::new(|| Checker::new(&serde_json::from_str(FILE_SCHEMA).ok()?).ok());

/// Reads a definition. Whether it keeps the rules is for [`check`](crate::check()) to say.
///
/// # Errors
///
/// All that is wrong, in the order of the text: it is not JSON or TOML, has a name twice, an unknown field, none of a
/// field that must be there, or a value of another kind.
///
/// ```
/// use haft_definition::{Format, read};
/// let definition = read("name = 'ping'\ndescription = 'Answers'\nrequires_confirmation = true", Format::Toml)?;
/// assert!(definition.requires_confirmation);
/// # Ok::<(), haft_definition::ReadErrors>(())
/// ```
pub fn read(text: &str, format: Format) -> Result<ToolDefinition, ReadErrors> {
    let tree = tree(text, format)?;
    definition(&tree, text, format)
}

/// The tree of a text.
pub(crate) fn parse(text: &str, format: Format) -> Result<Node, ReadErrors> {
    match format {
        Format::Json => json_tree::parse(text),
        Format::Toml => toml_tree::parse(text),
    }
}

/// The tree of a text, with fields in one spelling.
pub(crate) fn tree(text: &str, format: Format) -> Result<Node, ReadErrors> {
    let mut tree = parse(text, format)?;
    let errors = spelling::unify(&mut tree, text);
    if errors.is_empty() { Ok(tree) } else { Err(ReadErrors::new(errors)) }
}

pub(crate) fn definition(tree: &Node, text: &str, format: Format) -> Result<ToolDefinition, ReadErrors> {
    let value = tree.to_value();
    let mut errors = shape(tree, &value, text, format);
    errors.extend(constraints(tree, &value, text));
    if !errors.is_empty() {
        return Err(ReadErrors::new(errors));
    }
    serde_json::from_value(value)
        .map_err(|error| ReadErrors::one(Position::of(text, tree.at), error.to_string(), None))
}

/// What the schema of the file finds.
fn shape(tree: &Node, value: &Value, text: &str, format: Format) -> Vec<ReadError> {
    CHECKER.as_ref().map_or_else(Vec::new, |checker| shape_of(checker, tree, value, text, format))
}

/// What the schema of another kind of file finds.
pub(crate) fn shape_of(
    checker: &Checker,
    tree: &Node,
    value: &Value,
    text: &str,
    format: Format,
) -> Vec<ReadError> {
    let problems = match checker.check(value) {
        Ok(checked) => checked.problems,
        Err(error) => {
            let (position, problem) = (Position::of(text, tree.at), error.message);
            return vec![ReadError { position, problem, help: None }];
        }
    };
    // A field under another name is one mistake, not two.
    let renamed = |problem: &SchemaProblem| {
        let name = missing(problem)?;
        let meant = |other: &SchemaProblem| {
            let parent = other.pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
            parent == problem.pointer && nearest(other) == Some(name)
        };
        problems.iter().find(|other| meant(other))
    };
    let kept = problems.iter().filter(|problem| renamed(problem).is_none());
    kept.map(|problem| worded(problem, tree, text, format)).collect()
}

fn worded(problem: &SchemaProblem, tree: &Node, text: &str, format: Format) -> ReadError {
    let steps = steps(&problem.pointer);
    if let (true, Some(name)) = (is_unknown(problem), steps.last()) {
        let help = match nearest(problem) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                format!("the fields here are {}", problem.expected.replace("one of ", "").replace('"', "`"))
            }
        };
        let position = Position::of(text, tree.key_at(&steps));
        return ReadError { position, problem: format!("unknown field `{}`", shown(name)), help: Some(help) };
    }
    let position = Position::of(text, tree.value_at(&steps));
    if let Some(name) = missing(problem) {
        let help = match format {
            Format::Json => format!("add `\"{name}\": …`"),
            Format::Toml => format!("add `{name} = …`"),
        };
        let inside = if steps.is_empty() { String::new() } else { format!(" in `{}`", place(&steps)) };
        return ReadError { position, problem: format!("missing field `{name}`{inside}"), help: Some(help) };
    }
    let said = if steps.is_empty() {
        problem.message.clone()
    } else {
        format!("`{}`: {}", place(&steps), problem.message)
    };
    let is_duration = DURATIONS.iter().any(|name| problem.pointer == format!("/constraints/{name}"));
    let help = if is_duration { Some(LIKE_THIS.to_owned()) } else { problem.hint.clone() };
    ReadError { position, problem: said, help }
}

const DURATIONS: [&str; 2] = ["maxExecutionTime", "defaultTimeout"];
const LIKE_THIS: &str = "write it like \"PT30S\", \"PT1M30S\" or \"PT2H\"";

fn is_unknown(problem: &SchemaProblem) -> bool {
    problem.rule == "additionalProperties"
}

/// The field that an unknown one was probably meant to be.
fn nearest(problem: &SchemaProblem) -> Option<&str> {
    let near = problem.expected.strip_prefix('"')?.strip_suffix('"')?;
    (is_unknown(problem) && problem.message.contains("did you mean")).then_some(near)
}

/// The field that is not there.
fn missing(problem: &SchemaProblem) -> Option<&str> {
    let name = problem.expected.strip_prefix("the property \"")?.strip_suffix('"')?;
    (problem.rule == "required").then_some(name)
}

/// What a JSON Schema cannot say about durations and sizes.
fn constraints(tree: &Node, value: &Value, text: &str) -> Vec<ReadError> {
    let mut errors = Vec::new();
    let mut found = |name: &str, problem: String, help: &str| {
        let steps = ["constraints".to_owned(), name.to_owned()];
        let position = Position::of(text, tree.value_at(&steps));
        let problem = format!("`constraints.{name}`: {problem}");
        errors.push(ReadError { position, problem, help: Some(help.to_owned()) });
    };
    for name in DURATIONS {
        let written = value["constraints"][name].as_str().unwrap_or("PT1S");
        if iso_duration::parse(written).is_err() {
            let problem = format!("`{}` is not an ISO 8601 duration", shown(written));
            found(name, problem, LIKE_THIS);
        }
    }
    for name in ["maxOutputSize", "maxArgumentSize"] {
        let size = &value["constraints"][name];
        if size.as_f64().is_some_and(|float| size.is_f64() && float.fract() == 0.0) {
            found(
                name,
                format!("{size} is not an integer"),
                "write it without a point and without an exponent",
            );
        }
    }
    errors
}

/// The steps of a JSON pointer.
pub(crate) fn steps(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

/// Steps as one reads them: `parameters[0].type`.
fn place(steps: &[String]) -> String {
    let mut place = String::new();
    for step in steps {
        if step.bytes().all(|byte| byte.is_ascii_digit()) {
            place.push_str(&format!("[{step}]"));
        } else {
            if !place.is_empty() {
                place.push('.');
            }
            place.push_str(&shown(step));
        }
    }
    place
}

/// A name on one short line.
fn shown(name: &str) -> String {
    const SHOWN: usize = 80;
    let cut = if name.chars().nth(SHOWN).is_some() { "…" } else { "" };
    let plain = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    name.chars().take(SHOWN).map(plain).collect::<String>() + cut
}
