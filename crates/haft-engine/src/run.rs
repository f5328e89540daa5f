//! Run: one prepared call, under its deadline, until it ends or is ended. Formats nothing, keeps nothing.

use crate::{frame::Frame, plan::Ready, ports::Ports};
use futures_util::FutureExt;
use haft_core::{
    Enforcement, ErrorCode, EventPayload, IsolationLevel, ToolError, ToolOutput, iso_duration, port::Intent,
    text,
};
use haft_sdk::{Cancel, CancelReason, Host, ToolCtx};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

/// Runs a call.
pub(crate) async fn run(ports: &Ports, ready: Ready) -> Result<ToolOutput, ToolError> {
    let Ready { frame, prepared, level, has_side_effects, .. } = ready;
    if let Some(reason) = frame.cancel.reason() {
        return Err(cancelled(&frame.cancel, reason));
    }
    let enforcement = enforcement(ports, level)?;
    if has_side_effects {
        record_intent(ports, &frame).await?;
    }
    {
        let mut facts = frame.facts();
        facts.enforcement = Some(enforcement);
        facts.attempts = 1;
    }
    let timeout = frame.timeout();
    frame.emit(EventPayload::Started { arguments: frame.call.arguments.clone(), timeout });
    let cx = ToolCtx::new(Arc::clone(&frame) as Arc<dyn Host>);
    let tool = guarded(move || Ok(prepared.execute(cx)))?;
    // After a panic the future is dropped and never polled again.
    let mut tool = AssertUnwindSafe(tool).catch_unwind();
    let outcome = tokio::select! {
        biased;
        outcome = &mut tool => outcome,
        reason = frame.cancel.cancelled() => Ok(Err(cancelled(&frame.cancel, reason))),
        error = deadline(&frame, timeout) => Ok(Err(error)),
    };
    // A tool's own clean-up may panic as well as the tool.
    let cleaned = catch_unwind(AssertUnwindSafe(move || drop(tool)));
    match (outcome, cleaned) {
        (Ok(Ok(output)), Err(panic)) => {
            drop(output);
            Err(panicked(panic))
        }
        (Ok(outcome), _) => outcome,
        (Err(panic), _) => Err(panicked(panic)),
    }
}

async fn record_intent(ports: &Ports, frame: &Frame) -> Result<(), ToolError> {
    let (approval, attempt) = {
        let facts = frame.facts();
        (facts.approval.clone(), facts.attempts + 1)
    };
    let intent = Intent {
        execution_id: frame.id,
        batch: frame.batch_place(),
        context: Arc::clone(&frame.context),
        tool: Arc::clone(frame.tool_name()),
        arguments: frame.call.arguments.clone(),
        approval,
        attempt,
        at: ports.clock.now(),
    };
    ports
        .store
        .intent(intent)
        .await
        .map_err(|error| ToolError::from(ErrorCode::StoreUnavailable).with_diagnostics(error))
}

/// What holds the call in. Never weaker than planned: a jail that cannot deliver any more refuses here.
fn enforcement(ports: &Ports, level: IsolationLevel) -> Result<Enforcement, ToolError> {
    match level {
        IsolationLevel::None => Ok(Enforcement::in_process()),
        IsolationLevel::Standard | IsolationLevel::Strict | IsolationLevel::Restricted => ports
            .jail
            .offers(level)
            .map_err(|unavailable| ToolError::new(ErrorCode::SandboxCreationFailed, unavailable.to_string())),
    }
}

/// Ends when the time is over: the whole of it, or the time without a sign of life.
async fn deadline(frame: &Frame, timeout: Duration) -> ToolError {
    let started = frame.arrived.elapsed();
    let end = started + timeout;
    let Some(idle) = frame.options.idle_timeout else {
        tokio::time::sleep(timeout).await;
        return timed_out(frame, &format!("after {}", seconds(timeout)));
    };
    loop {
        let now = frame.arrived.elapsed();
        let silent_until = frame.last_sign_of_life().max(started) + idle;
        if now >= end {
            return timed_out(frame, &format!("after {}", seconds(timeout)));
        }
        if now >= silent_until {
            return timed_out(frame, &format!("after {} without output or progress", seconds(idle)));
        }
        tokio::time::sleep(silent_until.min(end) - now).await;
    }
}

fn timed_out(frame: &Frame, when: &str) -> ToolError {
    // Threads of the tool that still run can learn of it; the tool's future is dropped.
    frame.cancel.cancel(CancelReason::Deadline, None);
    let text = format!(
        "Tool '{}' timed out {when}. It was stopped; what it did until then stays",
        frame.tool_name()
    );
    ToolError::new(ErrorCode::Timeout, text)
}

fn seconds(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 {
        format!("{}s", duration.as_secs())
    } else {
        iso_duration::format(duration).trim_start_matches("PT").to_ascii_lowercase()
    }
}

/// The error of a call that was cancelled.
pub(crate) fn cancelled(cancel: &Cancel, reason: CancelReason) -> ToolError {
    cancelled_with(cancel.note(), reason)
}

pub(crate) fn cancelled_with(note: Option<&str>, reason: CancelReason) -> ToolError {
    let text = match note {
        Some(note) => format!("{}: {}", reason.model_text(), text::one_line(note, 200)),
        None => reason.model_text().to_owned(),
    };
    ToolError::new(ErrorCode::Cancelled, text)
}

/// Calls a tool's code that does not await. A panic in it is that call's error.
pub(crate) fn guarded<T>(code: impl FnOnce() -> Result<T, ToolError>) -> Result<T, ToolError> {
    // What the closure may leave half-done is dropped with it.
    catch_unwind(AssertUnwindSafe(code)).unwrap_or_else(|panic| Err(panicked(panic)))
}

/// A fixed text of the tool's author may be shown. A text that was put together at run time may hold anything, and
/// is for the operator only.
fn panicked(panic: Box<dyn Any + Send>) -> ToolError {
    if let Some(fixed) = panic.downcast_ref::<&'static str>() {
        let message = text::one_line(fixed, 200);
        return ToolError::new(ErrorCode::Panicked, format!("Tool panicked: {message}"));
    }
    let error = ToolError::new(ErrorCode::Panicked, "Tool panicked. Its message is in the operator's record");
    match panic.downcast_ref::<String>() {
        Some(message) => error.with_diagnostics(message),
        None => error,
    }
}
