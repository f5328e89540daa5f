//! What a tool may reach, and how. The program that builds the engine grants each; what is not granted refuses.

pub use crate::files::Workspace;
use haft_core::{
    ErrorCode, ExecutionId, Limits, OutputHandle, Tier, ToolCall, ToolDefinition, ToolError, ToolResult,
    port::{
        AuditQuery, BoxFuture, ChangeSets, FoundLines, Guest, GuestSpec, OutputRange, OutputSearch,
        StoredPart,
    },
};
use serde_json::Value;
use std::sync::{Arc, LazyLock};

/// Programs, in a jail.
pub trait Commands: Send + Sync {
    /// What a program is granted unless it asks for less: paths, patterns that are denied, environment, hosts, limits.
    fn template(&self) -> &GuestSpec;

    /// The most that a call may ask for. What the template has is what it gets where it does not ask.
    fn ceiling(&self) -> Limits;

    /// Where what staged programs write is kept until it is applied; without it, no program can be staged.
    fn change_sets(&self) -> Option<Arc<dyn ChangeSets>> {
        None
    }

    /// Starts a program. [`ToolCtx::run`](crate::ToolCtx::run) does this, and everything around it.
    fn start<'a>(&'a self, spec: GuestSpec) -> BoxFuture<'a, Result<Box<dyn Guest>, ToolError>>;
}

/// A request to another machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpRequest {
    /// Such as `GET`.
    pub method: String,
    /// The whole address.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Vec<u8>,
}

/// What came back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpResponse {
    /// Such as 200.
    pub status: u16,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// What was received.
    pub body: Vec<u8>,
}

/// The body of an answer, as it comes.
pub trait HttpBody: Send {
    /// The next piece; `None` at its end.
    fn next<'a>(&'a mut self) -> BoxFuture<'a, Result<Option<Vec<u8>>, ToolError>>;
}

/// What comes back, with a body that comes piece by piece. Dropping it closes the connection.
pub struct HttpStream {
    /// Such as 200.
    pub status: u16,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// What is received.
    pub body: Box<dyn HttpBody>,
}

/// A body that is there already.
struct Received(Option<Vec<u8>>);

impl HttpBody for Received {
    fn next<'a>(&'a mut self) -> BoxFuture<'a, Result<Option<Vec<u8>>, ToolError>> {
        let piece = self.0.take();
        Box::pin(async move { Ok(piece) })
    }
}

/// Other machines, within the hosts that were granted.
pub trait Http: Send + Sync {
    /// Sends a request.
    fn send<'a>(&'a self, request: HttpRequest) -> BoxFuture<'a, Result<HttpResponse, ToolError>>;

    /// Sends a request whose answer is taken as it comes: events, say. Without a way of its own it is taken whole.
    fn open<'a>(&'a self, request: HttpRequest) -> BoxFuture<'a, Result<HttpStream, ToolError>> {
        Box::pin(async move {
            let HttpResponse { status, headers, body } = self.send(request).await?;
            Ok(HttpStream { status, headers, body: Box::new(Received(Some(body))) })
        })
    }
}

/// Outputs of earlier calls of the same tenant.
pub trait Outputs: Send + Sync {
    /// A part of an output, with the length of the whole; `None` where there is none of that handle.
    fn read<'a>(
        &'a self,
        tenant: &'a str,
        handle: &'a OutputHandle,
        range: OutputRange,
    ) -> BoxFuture<'a, Result<Option<StoredPart>, ToolError>>;

    /// Lines of an output, all or those that match; `None` where there is none of that handle. Whether an expression
    /// can be used is for the tool to find out: here one that cannot is a failure of the store.
    fn search<'a>(
        &'a self,
        _tenant: &'a str,
        _handle: &'a OutputHandle,
        _search: OutputSearch,
    ) -> BoxFuture<'a, Result<Option<FoundLines>, ToolError>> {
        refuse(ErrorCode::PermissionDenied, "searching stored outputs")
    }
}

/// The engine, as a tool may see it.
pub trait EngineView: Send + Sync {
    /// What a tool says about itself, by name or alias.
    fn definition(&self, name: &str) -> Option<Arc<ToolDefinition>>;
    /// All tools that are switched on, by name.
    fn definitions(&self) -> Vec<Arc<ToolDefinition>>;
    /// Counts and times of a tenant's calls, for all tools or for one.
    fn metrics(&self, tenant: &str, tool: Option<&str>) -> Value;
    /// What runs for a tenant now: the mode, the calls that have no result yet, the sandboxes, the number of tasks.
    fn state(&self, _tenant: &str) -> Value {
        Value::Null
    }
    /// The calls of a tenant that ended lately, newest first, without what went in and out.
    fn logs<'a>(&'a self, _tenant: &'a str, _query: AuditQuery) -> BoxFuture<'a, Result<Value, ToolError>> {
        refuse(ErrorCode::PermissionDenied, "records of calls")
    }
    /// The tools that a caller of that tier may call and that fit a question in words, best first; refused where the
    /// tier does not include such a search.
    fn search(&self, question: &str, most: usize, tier: Tier) -> Result<Vec<Arc<ToolDefinition>>, ToolError>;
    /// The view itself, for tools that come with the engine behind it and do with it what others may not.
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        None
    }
    /// Makes a call on behalf of the call `outer`: by the same caller, through every check, asking the same people.
    fn call<'a>(&'a self, outer: ExecutionId, call: ToolCall)
    -> BoxFuture<'a, Result<ToolResult, ToolError>>;
}

