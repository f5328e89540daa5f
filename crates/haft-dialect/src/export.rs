//! Definitions, written down in a dialect.

use crate::{Change, Dialect, Remark, back::Back, dialect::Limits, remark::Notes, write};
use haft_core::ToolDefinition;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Settings of an export.
///
/// ```
/// use haft_core::{Parameters, ToolDefinition};
/// use haft_dialect::{Dialect, ExportOptions, export_with};
/// use serde_json::json;
///
/// let mut definition = ToolDefinition::new("find", "Finds a word");
/// definition.parameters = Parameters::Schema(json!({
///     "type": "object",
///     "properties": {"word": {"type": "string"}, "most": {"type": "integer"}},
///     "required": ["word"],
///     "additionalProperties": false,
/// }));
/// let export = export_with(Dialect::OpenAiChat, &ExportOptions { strict: true }, [&definition]);
/// assert_eq!(
///     export.tools[0]["function"]["parameters"],
///     json!({
///         "type": "object",
///         "properties": {"word": {"type": "string"}, "most": {"type": ["integer", "null"]}},
///         "required": ["most", "word"],
///         "additionalProperties": false,
///     }),
/// );
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// Whether OpenAI shall hold a model to the parameters while it writes them. A tool whose parameters cannot be said
    /// that way is exported without, and a remark says so. The other dialects have no such mode here.
    pub strict: bool,
}

/// A list of tools in a dialect: what goes under `tools`, what had to change, and the way back.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// The dialect.
    pub dialect: Dialect,
    /// One value for each tool, by name. For Gemini see [`to_value`](Self::to_value).
    pub tools: Vec<Value>,
    /// What had to change, by tool.
    pub remarks: Vec<Remark>,
    names: BTreeMap<String, Taken>,
}

/// What a name in the export stands for.
#[derive(Clone, Debug, PartialEq)]
struct Taken {
    definition: String,
    back: Back,
}

impl Export {
    /// What stands under `tools`, in a request or in the result of MCP's `tools/list`.
    ///
    /// ```
    /// use haft_core::ToolDefinition;
    /// use haft_dialect::{Dialect, export};
    /// let ping = ToolDefinition::new("ping", "Answers");
    /// let value = export(Dialect::Gemini, [&ping]).to_value();
    /// assert_eq!(value[0]["functionDeclarations"][0]["name"], "ping");
    /// ```
    pub fn to_value(&self) -> Value {
        match self.dialect {
            Dialect::Gemini if self.tools.is_empty() => json!([]),
            Dialect::Gemini => json!([{"functionDeclarations": self.tools}]),
            Dialect::OpenAiChat | Dialect::OpenAiResponses | Dialect::Anthropic | Dialect::Mcp => {
                json!(self.tools)
            }
        }
    }

    /// The definition's name of a tool that a model calls by its exported name.
    ///
    /// ```
    /// use haft_core::ToolDefinition;
    /// use haft_dialect::{Dialect, export};
    /// let export = export(Dialect::Anthropic, [&ToolDefinition::new("get weather", "Weather")]);
    /// let name = export.tools[0]["name"].as_str().unwrap();
    /// assert_eq!(name, "get_weather_90c99821");
    /// assert_eq!(export.name_back(name), Some("get weather"));
    /// assert_eq!(export.name_back("get_time"), None);
    /// ```
    pub fn name_back(&self, exported: &str) -> Option<&str> {
        self.names.get(exported).map(|taken| taken.definition.as_str())
    }

    /// The parameters that have another name in the export: by exported tool, from the exported name to the tool's own.
    /// For programs elsewhere that put the names back, as [`arguments_back`](Self::arguments_back) does here. An export
    /// in strict mode changes more than names, and needs that function.
    ///
    /// ```
    /// use haft_core::{Parameters, ToolDefinition};
    /// use haft_dialect::{Dialect, export};
    /// use serde_json::json;
    /// let mut list = ToolDefinition::new("list_files", "Lists files");
    /// list.parameters = Parameters::Schema(json!({"properties": {"$top": {"type": "integer"}}}));
    /// let renamed = export(Dialect::Anthropic, [&list]).renamed_parameters();
    /// assert_eq!(renamed["list_files"]["_top_9b6aca59"], "$top");
    /// ```
    pub fn renamed_parameters(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let changed = self.names.iter().filter(|(_, taken)| !taken.back.renamed.is_empty());
        changed.map(|(name, taken)| (name.clone(), taken.back.renamed.clone())).collect()
    }

