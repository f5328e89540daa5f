//! `run_command`: one command, to its end.

use super::{DeniedVariables, taken::Taken};
use haft_core::{
    Category, ErrorCode, IsolationLevel, OutputStream, Risk, Source, Tier, ToolDefinition, ToolError,
    ToolOutput,
    port::{GuestEnd, GuestSpec, GuestStdin},
    text,
};
use haft_sdk::{IntoToolOutput, Json, ToolCtx, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    borrow::Cow,
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// What `run_command` takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCommandArgs {
    /// The command, as one would type it into a shell.
    pub command: String,
    /// The folder that it starts in, relative to the working folder.
    #[serde(default)]
    pub working_dir: Option<String>,
    /// Variables for it, besides those that every command has.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Seconds that it may take.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub timeout: Option<u64>,
    /// What it reads; without it, nothing.
    #[serde(default)]
    pub stdin: Option<String>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CommandReport {
    /// Its exit code; absent where a signal ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What it put out.
    pub stdout: String,
    /// What it said beside that.
    pub stderr: String,
    /// `base64` where `stdout` is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout_encoding: Option<Cow<'static, str>>,
    /// `base64` where `stderr` is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_encoding: Option<Cow<'static, str>>,
}

/// Runs a command.
#[derive(Clone, Debug, Default)]
pub struct RunCommand {
    /// Names of variables that a call may not set.
    pub denied: DeniedVariables,
}

/// A report with its words.
pub struct Ran {
    report: CommandReport,
    words: String,
}

impl IntoToolOutput for Ran {
    fn output_schema() -> Option<Value> {
        <Json<CommandReport> as IntoToolOutput>::output_schema()
    }

    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        let mut output = Json(self.report).into_tool_output()?;
        output.text = Some(self.words);
        output.repeats_stream = true;
        Ok(output)
    }
}

/// The shell of this system.
pub(super) fn shell(command: &str) -> Vec<String> {
    let words = if cfg!(windows) { ["cmd.exe", "/C", command] } else { ["/bin/sh", "-c", command] };
    words.map(str::to_owned).into()
}

impl TypedTool for RunCommand {
    const NAME: &'static str = "run_command";
    type Args = RunCommandArgs;
    type Output = Ran;

    fn define(&self, definition: &mut ToolDefinition) {
        definition.title = Some("Run command".to_owned());
        definition.description = "Run a shell command in a jail: it sees the working folder, a scratch folder and the \
             system's programs, and reaches no network unless hosts are allowed. Gives standard output, and standard \
             error after it."
            .to_owned();
        definition.category = Category::CodeExecution;
        definition.constraints.allow_side_effects = true;
        definition.constraints.required_isolation = IsolationLevel::Strict;
        definition.constraints.max_execution_time = Duration::from_secs(600);
        definition.required_permissions = vec!["tool.command.run".to_owned()];
        definition.requires_confirmation = true;
        definition.risk = Some(Risk::High);
        definition.tier = Tier::Teams;
        definition.version = Some("1.0.0".to_owned());
        definition.source = Source::BuiltIn;
        definition.aliases = vec!["RunCommand".to_owned(), "Bash".to_owned()];
    }

    fn check(&self, args: &RunCommandArgs) -> Result<(), ToolError> {
        check_command(&args.command, &args.env, &self.denied)
    }

    fn timeout(&self, args: &RunCommandArgs) -> Option<Duration> {
        args.timeout.map(Duration::from_secs)
    }

    fn stages(&self, _args: &RunCommandArgs) -> bool {
        true
    }

    fn summary(&self, args: &RunCommandArgs) -> Option<String> {
        let place = args.working_dir.as_ref().map(|dir| format!(" (in {dir})")).unwrap_or_default();
        Some(format!("Run command: {}{place}", args.command))
    }

    async fn call(&self, args: RunCommandArgs, cx: ToolCtx) -> Result<Ran, ToolError> {
        let mut spec = spec(&cx, &args.command, args.working_dir, args.env).await?;
        spec.stdin = args.stdin.map_or(GuestStdin::Closed, |text| GuestStdin::Bytes(text.into_bytes()));
        // Where the caller set a deadline of its own, the shorter of the two counts.
        spec.limits.wall_time =
            args.timeout.map(Duration::from_secs).filter(|timeout| *timeout < cx.timeout());
        let taken: Arc<Mutex<[Taken; 2]>> = Arc::default();
        let (sink, out) = (Arc::clone(&taken), cx.clone());
        let end = cx
            .run_with(
                spec,
                Arc::new(move |stream, bytes| {
                    let [stdout, stderr] = &mut *sink.lock().unwrap_or_else(PoisonError::into_inner);
                    match stream {
                        OutputStream::Stdout => stdout.take(bytes),
                        OutputStream::Stderr => stderr.take(bytes),
                    }
                    out.write(stream, bytes);
                }),
            )
            .await?;
        if let Some(error) = end.error() {
            return Err(in_words(error, &end));
        }
        let [stdout, stderr] = &mut *taken.lock().unwrap_or_else(PoisonError::into_inner);
        let (stdout, stderr) = (stdout.put_out(&cx), stderr.put_out(&cx));
        let words = match stderr.shown.is_empty() {
            true => stdout.shown,
            false => format!("{}\n\n[stderr]\n{}", stdout.shown, stderr.shown),
        };
        let encoding = |is_base64: bool| is_base64.then_some(Cow::Borrowed("base64"));
        let report = CommandReport {
            exit_code: end.exit_code,
            stdout_encoding: encoding(stdout.is_base64),
            stderr_encoding: encoding(stderr.is_base64),
            stdout: stdout.value,
            stderr: stderr.value,
        };
        Ok(Ran { report, words })
    }
}

/// What is wrong with a command before it is run.
pub(super) fn check_command(
    command: &str,
    env: &BTreeMap<String, String>,
    denied: &DeniedVariables,
) -> Result<(), ToolError> {
    if command.trim().is_empty() {
        return Err(ToolError::bad_args("Bad args: command must not be empty"));
    }
    if command.contains('\0') {
        return Err(ToolError::bad_args("Bad args: command must not contain a NUL character"));
    }
    for (name, value) in env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let shown = text::one_line(name, 60);
            return Err(ToolError::bad_args(format!("Bad args: env: '{shown}' cannot be a variable")));
        }
        denied.allow(name)?;
    }
    Ok(())
}

/// A command as this call may run it.
pub(super) async fn spec(
    cx: &ToolCtx,
    command: &str,
    working_dir: Option<String>,
    env: BTreeMap<String, String>,
) -> Result<GuestSpec, ToolError> {
    let mut spec = cx.commands().template().clone();
    spec.argv = shell(command);
    spec.environment.extend(env);
    if let Some(dir) = working_dir {
        spec.working_dir = Some(folder(cx, dir).await?);
    }
    Ok(spec)
}

/// Where a folder is that a call names.
pub(super) async fn folder(cx: &ToolCtx, dir: String) -> Result<PathBuf, ToolError> {
    cx.blocking(move |cx| Ok(PathBuf::from(cx.workspace().working_folder(&dir)?.path))).await
}

/// The error of an end, with what a model should know.
fn in_words(error: ToolError, end: &GuestEnd) -> ToolError {
    match (error.code, end.exit_code) {
        (ErrorCode::NonZeroExit, Some(code)) => ToolError { message: format!("exit code {code}"), ..error },
        _ => error,
    }
}
