//! The shapes of what the engine answers, for the document. Nothing is made of these types: what is sent is the engine's own,
//! and a test holds every answer against the document.
#![allow(dead_code, clippy::large_enum_variant, reason = "they are descriptions")]

use haft_core::ErrorCode;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, schema::Type},
};

/// A row of the error table: every one that there is.
#[derive(Serialize)]
pub(crate) struct Code;

impl PartialSchema for Code {
    fn schema() -> RefOr<Schema> {
        let all = ErrorCode::ALL.iter().map(|code| code.as_str());
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(all)).into()
    }
}

impl ToSchema for Code {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("ErrorCode")
    }
}

/// How a call ended.
#[derive(Serialize, ToSchema)]
pub(crate) enum Status {
    Success,
    Failed,
    Timeout,
    Cancelled,
    RequiresConfirmation,
    SandboxError,
    PermissionDenied,
    ValidationError,
}

/// One thing that is wrong with arguments or output.
#[derive(Serialize, ToSchema)]
pub(crate) struct SingleProblem {
    /// JSON pointer of the value; empty for the whole.
    pointer: String,
    /// The rule that it breaks.
    rule: String,
    /// What was expected and what was there.
    message: String,
}

/// Why a call did not succeed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ErrorInfo {
    /// The row of the error table.
    #[schema(example = "VALIDATION_FAILED")]
    code: String,
    /// The number in the E3000 range.
    number: Option<String>,
    /// What happened, in words that a model can act on.
    message: String,
    /// Whether the same call may succeed when sent again unchanged.
    retryable: bool,
    /// The single problems.
    #[schema(required = false)]
    problems: Vec<SingleProblem>,
    /// Facts for programs, such as an approval id.
    #[schema(required = false)]
    data: Value,
}

/// The facts about one execution of a call.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResultMetadata {
    /// The execution.
    #[schema(format = "uuid")]
    execution_id: String,
    /// The batch that it was part of.
    #[schema(format = "uuid")]
    batch_id: Option<String>,
    /// Its place in the batch, from 0.
    batch_index: Option<u32>,
    /// When the call came in.
    #[schema(format = DateTime)]
    started_at: String,
    /// When its result was final.
    #[schema(format = DateTime)]
    completed_at: String,
    /// The time between.
    duration_ms: f64,
    /// How often it was tried; 0 where it never started.
    attempts: u32,
    /// Each attempt, where there were several: number, code, enforcement, sandboxId, metrics.
    #[schema(required = false, value_type = Vec<Object>)]
    attempt_records: Vec<Value>,
    /// Bytes that the tool put out.
    output_size: u64,
    /// Whether some of them were left out of the content.
    output_truncated: bool,
    /// By which the whole output is read at `/v1/outputs`.
    output_handle: Option<String>,
    /// The sandbox that it ran in.
    sandbox_id: Option<String>,
    /// What held it in.
    #[schema(value_type = Option<Object>)]
    enforcement: Option<Value>,
    /// What it used.
    #[schema(value_type = Option<Object>)]
    metrics: Option<Value>,
    /// What containment stopped or noticed.
    #[schema(required = false, value_type = Vec<Object>)]
    violations: Vec<Value>,
    /// What it changed.
    #[schema(required = false)]
    side_effects: Vec<Value>,
    /// Your own name for the request.
    correlation_id: Option<String>,
}

/// The one answer to one call.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolResult {
    /// Your own name for the call.
    call_id: String,
    /// The tool's canonical name, or what was asked for where there is no such tool.
    tool: String,
    /// How it ended.
    status: Status,
    /// The value that the tool's output schema describes.
    #[schema(required = false)]
    output: Value,
    /// What a model reads: text first, then pictures, sound and documents.
    #[schema(required = false, value_type = Vec<Object>)]
    content: Vec<Value>,
    /// Why it did not succeed.
    error: Option<ErrorInfo>,
    /// The facts.
    metadata: ResultMetadata,
}

/// What went wrong (RFC 9457).
#[derive(Serialize, ToSchema)]
pub(crate) struct Problem {
    /// Always `about:blank`: the code says what it is.
    #[serde(rename = "type")]
    kind: String,
    /// In general.
    title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// In this case.
    detail: String,
    /// The row of the error table.
    #[schema(example = "NOT_FOUND")]
    code: String,
    /// The number in the E3000 range.
    number: Option<String>,
    /// Whether the same request may succeed when sent again unchanged.
    retryable: bool,
    /// The single problems.
    #[schema(required = false)]
    problems: Vec<SingleProblem>,
    /// Facts for programs.
    #[schema(required = false)]
    data: Value,
    /// The whole result, where it is a call that did not succeed.
    result: Option<ToolResult>,
}

/// How the calls of a batch follow each other.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Strategy {
    Sequential,
    Parallel,
    Smart,
}

