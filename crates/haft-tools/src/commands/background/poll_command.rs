//! `poll_command`: what a background command put out since the last look.

use super::{BackgroundCommands, define, room, touches};
use haft_core::{Footprint, ToolDefinition, ToolError, ToolOutput};
use haft_sdk::{IntoToolOutput, Json, ToolCtx, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{fmt::Write as _, time::Duration};

/// The longest wait of one look.
const LONGEST_WAIT: u64 = 25_000;

/// What `poll_command` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PollCommandArgs {
    /// The id that start_command gave.
    pub id: String,
    /// Where to go on: the `cursor` of an earlier look, or 0 for all that is kept. Without it, where the last look
    /// ended.
    #[serde(default)]
    pub cursor: Option<u64>,
    /// Milliseconds to wait for something new, or for its end; at most 25000.
    #[serde(default)]
    #[schemars(range(max = 25_000))]
    pub wait_ms: u64,
    /// The most bytes of output.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub max_bytes: Option<u64>,
}

/// Where a background command is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PollReport {
    /// The id of the command.
    pub id: String,
    /// Whether it runs.
    pub running: bool,
    /// Its exit code, once it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it, where one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The limit that ended it, or what else went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What it put out since the cursor.
    pub stdout: String,
    /// What it said beside that.
    pub stderr: String,
    /// Where the next look goes on.
    pub cursor: u64,
    /// Bytes that came after the cursor and are kept no longer.
    pub dropped: u64,
    /// Bytes that are there and did not fit.
    pub more: u64,
}

impl PollReport {
    /// The report in words, for a model.
    fn words(&self) -> String {
        let mut text = match (self.running, self.exit_code, self.signal) {
            (true, _, _) => "[running".to_owned(),
            (false, Some(code), _) => format!("[ended with exit code {code}"),
            (false, None, Some(signal)) => format!("[ended by signal {signal}"),
            (false, None, None) => "[ended".to_owned(),
        };
        if let Some(problem) = &self.problem {
            let _ = write!(text, ": {problem}");
        }
        let _ = write!(text, "; cursor {}", self.cursor);
        if self.dropped > 0 {
            let _ = write!(text, "; {} bytes before this are gone", self.dropped);
        }
        if self.more > 0 {
            let _ = write!(text, "; {} more bytes are there", self.more);
        }
        text.push_str("]\n");
        text.push_str(&self.stdout);
        if !self.stderr.is_empty() {
            let _ = write!(text, "\n\n[stderr]\n{}", self.stderr);
        }
        text
    }
}

impl IntoToolOutput for PollReport {
    fn output_schema() -> Option<Value> {
        <Json<PollReport> as IntoToolOutput>::output_schema()
    }

    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        let words = self.words();
        let mut output = Json(self).into_tool_output()?;
        output.text = Some(words);
        Ok(output)
    }
}

/// Looks at a background command.
#[derive(Clone, Debug, Default)]
pub struct PollCommand(pub BackgroundCommands);

impl TypedTool for PollCommand {
    const NAME: &'static str = "poll_command";
    type Args = PollCommandArgs;
    type Output = PollReport;

    fn define(&self, definition: &mut ToolDefinition) {
        let description = "Look at a background command: what it put out since the last look, and whether it runs or \
             how it ended. Can wait a while for something new.";
        define(definition, "Look at a background command", description);
    }

    fn footprint(&self, args: &PollCommandArgs) -> Option<Footprint> {
        Some(touches(&args.id))
    }

    async fn call(&self, args: PollCommandArgs, cx: ToolCtx) -> Result<PollReport, ToolError> {
        let command = self.0.find(cx.context(), &args.id)?;
        let wait = Duration::from_millis(args.wait_ms.min(LONGEST_WAIT));
        if !wait.is_zero() {
            command.news(args.cursor, wait).await;
        }
        Ok(command.look(&cx, args.cursor, room(&cx, args.max_bytes)))
    }
}
