//! Which shape a tool has.

use super::{Reader, fields::Shape, kind_of};
use crate::Change;
use haft_core::{suggest, text};
use serde_json::{Map, Value};

/// Tools that Gemini runs itself, in both spellings.
const GEMINI_OWN: [&str; 14] = [
    "codeExecution",
    "code_execution",
    "googleSearch",
    "google_search",
    "googleSearchRetrieval",
    "google_search_retrieval",
    "googleMaps",
    "google_maps",
    "urlContext",
    "url_context",
    "fileSearch",
    "file_search",
    "computerUse",
    "computer_use",
];
const SCHEMA_TYPES: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];
const A_TOOL: &str = "a tool is an object such as {\"name\": …, \"description\": …, \"parameters\": …}";
const WHY_OWN: &str = "the provider runs it itself";

impl Reader {
    pub(super) fn element(&mut self, tool: &Value, place: &str) {
        let Value::Object(tool) = tool else {
            return self.problems.add(place, format!("it is {}", kind_of(tool)), A_TOOL);
        };
        let there = |key: &str| tool.get(key).filter(|value| !value.is_null());
        if let Some(key) =
            ["functionDeclarations", "function_declarations"].into_iter().find(|key| tool.contains_key(*key))
        {
            return self.declarations(tool, key, place);
        }
        if let Some(function) = there("function") {
            return self.wrapped_function(tool, function, place);
        }
        let kind = there("type").and_then(Value::as_str);
        if there("input_schema").is_some() {
            self.tool(tool, Shape::Anthropic, place);
        } else if there("inputSchema").is_some() {
            self.tool(tool, Shape::Mcp, place);
        } else if kind == Some("function") {
            self.tool(tool, Shape::Responses, place);
        } else if let Some(kind) = kind {
            self.of_another_type(tool, kind, place);
        } else if there("parametersJsonSchema").is_some() || there("parameters_json_schema").is_some() {
            self.tool(tool, Shape::Gemini, place);
        } else if !tool.is_empty() && tool.keys().all(|key| GEMINI_OWN.contains(&key.as_str())) {
            for key in tool.keys() {
                self.left_out(key, WHY_OWN);
            }
        } else {
            self.tool(tool, Shape::Bare, place);
        }
    }

    fn declarations(&mut self, tool: &Map<String, Value>, key: &str, place: &str) {
        match tool.get(key) {
            Some(Value::Array(declarations)) => {
                for (index, declaration) in declarations.iter().enumerate() {
                    let place = format!("{place}.{key}[{index}]");
                    match declaration {
                        Value::Object(declaration) => self.tool(declaration, Shape::Gemini, &place),
                        other => self.problems.add(&place, format!("it is {}", kind_of(other)), A_TOOL),
                    }
                }
            }
            None | Some(Value::Null) => {}
            Some(other) => {
                let problem = format!("it is {}", kind_of(other));
                self.problems.add(&format!("{place}.{key}"), problem, "use a list of declarations");
            }
        }
        for (other, value) in tool.iter().filter(|(other, value)| *other != key && !value.is_null()) {
            match value {
                Value::Object(_) => self.left_out(other, WHY_OWN),
                _ => self.problems.add(place, format!("`{other}` means nothing here"), "remove it"),
            }
        }
    }

    fn wrapped_function(&mut self, tool: &Map<String, Value>, function: &Value, place: &str) {
        let inner = format!("{place}.function");
        let Value::Object(function) = function else {
            let problem = format!("it is {}", kind_of(function));
            return self.problems.add(&inner, problem, A_TOOL);
        };
        match tool.get("type") {
            None | Some(Value::Null) => {}
            Some(kind) if kind == "function" => {}
            Some(other) => {
                let problem = format!("it is {}", text::one_line(&other.to_string(), 60));
                self.problems.add(&format!("{place}.type"), problem, "use \"function\"");
            }
        }
        self.tool(function, Shape::Chat, &inner);
    }

    /// A type that is not a function: of the provider, or a mistake.
    fn of_another_type(&mut self, tool: &Map<String, Value>, kind: &str, place: &str) {
        let shown = text::one_line(kind, 60);
        if SCHEMA_TYPES.contains(&kind.to_ascii_lowercase().as_str()) {
            let problem = format!("it is a JSON Schema of type `{shown}`, not a tool");
            self.problems.add(place, problem, "put it under `parameters` of a tool with a `name`");
        } else if tool.contains_key("parameters") || !tool.get("name").is_none_or(Value::is_string) {
            let fix = match suggest::nearest(kind, ["function", "custom"]) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "use `function`".to_owned(),
            };
            self.problems.add(&format!("{place}.type"), format!("`{shown}` is not a type of tool"), fix);
        } else {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or(kind);
            let why = if kind == "custom" { "it takes a text, not arguments" } else { WHY_OWN };
            self.left_out(name, why);
        }
    }

    fn left_out(&mut self, name: &str, why: &str) {
        self.remark(name, String::new(), Change::LeftOut, "it is not in the list".to_owned(), why);
    }
}