/// The isolation level of a call.
#[derive(Serialize, ToSchema)]
pub(crate) enum Isolation {
    None,
    Standard,
    Strict,
    Restricted,
}

/// Whether a stored result may answer a call.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum CacheUse {
    Allowed,
    Refresh,
    Off,
}

/// Limits of a call or a sandbox. Times are ISO 8601, such as `PT30S`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
pub(crate) struct CallLimits {
    #[schema(minimum = 1, maximum = 9007199254740991_i64)]
    memory_bytes: Option<u64>,
    #[schema(minimum = 1, maximum = 1000000)]
    cpu_millicores: Option<u32>,
    #[schema(
        example = "PT30S",
        pattern = "^PT(?=[0-9])([0-9]{1,6}H)?([0-9]{1,6}M)?([0-9]{1,6}(\\.[0-9]{1,9})?S)?$"
    )]
    cpu_time: Option<String>,
    #[schema(
        example = "PT30S",
        pattern = "^PT(?=[0-9])([0-9]{1,6}H)?([0-9]{1,6}M)?([0-9]{1,6}(\\.[0-9]{1,9})?S)?$"
    )]
    wall_time: Option<String>,
    #[schema(minimum = 1, maximum = 1048576)]
    processes: Option<u32>,
    #[schema(minimum = 1, maximum = 1048576)]
    open_files: Option<u32>,
    #[schema(minimum = 0, maximum = 9007199254740991_i64)]
    file_bytes: Option<u64>,
    #[schema(minimum = 0, maximum = 9007199254740991_i64)]
    scratch_bytes: Option<u64>,
    #[schema(minimum = 0, maximum = 9007199254740991_i64)]
    output_bytes: Option<u64>,
}

/// How often a call may be retried.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
pub(crate) struct Retry {
    /// Tries after the first one.
    #[schema(maximum = 10, value_type = u64)]
    max_retries: u32,
    /// The first wait, in ISO 8601.
    #[schema(
        example = "PT1S",
        pattern = "^PT(?=[0-9])([0-9]{1,6}H)?([0-9]{1,6}M)?([0-9]{1,6}(\\.[0-9]{1,9})?S)?$"
    )]
    base: String,
    /// Only after these codes.
    #[schema(required = false)]
    on: Vec<Code>,
}

/// How a call is to be carried out. Times are ISO 8601, such as `PT30S`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
pub(crate) struct CallOptions {
    /// The deadline; else the tool's, else the default.
    #[schema(
        example = "PT30S",
        pattern = "^PT(?=[0-9])([0-9]{1,6}H)?([0-9]{1,6}M)?([0-9]{1,6}(\\.[0-9]{1,9})?S)?$"
    )]
    timeout: Option<String>,
    /// How long a tool may stay silent.
    #[schema(
        example = "PT10S",
        pattern = "^PT(?=[0-9])([0-9]{1,6}H)?([0-9]{1,6}M)?([0-9]{1,6}(\\.[0-9]{1,9})?S)?$"
    )]
    idle_timeout: Option<String>,
    /// Ask a person even where the tool and the policy do not.
    #[schema(required = false)]
    require_confirmation: bool,
    /// At least this much containment.
    isolation: Option<Isolation>,
    /// Limits for this call.
    limits: Option<CallLimits>,
    /// Other retries than the default.
    retry: Option<Retry>,
    /// 1 (last) to 10 (first).
    #[schema(minimum = 1, maximum = 10)]
    priority: Option<u8>,
    /// Whether a stored result may answer.
    #[schema(required = false)]
    cache: CacheUse,
    /// Answer at once with a task, and go on without the caller.
    #[schema(required = false)]
    detached: bool,
    /// Turn `"5"` into `5` where the schema wants an integer.
    #[schema(required = false)]
    coerce: bool,
    /// Whether a model reads the result, and how much of it it can take.
    #[schema(required = false)]
    model: ModelBudget,
}

/// Whether a model reads a result, and how much of it it can take.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub(crate) enum ModelBudget {
    /// Without a limit.
    NoModel,
    /// 64 KB are shown.
    Unknown,
    /// What is left of its context is shown.
    Known {
        /// Tokens that its context holds.
        #[schema(maximum = 9007199254740991_i64)]
        limit: u64,
        /// What is in it now.
        #[schema(maximum = 9007199254740991_i64)]
        used: u64,
        /// Kept free for the answer.
        #[serde(rename = "responseReserve")]
        #[schema(maximum = 9007199254740991_i64)]
        response_reserve: u64,
        /// Kept free because estimates are wrong.
        #[serde(rename = "safetyMargin")]
        #[schema(maximum = 9007199254740991_i64)]
        safety_margin: u64,
    },
}

/// The options of calls that are made together: as those of one call, but for `detached`.
pub(crate) struct SharedOptions;

