//! What stands around one start, from the outside in: stored results → further tries → rates and quotas → breaker →
//! lane → run.
//!
//! Nothing of it costs anything where nothing of it is configured.

use super::{
    adaptive::AdaptiveTimeout,
    breaker::{Breakers, is_fault},
    cache::Cache,
    lanes::{Asked, LaneTable, Slot, Waiting},
    quota::QuotaTable,
    rate::Rates,
    repeat::Repeats,
    retry::next_delay,
};
use crate::{
    contained::{Contained, guarded},
    finish::Raw,
    frame::Frame,
    plan::{Ready, resolved},
    ports::Ports,
    run::{cancelled, run},
};
use haft_core::{
    ErrorCode, EventPayload, FailedTry, Retry, ToolError, ToolOutput, ToolResult, port::BoxFuture,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// What is configured to stand around a start.
#[derive(Default)]
pub(crate) struct Around {
    pub(crate) cache: Option<Cache>,
    pub(crate) rates: Option<Rates>,
    pub(crate) quotas: Option<QuotaTable>,
    pub(crate) breakers: Option<Breakers>,
    pub(crate) lanes: Option<Arc<LaneTable>>,
    pub(crate) repeats: Option<Repeats>,
    pub(crate) adaptive: Option<AdaptiveTimeout>,
    pub(crate) retries: AtomicU64,
}

impl Around {
    /// Whether nothing is configured: then a call just runs.
    pub(crate) fn is_bare(&self) -> bool {
        self.cache.is_none()
            && self.rates.is_none()
            && self.quotas.is_none()
            && self.breakers.is_none()
            && self.lanes.is_none()
            && self.repeats.is_none()
    }

    /// Counts how a call ended, and says so where it fails again and again.
    pub(crate) fn note(&self, frame: &Frame, mut raw: Raw) -> Raw {
        if let Some(repeats) = &self.repeats {
            match &mut raw {
                Raw::Returned(_) => repeats.note(frame, Ok(())),
                Raw::Error(error) => repeats.note(frame, Err(error)),
                Raw::Replay(_) => {}
            }
        }
        raw
    }

    /// Counts what a call used.
    pub(crate) fn ended(&self, ports: &Ports, frame: &Frame, result: &ToolResult) {
        if let Some(quotas) = &self.quotas {
            quotas.used(&frame.context, &result.metadata, ports.clock.now());
        }
    }
}

/// Starts a call, with what stands around that.
pub(crate) async fn surrounded(ports: &Ports, ready: &mut Ready) -> Result<ToolOutput, ToolError> {
    if let Some(repeats) = &ports.around.repeats
        && let Some(stop) = repeats.stops(&ready.frame)
    {
        return Err(stop);
    }
    match &ports.around.cache {
        Some(cache) if Cache::is_for(ready) => Box::pin(cache.answer(ports, ready)).await,
        _ => tries(ports, ready).await,
    }
}

/// Whether a try ended in a way after which another one may follow.
pub(crate) fn is_retryable(outcome: &Result<ToolOutput, ToolError>) -> bool {
    outcome.as_ref().is_err_and(|error| error.code.is_retryable())
}

/// Tries until one succeeds or none follows.
pub(crate) async fn tries(ports: &Ports, ready: &mut Ready) -> Result<ToolOutput, ToolError> {
    let outcome = attempt(ports, ready).await;
    if outcome.is_ok() {
        return outcome;
    }
    // Boxed, because it is rare and its state would make every try larger to move.
    Box::pin(further_tries(ports, ready, outcome)).await
}

/// The tries after the first one, where that has failed.
pub(crate) async fn further_tries(
    ports: &Ports,
    ready: &mut Ready,
    first: Result<ToolOutput, ToolError>,
) -> Result<ToolOutput, ToolError> {
    let mut error = match first {
        Ok(output) => return Ok(output),
        Err(error) => error,
    };
    let mut failures = 0;
    loop {
        if let Err(error) = again(ports, ready, failures, error).await {
            if failures > 0 {
                let (attempts, code) = (failures + 1, error.code);
                ready.frame.emit(EventPayload::RetryExhausted { attempts, code });
            }
            return Err(error);
        }
        failures += 1;
        error = match attempt(ports, ready).await {
            Ok(output) => {
                ready.frame.emit(EventPayload::RetrySucceeded { attempts: failures + 1 });
                return Ok(output);
            }
            Err(error) => error,
        };
    }
}

/// Waits for the next try and prepares it. The error is that of the last one where none follows. No slot is held here.
async fn again(ports: &Ports, ready: &mut Ready, failures: u32, error: ToolError) -> Result<(), ToolError> {
    let frame = Arc::clone(&ready.frame);
    let usual = if frame.batch.is_some() { &ports.settings.batch_retry } else { &ports.settings.retry };
    let policy: &Retry = frame.options.retry.as_ref().unwrap_or(usual);
    let Some(delay) = next_delay(policy, ready.may_run_again(), failures, &error, fastrand::f64()) else {
        return Err(error);
    };
    // Whoever cancels the call from here on cancels the next try.
    if !ready.next_attempt() {
        return Err(error);
    }
    let (attempt, most) = (failures + 2, policy.max_retries.saturating_add(1));
    frame.emit(EventPayload::RetryAttempt { attempt, most, delay, code: error.code });
    frame.scheduling(|facts| facts.failed_tries.push(FailedTry { code: error.code, delay }));
    ports.around.retries.fetch_add(1, Ordering::Relaxed);
    let cancel = &*ready.cancel;
    tokio::select! {
        biased;
        reason = cancel.cancelled() => return Err(cancelled(cancel, reason)),
        () = tokio::time::sleep(delay) => {}
    }
    match prepared_anew(ready) {
        Ok(true) => Ok(()),
        // It would touch something else now than what was checked, approved and put in order.
        Ok(false) | Err(_) => Err(error),
    }
}

/// What ran is used up, so it is prepared again, from the same arguments. False where it would touch something else.
fn prepared_anew(ready: &mut Ready) -> Result<bool, ToolError> {
    if ready.prepared.get().is_some() {
        return Ok(true);
    }
    let Some(registered) = ready.frame.registered.get() else { return Ok(false) };
    let (prepared, footprint) = guarded(|| {
        let prepared = Contained::new(registered.tool.prepare(&ready.arguments)?);
        let footprint = prepared.get().map(|prepared| prepared.footprint()).unwrap_or_default();
        Ok((prepared, resolved(&*ready.frame.reach().workspace, footprint)?))
    })?;
    ready.prepared = prepared;
    ready.frame.forget_spool();
    Ok(footprint == ready.footprint)
}

/// One try: rates and quotas → breaker → lane → run.
async fn attempt(ports: &Ports, ready: &mut Ready) -> Result<ToolOutput, ToolError> {
    let around = &ports.around;
    let frame = Arc::clone(&ready.frame);
    if let Some(rates) = &around.rates {
        rates.check(&frame.context, frame.tool_name())?;
    }
    let permit = match &around.breakers {
        Some(breakers) => {
            let (entered, change) = breakers.enter(frame.tool_name(), &frame.context.tenant);
            change.into_iter().for_each(|change| frame.emit(change));
            Some(entered?)
        }
        None => None,
    };
    let slot = match &around.lanes {
        // What a running call calls runs in that call's slot: it would wait for itself. A flow only waits for its nodes,
        // which have slots of their own.
        Some(lanes) if !frame.is_inside && !ready.is_flow() => match slot(lanes, ready)? {
            Ok(slot) => Some(slot),
            Err(waiting) => Some(waiting.await?),
        },
        _ => None,
    };
    if let Some(quotas) = &around.quotas {
        quotas.start(&frame.context, ports.clock.now())?;
    }
    let outcome = run(ports, ready).await;
    drop(slot);
    if let (Some(permit), Some(registered)) = (permit, frame.registered.get()) {
        let has_failed = match &outcome {
            Ok(_) => Some(false),
            // A tool that passes calls on passes on their failures, too.
            Err(_) if ready.passes_on() => None,
            Err(error) => is_fault(&registered.definition, error.code),
        };
        permit.leave(has_failed).into_iter().for_each(|change| frame.emit(change));
    }
    outcome
}

/// A slot, at once; else what waits for one. Boxed, because its state would make every try larger to move.
fn slot<'a>(
    lanes: &Arc<LaneTable>,
    ready: &'a Ready,
) -> Result<Result<Slot, BoxFuture<'a, Result<Slot, ToolError>>>, ToolError> {
    let frame = &ready.frame;
    Ok(match lanes.ask(&frame.context, frame.options.priority)? {
        Asked::Now(slot) => Ok(slot),
        Asked::Wait(waiting) => Err(Box::pin(wait_for_slot(waiting, ready))),
    })
}

/// Waits for a slot.
async fn wait_for_slot(mut waiting: Waiting, ready: &Ready) -> Result<Slot, ToolError> {
    let frame = &ready.frame;
    frame.emit(EventPayload::Queued { lane: waiting.lane, ahead: waiting.ahead });
    let asked = Instant::now();
    let cancel = &*ready.cancel;
    let slot = tokio::select! {
        biased;
        reason = cancel.cancelled() => Err(cancelled(cancel, reason)),
        slot = waiting.granted() => slot.ok_or_else(|| ErrorCode::ConcurrentLimitExceeded.into()),
    };
    let waited: Duration = asked.elapsed();
    frame.scheduling(|facts| facts.queue_wait += waited);
    if slot.is_ok() && frame.facts().attempts == 0 {
        // What it waited for others is not its own time.
        frame.begin_turn();
    }
    slot
}
