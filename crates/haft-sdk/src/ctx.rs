//! What a tool is handed when it runs.

use crate::{
    Cancel, CancelReason, PassedOn,
    capability::{Capabilities, Commands, EngineView, Http, Outputs, Workspace},
};
use haft_core::{
    CallContext, Enforcement, ErrorCode, ExecutionId, IsolationLevel, Limits, OutputStream, ToolCall,
    ToolError,
    port::{BoxFuture, Guest, GuestEnd, GuestSpec, OutputSink},
};
use serde_json::{Map, Value};
use std::{fmt, sync::Arc, time::Duration};

/// What stands behind a [`ToolCtx`]: an attempt at a call in the engine, or a test.
///
/// No method has a body here. One that is forgotten must not compile: what it would do instead could hold a call in
/// less.
pub trait CallHost: Send + Sync {
    /// The execution of this call.
    fn execution_id(&self) -> ExecutionId;
    /// The call as it was made.
    fn call(&self) -> &ToolCall;
    /// Who made it.
    fn context(&self) -> &CallContext;
    /// Which try it is, from 1.
    fn attempt(&self) -> u32;
    /// The time that it has in all.
    fn timeout(&self) -> Duration;
    /// How many bytes of output can reach the caller.
    fn output_limit(&self) -> usize;
    /// How many bytes the model behind it can take, and its tool may put out; for tools with a limit of their own.
    fn capacity(&self) -> usize;
    /// Bytes without the secrets that are known.
    fn without_secrets(&self, bytes: Vec<u8>) -> Vec<u8>;
    /// The switch that ends it.
    fn cancel(&self) -> &Cancel;
    /// Takes output.
    fn write(&self, stream: OutputStream, bytes: &[u8]);
    /// Takes progress.
    fn progress(&self, percent: Option<u8>, message: Option<&str>);
    /// Takes a warning.
    fn warn(&self, message: &str);
    /// What it may reach. Of files it is [`workspace`](Self::workspace) that counts.
    fn capabilities(&self) -> &Capabilities;
    /// Files, held to what was decided about the call, and counted where its limits ask for that.
    fn workspace(&self) -> &dyn Workspace;
    /// The level that the code of the tool itself has to run at. Above `None` it has to run in a jail.
    fn isolation(&self) -> IsolationLevel;
    /// The limits on files that haft counts itself.
    fn file_limits(&self) -> Limits;
    /// Runs code that waits for a disk or computes for long, apart from the threads that serve all calls.
    fn run_blocking(&self, job: Box<dyn FnOnce() + Send>);
    /// A program as this call may run it: at its level, within its limits and those of the sandbox around it.
    fn fit(&self, spec: GuestSpec) -> Result<GuestSpec, ToolError>;
    /// That program with its writes kept apart, where that was decided about the call.
    fn stage<'a>(&'a self, spec: GuestSpec) -> BoxFuture<'a, Result<GuestSpec, ToolError>>;
    /// Takes note of what holds a program in.
    fn contained(&self, sandbox: &str, by: &Enforcement);
    /// Takes note of what a program used, and of what was stopped.
    fn used(&self, end: &GuestEnd);
    /// What the tool was configured with.
    fn settings(&self) -> Arc<Map<String, Value>>;
}

/// Everything that a tool can do beyond computing: put out, report, stop in time, and reach the outside through
/// what it was granted. Made for each call; cheap to clone into threads and tasks.
///
/// ```
/// use haft_sdk::{ToolCtx, testing::TestHost};
/// let host = TestHost::new();
/// let cx: ToolCtx = host.ctx();
/// cx.print("half way\n");
/// cx.progress(50, "half way");
/// assert_eq!(host.stdout(), "half way\n");
/// ```
#[derive(Clone)]
pub struct ToolCtx(Arc<dyn CallHost>);

impl ToolCtx {
    /// The context that stands on that host.
    pub fn new(host: Arc<dyn CallHost>) -> Self {
        ToolCtx(host)
    }

    /// The execution of this call. It stays the same over attempts, so it also names the effect.
    pub fn execution_id(&self) -> ExecutionId {
        self.0.execution_id()
    }

