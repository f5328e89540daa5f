//! `call_tool`: calls another tool by its name.

use crate::harmless;
use haft_core::{
    Arguments, ContentPart, Footprint, IsolationLevel, ToolCall, ToolDefinition, ToolError, ToolOutput,
};
use haft_sdk::{ToolCtx, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Calls another tool, through every check that a direct call goes through: the same lists and rules decide, the same
/// people are asked, and it has a record of its own.
///
/// ```
/// use haft_sdk::{Tool, typed};
/// assert_eq!(typed(haft_tools::CallTool).definition().name, "call_tool");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CallTool;

/// Which tool, and with what.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallToolArgs {
    /// The name of the tool, as search_tools gave it.
    pub name: String,
    /// Its arguments, as its parameters say.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

impl TypedTool for CallTool {
    const NAME: &'static str = "call_tool";
    type Args = CallToolArgs;
    type Output = ToolOutput;

    fn define(&self, definition: &mut ToolDefinition) {
        harmless(
            definition,
            "Call a tool",
            "Calls another tool by its name. Use search_tools first to find out its name and its parameters.",
        );
        // The call inside is checked, asked about and recorded for what it is. This one only passes it on.
        definition.constraints.required_isolation = IsolationLevel::None;
        definition.idempotent = false;
        // The tool inside has a deadline of its own, and a person who is asked takes their time: this one only has to
        // outlast both.
        definition.constraints.default_timeout = Some(definition.constraints.max_execution_time);
        definition.aliases = vec!["CallTool".to_owned()];
    }

    fn only_calls(&self) -> bool {
        true
    }

    fn footprint(&self, _args: &CallToolArgs) -> Option<Footprint> {
        // Whatever the tool inside may touch.
        Some(Footprint::undeclared(true))
    }

    fn summary(&self, args: &CallToolArgs) -> Option<String> {
        Some(format!("Call {} {}", args.name, Value::Object(args.arguments.clone())))
    }

    async fn call(&self, args: CallToolArgs, cx: ToolCtx) -> Result<ToolOutput, ToolError> {
        let is_itself =
            cx.engine().definition(&args.name).is_some_and(|definition| definition.name == Self::NAME);
        if is_itself {
            return Err(ToolError::bad_args("call_tool cannot call itself. Name the tool that you want"));
        }
        let mut call = ToolCall::new(args.name, Arguments::from(Value::Object(args.arguments)));
        call.id = cx.call().id.clone();
        let result = cx.engine().call(cx.execution_id(), call).await?;
        match result.error {
            Some(error) => {
                let mut failed = ToolError::new(error.code, error.message).with_problems(error.problems);
                failed.data = error.data;
                Err(failed)
            }
            None => {
                let text = result.content.iter().find_map(|part| match part {
                    ContentPart::Text { text } => Some(text.clone()),
                    _ => None,
                });
                let parts =
                    result.content.into_iter().filter(|part| !matches!(part, ContentPart::Text { .. }));
                Ok(ToolOutput {
                    text,
                    structured: result.output,
                    parts: parts.collect(),
                    side_effects: result.metadata.side_effects.clone(),
                    keep_whole: false,
                    repeats_stream: false,
                })
            }
        }
    }
}
