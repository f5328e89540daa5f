//! Lists of tools in the shapes of others, read as definitions.

mod element;
mod error;
mod fields;
mod gemini_schema;

pub use error::{ImportError, ImportProblem};

use crate::{Change, Remark};
use error::Problems;
use haft_core::{ToolDefinition, text};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What an import gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Import {
    /// The tools, in the order of the list. Each passes [`ToolDefinition::check`].
    pub definitions: Vec<ToolDefinition>,
    /// What is not as it was in the list: names, long descriptions, settings that haft does not have, and tools that
    /// the provider itself runs.
    pub remarks: Vec<Remark>,
}

/// Reads a list of tools in any of the shapes that this crate knows.
///
/// ```
/// use haft_dialect::import;
/// use serde_json::json;
/// let import = import(&json!({"tools": [
///     {"type": "function", "function": {"name": "getWeather", "description": "Weather", "parameters": {"type": "object"}}},
///     {"name": "read_file", "description": "Reads a file", "input_schema": {"type": "object"}},
///     {"functionDeclarations": [{"name": "add", "description": "Adds", "parameters": {"type": "OBJECT"}}]},
/// ]}))?;
/// let names: Vec<_> = import.definitions.iter().map(|tool| tool.name.as_str()).collect();
/// assert_eq!(names, ["get_weather", "read_file", "add"]);
/// assert_eq!(import.definitions[0].aliases, ["getWeather"]);
/// # Ok::<(), haft_dialect::ImportError>(())
/// ```
///
/// All problems are told at once:
///
/// ```
/// # use haft_dialect::import;
/// # use serde_json::json;
/// let error = import(&json!([{"name": "a"}, {"nmae": "b"}, 7])).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "2 problems in the list of tools:\n\
///      \x20 tools[1]: `nmae` means nothing here; did you mean `name`?\n\
///      \x20 tools[2]: it is a number; a tool is an object such as {\"name\": …, \"description\": …, \"parameters\": …}",
/// );
/// ```
pub fn import(list: &Value) -> Result<Import, ImportError> {
    let mut reader = Reader::default();
    reader.list(list, "tools", 0);
    reader.finish()
}

/// Reads tool after tool.
#[derive(Default)]
struct Reader {
    problems: Problems,
    import: Import,
    /// Where each name was first.
    taken: BTreeMap<String, String>,
}

impl Reader {
    fn list(&mut self, list: &Value, place: &str, depth: usize) {
        match list {
            Value::Array(tools) => {
                for (index, tool) in tools.iter().enumerate() {
                    self.element(tool, &format!("{place}[{index}]"));
                }
            }
            // A request without tools.
            Value::Null => {}
            Value::Object(object) => match wrapped(object) {
                // A response of MCP has its list in a result.
                Some((key, inner)) if depth < 2 => self.list(inner, key, depth + 1),
                _ => self.element(list, if depth == 0 { "the tool" } else { place }),
            },
            other => {
                let fix = "give a list of tools, or an object with one under `tools`";
                self.problems.add(place, format!("it is {}", kind_of(other)), fix);
            }
        }
    }

    fn add(&mut self, definition: ToolDefinition, place: &str) {
        if let Some(first) = self.taken.get(&definition.name) {
            let problem = match definition.metadata.get("originalName").and_then(Value::as_str) {
                Some(original) => {
                    let original = text::one_line(original, 80);
                    format!(
                        "`{original}` is `{}` to haft, which is the name of {first}, too",
                        definition.name
                    )
                }
                None => format!("`{}` is the name of {first}, too", definition.name),
            };
            self.problems.add(place, problem, "rename or remove one of the two");
            return;
        }
        for problem in definition.check() {
            self.problems.add(&format!("{place}.{}", problem.place), problem.problem, problem.fix);
        }
        self.taken.insert(definition.name.clone(), place.to_owned());
        self.import.definitions.push(definition);
    }

    fn remark(&mut self, tool: &str, pointer: String, change: Change, what: String, why: &str) {
        let remark = Remark { tool: tool.to_owned(), pointer, change, what, why: why.to_owned() };
        self.import.remarks.push(remark);
    }

    fn finish(mut self) -> Result<Import, ImportError> {
        if let Some(error) = self.problems.into_error() {
            return Err(error);
        }
        // Names are taken in any case: `getUser` cannot be an alias beside a tool `getuser`.
        let mut taken: BTreeSet<String> = self.taken.into_keys().collect();
        for definition in &mut self.import.definitions {
            definition.aliases.retain(|alias| taken.insert(alias.to_ascii_lowercase()));
        }
        Ok(self.import)
    }
}

/// The list within an object that is not a tool itself.
fn wrapped(object: &Map<String, Value>) -> Option<(&str, &Value)> {
    ["tools", "functions", "result"].into_iter().find_map(|key| {
        let inner = object.get(key)?;
        let is_list = inner.is_array() || (inner.is_null() && key == "tools");
        (is_list || (key == "result" && inner.is_object())).then_some((key, inner))
    })
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
