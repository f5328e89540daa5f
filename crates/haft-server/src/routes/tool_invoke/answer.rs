//! The answer of `tool.invoke`.

use crate::problem::Problem as Refusal;
use axum::{
    Json,
    http::header,
    response::{IntoResponse as _, Response},
};
use haft_core::{ErrorCode, ErrorInfo, Problem, Status, Task, ToolResult};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// Why it did not succeed.
#[derive(Serialize, ToSchema)]
pub(crate) struct InvokeError {
    /// The number in the E3000 range.
    #[schema(pattern = "^E3[0-9]{3}$")]
    code: &'static str,
    message: String,
    details: InvokeDetails,
    retryable: bool,
}

/// What a number cannot say.
#[derive(Serialize, ToSchema)]
pub(crate) struct InvokeDetails {
    /// The row of haft's error table: several have the same number.
    #[schema(value_type = String, example = "STALE_FILE")]
    code: ErrorCode,
    /// The single problems.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Value>)]
    problems: Vec<Problem>,
    /// Facts for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

/// What it used.
#[derive(Serialize, ToSchema)]
pub(crate) struct InvokeMetadata {
    #[schema(value_type = String, format = "uuid")]
    execution_id: String,
    /// The sandbox of its program, where it ran one.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_sandbox_id: Option<String>,
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
    /// What the tool gave, also where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<InvokeError>,
    /// Absent where nothing was executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_metadata: Option<InvokeMetadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    polling_info: Option<PollingInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    completed_at: Option<String>,
}

/// The number of a row in the range of agent platforms. Rows without one of their own have that of their kind there.
const fn number(code: ErrorCode) -> &'static str {
    match code.e_number() {
        Some(number) => number,
        None => match code {
            ErrorCode::ToolDisabled => "E3004",
            ErrorCode::ToolDenied
            | ErrorCode::PermissionDenied
            | ErrorCode::LicenseRequired
            | ErrorCode::ConfirmationRequired
            | ErrorCode::ConfirmationDenied
            | ErrorCode::ApprovalExpired
            | ErrorCode::Unauthenticated => "E3201",
            ErrorCode::DuplicateCallId
            | ErrorCode::IdempotencyConflict
            | ErrorCode::BadRequest
            | ErrorCode::BadSignature => "E3401",
            ErrorCode::StoreUnavailable | ErrorCode::ShuttingDown => "E3503",
            ErrorCode::UpstreamUnavailable => "E3304",
            // The number of everything that fails while it runs.
            _ => "E3108",
        },
    }
}

const fn status(status: Option<Status>) -> &'static str {
    match status {
        Some(Status::Success) => "success",
        Some(Status::Failed | Status::SandboxError | Status::ValidationError) | None => "error",
        Some(Status::Timeout) => "timeout",
        Some(Status::Cancelled) => "cancelled",
        Some(Status::RequiresConfirmation) => "pending_approval",
        Some(Status::PermissionDenied) => "permission_denied",
    }
}

fn error(info: &ErrorInfo) -> InvokeError {
    InvokeError {
        code: number(info.code),
        message: info.message.clone(),
        details: InvokeDetails {
            code: info.code,
            problems: info.problems.clone(),
            data: info.data.as_deref().cloned(),
        },
        retryable: info.retryable,
    }
}

/// The answer to a request that came to no call.
pub(super) fn refused(invocation_id: &str, tool_id: &str, problem: Refusal) -> Response {
    let info = problem.info();
    let body = ToolInvokeResponse {
        invocation_id: invocation_id.to_owned(),
        tool_id: haft_core::text::one_line(tool_id, 255),
        status: status(info.code.status()),
        result: None,
        error: Some(error(&info)),
        execution_metadata: None,
        polling_info: None,
        completed_at: Some(jiff::Timestamp::now().to_string()),
    };
    let mut answer = problem.into_response();
    let (status, wait) = (answer.status(), answer.headers_mut().remove(header::RETRY_AFTER));
    let mut answer = (status, Json(body)).into_response();
    if let Some(wait) = wait {
        answer.headers_mut().insert(header::RETRY_AFTER, wait);
    }
    answer
}

/// What a tool put out: its value, or its text. That of one that failed, too; where it said nothing but why, there is
/// none.
fn output(result: &ToolResult) -> Option<Value> {
    if let Some(output) = &result.output {
        return Some(output.clone());
    }
    let text = result.text();
    let is_error = result.error.as_ref().is_some_and(|error| text.is_empty() || *text == *error.message);
    let has_run = result.is_success() || result.metadata.attempts > 0;
    (has_run && !is_error).then(|| Value::String(text.to_owned()))
}

impl From<&ToolResult> for ToolInvokeResponse {
    fn from(result: &ToolResult) -> Self {
        let (facts, used) = (&result.metadata, result.metadata.metrics.as_deref());
        ToolInvokeResponse {
            invocation_id: result.call_id.to_string(),
            tool_id: result.tool.to_string(),
            status: status(Some(result.status)),
            result: output(result),
            error: result.error.as_deref().map(error),
            execution_metadata: Some(InvokeMetadata {
                execution_id: facts.execution_id.to_string(),
                tool_sandbox_id: facts.sandbox_id.clone(),
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

/// A call that became a task.
pub(super) fn taken(task: &Task) -> ToolInvokeResponse {
    let interval = task.poll_after(jiff::Timestamp::now()).unwrap_or_default().as_millis();
    ToolInvokeResponse {
        invocation_id: task.call_id.to_string(),
        tool_id: task.tool.to_string(),
        status: "pending",
        result: None,
        error: None,
        execution_metadata: None,
        polling_info: Some(PollingInfo {
            url: format!("/v1/tasks/{}", task.id),
            task_id: task.id.to_string(),
            interval_ms: u64::try_from(interval).unwrap_or(30_000).clamp(100, 30_000),
        }),
        completed_at: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `seeds/002`: `error.code` is a number of the E3000 range, for every row of the table.
    #[test]
    fn every_error_has_a_number_of_the_range() {
        for code in ErrorCode::ALL {
            let number = number(*code);
            let digits = number.strip_prefix("E3").unwrap_or_default();
            assert!(
                digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit()),
                "{code}: {number}"
            );
            assert!(code.e_number().is_none_or(|own| own == number), "{code}");
        }
        // Its own table, row by row.
        for (code, expected) in [
            (ErrorCode::SandboxCreationFailed, "E3101"),
            (ErrorCode::ResourceLimitExceeded, "E3102"),
            (ErrorCode::Timeout, "E3103"),
            (ErrorCode::NetworkPolicyViolation, "E3104"),
            (ErrorCode::FilesystemPolicyViolation, "E3105"),
            (ErrorCode::ConcurrentLimitExceeded, "E3106"),
            (ErrorCode::SandboxCrashed, "E3107"),
            (ErrorCode::NonZeroExit, "E3108"),
        ] {
            assert_eq!(number(code), expected);
            let retryable = matches!(code, ErrorCode::Timeout | ErrorCode::ConcurrentLimitExceeded);
            assert_eq!(code.is_retryable(), retryable, "{code}");
        }
    }
}
