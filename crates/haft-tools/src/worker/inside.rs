//! The side in the jail: one call of one tool, with files that this process opens itself.

use super::wire::{self, Answer, Failure, Job, MOST_LINE, Output, Purpose, Said};
use crate::{
    changing::{ApplyPatch, CopyFile, DeleteFile, EditFile, MoveFile, WriteFile},
    files::{Glob, ListDirectory, ReadFile, SearchFiles},
};
use haft_core::{
    Arguments, CallContext, Enforcement, ErrorCode, ExecutionId, Footprint, IsolationLevel, Limits,
    OutputStream, ToolCall, ToolError, ToolOutput,
    port::{BoxFuture, GuestEnd, GuestSpec},
};
use haft_sdk::{
    CallHost, Cancel, IntoToolOutput, ToolCtx, TypedTool,
    capability::{Capabilities, Workspace},
    files::{
        Access, ChangeSet, Changed, FolderView, Metadata, Meter, OpenFile, Place, Reader, Scope, Visitor,
        Walk, metered,
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::{
    io::{self, BufRead as _, BufReader, Read as _, Stdin, Write as _},
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// The argument with which a program is started as a worker.
pub const MARK: &str = "haft-file-worker";

/// Does the job that comes on standard input, with files that `open` makes of their description.
pub fn serve(open: impl FnOnce(Value) -> Result<Arc<dyn Workspace>, ToolError>) -> ExitCode {
    let line = Arc::new(Line(Mutex::new(BufReader::new(io::stdin()))));
    let result = line.hear::<Job>().and_then(|job| {
        let files = Asking { files: open(job.files.clone())?, line: Arc::clone(&line) };
        work(job, files)
    });
    let done = Said::Done(result.map(Output::from).map_err(Failure::from));
    match line.say(&done) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn work(job: Job, files: Asking) -> Result<ToolOutput, ToolError> {
    match job.tool.as_str() {
        ApplyPatch::NAME => run::<ApplyPatch>(job, files),
        CopyFile::NAME => run::<CopyFile>(job, files),
        DeleteFile::NAME => run::<DeleteFile>(job, files),
        EditFile::NAME => run::<EditFile>(job, files),
        Glob::NAME => run::<Glob>(job, files),
        ListDirectory::NAME => run::<ListDirectory>(job, files),
        MoveFile::NAME => run::<MoveFile>(job, files),
        ReadFile::NAME => run::<ReadFile>(job, files),
        SearchFiles::NAME => run::<SearchFiles>(job, files),
        WriteFile::NAME => run::<WriteFile>(job, files),
        other => Err(ToolError::new(ErrorCode::ToolNotFound, format!("a worker does not know `{other}`"))),
    }
}

fn run<T: TypedTool + DeserializeOwned>(job: Job, files: Asking) -> Result<ToolOutput, ToolError> {
    let json = |error: serde_json::Error| wire::unreadable(&error);
    let tool: T = serde_json::from_value(job.settings.clone()).map_err(json)?;
    let args: T::Args = serde_json::from_value(job.arguments.clone()).map_err(json)?;
    let line = Arc::clone(&files.line);
    let mut files: Arc<dyn Workspace> = Arc::new(files);
    let mut meter = None;
    if job.limits != Limits::default() {
        let counting = Arc::new(Meter::new(job.limits.clone(), Arc::new(Cancel::new())));
        files = metered(files, Arc::clone(&counting));
        meter = Some(counting);
    }
    let purpose = job.purpose;
    let call = ToolCall::new(T::NAME, Arguments::from(job.arguments.clone()));
    let capabilities = Capabilities { workspace: files, ..Capabilities::default() };
    let host = Inside { job, line, capabilities, call, context: CallContext::owner(), cancel: Cancel::new() };
    let cx = ToolCtx::new(Arc::new(host));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| ToolError::from(ErrorCode::SandboxCrashed).with_diagnostics(error))?;
    let result = runtime.block_on(async {
        match purpose {
            Purpose::Run => tool.call(args, cx).await?.into_tool_output(),
            Purpose::Preview => match tool.preview(&args, cx) {
                Some(look) => look.await.map(ToolOutput::text),
                None => Ok(ToolOutput::default()),
            },
        }
    });
    // Also where the tool made something else of it.
    meter.and_then(|meter| meter.exceeded()).map_or(result, Err)
}

/// The two streams to haft, one message at a time.
struct Line(Mutex<BufReader<Stdin>>);

impl Line {
    fn ask(&self, question: &Said) -> Result<Answer, ToolError> {
        let mut input = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        say(question)?;
        match hear(&mut input)? {
            Answer::Refused(failure) => Err(failure.into()),
            answer => Ok(answer),
        }
    }

    fn say(&self, message: &Said) -> Result<(), ToolError> {
        let _one_at_a_time = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        say(message)
    }

    fn hear<M: DeserializeOwned>(&self) -> Result<M, ToolError> {
        hear(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn say(message: &Said) -> Result<(), ToolError> {
    let line = wire::line(message)?;
    let mut out = io::stdout().lock();
    out.write_all(&line).and_then(|()| out.flush()).map_err(|error| cut(&error))
}

fn hear<M: DeserializeOwned>(input: &mut BufReader<Stdin>) -> Result<M, ToolError> {
    let mut line = Vec::new();
    // What haft sends is within its own bounds; an argument may be a little more than a file.
    input.take(2 * MOST_LINE as u64).read_until(b'\n', &mut line).map_err(|error| cut(&error))?;
    serde_json::from_slice(&line).map_err(|error| wire::unreadable(&error))
}

fn cut(error: &io::Error) -> ToolError {
    ToolError::from(ErrorCode::SandboxCrashed).with_diagnostics(format!("haft does not listen: {error}"))
}

fn out_of_turn() -> ToolError {
    ToolError::from(ErrorCode::SandboxCrashed).with_diagnostics("haft answered something else")
}

/// Files of this process to look at; whatever changes or remembers something is asked for outside.
struct Asking {
    files: Arc<dyn Workspace>,
    line: Arc<Line>,
}

impl Workspace for Asking {
    fn locate(&self, path: &str, access: Access) -> Result<Place, ToolError> {
        self.files.locate(path, access)
    }

    fn look(&self, path: &str) -> Result<Option<(Place, Metadata)>, ToolError> {
        self.files.look(path)
    }

    fn working_folder(&self, path: &str) -> Result<Place, ToolError> {
        self.files.working_folder(path)
    }

    fn open(&self, path: &str) -> Result<OpenFile, ToolError> {
        self.files.open(path)
    }

    fn folder(&self, path: &str) -> Result<(Place, Box<dyn FolderView>), ToolError> {
        self.files.folder(path)
    }

    fn walk(&self, walk: &Walk<'_>, visitor: &Visitor<'_>) -> Result<Place, ToolError> {
        self.files.walk(walk, visitor)
    }

    fn protects(&self, path: &str, scope: Scope) -> Result<Option<String>, ToolError> {
        self.files.protects(path, scope)
    }

    fn change(&self, set: ChangeSet) -> Result<Vec<Changed>, ToolError> {
        let ChangeSet { summary, changes, .. } = set;
        match self.line.ask(&Said::Change { summary, changes })? {
            Answer::Changed(changed) => Ok(changed),
            _ => Err(out_of_turn()),
        }
    }

    /// Records of changes are outside.
    fn changed_by(&self, _of: ExecutionId, _tenant: &str) -> Result<Option<Vec<String>>, ToolError> {
        Ok(None)
    }

    fn undo(&self, _of: ExecutionId, _by: ExecutionId, _reader: &Reader) -> Result<Vec<Changed>, ToolError> {
        Err(ToolError::new(ErrorCode::SandboxCreationFailed, "nothing is undone from a jail"))
    }

    fn last_read(&self, _reader: &Reader, place: &Place) -> Result<Option<String>, ToolError> {
        match self.line.ask(&Said::LastRead(place.clone()))? {
            Answer::LastRead(hash) => Ok(hash),
            _ => Err(out_of_turn()),
        }
    }

    fn remember(&self, _reader: &Reader, place: &Place, sha256: &str) -> Result<(), ToolError> {
        match self.line.ask(&Said::Remember { place: place.clone(), sha256: sha256.to_owned() })? {
            Answer::Remembered => Ok(()),
            _ => Err(out_of_turn()),
        }
    }

    /// They are held already.
    fn held_to(&self, footprint: &Footprint) -> Arc<dyn Workspace> {
        Arc::new(Asking { files: self.files.held_to(footprint), line: Arc::clone(&self.line) })
    }
}

/// What stands behind the tool's context in a worker. It grants files and nothing else, and knows nobody.
struct Inside {
    job: Job,
    line: Arc<Line>,
    capabilities: Capabilities,
    call: ToolCall,
    context: Arc<CallContext>,
    cancel: Cancel,
}

impl CallHost for Inside {
    fn execution_id(&self) -> ExecutionId {
        self.job.execution_id
    }

    fn call(&self) -> &ToolCall {
        &self.call
    }

    fn context(&self) -> &CallContext {
        &self.context
    }

    fn attempt(&self) -> u32 {
        self.job.attempt
    }

    fn timeout(&self) -> Duration {
        self.job.timeout
    }

    fn output_limit(&self) -> usize {
        self.job.output_limit
    }

    fn capacity(&self) -> usize {
        self.job.capacity
    }

    /// Outside it is known which they are. Where nobody answers, nothing is shown.
    fn without_secrets(&self, bytes: Vec<u8>) -> Vec<u8> {
        match self.line.ask(&Said::WithoutSecrets(bytes)) {
            Ok(Answer::Bytes(bytes)) => bytes,
            _ => Vec::new(),
        }
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    fn write(&self, _stream: OutputStream, bytes: &[u8]) {
        complain(&String::from_utf8_lossy(bytes));
    }

    fn progress(&self, percent: Option<u8>, message: Option<&str>) {
        complain(&format!("{percent:?} {message:?}"));
    }

    fn warn(&self, message: &str) {
        complain(message);
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn workspace(&self) -> &dyn Workspace {
        &*self.capabilities.workspace
    }

    /// It is in the jail.
    fn isolation(&self) -> IsolationLevel {
        IsolationLevel::None
    }

    fn file_limits(&self) -> Limits {
        self.job.limits.clone()
    }

    fn run_blocking(&self, job: Box<dyn FnOnce() + Send>) {
        std::thread::spawn(job);
    }

    fn fit(&self, _spec: GuestSpec) -> Result<GuestSpec, ToolError> {
        Err(no_programs())
    }

    fn stage<'a>(&'a self, _spec: GuestSpec) -> BoxFuture<'a, Result<GuestSpec, ToolError>> {
        Box::pin(async { Err(no_programs()) })
    }

    fn contained(&self, _sandbox: &str, _by: &Enforcement) {}

    fn used(&self, _end: &GuestEnd) {}

    fn settings(&self) -> Arc<Map<String, Value>> {
        Arc::default()
    }
}

/// Says something on standard error, which haft keeps for its operator. Where nobody listens, nobody has to know.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

fn no_programs() -> ToolError {
    ToolError::new(ErrorCode::SandboxCreationFailed, "a worker starts no programs")
}