    /// The arguments as the tool takes them: parameters have their own names again, and what strict mode made null
    /// because it knows no absence is absent.
    ///
    /// ```
    /// use haft_core::{Parameters, ToolDefinition};
    /// use haft_dialect::{Dialect, export};
    /// use serde_json::{Map, json};
    /// let mut list = ToolDefinition::new("list_files", "Lists files");
    /// list.parameters = Parameters::Schema(json!({"properties": {"$top": {"type": "integer"}}}));
    /// let export = export(Dialect::Anthropic, [&list]);
    ///
    /// let sent = Map::from_iter([("_top_9b6aca59".to_owned(), json!(5))]);
    /// assert_eq!(export.arguments_back("list_files", sent)["$top"], 5);
    /// ```
    pub fn arguments_back(&self, exported: &str, arguments: Map<String, Value>) -> Map<String, Value> {
        match self.names.get(exported) {
            Some(taken) if !taken.back.is_empty() => taken.back.object(arguments),
            _ => arguments,
        }
    }
}

/// Writes definitions down in a dialect, sorted by name. The same definitions always give the same text.
///
/// ```
/// use haft_core::ToolDefinition;
/// use haft_dialect::{Dialect, export};
/// use serde_json::json;
/// let (ping, echo) = (ToolDefinition::new("ping", "Answers"), ToolDefinition::new("echo", "Repeats"));
/// let export = export(Dialect::Anthropic, [&ping, &echo]);
/// assert_eq!(
///     export.to_value()[0],
///     json!({
///         "name": "echo",
///         "description": "Repeats",
///         "input_schema": {"type": "object", "properties": {}, "additionalProperties": false},
///     }),
/// );
/// assert!(export.remarks.is_empty());
/// ```
pub fn export<'a>(dialect: Dialect, definitions: impl IntoIterator<Item = &'a ToolDefinition>) -> Export {
    export_with(dialect, &ExportOptions::default(), definitions)
}

/// [`export`] with settings.
pub fn export_with<'a>(
    dialect: Dialect,
    options: &ExportOptions,
    definitions: impl IntoIterator<Item = &'a ToolDefinition>,
) -> Export {
    let mut definitions: Vec<&ToolDefinition> = definitions.into_iter().collect();
    definitions.sort_by(|a, b| a.name.cmp(&b.name));
    let limits = dialect.limits();
    let mut export = Export { dialect, tools: Vec::new(), remarks: Vec::new(), names: BTreeMap::new() };
    for definition in definitions {
        let mut notes = Notes::new(&definition.name);
        let name = fitting_name(&export, definition, &limits, &mut notes);
        let written = name.and_then(|name| {
            let mut back = Back::default();
            let tool = match dialect {
                Dialect::OpenAiChat | Dialect::OpenAiResponses => {
                    write::openai(dialect, *options, definition, &name, &mut back, &mut notes)
                }
                Dialect::Anthropic => write::anthropic(definition, &name, &limits, &mut back, &mut notes),
                Dialect::Gemini => write::gemini(definition, &name, &limits, &mut back, &mut notes),
                Dialect::Mcp => write::mcp(definition, &name, &mut notes),
            };
            tool.map(|tool| (name, tool, back))
        });
        match written {
            Ok((name, tool, back)) => {
                export.tools.push(tool);
                export.names.insert(name, Taken { definition: definition.name.clone(), back });
            }
            Err(why) => notes.add("", Change::LeftOut, "it is not in the list", why),
        }
        notes.finish(&mut export.remarks);
    }
    if let Some(most) = limits.tools.filter(|most| export.tools.len() > *most) {
        export.remarks.push(Remark {
            tool: String::new(),
            pointer: String::new(),
            change: Change::OverLimit,
            what: format!("it has {} tools", export.tools.len()),
            why: format!("{} takes at most {most} in one request", dialect.owner()),
        });
    }
    export
}

fn fitting_name(
    export: &Export,
    definition: &ToolDefinition,
    limits: &Limits,
    notes: &mut Notes,
) -> Result<String, &'static str> {
    let name = match limits.name.fit(&definition.name) {
        None => definition.name.clone(),
        Some(name) => {
            let why = format!("{} takes no such name", export.dialect.owner());
            notes.add("/name", Change::Renamed, format!("it is `{name}`"), why);
            name
        }
    };
    if export.names.contains_key(&name) { Err("another tool has the same name") } else { Ok(name) }
}
