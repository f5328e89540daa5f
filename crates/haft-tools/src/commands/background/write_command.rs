//! `write_command`: words for a background command.

use super::{BackgroundCommands, define, touches};
use haft_core::{Footprint, Risk, ToolDefinition, ToolError};
use haft_sdk::{ToolCtx, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

/// What `write_command` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteCommandArgs {
    /// The id that start_command gave.
    pub id: String,
    /// What it gets to read, exactly: a line needs its line end.
    #[serde(default)]
    pub input: String,
    /// Whether its standard input ends after that.
    #[serde(default)]
    pub close: bool,
}

/// Writes to a background command.
#[derive(Clone, Debug, Default)]
pub struct WriteCommand(pub BackgroundCommands);

impl TypedTool for WriteCommand {
    const NAME: &'static str = "write_command";
    type Args = WriteCommandArgs;
    type Output = String;

    fn define(&self, definition: &mut ToolDefinition) {
        let description = "Write to the standard input of a background command, or end it.";
        define(definition, "Write to a background command", description);
        // To a shell, what is written is a command.
        definition.constraints.allow_side_effects = true;
        definition.risk = Some(Risk::High);
    }

    fn check(&self, args: &WriteCommandArgs) -> Result<(), ToolError> {
        match args.input.is_empty() && !args.close {
            true => Err(ToolError::bad_args("Bad args: there is neither input to write nor an end to set")),
            false => Ok(()),
        }
    }

    fn footprint(&self, args: &WriteCommandArgs) -> Option<Footprint> {
        Some(touches(&args.id))
    }

    fn summary(&self, args: &WriteCommandArgs) -> Option<String> {
        let end = if args.close { ", and end its input" } else { "" };
        Some(format!("Write to {}{end}: {}", args.id, args.input))
    }

    async fn call(&self, args: WriteCommandArgs, cx: ToolCtx) -> Result<String, ToolError> {
        let command = self.0.find(cx.context(), &args.id)?;
        if command.has_ended() {
            return Err(ToolError::failed("the command has ended"));
        }
        if !args.input.is_empty() {
            command.control.write(args.input.as_bytes()).await?;
        }
        if args.close {
            command.control.close_stdin();
        }
        let end = if args.close { "; its input has ended" } else { "" };
        Ok(format!("{} bytes written{end}", args.input.len()))
    }
}
