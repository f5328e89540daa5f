//! `search_tools`: which tools could do something.

use crate::{describe, harmless, worded::Worded};
use haft_core::{Footprint, ToolDefinition, ToolError};
use haft_sdk::{ToolCtx, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Finds the tools that fit a question in words. With `call_tool`, a model sees two tools instead of a thousand.
///
/// ```
/// use haft_sdk::{Tool, typed};
/// assert_eq!(typed(haft_tools::SearchTools).definition().name, "search_tools");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchTools;

/// What is looked for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchToolsArgs {
    /// What you want to do, in a few words, such as "check that a file is valid JSON".
    pub query: String,
    /// How many tools to list at most; 5 when left out.
    #[schemars(range(min = 1, max = 50))]
    pub limit: Option<u32>,
}

/// The tools that fit, best first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Found {
    /// The tools that fit, best first.
    tools: Vec<FoundTool>,
}

/// A tool that fits.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct FoundTool {
    /// By which it is called.
    name: String,
    /// What it does.
    description: String,
    /// JSON Schema of its arguments.
    parameters: Value,
}

impl TypedTool for SearchTools {
    const NAME: &'static str = "search_tools";
    type Args = SearchToolsArgs;
    type Output = Worded<Found>;

    fn define(&self, definition: &mut ToolDefinition) {
        harmless(
            definition,
            "Search tools",
            "Finds the tools that can do something, from a few words about it. Gives their names, descriptions and \
             parameters, best first; call one with call_tool.",
        );
        definition.aliases = vec!["SearchTools".to_owned()];
    }

    fn footprint(&self, _args: &SearchToolsArgs) -> Option<Footprint> {
        Some(Footprint::default())
    }

    async fn call(&self, args: SearchToolsArgs, cx: ToolCtx) -> Result<Worded<Found>, ToolError> {
        let most = args.limit.unwrap_or(5).clamp(1, 50) as usize;
        let definitions = cx.engine().search(&args.query, most, cx.context().tier)?;
        let text = match definitions.as_slice() {
            [] => "No tool fits. Try other words, or fewer.".to_owned(),
            found => found.iter().map(|tool| describe::in_words(tool)).collect::<Vec<_>>().join("\n\n"),
        };
        let tools = definitions
            .iter()
            .map(|tool| FoundTool {
                name: tool.name.clone(),
                description: tool.description.clone(),
                parameters: tool.parameters.to_schema(),
            })
            .collect();
        Ok(Worded { value: Found { tools }, text })
    }
}
