//! What each shape says about a tool, and where.

use super::{Reader, gemini_schema, kind_of};
use crate::{Change, name};
use haft_core::{Annotations, Parameter, Parameters, Source, ToolDefinition, suggest, text};
use serde_json::{Map, Value, json};

/// The most characters of a description and of a title in haft.
const DESCRIPTION: usize = 1024;
const TITLE: usize = 128;

/// The shapes of a tool.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Chat,
    Responses,
    Anthropic,
    Gemini,
    Mcp,
    /// `name`, `description`, `parameters`: as in haft's configuration, and as OpenAI had it before there were tools.
    Bare,
}

impl Shape {
    /// The fields that are read, the one with the parameters first.
    const fn read(self) -> &'static [&'static str] {
        match self {
            Shape::Chat => &["parameters", "name", "description", "strict"],
            Shape::Responses => &["parameters", "name", "description", "strict", "type"],
            Shape::Anthropic => &["input_schema", "name", "description", "strict", "type"],
            Shape::Gemini => &[
                "parameters",
                "name",
                "description",
                "parametersJsonSchema",
                "parameters_json_schema",
                "response",
                "responseJsonSchema",
                "response_json_schema",
            ],
            Shape::Mcp => &["inputSchema", "name", "description", "title", "outputSchema", "annotations"],
            Shape::Bare => &["parameters", "name", "description", "title", "outputSchema"],
        }
    }
}

impl Reader {
    /// Reads one tool, wherever its parts are.
    pub(super) fn tool(&mut self, tool: &Map<String, Value>, shape: Shape, place: &str) {
        let known = shape.read();
        let unknown: Vec<&String> = tool
            .iter()
            .filter(|(key, value)| !known.contains(&key.as_str()) && !value.is_null())
            .map(|(key, _)| key)
            .collect();
        if shape == Shape::Bare && !unknown.is_empty() {
            return self.unknown_fields(&unknown, known, place);
        }
        let before = self.problems.count();
        let named = self.text(tool, "name", place);
        let described = self.text(tool, "description", place);
        let title = self.text(tool, "title", place).filter(|_| known.contains(&"title"));
        let parameters = self.parameters(tool, shape, place);
        let Some(original) = named.filter(|name| !name.trim().is_empty()) else {
            if self.problems.count() == before {
                let place = format!("{place}.name");
                self.problems.add(
                    &place,
                    "it is missing or empty",
                    "give the tool a name, such as `read_file`",
                );
            }
            return;
        };
        let Some(parameters) = parameters else { return };
        let mut definition = ToolDefinition::new(self.haft_name(original), "");
        self.title(title, &mut definition);
        definition.source = Source::Declared;
        if definition.name != original {
            definition.metadata.insert("originalName".into(), original.into());
            if name::is_alias(original, &definition.name) {
                definition.aliases.push(original.to_owned());
            }
        }
        definition.parameters = parameters;
        definition.output_schema = output(tool, shape);
        self.hints(tool, &mut definition);
        definition.description = self.description(described, &definition);
        for key in unknown {
            let what = format!("`{key}` is not kept");
            self.remark(
                &definition.name,
                format!("/{key}"),
                Change::Dropped,
                what,
                "a definition has no place for it",
            );
        }
        if tool.get("strict") == Some(&Value::Bool(true)) {
            let why = "whether a tool is strict is said when it is exported";
            let what = "`strict` is not kept".to_owned();
            self.remark(&definition.name, "/strict".to_owned(), Change::Dropped, what, why);
        }
        if self.problems.count() == before {
            self.add(definition, place);
        }
    }

    fn unknown_fields(&mut self, unknown: &[&String], known: &[&str], place: &str) {
        for key in unknown {
            let problem = format!("`{}` means nothing here", text::one_line(key, 60));
            let fix = match suggest::nearest(key, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "a tool has name, description, parameters, title, outputSchema".to_owned(),
            };
            self.problems.add(place, problem, fix);
        }
    }

