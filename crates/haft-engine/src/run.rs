//! Run: one prepared call, under its deadline, until it ends or is ended. Formats nothing, keeps nothing.

use crate::{
    contained::{Contained, guarded, guarded_async},
    frame::{Frame, LaterTry},
    plan::{Ready, resolved},
    ports::Ports,
    telemetry,
};
use haft_core::{
    Enforcement, ErrorCode, EventPayload, Footprint, IsolationLevel, ToolError, ToolOutput, iso_duration,
    port::Intent, text,
};
use haft_sdk::{Cancel, CancelReason, Host, Prepared, ToolCtx, ToolFuture, capability::Workspace};
use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

/// What a tool's code comes to.
type Outcome = Result<ToolOutput, ToolError>;

/// Runs a call.
pub(crate) async fn run(ports: &Ports, ready: &mut Ready) -> Result<ToolOutput, ToolError> {
    let prepared = std::mem::replace(&mut ready.prepared, Contained::nothing());
    let (cancel, frame) = (ready.cancel(), &ready.frame);
    if let Some(reason) = cancel.reason() {
        return Err(cancelled(cancel, reason));
    }
    // While a person thought about it, a path may have come to lead elsewhere.
    if frame.facts().approval.is_some() {
        same_paths(&*ready.frame.reach().workspace, &prepared, &ready.footprint)?;
    }
    let enforcement = enforcement(ports, ready.level)?;
    // The sandbox around it may have ended while it waited.
    let is_first = frame.facts().attempts == 0;
    let _inside = frame.sandbox.get().map(|sandbox| sandbox.inhabit(is_first)).transpose()?;
    if ready.has_side_effects {
        record_intent(ports, frame).await?;
    }
    let attempts = {
        let mut facts = frame.facts();
        facts.enforcement = Some(enforcement);
        facts.attempts += 1;
        facts.attempts
    };
    let timeout = frame.timeout();
    if attempts == 1 {
        let arguments = ports.redaction.arguments(&frame.arguments());
        frame.emit(EventPayload::Started { arguments, timeout });
        telemetry::started(&ports.redaction, frame);
    }
    let _runs = frame.runs();
    let cx = ToolCtx::new(match &ready.later {
        None => Arc::clone(frame) as Arc<dyn Host>,
        Some(cancel) => Arc::new(LaterTry { frame: Arc::clone(frame), cancel: Arc::clone(cancel) }),
    });
    let Some(prepared) = prepared.take() else { return Err(ErrorCode::ExecutionFailed.into()) };
    let mut tool = Contained::new(guarded(move || Ok(prepared.execute(cx)))?);
    let Some(running) = tool.get_mut() else { return Err(ErrorCode::ExecutionFailed.into()) };
    let outcome = match poll_fn(|task| Poll::Ready(polled(running, task))).await {
        Poll::Ready(outcome) => outcome,
        // Boxed, because many tools have no need to wait, and its state would make every walk larger to move.
        Poll::Pending => Box::pin(waited_for(running, ports, ready, timeout)).await,
    };
    match (outcome, tool.let_go()) {
        // It said that it succeeded, and then its clean-up failed: whether it did is not sure.
        (Ok(_), Err(panic)) => Err(panic),
        (outcome, _) => outcome,
    }
}

/// Lets a tool go on. A panic in it is how it ended.
fn polled(running: &mut ToolFuture, task: &mut Context<'_>) -> Poll<Outcome> {
    guarded(|| Ok(running.as_mut().poll(task))).unwrap_or_else(|panic| Poll::Ready(Err(panic)))
}

/// How a tool ended that has begun and has to be waited for, or why it was not waited for any longer.
async fn waited_for(running: &mut ToolFuture, ports: &Ports, ready: &Ready, timeout: Duration) -> Outcome {
    let (cancel, frame) = (ready.cancel(), &ready.frame);
    // It was just asked, and will wake this task. Only its end is to be waited for now, or what ends it.
    let mut is_asked = true;
    let ended = poll_fn(|task| match std::mem::take(&mut is_asked) {
        true => Poll::Pending,
        false => polled(running, task),
    });
    let error = tokio::select! {
        biased;
        outcome = ended => return outcome,
        reason = cancel.cancelled() => cancelled(cancel, reason),
        error = deadline(frame, cancel, timeout) => error,
    };
    if frame.facts().guest.is_some() {
        // A program was asked to end: it may tidy up, and what it used is still to be known. After that it is ended.
        tokio::time::timeout(ports.settings.grace, guarded_async(running)).await.ok();
    }
    Err(error)
}

/// What was approved is what runs: paths must lead where they led when a person was asked.
fn same_paths(
    workspace: &dyn Workspace,
    prepared: &Contained<Box<dyn Prepared>>,
    approved: &Footprint,
) -> Result<(), ToolError> {
    let now = guarded(|| Ok(prepared.get().map(|prepared| prepared.footprint()).unwrap_or_default()))?;
    match resolved(workspace, now)? == *approved {
        true => Ok(()),
        false => {
            let text = "A path of this call leads elsewhere than when it was approved, so it was not run. Send it again";
            Err(ToolError::new(ErrorCode::ApprovalExpired, text))
        }
    }
}

async fn record_intent(ports: &Ports, frame: &Frame) -> Result<(), ToolError> {
    let (approval, attempt) = {
        let mut facts = frame.facts();
        facts.had_intent = true;
        (facts.approval.clone(), facts.attempts + 1)
    };
    let intent = Intent {
        execution_id: frame.id,
        batch: frame.batch_place(),
        context: Arc::clone(&frame.context),
        call_id: Arc::clone(&frame.call.id),
        tool: Arc::clone(frame.tool_name()),
        arguments: ports.redaction.arguments(&frame.arguments()),
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
async fn deadline(frame: &Frame, cancel: &Cancel, timeout: Duration) -> ToolError {
    let started = frame.arrived.elapsed();
    let end = started + timeout;
    let Some(idle) = frame.options.idle_timeout else {
        tokio::time::sleep(timeout).await;
        return timed_out(frame, cancel, &format!("after {}", seconds(timeout)));
    };
    loop {
        let now = frame.arrived.elapsed();
        let silent_until = frame.last_sign_of_life().max(started) + idle;
        if now >= end {
            return timed_out(frame, cancel, &format!("after {}", seconds(timeout)));
        }
        if now >= silent_until {
            return timed_out(frame, cancel, &format!("after {} without output or progress", seconds(idle)));
        }
        tokio::time::sleep(silent_until.min(end) - now).await;
    }
}

fn timed_out(frame: &Frame, cancel: &Cancel, when: &str) -> ToolError {
    // Threads of the tool that still run can learn of it; the tool's future is dropped.
    cancel.cancel(CancelReason::Deadline, None);
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

/// What `code` comes to, unless the call is cancelled first.
pub(crate) async fn unless_cancelled<T>(
    frame: &Frame,
    code: impl Future<Output = T>,
) -> Result<T, ToolError> {
    tokio::select! {
        biased;
        done = code => Ok(done),
        reason = frame.cancel.cancelled() => Err(cancelled(&frame.cancel, reason)),
    }
}

pub(crate) fn cancelled_with(note: Option<&str>, reason: CancelReason) -> ToolError {
    let text = match note {
        Some(note) => format!("{}: {}", reason.model_text(), text::one_line(note, 200)),
        None => reason.model_text().to_owned(),
    };
    ToolError::new(ErrorCode::Cancelled, text)
}
