//! `run_command`: one command, to its end.

use haft_core::{
    Category, ErrorCode, IsolationLevel, OutputStream, Risk, Source, ToolDefinition, ToolError, ToolOutput,
    port::{GuestEnd, GuestSpec, GuestStdin},
    text,
};
use haft_sdk::{IntoToolOutput, Json, ToolCtx, TypedTool, files::Access};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
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
}

/// Runs a command.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunCommand;

/// A report with its words.
pub struct Ran {
    report: CommandReport,
}

impl IntoToolOutput for Ran {
    fn output_schema() -> Option<Value> {
        <Json<CommandReport> as IntoToolOutput>::output_schema()
    }

    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        let CommandReport { stdout, stderr, .. } = &self.report;
        let text = if stderr.is_empty() { stdout.clone() } else { format!("{stdout}\n\n[stderr]\n{stderr}") };
        let mut output = Json(self.report).into_tool_output()?;
        output.text = Some(text);
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
        definition.version = Some("1.0.0".to_owned());
        definition.source = Source::BuiltIn;
        definition.aliases = vec!["RunCommand".to_owned(), "Bash".to_owned()];
    }

    fn check(&self, args: &RunCommandArgs) -> Result<(), ToolError> {
        check_command(&args.command, &args.env)
    }

    fn summary(&self, args: &RunCommandArgs) -> Option<String> {
        let place = args.working_dir.as_ref().map(|dir| format!(" (in {dir})")).unwrap_or_default();
        Some(format!("Run command: {}{place}", args.command))
    }

    async fn call(&self, args: RunCommandArgs, cx: ToolCtx) -> Result<Ran, ToolError> {
        let mut spec = spec(&cx, &args.command, args.working_dir.as_deref(), args.env)?;
        spec.stdin = args.stdin.map_or(GuestStdin::Closed, |text| GuestStdin::Bytes(text.into_bytes()));
        if let Some(seconds) = args.timeout {
            spec.limits.wall_time = Some(Duration::from_secs(seconds));
        }
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
        let (stdout, stderr) = (stdout.text(), stderr.text());
        Ok(Ran { report: CommandReport { exit_code: end.exit_code, stdout, stderr } })
    }
}

/// What is wrong with a command before it is run.
pub(super) fn check_command(command: &str, env: &BTreeMap<String, String>) -> Result<(), ToolError> {
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
    }
    Ok(())
}

/// A command as this call may run it.
pub(super) fn spec(
    cx: &ToolCtx,
    command: &str,
    working_dir: Option<&str>,
    env: BTreeMap<String, String>,
) -> Result<GuestSpec, ToolError> {
    let mut spec = cx.commands().template();
    spec.argv = shell(command);
    spec.environment.extend(env);
    if let Some(dir) = working_dir {
        spec.working_dir = Some(PathBuf::from(cx.workspace().locate(dir, Access::Read)?.path));
    }
    Ok(spec)
}

/// The error of an end, with what a model should know.
fn in_words(error: ToolError, end: &GuestEnd) -> ToolError {
    match (error.code, end.exit_code) {
        (ErrorCode::NonZeroExit, Some(code)) => ToolError { message: format!("exit code {code}"), ..error },
        _ => error,
    }
}

/// The most that is kept of each stream: what a tool may put out at all.
const MOST: usize = 10 << 20;

/// What was put out on one stream: all of it, or its beginning and its end.
#[derive(Default)]
struct Taken {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: usize,
}

impl Taken {
    fn take(&mut self, bytes: &[u8]) {
        let room = (MOST / 2).saturating_sub(self.head.len()).min(bytes.len());
        let (head, tail) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        self.tail.extend(tail);
        let over = self.tail.len().saturating_sub(MOST / 2);
        self.tail.drain(..over);
        self.left_out += over;
    }

    fn text(&mut self) -> String {
        let mut bytes = std::mem::take(&mut self.head);
        if self.left_out > 0 {
            bytes.extend_from_slice(format!("\n[{} bytes left out]\n", self.left_out).as_bytes());
        }
        bytes.extend(std::mem::take(&mut self.tail));
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_of_long_output_are_kept() {
        let mut taken = Taken::default();
        taken.take(b"first ");
        for _ in 0..300 {
            taken.take(&vec![b'x'; 64 << 10]);
        }
        taken.take(b" last");
        let text = taken.text();
        assert!(text.starts_with("first x") && text.ends_with("x last"));
        assert!(text.contains(&format!("[{} bytes left out]", 11 + 300 * (64 << 10) - MOST)), "exactly");
        assert!(text.len() < MOST + 100);
    }
}
