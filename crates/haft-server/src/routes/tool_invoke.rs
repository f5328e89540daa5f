//! `tool.invoke`: one call in the words of agent platforms, with what they know as statuses.

use crate::{
    extract::{Json as Taken, Named, Who, idempotency_key, object},
    problem::Problem,
    requests::plain,
    server::App,
};
use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use haft_core::{
    Arguments, CallContext, CallOptions, ErrorCode, ErrorInfo, Limits, Status, Task, ToolCall, ToolResult,
    port::Right,
};
use haft_engine::Request;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{ops::RangeInclusive, sync::Arc, time::Duration};
use utoipa::ToSchema;

/// Who a call is for.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentContext {
    /// The agent: any text but `owner`, `mcp:…` and `key_…`. Only with a key that is not bound to one; records name it
    /// behind the key's id.
    #[schema(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")]
    agent_did: Option<String>,
    /// The tenant: the key's own, or absent.
    #[schema(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")]
    tenant_id: Option<String>,
    /// One run of the agent.
    #[schema(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")]
    session_id: Option<String>,
    /// The sandbox that it runs in.
    #[schema(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")]
    parent_sandbox_id: Option<String>,
}

/// What a call may use.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ResourceLimits {
    /// Share of a core, in thousandths.
    #[schema(minimum = 100, maximum = 4000)]
    cpu_millicore_limit: Option<u32>,
    /// Memory, in megabytes.
    #[schema(minimum = 128, maximum = 8192)]
    memory_mb_limit: Option<u32>,
    /// The deadline, in seconds.
    #[schema(minimum = 1, maximum = 3600)]
    timeout_seconds: Option<u32>,
}

/// How a call is carried out.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ExecutionOptions {
    /// Answer at once with a task, and go on without the caller.
    async_mode: bool,
    /// 1 (last) to 10 (first).
    #[schema(minimum = 1, maximum = 10)]
    priority: Option<u8>,
    /// Calls with the same key have their effect once.
    #[schema(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")]
    idempotency_key: Option<String>,
    /// Ask a person first.
    require_approval: bool,
}

/// A call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolInvokeRequest {
    /// Your own name for it. It comes back on the answer.
    #[schema(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")]
    invocation_id: Option<String>,
    /// The version that is expected; another one is refused.
    #[schema(max_length = 64)]
    tool_version: Option<String>,
    /// Who it is for.
    #[serde(default, deserialize_with = "object")]
    agent_context: AgentContext,
    /// The arguments: an object. Anything else is refused with 422.
    #[serde(default)]
    #[schema(value_type = Value, required = false)]
    parameters: Arguments,
    /// What it may use.
    #[serde(default, deserialize_with = "object")]
    resource_limits: ResourceLimits,
    /// How it is carried out.
    #[serde(default, deserialize_with = "object")]
    execution_options: ExecutionOptions,
}

/// Why it did not succeed.
#[derive(Serialize, ToSchema)]
pub(crate) struct InvokeError {
    /// The number in the E3000 range, or the code where there is none.
    code: String,
    message: String,
    /// The single problems, and facts for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Value>,
    retryable: bool,
}

/// What it used.
#[derive(Serialize, ToSchema)]
pub(crate) struct InvokeMetadata {
    #[schema(value_type = String, format = "uuid")]
    execution_id: String,
    duration_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_used_millicore_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_peak_mb: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network_bytes_sent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network_bytes_received: Option<u64>,
}

/// How to ask about a task.
#[derive(Serialize, ToSchema)]
pub(crate) struct PollingInfo {
    task_id: String,
    /// Where to ask.
    url: String,
    /// How often, in milliseconds.
    #[schema(minimum = 100, maximum = 30000)]
    interval_ms: u64,
}

/// The answer to a call.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolInvokeResponse {
    invocation_id: String,
    tool_id: String,
    /// `pending`, `running`, `success`, `error`, `timeout`, `cancelled`, `permission_denied` or `pending_approval`.
    status: &'static str,
    /// What the tool gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<InvokeError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<InvokeMetadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    polling_info: Option<PollingInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    completed_at: Option<String>,
}

fn within<T: PartialOrd + std::fmt::Display>(
    what: &'static str,
    value: Option<T>,
    range: RangeInclusive<T>,
) -> Result<Option<T>, Problem> {
    match value {
        Some(value) if !range.contains(&value) => {
            Err(Problem::bad_request(format!("`{what}` must be {} to {}", range.start(), range.end())))
        }
        value => Ok(value),
    }
}

