//! `list_commands`: the background commands of a session.

use super::{BackgroundCommands, define};
use haft_core::{Footprint, ToolDefinition, ToolError, ToolOutput, text};
use haft_sdk::{IntoToolOutput, Json, ToolCtx, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What `list_commands` takes: nothing.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListCommandsArgs {}

/// One background command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Listed {
    /// The id of the command.
    pub id: String,
    /// What was asked to be run.
    pub command: String,
    /// Whether it runs.
    pub running: bool,
    /// Its exit code, once it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// When it was started.
    pub started_at: String,
    /// Whether it has a terminal.
    pub terminal: bool,
    /// Bytes that it has put out.
    pub put_out: u64,
}

/// The background commands of a session, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CommandList {
    /// They.
    pub commands: Vec<Listed>,
}

impl IntoToolOutput for CommandList {
    fn output_schema() -> Option<Value> {
        <Json<CommandList> as IntoToolOutput>::output_schema()
    }

    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        let line = |listed: &Listed| {
            let state = match (listed.running, listed.exit_code) {
                (true, _) => "running".to_owned(),
                (false, Some(code)) => format!("ended with exit code {code}"),
                (false, None) => "ended".to_owned(),
            };
            format!("{}  {state}  {}\n", listed.id, text::one_line(&listed.command, 120))
        };
        let words = match self.commands.is_empty() {
            true => "This session has started no commands".to_owned(),
            false => self.commands.iter().map(line).collect(),
        };
        let mut output = Json(self).into_tool_output()?;
        output.text = Some(words);
        Ok(output)
    }
}

/// Lists background commands.
#[derive(Clone, Debug, Default)]
pub struct ListCommands(pub BackgroundCommands);

impl TypedTool for ListCommands {
    const NAME: &'static str = "list_commands";
    type Args = ListCommandsArgs;
    type Output = CommandList;

    fn define(&self, definition: &mut ToolDefinition) {
        let description = "List the background commands that this session started: those that run, and the last that \
             ended.";
        define(definition, "List background commands", description);
        definition.idempotent = true;
    }

    fn footprint(&self, _args: &ListCommandsArgs) -> Option<Footprint> {
        Some(Footprint::default())
    }

    async fn call(&self, _args: ListCommandsArgs, cx: ToolCtx) -> Result<CommandList, ToolError> {
        let listed = self.0.of(cx.context()).into_iter().map(|command| {
            let state = command.state();
            let end = state.ended.as_ref().and_then(|end| end.as_ref().ok());
            Listed {
                id: command.id.clone(),
                command: command.words.clone(),
                running: state.ended.is_none(),
                exit_code: end.and_then(|end| end.exit_code),
                started_at: command.started.to_string(),
                terminal: command.has_terminal,
                put_out: state.log.end(),
            }
        });
        Ok(CommandList { commands: listed.collect() })
    }
}
