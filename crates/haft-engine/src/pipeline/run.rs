//! Run: one prepared call, under its deadline, until it ends or is ended. Formats nothing, keeps nothing.

use super::{
    approve::summary,
    recheck::recheck,
    types::{Attempt, AttemptFacts, AttemptOutcome, CallRecord, Ready, Start, cancelled},
};
use crate::{
    panic_guard::{PanicGuard, guarded, guarded_async},
    ports::Ports,
    telemetry,
};
use haft_core::{
    Enforcement, ErrorCode, EventPayload, IsolationLevel, ToolError, iso_duration, port::Intent,
};
use haft_sdk::{Cancel, CancelReason, ToolCtx, ToolFuture, files::Meter};
use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

/// Runs the attempts at calls, as schedule is given it.
pub(crate) struct Runner<'e>(pub(crate) &'e Ports);

impl Start for Runner<'_> {
    fn start<'a>(&'a self, ready: &'a mut Ready) -> impl Future<Output = AttemptOutcome> + Send {
        run(self.0, ready)
    }
}

/// Runs one attempt at a call.
async fn run(ports: &Ports, ready: &mut Ready) -> AttemptOutcome {
    if let Some(reason) = ready.cancel.reason() {
        return Err(cancelled(&ready.cancel, reason));
    }
    recheck(ports, ready)?;
    if ready.containment.is_staged {
        let does = summary(ports, ready)?;
        let staging = ready.call.facts.staging.get_or_insert_default();
        (staging.does, staging.footprint) = (does, ready.footprint.clone());
    }
    let prepared = std::mem::replace(&mut ready.prepared, PanicGuard::nothing());
    let enforcement = enforcement(ports, ready.containment.level)?;
    // The sandbox around it may have ended while it waited.
    let is_first = ready.call.facts.attempts == 0;
    let _inside = ready.call.sandbox.get().map(|sandbox| sandbox.inhabit(is_first)).transpose()?;
    if ready.has_side_effects {
        record_intent(ports, &mut ready.call).await?;
    }
    let (number, facts) = ready.call.facts.next_attempt(enforcement);
    let ready = &*ready;
    let call = &ready.call;
    if number == 1 {
        call.emit(EventPayload::Running);
        telemetry::started(&ports.redaction, call);
        // Where a call asks for retries itself, each attempt has its event.
        if let Some(most) =
            call.options.retry.as_ref().map(|retry| retry.max_retries).filter(|most| *most > 0)
        {
            let most = most.saturating_add(1);
            call.emit(EventPayload::RetryAttempt { attempt: 1, most, delay: Duration::ZERO, failed: None });
        }
    }
    let _runs = call.runs();
    let (meter, cx) = context(ready, number, &facts);
    let Some(prepared) = prepared.take() else { return Err(ErrorCode::ExecutionFailed.into()) };
    let mut tool = PanicGuard::new(guarded(move || Ok(prepared.execute(cx)))?);
    let Some(running) = tool.get_mut() else { return Err(ErrorCode::ExecutionFailed.into()) };
    let outcome = match poll_fn(|task| Poll::Ready(polled(running, task))).await {
        Poll::Ready(outcome) => outcome,
        // Boxed, because many tools have no need to wait, and its state would make every call larger to move.
        Poll::Pending => Box::pin(waited_for(running, ports, ready, &facts)).await,
    };
    let outcome = match (outcome, tool.let_go()) {
        // It said that it succeeded, and then its clean-up failed: whether it did is not sure.
        (Ok(_), Err(panic)) => Err(panic),
        (outcome, _) => outcome,
    };
    // Whatever a tool made of it.
    let outcome = meter.and_then(|meter| meter.exceeded()).map_or(outcome, Err);
    if let Err(error) = &outcome {
        facts.found().code = Some(error.code);
    }
    outcome
}

/// What the tool of an attempt is handed, and what counts for it. Not a part of `run`, which would have to move it.
fn context(ready: &Ready, number: u32, facts: &Arc<AttemptFacts>) -> (Option<Arc<Meter>>, ToolCtx) {
    let time = AttemptTime::of(&ready.call, number).most;
    let attempt = Attempt::new(ready, number, time, Arc::clone(facts));
    (attempt.meter(), attempt.ctx())
}