/// What a call may reach.
#[derive(Clone)]
pub struct Capabilities {
    /// Files.
    pub workspace: Arc<dyn Workspace>,
    /// Programs.
    pub commands: Arc<dyn Commands>,
    /// Other machines.
    pub http: Arc<dyn Http>,
    /// Outputs of earlier calls.
    pub outputs: Arc<dyn Outputs>,
    /// The engine.
    pub engine: Arc<dyn EngineView>,
    /// Files and programs, in fewer folders.
    pub roots: Arc<dyn Roots>,
}

/// Files and programs that keep to some of the folders that are granted.
pub trait Roots: Send + Sync {
    /// What is left of both in these folders; `None` where that is nothing, or cannot be held.
    fn keep_to(&self, folders: &[String]) -> Option<(Arc<dyn Workspace>, Arc<dyn Commands>)>;
}

impl Roots for NotGranted {
    fn keep_to(&self, _folders: &[String]) -> Option<(Arc<dyn Workspace>, Arc<dyn Commands>)> {
        None
    }
}

impl Capabilities {
    /// These capabilities for a call that keeps to these folders. Where nothing is left of them, neither files nor
    /// programs are granted.
    #[must_use]
    pub fn kept_to(&self, folders: &[String]) -> Self {
        let nothing =
            || (Arc::new(NotGranted) as Arc<dyn Workspace>, Arc::new(NotGranted) as Arc<dyn Commands>);
        let (workspace, commands) = self.roots.keep_to(folders).unwrap_or_else(nothing);
        Capabilities { workspace, commands, ..self.clone() }
    }
}

impl Default for Capabilities {
    fn default() -> Self {
        let refused = Arc::new(NotGranted);
        Capabilities {
            workspace: Arc::clone(&refused) as _,
            commands: Arc::clone(&refused) as _,
            http: Arc::clone(&refused) as _,
            outputs: Arc::clone(&refused) as _,
            engine: Arc::clone(&refused) as _,
            roots: refused as _,
        }
    }
}

/// Nothing was granted: every use is refused, with the reason.
///
/// ```
/// use haft_sdk::capability::{EngineView, NotGranted};
/// assert!(NotGranted.definition("read_file").is_none());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct NotGranted;

fn refuse<'a, T: Send + 'a>(code: ErrorCode, what: &'static str) -> BoxFuture<'a, Result<T, ToolError>> {
    Box::pin(async move { Err(ToolError::new(code, format!("{what} are not granted to this call"))) })
}

impl Commands for NotGranted {
    fn template(&self) -> &GuestSpec {
        static NOTHING: LazyLock<GuestSpec> = LazyLock::new(GuestSpec::default);
        &NOTHING
    }

    fn ceiling(&self) -> Limits {
        Limits::default()
    }

    fn start<'a>(&'a self, _spec: GuestSpec) -> BoxFuture<'a, Result<Box<dyn Guest>, ToolError>> {
        refuse(ErrorCode::SandboxCreationFailed, "programs")
    }
}

impl Http for NotGranted {
    fn send<'a>(&'a self, _request: HttpRequest) -> BoxFuture<'a, Result<HttpResponse, ToolError>> {
        refuse(ErrorCode::NetworkPolicyViolation, "other machines")
    }
}

impl Outputs for NotGranted {
    fn read<'a>(
        &'a self,
        _tenant: &'a str,
        _handle: &'a OutputHandle,
        _range: OutputRange,
    ) -> BoxFuture<'a, Result<Option<StoredPart>, ToolError>> {
        refuse(ErrorCode::PermissionDenied, "stored outputs")
    }
}

impl EngineView for NotGranted {
    fn definition(&self, _name: &str) -> Option<Arc<ToolDefinition>> {
        None
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        Vec::new()
    }

    fn metrics(&self, _tenant: &str, _tool: Option<&str>) -> Value {
        Value::Null
    }

    fn search(
        &self,
        _question: &str,
        _most: usize,
        _tier: Tier,
    ) -> Result<Vec<Arc<ToolDefinition>>, ToolError> {
        Ok(Vec::new())
    }

    fn call<'a>(
        &'a self,
        _outer: ExecutionId,
        _call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        refuse(ErrorCode::PermissionDenied, "calls of other tools")
    }
}
