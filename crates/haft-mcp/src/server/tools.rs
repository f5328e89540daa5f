//! Definitions, as clients are told them.

use haft_core::ToolDefinition;
use haft_dialect::{Dialect, export};
use rmcp::model::Tool;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// What clients are told, kept until a definition changes: a list of a thousand tools is asked for again and again.
#[derive(Default)]
pub(super) struct Shown(Mutex<HashMap<String, (Arc<ToolDefinition>, Option<Tool>)>>);

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
    let exported = export(Dialect::Mcp, [definition]).to_value();
    let tool = match &exported {
        serde_json::Value::Array(tools) => tools.first(),
        list => list.get("tools").and_then(|tools| tools.get(0)),
    };
    let tool = tool.and_then(|tool| serde_json::from_value(tool.clone()).ok());
    if tool.is_none() {
        tracing::warn!(tool = definition.name, "this tool has no form in MCP and is not listed");
    }
    tool
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::Parameters;
    use serde_json::json;

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
        assert_eq!(tool.description.as_deref(), Some("Counts letters"), "another definition is told anew");
    }
}
