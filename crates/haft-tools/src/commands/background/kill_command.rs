//! `kill_command`: the end of a background command.

use super::{BackgroundCommands, PATIENCE, PollReport, define, room, touches};
use haft_core::{ErrorCode, Footprint, ToolDefinition, ToolError};
use haft_sdk::{ToolCtx, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

/// What `kill_command` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KillCommandArgs {
    /// The id that start_command gave.
    pub id: String,
    /// Whether it ends at once, rather than being asked first and ended a moment later.
    #[serde(default)]
    pub force: bool,
}

/// Ends a background command.
#[derive(Clone, Debug, Default)]
pub struct KillCommand(pub BackgroundCommands);

impl TypedTool for KillCommand {
    const NAME: &'static str = "kill_command";
    type Args = KillCommandArgs;
    type Output = PollReport;

    fn define(&self, definition: &mut ToolDefinition) {
        let description = "End a background command with everything that it started. Gives what it put out since the \
             last look, and how it ended.";
        define(definition, "End a background command", description);
        definition.idempotent = true;
    }

    fn footprint(&self, args: &KillCommandArgs) -> Option<Footprint> {
        Some(touches(&args.id))
    }

    async fn call(&self, args: KillCommandArgs, cx: ToolCtx) -> Result<PollReport, ToolError> {
        let command = self.0.find(cx.context(), &args.id)?;
        if !args.force {
            command.control.stop();
            // A jail keeps the grace by itself, and then ends it.
            command.end(PATIENCE).await;
        }
        if !command.has_ended() {
            command.control.kill();
            if !command.end(PATIENCE).await {
                let text = "the command did not end; its jail is closed when the session ends";
                return Err(ToolError::new(ErrorCode::SandboxCrashed, text));
            }
        }
        Ok(command.look(&cx, None, room(&cx, None)))
    }
}