impl PartialSchema for SharedOptions {
    fn schema() -> RefOr<Schema> {
        let mut schema = CallOptions::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            object.properties.remove("detached");
        }
        schema
    }
}

impl ToSchema for SharedOptions {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("SharedOptions")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        CallOptions::schemas(schemas);
    }
}

/// An event of a stream (`text/event-stream`).
#[derive(Serialize, ToSchema)]
pub(crate) struct StreamEvent {
    /// What happened, such as `tool:executed`; `result` and `task` come last.
    event: Option<String>,
    /// What a client that comes back sends as `Last-Event-ID`.
    id: Option<String>,
    /// A JSON document.
    data: String,
}

/// An answer to a question.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Answer {
    Approve(Approve),
    Deny(Deny),
    Edit(Edit),
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApproveWord {
    Approve,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DenyWord {
    Deny,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EditWord {
    Edit,
}

/// Yes, this once.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Approve {
    #[schema(inline)]
    decision: ApproveWord,
    /// What haft remembers, so that it does not ask again.
    remember: Option<crate::routes::RememberBody>,
}

/// No.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deny {
    #[schema(inline)]
    decision: DenyWord,
    /// The reason, which the model reads.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Not like this: haft plans the call with these arguments and asks again.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    #[schema(inline)]
    decision: EditWord,
    /// All arguments, as they should be.
    #[schema(value_type = Object)]
    arguments: Value,
}

/// A batch in numbers.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BatchSummary {
    #[schema(format = "uuid")]
    batch_id: String,
    total: u64,
    executed: u64,
    succeeded: u64,
    failed: u64,
    read_only: u64,
    mutating: u64,
    overlapped: u64,
    duration_ms: f64,
    note: Option<String>,
}

/// What came of a batch: one result for each call, in call order.
#[derive(Serialize, ToSchema)]
pub(crate) struct BatchResult {
    results: Vec<ToolResult>,
    summary: BatchSummary,
}

/// What came of a flow.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FlowResult {
    /// Its name.
    flow: String,
    /// By which its calls are found on the record.
    #[schema(format = "uuid")]
    batch_id: String,
    /// `success`, `partial_failure`, `failed` or `cancelled`.
    status: String,
    /// What it gave.
    #[schema(required = false)]
    output: Value,
    /// Why it did not succeed.
    error: Option<ErrorInfo>,
    /// Each node.
    #[schema(value_type = Vec<Object>)]
    nodes: Vec<Value>,
    /// In numbers.
    #[schema(value_type = Object)]
    summary: Value,
}

/// Where a task stands.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskState {
    Pending,
    Running,
    AwaitingApproval,
    Completed,
    Failed,
    Cancelled,
}

/// A call that goes on without its caller.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Task {
    /// By which it is asked about.
    task_id: String,
    state: TaskState,
    tool: String,
    call_id: Option<String>,
    #[schema(format = "uuid")]
    execution_id: String,
    agent: String,
    user: Option<String>,
    session: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
    #[schema(format = DateTime)]
    finished_at: Option<String>,
    /// How long it is kept after its end, in ISO 8601.
    ttl: String,
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// How far it is.
    #[schema(value_type = Object)]
    progress: Value,
    /// The question that it waits for.
    approval_id: Option<String>,
    cancel_requested: bool,
    /// How it ended. Not in lists.
    result: Option<ToolResult>,
    /// Milliseconds to wait before asking again; absent where it is over.
    poll_after_ms: Option<u64>,
}

/// What is answered before the end: a task was taken, or a person has to approve the call.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Accepted {
    Task(Task),
    Result(ToolResult),
}

/// Tasks, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct TaskPage {
    tasks: Vec<Task>,
    /// Where the next page begins: the parameter `after`.
    #[schema(required = true)]
    next: Option<String>,
}

/// What a sandbox grants to all calls in it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
pub(crate) struct SandboxSpec {
    /// The level of programs in it, at the least.
    #[schema(required = false)]
    level: Isolation,
    #[schema(required = false)]
    limits: CallLimits,
    /// Paths that calls in it may reach.
    #[schema(required = false)]
    mounts: Vec<String>,
    /// Hosts that calls in it may reach.
    #[schema(required = false)]
    hosts: Vec<String>,
    /// When haft ends it, in ISO 8601: a second to a day; an hour where absent.
    #[schema(example = "PT10M", pattern = "^PT(([1-9]|1[0-9]|2[0-3])H|[1-9][0-9]{0,2}M|[1-9][0-9]{0,3}S)$")]
    time_to_live: Option<String>,
}

/// A sandbox as it is now.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sandbox {
    id: String,
    tenant: String,
    #[schema(value_type = Object)]
    grant: Value,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    expires_at: String,
    calls: u64,
    running: u64,
    #[schema(value_type = Object)]
    used: Value,
    #[schema(value_type = Object)]
    enforcement: Value,
}
