//! The attempts at a call: the only loop over them. Each passes, from the outside in: rates and quotas → breaker → lane
//! → run.
//!
//! The loop is given `run` as a function. Nothing of it costs anything where nothing of it is configured.

use super::{
    breaker::is_fault,
    controls::AdmissionControls,
    lanes::{LaneTable, Slot, SlotOffer, Waiting},
    retry::{self, Failed, next_delay},
};
use crate::{
    panic_guard::{PanicGuard, guarded},
    pipeline::{
        plan::resolved,
        types::{AttemptOutcome, Ready, Start, cancelled},
    },
    ports::Ports,
    telemetry,
};
use haft_core::{ErrorCode, EventPayload, FailedTry, Retry, ToolError, port::BoxFuture};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::Instant;

/// The attempts at a call, each of which is one `run`.
pub(super) struct Attempts<'e, R> {
    pub(super) controls: &'e AdmissionControls,
    pub(super) ports: &'e Ports,
    pub(super) run: &'e R,
}

impl<R: Start> Start for Attempts<'_, R> {
    /// Makes attempts until one succeeds or none follows. How long to wait before the next one, if there is one, is
    /// [`next_delay`]'s decision.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn keeps its arguments twice, and this is moved with every call"
    )]
    fn start<'a>(&'a self, ready: &'a mut Ready) -> impl Future<Output = AttemptOutcome> + Send {
        async move {
            let mut failed = 0;
            ready.call.begin_time();
            loop {
                let outcome = match self.controls.are_open() {
                    true => self.run.start(ready).await,
                    // Boxed like everything here that is rare: its state would make every call larger to move.
                    false => Box::pin(self.attempt(ready)).await,
                };
                let error = match outcome {
                    Ok(output) => {
                        if failed > 0 {
                            ready.call.emit(EventPayload::RetrySucceeded { attempts: failed + 1 });
                        }
                        return Ok(output);
                    }
                    Err(error) => error,
                };
                let policy = policy(self.ports, ready);
                let most = policy.max_retries.saturating_add(1);
                let so_far = Failed {
                    may_run_again: ready.may_run_again(),
                    before: failed,
                    error: &error,
                    time_left: ready.call.time_left(),
                };
                let delay = next_delay(policy, so_far, fastrand::f64());
                let next = match delay {
                    Some(delay) => Box::pin(self.pause(ready, (failed + 2, most), delay, error)).await,
                    None => Err(error),
                };
                if let Err(error) = next {
                    if failed > 0 {
                        let (attempts, code) = (failed + 1, error.code);
                        let message = self.ports.redaction.model_string(error.message.clone());
                        ready.call.emit(EventPayload::RetryExhausted { attempts, code, message });
                    }
                    return Err(error);
                }
                failed += 1;
            }
        }
    }
}

impl<R: Start> Attempts<'_, R> {
    /// One attempt, held back by what is configured: rates and quotas → breaker → lane → run.
    async fn attempt(&self, ready: &mut Ready) -> AttemptOutcome {
        let (controls, ports, run) = (self.controls, self.ports, self.run);
        let call = Arc::clone(ready.call.state());
        if let Some(rates) = &controls.rates {
            rates.check(&call.context, call.tool_name())?;
        }
        let permit = match &controls.breakers {
            Some(breakers) => {
                let (entered, change) = breakers.enter(call.tool_name(), &call.context.tenant);
                change.into_iter().for_each(|change| call.emit(change));
                Some(entered?)
            }
            None => None,
        };
        let slot = match &controls.lanes {
            // What a running call calls runs in that call's slot: it would wait for itself. A flow only waits for its
            // nodes, which have slots of their own.
            Some(lanes) if !call.is_inside && !ready.is_flow() => match slot(lanes, ready)? {
                Ok(slot) => Some(slot),
                Err(waiting) => Some(waiting.await?),
            },
            _ => None,
        };
        if let Some(quotas) = &controls.quotas {
            quotas.start(&call.context, ports.clock.now())?;
        }
        let outcome = run.start(ready).await;
        drop(slot);
        if let (Some(permit), Some(registered)) = (permit, call.registered.get()) {
            let has_failed = match &outcome {
                Ok(_) => Some(false),
                // A tool that passes calls on passes on their failures, too.
                Err(_) if ready.passes_on() => None,
                Err(error) => is_fault(&registered.definition, error.code),
            };
            permit.leave(has_failed).into_iter().for_each(|change| call.emit(change));
        }
        outcome
    }

    /// Waits before the next attempt and prepares it. The error is that of the last one where none follows. No slot is
    /// held here.
    async fn pause(
        &self,
        ready: &mut Ready,
        (attempt, most): (u32, u32),
        delay: Duration,
        error: ToolError,
    ) -> Result<(), ToolError> {
        // A cancellation from here on is for the next attempt.
        if !ready.next_attempt() {
            return Err(error);
        }
        let call = &mut ready.call;
        let message = self.ports.redaction.model_string(error.message.clone());
        telemetry::retries(&self.ports.redaction, call, (attempt - 1, most), &message);
        let failed = Some((error.code, message));
        call.emit(EventPayload::RetryAttempt { attempt, most, delay, failed });
        call.scheduling().failed_tries.push(FailedTry { code: error.code, delay });
        self.controls.retries.fetch_add(1, Ordering::Relaxed);
        let cancel = &*ready.cancel;
        tokio::select! {
            biased;
            reason = cancel.cancelled() => return Err(cancelled(cancel, reason)),
            () = tokio::time::sleep(delay) => {}
        }
        match prepare_again(ready) {
            Ok(true) => Ok(()),
            // It would touch something else now than what was checked, approved and put in order.
            Ok(false) | Err(_) => Err(error),
        }
    }
}

