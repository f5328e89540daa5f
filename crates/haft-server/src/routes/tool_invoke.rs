//! `tool.invoke`: one call in the words of agent platforms, with what they know as statuses.
//!
//! Whatever becomes of a call, its answer has one shape: [`ToolInvokeResponse`], with the status of the error table.

mod answer;
mod words;

use crate::{
    extract::{Json as Taken, Named, Who, idempotency_key, object},
    problem::Problem,
    requests::plain,
    server::App,
};
use answer::{ToolInvokeResponse, taken};
use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use haft_core::{
    Arguments, CallContext, CallOptions, ErrorCode, ExecutionId, Limits, ToolCall, ToolDefinition,
    port::Right,
};
use haft_engine::Request;
use serde::Deserialize;
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
    /// Your own name for it. It comes back on the answer, which has one in any case.
    #[schema(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")]
    invocation_id: Option<String>,
    /// The tool, by its name or an alias. In a request to `/v1/tools/{name}/invoke` it may be left out.
    #[schema(min_length = 1, max_length = 255)]
    tool_id: Option<String>,
    /// The version that is expected; another one is refused.
    #[schema(max_length = 64)]
    tool_version: Option<String>,
    /// Who it is for.
    #[serde(default, deserialize_with = "object")]
    agent_context: AgentContext,
    /// The arguments: an object. Anything else is refused with 422. Tools for files take `file_path`, `old_string`,
    /// `new_string` and `replace_all`, too.
    #[serde(default)]
    #[schema(value_type = serde_json::Value, required = false)]
    parameters: Arguments,
    /// What it may use.
    #[serde(default, deserialize_with = "object")]
    resource_limits: ResourceLimits,
    /// How it is carried out.
    #[serde(default, deserialize_with = "object")]
    execution_options: ExecutionOptions,
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
        tool: &ToolDefinition,
        id: Arc<str>,
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
                sandboxes.enter(&context, &id).map_err(|_| no_sandbox())?
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
            id,
            idempotency_key: plain("idempotency_key", how.idempotency_key.or(key))?,
            ..ToolCall::new(tool.name.as_str(), words::own(tool, self.parameters))
        };
        Ok(Request::new(call).context(context).options(options))
    }
}

/// As another tenant's sandbox is answered, too.
fn no_sandbox() -> Problem {
    Problem::new(ErrorCode::SandboxCreationFailed, "There is no such sandbox to run it in")
        .with_status(StatusCode::NOT_FOUND)
}

/// The tool that a request is for. The address and the body may name one tool in two ways, but not two tools.
fn tool(app: &App, named: Option<&str>, asked: &ToolInvokeRequest) -> Result<Arc<ToolDefinition>, Problem> {
    let find = |name: &str| {
        app.engine.definition(name).ok_or_else(|| {
            let shown = haft_core::text::one_line(name, 80);
            Problem::new(ErrorCode::ToolNotFound, format!("There is no tool {shown}"))
        })
    };
    let tool = match (named, asked.tool_id.as_deref()) {
        (None, None) => return Err(Problem::bad_request("`tool_id` is missing: the tool to call")),
        (Some(name), None) | (None, Some(name)) => find(name)?,
        (Some(name), Some(id)) => {
            let tool = find(name)?;
            if find(id)?.name != tool.name {
                return Err(Problem::bad_request("`tool_id` is another tool than that of the address"));
            }
            tool
        }
    };
    let known = tool.version.as_deref().unwrap_or_default();
    match asked.tool_version.as_deref().filter(|version| *version != known) {
        None => Ok(tool),
        Some(version) => {
            let shown = haft_core::text::one_line(version, 64);
            let text = format!("The tool has the version `{known}`, and {shown} was asked for");
            Err(Problem::new(ErrorCode::ToolNotFound, text))
        }
    }
}

async fn answered(
    app: &App,
    who: &crate::identity::Identity,
    (named, id): (Option<&str>, &Arc<str>),
    headers: &HeaderMap,
    asked: ToolInvokeRequest,
) -> Result<Response, Problem> {
    let tool = tool(app, named, &asked)?;
    let is_detached = asked.execution_options.async_mode;
    let request = asked.of(&tool, Arc::clone(id), app, who, idempotency_key(headers)?)?;
    if is_detached {
        let task = app.engine.submit(request, Default::default()).await?;
        return Ok((StatusCode::ACCEPTED, Json(taken(&task))).into_response());
    }
    let result = app.engine.execute(request).await;
    let status = result.error_code().map_or(200, ErrorCode::http);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Ok((status, Json(ToolInvokeResponse::from(&result))).into_response())
}

async fn invoked(
    app: &App,
    who: &crate::identity::Identity,
    named: Option<&str>,
    headers: &HeaderMap,
    asked: ToolInvokeRequest,
) -> Result<Response, Problem> {
    who.needs(Right::Invoke)?;
    let id = match plain("invocation_id", asked.invocation_id.clone())? {
        Some(id) => id,
        None => ExecutionId::at(jiff::Timestamp::now()).to_string().into(),
    };
    let name = asked.tool_id.as_deref().or(named).unwrap_or_default().to_owned();
    match answered(app, who, (named, &id), headers, asked).await {
        Ok(answer) => Ok(answer),
        Err(problem) => Ok(answer::refused(&id, &name, problem)),
    }
}

/// Call a tool, in the words of agent platforms (`tool.invoke`)
#[utoipa::path(
    post, path = "/v1/tools/{name}/invoke", tag = "calls", request_body = ToolInvokeRequest,
    params(("name" = String, Path), ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[ -~]*[!-~][ -~]*$")),
    responses(
        (status = 200, body = ToolInvokeResponse), (status = 202, body = ToolInvokeResponse),
        (status = "default", description = "It did not succeed, or could not be asked for", body = ToolInvokeResponse),
    )
)]
pub(crate) async fn invoke(
    State(app): State<App>,
    Who(who): Who,
    Named(name): Named,
    headers: HeaderMap,
    Taken(asked): Taken<ToolInvokeRequest>,
) -> Result<Response, Problem> {
    invoked(&app, &who, Some(&name), &headers, asked).await
}

/// Call the tool that the body names (`tool.invoke`)
#[utoipa::path(
    post, path = "/v1/tool.invoke", tag = "calls", request_body = ToolInvokeRequest,
    params(("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[ -~]*[!-~][ -~]*$")),
    responses(
        (status = 200, body = ToolInvokeResponse), (status = 202, body = ToolInvokeResponse),
        (status = "default", description = "It did not succeed, or could not be asked for", body = ToolInvokeResponse),
    )
)]
pub(crate) async fn invoke_named(
    State(app): State<App>,
    Who(who): Who,
    headers: HeaderMap,
    Taken(asked): Taken<ToolInvokeRequest>,
) -> Result<Response, Problem> {
    invoked(&app, &who, None, &headers, asked).await
}
