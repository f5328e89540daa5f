//! Command tools: any program as a tool.
//!
//! A definition whose source is `command` says in its `command` table which program runs, how it gets the arguments and
//! what it puts out. It runs in a jail, with no more than the configuration grants to every command.

mod footprint;
mod invocation;
mod progress;

use super::{CommandToolSettings, run_command, taken::Taken};
use footprint::Written;
use haft_core::{
    CommandInput, CommandOutput, CommandSource, DefinitionProblem, ErrorCode, Footprint, IsolationLevel,
    OutputStream, Source, ToolDefinition, ToolError, ToolOutput,
    port::{GuestEnd, GuestSpec, GuestStdin, OutputSink, covers_host},
    text,
};
use haft_sdk::{Args, Prepared, Tool, ToolCtx, ToolFuture};
use progress::ProgressLines;
use serde_json::{Map, Value};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// A program as a tool.
///
/// ```
/// use haft_core::{CommandSource, Source, ToolDefinition};
/// use haft_sdk::Tool;
/// let mut definition = ToolDefinition::new("word_count", "Counts the words of a text");
/// definition.source = Source::Command;
/// definition.command = Some(Box::new(CommandSource::new("wc")));
/// let tool = haft_tools::CommandTool::new(definition, &haft_tools::CommandToolSettings::default())?;
/// assert_eq!(tool.definition().name, "word_count");
/// # Ok::<(), haft_core::DefinitionProblem>(())
/// ```
#[derive(Clone, Debug)]
pub struct CommandTool {
    definition: Arc<ToolDefinition>,
    command: Arc<CommandSource>,
    settings: CommandToolSettings,
}

impl CommandTool {
    /// The tool of that definition. When it is called it is contained as strongly as commands are on this installation, or
    /// stronger, as far as the licence includes that.
    ///
    /// # Errors
    ///
    /// Its source is not `command`, it names no program, or it names a variable that programs never get.
    pub fn new(
        mut definition: ToolDefinition,
        settings: &CommandToolSettings,
    ) -> Result<Self, DefinitionProblem> {
        let problem = |place: &str, problem: String, fix: &str| DefinitionProblem {
            place: place.to_owned(),
            problem,
            fix: fix.to_owned(),
        };
        let (Source::Command, Some(command)) = (definition.source, &definition.command) else {
            let text = format!("`{}` names no program", text::one_line(&definition.name, 80));
            let fix = "set source to `command`, and add a table `command` with `program`";
            return Err(problem("command", text, fix));
        };
        for (index, name) in command.env.iter().enumerate() {
            if let Err(error) = settings.denied_variables.allow(name) {
                let place = format!("command.env[{index}]");
                return Err(problem(&place, error.message.replace("Bad args: env: ", ""), "remove it"));
            }
        }
        let command = Arc::new(CommandSource::clone(command));
        let required = &mut definition.constraints.required_isolation;
        *required = IsolationLevel::Standard.max(*required);
        Ok(CommandTool { definition: Arc::new(definition), command, settings: settings.clone() })
    }

    /// A definition whose relative paths are those beside a file in `folder`: what a person wrote becomes what counts
    /// wherever haft is started.
    ///
    /// # Errors
    ///
    /// The program or one of its files is not there, or the program cannot be run.
    pub fn anchored(
        mut definition: ToolDefinition,
        folder: &Path,
        search_path: Option<&std::ffi::OsStr>,
    ) -> Result<ToolDefinition, DefinitionProblem> {
        let Some(command) = definition.command.as_deref_mut() else { return Ok(definition) };
        let problem = |place: String, problem: String, fix: &str| DefinitionProblem {
            place,
            problem,
            fix: fix.to_owned(),
        };
        let shown = |path: &Path| text::one_line(&path.to_string_lossy(), 300);
        if command.program.contains('/') {
            let path = folder.join(&command.program);
            let place = "command.program".to_owned();
            let real = std::path::absolute(&path).unwrap_or(path);
            if !real.is_file() {
                let text = format!("there is no program {}", shown(&real));
                return Err(problem(place, text, "a relative path is taken from the folder of this file"));
            }
            if !is_executable(&real) {
                let text = format!("{} cannot be run", shown(&real));
                return Err(problem(place, text, "make it executable: chmod +x"));
            }
            command.program = of_text(&real)
                .ok_or_else(|| problem(place, "its path is not UTF-8".to_owned(), "use another folder"))?;
        } else if !found(&command.program, search_path) {
            let text = format!("there is no program `{}` in PATH", text::one_line(&command.program, 80));
            let fix = "install it, or write `./` before a program that stands beside this file";
            return Err(problem("command.program".to_owned(), text, fix));
        }
        for (index, file) in command.files.iter_mut().enumerate() {
            let place = format!("command.files[{index}]");
            let path = folder.join(&*file);
            let real = std::path::absolute(&path).unwrap_or(path);
            if !real.exists() {
                let text = format!("there is no {}", shown(&real));
                return Err(problem(place, text, "a relative path is taken from the folder of this file"));
            }
            *file = of_text(&real)
                .ok_or_else(|| problem(place, "its path is not UTF-8".to_owned(), "use another folder"))?;
        }
        Ok(definition)
    }
}

