//! For trying out a tool without an engine.

use crate::{
    Args, CallHost, Cancel, Tool, ToolCtx,
    capability::{Capabilities, Workspace},
};
use haft_core::{
    Arguments, CallContext, Enforcement, ExecutionId, IsolationLevel, Limits, OutputStream, ToolCall,
    ToolError, ToolOutput,
    port::{BoxFuture, GuestEnd, GuestSpec},
};
use serde_json::{Map, Value};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// A stand-in for the engine that remembers what a tool put out. It checks nothing: no schema, no policy.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use haft_sdk::{ToolCtx, ToolError, testing::TestHost, tool_fn};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Nothing {}
/// let tool = tool_fn("hello", async |_: Nothing, cx: ToolCtx| -> Result<(), ToolError> {
///     cx.print("hello");
///     Ok(())
/// });
/// let host = TestHost::new();
/// host.call(&tool, serde_json::json!({})).await.unwrap();
/// assert_eq!(host.stdout(), "hello");
/// # });
/// ```
pub struct TestHost(Arc<Inner>);

struct Inner {
    call: ToolCall,
    context: Arc<CallContext>,
    cancel: Cancel,
    capabilities: Capabilities,
    output_limit: usize,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    progress: Vec<(Option<u8>, Option<String>)>,
    warnings: Vec<String>,
}

impl TestHost {
    /// One that grants nothing.
    #[expect(clippy::new_without_default, reason = "a test reads better with a word for it")]
    pub fn new() -> Self {
        TestHost::with(Capabilities::default())
    }

    /// One that grants these.
    pub fn with(capabilities: Capabilities) -> Self {
        TestHost::limited(capabilities, haft_core::UNKNOWN_BUDGET_BYTES)
    }

    /// One that grants these, and takes that many bytes of output.
    pub fn limited(capabilities: Capabilities, output_limit: usize) -> Self {
        TestHost(Arc::new(Inner {
            call: ToolCall::new("test", Arguments::default()),
            context: CallContext::owner(),
            cancel: Cancel::new(),
            capabilities,
            output_limit,
            seen: Mutex::default(),
        }))
    }

    /// A context on this host.
    pub fn ctx(&self) -> ToolCtx {
        ToolCtx::new(Arc::clone(&self.0) as Arc<dyn CallHost>)
    }

    /// Prepares and runs one call.
    pub async fn call(&self, tool: &dyn Tool, arguments: Value) -> Result<ToolOutput, ToolError> {
        let original = Arguments::from(arguments);
        let value = original.parse().map_err(|problem| ToolError::bad_args(problem.to_string()))?;
        tool.prepare(&Args { value, original })?.execute(self.ctx()).await
    }

    /// The switch that ends the call.
    pub fn cancel(&self) -> &Cancel {
        &self.0.cancel
    }

    /// What was put out so far.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.0.seen().stdout).into_owned()
    }

    /// What was put out beside it.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.0.seen().stderr).into_owned()
    }

    /// What was said about progress.
    pub fn progress(&self) -> Vec<(Option<u8>, Option<String>)> {
        self.0.seen().progress.clone()
    }

    /// What was warned about.
    pub fn warnings(&self) -> Vec<String> {
        self.0.seen().warnings.clone()
    }
}

impl Inner {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallHost for Inner {
    fn execution_id(&self) -> ExecutionId {
        ExecutionId::from_uuid(uuid_of_tests())
    }

    fn call(&self) -> &ToolCall {
        &self.call
    }

    fn context(&self) -> &CallContext {
        &self.context
    }

    fn attempt(&self) -> u32 {
        1
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(30)
    }

    fn output_limit(&self) -> usize {
        self.output_limit
    }

    fn capacity(&self) -> usize {
        self.output_limit()
    }

    fn without_secrets(&self, bytes: Vec<u8>) -> Vec<u8> {
        bytes
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    fn write(&self, stream: OutputStream, bytes: &[u8]) {
        let mut seen = self.seen();
        match stream {
            OutputStream::Stdout => seen.stdout.extend_from_slice(bytes),
            OutputStream::Stderr => seen.stderr.extend_from_slice(bytes),
        }
    }

    fn progress(&self, percent: Option<u8>, message: Option<&str>) {
        self.seen().progress.push((percent, message.map(str::to_owned)));
    }

    fn warn(&self, message: &str) {
        self.seen().warnings.push(message.to_owned());
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn workspace(&self) -> &dyn Workspace {
        &*self.capabilities.workspace
    }

    fn isolation(&self) -> IsolationLevel {
        IsolationLevel::None
    }

    fn file_limits(&self) -> Limits {
        Limits::default()
    }

    fn run_blocking(&self, job: Box<dyn FnOnce() + Send>) {
        std::thread::spawn(job);
    }

    /// As it is: there is no call around it that would hold it in.
    fn fit(&self, spec: GuestSpec) -> Result<GuestSpec, ToolError> {
        Ok(spec)
    }

    /// As it is: nothing keeps its writes apart.
    fn stage<'a>(&'a self, spec: GuestSpec) -> BoxFuture<'a, Result<GuestSpec, ToolError>> {
        Box::pin(async move { Ok(spec) })
    }

    fn contained(&self, _sandbox: &str, _by: &Enforcement) {}

    fn used(&self, _end: &GuestEnd) {}

    fn settings(&self) -> Arc<Map<String, Value>> {
        Arc::default()
    }
}

/// The same id every time, so that snapshots of tests stay the same.
fn uuid_of_tests() -> uuid::Uuid {
    uuid::Uuid::from_u128(0x7e57)
}
