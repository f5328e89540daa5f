//! `inspect_tool`: what a tool takes, gives and may do.

use crate::{describe, harmless, no_such_tool};
use haft_core::{Footprint, ToolDefinition, ToolError, ToolOutput};
use haft_sdk::{ToolCtx, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

/// Says what a tool takes, gives and may do: its definition, as a value and in words.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use haft_sdk::{testing::TestHost, typed};
/// let tool = typed(haft_tools::InspectTool);
/// let error = TestHost::new().call(&tool, serde_json::json!({"name": "sing"})).await.unwrap_err();
/// assert_eq!(error.to_string(), "There is no tool named `sing`.");
/// # });
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct InspectTool;

/// Which tool to look at.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InspectToolArgs {
    /// The name of the tool, or one of its aliases.
    pub name: String,
}

impl TypedTool for InspectTool {
    const NAME: &'static str = "inspect_tool";
    type Args = InspectToolArgs;
    type Output = ToolOutput;

    fn define(&self, definition: &mut ToolDefinition) {
        harmless(
            definition,
            "Inspect a tool",
            "Says what a tool takes, gives and may do: its parameters with their types and defaults, its limits, the \
             permissions it needs, and whether a person is asked before it runs.",
        );
        definition.aliases = vec!["InspectModule".to_owned()];
        definition.output_schema = Some(serde_json::json!({
            "type": "object",
            "description": "The definition of the tool.",
            "required": ["name", "description"],
        }));
    }

    fn footprint(&self, _args: &InspectToolArgs) -> Option<Footprint> {
        Some(Footprint::default())
    }

    async fn call(&self, args: InspectToolArgs, cx: ToolCtx) -> Result<ToolOutput, ToolError> {
        let Some(definition) = cx.engine().definition(&args.name) else {
            return Err(ToolError::failed(no_such_tool(cx.engine(), &args.name)));
        };
        let value = serde_json::to_value(&*definition)
            .map_err(|error| ToolError::failed("The definition cannot be shown").with_diagnostics(error))?;
        Ok(ToolOutput::text(describe::in_words(&definition)).with_structured(value))
    }
}
