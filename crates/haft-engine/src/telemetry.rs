//! Spans and log messages: every name that an observer of haft sees is in this file, and those of metrics in
//! `metrics.rs`.
//!
//! Spans go through the five stages. The one around a tool is named and described as the OpenTelemetry conventions for
//! generative AI have it. Nothing here holds arguments, output or diagnostics, and names go through redaction.
//! Without a subscriber each costs a comparison.
//!
//! ```text
//! haft.execution                 one call, or one batch
//! ├── haft.plan
//! ├── haft.approve
//! └── haft.schedule
//!     └── execute_tool NAME   for each call
//!         ├── haft.run
//!         └── haft.finish
//! ```

use crate::{pipeline::types::CallState, redaction::Redaction};
use haft_core::{BatchId, BatchSummary, ErrorCode, Status, Tier, ToolResult, text::one_line};
use std::time::Duration;
use tracing::{Level, Span, field::Empty, level_filters::LevelFilter};

/// What spans and messages are filed under.
macro_rules! target {
    () => {
        "haft"
    };
}

/// The code that the messages of the executor carry.
const CODE: &str = "TLS-EXE";

/// A stage of a call.
#[derive(Clone, Copy)]
pub(crate) enum Stage {
    Plan,
    Approve,
    Schedule,
    Run,
    Finish,
}

/// The span of a stage.
pub(crate) fn stage(stage: Stage) -> Span {
    match stage {
        Stage::Plan => tracing::info_span!(target: target!(), "haft.plan"),
        Stage::Approve => tracing::info_span!(target: target!(), "haft.approve"),
        Stage::Schedule => tracing::info_span!(target: target!(), "haft.schedule"),
        Stage::Run => tracing::info_span!(target: target!(), "haft.run"),
        Stage::Finish => tracing::info_span!(target: target!(), "haft.finish"),
    }
}

/// Waits for a future in a span. Where nobody listens there is nothing around it: that would be moved with every call.
macro_rules! within {
    ($span:expr, $future:expr) => {
        if $crate::telemetry::may_be_heard() {
            Box::pin(tracing::Instrument::instrument($future, $span)).await
        } else {
            $future.await
        }
    };
}
pub(crate) use within;

/// Whether there is anybody who could want spans. One load.
pub(crate) fn may_be_heard() -> bool {
    LevelFilter::current() >= Level::INFO
}

/// The span of everything that happens to calls that came in together.
pub(crate) fn execution(calls: &[std::sync::Arc<CallState>]) -> Span {
    if !is_on() {
        return Span::none();
    }
    let Some(first) = calls.first() else { return Span::none() };
    let span = tracing::info_span!(
        target: target!(),
        "haft.execution",
        haft.calls = calls.len(),
        haft.execution.id = Empty,
        haft.batch.id = Empty,
        haft.tenant = %first.context.tenant,
        gen_ai.agent.id = %first.context.agent,
        gen_ai.conversation.id = first.context.conversation.as_deref(),
    );
    match first.batch_place() {
        Some((batch, _)) => span.record("haft.batch.id", tracing::field::display(batch)),
        None => span.record("haft.execution.id", tracing::field::display(first.id)),
    };
    span
}

/// The span of one call, from its turn to its end.
pub(crate) fn execute_tool(redaction: &Redaction, call: &CallState) -> Span {
    if !is_on() {
        return Span::none();
    }
    let tool = shown(redaction, call.tool_name());
    tracing::info_span!(
        target: target!(),
        "execute_tool",
        otel.name = format!("execute_tool {tool}"),
        otel.kind = "internal",
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tool,
        gen_ai.tool.type = "function",
        gen_ai.tool.call.id = shown(redaction, &call.tool_call.id),
        gen_ai.agent.id = %call.context.agent,
        gen_ai.conversation.id = call.context.conversation.as_deref(),
        error.type = Empty,
        haft.execution.id = %call.id,
        haft.status = Empty,
        haft.output.bytes = Empty,
        haft.jail = Empty,
    )
}

/// Puts how the call ended on its span.
pub(crate) fn outcome(span: &Span, result: &ToolResult) {
    if span.is_disabled() {
        return;
    }
    span.record("haft.status", result.status.as_str());
    span.record("haft.output.bytes", result.metadata.output_size);
    if let Some(enforcement) = &result.metadata.enforcement {
        span.record("haft.jail", &*enforcement.jail);
    }
    match result.error_code() {
        Some(code) => {
            span.record("otel.status_code", "ERROR");
            span.record("error.type", code.as_str());
        }
        None => {
            span.record("otel.status_code", "OK");
        }
    }
}