fn of_text(path: &Path) -> Option<String> {
    path.to_str().map(str::to_owned)
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_path: &Path) -> bool {
    true
}

/// Whether a program of that name is in one of the folders.
fn found(name: &str, search_path: Option<&std::ffi::OsStr>) -> bool {
    const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";
    let folders = search_path.unwrap_or(USUAL.as_ref());
    std::env::split_paths(folders).any(|folder| {
        let path = folder.join(name);
        (path.is_file() && is_executable(&path)) || cfg!(windows) && path.with_extension("exe").is_file()
    })
}

impl Tool for CommandTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn prepare(&self, args: &Args) -> Result<Box<dyn Prepared>, ToolError> {
        let parameters = self.definition.parameters.to_schema();
        let mut argv = vec![self.command.program.clone()];
        argv.extend(self.command.args.iter().cloned());
        let stdin = match self.command.input {
            CommandInput::Stdin => {
                let mut object = Value::Object(args.value.clone()).to_string().into_bytes();
                object.push(b'\n');
                GuestStdin::Bytes(object)
            }
            CommandInput::Flags => {
                argv.extend(invocation::flags(&self.command, &parameters, &args.value)?);
                GuestStdin::Closed
            }
        };
        let footprint = footprint::declared(&self.command, &args.value)
            .unwrap_or_else(|| Footprint::undeclared(self.definition.has_side_effects()));
        Ok(Box::new(Invocation { tool: self.clone(), args: args.value.clone(), argv, stdin, footprint }))
    }
}

/// A call of a program.
struct Invocation {
    tool: CommandTool,
    args: Map<String, Value>,
    argv: Vec<String>,
    stdin: GuestStdin,
    footprint: Footprint,
}

impl Prepared for Invocation {
    fn confirm(&self) -> Option<String> {
        None
    }

    fn footprint(&self) -> Footprint {
        self.footprint.clone()
    }

    fn stages(&self) -> bool {
        true
    }

    fn summary(&self) -> String {
        let words: Vec<String> = self.argv.iter().map(|word| invocation::quoted(word)).collect();
        let input = match &self.stdin {
            GuestStdin::Bytes(bytes) => format!(" <<< {}", String::from_utf8_lossy(bytes).trim_end()),
            GuestStdin::Closed | GuestStdin::Stream => String::new(),
        };
        format!("{}: {}{input}", self.tool.definition.name, words.join(" "))
    }

    fn execute(self: Box<Self>, cx: ToolCtx) -> ToolFuture {
        Box::pin(async move {
            let Invocation { tool, args, argv, stdin, .. } = *self;
            let spec = GuestSpec { argv, stdin, ..tool.spec(&cx, args).await? };
            tool.run(&cx, spec).await
        })
    }
}

/// What a run put out.
#[derive(Default)]
struct Heard {
    stdout: Taken,
    stderr: ProgressLines,
}

