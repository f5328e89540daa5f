//! `start_command`: a command that runs on.

use super::{
    super::{
        DeniedVariables,
        run_command::{check_command, spec},
    },
    BackgroundCommands, Owner,
};
use haft_core::{
    Category, IsolationLevel, Risk, Source, Tier, ToolDefinition, ToolError, ToolOutput,
    port::{GuestStdin, TerminalSize},
};
use haft_sdk::{IntoToolOutput, Json, ToolCtx, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};

/// How long a command may run that does not say: an hour.
const LIFETIME: u64 = 3600;
/// The longest that one may ask for: a day.
const LONGEST: u64 = 24 * 3600;

/// A terminal for a command.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Terminal {
    /// Lines.
    #[serde(default = "rows")]
    #[schemars(range(min = 1, max = 1000))]
    pub rows: u16,
    /// Characters in a line.
    #[serde(default = "columns")]
    #[schemars(range(min = 1, max = 1000))]
    pub columns: u16,
}

fn rows() -> u16 {
    24
}

fn columns() -> u16 {
    80
}

impl From<Terminal> for TerminalSize {
    fn from(terminal: Terminal) -> Self {
        TerminalSize { rows: terminal.rows, columns: terminal.columns }
    }
}

/// What `start_command` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartCommandArgs {
    /// The command, as one would type it into a shell.
    pub command: String,
    /// The folder that it starts in, relative to the working folder.
    #[serde(default)]
    pub working_dir: Option<String>,
    /// Variables for it, besides those that every command has.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Seconds that it may run; an hour where absent, at most a day.
    #[serde(default)]
    #[schemars(range(min = 1, max = 86_400))]
    pub timeout: Option<u64>,
    /// A terminal of its own, for programs that want one. Without it, standard output and standard error are apart.
    #[serde(default)]
    pub terminal: Option<Terminal>,
}

/// A command that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Started {
    /// Its id, for poll_command and the others.
    pub id: String,
}

impl IntoToolOutput for Started {
    fn output_schema() -> Option<Value> {
        <Json<Started> as IntoToolOutput>::output_schema()
    }

    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        let words = format!("Started {}. Look at it with poll_command", self.id);
        let mut output = Json(self).into_tool_output()?;
        output.text = Some(words);
        Ok(output)
    }
}

/// Starts a command that runs on.
#[derive(Clone, Debug, Default)]
pub struct StartCommand {
    /// Where it is kept.
    pub commands: BackgroundCommands,
    /// Names of variables that a call may not set.
    pub denied: DeniedVariables,
}

impl TypedTool for StartCommand {
    const NAME: &'static str = "start_command";
    type Args = StartCommandArgs;
    type Output = Started;

    fn define(&self, definition: &mut ToolDefinition) {
        definition.title = Some("Start a background command".to_owned());
        definition.description = "Start a shell command in a jail and let it run on, such as a server or a watcher. \
             Gives an id for poll_command, write_command, signal_command and kill_command. It ends with the session."
            .to_owned();
        definition.category = Category::CodeExecution;
        definition.constraints.allow_side_effects = true;
        definition.constraints.required_isolation = IsolationLevel::Strict;
        definition.required_permissions = vec!["tool.command.run".to_owned()];
        definition.requires_confirmation = true;
        definition.risk = Some(Risk::High);
        definition.tier = Tier::Teams;
        definition.version = Some("1.0.0".to_owned());
        definition.source = Source::BuiltIn;
    }

    fn check(&self, args: &StartCommandArgs) -> Result<(), ToolError> {
        check_command(&args.command, &args.env, &self.denied)
    }

    fn summary(&self, args: &StartCommandArgs) -> Option<String> {
        let place = args.working_dir.as_ref().map(|dir| format!(" (in {dir})")).unwrap_or_default();
        Some(format!("Start background command: {}{place}", args.command))
    }

    async fn call(&self, args: StartCommandArgs, cx: ToolCtx) -> Result<Started, ToolError> {
        let reservation = self.commands.reserve(&Owner::of(cx.context()))?;
        let mut spec = spec(&cx, &args.command, args.working_dir, args.env).await?;
        spec.stdin = GuestStdin::Stream;
        spec.terminal = args.terminal.map(TerminalSize::from);
        let seconds = args.timeout.unwrap_or(LIFETIME).min(LONGEST);
        spec.limits.wall_time = Some(Duration::from_secs(seconds));
        let guest = cx.start(spec).await?;
        let id = self.commands.add(reservation, args.command, args.terminal.is_some(), guest);
        Ok(Started { id })
    }
}
