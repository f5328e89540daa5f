//! `signal_command`: a signal for a background command.

use super::{BackgroundCommands, define, touches};
use haft_core::{Footprint, Risk, ToolDefinition, ToolError, port::GuestSignal};
use haft_sdk::{ToolCtx, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

/// A signal by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignalName {
    /// As Ctrl-C does.
    Interrupt,
    /// A request to end.
    Terminate,
    /// The terminal went away; many servers read their settings again.
    Hangup,
    /// As Ctrl-\ does.
    Quit,
    /// Pause.
    Stop,
    /// Go on.
    Continue,
}

impl From<SignalName> for GuestSignal {
    fn from(name: SignalName) -> Self {
        match name {
            SignalName::Interrupt => GuestSignal::Interrupt,
            SignalName::Terminate => GuestSignal::Terminate,
            SignalName::Hangup => GuestSignal::Hangup,
            SignalName::Quit => GuestSignal::Quit,
            SignalName::Stop => GuestSignal::Stop,
            SignalName::Continue => GuestSignal::Continue,
        }
    }
}

/// What `signal_command` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalCommandArgs {
    /// The id that start_command gave.
    pub id: String,
    /// The signal.
    pub signal: SignalName,
}

/// Sends a background command a signal.
#[derive(Clone, Debug, Default)]
pub struct SignalCommand(pub BackgroundCommands);

impl TypedTool for SignalCommand {
    const NAME: &'static str = "signal_command";
    type Args = SignalCommandArgs;
    type Output = String;

    fn define(&self, definition: &mut ToolDefinition) {
        let description =
            "Send a signal to a background command and what it started. To end it, use kill_command.";
        define(definition, "Signal a background command", description);
        // What a program does about one is its own.
        definition.constraints.allow_side_effects = true;
        definition.risk = Some(Risk::Medium);
    }

    fn footprint(&self, args: &SignalCommandArgs) -> Option<Footprint> {
        Some(touches(&args.id))
    }

    async fn call(&self, args: SignalCommandArgs, cx: ToolCtx) -> Result<String, ToolError> {
        let command = self.0.find(cx.context(), &args.id)?;
        if command.has_ended() {
            return Err(ToolError::failed("the command has ended"));
        }
        command.control.signal(args.signal.into())?;
        Ok("sent".to_owned())
    }
}
