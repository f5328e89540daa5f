//! Definitions, as clients are told them.

use haft_core::ToolDefinition;
use haft_dialect::{Dialect, export};
use rmcp::model::Tool;
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// What clients are told, kept until a definition changes: a list of a thousand tools is asked for again and again.
#[derive(Default)]
pub(super) struct Shown(Mutex<HashMap<String, Known>>);

/// A definition, and what is told of it.
type Known = (Arc<ToolDefinition>, Option<Tool>);

impl Shown {
    /// The tool as a client is told of it; `None` where MCP has no form for it.
    pub(super) fn tool(&self, definition: &Arc<ToolDefinition>) -> Option<Tool> {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, tool)) = shown.get(&definition.name)
            && Arc::ptr_eq(known, definition)
        {
            return tool.clone();
        }
        let tool = written(definition);
        shown.insert(definition.name.clone(), (Arc::clone(definition), tool.clone()));
        tool
    }

    /// Forgets tools that are gone.
    pub(super) fn keep_only(&self, is_there: impl Fn(&str) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|name, _| is_there(name));
    }
}

fn written(definition: &ToolDefinition) -> Option<Tool> {
    let mut exported = export(Dialect::Mcp, [definition]).to_value();
    without_sizes(&mut exported);
    let tool = match &exported {
        Value::Array(tools) => tools.first(),
        list => list.get("tools").and_then(|tools| tools.get(0)),
    };
    let tool = tool.and_then(|tool| serde_json::from_value(tool.clone()).ok());
    if tool.is_none() {
        tracing::warn!(tool = definition.name, "this tool has no form in MCP and is not listed");
    }
    tool
}

/// Takes out how wide numbers are (`"format": "uint64"`): no dialect of JSON Schema knows that, and checkers of clients
/// say so at every list. Their bounds stay.
fn without_sizes(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let is_size = |format: &str| {
                let width = format.trim_start_matches("uint").trim_start_matches("int");
                matches!(format, "float" | "double")
                    || (width.len() < format.len() && width.bytes().all(|c| c.is_ascii_digit()))
            };
            if members.get("format").and_then(Value::as_str).is_some_and(is_size) {
                members.remove("format");
            }
            members.values_mut().for_each(without_sizes);
        }
        Value::Array(entries) => entries.iter_mut().for_each(without_sizes),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::Parameters;
    use serde_json::json;

    #[test]
    fn widths_of_numbers_are_not_told() {
        let mut schema = json!({
            "a": [{"format": "uint64", "minimum": 0}, {"format": "date-time"}, {"format": "double"}, {"format": "uint"}],
            "b": {"format": "int32"}, "format": {"type": "string", "format": "interval"},
        });
        without_sizes(&mut schema);
        let expected = json!({
            "a": [{"minimum": 0}, {"format": "date-time"}, {}, {}],
            "b": {}, "format": {"type": "string", "format": "interval"},
        });
        assert_eq!(schema, expected);
    }

    #[test]
    fn a_tool_is_told_with_its_schemas_and_hints() {
        let mut definition = ToolDefinition::new("count", "Counts words");
        definition.title = Some("Word count".into());
        definition.parameters =
            Parameters::Schema(json!({"type": "object", "properties": {"text": {"type": "string"}}}));
        definition.output_schema =
            Some(json!({"type": "object", "properties": {"words": {"type": "integer"}}}));
        definition.constraints.allow_side_effects = false;
        definition.annotations.open_world = Some(false);
        let shown = Shown::default();
        let definition = Arc::new(definition);
        let tool = serde_json::to_value(shown.tool(&definition).unwrap()).unwrap();
        assert_eq!(tool["title"], "Word count");
        assert_eq!(tool["inputSchema"]["properties"]["text"]["type"], "string");
        assert_eq!(tool["outputSchema"]["properties"]["words"]["type"], "integer");
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
        assert_eq!(tool["annotations"]["openWorldHint"], false);

        let mut other = ToolDefinition::clone(&definition);
        other.description = "Counts letters".into();
        let tool = shown.tool(&Arc::new(other)).unwrap();
        assert_eq!(tool.description.as_deref(), Some("Counts letters"), "another definition is told again");
    }
}