/// Lets a tool go on. A panic in it is how it ended.
fn polled(running: &mut ToolFuture, task: &mut Context<'_>) -> Poll<AttemptOutcome> {
    guarded(|| Ok(running.as_mut().poll(task))).unwrap_or_else(|panic| Poll::Ready(Err(panic)))
}

/// How a tool ended that has begun and has to be waited for, or why it was not waited for any longer.
async fn waited_for(
    running: &mut ToolFuture,
    ports: &Ports,
    ready: &Ready,
    facts: &AttemptFacts,
) -> AttemptOutcome {
    let (cancel, call) = (&ready.cancel, &ready.call);
    let time = AttemptTime::of(call, call.facts.attempts);
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
        error = deadline(call, facts, cancel, time) => error,
    };
    let has_programs = facts.found().guest.is_some();
    if has_programs {
        // A program was asked to end: it may tidy up, and what it used is still to be known. After that it is ended.
        tokio::time::timeout(ports.settings.grace, guarded_async(running)).await.ok();
    }
    Err(error)
}

async fn record_intent(ports: &Ports, call: &mut CallRecord) -> Result<(), ToolError> {
    call.facts.had_intent = true;
    let (approval, attempt) = (call.facts.approval.clone(), call.facts.attempts + 1);
    let intent = Intent {
        execution_id: call.id,
        batch: call.batch_place(),
        context: Arc::clone(&call.context),
        call_id: Arc::clone(&call.tool_call.id),
        tool: Arc::clone(call.tool_name()),
        arguments: ports.redaction.arguments(call.arguments()),
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

/// The time of one attempt.
#[derive(Clone, Copy)]
struct AttemptTime {
    number: u32,
    /// What is left of the call's time, or less where the call bounds each attempt.
    most: Duration,
    /// Whether it is less: then another attempt may follow.
    is_own: bool,
}

impl AttemptTime {
    fn of(call: &CallRecord, number: u32) -> Self {
        let has_waited = call.facts.scheduling.as_ref().is_some_and(|before| !before.failed_tries.is_empty());
        // The first attempt begins when the call's time does.
        let left = if has_waited { call.time_left() } else { call.timeout() };
        match call.options.attempt_timeout {
            Some(own) if own < left => AttemptTime { number, most: own, is_own: true },
            _ => AttemptTime { number, most: left, is_own: false },
        }
    }

    /// What happens when it is over, in words.
    fn over(self, call: &CallRecord) -> String {
        let (tool, number) = (call.tool_name(), self.number);
        match (self.is_own, number) {
            (true, _) => format!("Attempt {number} at tool '{tool}' timed out after {}", seconds(self.most)),
            (false, 1) => format!("Tool '{tool}' timed out after {}", seconds(call.timeout())),
            (false, _) => {
                format!("Tool '{tool}' timed out after {} in {number} attempts", seconds(call.timeout()))
            }
        }
    }
}

/// Ends when the time is over: the whole of it, or the time without a sign of life.
async fn deadline(call: &CallRecord, facts: &AttemptFacts, cancel: &Cancel, time: AttemptTime) -> ToolError {
    let Some(idle) = call.options.idle_timeout else {
        tokio::time::sleep(time.most).await;
        return timed_out(call, cancel, &time.over(call));
    };
    let started = call.arrived.elapsed();
    let end = started.saturating_add(time.most);
    loop {
        let now = call.arrived.elapsed();
        let silent_until = facts.last_sign_of_life().max(started).saturating_add(idle);
        if now >= end {
            return timed_out(call, cancel, &time.over(call));
        }
        if now >= silent_until {
            let (tool, idle) = (call.tool_name(), seconds(idle));
            return timed_out(
                call,
                cancel,
                &format!("Tool '{tool}' timed out after {idle} without output or progress"),
            );
        }
        tokio::time::sleep(silent_until.min(end) - now).await;
    }
}

fn timed_out(call: &CallRecord, cancel: &Cancel, what: &str) -> ToolError {
    // Threads of the tool that still run can learn of it; the tool's future is dropped.
    cancel.cancel(CancelReason::Deadline, None);
    let text = match call.facts.is_staged() {
        true => format!("{what}. It was stopped"),
        false => format!("{what}. It was stopped; what it did until then stays"),
    };
    ToolError::new(ErrorCode::Timeout, text)
}

fn seconds(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 {
        format!("{}s", duration.as_secs())
    } else {
        iso_duration::format(duration).trim_start_matches("PT").to_ascii_lowercase()
    }
}
