//! `resize_command`: another size for the terminal of a background command.

use super::{BackgroundCommands, define, touches};
use haft_core::{Footprint, ToolDefinition, ToolError, port::TerminalSize};
use haft_sdk::{ToolCtx, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

/// What `resize_command` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResizeCommandArgs {
    /// The id that start_command gave.
    pub id: String,
    /// Lines.
    #[schemars(range(min = 1, max = 1000))]
    pub rows: u16,
    /// Characters in a line.
    #[schemars(range(min = 1, max = 1000))]
    pub columns: u16,
}

/// Changes the size of a background command's terminal.
#[derive(Clone, Debug, Default)]
pub struct ResizeCommand(pub BackgroundCommands);

impl TypedTool for ResizeCommand {
    const NAME: &'static str = "resize_command";
    type Args = ResizeCommandArgs;
    type Output = String;

    fn define(&self, definition: &mut ToolDefinition) {
        let description = "Change the size of the terminal of a background command that has one.";
        define(definition, "Resize a background command", description);
    }

    fn footprint(&self, args: &ResizeCommandArgs) -> Option<Footprint> {
        Some(touches(&args.id))
    }

    async fn call(&self, args: ResizeCommandArgs, cx: ToolCtx) -> Result<String, ToolError> {
        let command = self.0.find(cx.context(), &args.id)?;
        if !command.has_terminal {
            return Err(ToolError::bad_args("Bad args: the command was started without a terminal"));
        }
        command.control.resize(TerminalSize { rows: args.rows, columns: args.columns })?;
        Ok(format!("{} rows, {} columns", args.rows, args.columns))
    }
}