    /// What names the effect of this call, for the service that carries it out: the same over all attempts, and for no
    /// other call. A receiver that has seen it before has had the effect already. Programs find it in `HAFT_EFFECT_ID`;
    /// a tool that calls a service passes it on, such as in the header `Idempotency-Key`.
    ///
    /// ```
    /// use haft_sdk::testing::TestHost;
    /// let cx = TestHost::new().ctx();
    /// let header = ("Idempotency-Key", cx.effect_id().to_string());
    /// assert_eq!(header.1, cx.execution_id().to_string());
    /// ```
    pub fn effect_id(&self) -> ExecutionId {
        self.0.execution_id()
    }

    /// The call as it was made.
    pub fn call(&self) -> &ToolCall {
        self.0.call()
    }

    /// Who made it.
    pub fn context(&self) -> &CallContext {
        self.0.context()
    }

    /// What the caller hands to the tool beside the arguments, for tools that hand it to a program or a service.
    pub fn passed_on(&self) -> PassedOn<'_> {
        PassedOn::new(self.0.call(), self.0.context())
    }

    /// Which try it is, from 1.
    pub fn attempt(&self) -> u32 {
        self.0.attempt()
    }

    /// The time that the call has in all.
    pub fn timeout(&self) -> Duration {
        self.0.timeout()
    }

    /// How many bytes of output can reach the caller, for tools that keep their output short themselves.
    pub fn output_limit(&self) -> usize {
        self.0.output_limit()
    }

    /// How many bytes the model behind the call can take, for tools that have a limit of their own in place of the
    /// general one. The output has to say `keep_whole`.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Bytes without the secrets that are known. Results are looked through as text, where nothing is found in base64 or
    /// another encoding: what a tool encodes, it hands in here before.
    pub fn without_secrets(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.0.without_secrets(bytes)
    }

    /// What the tool was configured with, on this installation.
    pub fn settings(&self) -> Arc<Map<String, Value>> {
        self.0.settings()
    }

    /// Puts out text, while the tool runs. Never waits for observers.
    pub fn print(&self, text: &str) {
        self.0.write(OutputStream::Stdout, text.as_bytes());
    }

    /// Puts out bytes on a stream.
    pub fn write(&self, stream: OutputStream, bytes: &[u8]) {
        self.0.write(stream, bytes);
    }

    /// Says how far it is, in percent and words. Restarts an idle timeout.
    pub fn progress(&self, percent: u8, message: &str) {
        self.0.progress(Some(percent.min(100)), Some(message));
    }

    /// Says that it is alive, and what it does.
    pub fn status(&self, message: &str) {
        self.0.progress(None, Some(message));
    }

    /// Says something that is worth knowing.
    pub fn warn(&self, message: &str) {
        self.0.warn(message);
    }

    /// Why the call is to stop, if it is. For loops that do not await.
    pub fn cancel_reason(&self) -> Option<CancelReason> {
        self.0.cancel().reason()
    }

    /// Fails when the call is to stop: `cx.check_cancelled()?` in a loop.
    pub fn check_cancelled(&self) -> Result<(), ToolError> {
        match self.cancel_reason() {
            None => Ok(()),
            Some(_) => Err(ToolError::cancelled()),
        }
    }

    /// Waits until the call is to stop.
    pub async fn cancelled(&self) -> CancelReason {
        self.0.cancel().cancelled().await
    }

    /// Runs code that waits for a disk or computes for long, apart from the threads that serve all calls, and
    /// waits for what it comes to. Dropping this stops the waiting, not the code: code that can take long looks at
    /// [`cancel_reason`](Self::cancel_reason) now and then.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let host = haft_sdk::testing::TestHost::new();
    /// assert_eq!(host.ctx().blocking(|_cx| 6 * 7).await, 42);
    /// # });
    /// ```
    pub async fn blocking<T: Send + 'static>(&self, code: impl FnOnce(&ToolCtx) -> T + Send + 'static) -> T {
        let cx = self.clone();
        crate::blocking::run(&*self.0, move || code(&cx)).await
    }

    /// Files. They wait for the disk: use them inside [`blocking`](Self::blocking).
    pub fn workspace(&self) -> &dyn Workspace {
        self.0.workspace()
    }

    /// The level that the code of the tool itself has to run at. Only tools that say
    /// [`works_in_jail`](crate::Tool::works_in_jail) are called with more than `None`, and then start themselves again
    /// in a jail.
    pub fn isolation(&self) -> IsolationLevel {
        self.0.isolation()
    }

    /// The limits on files that hold for this call, for tools that open files in a process of their own.
    pub fn file_limits(&self) -> Limits {
        self.0.file_limits()
    }

    /// Runs a program in a jail to its end. What it puts out goes to the call's output as it comes. When the call is to
    /// stop, the program is asked to end, and ended when its grace is over.
    ///
    /// What it is granted comes from `spec`; start from [`Commands::template`]. The level is never below the call's.
    pub async fn run(&self, spec: GuestSpec) -> Result<GuestEnd, ToolError> {
        let cx = self.clone();
        self.run_with(spec, Arc::new(move |stream, bytes| cx.write(stream, bytes))).await
    }

    /// Runs a program, with a receiver of its own for what the program puts out.
    pub async fn run_with(&self, spec: GuestSpec, sink: OutputSink) -> Result<GuestEnd, ToolError> {
        let mut guest = self.start(spec).await?;
        let control = guest.control();
        let mut ending = guest.wait(sink);
        let end = tokio::select! {
            biased;
            end = &mut ending => end,
            _ = self.cancelled() => {
                control.stop();
                ending.await
            }
        }?;
        self.0.used(&end);
        Ok(end)
    }

    /// Starts the tool itself again in a jail. It opens files as haft does, so that
    /// [`file_limits`](Self::file_limits) hold in there without the jail; what it puts out is not the call's output.
    pub async fn start_worker(&self, spec: GuestSpec) -> Result<Box<dyn Guest>, ToolError> {
        let mut spec = self.0.fit(spec)?;
        // What a caller hands on is for programs.
        spec.environment.clear();
        spec.limits = Limits {
            file_bytes: None,
            output_bytes: None,
            read_bytes: None,
            written_bytes: None,
            io_operations: None,
            io_bytes_per_second: None,
            ..spec.limits
        };
        self.start_fitting(spec).await
    }

    /// Starts a program in a jail, and leaves the rest to the caller. Dropping the guest ends it.
    pub async fn start(&self, spec: GuestSpec) -> Result<Box<dyn Guest>, ToolError> {
        let spec = self.0.stage(self.0.fit(spec)?).await?;
        self.start_fitting(spec).await
    }

    async fn start_fitting(&self, spec: GuestSpec) -> Result<Box<dyn Guest>, ToolError> {
        let technology = spec.technology;
        let guest = self.commands().start(spec).await?;
        // Whatever jail is wired in: dropping the guest ends it.
        if technology.jail().is_some_and(|chosen| chosen != guest.enforcement().jail) {
            let text = format!(
                "The jail `{}` was chosen, and cannot be had here",
                technology.jail().unwrap_or_default()
            );
            return Err(ToolError::new(ErrorCode::SandboxCreationFailed, text));
        }
        self.0.contained(guest.sandbox_id(), guest.enforcement());
        Ok(guest)
    }

    /// A program as this call may run it: at its level, within its limits and those of the sandbox around it. For
    /// programs that serve several calls: those for which this gives the same may share one.
    pub fn fit(&self, spec: GuestSpec) -> Result<GuestSpec, ToolError> {
        self.0.fit(spec)
    }

    /// Takes note of what holds a program in that an earlier call started and this one uses: it is then on the result
    /// and in the record of this call.
    pub fn note_contained(&self, sandbox: &str, by: &Enforcement) {
        self.0.contained(sandbox, by);
    }

    /// Takes note of how a program ended that was started by [`start`](Self::start), maybe by an earlier call: what it
    /// used and what was stopped is then on the result and in the record of this call.
    pub fn note_end(&self, sandbox: &str, by: &Enforcement, end: &GuestEnd) {
        self.0.contained(sandbox, by);
        self.0.used(end);
    }

    /// Programs.
    pub fn commands(&self) -> &dyn Commands {
        &*self.0.capabilities().commands
    }

    /// Other machines.
    pub fn http(&self) -> &dyn Http {
        &*self.0.capabilities().http
    }

    /// Outputs of earlier calls.
    pub fn outputs(&self) -> &dyn Outputs {
        &*self.0.capabilities().outputs
    }

    /// The engine that runs this.
    pub fn engine(&self) -> &dyn EngineView {
        &*self.0.capabilities().engine
    }
}

impl fmt::Debug for ToolCtx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolCtx").field(&self.0.execution_id()).finish()
    }
}