    fn text<'t>(&mut self, tool: &'t Map<String, Value>, key: &str, place: &str) -> Option<&'t str> {
        match tool.get(key) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text),
            Some(other) => {
                self.problems.add(
                    &format!("{place}.{key}"),
                    format!("it is {}", kind_of(other)),
                    "use a text",
                );
                None
            }
        }
    }

    fn haft_name(&mut self, original: &str) -> String {
        if name::is_haft_name(original) {
            return original.to_owned();
        }
        let made = name::snake_case(original);
        let what = format!("it was `{}`", text::one_line(original, 80));
        let why = "haft's names have lower case letters, digits and underscores";
        self.remark(&made, "/name".to_owned(), Change::Renamed, what, why);
        made
    }

    fn title(&mut self, title: Option<&str>, definition: &mut ToolDefinition) {
        let Some(title) = title.filter(|title| !title.trim().is_empty()) else { return };
        let short = shortened(title, TITLE);
        if short.is_some() {
            let what = "only its beginning is there".to_owned();
            let why = "a title has at most 128 characters";
            self.remark(&definition.name, "/title".to_owned(), Change::Shortened, what, why);
        }
        definition.title = Some(short.unwrap_or_else(|| title.to_owned()));
    }

    /// A tool must say what it does; where it does not, its title or its name has to do.
    fn description(&mut self, described: Option<&str>, definition: &ToolDefinition) -> String {
        let pointer = || "/description".to_owned();
        let Some(whole) = described.filter(|text| !text.trim().is_empty()) else {
            let what = "it is the title or the name".to_owned();
            self.remark(&definition.name, pointer(), Change::Rewritten, what, "there was none");
            return definition.title.clone().unwrap_or_else(|| definition.name.replace('_', " "));
        };
        let Some(short) = shortened(whole, DESCRIPTION) else { return whole.to_owned() };
        let what =
            format!("only the first {} of {} characters are there", DESCRIPTION - 1, whole.chars().count());
        let why = "a description has at most 1024 characters";
        self.remark(&definition.name, pointer(), Change::Shortened, what, why);
        short
    }

    fn parameters(&mut self, tool: &Map<String, Value>, shape: Shape, place: &str) -> Option<Parameters> {
        let there = |key: &&'static str| {
            let key = *key;
            tool.get(key).filter(|value| !value.is_null()).map(|value| (key, value))
        };
        let keys: &[&'static str] = match shape {
            Shape::Gemini => &["parametersJsonSchema", "parameters_json_schema", "parameters"],
            _ => &shape.read()[..1],
        };
        let Some((key, value)) = keys.iter().find_map(there) else {
            return Some(Parameters::Schema(json!({"type": "object", "properties": {}})));
        };
        let place = format!("{place}.{key}");
        match value {
            Value::Object(schema) => {
                let in_capitals = schema.get("type").and_then(Value::as_str) == Some("OBJECT");
                if key == "parameters" && (shape == Shape::Gemini || in_capitals) {
                    match gemini_schema::read(value, 0) {
                        Ok(schema) => return Some(Parameters::Schema(schema)),
                        Err(()) => {
                            self.problems.add(&place, "it is nested too deeply", "use at most 128 levels")
                        }
                    }
                    return None;
                }
                let mut schema = schema.clone();
                if list_with_object(schema.get("type")) {
                    schema.insert("type".into(), "object".into());
                }
                Some(Parameters::Schema(Value::Object(schema)))
            }
            Value::Array(_) if shape == Shape::Bare => {
                match serde_json::from_value::<Vec<Parameter>>(value.clone()) {
                    Ok(list) => return Some(Parameters::List(list)),
                    Err(error) => {
                        let fix =
                            "use {\"name\": …, \"description\": …, \"type\": \"String\"} for each parameter";
                        self.problems.add(&place, error.to_string(), fix);
                    }
                }
                None
            }
            other => {
                let fix = "use a JSON Schema such as {\"type\": \"object\", \"properties\": {…}}";
                self.problems.add(&place, format!("it is {}", kind_of(other)), fix);
                None
            }
        }
    }

    /// What an MCP server says about its tool. Who believes it decides elsewhere.
    fn hints(&mut self, tool: &Map<String, Value>, definition: &mut ToolDefinition) {
        let Some(Value::Object(said)) = tool.get("annotations") else { return };
        let yes_or_no = |key: &str| said.get(key).and_then(Value::as_bool);
        if definition.title.is_none() {
            self.title(said.get("title").and_then(Value::as_str), definition);
        }
        definition.annotations =
            Annotations { destructive: yes_or_no("destructiveHint"), open_world: yes_or_no("openWorldHint") };
        let kept: Map<String, Value> = ["readOnlyHint", "idempotentHint"]
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), yes_or_no(key)?.into())))
            .collect();
        if kept.values().any(|hint| *hint == Value::Bool(true)) {
            let what = "that it is harmless is kept as a hint only".to_owned();
            let why = "what a server says about its own tools is not believed";
            self.remark(&definition.name, "/annotations".to_owned(), Change::Dropped, what, why);
        }
        if !kept.is_empty() {
            definition.metadata.insert("hints".into(), kept.into());
        }
    }
}

fn output(tool: &Map<String, Value>, shape: Shape) -> Option<Value> {
    let there = |key: &str| tool.get(key).filter(|schema| schema.is_object() || schema.is_boolean());
    match shape {
        Shape::Mcp | Shape::Bare => there("outputSchema").cloned(),
        Shape::Gemini => match there("responseJsonSchema").or_else(|| there("response_json_schema")) {
            Some(schema) => Some(schema.clone()),
            None => there("response").and_then(|schema| gemini_schema::read(schema, 0).ok()),
        },
        Shape::Chat | Shape::Responses | Shape::Anthropic => None,
    }
}

fn list_with_object(kind: Option<&Value>) -> bool {
    kind.and_then(Value::as_array).is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
}

/// The beginning of a text that is too long.
fn shortened(whole: &str, most: usize) -> Option<String> {
    whole.chars().nth(most)?;
    let cut: String = whole.chars().take(most - 1).collect();
    Some(format!("{}…", cut.trim_end()))
}