impl CommandTool {
    /// What the program is granted: no more than every command, and of that what the definition names.
    async fn spec(&self, cx: &ToolCtx, args: Map<String, Value>) -> Result<GuestSpec, ToolError> {
        let (command, name) = (&self.command, &self.definition.name);
        let mut spec = cx.commands().template().clone();
        if let Some(host) =
            command.hosts.iter().find(|host| !spec.hosts.iter().any(|granted| covers_host(granted, host)))
        {
            let text = format!(
                "`{name}` wants to reach the host `{}`, which is not in tools.commands.hosts",
                text::one_line(host, 100)
            );
            return Err(ToolError::new(ErrorCode::NetworkPolicyViolation, text));
        }
        if let Some(preset) = command.presets.iter().find(|preset| !spec.presets.contains(preset)) {
            let text =
                format!("`{name}` wants the preset {preset:?}, which is not in tools.commands.presets");
            return Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text));
        }
        if let Some((limit, asked, granted)) = command.limits.exceeds(&spec.limits) {
            let text = format!("`{name}` wants {limit} of {asked}, and tools.commands grants {granted}");
            return Err(ToolError::new(ErrorCode::ResourceLimitExceeded, text));
        }
        spec.hosts.clone_from(&command.hosts);
        spec.presets.clone_from(&command.presets);
        spec.limits = command.limits.or(&spec.limits);
        for name in &command.env {
            self.settings.denied_variables.allow(name)?;
            if let Some(value) = self.settings.variables.get(name) {
                spec.environment.insert(name.clone(), value);
            }
        }
        if let Some(dir) = &command.working_dir {
            spec.working_dir = Some(run_command::folder(cx, dir.clone()).await?);
        }
        if let Written::Paths(paths) = footprint::written(command, &args) {
            let writable = cx.blocking(move |cx| footprint::folders(cx, &paths)).await?;
            let visible = std::mem::replace(&mut spec.writable, writable);
            spec.readable.extend(visible);
        }
        let own: Vec<PathBuf> = std::iter::once(&command.program)
            .filter(|program| program.contains('/'))
            .chain(&command.files)
            .map(PathBuf::from)
            .collect();
        let tool = name.clone();
        let own = cx.blocking(move |_| present(&tool, own)).await?;
        spec.readable.extend(own);
        Ok(spec)
    }

    /// Runs it, and makes of what it put out what the tool gives.
    async fn run(&self, cx: &ToolCtx, spec: GuestSpec) -> Result<ToolOutput, ToolError> {
        let heard: Arc<Mutex<Heard>> = Arc::default();
        let end = cx.run_with(spec, self.sink(cx, &heard)).await?;
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.stderr.finish(cx);
        let is_cut = heard.stdout.is_cut();
        match end.error() {
            Some(error) => Err(self.failed(cx, error, &end, heard.stdout.bytes())),
            None => match self.command.output {
                CommandOutput::Text => Ok(ToolOutput {
                    text: Some(heard.stdout.put_out(cx).alone()),
                    repeats_stream: true,
                    ..ToolOutput::default()
                }),
                CommandOutput::Json => self.parsed(cx, heard.stdout.bytes(), is_cut),
            },
        }
    }

    fn sink(&self, cx: &ToolCtx, heard: &Arc<Mutex<Heard>>) -> OutputSink {
        let (heard, cx, output) = (Arc::clone(heard), cx.clone(), self.command.output);
        Arc::new(move |stream, bytes: &[u8]| {
            let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
            match stream {
                OutputStream::Stdout => {
                    heard.stdout.take(bytes);
                    // A value means something only as a whole.
                    if output == CommandOutput::Text {
                        cx.write(stream, bytes);
                    }
                }
                OutputStream::Stderr => heard.stderr.take(&cx, bytes),
            }
        })
    }

    /// The error of a run that did not succeed. A program that put out an error of its own as a JSON object is heard as
    /// it spoke.
    fn failed(&self, cx: &ToolCtx, error: ToolError, end: &GuestEnd, stdout: Vec<u8>) -> ToolError {
        if error.code == ErrorCode::NonZeroExit
            && let Ok(said) = std::str::from_utf8(&stdout)
            && is_object(said.trim())
        {
            let own = ToolError::new(ErrorCode::ExecutionFailed, said.trim());
            return ToolError { data: error.data, ..own };
        }
        if self.command.output == CommandOutput::Json {
            cx.write(OutputStream::Stdout, &stdout);
        }
        match (error.code, end.exit_code) {
            (ErrorCode::NonZeroExit, Some(code)) => {
                ToolError { message: format!("exit code {code}"), ..error }
            }
            _ => error,
        }
    }

    fn parsed(&self, cx: &ToolCtx, stdout: Vec<u8>, is_cut: bool) -> Result<ToolOutput, ToolError> {
        let problem = match std::str::from_utf8(&stdout) {
            _ if is_cut => "it is longer than what is kept of an output".to_owned(),
            Err(error) => format!("it is not UTF-8: {error}"),
            Ok(said) => match haft_core::json::parse(said) {
                Ok(value) => return Ok(ToolOutput::structured(value)),
                Err(problem) => problem.to_string(),
            },
        };
        cx.write(OutputStream::Stdout, &stdout);
        let text = format!("`{}` did not put out JSON: {problem}", self.definition.name);
        Err(ToolError::new(ErrorCode::OutputValidationFailed, text))
    }
}

fn is_object(text: &str) -> bool {
    text.starts_with('{') && serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

/// The program and its files, which must still be there.
fn present(tool: &str, own: Vec<PathBuf>) -> Result<Vec<PathBuf>, ToolError> {
    match own.iter().find(|path| !path.exists()) {
        None => Ok(own),
        Some(gone) => {
            let text = format!(
                "{} of the tool `{tool}` is not there any more. Put it back, or add the tool again",
                text::one_line(&gone.to_string_lossy(), 300)
            );
            Err(ToolError::new(ErrorCode::ToolDisabled, text))
        }
    }
}