/// How calls like this one are retried.
fn policy<'a>(ports: &'a Ports, ready: &'a Ready) -> &'a Retry {
    let usual = match ready.call.batch.is_some() {
        true => &ports.settings.batch_retry,
        false => &ports.settings.retry,
    };
    let tool = ready.call.registered.get().and_then(|tool| tool.definition.retry.as_deref());
    retry::policy(ready.call.options.retry.as_ref(), tool, usual)
}

/// What ran is used up, so it is prepared again, from the same arguments. False where it would touch something else.
fn prepare_again(ready: &mut Ready) -> Result<bool, ToolError> {
    if ready.prepared.get().is_some() {
        return Ok(true);
    }
    let Some(registered) = ready.call.registered.get() else { return Ok(false) };
    let (prepared, footprint) = guarded(|| {
        let prepared = PanicGuard::new(registered.tool.prepare(&ready.arguments)?);
        let footprint = prepared.get().map(|prepared| prepared.footprint()).unwrap_or_default();
        let tenant = &ready.call.context.tenant;
        Ok((prepared, resolved(&*ready.call.reach().workspace, footprint, tenant)?))
    })?;
    ready.prepared = prepared;
    ready.call.forget_spool();
    Ok(footprint == ready.footprint)
}

/// A slot, at once; else what waits for one. Boxed, because its state would make every attempt larger to move.
fn slot<'a>(
    lanes: &Arc<LaneTable>,
    ready: &'a mut Ready,
) -> Result<Result<Slot, BoxFuture<'a, Result<Slot, ToolError>>>, ToolError> {
    let call = &ready.call;
    Ok(match lanes.ask(&call.context, call.options.priority)? {
        SlotOffer::Now(slot) => Ok(slot),
        SlotOffer::Wait(waiting) => Err(Box::pin(wait_for_slot(waiting, ready))),
    })
}

/// Waits for a slot.
async fn wait_for_slot(mut waiting: Waiting, ready: &mut Ready) -> Result<Slot, ToolError> {
    let call = &mut ready.call;
    call.emit(EventPayload::Queued { lane: waiting.lane, ahead: waiting.ahead });
    let asked = Instant::now();
    let cancel = &*ready.cancel;
    // Before the first attempt a call waits for others, which is not its own time.
    let patience = if call.facts.attempts == 0 { Duration::MAX } else { call.time_left() };
    let slot = tokio::select! {
        biased;
        reason = cancel.cancelled() => Err(cancelled(cancel, reason)),
        slot = waiting.granted() => slot.ok_or_else(|| ErrorCode::ConcurrentLimitExceeded.into()),
        () = tokio::time::sleep(patience) => Err(out_of_time(call.tool_name())),
    };
    let waited: Duration = asked.elapsed();
    call.scheduling().queue_wait += waited;
    if slot.is_ok() && call.facts.attempts == 0 {
        // What it waited for others is not its own time.
        call.begin_turn();
        call.begin_time();
    }
    slot
}

fn out_of_time(tool: &str) -> ToolError {
    let text = format!("Tool '{tool}' timed out while it waited for another attempt");
    ToolError::new(ErrorCode::Timeout, text)
}