impl ToolInvokeRequest {
    fn of(
        self,
        tool: &str,
        app: &App,
        who: &crate::identity::Identity,
        key: Option<String>,
    ) -> Result<Request, Problem> {
        let base = who.base();
        let said = self.agent_context;
        let mut context = CallContext::clone(base);
        if said.tenant_id.as_deref().is_some_and(|tenant| *tenant != *base.tenant) {
            let text = "The request is for another tenant than its key";
            return Err(Problem::new(ErrorCode::PermissionDenied, text));
        }
        context.agent = who.agent(plain("agent_did", said.agent_did)?)?;
        context.session = plain("session_id", said.session_id)?.or(context.session);
        let context = match plain("parent_sandbox_id", said.parent_sandbox_id)? {
            Some(id) => {
                let sandboxes = app.engine.sandboxes();
                sandboxes.enter(&context, &id).map_err(|_| Problem::not_found("sandbox"))?
            }
            None => Arc::new(context),
        };
        let (asked, how) = (self.resource_limits, self.execution_options);
        let limits = Limits {
            cpu_millicores: within("cpu_millicore_limit", asked.cpu_millicore_limit, 100..=4000)?,
            memory_bytes: within("memory_mb_limit", asked.memory_mb_limit, 128..=8192)?
                .map(|megabytes| u64::from(megabytes) << 20),
            ..Limits::default()
        };
        let timeout = within("timeout_seconds", asked.timeout_seconds, 1..=3600)?;
        let options = CallOptions {
            timeout: timeout.map(|seconds| Duration::from_secs(seconds.into())),
            limits: (limits != Limits::default()).then(|| Box::new(limits)),
            priority: how.priority,
            require_confirmation: how.require_approval,
            ..CallOptions::default()
        };
        options.check()?;
        let call = ToolCall {
            id: plain("invocation_id", self.invocation_id)?.unwrap_or_default(),
            idempotency_key: plain("idempotency_key", how.idempotency_key.or(key))?,
            ..ToolCall::new(tool, self.parameters)
        };
        Ok(Request::new(call).context(context).options(options))
    }
}

fn error(info: &ErrorInfo) -> InvokeError {
    let details = match (&info.data, info.problems.is_empty()) {
        (None, true) => None,
        (data, _) => Some(serde_json::json!({"problems": info.problems, "data": data})),
    };
    InvokeError {
        code: info.number.clone().unwrap_or_else(|| info.code.to_string()),
        message: info.message.clone(),
        details,
        retryable: info.retryable,
    }
}

impl From<&ToolResult> for ToolInvokeResponse {
    fn from(result: &ToolResult) -> Self {
        let (facts, used) = (&result.metadata, result.metadata.metrics.as_deref());
        ToolInvokeResponse {
            invocation_id: result.call_id.to_string(),
            tool_id: result.tool.to_string(),
            status: match result.status {
                Status::Success => "success",
                Status::Failed | Status::SandboxError | Status::ValidationError => "error",
                Status::Timeout => "timeout",
                Status::Cancelled => "cancelled",
                Status::RequiresConfirmation => "pending_approval",
                Status::PermissionDenied => "permission_denied",
            },
            result: match &result.output {
                Some(output) => Some(output.clone()),
                None if result.is_success() => Some(Value::String(result.text().to_owned())),
                None => None,
            },
            error: result.error.as_deref().map(error),
            metadata: Some(InvokeMetadata {
                execution_id: facts.execution_id.to_string(),
                duration_ms: facts.duration.as_secs_f64() * 1000.0,
                cpu_used_millicore_seconds: used.and_then(|used| used.cpu_time_ms),
                memory_peak_mb: used
                    .and_then(|used| Some(used.peak_memory_bytes? as f64 / f64::from(1 << 20))),
                network_bytes_sent: used.and_then(|used| used.network_bytes_sent),
                network_bytes_received: used.and_then(|used| used.network_bytes_received),
            }),
            polling_info: None,
            completed_at: Some(facts.completed_at.to_string()),
        }
    }
}

fn taken(task: &Task) -> ToolInvokeResponse {
    let interval = task.poll_after(jiff::Timestamp::now()).unwrap_or_default().as_millis();
    ToolInvokeResponse {
        invocation_id: task.call_id.to_string(),
        tool_id: task.tool.to_string(),
        status: "pending",
        result: None,
        error: None,
        metadata: None,
        polling_info: Some(PollingInfo {
            url: format!("/v1/tasks/{}", task.id),
            task_id: task.id.to_string(),
            interval_ms: u64::try_from(interval).unwrap_or(30_000).clamp(100, 30_000),
        }),
        completed_at: None,
    }
}

/// Call a tool, in the words of agent platforms (`tool.invoke`)
#[utoipa::path(
    post, path = "/v1/tools/{name}/invoke", tag = "calls", request_body = ToolInvokeRequest,
    params(("name" = String, Path), ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[ -~]*[!-~][ -~]*$")),
    responses((status = 200, body = ToolInvokeResponse), (status = 202, body = ToolInvokeResponse))
)]
pub(crate) async fn invoke(
    State(app): State<App>,
    Who(who): Who,
    Named(name): Named,
    headers: HeaderMap,
    Taken(asked): Taken<ToolInvokeRequest>,
) -> Result<Response, Problem> {
    who.needs(Right::Invoke)?;
    let unknown = || {
        let shown = haft_core::text::one_line(&name, 80);
        Problem::new(ErrorCode::ToolNotFound, format!("There is no tool {shown}"))
    };
    let definition = app.engine.definition(&name).ok_or_else(unknown)?;
    let known = definition.version.as_deref().unwrap_or_default();
    if let Some(version) = asked.tool_version.as_deref().filter(|version| *version != known) {
        let shown = haft_core::text::one_line(version, 64);
        let text = format!("The tool has the version `{known}`, and {shown} was asked for");
        return Err(Problem::new(ErrorCode::ToolNotFound, text));
    }
    let is_detached = asked.execution_options.async_mode;
    let request = asked.of(&name, &app, &who, idempotency_key(&headers)?)?;
    if is_detached {
        let task = app.engine.submit(request, Default::default()).await?;
        return Ok((StatusCode::ACCEPTED, Json(taken(&task))).into_response());
    }
    let result = Problem::of_result(app.engine.execute(request).await)?;
    let status = match result.error_code().map(ErrorCode::http) {
        Some(202) => StatusCode::ACCEPTED,
        _ => StatusCode::OK,
    };
    Ok((status, Json(ToolInvokeResponse::from(&result))).into_response())
}