/// A name that a caller chose: on one line, not too long, and without secrets.
fn shown(redaction: &Redaction, name: &str) -> String {
    one_line(&redaction.string(name.to_owned()), 128)
}

/// Whether anybody listens.
fn is_on() -> bool {
    tracing::enabled!(target: target!(), Level::INFO)
}

/// A tool begins.
pub(crate) fn started(redaction: &Redaction, call: &CallState) {
    tracing::info!(
        target: target!(),
        code = CODE,
        execution_id = %call.id,
        tool = shown(redaction, call.tool_name()),
        "Tool execution started."
    );
}

/// An attempt failed, and another one follows.
#[cold]
pub(crate) fn retries(redaction: &Redaction, call: &CallState, (attempt, most): (u32, u32), error: &str) {
    tracing::warn!(
        target: target!(),
        code = CODE,
        execution_id = %call.id,
        tool = shown(redaction, call.tool_name()),
        attempt,
        max_attempts = most,
        error = one_line(error, 500),
        "Attempt failed, retrying."
    );
}

/// A call has ended.
pub(crate) fn ended(redaction: &Redaction, call: &CallState, timeout: Duration, result: &ToolResult) {
    // One comparison where nobody listens.
    if tracing::enabled!(target: target!(), Level::WARN) {
        tell(redaction, call, timeout, result);
    }
}

#[cold]
fn tell(redaction: &Redaction, call: &CallState, timeout: Duration, result: &ToolResult) {
    let (execution_id, tool) = (call.id, shown(redaction, call.tool_name()));
    match result.error_code() {
        Some(ErrorCode::ToolNotFound) => {
            tracing::warn!(target: target!(), code = CODE, %execution_id, tool, "Tool not found.");
        }
        Some(error @ (ErrorCode::PermissionDenied | ErrorCode::ToolDenied | ErrorCode::LicenseRequired)) => {
            tracing::warn!(
                target: target!(),
                code = CODE,
                %execution_id,
                tool,
                reason = error.as_str(),
                "Authorization denied."
            );
        }
        Some(ErrorCode::Timeout) => {
            tracing::warn!(target: target!(), code = CODE, %execution_id, tool, ?timeout, "Execution timed out.");
        }
        Some(ErrorCode::ValidationFailed) => {
            // Where and against which rule. What was there is an argument, and not for a log.
            let problems = result.error.iter().flat_map(|error| &error.problems);
            let errors: Vec<String> =
                problems.map(|problem| format!("{}: {}", problem.pointer, problem.rule)).collect();
            let errors = shown(redaction, &errors.join(", "));
            tracing::warn!(target: target!(), code = CODE, %execution_id, tool, errors, "Parameter validation failed.");
        }
        Some(ErrorCode::Cancelled) => {
            tracing::info!(target: target!(), code = CODE, %execution_id, tool, "Execution cancelled.");
        }
        Some(error) if result.status == Status::Failed && result.metadata.attempts > 0 => {
            let error = error.as_str();
            tracing::error!(target: target!(), code = CODE, %execution_id, tool, error, "Execution failed.");
        }
        Some(_) | None => {}
    }
    let duration_ms = result.metadata.duration.as_secs_f64() * 1000.0;
    tracing::info!(
        target: target!(),
        code = CODE,
        %execution_id,
        tool,
        status = result.status.as_str(),
        error = result.error_code().map(ErrorCode::as_str),
        duration_ms,
        "Tool execution finished."
    );
}

/// A batch has more calls than are taken at once.
#[cold]
pub(crate) fn batch_too_large(count: usize, most: usize, tier: Tier) {
    tracing::warn!(target: target!(), code = CODE, count, max = most, tier = ?tier, "Batch size exceeds limit.");
}

/// A batch stopped at a call that did not succeed: the calls after it were not started.
#[cold]
pub(crate) fn batch_stopped(redaction: &Redaction, batch: BatchId, failed: &ToolResult) {
    tracing::info!(
        target: target!(),
        code = CODE,
        execution_id = %batch,
        tool = shown(redaction, &failed.tool),
        status = failed.status.as_str(),
        "Batch execution stopped due to failure."
    );
}

/// Somebody wants a call or a batch to end.
#[cold]
pub(crate) fn cancellation_requested(id: &dyn std::fmt::Display) {
    tracing::info!(target: target!(), code = CODE, execution_id = %id, "Cancellation requested.");
}

/// A batch has ended.
pub(crate) fn batch_ended(summary: &BatchSummary) {
    tracing::info!(
        target: target!(),
        code = CODE,
        execution_id = %summary.batch_id,
        total = summary.total,
        success = summary.succeeded,
        failed = summary.failed,
        "Batch execution completed."
    );
}
